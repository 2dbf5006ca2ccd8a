package gpu

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"alidade/ablation"
)

// unseenMiB is the memory use from which a GPU without a listed process is
// taken for held: in a container the processes of others are not listed.
const unseenMiB = 1024

// Config says which devices there are. The zero value is one CPU slot per
// core and the GPUs that nvidia-smi finds.
type Config struct {
	Spec        string        // "auto", "cpu", "cpu:N", "sim:8xA100-80G"; "" = auto
	CPUSlots    int           // 0 = one per core
	SMI         string        // path of nvidia-smi; "" = looked up in PATH
	SampleEvery time.Duration // 0 = 2 s
	Timeout     time.Duration // of one reading; 0 = 5 s
	NoLibrary   bool          // do not try NVIDIA's library, only nvidia-smi
	Logger      *slog.Logger  // nil = silent
}

// A Pool is the devices of one node and their leases. It is safe for
// concurrent use; no method but [Pool.Refresh] and [Pool.Run] does I/O.
type Pool struct {
	log         *slog.Logger
	smi         *smi // nil = not installed
	sampleEvery time.Duration
	timeout     time.Duration
	maybe       bool // a driver may be installed
	noLibrary   bool

	sampling sync.Mutex // one reading at a time
	driver   driver     // chosen at the first reading; guarded by sampling
	why      error      // the library is not used because

	mu       sync.Mutex
	devices  []Device          // without lease fields
	ids      map[string]string // uuid → id
	away     map[string]string // quarantined: key → why
	faults   []Fault
	fresh    []Fault                   // that put a device away and were not fetched yet
	leases   map[string]ablation.RunID // by device id; may name a device not seen yet
	released map[string]time.Time      // GPUs given back: not free before a newer reading
	sampled  time.Time                 // last good reading of the GPUs
	failing  error                     // of the last reading; nil = good
}

// New makes a pool. CPU slots and simulated GPUs are there at once; real GPUs
// appear with the first [Pool.Refresh]. A device option that cannot be read
// is an error that says what is allowed.
func New(c Config) (*Pool, error) {
	top, err := parseTopology(c.Spec, c.CPUSlots)
	if err != nil {
		return nil, err
	}
	p := &Pool{
		log:         c.Logger,
		sampleEvery: c.SampleEvery,
		devices:     append(cpuSlots(top.cpus), top.simulated...),
		leases:      make(map[string]ablation.RunID),
		released:    make(map[string]time.Time),
		away:        make(map[string]string),
		ids:         make(map[string]string),
		timeout:     c.Timeout,
		noLibrary:   c.NoLibrary,
	}
	if p.timeout <= 0 {
		p.timeout = 5 * time.Second
	}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	if p.sampleEvery <= 0 {
		p.sampleEvery = 2 * time.Second
	}
	if top.nvidia {
		_, err := os.Stat("/dev/nvidiactl")
		p.maybe = err == nil
		if path, err := findSMI(c.SMI); err == nil {
			p.maybe = true
			p.smi = &smi{path: path, timeout: p.timeout, busy: make(chan struct{}, 1)}
		}
	}
	return p, nil
}

