package trl

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"alidade/ablation"
	"alidade/trainer"
	"alidade/trainer/native"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var versions = native.Versions{"trl": "1.16.0", "transformers": "5.24.0", "torch": "2.15.0", "peft": "0.21.2", "python": "3.11.9"}

// recipe is a sound recipe of this kind.
func recipe(change func(*ablation.Recipe)) ablation.Recipe {
	r, _ := ablation.PresetNamed("quick")
	r.Trainer.Kind = Kind
	r.Native.Model = "Qwen/Qwen2.5-1.5B-Instruct"
	r.SFT.Control = false
	r.Environment.World, r.Environment.MaxTokens, r.Environment.MaxTurns = "small", 16384, 30
	if change != nil {
		change(&r)
	}
	return r
}

func job(r ablation.Recipe, stage string) native.Job {
	return native.Job{
		Spec:  trainer.Spec{Recipe: r, Seed: 1<<40 + 7, Dir: "/run/1"},
		Stage: stage, Versions: versions, Python: "/venv/bin/python", Dir: "/run/1/native/" + stage, Model: "/artifacts/sft/0123/model", Out: "/artifacts/sft/.0123-work/model",
		Data: native.Data{Train: "/d/train.jsonl", Eval: "/d/eval.jsonl", Traces: "/d/traces.jsonl", TrainN: 1000, EvalN: 256, Seed: 1},
		Env:  native.EnvServer{URL: "http://127.0.0.1:1234", TokenEnv: native.TokenEnv, Tools: []byte(`[]`)}, Steps: int64(r.Budget.Steps),
	}
}

