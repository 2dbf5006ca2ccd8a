package trainer

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"alidade/ablation"
)

var update = flag.Bool("update", false, "write the golden files anew")

// examples is one event of each kind that a trainer writes, every field set.
func examples() map[Kind]Event {
	cost := 812.5
	events := map[Kind]Event{
		KindHello: {Hello: &Hello{Trainer: "alidade-cpu", Version: "0.1.0", PID: 4711, Host: "lab7", TotalSteps: 60, Info: map[string]string{"kernel": "avx2", "parameters": "151234"}}},
		KindPhase: {Phase: &Phase{Name: "rl", Step: 0, Total: 60, Main: true}},
		KindPoints: {Points: &Points{Step: 12, Values: map[string]Float{
			"reward/mean": 0.4375, "policy/loss": Float(math.NaN()), "policy/grad_norm": Float(math.Inf(1)), "policy/entropy": Float(math.Inf(-1)), "policy/lr": 3e-4,
		}}},
		KindTrajectory: {Trajectory: exampleTrajectory(&cost)},
		KindEvaluation: {Evaluation: &ablation.EvalResult{Run: 7, Panel: "test", Policy: "policy", Mode: "sampled", Step: 20, Samples: 4, Hash: "9f86d081884c7d65",
			Queries: []ablation.QueryResult{{Query: "0123456789abcdef", Level: "easy", Passed: 3}, {Query: "fedcba9876543210", Level: "hard", Passed: 0}}}},
		KindCheckpoint: {Checkpoint: &Checkpoint{Step: 40, Path: "checkpoints/step-000040", SHA256: "e3b0c44298fc1c14", Bytes: 604936, Best: true}},
		KindArtifact: {Artifact: &ablation.Artifact{Kind: "sft", Hash: "2c26b46b68ffc68f", Path: "artifacts/sft/2c26b46b68ffc68f", Bytes: 604936, Run: 7, Step: 200,
			Provenance: map[string]any{"traces": 1198.0}, CreatedAt: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}},
		KindAlert: {Alert: &Alert{Level: "warn", Code: "nan", Text: "the loss is NaN", Step: 12}},
		KindDone:  {Done: &Done{OK: true, Step: 60, Reason: "finished"}},
	}
	for kind, e := range events {
		e.V, e.Kind, e.T = Version, kind, 1772600767123
		events[kind] = e
	}
	return events
}

func exampleTrajectory(cost *float64) *Trajectory {
	return &Trajectory{
		ID: "rl-12-3-1", Phase: "rl", Policy: "policy", Step: 12, Group: "rl-12-3", Rollout: 1, Mode: "sampled",
		Query: Query{Hash: "0123456789abcdef", Text: "Three days from Reno to Bend for two people, at most $900.", Level: "easy",
			Org: "Reno", Dest: "Bend", Days: 3, Dates: []string{"2026-03-04"}, People: 2, Constraints: map[string]string{"cuisine": "Thai"}},
		Turns: []Turn{
			{Think: "How do I get there?", Call: &Call{Tool: "SearchFlight", Args: []Arg{{Name: "origin", Value: "Reno"}}},
				Observe: &Observed{Text: "F001 08:00", Columns: []string{"Flight", "Departure"}, Rows: [][]string{{"F001", "08:00"}}, Tokens: 9, Injected: "unavailable", Error: "no hits"},
				Tokens:  7, Entropy: []float32{0.5, 0.25}, LogProbs: []float32{-0.5, -0.125}, Words: []string{"flight", "Reno"}, Branch: true, Advantages: []float32{-0.5, 0.25}},
			{Raw: "<answer>…", Tokens: 21},
		},
		Answer: "Day 1: …", Plan: []Day{{Day: 1, City: "from Reno to Bend", Transportation: "Flight Number: F001", Breakfast: "-", Lunch: "-", Dinner: "Thai Basil, Bend",
			Attraction: "-", Accommodation: "Pine Lodge, Bend", Cost: 412.5, Costs: map[string]float64{"dinner": 24}, Found: map[string]int{"dinner": 2}}},
		Verdicts: []Verdict{{Check: "valid_cost", Name: "Budget", Family: "hard", Outcome: "fail", Day: 1, Field: "dinner", Value: "Thai Basil, Bend", Reason: "The plan costs $912, the budget is $900."}},
		Profile:  "strict", Passes: map[string]bool{"strict": false, "star": true}, Scores: map[string]float64{"cs_micro": 0.875},
		Cost: cost, Budget: 900, Reward: 0.5, RewardKind: "SUM",
		Components: []Component{{Name: "cs_micro", Value: 0.75}, {Name: "format_error", Value: -0.25}},
		Advantage:  &Advantage{Value: -0.5, Mean: 0.75, Std: 0.5, Norm: "group-std", Zero: false, InLoss: true},
		Success:    false, FormatError: "no closing tag", Overlong: true, End: "answer", Tokens: 512, Generated: 64, ToolCalls: 1, ToolErrors: 1, Injected: 1,
		Tools: map[string]int{"SearchFlight": 1}, Labels: map[string]string{"note": "look at this"},
	}
}