// Run keeps the GPU readings fresh until ctx is done. Without a driver it
// only waits.
func (p *Pool) Run(ctx context.Context) {
	if !p.maybe {
		<-ctx.Done()
		return
	}
	ticker := time.NewTicker(p.sampleEvery)
	defer ticker.Stop()
	var last string
	for {
		var text string
		if err := p.Refresh(ctx); err != nil && ctx.Err() == nil {
			text = err.Error()
		}
		if text != "" && text != last {
			p.log.Warn("gpu readings are missing", "component", "gpu", "err", text)
		}
		last = text
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Refresh reads the GPUs once, within the pool's timeout. When the reading
// fails the last one stays, marked stale, and its devices are not free. A
// call made while another is under way returns at once.
func (p *Pool) Refresh(ctx context.Context) error {
	if !p.maybe || !p.sampling.TryLock() {
		return nil
	}
	defer p.sampling.Unlock()
	began := time.Now() // a lease given back after this is not covered by the reading
	var r reading
	d, err := p.choose()
	if err == nil {
		r, err = d.read(ctx)
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	p.failing = err
	if err != nil {
		return err
	}
	p.sampled = began
	p.take(r, began)
	return nil
}

// choose picks the driver: the library, or nvidia-smi where that cannot be
// opened. The caller holds sampling.
func (p *Pool) choose() (driver, error) {
	if p.driver != nil {
		return p.driver, nil
	}
	if !p.noLibrary {
		if d, err := newLibrary(p.timeout); err == nil {
			p.driver = d
			return d, nil
		} else {
			p.why = err
		}
	}
	if p.smi == nil {
		return nil, fmt.Errorf("%w; %w", p.why, errNoSMI)
	}
	if p.smi.kernel == nil {
		p.smi.kernel = openKernelLog("/dev/kmsg")
	}
	p.driver = p.smi
	return p.driver, nil
}

// Devices returns all devices with their holders, CPU slots first.
func (p *Pool) Devices() []Device {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.view()
}

// Acquire leases what want asks for, all on this node, or nothing. It prefers
// the smallest devices that fit, in device order. The error says what is
// missing ("waits for 4 GPUs of 80 GiB: 2 free"); it is [ErrNever] when even
// the idle node could not give it.
func (p *Pool) Acquire(run ablation.RunID, want Request) (Lease, error) {
	if want.N < 1 || (want.Kind != KindCPU && want.Kind != KindGPU) {
		return Lease{}, fmt.Errorf("devices: %d × %q: want 1 or more of cpu or gpu: %w", want.N, want.Kind, ErrNever)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var free []Device
	fit := 0
	for _, d := range p.view() {
		if !want.Fits(d) {
			continue
		}
		fit++
		if d.Free {
			free = append(free, d)
		}
	}
	if fit < want.N && !p.unsure(want.Kind) {
		return Lease{}, fmt.Errorf("needs %s: this machine has %d: %w", want, fit, ErrNever)
	}
	if len(free) < want.N {
		return Lease{}, fmt.Errorf("waits for %s: %d free", want, len(free))
	}
	lease := Lease{Run: run, Devices: smallest(free, want.N)}
	for _, d := range lease.Devices {
		p.leases[d.ID] = run
	}
	return lease, nil
}

// Take leases the named devices, which a scheduler has chosen among the free
// ones, or none: the error names the first that is not free any more.
func (p *Pool) Take(run ablation.RunID, ids []string) (Lease, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	lease := Lease{Run: run}
	for _, d := range p.view() {
		if !slices.Contains(ids, d.ID) {
			continue
		}
		if !d.Free {
			return Lease{}, fmt.Errorf("take %s for run %d: it is not free any more", d.ID, run)
		}
		lease.Devices = append(lease.Devices, d)
	}
	if len(lease.Devices) != len(ids) {
		return Lease{}, fmt.Errorf("take %s for run %d: not all are there any more", strings.Join(ids, ", "), run)
	}
	for _, d := range lease.Devices {
		p.leases[d.ID] = run
	}
	return lease, nil
}

// Reserve leases the named devices for a run found alive at start. A GPU that
// was not seen yet is reserved too. The error names the device and the run
// that holds it already; nothing is leased then.
func (p *Pool) Reserve(run ablation.RunID, ids []string) (Lease, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		if by, held := p.leases[id]; held && by != run {
			return Lease{}, fmt.Errorf("reserve %s for run %d: run %d holds it", id, run, by)
		}
	}
	lease := Lease{Run: run}
	for _, id := range ids {
		p.leases[id] = run
		d := Device{ID: id}
		for _, known := range p.devices {
			if known.ID == id {
				d = known
			}
		}
		lease.Devices = append(lease.Devices, d)
	}
	return lease, nil
}

// Release gives the lease's devices back. Releasing twice, or what another
// run holds by now, changes nothing.
func (p *Pool) Release(l Lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range l.Devices {
		if p.leases[d.ID] != l.Run {
			continue
		}
		delete(p.leases, d.ID)
		if p.maybe && strings.HasPrefix(d.ID, KindGPU) {
			p.released[d.ID] = time.Now()
		}
	}
}

// Capacity returns how many devices of a kind there are, free or not.
func (p *Pool) Capacity(kind string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, d := range p.devices {
		if d.Kind == kind {
			n++
		}
	}
	return n
}

// HasGPUs reports whether GPUs can be there: seen, simulated, or a driver is
// installed whose first reading has not come yet.
func (p *Pool) HasGPUs() bool {
	p.mu.Lock()
	unsure := p.unsure(KindGPU)
	p.mu.Unlock()
	return unsure || p.Capacity(KindGPU) > 0
}

// Unsure reports whether devices of the kind may be there that were not seen
// yet.
func (p *Pool) Unsure(kind string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unsure(kind)
}

// unsure reports whether devices of the kind may exist that were never seen.
func (p *Pool) unsure(kind string) bool {
	return kind == KindGPU && p.maybe && p.sampled.IsZero()
}

// view fills in leases, holders and freedom. The caller holds mu.
func (p *Pool) view() []Device {
	out := make([]Device, len(p.devices))
	for i, d := range p.devices {
		if run, ok := p.leases[d.ID]; ok {
			d.Run, d.Holder = run, "run "+strconv.FormatInt(int64(run), 10)
		} else if d.Kind == KindCPU || d.Simulated {
			d.Free = true
		} else {
			p.judge(&d)
		}
		if why, away := p.away[keyOf(d)]; away {
			d.Quarantined, d.Free, d.Note = true, false, "put away: "+why
		}
		if d.Kind == KindGPU && !d.Simulated && p.failing != nil {
			d.StaleSince = p.sampled
		}
		out[i] = d
	}
	return out
}

// judge decides whether an unleased GPU is free. Unsure means not free.
func (p *Pool) judge(d *Device) {
	procs := d.Processes
	switch {
	case p.failing != nil:
		d.Note = "no fresh reading: " + p.failing.Error()
	case d.Note != "": // MIG
	case len(procs) > 0:
		d.Holder = holders(procs)
		d.Note = "a process that Alidade did not start holds a context"
	case d.UsedMiB > unseenMiB:
		d.Holder = "unknown"
		d.Note = fmt.Sprintf("%d MiB are in use by a process that cannot be seen", d.UsedMiB)
	case !p.sampled.After(p.released[d.ID]):
		d.Note = "just given back: waits for the next reading"
	default:
		d.Free = true
	}
}

func holders(procs []Process) string {
	names := make([]string, len(procs))
	for i, pr := range procs {
		names[i] = fmt.Sprintf("%s (pid %d)", pr.Name[strings.LastIndex(pr.Name, "/")+1:], pr.PID)
	}
	return strings.Join(names, ", ")
}