// TestGoldenPlans: recipe → command, job file and what was resolved.
func TestGoldenPlans(t *testing.T) {
	for name, c := range map[string]struct {
		stage   string
		devices int
		change  func(*ablation.Recipe)
	}{
		"grpo":     {native.StageRL, 0, nil},
		"smoke":    {native.StageSmoke, 0, nil},
		"sft":      {native.StageSFT, 0, nil},
		"dr_grpo":  {native.StageRL, 0, func(r *ablation.Recipe) { r.Algorithm.Kind = "dr_grpo" }},
		"gspo":     {native.StageRL, 0, func(r *ablation.Recipe) { r.Algorithm.Kind = "gspo" }},
		"grpo_tcr": {native.StageRL, 0, func(r *ablation.Recipe) { r.Algorithm.Kind = "grpo_tcr" }},
		"lora-vllm": {native.StageRL, 4, func(r *ablation.Recipe) {
			r.Native.Engine, r.Native.LoraRank, r.Native.EngineMemory, r.Native.TensorParallel, r.Native.KeepCheckpoints = "vllm", 32, 0.4, 2, 3
			r.Algorithm.UseKLLoss, r.Algorithm.KLLossCoef, r.Algorithm.Epochs = true, 0.01, 2
			r.Environment.Form = "tools"
			r.Native.Overrides = map[string]string{"adam_beta2": "0.99"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := recipe(c.change)
			if err := r.Validate(); err != nil {
				t.Fatal(err)
			}
			j := job(r, c.stage)
			j.Machine.DeviceGiB = make([]float64, c.devices)
			p, err := Adapter{}.Plan(j)
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			text.WriteString(strings.Join(p.Argv, " ") + "\n")
			for _, s := range p.Resolved {
				text.WriteString(s.Key + " = " + s.Value + "\t" + s.From + "\n")
			}
			text.Write(p.Files[jobFile])
			golden(t, filepath.Join("testdata", name+".txt"), text.String())
			if p.Files["py/env.py"] == nil || p.Files["py/tiny.py"] == nil {
				t.Errorf("the scripts are not among the files: %d files", len(p.Files))
			}
		})
	}
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
	if string(want) != got {
		t.Errorf("%s differs; run with -update and look at the change:\n%s", path, got)
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*ablation.Recipe)
		key    string // of what is refused; "" = nothing
	}{
		{"sound", nil, ""},
		{"dapo has no dynamic sampling", func(r *ablation.Recipe) { r.Algorithm.Kind = "dapo" }, "algorithm.kind"},
		{"arpo", func(r *ablation.Recipe) { r.Algorithm.Kind = "arpo" }, "algorithm.kind"},
		{"rloo", func(r *ablation.Recipe) { r.Algorithm.Kind = "rloo" }, "algorithm.kind"},
		{"dynamic sampling", func(r *ablation.Recipe) { r.Algorithm.FilterGroups = true }, "algorithm.filter_groups"},
		{"token sum", func(r *ablation.Recipe) { r.Algorithm.LossAgg = "seq-mean-token-sum" }, "algorithm.loss_agg_mode"},
		{"k1", func(r *ablation.Recipe) {
			r.Algorithm.UseKLLoss, r.Algorithm.KLLossCoef, r.Algorithm.KLLossType = true, 0.1, "kl"
		}, "algorithm.kl_loss_type"},
		{"KL in the reward", func(r *ablation.Recipe) { r.Algorithm.UseKLInReward, r.Algorithm.KLCoef = true, 0.1 }, "algorithm.use_kl_in_reward"},
		{"dual clip below the upper clip", func(r *ablation.Recipe) { r.Algorithm.ClipC = 1.1 }, "algorithm.clip_ratio_c"},
		{"dual clip", func(r *ablation.Recipe) { r.Algorithm.ClipC = 3 }, ""},
		{"divisor", func(r *ablation.Recipe) { r.Algorithm.Kind, r.Algorithm.LossScale = "dr_grpo", 1000 }, "algorithm.loss_scale_factor"},
		{"batch does not divide", func(r *ablation.Recipe) { r.Native.MicroBatch = 7 }, "native.micro_batch"},
		{"no room", func(r *ablation.Recipe) { r.Environment.MaxTokens = 2048 }, "native.max_response_tokens"},
		{"few prompts", func(r *ablation.Recipe) { r.Data.Prompts = 3 }, "data.prompts"},
		{"pass rates", func(r *ablation.Recipe) { r.Data.PassRateSamples = 4 }, "data.pass_rate_samples"},
		{"offload", func(r *ablation.Recipe) { r.Native.Offload = "all" }, "native.offload"},
		{"sglang", func(r *ablation.Recipe) { r.Native.Engine = "sglang" }, "native.engine"},
		{"vLLM without a GPU", func(r *ablation.Recipe) { r.Native.Engine = "vllm" }, "native.engine"},
		{"another version", func(r *ablation.Recipe) { r.Native.Version = "1.10.0" }, "native.version"},
		{"override of a key that the recipe sets", func(r *ablation.Recipe) { r.Native.Overrides = map[string]string{"beta": "1"} }, "native.overrides.beta"},
		{"GSPO under a token-summing loss", func(r *ablation.Recipe) {
			r.Native.Overrides = map[string]string{"importance_sampling_level": "sequence"}
		}, "native.overrides.importance_sampling_level"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := recipe(c.change)
			if err := r.Validate(); err != nil {
				t.Fatal(err)
			}
			var refused []string
			notes := 0
			for _, v := range (Adapter{}).Check(r, versions, native.Machine{}) {
				switch v.Level {
				case native.Refuse:
					refused = append(refused, v.Key)
					if v.Text == "" || v.Fix == "" || v.Code == "" {
						t.Errorf("refused without a reason or a way out: %+v", v)
					}
				case native.Note:
					notes++
				}
			}
			if strings.Join(refused, ",") != c.key {
				t.Errorf("refused %q, want %q", refused, c.key)
			}
			if notes == 0 {
				t.Error("what is optimised is not noted")
			}
		})
	}
	for _, v := range []native.Versions{{"trl": "1.10.0", "transformers": "5.24.0"}, {"trl": "1.16.2", "transformers": "4.57.0"}} {
		if list := (Adapter{}).Check(recipe(nil), v, native.Machine{}); list[0].Level != native.Refuse {
			t.Errorf("%v is accepted", v)
		}
	}
}

// TestResolved: the objective of each kind is what its name says.
func TestResolved(t *testing.T) {
	for kind, want := range map[string][]string{
		"grpo":     {"token ratio", "clip [1−0.2, 1+0.28]", "token-mean", "SD of the group", "no KL", "over-long rollouts: mask"},
		"dr_grpo":  {"seq-mean-token-sum-norm", "divisor 14336", "no SD", "no KL"},
		"gspo":     {"sequence ratio", "clip [1−0.0003, 1+0.0004]", "seq-mean-token-mean"},
		"grpo_tcr": {"token-mean", "dual clip 10", "over-long rollouts: shape (−1 over the last 2867 of 14336 tokens)", "no KL"},
		"grpo_scr": {"sequence ratio", "seq-mean-token-mean", "over-long rollouts: shape"},
	} {
		got := resolve(recipe(func(r *ablation.Recipe) { r.Algorithm.Kind = kind })).String()
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %q lacks %q", kind, got, w)
			}
		}
	}
}

