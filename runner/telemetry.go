package runner

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"alidade/gpu"
	"alidade/runner/shim"
	"alidade/store"
	"alidade/trainer"
)

// readingsFile keeps the readings of an attempt's devices in its folder.
const readingsFile = "device.jsonl"

// readings accumulates what an attempt's GPUs did.
type readings struct {
	last    time.Time // of the last reading that was stored
	sampled time.Time // the pool's time of it
	power   float64   // W, all devices
	energyJ float64
	begun   bool
	foreign map[string]bool // processes told already
	origin  time.Time       // when the run was first started
	offset  int64           // read of what a cluster's job notes of its GPUs
}

// readDevices stores a reading of the leased GPUs: utilisation, memory, power
// and temperature of each, and the energy so far. Their step is the seconds
// since the run was first started, so that later attempts go on behind.
func (l *life) readDevices(ctx context.Context, now time.Time) {
	if now.Sub(l.readings.last) < l.r.cfg.Timing.Readings {
		return
	}
	l.readings.last = now
	var mine []gpu.Device
	for _, d := range l.r.cfg.Devices.Devices() {
		if d.Run == l.run.ID && d.Kind == gpu.KindGPU {
			mine = append(mine, d)
		}
	}
	if len(mine) == 0 {
		l.readRemote(ctx)
		return
	}
	l.flagForeign(ctx, mine)
	if !l.readings.begun {
		l.resumeReadings(ctx)
	}
	power, sampled := 0.0, time.Time{}
	values := make(map[string]trainer.Float, 5*len(mine)+1)
	for _, d := range mine {
		if d.SampledAt.IsZero() || !d.StaleSince.IsZero() {
			continue // no reading, or an old one
		}
		name := "gpu/" + strings.TrimPrefix(d.ID, gpu.KindGPU) + "/"
		values[name+"util"] = trainer.Float(d.Util)
		values[name+"memory_mib"] = trainer.Float(d.UsedMiB)
		values[name+"power_w"] = trainer.Float(d.PowerW)
		values[name+"temp_c"] = trainer.Float(d.TempC)
		power += d.PowerW
		sampled = d.SampledAt
	}
	if !sampled.After(l.readings.sampled) {
		return
	}
	if !l.readings.sampled.IsZero() {
		took := sampled.Sub(l.readings.sampled).Seconds()
		l.readings.energyJ += took * (power + l.readings.power) / 2
	}
	l.readings.sampled, l.readings.power = sampled, power
	values["gpu/energy_j"] = trainer.Float(l.readings.energyJ)
	l.storeReadings(ctx, now, values)
}

func (l *life) storeReadings(ctx context.Context, now time.Time, values map[string]trainer.Float) {
	e := trainer.Event{V: trainer.Version, Kind: trainer.KindPoints, T: now.UnixMilli(),
		Points: &trainer.Points{Step: l.sinceStart(now), Values: values}}
	l.complain("write readings", appendEvent(filepath.Join(l.attempt.Dir, readingsFile), e))
	l.complain("store readings", l.append(ctx, store.Batch{Run: l.run.ID, Attempt: l.attempt.Number, Own: true, Events: []trainer.Event{e}}))
}

// sinceStart is the seconds since the run's first attempt was started.
func (l *life) sinceStart(now time.Time) int64 {
	return max(0, int64(now.Sub(l.readings.origin).Seconds()))
}

// resumeReadings goes on with what was stored of this attempt before the
// server was started anew; the time between counts with the power of its ends.
func (l *life) resumeReadings(ctx context.Context) {
	l.readings.begun, l.readings.origin = true, l.attempt.StartedAt
	if all, err := l.r.store.Attempts(ctx, l.run.ID); err == nil && len(all) > 0 {
		l.readings.origin = all[0].StartedAt
	}
	var energy float64
	var at time.Time
	path := filepath.Join(l.attempt.Dir, readingsFile)
	info, err := os.Stat(path)
	if err != nil {
		return
	}
	for _, e := range eventsBefore(path, info.Size(), 64<<10) {
		if e.Kind != trainer.KindPoints {
			continue
		}
		if v, ok := e.Points.Values["gpu/energy_j"]; ok {
			energy, at = float64(v), e.Time()
			l.readings.power = 0
			for name, v := range e.Points.Values {
				if strings.HasSuffix(name, "/power_w") {
					l.readings.power += float64(v)
				}
			}
		}
	}
	if !at.IsZero() {
		l.readings.energyJ, l.readings.sampled = energy, at
	}
}

