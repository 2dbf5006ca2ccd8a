package preflight

import (
	"errors"
	"fmt"
	"slices"

	"alidade/ablation"
	"alidade/trainer/native"
)

// room is the share of a device that a run may be estimated at: the rest is
// fragmentation. tight is where a warning begins.
const (
	room  = 0.97
	tight = 0.92
)

// Fits compares an estimate with what a run would get. It says nothing about
// devices that are not there: a run on the CPU has none.
func Fits(r ablation.Recipe, m native.Machine) ([]native.Verdict, *Estimate) {
	if r.Native.Model == "tiny" || len(m.DeviceGiB) == 0 {
		return disk(r, nil, m), nil
	}
	s, err := ShapeOf(r.Native.Model)
	if err != nil {
		level := native.Warn
		if !errors.Is(err, ErrUnknownModel) {
			level = native.Refuse
		}
		return []native.Verdict{{Level: level, Code: "memory-unknown", Key: "native.model", Value: r.Native.Model, Text: "its memory cannot be estimated: " + err.Error(),
			Fix: "rely on the smoke run, or name a folder with the model's config.json"}}, nil
	}
	device := slices.Min(m.DeviceGiB)
	e := Memory(r, s, device)
	peak := e.Peak()
	var out []native.Verdict
	need := peak.GiB()
	text := fmt.Sprintf("the %s needs about %.0f GiB of each device, which has %.0f", peak.Name, need, device)
	switch {
	case need > room*device:
		out = append(out, native.Verdict{Level: native.Refuse, Code: "memory", Key: "trainer.devices", Value: fmt.Sprint(r.Trainer.Devices), Text: text, Fix: remedy(r, s, device)})
	case need > tight*device:
		out = append(out, native.Verdict{Level: native.Warn, Code: "memory", Text: text, Fix: remedy(r, s, device)})
	default:
		out = append(out, native.Verdict{Level: native.Note, Code: "memory", Text: text})
	}
	if left, one := CacheGiB(r, s, device); r.Native.Engine != "hf" && r.Budget.Steps > 0 && left < one {
		out = append(out, native.Verdict{Level: native.Refuse, Code: "kv-cache", Key: "native.engine_memory", Value: fmt.Sprint(r.Native.EngineMemory),
			Text: fmt.Sprintf("the rollout engine has %.1f GiB left for its cache; one sequence of the longest kind takes %.1f", max(0, left), one),
			Fix:  "a larger native.engine_memory, more native.tensor_parallel, or a shorter native.max_response_tokens"})
	}
	if m.HostGiB > 0 && e.HostGiB > 0.9*m.HostGiB {
		fix := "native.offload: optimizer or none, or a host with more memory"
		if r.Native.Offload == "optimizer" {
			fix = "native.offload: none, or a host with more memory"
		}
		out = append(out, native.Verdict{Level: native.Refuse, Code: "host-memory", Key: "native.offload", Value: r.Native.Offload,
			Text: fmt.Sprintf("offloading takes about %.0f GiB of the host, which has %.0f", e.HostGiB, m.HostGiB), Fix: fix})
	}
	return append(out, disk(r, &e, m)...), &e
}

// disk compares the checkpoints with the free space.
func disk(r ablation.Recipe, e *Estimate, m native.Machine) []native.Verdict {
	if e == nil || m.DiskGiB == 0 {
		return nil
	}
	need := e.DiskGiB()
	v := native.Verdict{Level: native.Note, Code: "disk", Key: "native.keep_checkpoints", Value: fmt.Sprint(r.Native.KeepCheckpoints),
		Text: fmt.Sprintf("%d checkpoints of %.0f GiB take %.0f GiB a run; %.0f GiB are free", e.Checkpoints, e.CheckpointGiB, need, m.DiskGiB)}
	if need > 0.9*m.DiskGiB {
		v.Level, v.Fix = native.Refuse, "native.keep_checkpoints: 2, a larger budget.checkpoint_every, or more space"
	}
	return []native.Verdict{v}
}

// remedies are changes that save memory without changing what is learned, the
// least costly first.
var remedies = []struct {
	key, value string
	able       func(r *ablation.Recipe) bool
	change     func(r *ablation.Recipe)
}{
	{"native.gradient_checkpointing", "true", func(r *ablation.Recipe) bool { return !r.Native.Checkpointing }, func(r *ablation.Recipe) { r.Native.Checkpointing = true }},
	{"native.micro_batch", "1", func(r *ablation.Recipe) bool { return r.Native.MicroBatch > 1 }, func(r *ablation.Recipe) { r.Native.MicroBatch = 1 }},
	{"native.engine_memory", "0.3", func(r *ablation.Recipe) bool { return r.Native.EngineMemory > 0.3 }, func(r *ablation.Recipe) { r.Native.EngineMemory = 0.3 }},
	{"native.offload", "all", func(r *ablation.Recipe) bool { return r.Native.Offload != "all" && r.Trainer.Kind != "trl" }, func(r *ablation.Recipe) { r.Native.Offload = "all" }},
}

// remedy finds what would make the run fit: each change that is possible, one
// after the other, then more devices.
func remedy(r ablation.Recipe, s Shape, device float64) string {
	words := ""
	try := r
	for _, x := range remedies {
		if !x.able(&try) {
			continue
		}
		x.change(&try)
		if words != "" {
			words += " with "
		}
		words += x.key + ": " + x.value
		if g := Memory(try, s, device).Peak().GiB(); g <= tight*device {
			return fmt.Sprintf("%s: about %.0f GiB", words, g)
		}
	}
	if try.Trainer.Kind != "trl" {
		for n := max(1, try.Trainer.Devices) * 2; n <= 64; n *= 2 {
			try.Trainer.Devices = n
			if g := Memory(try, s, device).Peak().GiB(); g <= tight*device {
				if words != "" {
					words += " and "
				}
				return fmt.Sprintf("%strainer.devices: %d: about %.0f GiB each", words, n, g)
			}
		}
	}
	if r.Native.LoraRank == 0 {
		return "nothing that leaves the recipe as it is; native.lora_rank: 32 trains adapters instead, which is another experiment"
	}
	return "nothing that leaves the recipe as it is: a smaller model, shorter responses, or larger devices"
}
