package runner

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"alidade/ablation"
	"alidade/gpu"
)

// A wish is a queued run that may start now, if devices can be had.
type wish struct {
	run  ablation.RunID
	want gpu.Request
	most time.Duration // it has ended by then, going by its history; 0 = unknown
}

// A reservation keeps devices for the run that waits first for its kind. What
// becomes free of them is kept until all are there, so that no stream of
// small requests can starve a large one.
type reservation struct {
	run      ablation.RunID
	want     gpu.Request
	devices  map[string]bool
	promised time.Time // the first estimate of when all are free; zero = unknown
}

// A plan gives devices to wishes in one pass over the queue. It changes
// nothing by itself and is not safe for concurrent use.
type plan struct {
	now      time.Time
	devices  []gpu.Device                                 // as the pool sees them
	unsure   func(kind string) bool                       // devices of the kind may be there that were not seen yet
	ends     func(ablation.RunID) (at time.Time, ok bool) // when a live run has ended, with a margin
	reserved map[string]*reservation                      // by kind; goes on from the last pass

	taken   map[string]ablation.RunID
	blocked map[string]*reservation // reservations of this pass
	refused map[gpu.Request]string  // what could not be given; devices only become fewer in a pass
}

func newPlan(now time.Time, devices []gpu.Device, reserved map[string]*reservation) *plan {
	if reserved == nil {
		reserved = make(map[string]*reservation)
	}
	return &plan{
		now: now, devices: devices, reserved: reserved,
		unsure: func(string) bool { return false }, ends: func(ablation.RunID) (time.Time, bool) { return time.Time{}, false },
		taken: make(map[string]ablation.RunID), blocked: make(map[string]*reservation), refused: make(map[gpu.Request]string),
	}
}

// consider gives a wish its devices, all of them or none, or says in words
// what it waits for. Wishes come in the order of the queue. The first that
// must wait for a kind gets a reservation; later ones are back-filled around
// it: onto devices that it does not need, or onto those for a time in which
// it could not start anyway.
func (p *plan) consider(w wish) (ids []string, reason string) {
	head := p.blocked[w.want.Kind]
	if head != nil && w.most == 0 {
		if reason, ok := p.refused[w.want]; ok {
			return nil, reason
		}
	}
	fit, free := p.candidates(w.want)
	if len(fit) < w.want.N && !p.unsure(w.want.Kind) {
		return nil, fmt.Sprintf("needs %s: this machine has %d: %s", w.want, len(fit), gpu.ErrNever)
	}
	allowed := free
	if head != nil {
		allowed = slices.DeleteFunc(slices.Clone(free), func(d gpu.Device) bool {
			return head.devices[d.ID] && !p.backfills(w, head)
		})
	}
	if len(allowed) >= w.want.N {
		ids := p.pick(allowed, w.want.N, head)
		for _, id := range ids {
			p.taken[id] = w.run
		}
		return ids, ""
	}
	if head == nil {
		p.reserve(w, fit, free)
		return nil, fmt.Sprintf("waits for %s: %d free", w.want, len(free))
	}
	reason = fmt.Sprintf("waits behind run %d for %s", head.run, w.want)
	if w.most == 0 {
		p.refused[w.want] = reason
	}
	return nil, reason
}

// candidates lists the devices that a request could ever get here, and those
// that are free now.
func (p *plan) candidates(want gpu.Request) (fit, free []gpu.Device) {
	for _, d := range p.devices {
		if !want.Fits(d) {
			continue
		}
		fit = append(fit, d)
		if _, gone := p.taken[d.ID]; d.Free && !gone {
			free = append(free, d)
		}
	}
	return fit, free
}

// backfills reports whether w would be done with a reserved device before its
// reservation needs it. Once the promised time has passed nothing is
// back-filled any more: an estimate that was wrong delays a run only once.
func (p *plan) backfills(w wish, head *reservation) bool {
	return w.most > 0 && !head.promised.IsZero() && !p.now.Add(w.most).After(head.promised)
}

// pick takes n devices: those nobody has reserved first, then the smallest.
func (p *plan) pick(allowed []gpu.Device, n int, head *reservation) []string {
	rank := func(d gpu.Device) int {
		if head != nil && head.devices[d.ID] {
			return 1
		}
		return 0
	}
	order := slices.Clone(allowed)
	slices.SortStableFunc(order, func(a, b gpu.Device) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.MemoryMiB, b.MemoryMiB))
	})
	chosen := make(map[string]bool, n)
	for _, d := range order[:n] {
		chosen[d.ID] = true
	}
	ids := make([]string, 0, n)
	for _, d := range allowed { // in device order
		if chosen[d.ID] {
			ids = append(ids, d.ID)
		}
	}
	return ids
}

// reserve keeps the devices that are free first for a wish that must wait.
func (p *plan) reserve(w wish, fit, free []gpu.Device) {
	old := p.reserved[w.want.Kind]
	if old != nil && old.run != w.run {
		old = nil
	}
	isFree := make(map[string]bool, len(free))
	for _, d := range free {
		isFree[d.ID] = true
	}
	type choice struct {
		id   string
		rank int
		at   time.Time
		mem  int64
	}
	choices := make([]choice, 0, len(fit))
	for _, d := range fit {
		c := choice{id: d.ID, mem: d.MemoryMiB}
		at, known := p.endOf(d)
		switch {
		case isFree[d.ID] && old != nil && old.devices[d.ID]:
		case isFree[d.ID]:
			c.rank = 1
		case known:
			c.rank, c.at = 2, at
		case d.Run != 0 || p.taken[d.ID] != 0:
			c.rank = 3
		default: // held by something that Alidade did not start
			c.rank = 4
		}
		choices = append(choices, c)
	}
	slices.SortStableFunc(choices, func(a, b choice) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), a.at.Compare(b.at), cmp.Compare(a.mem, b.mem))
	})
	res := &reservation{run: w.run, want: w.want, devices: make(map[string]bool, w.want.N)}
	certain := len(choices) >= w.want.N
	for _, c := range choices[:min(w.want.N, len(choices))] {
		res.devices[c.id] = true
		certain = certain && c.rank <= 2
		if c.at.After(res.promised) {
			res.promised = c.at
		}
	}
	if !certain {
		res.promised = time.Time{}
	}
	if old != nil && !old.promised.IsZero() && (res.promised.IsZero() || res.promised.After(old.promised)) {
		res.promised = old.promised // a promise is never put off
	}
	p.blocked[w.want.Kind] = res
}

// endOf tells when a device is free again, where that can be told.
func (p *plan) endOf(d gpu.Device) (time.Time, bool) {
	run := d.Run
	if by := p.taken[d.ID]; by != 0 {
		run = by
	}
	if run == 0 {
		return time.Time{}, false
	}
	return p.ends(run)
}
