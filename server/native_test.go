package server_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/store"
	"alidade/trainer/emulator"
)

// These tests take runs of language models' trainers through shim, store and
// pages. No framework is there: the trainer emulator, a test tool, poses as
// the interpreter that has it, so that nothing here says anything about
// training.
var emulatorOnce = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "alidade-emulator")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "python")
	out, err := exec.Command("go", "build", "-o", bin, "alidade/trainer/emulator/python").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return bin, nil
})

// interpreter makes a folder with the emulator under the name python3 and
// what it is to do.
func interpreter(t *testing.T, c emulator.Config) string {
	t.Helper()
	bin, err := emulatorOnce()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	src, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(dir, "python3")
	if err := os.WriteFile(filepath.Join(dir, "emulate.json"), src, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(bin, python); err != nil {
		t.Fatal(err)
	}
	return python
}

// nativePatience bounds each wait. A wait ends as soon as what is waited for is
// there; the bound is for machines that do much else.
const nativePatience = 4 * time.Minute

// versions are what the emulator says is installed, by what it poses as.
var versions = map[string]map[string]string{
	"verl-0.6.1": {"verl": "0.6.1", "torch": "2.6.0", "ray": "2.44.0", "vllm": "0.8.5", "transformers": "4.51.0", "hydra-core": "1.3.2", "tensorboard": "2.19.0"},
	"verl-0.7.1": {"verl": "0.7.1", "torch": "2.8.0", "ray": "2.49.0", "vllm": "0.11.0", "transformers": "4.56.0", "hydra-core": "1.3.2", "tensorboard": "2.19.0"},
	"verl-0.8":   {"verl": "0.8.0", "torch": "2.9.0", "ray": "2.50.0", "vllm": "0.15.0", "transformers": "5.0.0", "hydra-core": "1.3.2", "tensorboard": "2.19.0"},
	"verl-0.9":   {"verl": "0.9.0", "torch": "2.9.0", "ray": "2.50.0", "vllm": "0.18.0", "transformers": "5.3.0", "hydra-core": "1.3.2", "tensorboard": "2.19.0"},
	"rllm":       {"rllm": "0.3.0", "verl": "0.8.0", "torch": "2.9.0", "ray": "2.50.0", "vllm": "0.22.1", "transformers": "5.5.3"},
	"arpo":       {"verl": "0.3.1.dev", "verl.fork": "arpo", "arpo.config": "/opt/arpo/scripts/config", "torch": "2.6.0", "ray": "2.44.0", "vllm": "0.8.5", "hydra-core": "1.3.2", "tensorboard": "2.19.0"},
	"trl":        {"trl": "1.16.0", "torch": "2.9.0", "transformers": "5.3.0", "accelerate": "1.12.0", "datasets": "4.4.0", "peft": "0.18.0"},
}

// nativeStudy is a study whose trainer is emulated.
func nativeStudy(name, kind, python string, steps int) string {
	return fmt.Sprintf(`name: %s
base:
  preset: quick
  trainer: {kind: %s}
  model: {size: small}
  native: {model: Qwen/Qwen2.5-1.5B-Instruct, python: "%s", smoke: skip}
  environment: {world: small, cities: 20, days: 3, max_turns: 8, max_tokens: 16384, budget_factor: 1}
  data: {prompts: 6, mix: "1:0:0"}
  sft: {traces: 0, control: false}
  reward: {kind: SUM}
  algorithm: {group_size: 2, prompts_per_step: 2, minibatches: 1}
  budget: {steps: %d, checkpoint_every: 1}
  evaluation: {every: 2, queries: 2, samples: 1}
seeds: [1]
metric: eval/success
`, name, kind, python, steps)
}

// native is a row of the table of kinds.
type native struct {
	name, kind string
	evaluates  bool // the emulator plays the panel
	joins      bool // what the framework writes says which episode of ours it is about
}

var natives = []native{
	{"verl-0.6.1", "verl", true, true}, {"verl-0.8", "verl", true, true}, {"verl-0.9", "verl", true, false},
	{"arpo", "verl", true, false}, {"rllm", "rllm", true, true}, {"trl", "trl", false, false},
}

// study is a small one of the row's kind.
func (n native) study(t *testing.T, steps int, c emulator.Config) string {
	c.Versions = versions[n.name]
	if c.StepMS == 0 {
		c.StepMS = 5
	}
	text := nativeStudy(n.name+" "+c.Fail, n.kind, interpreter(t, c), steps)
	if n.name == "arpo" {
		text = strings.Replace(text, "algorithm: {", "algorithm: {kind: arpo, overlong: zero, ", 1)
	}
	return text
}

func (n native) named(name string) native {
	for _, x := range natives {
		if x.name == name {
			return x
		}
	}
	return n
}

// TestNativeRuns takes each kind to its end and looks for its metrics, groups,
// checkpoints and evaluations in the store and on the pages.
func TestNativeRuns(t *testing.T) {
	const steps = 3
	data := t.TempDir()
	p := serve(t, data, "--cpu-slots", "2")
	ids := make([]ablation.StudyID, len(natives))
	for i, n := range natives {
		ids[i] = p.launch(t, n.study(t, steps, emulator.Config{}))
	}
	runs := make([]ablation.Run, len(natives))
	for i, n := range natives {
		runs[i] = p.wait(t, ids[i], nativePatience)[0]
		if run := runs[i]; run.State != ablation.Succeeded || run.Step != steps {
			t.Errorf("%s: run %d %s at step %d: %s", n.name, run.ID, run.State, run.Step, run.Cause)
		}
	}
	for i, n := range natives {
		if page := p.page(t, fmt.Sprintf("/runs/%d", runs[i].ID)); !strings.Contains(page, "this run is emulated") {
			t.Errorf("%s: the run's page does not say that it is emulated", n.name)
		}
	}
	for i, n := range natives {
		p.inspected(t, n, runs[i].ID)
	}
	p.stop(t)
	s := openStore(t, data)
	defer func() { _ = s.Close() }()
	for i, n := range natives {
		nativeStored(t, s, n, runs[i].ID, steps)
	}
}

// inspected looks at a rollout in the inspector: its turns, and the way to the
// other rollouts of its group.
func (p *process) inspected(t *testing.T, n native, run ablation.RunID) {
	t.Helper()
	ids := p.trajectories(t, run)
	if len(ids) == 0 {
		t.Errorf("%s: no rollouts are listed", n.name)
		return
	}
	page := p.page(t, fmt.Sprintf("/runs/%d/trajectories/%s", run, ids[0]))
	for _, want := range []string{"SearchCity", "Cleveland"} {
		if !strings.Contains(page, want) {
			t.Errorf("%s: the inspector does not show %q of rollout %s", n.name, want, ids[0])
		}
	}
	group := ids[0][:strings.LastIndexByte(ids[0], '-')+1] // ids are group-rollout
	siblings := 0
	for _, id := range ids[1:] {
		if strings.HasPrefix(id, group) && strings.Contains(page, id) {
			siblings++
		}
	}
	if siblings != 1 {
		t.Errorf("%s: the inspector of %s leads to %d other rollouts of its group, want 1", n.name, ids[0], siblings)
	}
}

// nativeStored checks what a run left in the store.
func nativeStored(t *testing.T, s *store.Store, n native, run ablation.RunID, steps int) {
	t.Helper()
	heads, total, err := s.Trajectories(t.Context(), store.TrajectoryFilter{Runs: []ablation.RunID{run}, Phase: "rl", Limit: 100})
	if err != nil || total != 4*steps {
		t.Errorf("%s: %d rollouts of training, want %d: %v", n.name, total, 4*steps, err)
	}
	members, paid := map[string]int{}, 0
	for _, h := range heads {
		x, _, err := s.Trajectory(t.Context(), run, h.ID)
		if err != nil {
			t.Fatal(err)
		}
		members[x.Group]++
		if a := x.Advantage; a != nil && a.Value != 0 {
			paid++
		}
		if len(x.Turns) == 0 || n.name != "arpo" && x.Query.Hash == "" {
			t.Errorf("%s: rollout %s has %d turns and the query %q", n.name, x.ID, len(x.Turns), x.Query.Hash)
		}
	}
	for g, k := range members {
		if k != 2 {
			t.Errorf("%s: group %s has %d rollouts, want 2", n.name, g, k)
		}
	}
	if n.joins && paid != 4*steps {
		t.Errorf("%s: %d rollouts with an advantage, want %d", n.name, paid, 4*steps)
	}
	series, err := s.Series(t.Context(), store.SeriesQuery{Runs: []ablation.RunID{run}, Metrics: []string{"reward/mean", "policy/entropy", "train/success"}})
	if err != nil || len(series) != 3 {
		t.Fatalf("%s: %d of 3 metrics: %v", n.name, len(series), err)
	}
	for _, x := range series {
		if x.Total != steps {
			t.Errorf("%s: %s has %d points, want %d", n.name, x.Metric, x.Total, steps)
		}
		if last := x.Points[len(x.Points)-1]; x.Metric == "reward/mean" && !(last.Value > 0 && last.Value < 1) {
			t.Errorf("%s: the mean reward is %v, want that of played episodes", n.name, last.Value)
		}
	}
	saved, err := s.Checkpoints(t.Context(), run)
	if err != nil || len(saved) != steps {
		t.Errorf("%s: %d checkpoints, want %d: %v", n.name, len(saved), steps, err)
	}
	evals, err := s.Evaluations(t.Context(), []ablation.RunID{run})
	if n.evaluates && (err != nil || len(evals) != 3) {
		t.Errorf("%s: %d evaluations, want 3: %v", n.name, len(evals), err)
	}
}

// trajectories lists a run's rollouts of training.
func (p *process) trajectories(t *testing.T, run ablation.RunID) (ids []string) {
	t.Helper()
	var out struct{ Trajectories []struct{ ID string } }
	p.call(t, http.MethodGet, fmt.Sprintf("/api/v1/trajectories?run=%d&phase=rl", run), "", &out)
	for _, x := range out.Trajectories {
		ids = append(ids, x.ID)
	}
	return ids
}

// TestNativeStopAndResume stops a run of each kind half-way and resumes it
// from its checkpoint.
func TestNativeStopAndResume(t *testing.T) {
	const steps = 5
	data := t.TempDir()
	p := serve(t, data, "--cpu-slots", "3")
	list := []native{native{}.named("verl-0.8"), native{}.named("rllm"), native{}.named("trl")}
	gates := make([]string, len(list))
	ids := make([]ablation.StudyID, len(list))
	for i, n := range list {
		gates[i] = filepath.Join(t.TempDir(), "go on")
		ids[i] = p.launch(t, n.study(t, steps, emulator.Config{Wait: gates[i], At: 2}))
	}
	for i, n := range list {
		waitFor(t, nativePatience, n.name+" to reach step 2", func() bool {
			return p.runs(t, ids[i])[0].Step == 2 && p.checkpoints(data, p.runs(t, ids[i])[0].ID) >= 2
		})
		if code := p.call(t, http.MethodPost, fmt.Sprintf("/api/v1/runs/%d/stop", p.runs(t, ids[i])[0].ID), "", nil); code >= 300 {
			t.Fatalf("stop answered %d", code)
		}
	}
	for i, n := range list {
		run := p.wait(t, ids[i], nativePatience)[0]
		if run.State != ablation.Stopped {
			t.Errorf("%s: stopped, it is %s: %s", n.name, run.State, run.Cause)
		}
		if err := os.WriteFile(gates[i], nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if code := p.call(t, http.MethodPost, fmt.Sprintf("/api/v1/runs/%d/resume", run.ID), "", nil); code >= 300 {
			t.Fatalf("resume answered %d", code)
		}
	}
	for i, n := range list {
		run := p.wait(t, ids[i], nativePatience)[0]
		if run.State != ablation.Succeeded || run.Attempt != 2 || run.Step != steps {
			t.Errorf("%s: resumed, it is %s at step %d in attempt %d: %s", n.name, run.State, run.Step, run.Attempt, run.Cause)
		}
	}
	p.stop(t)
	s := openStore(t, data)
	defer func() { _ = s.Close() }()
	for i, n := range list {
		attempts, err := s.Attempts(t.Context(), ablation.RunID(i+1))
		if err != nil || len(attempts) != 2 || attempts[1].FirstStep < 2 {
			t.Errorf("%s: attempts %+v: %v", n.name, attempts, err)
		}
		for step := int64(1); step <= steps; step++ {
			_, total, err := s.Trajectories(t.Context(), store.TrajectoryFilter{Runs: []ablation.RunID{ablation.RunID(i + 1)}, Phase: "rl", StepFrom: &step, StepTo: &step})
			if err != nil || total != 4 {
				t.Errorf("%s: %d rollouts at step %d, want 4: %v", n.name, total, step, err)
			}
		}
	}
}

// checkpoints counts those that a run's first attempt has announced.
func (p *process) checkpoints(data string, run ablation.RunID) int {
	events, _ := os.ReadFile(filepath.Join(data, "runs", strconv.FormatInt(int64(run), 10), "1", "events.jsonl"))
	return strings.Count(string(events), `"kind":"checkpoint"`)
}

// TestNativeFailures lets the frameworks fail in every known way, and expects
// the cause's code, its words on the run's page, and what comes next.
func TestNativeFailures(t *testing.T) {
	const (
		never  = "the same would happen"
		change = "needs a change first"
		fix    = "needs a repair first"
		again  = "" // queued once more
		none   = "no new checkpoint"
	)
	tests := []struct{ on, fail, code, next string }{
		{"verl-0.8", "config", "config", never},
		{"verl-0.8", "missing-value", "config", never},
		{"verl-0.8", "batch-sizes", "batch-sizes", never},
		{"verl-0.8", "empty-data", "data", fix},
		{"verl-0.8", "too-easy", "data", fix},
		{"verl-0.8", "no-reward", "reward-function", never},
		{"verl-0.8", "cuda-oom", "cuda-oom", change},
		{"verl-0.9", "wake-up-oom", "cuda-oom", change},
		{"verl-0.8", "kv-cache", "kv-cache", change},
		{"verl-0.9", "nccl", "nccl", again},
		{"verl-0.8", "actor-died", "worker-died", again},
		{"verl-0.8", "worker-died", "worker-died", again},
		{"verl-0.6.1", "ray-oom", "ray-oom", change},
		{"verl-0.8", "no-gpus", "devices", change},
		{"verl-0.8", "slow-start", "slow-start", none},
		{"verl-0.9", "engine-died", "engine-died", again},
		{"verl-0.8", "wandb", "logger", never},
		{"verl-0.8", "disk-full", "disk-full", fix},
		{"verl-0.8", "tools", "tools", fix},
		{"verl-0.8", "killed", "killed", change},
		{"verl-0.8", "crash", "native", again},
		{"verl-0.8", "exception", "trainer", never},
		{"verl-0.8", "no-wait", "trainer", never},
		{"rllm", "rollout", "rollout", fix},
		{"rllm", "cuda-oom", "cuda-oom", change},
		{"trl", "hf-arguments", "config", never},
		{"trl", "child-failed", "host-oom", change},
		{"trl", "vllm-server", "server-gone", none},
	}
	data := t.TempDir()
	p := serve(t, data, "--cpu-slots", "3")
	ids := make([]ablation.StudyID, len(tests))
	for i, tt := range tests {
		ids[i] = p.launch(t, native{}.named(tt.on).study(t, 3, emulator.Config{Fail: tt.fail, At: 2}))
	}
	causes := make([]string, len(tests))
	for i, tt := range tests {
		var run ablation.Run
		waitFor(t, nativePatience, tt.on+" to fail by "+tt.fail, func() bool {
			run = p.runs(t, ids[i])[0]
			ended := run.State.Terminal() && !strings.Contains(run.Cause, "tried again from the last checkpoint")
			return ended || run.State == ablation.Queued && run.Attempt >= 1 || run.Attempt >= 2
		})
		if retried := run.State == ablation.Queued || run.Attempt >= 2; retried != (tt.next == again) {
			t.Errorf("%s, %s: tried again: %v, want %v; %s", tt.on, tt.fail, retried, tt.next == again, run.Cause)
		}
		if run.State == ablation.Succeeded {
			t.Errorf("%s, %s: it is said to have succeeded", tt.on, tt.fail)
		}
		causes[i] = run.Cause
		if !strings.Contains(run.Cause, tt.next) {
			t.Errorf("%s, %s: the cause %q does not say %q", tt.on, tt.fail, run.Cause, tt.next)
		}
		page := p.page(t, fmt.Sprintf("/runs/%d", run.ID))
		if words, _, _ := strings.Cut(run.Cause, " ("); tt.next != again && !strings.Contains(html.UnescapeString(page), words) {
			t.Errorf("%s, %s: the run's page does not show %q", tt.on, tt.fail, words)
		}
	}
	p.kill()
	s := openStore(t, data)
	defer func() { _ = s.Close() }()
	for i, tt := range tests {
		attempts, err := s.Attempts(t.Context(), ablation.RunID(i+1))
		if err != nil || len(attempts) == 0 || attempts[0].Code != tt.code {
			t.Errorf("%s, %s: attempts %+v, want the code %s: %v", tt.on, tt.fail, attempts, tt.code, err)
		}
	}
}

// TestNativeWarnings: what does not end a run must be told while it goes on.
func TestNativeWarnings(t *testing.T) {
	data := t.TempDir()
	p := serve(t, data, "--cpu-slots", "2")
	verl := native{}.named("verl-0.8")
	smoke := strings.Replace(verl.study(t, 3, emulator.Config{Fail: "constant", Smoke: true}), "smoke: skip", "smoke: require", 1)
	constant := p.launch(t, smoke)
	passing := p.launch(t, strings.Replace(verl.study(t, 3, emulator.Config{}), "smoke: skip", "smoke: require", 1))
	rllm := p.launch(t, strings.Replace(native{}.named("rllm").study(t, 3, emulator.Config{}), "smoke: skip", "smoke: require", 1))
	grad := p.launch(t, verl.study(t, 4, emulator.Config{Fail: "nan-grad"}))
	noise := p.launch(t, verl.study(t, 3, emulator.Config{Fail: "tool-noise"}))
	pushed := p.launch(t, native{}.named("rllm").study(t, 4, emulator.Config{Fail: "nan-grad"}))
	if run := p.wait(t, constant, nativePatience)[0]; run.State != ablation.Failed || !strings.Contains(run.Cause, "smoke run did not pass") || run.Step != 0 {
		t.Errorf("constant rewards: %s at step %d: %s", run.State, run.Step, run.Cause)
	}
	for _, id := range []ablation.StudyID{passing, rllm} {
		if run := p.wait(t, id, nativePatience)[0]; run.State != ablation.Succeeded || run.Step != 3 {
			t.Errorf("after a smoke run that passes: %s at step %d: %s", run.State, run.Step, run.Cause)
		}
	}
	noisy := p.wait(t, noise, nativePatience)[0]
	if page := p.page(t, fmt.Sprintf("/runs/%d", noisy.ID)); noisy.State != ablation.Succeeded || !strings.Contains(page, "tool calls could not be decoded") {
		t.Errorf("tool calls that cannot be decoded: %s, and the page says nothing of them: %s", noisy.State, noisy.Cause)
	}
	for _, id := range []ablation.StudyID{grad, pushed} { // rLLM pushes no NaN: it comes from its log file
		run := p.wait(t, id, nativePatience)[0]
		if page := p.page(t, fmt.Sprintf("/runs/%d", run.ID)); !strings.Contains(page, "NaN") && !strings.Contains(page, "not finite") {
			t.Errorf("study %d, gradients that are not finite: %s, and the page says nothing of them", id, run.State)
		}
	}
}

// TestNativeEmptyResume: a resumed trainer that ends at once without a step
// has not succeeded.
func TestNativeEmptyResume(t *testing.T) {
	data := t.TempDir()
	p := serve(t, data, "--cpu-slots", "2")
	gate := filepath.Join(t.TempDir(), "go on")
	id := p.launch(t, native{}.named("verl-0.8").study(t, 4, emulator.Config{Fail: "empty-resume", Wait: gate, At: 2}))
	waitFor(t, nativePatience, "step 2", func() bool { return p.runs(t, id)[0].Step == 2 && p.checkpoints(data, 1) >= 2 })
	p.call(t, http.MethodPost, "/api/v1/runs/1/stop", "", nil)
	p.wait(t, id, nativePatience)
	p.call(t, http.MethodPost, "/api/v1/runs/1/resume", "", nil)
	if run := p.wait(t, id, nativePatience)[0]; run.State != ablation.Failed || run.Attempt != 2 || !strings.Contains(run.Cause, "without a new step") {
		t.Errorf("%s in attempt %d: %s", run.State, run.Attempt, run.Cause)
	}
}

// TestNativeServerAway: rLLM throws away what it cannot push within seconds.
// Its calls are answered beside the run, so that nothing is lost while the
// server is gone.
func TestNativeServerAway(t *testing.T) {
	const steps = 4
	data := t.TempDir()
	p := serve(t, data, "--cpu-slots", "1")
	n := native{}.named("rllm")
	gate := filepath.Join(t.TempDir(), "go on")
	id := p.launch(t, n.study(t, steps, emulator.Config{Wait: gate, At: 1}))
	waitFor(t, nativePatience, "step 1", func() bool { return p.runs(t, id)[0].Step == 1 })
	p.kill()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	waitFor(t, nativePatience, "the run to end without a server", func() bool {
		events, _ := os.ReadFile(filepath.Join(data, "runs", "1", "1", "events.jsonl"))
		return strings.Contains(string(events), `"kind":"done"`)
	})
	p = serve(t, data, "--cpu-slots", "1")
	if run := p.wait(t, id, nativePatience)[0]; run.State != ablation.Succeeded || run.Step != steps || run.Attempt != 1 {
		t.Errorf("%s at step %d in attempt %d: %s", run.State, run.Step, run.Attempt, run.Cause)
	}
	p.stop(t)
	s := openStore(t, data)
	defer func() { _ = s.Close() }()
	nativeStored(t, s, n, 1, steps)
}

// TestNativeLostRollout: what the trainer's engine does wrong is no reward of
// 0. The rollout is left out, and its share is told.
func TestNativeLostRollout(t *testing.T) {
	data := t.TempDir()
	p := serve(t, data, "--cpu-slots", "1")
	id := p.launch(t, native{}.named("rllm").study(t, 3, emulator.Config{Fail: "lost-rollout", At: 2}))
	if run := p.wait(t, id, nativePatience)[0]; run.State != ablation.Succeeded || run.Step != 3 {
		t.Errorf("%s at step %d: %s", run.State, run.Step, run.Cause)
	}
	p.stop(t)
	s := openStore(t, data)
	defer func() { _ = s.Close() }()
	at := int64(2)
	heads, total, err := s.Trajectories(t.Context(), store.TrajectoryFilter{Runs: []ablation.RunID{1}, Phase: "rl", StepFrom: &at, StepTo: &at})
	if err != nil || total != 2 {
		t.Errorf("%d rollouts at the step that lost two of four, want 2: %+v, %v", total, heads, err)
	}
	series, err := s.Series(t.Context(), store.SeriesQuery{Runs: []ablation.RunID{1}, Metrics: []string{"rollout/invalid"}})
	if err != nil || len(series) != 1 || len(series[0].Points) != 3 || series[0].Points[1].Value != 0.5 || series[0].Points[0].Value != 0 {
		t.Errorf("the share of lost rollouts: %+v, %v", series, err)
	}
}
