package native

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/trainer"
)

// TestMain lets the test binary pose as a framework: see framework.
func TestMain(m *testing.M) {
	if os.Getenv("NATIVE_TEST_JOB") != "" {
		os.Exit(framework(os.Getenv("NATIVE_TEST_JOB")))
	}
	os.Exit(m.Run())
}

// fakeJob is what the framework of these tests is told.
type fakeJob struct {
	Stage, URL, Dir, Out, Resume string
	Steps                        int64
	Mode                         string // "", constant, crash, slow
	Evaluate                     bool
}

// framework plays episodes over HTTP, writes metric lines, dumps and
// checkpoints, as a real one does.
func framework(path string) int {
	var j fakeJob
	src, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(src, &j)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	if j.Stage == StageSFT {
		line(j.Dir, "metrics.jsonl", map[string]any{"step": 1, "data": map[string]any{"loss": 2.5}})
		return code(os.WriteFile(filepath.Join(j.Out, "config.json"), []byte("{}"), 0o644))
	}
	first := int64(1)
	if j.Resume != "" {
		if _, err := fmt.Sscanf(filepath.Base(j.Resume), "checkpoint-%d", &first); err != nil {
			return 4
		}
		first++
	}
	if j.Evaluate {
		playOne(j, "eval", 0, 0, 0)
	}
	for step := first; step <= j.Steps; step++ {
		for rollout := range 2 {
			playOne(j, "rl", step, 0, rollout)
		}
		line(j.Dir, "metrics.jsonl", map[string]any{"step": step, "data": map[string]any{"loss": 1 / float64(step), "odd": 7, "note": "text"}})
		if j.Mode == "crash" && step == 2 {
			fmt.Fprint(os.Stderr, "Traceback (most recent call last):\n  File \"x.py\", line 1\nRuntimeError: out of luck\n\nDuring handling another exception occurred:\nTraceback (most recent call last):\nKeyError: 'fallout'\n")
			return 1
		}
		dir := filepath.Join(j.Dir, "checkpoints", fmt.Sprintf("checkpoint-%d", step))
		if errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "model"), make([]byte, 100), 0o644)) != nil {
			return 5
		}
		if j.Mode == "slow" {
			select {
			case <-stop:
				return 0
			case <-time.After(200 * time.Millisecond):
			}
		}
	}
	return 0
}

func code(err error) int {
	if err != nil {
		return 6
	}
	return 0
}

func line(dir, name string, v any) {
	src, _ := json.Marshal(v)
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, _ = f.Write(append(src, '\n'))
		_ = f.Close()
	}
}

// playOne makes one call and answers; rollout 0 delivers a plan.
func playOne(j fakeJob, phase string, step int64, task, rollout int) {
	split := map[string]string{"rl": "train", "eval": "eval"}[phase]
	group := fmt.Sprintf("%s-%d-%d", phase, step, task)
	var made struct {
		ID string `json:"episode_id"`
	}
	ask(j, "/env/episodes", map[string]any{"task_id": fmt.Sprint(task), "split": split, "seed": step, "group_id": group, "rollout_index": rollout, "step": step, "phase": phase, "mode": "sampled"}, &made)
	ask(j, "/env/episodes/"+made.ID+"/call", map[string]any{"name": "SearchCity", "arguments": map[string]string{"state": "Ohio"}, "index": 0}, nil)
	plan := `[{"day":1,"current_city":"-","transportation":"-","breakfast":"-","attraction":"-","lunch":"-","dinner":"-","accommodation":"-"}]`
	if rollout > 0 || j.Mode == "constant" {
		plan = "I give up"
	}
	ask(j, "/env/episodes/"+made.ID+"/score", map[string]any{"final_text": plan}, nil)
	if phase == "rl" {
		line(j.Dir, "extra.jsonl", map[string]any{"id": made.ID, "step": step, "advantage": 1 - 2*rollout})
	}
}

func ask(j fakeJob, path string, body, into any) {
	src, _ := json.Marshal(body)
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, j.URL+path, bytes.NewReader(src))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Authorization", "Bearer "+os.Getenv(TokenEnv))
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		panic(err)
	}
	defer func() { _ = r.Body.Close() }()
	if r.StatusCode >= 300 {
		panic(r.Status)
	}
	if into != nil {
		if err := json.NewDecoder(r.Body).Decode(into); err != nil {
			panic(err)
		}
	}
}

// fakeAdapter drives the framework above.
type fakeAdapter struct {
	mode     string
	verdicts []Verdict
	stages   *[]string // that were planned with a command, in order
}

func (fakeAdapter) Kind() string { return "trl" }

