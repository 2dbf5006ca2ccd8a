package endpoint

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/trainer"
	"alidade/trainer/endpoint/endpointtest"
)

// specEnv makes the test binary a trainer, to be killed.
const specEnv = "ENDPOINT_TEST_SPEC"

func TestMain(m *testing.M) {
	if path := os.Getenv(specEnv); path != "" {
		os.Exit(Main(context.Background(), path))
	}
	os.Exit(m.Run())
}

// newSpec is a run of n queries in a data folder of its own.
func newSpec(t *testing.T, n int, change func(*ablation.Recipe)) trainer.Spec {
	t.Helper()
	r, ok := ablation.PresetNamed("endpoint")
	if !ok {
		t.Fatal("no preset endpoint")
	}
	r.Environment.Cities, r.Environment.Days, r.Evaluation.Queries = 20, 3, n
	r.Endpoint.Model, r.Endpoint.PriceIn, r.Endpoint.PriceOut, r.Endpoint.TimeoutS = "m", 2, 10, 20
	if change != nil {
		change(&r)
	}
	data := t.TempDir()
	spec := trainer.Spec{Version: trainer.Version, Run: 1, Study: "t", Arm: "base", Seed: 1, Recipe: r, Artifacts: filepath.Join(data, "artifacts"), Threads: 1}
	return attempt(spec, data, 1)
}

// attempt is the n-th attempt of a spec's run.
func attempt(spec trainer.Spec, data string, n int) trainer.Spec {
	spec.Attempt, spec.Dir = n, filepath.Join(data, "runs", "1", fmt.Sprint(n))
	spec.Events = filepath.Join(spec.Dir, "events.jsonl")
	return spec
}

func next(spec trainer.Spec) trainer.Spec {
	return attempt(spec, filepath.Dir(spec.Artifacts), spec.Attempt+1)
}

func into(f *endpointtest.Server, spec *trainer.Spec) { spec.Recipe.Endpoint.URL = f.URL + "/v1" }

// newFake starts a server for the queries of a spec.
func newFake(t *testing.T, dialect string, react bool, spec trainer.Spec) *endpointtest.Server {
	t.Helper()
	p, err := newPanel(t.Context(), spec.Recipe, spec.Artifacts)
	if err != nil {
		t.Fatal(err)
	}
	return endpointtest.New(t, p.world, p.queries, dialect, react)
}

// told is what an attempt wrote.
type told struct {
	trips  map[string]trainer.Trajectory
	values map[string]float64
	eval   *ablation.EvalResult
	alerts []string
	done   trainer.Done
	hello  trainer.Hello
}

func read(t *testing.T, spec trainer.Spec) told {
	t.Helper()
	file, err := os.Open(spec.Events)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out := told{trips: map[string]trainer.Trajectory{}, values: map[string]float64{}}
	in := trainer.NewReader(file, trainer.ReaderOptions{})
	for in.Next() {
		e := in.Event()
		switch e.Kind {
		case trainer.KindHello:
			out.hello = *e.Hello
		case trainer.KindTrajectory:
			if _, twice := out.trips[e.Trajectory.ID]; twice {
				t.Errorf("trajectory %s comes twice", e.Trajectory.ID)
			}
			out.trips[e.Trajectory.ID] = *e.Trajectory
		case trainer.KindPoints:
			for k, v := range e.Points.Values {
				out.values[k] = float64(v)
			}
		case trainer.KindEvaluation:
			out.eval = e.Evaluation
		case trainer.KindAlert:
			out.alerts = append(out.alerts, e.Alert.Code+": "+e.Alert.Text)
		case trainer.KindDone:
			out.done = *e.Done
		}
	}
	if err := in.Err(); err != nil || in.Malformed() > 0 {
		t.Fatalf("events: %v, %v", err, in.Faults())
	}
	return out
}

// play runs a spec in this process.
func play(t *testing.T, spec trainer.Spec) (told, error) {
	t.Helper()
	if err := spec.Validate(); err != nil {
		t.Fatal(err)
	}
	err := Run(t.Context(), spec, Config{firstWait: 5 * time.Millisecond})
	return read(t, spec), err
}

func passed(e *ablation.EvalResult) int {
	n := 0
	for _, q := range e.Queries {
		n += q.Passed
	}
	return n
}

