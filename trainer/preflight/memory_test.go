package preflight

import (
	"strings"
	"testing"

	"alidade/ablation"
	"alidade/trainer/native"
)

// star is Agent-STAR's shape of a run: group of 8, context 32,768.
func star(kind, model string, devices int) ablation.Recipe {
	r, _ := ablation.PresetNamed("quick")
	r.Trainer.Kind, r.Trainer.Devices = kind, devices
	r.Native = ablation.Native{Model: model, Checkpointing: true, Engine: "vllm", Offload: "all", MaxPrompt: 2048, MaxResponse: 30720, SequenceParallel: 2, TensorParallel: 2}
	r.Algorithm.GroupSize, r.Algorithm.PromptsPerStep = 8, 32
	r.Budget.Steps, r.Budget.CheckpointEvery = 155, 31
	return r
}

func machine(n int, each float64) native.Machine {
	m := native.Machine{HostGiB: 1000, DiskGiB: 4000}
	for range n {
		m.DeviceGiB = append(m.DeviceGiB, each)
	}
	return m
}

// What was published as having run must not be refused: 1.5B and 3B on
// 8 × 80 GiB, 7B on 16, Qwen3-4B on 8.
func TestPublishedRunsFit(t *testing.T) {
	for _, c := range []struct {
		model    string
		n, nodes int
	}{{"Qwen/Qwen2.5-1.5B-Instruct", 8, 1}, {"Qwen/Qwen2.5-3B-Instruct", 8, 1}, {"Qwen/Qwen2.5-7B-Instruct", 8, 2}, {"Qwen/Qwen3-4B", 8, 1}} {
		r := star("verl", c.model, c.n)
		r.Native.Nodes = c.nodes
		for _, v := range must(Fits(r, machine(c.n, 80))) {
			if v.Level == native.Refuse {
				t.Errorf("%s on %d × 80 GiB is refused: %s", c.model, c.n*c.nodes, v.Text)
			}
		}
	}
}

func must(v []native.Verdict, _ *Estimate) []native.Verdict { return v }

func TestWhatCannotFitIsRefusedWithAWayOut(t *testing.T) {
	find := func(code string, list []native.Verdict) native.Verdict {
		for _, v := range list {
			if v.Code == code {
				return v
			}
		}
		t.Fatalf("no verdict %s in %v", code, list)
		return native.Verdict{}
	}
	big := star("verl", "Qwen/Qwen2.5-72B", 8)
	big.Native.SequenceParallel, big.Native.TensorParallel = 8, 8
	v := find("memory", must(Fits(big, machine(8, 80))))
	if v.Level != native.Refuse || !strings.Contains(v.Fix, "trainer.devices: ") {
		t.Errorf("72B on 8 × 80 GiB: %+v", v)
	}
	plain := star("trl", "Qwen/Qwen2.5-1.5B", 1)
	plain.Native.Checkpointing, plain.Native.Offload, plain.Native.MicroBatch, plain.Native.SequenceParallel = false, "", 8, 1
	plain.Native.MaxResponse, plain.Native.TensorParallel = 2048, 1
	v = find("memory", must(Fits(plain, machine(1, 80))))
	if v.Level != native.Refuse || !strings.Contains(v.Fix, "gradient_checkpointing") {
		t.Errorf("1.5B without checkpointing on one device: %+v", v)
	}
	narrow := star("verl", "Qwen/Qwen2.5-7B", 8)
	narrow.Native.TensorParallel, narrow.Native.EngineMemory = 1, 0.19
	if v := find("kv-cache", must(Fits(narrow, machine(8, 80)))); v.Level != native.Refuse {
		t.Errorf("no room for the cache: %+v", v)
	}
	small := machine(8, 80)
	small.DiskGiB, small.HostGiB = 100, 64
	r := star("verl", "Qwen/Qwen2.5-7B", 8)
	if v := find("disk", must(Fits(r, small))); v.Level != native.Refuse {
		t.Errorf("five checkpoints of 85 GiB on 100: %+v", v)
	}
	if v := find("host-memory", must(Fits(r, small))); v.Level != native.Refuse {
		t.Errorf("offloading 85 GiB to a host of 64: %+v", v)
	}
	r.Native.KeepCheckpoints = 1
	if v := find("disk", must(Fits(r, small))); v.Level == native.Refuse {
		t.Errorf("one checkpoint: %+v", v)
	}
}

// Each setting must move the estimate the way it moves a real run.
func TestMemoryMovesTheRightWay(t *testing.T) {
	s, err := ShapeOf("Qwen/Qwen2.5-7B")
	if err != nil {
		t.Fatal(err)
	}
	base := star("verl", "Qwen/Qwen2.5-7B", 8)
	was := Memory(base, s, 80)
	for name, c := range map[string]struct {
		phase  string
		up     bool
		change func(r *ablation.Recipe)
	}{
		"more devices":     {"update", false, func(r *ablation.Recipe) { r.Trainer.Devices = 16 }},
		"no checkpointing": {"update", true, func(r *ablation.Recipe) { r.Native.Checkpointing = false }},
		"longer responses": {"update", true, func(r *ablation.Recipe) { r.Native.MaxResponse *= 2 }},
		"more parallel":    {"update", false, func(r *ablation.Recipe) { r.Native.SequenceParallel = 8 }},
		"a reference":      {"update", true, func(r *ablation.Recipe) { r.Algorithm.UseKLLoss = true }},
		"adapters":         {"update", false, func(r *ablation.Recipe) { r.Native.LoraRank = 32 }},
		"no offload":       {"rollout", true, func(r *ablation.Recipe) { r.Native.Offload = "none" }},
		"a larger engine":  {"rollout", true, func(r *ablation.Recipe) { r.Native.EngineMemory = 0.8 }},
	} {
		r := base
		c.change(&r)
		of := func(e Estimate) float64 {
			for _, p := range e.Phases {
				if p.Name == c.phase {
					return p.GiB()
				}
			}
			return 0
		}
		if now, before := of(Memory(r, s, 80)), of(was); (now > before) != c.up || now == before {
			t.Errorf("%s: %s %.1f GiB, before %.1f", name, c.phase, now, before)
		}
	}
}
