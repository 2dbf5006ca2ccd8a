package rllm

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"alidade/ablation"
	"alidade/trainer"
	"alidade/trainer/native"
)

var update = flag.Bool("update", false, "write golden files anew")

// recipe is one that the adapter takes as it stands.
func recipe(change func(*ablation.Recipe)) ablation.Recipe {
	r, _ := ablation.PresetNamed("quick")
	r.Preset, r.Trainer.Kind, r.Trainer.Devices = "", Kind, 8
	r.Environment.World, r.Environment.MaxTurns, r.Environment.MaxTokens = "small", 60, 32768
	r.SFT.Traces, r.SFT.Control = 0, false
	r.Algorithm.LR, r.Algorithm.PromptsPerStep, r.Algorithm.GroupSize, r.Algorithm.Minibatches = 1e-6, 64, 8, 4
	r.Native.Model, r.Native.TensorParallel = "Qwen/Qwen2.5-7B-Instruct", 2
	if change != nil {
		change(&r)
	}
	return r
}

var installed = native.Versions{"rllm": "0.3.0", "verl": "0.8.0", "python": "3.11.9"}

func job(t *testing.T, r ablation.Recipe, stage string) native.Job {
	t.Helper()
	return native.Job{
		Spec:  trainer.Spec{Run: 12, Attempt: 2, Seed: 3, Recipe: r},
		Stage: stage, Versions: installed, Python: "/venv/bin/python", Dir: "/data/runs/12/2/native/" + stage, Model: r.Native.Model,
		Data: native.Data{Train: "/data/artifacts/dataset/ab/train.jsonl", TrainN: 1000, EvalN: 2, Seed: 1}, Steps: int64(r.Budget.Steps),
	}
}

// TestPlans keeps what recipes become: the command, the generated script, the
// environment and every setting with the key it comes from.
func TestPlans(t *testing.T) {
	tests := map[string]struct {
		change func(*ablation.Recipe)
		stage  string
		resume string
	}{
		"grpo":   {nil, native.StageRL, ""},
		"resume": {nil, native.StageRL, "/data/runs/12/1/native/rl/checkpoints/global_step_50"},
		"smoke":  {nil, native.StageSmoke, ""},
		"tools-dapo": {func(r *ablation.Recipe) {
			r.Environment.Form, r.Algorithm.Kind, r.Algorithm.FilterGroups, r.Algorithm.Overlong = "tools", "dapo", true, "shape"
			r.Native.LoraRank, r.Native.Overrides = 32, map[string]string{"rllm.workflow.retry_limit": "5", "+actor_rollout_ref.rollout.max_num_seqs": "256"}
		}, native.StageRL, ""},
		"gspo-kl": {func(r *ablation.Recipe) {
			r.Algorithm.Kind, r.Algorithm.ClipLow, r.Algorithm.ClipHigh, r.Algorithm.UseKLLoss, r.Algorithm.KLLossCoef = "gspo", 3e-4, 4e-4, true, 0.001
		}, native.StageRL, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			j := job(t, recipe(tt.change), tt.stage)
			j.Resume = tt.resume
			if tt.stage == native.StageSmoke {
				j.Steps = 1
			}
			p, err := Adapter{}.Plan(j)
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			for _, a := range p.Argv {
				fmt.Fprintln(&b, a)
			}
			fmt.Fprintln(&b)
			for _, e := range p.Env {
				if strings.HasPrefix(e, KeyEnv+"=") {
					if len(e) < 20 || e != KeyEnv+"="+p.Serve.Secret {
						t.Errorf("the run's secret is %q", e)
					}
					e = KeyEnv + "=(the run's secret)"
				}
				fmt.Fprintln(&b, e)
			}
			fmt.Fprintln(&b)
			for _, s := range p.Resolved {
				fmt.Fprintf(&b, "%s = %s  (%s)\n", s.Key, s.Value, s.From)
			}
			if strings.Contains(strings.Join(p.Argv, " "), p.Serve.Secret) {
				t.Error("the secret stands in the command")
			}
			golden(t, filepath.Join("testdata", name+".golden"), strings.ReplaceAll(b.String(), os.TempDir(), "(temp)"))
		})
	}
	golden(t, "testdata/train.py.golden", string(trainScript("/data/train.jsonl", "/data/o'eval \"x\".jsonl")))
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; -update writes it anew. Now:\n%s", path, got)
	}
}

// TestOtherStages: rLLM has no SFT, and validates while it trains.
func TestOtherStages(t *testing.T) {
	for _, stage := range []string{native.StageSFT, native.StageEval, native.StageCompose} {
		p, err := Adapter{}.Plan(job(t, recipe(nil), stage))
		if err != nil || len(p.Argv) != 0 {
			t.Errorf("%s: %v, %v", stage, p.Argv, err)
		}
	}
}

