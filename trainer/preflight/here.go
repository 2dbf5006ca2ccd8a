package preflight

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"alidade/ablation"
	"alidade/trainer/llamafactory"
	"alidade/trainer/native"
	"alidade/trainer/rllm"
	"alidade/trainer/trl"
	"alidade/trainer/verl"
)

// Adapters are the frameworks that the product can drive.
func Adapters() []native.Adapter {
	return []native.Adapter{trl.Adapter{}, verl.Adapter{}, rllm.Adapter{}, llamafactory.Adapter{}}
}

// what the frameworks are, in words.
var what = map[string]string{
	"trl":          "language models on one machine, with TRL",
	"verl":         "language models on one or many machines, with verl",
	"rllm":         "language models with rLLM; the sandbox plays the episodes",
	"llamafactory": "fine-tuning of language models on expert traces, with LLaMA-Factory",
}

// Here is the service of this machine and data folder.
func Here(data string) *Service {
	return New(Config{Adapters: Adapters(), What: what, Python: interpreter(data), Machine: func(devices int) native.Machine {
		m := native.ThisMachine(context.Background(), data)
		slices.Sort(m.DeviceGiB)
		m.DeviceGiB = m.DeviceGiB[:min(devices, len(m.DeviceGiB))] // a run gets some of them: the smallest count
		return m
	}})
}

// On is the service for the devices that list names, GiB each, on this
// machine: a server knows them already, simulated ones too.
func On(data string, list func() []float64) *Service {
	return New(Config{Adapters: Adapters(), What: what, Python: interpreter(data), Machine: func(devices int) native.Machine {
		m := native.Host(data)
		m.DeviceGiB = list()
		slices.Sort(m.DeviceGiB)
		m.DeviceGiB = m.DeviceGiB[:min(devices, len(m.DeviceGiB))]
		return m
	}})
}

// For is the service for another machine than this one.
func For(data string, m native.Machine) *Service {
	return New(Config{Adapters: Adapters(), What: what, Python: interpreter(data), Machine: func(int) native.Machine { return m }})
}

// interpreter finds a kind's Python; a kind without one has none, and its
// probe says so.
func interpreter(data string) func(string) string {
	if abs, err := filepath.Abs(data); err == nil {
		data = abs
	}
	return func(kind string) string {
		p, err := native.Interpreter(ablation.Recipe{Trainer: ablation.Trainer{Kind: kind}}, data)
		if err != nil {
			return ""
		}
		return p
	}
}

// Summary is what was found, in a few words.
func (t Trainer) Summary() string {
	if !t.Ready {
		return t.Problem
	}
	var parts []string
	for _, name := range []string{t.Kind, "torch", "vllm", "python"} {
		if v := t.Versions[name]; v != "" {
			parts = append(parts, name+" "+v)
		}
	}
	return strings.Join(parts, ", ")
}