func (fakeAdapter) Probe(context.Context, string) (Versions, error) {
	return Versions{"trl": "1.0"}, nil
}

func (a fakeAdapter) Check(ablation.Recipe, Versions, Machine) []Verdict { return a.verdicts }

func (fakeAdapter) Name(n string) (string, bool) { return "policy/" + n, n == "loss" }

func (a fakeAdapter) Plan(j Job) (Plan, error) {
	if j.Stage == StageCompose || j.Stage == StageEval {
		return Plan{}, nil
	}
	*a.stages = append(*a.stages, j.Stage)
	job := fakeJob{Stage: j.Stage, URL: j.Env.URL, Dir: j.Dir, Out: j.Out, Resume: j.Resume, Steps: j.Steps, Mode: a.mode, Evaluate: j.Stage == StageRL}
	src, err := json.Marshal(job)
	if err != nil {
		return Plan{}, err
	}
	exe, err := os.Executable()
	if err != nil {
		return Plan{}, err
	}
	return Plan{
		Files: map[string][]byte{"job.json": src}, Argv: []string{exe}, Env: []string{"NATIVE_TEST_JOB=" + filepath.Join(j.Dir, "job.json")},
		Resolved: []Setting{{Key: "steps", Value: fmt.Sprint(j.Steps), From: "budget.steps"}},
		Sources:  []Source{MetricsFile("metrics", filepath.Join(j.Dir, "metrics.jsonl")), &extraSource{tail: Tail{Path: filepath.Join(j.Dir, "extra.jsonl")}}},
		Checkpoints: func() ([]Saved, error) {
			paths, err := filepath.Glob(filepath.Join(j.Dir, "checkpoints", "checkpoint-*"))
			var list []Saved
			for _, p := range paths {
				s := Saved{Path: p}
				if _, err := fmt.Sscanf(filepath.Base(p), "checkpoint-%d", &s.Step); err == nil {
					list = append(list, s)
				}
			}
			return list, err
		},
	}, nil
}

// extraSource tells the advantage of episodes, by the server's id.
type extraSource struct{ tail Tail }

func (*extraSource) Name() string { return "extra" }

func (s *extraSource) Poll(last bool, emit func(Reading)) error {
	return s.tail.Lines(last, func(text []byte) {
		var x struct {
			ID        string
			Step      int64
			Advantage float64
		}
		if err := json.Unmarshal(text, &x); err != nil {
			emit(Reading{Bad: 1})
			return
		}
		emit(Reading{Step: x.Step, Trajectory: &trainer.Trajectory{ID: x.ID, Advantage: &trainer.Advantage{Value: x.Advantage}}})
	})
}

// newSpec makes a spec of two RL steps below a temporary data folder.
func newSpec(t *testing.T, data string, change func(*trainer.Spec)) trainer.Spec {
	t.Helper()
	r := tinyRecipe("trl")
	r.Budget.Steps, r.SFT.Traces, r.Evaluation.Queries, r.Evaluation.Samples = 3, 4, 1, 1
	s := trainer.Spec{Version: trainer.Version, Run: 1, Study: "s", Arm: "base", Attempt: 1, Seed: 1, Recipe: r, Threads: 1, Devices: []string{"cpu0"},
		Artifacts: filepath.Join(data, "artifacts"), Dir: filepath.Join(data, "runs", "1", "1")}
	if change != nil {
		change(&s)
	}
	s.Events = filepath.Join(s.Dir, "events.jsonl")
	return s
}