// account writes into the attempt what its devices cost: GPU-seconds are those
// of the lease, whatever the GPUs did.
func (l *life) account(exit *shim.Exit) {
	n := l.gpus()
	if n == 0 || l.attempt.StartedAt.IsZero() {
		return
	}
	from, until := l.attempt.StartedAt, time.Now()
	if _, ok := l.r.cfg.Launcher.(Queuer); ok {
		if exit == nil || exit.Started.IsZero() {
			return // whether it ever held them is not known
		}
		from = exit.Started // the cluster's queue does not count
	}
	if exit != nil && exit.Ended.After(l.attempt.StartedAt) {
		until = exit.Ended
	}
	l.attempt.DeviceS = until.Sub(from).Seconds() * float64(n)
	l.attempt.EnergyJ = l.readings.energyJ
	l.attempt.Cost = l.attempt.DeviceS / 3600 * l.r.cfg.Settings.PricePerGPUHour
}

// flagForeign tells of processes on the run's GPUs that are not the run's.
func (l *life) flagForeign(ctx context.Context, mine []gpu.Device) {
	sweeper, ok := l.r.cfg.Launcher.(Sweeper)
	if !ok {
		return
	}
	var own map[int]bool
	for _, d := range mine {
		for _, p := range d.Processes {
			key := fmt.Sprintf("%s/%d", d.ID, p.PID)
			if p.PID == 0 || l.readings.foreign[key] {
				continue
			}
			if own == nil {
				own = make(map[int]bool)
				for _, pid := range sweeper.Leftovers(ctx, l.handle, 0) {
					own[pid] = true
				}
			}
			if own[p.PID] || !gpu.Seen(p.PID) { // in a container the numbers are the host's: nothing is known
				continue
			}
			if l.readings.foreign == nil {
				l.readings.foreign = make(map[string]bool)
			}
			l.readings.foreign[key] = true
			l.alert(ctx, trainer.Alert{Level: "warn", Code: "foreign-process",
				Text: fmt.Sprintf("%s is leased to this run and is used by %s (process %d) too, which Alidade did not start here", d.ID, p.Name, p.PID)})
		}
	}
}

// kernelLines are the kernel's and the driver's words about the run's devices
// since it was started.
func (l *life) kernelLines() []string {
	var lines []string
	for _, f := range l.r.cfg.Devices.Faults() {
		for _, d := range l.lease.Devices {
			if f.Device == d.ID && f.At.After(l.attempt.StartedAt) {
				lines = append(lines, f.Text)
			}
		}
	}
	return lines
}

// heedFaults stores and tells what the pool has put away by itself.
func (r *Runner) heedFaults(ctx context.Context) {
	if names := r.cfg.Devices.Names(); !maps.Equal(names, r.saved.get().Names) {
		if err := r.saved.change(func(q *queueState) { q.Names = names }); err != nil {
			r.log.Error("keep the names of devices", "err", err)
		}
	}
	for _, f := range r.cfg.Devices.Fresh() {
		key := r.cfg.Devices.Key(f.Device)
		if err := r.saved.change(func(q *queueState) { q.Quarantined[key] = f.Text }); err != nil {
			r.log.Error("quarantine", "device", f.Device, "err", err)
		}
		r.notice(ctx, trainer.Alert{Level: "bad", Code: "device-fault", Text: fmt.Sprintf("%s is put away: %s. Take it into use again when it is repaired", f.Device, f.Text)})
	}
}

// quarantine puts a device away until a person lifts it, also over restarts.
func (r *Runner) quarantine(d gpu.Device, why string) {
	if err := r.Quarantine(context.Background(), d.ID, why); err != nil {
		r.log.Error("quarantine", "device", d.ID, "err", err)
	}
}

// Quarantine puts a device away: no run gets it until [Runner.Unquarantine].
func (r *Runner) Quarantine(_ context.Context, id, why string) error {
	key, err := r.cfg.Devices.Quarantine(id, why)
	if err != nil {
		return err
	}
	return r.saved.change(func(q *queueState) { q.Quarantined[key] = why })
}

// Unquarantine gives a device back to the scheduler.
func (r *Runner) Unquarantine(_ context.Context, id string) error {
	key, err := r.cfg.Devices.Unquarantine(id)
	if err != nil {
		return err
	}
	r.Wake()
	return r.saved.change(func(q *queueState) { delete(q.Quarantined, key) })
}
