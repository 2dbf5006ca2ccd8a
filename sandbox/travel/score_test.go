package travel

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestGoldenAggregate(t *testing.T) {
	w := goldenWorld(t)
	src, err := os.ReadFile(shared(t, "golden", "aggregate.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Official struct {
			Excluded []string `json:"excluded_because_the_program_raises"`
			Sets     map[string]struct {
				setOf
				PairIDs []string `json:"pair_ids"`
			}
		}
		Star map[string]starScores `json:"agent_star"`
	}
	if err := json.Unmarshal(src, &want); err != nil {
		t.Fatal(err)
	}
	pairs, err := LoadPairs(shared(t, "golden", "queries.jsonl"), shared(t, "golden", "plans.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	judged := map[Profile]map[string]Scored{Official: {}, Star: {}}
	all := map[Profile][]Scored{}
	for _, p := range pairs {
		for pr := range judged {
			s := Scored{p, Judge(w, p.Query, p.Plan, pr)}
			judged[pr][p.ID] = s
			all[pr] = append(all[pr], s)
		}
	}
	pick := func(pr Profile, ids []string) (list []Scored) {
		for _, id := range ids {
			list = append(list, judged[pr][id])
		}
		return list
	}
	official, star := summarise(Official, all[Official]), summarise(Star, all[Star])
	if !reflect.DeepEqual(official.Excluded, want.Official.Excluded) {
		t.Errorf("excluded = %v, want %v", official.Excluded, want.Official.Excluded)
	}
	for name, set := range want.Official.Sets {
		got, ok := official.Sets[name]
		if !ok {
			got = setFor(pick(Official, set.PairIDs))
		}
		if got.Pairs != set.Pairs || !sameRates(got.Metrics, set.Metrics) {
			t.Errorf("official %s = %v, want %v", name, got.Metrics, set.Metrics)
		}
		compareRecord(t, got.Record, set.Record)
	}
	for name, set := range want.Star {
		got, ok := star.Star[name]
		if !ok {
			got = starFor(pick(Star, want.Official.Sets[name].PairIDs))
		}
		if !reflect.DeepEqual(got, set) {
			t.Errorf("star %s = %v, want %v", name, got, set)
		}
	}
}

func sameRates(got, want map[string]rateOf) bool {
	for k, w := range want {
		g := got[k]
		if g.Passed != w.Passed || g.Total != w.Total || math.Abs(g.Rate-w.Rate) > 1e-12 {
			return false
		}
	}
	return len(got) == len(want)
}

func TestScoreFiles(t *testing.T) {
	dir := t.TempDir()
	for pr, file := range map[Profile]string{Official: "verdicts.jsonl", Star: "verdicts_star.jsonl"} {
		out, metrics := filepath.Join(dir, "out.jsonl"), filepath.Join(dir, "metrics.json")
		err := ScoreFiles(ScoreOptions{DB: shared(t, "golden", "db"), Queries: shared(t, "golden", "queries.jsonl"),
			Plans: shared(t, "golden", "plans.jsonl"), Profile: pr, Out: out, Metrics: metrics})
		if err != nil {
			t.Fatal(err)
		}
		got, want := readJSONL[goldenVerdict](t, out), readJSONL[goldenVerdict](t, shared(t, "golden", file))
		if len(got) != len(want) {
			t.Fatalf("%d lines, want %d", len(got), len(want))
		}
		for i, g := range got {
			if w := want[i]; g.PairID != w.PairID || g.Delivered != w.Delivered || g.Outcome != w.Outcome || fmtCost(g.Cost) != fmtCost(w.Cost) ||
				!reflect.DeepEqual(g.Raised, w.Raised) || !sameVerdicts(g.Commonsense, w.Commonsense) || !sameVerdicts(g.Hard, w.Hard) ||
				pr == Official && g.FinalPass != w.FinalPass {
				t.Errorf("%s %s = %+v, want %+v", pr, w.PairID, g, w)
			}
		}
	}
}

func sameVerdicts(got, want map[string][]any) bool {
	if (got == nil) != (want == nil) || len(got) != len(want) {
		return false
	}
	for k, w := range want {
		g := got[k]
		if len(g) != 2 || g[0] != w[0] || g[0] == "raises" && g[1] != w[1] {
			return false
		}
	}
	return true
}

func TestScoreFilesErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, test := range map[string]struct{ queries, plans, want string }{
		"unknown query": {goodQuery, `{"pair_id":"p","query_id":"q9","plan":null}`, `plans.jsonl:1: query_id is "q9", must be the id of a query in `},
		"broken plan":   {goodQuery, "{\"pair_id\":\"p\",\"query_id\":\"q1\",\"plan\":[}", "plans.jsonl:1: parse json: "},
		"no days":       {`{"query_id":"q1","org":"A","dest":"B","people_number":1,"budget":1}`, "", "queries.jsonl:1: days is missing, must be a whole number from 1 to 100"},
		"bad wish":      {`{"query_id":"q1","org":"A","dest":"B","days":3,"people_number":1,"budget":1,"local_constraint":"{'cuisine': 3}"}`, "", "queries.jsonl:1: local_constraint: cuisine is 3, must be a list of texts"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := LoadPairs(write("queries.jsonl", test.queries), write("plans.jsonl", test.plans))
			if err == nil || !containsText(err.Error(), test.want) {
				t.Errorf("error = %v, want …%s…", err, test.want)
			}
		})
	}
	if err := ScoreFiles(ScoreOptions{DB: dir, Profile: "lax"}); err == nil || err.Error() != `profile is "lax", must be official, star or strict` {
		t.Errorf("error = %v", err)
	}
	if err := ScoreFiles(ScoreOptions{DB: filepath.Join(dir, "none")}); err == nil {
		t.Error("a missing folder gave no error")
	}
}

const goodQuery = `{"query_id":"q1","org":"A","dest":"B","days":3,"people_number":1,"budget":1}`

func containsText(s, sub string) bool {
	v := Text(s)
	return contains(&v, sub)
}