func TestDialects(t *testing.T) {
	for _, dialect := range []string{"openai", "vllm", "sglang", "llamacpp", "proxy"} {
		for _, form := range []string{"react", "tools"} {
			t.Run(dialect+"/"+form, func(t *testing.T) {
				t.Parallel()
				spec := newSpec(t, 10, func(r *ablation.Recipe) { r.Environment.Form = form })
				f := newFake(t, dialect, form == "react", spec)
				f.Trouble = f.EveryTwentieth
				into(f, &spec)
				got, err := play(t, spec)
				if err != nil {
					t.Fatal(err)
				}
				if got.eval == nil || len(got.eval.Queries) != 10 || passed(got.eval) != 8 || got.values["eval/success"] != 0.8 {
					t.Errorf("evaluation %+v, eval/success %v; want 8 of 10", got.eval, got.values["eval/success"])
				}
				if !got.done.OK || got.done.Step != 10 || got.hello.TotalSteps != 10 {
					t.Errorf("done %+v, hello %+v", got.done, got.hello)
				}
				for id, trip := range got.trips {
					if trip.FormatError != "" && trip.Success || trip.Turns[0].Think != "Turn 1: look on." || trip.Turns[0].Observe == nil {
						t.Errorf("%s: form %q, first turn %+v", id, trip.FormatError, trip.Turns[0])
						break
					}
				}
				cost := (2*float64(f.Tally().In) + 10*float64(f.Tally().Out)) / 1e6
				if d := got.values["endpoint/spent"] - cost; dialect != "proxy" && (d > 1e-9 || d < -1e-9) {
					t.Errorf("spent %v, the server counted %v", got.values["endpoint/spent"], cost)
				}
				if estimated := strings.Contains(strings.Join(got.alerts, " "), "endpoint-usage"); estimated != (dialect == "proxy") {
					t.Errorf("alerts %v", got.alerts)
				}
			})
		}
	}
}

// TestSixtyFourAtOnce: a server that fails 5 % of the calls loses no episode
// and makes none fail.
func TestSixtyFourAtOnce(t *testing.T) {
	spec := newSpec(t, 160, func(r *ablation.Recipe) { r.Endpoint.Concurrency = 64 })
	f := newFake(t, "vllm", true, spec)
	together := make(chan struct{})
	var once sync.Once
	f.Trouble = func(n int, r *http.Request, w http.ResponseWriter, query string, turn int) bool {
		if n == 64 {
			once.Do(func() { close(together) })
		}
		select { // the first 64 calls wait for each other
		case <-together:
		case <-r.Context().Done():
		}
		return f.EveryTwentieth(n, r, w, query, turn)
	}
	into(f, &spec)
	began := time.Now()
	got, err := play(t, spec)
	if err != nil {
		t.Fatal(err)
	}
	if passed(got.eval) != endpointtest.Solved(160) || len(got.trips) != 160 || got.values["endpoint/invalid"] != 0 {
		t.Errorf("%d passed of %d, invalid %v; want %d of 160 and none", passed(got.eval), len(got.trips), got.values["endpoint/invalid"], endpointtest.Solved(160))
	}
	if f.Tally().Peak != 64 {
		t.Errorf("%d calls at once, want 64", f.Tally().Peak)
	}
	if got.values["endpoint/retries"] < 1 {
		t.Error("nothing was tried again")
	}
	t.Logf("160 episodes, %d calls, %d at once, %v faults, in %v", f.Tally().Calls, f.Tally().Peak, got.values["endpoint/faults"], time.Since(began).Round(time.Millisecond))
}

// TestKillAndResume kills the trainer in full flight, twice.
func TestKillAndResume(t *testing.T) {
	spec := newSpec(t, 80, func(r *ablation.Recipe) { r.Endpoint.Concurrency = 64 })
	f := newFake(t, "sglang", true, spec)
	f.Trouble, f.Delay = f.EveryTwentieth, 20*time.Millisecond
	into(f, &spec)
	all := map[string]trainer.Trajectory{}
	kills := 0
	for ; spec.Attempt <= 2; spec = next(spec) {
		kill(t, spec)
		kills++
		collect(t, all, read(t, spec))
	}
	before := len(all)
	got, err := play(t, spec)
	if err != nil {
		t.Fatal(err)
	}
	collect(t, all, got)
	if before == 0 || before == 80 {
		t.Errorf("%d episodes were finished before the last attempt: the kills came too early or too late", before)
	}
	if len(all) != 80 || passed(got.eval) != endpointtest.Solved(80) || len(got.eval.Queries) != 80 || !got.done.OK || got.done.Step != 80 {
		t.Errorf("%d trajectories, %d of %d passed, done %+v", len(all), passed(got.eval), len(got.eval.Queries), got.done)
	}
	again := 0
	for _, n := range f.Tally().Asked {
		again += n - 1
	}
	if again > 64*kills { // answers that were on their way
		t.Errorf("%d answers were asked for again", again)
	}
	cost := (2*float64(f.Tally().In) + 10*float64(f.Tally().Out)) / 1e6
	if spent := got.values["endpoint/spent"]; spent > cost+1e-9 || spent < cost*0.7 {
		t.Errorf("spent %v, the server counted %v with what was on its way", spent, cost)
	}
	t.Logf("%d finished before the last attempt, %d of %d answers asked for again", before, again, len(f.Tally().Asked))
}

