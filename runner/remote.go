package runner

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"alidade/gpu"
	"alidade/runner/shim"
	"alidade/store"
	"alidade/trainer"
)

// longestGap bounds what is integrated between two readings of a node: over a
// longer silence nothing is known.
const longestGap = time.Minute

// readRemote stores what the attempt's shim has noted about the GPUs of its
// node since the last look; for a cluster's job, whose node this machine cannot
// see. Readings of a time without a server come late and are all there.
func (l *life) readRemote(ctx context.Context) {
	if _, ok := l.r.cfg.Launcher.(Queuer); !ok {
		return
	}
	for {
		all, next, err := shim.ReadReadings(l.attempt.Dir, l.readings.offset)
		l.complain("read the node's readings", err)
		if err != nil || next == l.readings.offset {
			return
		}
		if !l.readings.begun {
			l.resumeReadings(ctx)
			l.readings.origin = l.firstStart(ctx)
		}
		var events []trainer.Event
		for _, r := range all {
			if r.At.After(l.readings.sampled) {
				events = append(events, l.integrate(r))
			}
		}
		if len(events) > 0 && !l.storeRemote(ctx, events) {
			return // tried again from the same offset
		}
		l.readings.offset = next
	}
}

// firstStart is when the run's first attempt was started on its node; the
// cluster's queue does not count.
func (l *life) firstStart(ctx context.Context) time.Time {
	all, err := l.r.store.Attempts(ctx, l.run.ID)
	if err != nil || len(all) == 0 {
		return l.attempt.StartedAt
	}
	for _, a := range all {
		if h, err := shim.ReadHandle(l.r.attemptDir(l.run.ID, a.Number)); err == nil && h.PID != 0 {
			return h.Started
		}
	}
	return all[0].StartedAt
}

// integrate turns a reading into points, with the energy so far.
func (l *life) integrate(r shim.Readings) trainer.Event {
	power := 0.0
	values := make(map[string]trainer.Float, 4*len(r.GPUs)+1)
	for _, g := range r.GPUs {
		name := "gpu/" + strings.TrimPrefix(g.ID, gpu.KindGPU) + "/"
		values[name+"util"] = trainer.Float(g.Util)
		values[name+"memory_mib"] = trainer.Float(g.MemoryMiB)
		values[name+"power_w"] = trainer.Float(g.PowerW)
		values[name+"temp_c"] = trainer.Float(g.TempC)
		power += g.PowerW
	}
	if took := r.At.Sub(l.readings.sampled); !l.readings.sampled.IsZero() && took <= longestGap {
		l.readings.energyJ += took.Seconds() * (power + l.readings.power) / 2
	}
	l.readings.sampled, l.readings.power = r.At, power
	values["gpu/energy_j"] = trainer.Float(l.readings.energyJ)
	return trainer.Event{V: trainer.Version, Kind: trainer.KindPoints, T: r.At.UnixMilli(),
		Points: &trainer.Points{Step: l.sinceStart(r.At), Values: values}}
}

func (l *life) storeRemote(ctx context.Context, events []trainer.Event) bool {
	err := l.append(ctx, store.Batch{Run: l.run.ID, Attempt: l.attempt.Number, Own: true, Events: events})
	l.complain("store readings", err)
	if err != nil {
		return false
	}
	for _, e := range events {
		l.complain("write readings", appendEvent(filepath.Join(l.attempt.Dir, readingsFile), e))
	}
	return true
}

// gpus is how many GPUs the attempt holds: those leased here, or those
// asked of a cluster.
func (l *life) gpus() int {
	if _, ok := l.r.cfg.Launcher.(Queuer); ok {
		if l.want.Kind == gpu.KindGPU {
			return l.want.N
		}
		return 0
	}
	n := 0
	for _, d := range l.lease.Devices {
		if d.Kind == gpu.KindGPU {
			n++
		}
	}
	return n
}
