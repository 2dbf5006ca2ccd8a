package dataset

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"alidade/sandbox/travel"
	"alidade/sandbox/travel/synth"

	"github.com/parquet-go/parquet-go"
)

// set is a small certified set.
func set(t testing.TB, n int) (*synth.World, []travel.QueryLine, []synth.Solution, synth.Counts) {
	t.Helper()
	w, _, err := synth.Open(synth.Spec{Cities: 30, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	qs, sols, counts, err := w.Queries(t.Context(), synth.Options{N: n, Mix: [3]int{4, 3, 3}, Seed: 1, Certify: true})
	if err != nil {
		t.Fatal(err)
	}
	lines := make([]travel.QueryLine, n)
	for i := range qs {
		lines[i] = travel.QueryLine{ID: qs[i].Hash(), Query: qs[i], Plan: travel.NewPlan(sols[i].Days)}
	}
	return w, lines, sols, counts
}

func TestFormsReadBack(t *testing.T) {
	_, lines, _, _ := set(t, 20)
	for _, c := range []struct {
		form, file string
		plans      bool
	}{{FormTravelPlanner, "q.jsonl", true}, {FormStar, "q.jsonl", false}, {FormVerl, "q.parquet", false}, {FormTRL, "q.parquet", false}, {"", "q.parquet", false}} {
		path := filepath.Join(t.TempDir(), c.file)
		if err := Write(path, c.form, lines, Rows{Split: "train"}); err != nil {
			t.Fatal(err)
		}
		got, err := Read(path)
		if err != nil || len(got) != len(lines) {
			t.Fatalf("%s: %d lines, %v", c.form, len(got), err)
		}
		for i := range lines {
			if !reflect.DeepEqual(got[i].Query, lines[i].Query) || got[i].ID != lines[i].ID {
				t.Errorf("%s: query %d: %+v, want %+v", c.form, i, got[i].Query, lines[i].Query)
			}
			if got[i].Plan.Delivered() != c.plans {
				t.Errorf("%s: plan delivered %v", c.form, got[i].Plan.Delivered())
			}
			if c.form == FormStar && got[i].Model != "template" {
				t.Errorf("model %q", got[i].Model)
			}
		}
	}
}

func TestReadRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "q.parquet")
	for _, src := range []string{"", "PAR1", "PAR1 nonsense of some length PAR1"} {
		if err := os.WriteFile(path, []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path); err == nil {
			t.Errorf("Read took %q", src)
		}
	}
	if err := WriteFile(path, func(io.Writer) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, "csv", nil, Rows{}); err == nil || !strings.Contains(err.Error(), "travelplanner, star, verl, trl") {
		t.Errorf("Write = %v", err)
	}
}

func TestCard(t *testing.T) {
	w, lines, sols, counts := set(t, 40)
	c := NewCard("small", Describe(synth.Generated, w.World), Made{Sampler: "star", Mix: "4:3:3", Seed: 1, Certified: true}, lines, sols, &counts)
	if c.Levels["easy"] != 16 || c.Levels["medium"] != 12 || c.Levels["hard"] != 12 || c.Solvable == nil || c.Solvable.Part != 40 || c.World.Cities != 30 {
		t.Errorf("card %+v", c)
	}
	for _, h := range c.Histograms {
		sum, byLevel := 0, 0
		for i, n := range h.Counts {
			sum += n
			for _, l := range h.ByLevel {
				byLevel += l[i]
			}
		}
		if sum != 40 || byLevel != 40 || len(h.Edges) != len(h.Counts)+1 {
			t.Errorf("histogram %s counts %d, by level %d", h.Name, sum, byLevel)
		}
		if h.Name == "cheapest plan over budget" && (h.Mean <= 0 || h.Mean > 1) {
			t.Errorf("a certified plan costs %v of its budget", h.Mean)
		}
	}
	path := filepath.Join(t.TempDir(), "card.json")
	if err := WriteCard(path, c); err != nil {
		t.Fatal(err)
	}
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var again Card
	if err := json.Unmarshal(src, &again); err != nil || !reflect.DeepEqual(again.Histograms, c.Histograms) {
		t.Errorf("read back %v", err)
	}
	md := c.Markdown()
	for _, part := range []string{"# small", "40 travel queries", "| easy | 16 | 40.0 % |", "were proven solvable", "```"} {
		if !strings.Contains(md, part) {
			t.Errorf("no %q in\n%s", part, md)
		}
	}
	if md != NewCard("small", c.World, c.Made, lines, sols, &counts).Markdown() {
		t.Error("two cards of one set differ")
	}
	if empty := NewCard("", World{}, Made{}, nil, nil, nil).Markdown(); !strings.Contains(empty, "0 travel queries") {
		t.Errorf("empty card %s", empty)
	}
}

func TestWriteTraces(t *testing.T) {
	w, lines, sols, _ := set(t, 6)
	qs := make([]travel.Query, len(lines))
	for i := range lines {
		qs[i] = lines[i].Query
	}
	list, _, err := w.Traces(t.Context(), qs, sols, synth.TraceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"t.jsonl", "t.parquet"} {
		if err := WriteTraces(filepath.Join(dir, name), list); err != nil {
			t.Fatal(err)
		}
	}
	src, err := os.ReadFile(filepath.Join(dir, "t.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range strings.Split(strings.TrimSpace(string(src)), "\n") {
		var l traceLine
		if err := json.Unmarshal([]byte(text), &l); err != nil || !reflect.DeepEqual(l.Messages, list[i].Messages) || !l.Success || l.TaskID != qs[i].Hash() {
			t.Errorf("line %d: %v", i+1, err)
		}
	}
	rows, err := parquet.ReadFile[traceRow](filepath.Join(dir, "t.parquet"))
	if err != nil || len(rows) != 6 || rows[0].Messages[0] != message(list[0].Messages[0]) {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}