// kill starts a trainer and kills it once it has finished a few episodes more.
func kill(t *testing.T, spec trainer.Spec) {
	t.Helper()
	if err := os.MkdirAll(spec.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(spec.Dir, "spec.json")
	if err := trainer.WriteSpec(path, spec); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), specEnv+"="+path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		src, _ := os.ReadFile(spec.Events)
		if strings.Count(string(src), `"kind":"trajectory"`) >= 6 {
			break
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

func collect(t *testing.T, all map[string]trainer.Trajectory, got told) {
	t.Helper()
	for id, trip := range got.trips {
		if _, twice := all[id]; twice {
			t.Errorf("%s was played by two attempts", id)
		}
		all[id] = trip
	}
}

// TestAwayIsNotZero: queries whose calls fail for good have no score, and a
// later attempt asks them.
func TestAwayIsNotZero(t *testing.T) {
	spec := newSpec(t, 20, func(r *ablation.Recipe) { r.Endpoint.Retries = 1 })
	f := newFake(t, "openai", true, spec)
	away := true
	f.Trouble = func(_ int, _ *http.Request, w http.ResponseWriter, query string, turn int) bool {
		if away && turn == 2 && len(query)%4 == 0 {
			f.Refuse(w, 503, "overloaded")
			return true
		}
		return false
	}
	into(f, &spec)
	got, err := play(t, spec)
	if err == nil || got.done.OK || !strings.Contains(got.done.Reason, "overloaded") {
		t.Fatalf("done %+v, %v", got.done, err)
	}
	lost := 20 - len(got.trips)
	if lost == 0 || len(got.eval.Queries) != 20-lost || got.values["endpoint/invalid"] != float64(lost)/20 || len(got.alerts) != 1 {
		t.Errorf("%d invalid, %d queries judged, metric %v, alerts %v", lost, len(got.eval.Queries), got.values["endpoint/invalid"], got.alerts)
	}
	away = false
	before := f.Tally().Calls
	got, err = play(t, next(spec))
	if err != nil || passed(got.eval) != 16 || len(got.trips) != lost || got.values["endpoint/invalid"] != 0 {
		t.Errorf("after resuming %d of 20 passed, %d played: %v", passed(got.eval), len(got.trips), err)
	}
	for key, n := range f.Tally().Asked {
		if n > 1 {
			t.Errorf("%q was answered %d times", key, n)
		}
	}
	t.Logf("%d of 20 invalid; %d calls to finish them", lost, f.Tally().Calls-before)
}

// TestSomeInvalidIsAccepted: a run may count as finished with a share of
// invalid episodes; they are still reported, and still have no score.
func TestSomeInvalidIsAccepted(t *testing.T) {
	spec := newSpec(t, 20, func(r *ablation.Recipe) { r.Endpoint.Retries, r.Endpoint.MaxInvalid = 0, 0.5 })
	f := newFake(t, "vllm", true, spec)
	f.Trouble = func(_ int, _ *http.Request, w http.ResponseWriter, query string, _ int) bool {
		if len(query)%4 != 0 {
			return false
		}
		f.Refuse(w, 400, "this prompt is against our policy")
		return true
	}
	into(f, &spec)
	got, err := play(t, spec)
	if err != nil || !got.done.OK || got.done.Step != 20 {
		t.Fatalf("done %+v, %v", got.done, err)
	}
	lost := 20 - len(got.trips)
	if lost == 0 || len(got.eval.Queries) != 20-lost || got.values["endpoint/invalid"] != float64(lost)/20 || len(got.alerts) != 1 {
		t.Errorf("%d invalid, %d judged, alerts %v", lost, len(got.eval.Queries), got.alerts)
	}
}

func TestServerThatIsNotThere(t *testing.T) {
	spec := newSpec(t, 30, func(r *ablation.Recipe) {
		r.Endpoint.URL, r.Endpoint.Retries, r.Endpoint.Concurrency = "http://127.0.0.1:1/v1", 1, 4
	})
	got, err := play(t, spec)
	if err == nil || got.eval != nil || len(got.trips) != 0 || !strings.Contains(got.done.Reason, "the server is away") {
		t.Errorf("done %+v, evaluation %+v", got.done, got.eval)
	}
}

func TestBudget(t *testing.T) {
	spec := newSpec(t, 40, func(r *ablation.Recipe) { r.Endpoint.Budget, r.Endpoint.MaxTokens = 0.2, 100 })
	f := newFake(t, "openai", true, spec)
	into(f, &spec)
	got, err := play(t, spec)
	if err == nil || !strings.Contains(got.done.Reason, "cost cap") || got.done.OK {
		t.Fatalf("done %+v, %v", got.done, err)
	}
	if spent := got.values["endpoint/spent"]; spent > 0.2 || spent < 0.15 {
		t.Errorf("spent $%v of $0.2", spent)
	}
	if n := len(got.trips); n == 0 || n == 40 || len(got.eval.Queries) != n {
		t.Errorf("%d episodes finished, %d judged", n, len(got.eval.Queries))
	}
	got, err = play(t, next(spec)) // the cap is the run's, not the attempt's
	if err == nil || got.values["endpoint/spent"] > 0.2 {
		t.Errorf("after resuming: spent %v, %v", got.values["endpoint/spent"], err)
	}
}

func TestStop(t *testing.T) {
	spec := newSpec(t, 10, nil)
	f := newFake(t, "vllm", true, spec)
	f.Delay = 10 * time.Millisecond
	into(f, &spec)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := Run(ctx, spec, Config{}); err != nil {
		t.Fatal(err)
	}
	if got := read(t, spec); got.done.OK || got.done.Reason != "stopped" || got.eval != nil {
		t.Errorf("done %+v", got.done)
	}
}

// TestContextIsAnOutcome: a conversation that the model cannot hold is the
// model's failure, not the server's.
func TestContextIsAnOutcome(t *testing.T) {
	spec := newSpec(t, 4, nil)
	f := newFake(t, "vllm", true, spec)
	f.Trouble = func(_ int, _ *http.Request, w http.ResponseWriter, _ string, turn int) bool {
		if turn == 2 {
			f.Refuse(w, 400, "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens")
		}
		return turn == 2
	}
	into(f, &spec)
	got, err := play(t, spec)
	if err != nil || len(got.trips) != 4 || got.values["eval/success"] != 0 || got.values["eval/overlong"] != 1 {
		t.Errorf("%d trips, values %v, %v", len(got.trips), got.values, err)
	}
}

func TestWithoutToolParser(t *testing.T) {
	spec := newSpec(t, 6, func(r *ablation.Recipe) { r.Environment.Form = "tools" })
	f := newFake(t, "vllm", true, spec) // writes tags into the content
	into(f, &spec)
	got, err := play(t, spec)
	if err == nil || len(got.trips) != 0 || !strings.Contains(got.done.Reason, "--enable-auto-tool-choice") {
		t.Errorf("done %+v, %d trips", got.done, len(got.trips))
	}
}

func TestModelOnOffer(t *testing.T) {
	spec := newSpec(t, 2, func(r *ablation.Recipe) { r.Endpoint.Model = "" })
	f := newFake(t, "vllm", true, spec)
	into(f, &spec)
	got, err := play(t, spec)
	if err != nil || got.hello.Info["model"] != "only-one" {
		t.Errorf("model %q, %v", got.hello.Info["model"], err)
	}
}

// TestReasoning: earlier reasoning goes back under the name it came, or not.
func TestReasoning(t *testing.T) {
	for _, reasoning := range []string{"keep", "drop"} {
		spec := newSpec(t, 1, func(r *ablation.Recipe) {
			r.Endpoint.Reasoning, r.Endpoint.Extra = reasoning, map[string]string{"top_k": "20", "chat_template_kwargs": `{"enable_thinking": true}`}
		})
		f := newFake(t, "sglang", true, spec)
		into(f, &spec)
		if _, err := play(t, spec); err != nil {
			t.Fatal(err)
		}
		var q endpointtest.Asked
		last := f.LastRequest()
		if err := json.Unmarshal([]byte(last), &q); err != nil {
			t.Fatal(err)
		}
		if m := q.Messages[2]; (m.ReasoningContent != "") != (reasoning == "keep") || m.Content == nil || strings.Contains(*m.Content, "<think>") {
			t.Errorf("%s: an earlier turn is %+v", reasoning, m)
		}
		if !strings.Contains(last, `"top_k":20`) || !strings.Contains(last, `"enable_thinking":true`) && !strings.Contains(last, `"enable_thinking": true`) {
			t.Errorf("further fields are not in %s", last)
		}
	}
}
