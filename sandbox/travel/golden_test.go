package travel

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
)

var goldenDB = sync.OnceValues(func() (*World, error) { return LoadWorld(goldenDir) })

var goldenDir string

func goldenWorld(t testing.TB) *World {
	t.Helper()
	goldenDir = shared(t, "golden", "db")
	w, err := goldenDB()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// goldenVerdict is one line of the golden verdict files.
type goldenVerdict struct {
	PairID        string           `json:"pair_id"`
	Kind          string           `json:"kind"`
	Delivered     bool             `json:"delivered"`
	Outcome       string           `json:"outcome"`
	Raised        *goldenRaised    `json:"raised"`
	Commonsense   map[string][]any `json:"commonsense"`
	Hard          map[string][]any `json:"hard"`
	HardDirect    map[string][]any `json:"hard_direct"`
	Cost          *float64         `json:"cost"`
	CostException *string          `json:"cost_exception"`
	FinalPass     bool             `json:"final_pass"`
	CSPass        bool             `json:"commonsense_pass"`
	HardPass      bool             `json:"hard_pass"`
	Scores        map[string]any   `json:"scores"`
}

type goldenRaised struct{ In, Constraint, Exception string }

type goldenPair struct {
	id    string
	query Query
	plan  Plan
}

func readJSONL[T any](t testing.TB, path string) (list []T) {
	t.Helper()
	err := eachLine(path, func(_ int, line []byte) error {
		var x T
		if err := json.Unmarshal(line, &x); err != nil {
			return err
		}
		list = append(list, x)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func goldenPairs(t testing.TB) []goldenPair {
	t.Helper()
	lines, err := LoadQueryLines(shared(t, "golden", "queries.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]Query{}
	for _, l := range lines {
		byID[l.ID] = l.Query
	}
	type planLine struct {
		PairID  string `json:"pair_id"`
		QueryID string `json:"query_id"`
		Plan    Value  `json:"plan"`
	}
	var pairs []goldenPair
	for _, l := range readJSONL[planLine](t, shared(t, "golden", "plans.jsonl")) {
		pairs = append(pairs, goldenPair{l.PairID, byID[l.QueryID], PlanOf(l.Plan)})
	}
	return pairs
}

func TestGoldenPairs(t *testing.T) {
	w := goldenWorld(t)
	pairs := goldenPairs(t)
	for pr, file := range map[Profile]string{Official: "verdicts.jsonl", Star: "verdicts_star.jsonl"} {
		t.Run(string(pr), func(t *testing.T) {
			verdicts := readJSONL[goldenVerdict](t, shared(t, "golden", file))
			if len(verdicts) != len(pairs) {
				t.Fatalf("%d verdicts for %d pairs", len(verdicts), len(pairs))
			}
			for i, p := range pairs {
				if diff := comparePair(w, p, verdicts[i], pr); diff != "" {
					t.Errorf("%s (%s): %s", p.id, verdicts[i].Kind, diff)
				}
			}
		})
	}
}

// comparePair says in which way a judgement differs from the golden verdict.
func comparePair(w *World, p goldenPair, want goldenVerdict, pr Profile) string {
	var diffs []string
	differ := func(what string, got, want any) {
		diffs = append(diffs, fmt.Sprintf("%s = %v, want %v", what, got, want))
	}
	j := Judge(w, p.query, p.plan, pr)
	if j.Delivered != want.Delivered {
		differ("delivered", j.Delivered, want.Delivered)
	}
	if got := j.outcome(); got != want.Outcome {
		differ("outcome", got, want.Outcome)
	}
	if want.Raised != nil && (j.Raised != want.Raised.Exception || j.RaisedAt != want.Raised.Constraint) {
		differ("raised", j.RaisedAt+" "+j.Raised, *want.Raised)
	}
	if !want.Delivered {
		return strings.Join(diffs, "; ")
	}
	compare := func(want map[string][]any, from, to int, prefix string) {
		for c := from; c < to; c++ {
			v := j.Verdicts[c]
			exp := want[v.Check]
			if got := goldenForm(v.Outcome, v.Value); !sameVerdict(got, exp) {
				differ(prefix+v.Check, got, exp)
			}
		}
	}
	compare(want.Commonsense, 0, nCommonsense, "")
	if (want.Hard != nil) != j.GateOpen {
		differ("gate open", j.GateOpen, want.Hard != nil)
	} else if j.GateOpen {
		compare(want.Hard, nCommonsense, int(nChecks), "")
	}
	// The hard functions called directly, whatever the gate says.
	prog := map[Profile]*program{Official: &officialProgram, Star: &starProgram}[pr]
	direct := Judgement{Verdicts: Judge(w, p.query, Plan{}, pr).Verdicts}
	for i := range direct.Verdicts {
		direct.Verdicts[i].Outcome = OutcomePass
	}
	e := &evaluation{w: w, q: &p.query, p: &p.plan}
	e.run(prog, &direct, prog.order[nCommonsense:])
	for c := nCommonsense; c < int(nChecks); c++ {
		v := direct.Verdicts[c]
		if got := goldenForm(v.Outcome, v.Value); !sameVerdict(got, want.HardDirect[v.Check]) {
			differ("direct "+v.Check, got, want.HardDirect[v.Check])
		}
	}
	if (j.Cost == nil) != (want.Cost == nil) || j.Cost != nil && *j.Cost != *want.Cost {
		differ("cost", fmtCost(j.Cost), fmtCost(want.Cost))
	}
	if want.CostException != nil && *want.CostException != j.CostRaised {
		differ("cost exception", j.CostRaised, *want.CostException)
	}
	if pr == Official {
		if final := j.Success; final != want.FinalPass {
			differ("final", final, want.FinalPass)
		}
		if cs := j.CSMacro == 1 && j.GateOpen; cs != want.CSPass {
			differ("commonsense pass", cs, want.CSPass)
		}
		if hard := j.HardMacro == 1; hard != want.HardPass {
			differ("hard pass", hard, want.HardPass)
		}
	} else if want.Scores != nil {
		got := map[string]float64{"commonsense_macro_score": j.CSMacro, "commonsense_micro_score": j.CSMicro,
			"hard_macro_score": j.HardMacro, "hard_micro_score": j.HardMicro, "success_pass": b2f(j.Success)}
		for k, x := range want.Scores {
			exp, _ := x.(float64) // null: not applicable
			if math.Abs(got[k]-exp) > 1e-12 && !(k == "success_pass" && x != nil && want.Hard == nil) {
				differ(k, got[k], x)
			}
		}
	}
	return strings.Join(diffs, "; ")
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func fmtCost(c *float64) string {
	if c == nil {
		return "none"
	}
	return fmt.Sprint(*c)
}

func goldenForm(outcome, value string) any {
	switch outcome {
	case OutcomePass:
		return true
	case OutcomeFail:
		return false
	case OutcomeRaises:
		return value
	}
	return nil
}

func sameVerdict(got any, want []any) bool {
	if len(want) != 2 {
		return false
	}
	if want[0] == "raises" {
		return got == want[1]
	}
	return got == want[0]
}
