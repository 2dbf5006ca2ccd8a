package server

import (
	"math"

	"alidade/gpu"
	"alidade/web"
)

// devices turns the runner's view of the devices into the pages'.
func devices(in []gpu.Device) []web.Device {
	out := make([]web.Device, len(in))
	for i, d := range in {
		if d.Simulated || d.Kind == gpu.KindCPU && d.SampledAt.IsZero() {
			d.Util = math.NaN() // nobody measures a slot alone, or what is not there
		}
		out[i] = web.Device{
			ID: d.ID, Kind: d.Kind, Name: d.Name, MemoryMiB: int64(d.MemoryMiB), UsedMiB: int64(d.UsedMiB), Util: d.Util, PowerW: d.PowerW,
			TempC: d.TempC, Holder: d.Holder, Run: d.Run, Simulated: d.Simulated, Free: d.Free, Note: d.Note,
			Quarantined: d.Quarantined, ECC: d.ECC, StaleSince: d.StaleSince,
		}
		for _, p := range d.Processes {
			out[i].Processes = append(out[i].Processes, web.Process{PID: p.PID, Name: p.Name, UsedMiB: p.UsedMiB})
		}
	}
	return out
}