// TestCheck: each fault is named with its level, and a good recipe has none.
func TestCheck(t *testing.T) {
	node := native.Machine{DeviceGiB: []float64{80, 80, 80, 80, 80, 80, 80, 80}, HostGiB: 900, DiskGiB: 4000}
	tests := []struct {
		name        string
		change      func(*ablation.Recipe)
		versions    native.Versions
		machine     native.Machine
		level, code string
		says        string
	}{
		{"old rLLM", nil, native.Versions{"rllm": "0.2.1.post1", "verl": "0.6.1"}, node, native.Refuse, "version", "0.3"},
		{"odd version", nil, native.Versions{"rllm": "main", "verl": "0.8.0"}, node, native.Refuse, "version", "0.3"},
		{"odd verl", nil, native.Versions{"rllm": "0.3.0", "verl": "x"}, node, native.Refuse, "version", "x"},
		{"other version wanted", func(r *ablation.Recipe) { r.Native.Version = "0.3.1" }, installed, node, native.Refuse, "version", "0.3.0"},
		{"tree", func(r *ablation.Recipe) { r.Algorithm.Kind = "arpo" }, installed, node, native.Refuse, "estimator", "trees"},
		{"estimator", func(r *ablation.Recipe) { r.Algorithm.Kind = "reinforce_plus_plus" }, installed, node, native.Refuse, "estimator", "reinforce_plus_plus"},
		{"KL in the reward", func(r *ablation.Recipe) { r.Algorithm.UseKLInReward, r.Algorithm.KLCoef = true, 0.01 }, installed, node, native.Refuse, "dead-key", "kl_beta"},
		{"no GPU", nil, installed, native.Machine{}, native.Refuse, "devices", "CUDA"},
		{"two nodes", func(r *ablation.Recipe) { r.Native.Nodes, r.Native.RayAddress = 2, "http://head:8265" }, installed, node, native.Refuse, "nodes", "loopback"},
		{"SFT", func(r *ablation.Recipe) { r.SFT.Traces = 100 }, installed, node, native.Warn, "sft", "no SFT"},
		{"own key twice", func(r *ablation.Recipe) { r.Native.Overrides = map[string]string{"rllm.rollout.n": "4"} }, installed, node, native.Refuse, "override", "algorithm.group_size"},
		{"dead key", func(r *ablation.Recipe) { r.Native.Overrides = map[string]string{"data.train_batch_size": "4"} }, installed, node, native.Refuse, "dead-key", "rllm.data.train_batch_size"},
		{"batch sizes", func(r *ablation.Recipe) {
			r.Algorithm.PromptsPerStep, r.Algorithm.Minibatches = 3, 1
			r.Algorithm.GroupSize = 3
		}, installed, node, native.Refuse, "", "divi"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			list := Adapter{}.Check(recipe(tt.change), tt.versions, tt.machine)
			if !slices.ContainsFunc(list, func(v native.Verdict) bool {
				return v.Level == tt.level && (v.Code == tt.code || tt.code == "") && strings.Contains(v.Value+v.Text+v.Fix, tt.says)
			}) {
				t.Errorf("want %s %s with %q among %+v", tt.level, tt.code, tt.says, list)
			}
		})
	}
	for _, v := range (Adapter{}).Check(recipe(nil), installed, node) {
		if v.Level == native.Refuse || v.Level == native.Warn {
			t.Errorf("a good recipe: %+v", v)
		}
	}
}

// TestNames maps rLLM's names with a role or a data set inside.
func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"reward/travel/mean": "reward/mean", "actor/entropy": "policy/entropy", "batch/solver/fractions/effective": "group/effective",
		"val/travel/pass@1": "eval/pass@1", "batch/termination_reason/error": "rollout/invalid", "time/step": "time/step_s",
	} {
		if got, ok := (Adapter{}).Name(name); !ok || got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"", "x", "reward", "reward/mean", "async/queue"} {
		if got, ok := (Adapter{}).Name(name); ok {
			t.Errorf("%q is %q, want it unknown", name, got)
		}
	}
}