// events reads what a run wrote.
func events(t *testing.T, spec trainer.Spec) (list []trainer.Event) {
	t.Helper()
	f, err := os.Open(spec.Events)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	in := trainer.NewReader(f, trainer.ReaderOptions{})
	for in.Next() {
		list = append(list, in.Event())
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// only are the events of one kind.
func only(list []trainer.Event, k trainer.Kind) (out []trainer.Event) {
	for _, e := range list {
		if e.Kind == k {
			out = append(out, e)
		}
	}
	return out
}

func lastDone(t *testing.T, list []trainer.Event) trainer.Done {
	t.Helper()
	if len(list) == 0 || list[len(list)-1].Kind != trainer.KindDone {
		t.Fatalf("%d events, the last is not done", len(list))
	}
	return *list[len(list)-1].Done
}

func TestRunFinishes(t *testing.T) {
	spec := newSpec(t, t.TempDir(), nil)
	var stages []string
	a := fakeAdapter{stages: &stages, verdicts: []Verdict{{Level: Note, Code: "objective", Text: "token mean"}, {Level: Warn, Code: "odd", Key: "k", Text: "is odd"}}}
	var out bytes.Buffer
	if err := Run(t.Context(), spec, []Adapter{a}, Config{Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	list := events(t, spec)
	if d := lastDone(t, list); !d.OK || d.Step != 3 || d.Reason != "finished" {
		t.Errorf("done: %+v", d)
	}
	if h := list[0].Hello; h == nil || h.TotalSteps != 3 || h.Info["objective"] != "token mean" || h.Info["trl"] != "1.0" {
		t.Errorf("hello: %+v", h)
	}
	values := map[string]map[int64]float64{}
	for _, e := range only(list, trainer.KindPoints) {
		for name, v := range e.Points.Values {
			if values[name] == nil {
				values[name] = map[int64]float64{}
			}
			if _, twice := values[name][e.Points.Step]; twice {
				t.Errorf("%s of step %d was written twice", name, e.Points.Step)
			}
			values[name][e.Points.Step] = float64(v)
		}
	}
	for name, want := range map[string]float64{"policy/loss": 0.5, "trl/odd": 7, "train/success": 0, "rollout/tool_calls": 1} {
		if got, ok := values[name][2]; !ok || got != want {
			t.Errorf("%s at step 2 is %v (%v), want %v", name, got, ok, want)
		}
	}
	if values["sft/loss"][1] != 2.5 || len(values["eval/success"]) != 1 {
		t.Errorf("sft %v, eval %v", values["sft/loss"], values["eval/success"])
	}
	checkEpisodes(t, list)
	if got := len(only(list, trainer.KindCheckpoint)); got != 3 {
		t.Errorf("%d checkpoints", got)
	}
	if ev := only(list, trainer.KindEvaluation); len(ev) != 1 || len(ev[0].Evaluation.Queries) != 1 || ev[0].Evaluation.Hash == "" {
		t.Errorf("evaluations: %+v", ev)
	}
	kinds := map[string]bool{}
	for _, e := range only(list, trainer.KindArtifact) {
		kinds[e.Artifact.Kind] = e.Artifact.Hash != ""
	}
	if !kinds["dataset"] || !kinds["sft"] || !kinds["smoke"] {
		t.Errorf("artifacts %v", kinds)
	}
	if al := only(list, trainer.KindAlert); len(al) != 1 || al[0].Alert.Code != "odd" {
		t.Errorf("alerts: %+v", al)
	}
	if !strings.Contains(out.String(), "rl: steps = 3  (budget.steps)") {
		t.Errorf("what was resolved is not printed: %s", out.String())
	}
}

// checkEpisodes: each has its group, and what the trainer said of it.
func checkEpisodes(t *testing.T, list []trainer.Event) {
	t.Helper()
	rl := 0
	for _, e := range only(list, trainer.KindTrajectory) {
		x := e.Trajectory
		if x.Phase == "eval" {
			continue
		}
		rl++
		if want := fmt.Sprintf("rl-%d-0-%d", x.Step, x.Rollout); x.ID != want || len(x.Verdicts) == 0 || x.ToolCalls != 1 {
			t.Errorf("trajectory %s of %s: %d verdicts, %d calls", x.ID, want, len(x.Verdicts), x.ToolCalls)
		}
		if x.Advantage == nil || x.Advantage.Value != float64(1-2*x.Rollout) {
			t.Errorf("%s: advantage %+v", x.ID, x.Advantage)
		}
	}
	if rl != 6 {
		t.Errorf("%d episodes of training", rl)
	}
}

// TestSharedStages: another seed takes SFT only for itself, and the smoke run
// that has passed.
func TestSharedStages(t *testing.T) {
	data := t.TempDir()
	var first, again, other []string
	for i, stages := range []*[]string{&first, &again, &other} {
		spec := newSpec(t, data, func(s *trainer.Spec) {
			s.Run = ablation.RunID(i + 1)
			s.Dir = filepath.Join(data, "runs", fmt.Sprint(i+1), "1")
			s.Seed = uint64(1 + i/2)
		})
		if err := Run(t.Context(), spec, []Adapter{fakeAdapter{stages: stages}}, Config{}); err != nil {
			t.Fatal(err)
		}
	}
	count := func(list []string, stage string) (n int) {
		for _, s := range list {
			if s == stage {
				n++
			}
		}
		return n
	}
	// A smoke stage is planned once to see that there is one, and once to run.
	if count(first, StageSFT) != 1 || count(first, StageSmoke) != 2 {
		t.Errorf("first run: %v", first)
	}
	if count(again, StageSFT) != 0 || count(again, StageSmoke) != 1 {
		t.Errorf("the same again: %v", again)
	}
	if count(other, StageSFT) != 1 || count(other, StageSmoke) != 1 {
		t.Errorf("another seed: %v", other)
	}
}

func TestRunFails(t *testing.T) {
	for _, c := range []struct {
		name, mode string
		verdicts   []Verdict
		change     func(*trainer.Spec)
		want       []string
	}{
		{"refused", "", []Verdict{{Level: Refuse, Code: "dead-key", Key: "algorithm.filter_groups", Value: "true", Text: "is ignored", Fix: "false"}}, nil,
			[]string{"algorithm.filter_groups is true", "is ignored", "false"}},
		{"smoke", "constant", nil, nil, []string{"smoke", "all 2 episodes have the reward 0", "native.smoke"}},
		{"crash", "crash", nil, func(s *trainer.Spec) { s.Recipe.Native.Smoke = "skip" }, []string{"exit code 1", "step 2", "RuntimeError: out of luck"}},
		{"no data", "", nil, func(s *trainer.Spec) { s.Recipe.Data.Prompts, s.Recipe.Environment.Cities = 5000, 4 }, []string{"data.prompts", "too small"}},
		{"no python", "", nil, func(s *trainer.Spec) { s.Recipe.Native.Python = "/nowhere/python" }, []string{"native.python", "/nowhere/python"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := newSpec(t, t.TempDir(), c.change)
			var stages []string
			err := Run(t.Context(), spec, []Adapter{fakeAdapter{mode: c.mode, verdicts: c.verdicts, stages: &stages}}, Config{})
			if err == nil {
				t.Fatal("no error")
			}
			list := events(t, spec)
			d := lastDone(t, list)
			if list[0].Kind != trainer.KindHello || d.OK {
				t.Errorf("first %s, done %+v", list[0].Kind, d)
			}
			for _, w := range c.want {
				if !strings.Contains(d.Reason, w) {
					t.Errorf("reason %q lacks %q", d.Reason, w)
				}
			}
		})
	}
}

// TestConstantRewardPassesWhenSkipped: the gate has a way around it.
func TestConstantRewardPassesWhenSkipped(t *testing.T) {
	spec := newSpec(t, t.TempDir(), func(s *trainer.Spec) { s.Recipe.Native.Smoke = "skip" })
	var stages []string
	if err := Run(t.Context(), spec, []Adapter{fakeAdapter{mode: "constant", stages: &stages}}, Config{}); err != nil {
		t.Fatal(err)
	}
}

// TestStopAndResume: a stop ends with "stopped" and no error; the next attempt
// goes on from the checkpoint and reaches the end.
func TestStopAndResume(t *testing.T) {
	data := t.TempDir()
	spec := newSpec(t, data, func(s *trainer.Spec) { s.Recipe.Budget.Steps = 12 })
	var stages []string
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, spec, []Adapter{fakeAdapter{mode: "slow", stages: &stages}}, Config{}) }()
	deadline := time.Now().Add(time.Minute)
	for !reached(spec, 3) {
		if time.Now().After(deadline) {
			t.Fatal("step 3 was not reached")
		}
		time.Sleep(50 * time.Millisecond)
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatalf("a stop is no error: %v", err)
	}
	list := events(t, spec)
	d := lastDone(t, list)
	saved := only(list, trainer.KindCheckpoint)
	if d.OK || d.Reason != "stopped" || d.Step < 3 || d.Step >= 12 || len(saved) == 0 {
		t.Fatalf("done %+v with %d checkpoints", d, len(saved))
	}
	at := saved[len(saved)-1].Checkpoint
	next := newSpec(t, data, func(s *trainer.Spec) {
		s.Recipe.Budget.Steps, s.Attempt = 12, 2
		s.Dir = filepath.Join(data, "runs", "1", "2")
		s.ResumeFrom, s.ResumeStep = filepath.Join(spec.Dir, at.Path), at.Step
	})
	if err := Run(t.Context(), next, []Adapter{fakeAdapter{mode: "slow", stages: &stages}}, Config{}); err != nil {
		t.Fatal(err)
	}
	list = events(t, next)
	if d := lastDone(t, list); !d.OK || d.Step != 12 {
		t.Errorf("resumed: %+v", d)
	}
	for _, e := range only(list, trainer.KindPoints) {
		if _, rl := e.Points.Values["policy/loss"]; rl && e.Points.Step <= at.Step {
			t.Errorf("step %d was trained again, the checkpoint is of step %d", e.Points.Step, at.Step)
		}
	}
}

func reached(spec trainer.Spec, step int64) bool {
	src, err := os.ReadFile(spec.Events)
	return err == nil && strings.Contains(string(src), fmt.Sprintf(`"points":{"step":%d,"values":{"policy/loss"`, step))
}