// sameFloats lets cmp compare NaN.
var sameFloats = cmp.Options{
	cmp.Comparer(func(a, b Float) bool { return a == b || a != a && b != b }),
	cmpopts.IgnoreFields(Event{}, "Raw"),
}

func TestGoldenLines(t *testing.T) {
	for kind, e := range examples() {
		t.Run(string(kind), func(t *testing.T) {
			path := filepath.Join("testdata", string(kind)+".jsonl")
			line, err := Encode(e)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(path, line, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			golden, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(golden), string(line)); diff != "" {
				t.Errorf("line (-golden +encoded):\n%s", diff)
			}
			got, known, err := Decode(bytes.TrimSuffix(golden, []byte("\n")))
			if err != nil || !known {
				t.Fatalf("Decode = %v, %v", known, err)
			}
			if diff := cmp.Diff(e, got, sameFloats); diff != "" {
				t.Errorf("event (-want +decoded):\n%s", diff)
			}
			if kind == KindTrajectory && !bytes.Equal(got.Raw, bytes.TrimSpace(golden)) {
				t.Errorf("Raw = %s", got.Raw)
			}
		})
	}
}

// TestPointsAreWrittenAsJSONMarshalDoes compares the quick way with the slow.
func TestPointsAreWrittenAsJSONMarshalDoes(t *testing.T) {
	e := Event{V: Version, Kind: KindPoints, T: 5, Points: &Points{Step: 3, Values: map[string]Float{
		"plain": 1, "a/b c": 0.1, `quote"d`: 1e21, `back\slash`: 1e-7, "<tag>&": 5e-324, "Überraschung": -3, "日本": Float(math.NaN()), "\u2028": Float(math.Inf(-1)),
	}}}
	got, err := Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want)+"\n" {
		t.Errorf("Encode = %s, want %s", got, want)
	}
}

func TestEncodeRefusesWhatAReaderWould(t *testing.T) {
	good := examples()
	tests := map[string]Event{
		"no body":            {Kind: KindDone, T: 1},
		"unknown kind":       {Kind: "mood", T: 1},
		"overflow":           {Kind: KindOverflow, T: 1, Overflow: &Overflow{}},
		"no time":            {Kind: KindDone, Done: &Done{}},
		"negative step":      {Kind: KindPoints, T: 1, Points: &Points{Step: -1}},
		"empty metric name":  {Kind: KindPoints, T: 1, Points: &Points{Values: map[string]Float{"": 1}}},
		"level of an alert":  {Kind: KindAlert, T: 1, Alert: &Alert{Level: "fatal", Code: "x", Text: "x"}},
		"passed > samples":   {Kind: KindEvaluation, T: 1, Evaluation: &ablation.EvalResult{Panel: "p", Policy: "p", Mode: "m", Samples: 1, Queries: []ablation.QueryResult{{Passed: 2}}}},
		"reward that is NaN": {Kind: KindTrajectory, T: 1, Trajectory: &Trajectory{ID: "x", Reward: math.NaN()}},
	}
	for name, e := range tests {
		if line, err := Encode(e); err == nil {
			t.Errorf("%s: Encode = %s", name, line)
		}
	}
	for kind, e := range good {
		if _, err := Encode(e); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestFloat(t *testing.T) {
	for _, tt := range []struct {
		v    float64
		text string
	}{
		{0, "0"}, {0.1, "0.1"}, {1e300, "1e+300"}, {5e-324, "5e-324"}, {math.Copysign(0, -1), "-0"},
		{math.NaN(), `"NaN"`}, {math.Inf(1), `"+Inf"`}, {math.Inf(-1), `"-Inf"`},
	} {
		b, err := Float(tt.v).MarshalJSON()
		if err != nil || string(b) != tt.text {
			t.Errorf("MarshalJSON(%v) = %s, %v; want %s", tt.v, b, err, tt.text)
		}
		var back Float
		if err := back.UnmarshalJSON(b); err != nil || math.Float64bits(float64(back)) != math.Float64bits(tt.v) && !math.IsNaN(tt.v) {
			t.Errorf("UnmarshalJSON(%s) = %v, %v", b, back, err)
		}
	}
	for _, text := range []string{"null", "true", `"Infinity"`, `"nan"`, `"Inf"`, `""`, `"1"`, "1e999", "{}", "[1]"} {
		var f Float
		if err := f.UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("UnmarshalJSON(%s) = %v, want an error", text, f)
		}
	}
}
