package synth_test

import (
	"context"
	"math"
	"reflect"
	"strings"
	"testing"

	"alidade/sandbox/travel"
	"alidade/sandbox/travel/synth"
)

func solved(t testing.TB, w *synth.World, n int) ([]travel.Query, []synth.Solution) {
	t.Helper()
	qs, sols, _, err := w.Queries(t.Context(), synth.Options{N: n, Mix: mix, Seed: 8, Certify: true})
	if err != nil {
		t.Fatal(err)
	}
	return qs, sols
}

func traces(t testing.TB, w *synth.World, qs []travel.Query, sols []synth.Solution, o synth.TraceOptions) ([]synth.Trace, synth.TraceCounts) {
	t.Helper()
	list, n, err := w.Traces(t.Context(), qs, sols, o)
	if err != nil {
		t.Fatal(err)
	}
	return list, n
}

func meanCalls(list []synth.Trace) float64 {
	sum := 0.0
	for _, x := range list {
		sum += float64(x.Trajectory.ToolCalls)
	}
	return sum / float64(len(list))
}

func TestTracesSucceedInForm(t *testing.T) {
	w := small(t)
	qs, sols := solved(t, w, 40)
	calls := map[string]float64{}
	for name, o := range map[string]synth.TraceOptions{
		"deliberative": {}, "reactive": {Style: synth.Reactive}, "stitched": {Stitched: true},
		"failing tools": {Failures: travel.Failures{Rate: 0.3, Seed: 2}},
	} {
		list, n := traces(t, w, qs, sols, o)
		if n.Kept != len(qs) || n.Drawn != len(qs) {
			t.Errorf("%s: %+v of %d queries", name, n, len(qs))
		}
		calls[name] = meanCalls(list)
		for _, x := range list {
			checkTrace(t, name, w, x)
		}
	}
	t.Logf("mean calls %v", calls)
	if calls["reactive"] < calls["deliberative"]+1 || calls["stitched"] > calls["deliberative"] || calls["failing tools"] < 1.2*calls["deliberative"] {
		t.Errorf("mean calls %v", calls)
	}
}

// checkTrace holds a conversation against its own record: played again it
// gives the same trajectory.
func checkTrace(t *testing.T, name string, w *synth.World, x synth.Trace) {
	t.Helper()
	m := x.Messages
	if len(m) < 5 || m[0].Role != "system" || m[1].Role != "user" || m[1].Content != x.Query.Text || m[len(m)-1].Role != "assistant" || !strings.Contains(m[len(m)-1].Content, "<answer>") {
		t.Fatalf("%s: conversation of %d messages", name, len(m))
	}
	for i := 2; i < len(m); i++ {
		if want := [2]string{"assistant", "user"}[i%2]; m[i].Role != want {
			t.Fatalf("%s: message %d is of the %s", name, i, m[i].Role)
		}
		if m[i].Role == "assistant" {
			if _, problem := travel.CheckForm(m[i].Content); problem != "" {
				t.Errorf("%s: message %d: %s", name, i, problem)
			}
		}
	}
	q := x.Quality
	for part, v := range map[string]float64{"score": q.Score, "grounded": q.Grounded, "economy": q.Economy, "clean": q.Clean, "full": q.Full, "thought": q.Thought} {
		if math.IsNaN(v) || v < 0 || v > 1 {
			t.Errorf("%s: quality %s is %v", name, part, v)
		}
	}
	if name != "failing tools" && q.Grounded < 1 {
		t.Errorf("%s: %v of the plan was shown by a tool", name, q.Grounded)
	}
	if name == "failing tools" {
		return
	}
	e := travel.NewEpisode(w.World, x.Query, travel.EpisodeConfig{MaxTurns: 60})
	at := 2
	err := travel.React(t.Context(), e, func(context.Context, []travel.Message) (string, error) { at += 2; return m[at-2].Content, nil }, travel.ReactConfig{})
	if err != nil || !reflect.DeepEqual(e.Trajectory().Turns, x.Trajectory.Turns) || !e.Trajectory().Success {
		t.Errorf("%s: played again it differs: %v", name, err)
	}
}

func TestStitchedThoughtsReferToNothing(t *testing.T) {
	w := small(t)
	qs, sols := solved(t, w, 10)
	list, _ := traces(t, w, qs, sols, synth.TraceOptions{Stitched: true})
	for _, x := range list {
		if x.Trajectory.Labels["style"] != "stitched" {
			t.Errorf("label %v", x.Trajectory.Labels)
		}
		for _, turn := range x.Trajectory.Turns {
			if strings.Contains(turn.Think, "$") && !strings.Contains(x.Query.Text, turn.Think) {
				t.Errorf("a stitched thought names a price: %s", turn.Think)
			}
		}
	}
}

func TestFilters(t *testing.T) {
	w := small(t)
	qs, sols := solved(t, w, 30)
	_, n := traces(t, w, qs, sols, synth.TraceOptions{Noise: 0.5})
	if n.Failed == 0 || n.Kept+n.Failed+n.BadForm != n.Drawn {
		t.Errorf("noisy experts: %+v", n)
	}
	all, n := traces(t, w, qs, sols, synth.TraceOptions{Noise: 0.5, KeepFailed: true})
	if n.Kept != 30 || len(all) != 30 {
		t.Errorf("with failed ones: %+v", n)
	}
	every, _ := traces(t, w, qs, sols, synth.TraceOptions{Samples: 4})
	best, n := traces(t, w, qs, sols, synth.TraceOptions{Samples: 4, TopShare: 0.25})
	if n.Drawn != 120 || n.Kept != 30 || n.BelowShare != 90 {
		t.Errorf("top share: %+v", n)
	}
	worst, sum := 1.0, 0.0
	for _, x := range best {
		worst = min(worst, x.Quality.Score)
	}
	for _, x := range every {
		if x.Quality.Score > worst {
			sum++
		}
	}
	if sum > 30 {
		t.Errorf("%v traces are better than the worst kept, %d are kept", sum, len(best))
	}
}

func TestTracesRepeatAndDiffer(t *testing.T) {
	w := small(t)
	qs, sols := solved(t, w, 6)
	o := synth.TraceOptions{Samples: 3, Seed: 5, Style: synth.Reactive}
	a, _ := traces(t, w, qs, sols, o)
	b, _ := traces(t, w, qs, sols, o)
	if !reflect.DeepEqual(a, b) {
		t.Error("the same seed gave other traces")
	}
	if reflect.DeepEqual(a[0].Messages, a[1].Messages) || a[0].Trajectory.ID == a[1].Trajectory.ID {
		t.Error("two samples of one query are the same")
	}
	for want, o := range map[string]synth.TraceOptions{"noise": {Noise: 2}, "style": {Style: "wild"}, "samples": {Samples: -1}, "failure rate": {Failures: travel.Failures{Rate: 3}}} {
		if _, _, err := w.Traces(t.Context(), qs, sols, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Traces(%+v) = %v, want …%s…", o, err, want)
		}
	}
}

func TestTracesOnRealTables(t *testing.T) {
	w := real(t)
	qs, sols := solved(t, w, 20)
	list, n := traces(t, w, qs, sols, synth.TraceOptions{Style: synth.Reactive})
	if n.Kept != 20 {
		t.Errorf("%+v", n)
	}
	for _, x := range list {
		checkTrace(t, "real", w, x)
	}
}
