package server

import (
	"context"
	"slices"

	"alidade/ablation"
	"alidade/gpu"
	"alidade/trainer/preflight"
	"alidade/web"
)

// gpuMemory lists the memory of the GPUs, GiB.
func gpuMemory(all []gpu.Device) []float64 {
	var out []float64
	for _, d := range all {
		if d.Kind == gpu.KindGPU {
			out = append(out, float64(d.MemoryMiB)/1024)
		}
	}
	return out
}

// trainers hands the preflight to the pages, which do not know it.
type trainers struct {
	service *preflight.Service
	devices func() []gpu.Device
}

// Found implements web.Trainers.
func (t trainers) Found(ctx context.Context) []web.TrainerFound {
	var out []web.TrainerFound
	for _, f := range t.service.Trainers(ctx) {
		out = append(out, web.TrainerFound{Kind: f.Kind, What: f.What, Ready: f.Ready, Found: f.Summary(), How: f.How})
	}
	return out
}

// Preflight implements web.Trainers.
func (t trainers) Preflight(ctx context.Context, r ablation.Recipe) web.Preflight {
	report := t.service.Check(ctx, r)
	out := web.Preflight{DeviceGiB: report.Device, Simulated: slices.ContainsFunc(t.devices(), func(d gpu.Device) bool { return d.Kind == gpu.KindGPU && d.Simulated })}
	for _, v := range report.Verdicts {
		out.Findings = append(out.Findings, web.Finding{Level: v.Level, Key: v.Key, Value: v.Value, Text: v.Text, Fix: v.Fix})
	}
	if report.Memory == nil {
		return out
	}
	out.Assumed = report.Memory.Assumed
	for _, p := range report.Memory.Phases {
		phase := web.MemoryPhase{Name: p.Name}
		for _, x := range p.Parts {
			phase.Parts = append(phase.Parts, web.MemoryPart{Name: x.Name, GiB: x.GiB})
		}
		out.Phases = append(out.Phases, phase)
	}
	return out
}
