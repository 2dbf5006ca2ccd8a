package native

import (
	"log/slog"
	"os"
	"testing"

	"alidade/ablation"
	"alidade/sandbox/travel"
	"alidade/trainer"
)

// newRun is a run whose book can be written to, without a process.
func newRun(t *testing.T, spec trainer.Spec) *run {
	t.Helper()
	if err := os.MkdirAll(spec.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := trainer.NewWriter(spec.Events, trainer.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var stages []string
	r := &run{spec: spec, recipe: spec.Recipe, log: slog.New(slog.DiscardHandler), out: out, adapter: fakeAdapter{stages: &stages},
		set: &taskSet{eval: []travel.Query{{Org: "A", Dest: "B"}, {Org: "C", Dest: "D"}}}}
	r.book = newBook(r)
	return r
}

// TestPanelIsWholeOrNotThere: an evaluation that was cut short is not written
// as if it were one.
func TestPanelIsWholeOrNotThere(t *testing.T) {
	spec := newSpec(t, t.TempDir(), nil)
	r := newRun(t, spec)
	b := r.book
	b.begin(StageRL)
	episode := func(step int64, query int, ok bool) {
		b.scored(trainer.Trajectory{ID: "x", Group: "g", Phase: StageEval, Step: step, Success: ok, Query: trainer.Query{Hash: r.set.eval[query].Hash(), Level: "easy"}})
	}
	episode(0, 0, true)
	episode(0, 1, false)
	episode(5, 0, true) // and no second one
	b.read(0, Reading{Step: 1, Values: map[string]float64{"loss": 1}})
	if err := b.settle(true); err != nil {
		t.Fatal(err)
	}
	if err := r.out.Close(); err != nil {
		t.Fatal(err)
	}
	list := events(t, spec)
	ev := only(list, trainer.KindEvaluation)
	if len(ev) != 1 || ev[0].Evaluation.Step != 0 || ev[0].Evaluation.Samples != 1 {
		t.Fatalf("evaluations: %+v", ev)
	}
	if q := ev[0].Evaluation.Queries; len(q) != 2 || q[0].Passed != 1 || q[1].Passed != 0 {
		t.Errorf("queries: %+v", q)
	}
	if al := only(list, trainer.KindAlert); len(al) != 1 || al[0].Alert.Code != "evaluation-cut" || al[0].Alert.Step != 5 {
		t.Errorf("alerts: %+v", al)
	}
}

// TestPaidBesideTheEnvironment: what the trainer adds to a reward is a part of
// it, so that the parts still sum to it.
func TestPaidBesideTheEnvironment(t *testing.T) {
	x := trainer.Trajectory{Reward: 1, Components: []trainer.Component{{Name: "success", Value: 1}}, Turns: []trainer.Turn{{Tokens: 5}, {}}}
	merge(&x, &trainer.Trajectory{Components: []trainer.Component{{Name: "overlong", Value: -0.25}}, Tokens: 100, Overlong: true,
		Turns: []trainer.Turn{{Tokens: 9, Entropy: []float32{1}}}, Advantage: &trainer.Advantage{Value: 2}})
	sum := 0.0
	for _, c := range x.Components {
		sum += c.Value
	}
	if x.Reward != 0.75 || sum != x.Reward || !x.Overlong || x.Tokens != 100 || x.Turns[0].Tokens != 9 || len(x.Turns[0].Entropy) != 1 || x.Advantage.Value != 2 {
		t.Errorf("%+v", x)
	}
}

// TestInterpreter: the recipe's, else the installed one, else the path's.
func TestInterpreter(t *testing.T) {
	data := t.TempDir()
	r := ablation.Recipe{Trainer: ablation.Trainer{Kind: "trl"}}
	p, err := Interpreter(r, data)
	if err != nil {
		t.Skip("no python3 here")
	}
	dir := EnvironmentDir(data, "trl") + "/bin"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(p, dir+"/python"); err != nil {
		t.Fatal(err)
	}
	if got, err := Interpreter(r, data); err != nil || got != dir+"/python" {
		t.Errorf("%s, %v; want the installed one, by its own path", got, err)
	}
	r.Native.Python = "/nowhere/python"
	if got, err := Interpreter(r, data); err == nil {
		t.Errorf("%s instead of an error", got)
	}
}

// TestSmokeCountsWhatIsTrainedOn: rewards that differ only by what the trainer
// adds to the environment's do differ.
func TestSmokeCountsWhatIsTrainedOn(t *testing.T) {
	r := newRun(t, newSpec(t, t.TempDir(), nil))
	b := r.book
	for _, extra := range []float64{0, -0.5} {
		b.begin(StageSmoke)
		for _, id := range []string{"a", "b"} {
			b.scored(trainer.Trajectory{ID: id, Step: 1, Reward: 0})
		}
		b.read(0, Reading{Step: 1, Values: map[string]float64{"loss": 1}})
		b.read(1, Reading{Step: 1, Trajectory: &trainer.Trajectory{ID: "b", Components: []trainer.Component{{Name: "overlong", Value: extra}}}})
		if err := b.settle(true); err != nil {
			t.Fatal(err)
		}
		if text, notes, ok := b.passed(); ok != (extra != 0) {
			t.Errorf("with %v beside the environment's reward: %v, %s, %v", extra, ok, text, notes)
		}
	}
	if list := only(events(t, r.spec), trainer.KindTrajectory); len(list) > 0 {
		t.Errorf("%d episodes of a smoke run are written", len(list))
	}
}

// TestAlertsAreBounded: what every rollout meets does not fill the page.
func TestAlertsAreBounded(t *testing.T) {
	r := newRun(t, newSpec(t, t.TempDir(), nil))
	r.book.begin(StageRL)
	for range 100 {
		r.book.read(0, Reading{Alert: &trainer.Alert{Level: "warn", Code: "rollout-invalid", Text: "gone"}})
	}
	r.book.read(0, Reading{Alert: &trainer.Alert{Level: "warn", Code: "other", Text: "x"}})
	list := only(events(t, r.spec), trainer.KindAlert)
	if len(list) != mostAlerts+1 || list[mostAlerts].Alert.Code != "other" {
		t.Errorf("%d alerts", len(list))
	}
}