// TestEpisodeFiles reads rLLM's files where nothing was pushed, and passes
// over what was.
func TestEpisodeFiles(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "episodes", "train_step_4_epoch_0")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name string, v any) {
		t.Helper()
		src, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), src, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := func(id string, reward float64) map[string]any {
		return map[string]any{
			"training_step": 4, "epoch": 0, "episode_id": id, "task": map[string]any{"task_id": "7", "split": "train", "query_hash": "h7", "level": "hard"}, "task_hash": "0a1b2c3d",
			"is_correct": reward > 0.5, "termination_reason": "max_turns_exceeded", "metrics": map[string]any{},
			"trajectories": []any{map[string]any{"name": "travel", "uid": "u", "reward": reward, "num_steps": 2, "steps": []any{
				map[string]any{"chat_completions": []any{}},
				map[string]any{"chat_completions": []any{
					map[string]any{"role": "system", "content": "You plan."}, map[string]any{"role": "user", "content": "To Ohio."},
					map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{"id": "c", "type": "function", "function": map[string]any{"name": "SearchCity", "arguments": `{"state": "Ohio"}`}}}},
					map[string]any{"role": "tool", "content": "Cleveland"},
					map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "text", "text": "<think>enough</think>[]"}}},
				}},
			}}},
		}
	}
	write("episode_hash0a1b2c3d_idp_0.json", file("p:0", 1))
	write("episode_hash0a1b2c3d_idp_1.json", file("p:1", 0))
	write("episode_hash0a1b2c3d_idp_2.json", file("p:2", 0))
	if err := os.WriteFile(filepath.Join(folder, "episode_hash0a1b2c3d_idp_3.json"), []byte(`{"episode_id": "p:3", "traj`), 0o600); err != nil {
		t.Fatal(err)
	}
	s, c := newClient(t, Config{Estimator: "grpo", ByStd: true})
	id := openSession(c)
	c.ok("/api/episodes", episode(id, 4, "p:2", 0, "7")) // was pushed
	files := Episodes("episodes", dir, s)
	poll := func(last bool) (list []*trainer.Trajectory, bad int) {
		if err := files.Poll(last, func(r native.Reading) {
			if r.Trajectory != nil {
				list = append(list, r.Trajectory)
			}
			bad += r.Bad
		}); err != nil {
			t.Fatal(err)
		}
		return list, bad
	}
	if list, _ := poll(false); len(list) != 0 {
		t.Errorf("%d episodes of a folder that is still written", len(list))
	}
	write("batch_summary.json", map[string]any{"num_episodes": 4})
	list, bad := poll(false)
	if len(list) != 2 || bad != 1 {
		t.Fatalf("%d episodes, %d unreadable; want 2 and 1", len(list), bad)
	}
	x := list[0]
	if x.Step != 4 || x.Group != "rl-4-p" || x.Query.Hash != "h7" || x.Query.Text != "To Ohio." || x.End != "turns" || x.Advantage == nil || x.Advantage.Value < 0.99 {
		t.Errorf("read %+v", x)
	}
	if len(x.Turns) != 2 || x.Turns[0].Call == nil || x.Turns[0].Call.Args[0].Value != "Ohio" || x.Turns[0].Observe.Text != "Cleveland" || x.Turns[1].Think != "enough" || x.Answer != "[]" {
		t.Errorf("turns %+v, answer %q", x.Turns, x.Answer)
	}
	if _, err := trainer.Encode(trainer.Event{Kind: trainer.KindTrajectory, T: 1, Trajectory: x}); err != nil {
		t.Error(err)
	}
	if list, _ := poll(true); len(list) != 0 {
		t.Errorf("%d episodes told twice", len(list))
	}
}

// TestCheckpoints trusts only what the trainer itself names as complete.
func TestCheckpoints(t *testing.T) {
	dir := t.TempDir()
	if list, err := checkpoints(dir); err != nil || len(list) != 0 {
		t.Errorf("an empty folder: %v, %v", list, err)
	}
	for _, name := range []string{"global_step_2", "global_step_10", "global_step_12", "global_step_x", "other"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "latest_checkpointed_iteration.txt"), []byte("10"), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := checkpoints(dir)
	if err != nil || len(list) != 2 || list[0].Step != 2 || list[1].Step != 10 {
		t.Errorf("found %+v, %v; want steps 2 and 10", list, err)
	}
}

// TestAdvantages are rLLM's formulas.
func TestAdvantages(t *testing.T) {
	for _, tt := range []struct {
		estimator string
		byStd     bool
		rewards   []float64
		want      []float64
	}{
		{"grpo", false, []float64{1, 0, 0, 1}, []float64{0.5, -0.5, -0.5, 0.5}},
		{"grpo", true, []float64{1, 0}, []float64{0.5 / (0.5 + epsilon), -0.5 / (0.5 + epsilon)}}, // population SD
		{"grpo", false, []float64{0.7}, []float64{0.7}},
		{"rloo", true, []float64{1, 0, 0}, []float64{1, -0.5, -0.5}},
		{"grpo", true, []float64{2, 2}, []float64{0, 0}},
		{"reinforce", false, []float64{1, 0}, nil},
	} {
		got := groupAdvantages(tt.estimator, tt.byStd, tt.rewards)
		if len(got) != len(tt.want) {
			t.Errorf("%s of %v: %v, want %v", tt.estimator, tt.rewards, got, tt.want)
			continue
		}
		for i := range got {
			if d := got[i].Value - tt.want[i]; d > 1e-9 || d < -1e-9 {
				t.Errorf("%s of %v: %v, want %v", tt.estimator, tt.rewards, got[i].Value, tt.want[i])
			}
		}
	}
}
