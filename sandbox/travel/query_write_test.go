package travel

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestQueryLinesReadBack(t *testing.T) {
	wishes := smallQuery()
	wishes.Wish = Constraints{HouseRule: "pets", Cuisine: []string{"Tea", "BBQ"}, RoomType: "private room", Transportation: "no flight"}
	lines := []QueryLine{
		{ID: "a", Query: smallQuery(), Plan: NewPlan(smallPlan()), Model: "a <model> & more"},
		{ID: "b", Query: wishes},
	}
	path := filepath.Join(t.TempDir(), "q.jsonl")
	var b bytes.Buffer
	if err := WriteQueryLines(&b, lines); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := LoadQueryLines(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range lines {
		if got[i].ID != lines[i].ID || !reflect.DeepEqual(got[i].Query, lines[i].Query) || got[i].Model != lines[i].Model || !reflect.DeepEqual(got[i].Plan.Strict(), lines[i].Plan.Strict()) {
			t.Errorf("read back %+v, want %+v", got[i], lines[i])
		}
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(bytes.SplitN(b.Bytes(), []byte("\n"), 2)[0], &keys); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"org", "dest", "days", "visiting_city_number", "date", "people_number", "local_constraint", "budget", "query", "level", "annotated_plan"} {
		if keys[k] == nil {
			t.Errorf("no key %s in the line", k)
		}
	}
	if !strings.Contains(string(keys["local_constraint"]), `"house rule":null`) {
		t.Errorf("constraints %s", keys["local_constraint"])
	}
}

func TestTrainQueriesRoundTrip(t *testing.T) {
	lines, err := LoadQueryLines(shared(t, "train_queries.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		src, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		var again QueryLine
		if err := json.Unmarshal(src, &again); err != nil {
			t.Fatal(err)
		}
		if again.Query.Hash() != l.Query.Hash() || again.Query.Text != l.Query.Text || !reflect.DeepEqual(again.Plan.Strict(), l.Plan.Strict()) {
			t.Errorf("query %s changed", l.ID)
		}
	}
}

func TestReferenceReadsBack(t *testing.T) {
	w, dir := smallWorld(), t.TempDir()
	src, err := json.Marshal(w.Reference(longQuery(), longPlan()))
	if err != nil {
		t.Fatal(err)
	}
	info := filepath.Join(dir, "ref.jsonl")
	if err := os.WriteFile(info, src, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := WriteTables(dir, smallTables()); err != nil {
		t.Fatal(err)
	}
	tables, err := LoadReference(info, filepath.Join(dir, "background", "citySet_with_states.txt"))
	if err != nil {
		t.Fatal(err)
	}
	a, b := Judge(w, longQuery(), NewPlan(longPlan()), Strict), Judge(NewWorld(tables), longQuery(), NewPlan(longPlan()), Strict)
	if !b.Success || *a.Cost != *b.Cost {
		t.Errorf("in the partial world: %s", b.Explain())
	}
}