func TestEpisodeLine(t *testing.T) {
	line := `{"kind":"episode","id":"abc","step":3,"group":"rl-3-0","rollout":1,"reward":0.5,"extra":-0.25,"advantage":1.5,"mean":0.1,"std":0.2,"members":4,"in_loss":true,"overlong":true,"tokens":100,"generated":40,"turns":[10,30],"detail":[{"entropy":[0.1],"logprobs":[-0.1],"words":["a"]}]}`
	r := episodeLine([]byte(line), "group-std")
	x := r.Trajectory
	if r.Bad != 0 || x == nil || x.ID != "abc" || x.Advantage.Value != 1.5 || x.Advantage.Norm != "group-std" || x.Advantage.Zero || !x.Advantage.InLoss || len(x.Turns) != 2 ||
		x.Turns[1].Tokens != 30 || len(x.Turns[0].Entropy) != 1 || len(x.Components) != 1 || x.Components[0].Value != -0.25 || !x.Overlong {
		t.Errorf("%+v of %+v", x, r)
	}
	if r := episodeLine([]byte(`{"kind":"invalid","step":3,"group":"g","rollout":0,"why":"gone"}`), ""); r.Alert == nil || !strings.Contains(r.Alert.Text, "gone") || r.Trajectory != nil {
		t.Errorf("an invalid rollout: %+v", r)
	}
	for _, bad := range []string{`{`, `{}`, `[]`, ``} {
		if r := episodeLine([]byte(bad), ""); r.Bad != 1 {
			t.Errorf("%q: %+v", bad, r)
		}
	}
}

// TestSaved: a checkpoint counts when its mark is there.
func TestSaved(t *testing.T) {
	dir := t.TempDir()
	for name, mark := range map[string]string{"checkpoint-20": `{"step":10}`, "checkpoint-4": `{"step":2}`, "checkpoint-30": ""} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if mark != "" {
			if err := os.WriteFile(filepath.Join(dir, name, markFile), []byte(mark), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	list, err := saved(dir)
	if err != nil || len(list) != 2 || list[0].Step != 2 || list[1].Step != 10 {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestProbeMissing: an interpreter without TRL says how to get it.
func TestProbeMissing(t *testing.T) {
	python := filepath.Join(t.TempDir(), "python")
	script := "#!/bin/sh\necho '{\"python\": \"3.12.1\", \"torch\": \"2.8.0\"}'\n"
	if err := os.WriteFile(python, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Adapter{}.Probe(t.Context(), python)
	if err == nil || !strings.Contains(err.Error(), "alidade trainers install trl") {
		t.Errorf("%v", err)
	}
	if _, err := (Adapter{}).Probe(t.Context(), "/nowhere/python"); err == nil {
		t.Error("an interpreter that is not there")
	}
}

// TestJobIsJSON: what the scripts read has no field that they would miss.
func TestJobIsJSON(t *testing.T) {
	p, err := Adapter{}.Plan(job(recipe(nil), native.StageRL))
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(p.Files[jobFile], &m); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(p.Files[jobFile]), "token\":") && m["env"].(map[string]any)["token"] != nil {
		t.Error("the job file holds the token")
	}
	if seed := m["seed"].(float64); seed >= 1<<32 {
		t.Errorf("seed %v is too large for torch", seed)
	}
	c := m["config"].(map[string]any)
	for _, k := range ours {
		switch k {
		case "generation_batch_size", "delta", "bf16", "fp16", "use_cpu", "gradient_checkpointing", "save_total_limit", "vllm_mode", "vllm_gpu_memory_utilization", "vllm_tensor_parallel_size", "vllm_max_model_length", "model_init_kwargs":
		default:
			if _, ok := c[k]; !ok {
				t.Errorf("%s may not be overridden, but the recipe does not set it", k)
			}
		}
	}
}
