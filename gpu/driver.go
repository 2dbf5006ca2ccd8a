package gpu

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A driver reads the GPUs of this machine: NVIDIA's library, or nvidia-smi
// where that cannot be opened.
type driver interface {
	// read returns within the pool's timeout, whatever the GPUs do.
	read(ctx context.Context) (reading, error)
}

// A reading is all GPUs at one moment. A device that answers no more is in it
// with its id and lost set.
type reading struct {
	devices []Device
	lost    map[string]string // device id → the driver's words
	faults  []Fault           // new ones
}

// fatalXIDs are the faults after which a GPU cannot be used before a reset or
// a repair, with NVIDIA's meaning. Others are the program's own, such as 13
// and 31, or pass.
var fatalXIDs = map[int]string{
	46: "the GPU stopped processing", 48: "a memory error of two bits", 62: "the GPU's power manager halted",
	64: "a memory row could not be replaced", 74: "the link between GPUs failed", 79: "the GPU has fallen off the bus",
	95: "a memory error that was not contained", 119: "the GPU's system processor does not answer", 120: "the GPU's system processor failed",
	140: "a memory error that could not be recovered", 143: "the GPU could not be set up",
}

// xidFault puts an XID into words.
func xidFault(device string, xid int, text string, at time.Time) Fault {
	why, fatal := fatalXIDs[xid]
	if text == "" {
		text = fmt.Sprintf("NVRM: Xid %d on %s", xid, device)
	}
	if why != "" {
		text += " (" + why + ")"
	}
	return Fault{Device: device, XID: xid, Text: text, Fatal: fatal, At: at}
}

// parseXID reads a line of the kernel's log such as
// "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.".
func parseXID(line string) (bus string, xid int, ok bool) {
	_, rest, found := strings.Cut(line, "NVRM: Xid (PCI:")
	if !found {
		return "", 0, false
	}
	bus, rest, found = strings.Cut(rest, "):")
	if !found {
		return "", 0, false
	}
	digits := strings.TrimSpace(rest)
	if i := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		digits = digits[:i]
	}
	xid, err := strconv.Atoi(digits)
	return busOf(bus), xid, err == nil
}

// busOf brings a PCI address into one form: "3b:00" of "00000000:3B:00.0".
func busOf(address string) string {
	parts := strings.Split(strings.ToLower(strings.TrimSpace(address)), ":")
	if len(parts) < 2 {
		return strings.ToLower(address)
	}
	slot, _, _ := strings.Cut(parts[len(parts)-1], ".")
	return parts[len(parts)-2] + ":" + slot
}

// kernelLog reads new lines of the kernel's log, where that is allowed.
type kernelLog struct {
	file *os.File
}

// openKernelLog begins at the end: earlier faults were told at their time.
func openKernelLog(path string) *kernelLog {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	if _, err := f.Seek(0, 2); err != nil {
		_ = f.Close()
		return nil
	}
	return &kernelLog{f}
}

// read returns the faults of the devices by bus that came since.
func (k *kernelLog) read(buses map[string]string) []Fault {
	if k == nil {
		return nil
	}
	var faults []Fault
	buf := make([]byte, 8192)
	for range 10_000 {
		n, err := syscall.Read(int(k.file.Fd()), buf) // one record a call
		if err == syscall.EPIPE {
			continue // some were overwritten before they were read
		}
		if err != nil || n <= 0 {
			return faults
		}
		for line := range strings.Lines(string(buf[:n])) {
			bus, xid, ok := parseXID(line)
			if device := buses[bus]; ok && device != "" {
				_, text, _ := strings.Cut(strings.TrimSpace(line), ";") // before it are the record's numbers
				if text == "" {
					text = strings.TrimSpace(line)
				}
				faults = append(faults, xidFault(device, xid, text, time.Now()))
			}
		}
	}
	return faults
}

// Seen reports whether a process with this id can be seen from here: ids that
// a driver gives inside a container may be the host's.
func Seen(pid int) bool {
	_, err := os.Stat("/proc/" + strconv.Itoa(pid))
	return pid > 0 && err == nil
}

// mostFaults bounds the faults that a pool remembers.
const mostFaults = 1000

// take puts a reading in the place of the last one. Devices that were there
// and are missing, lost ones and those with a fatal fault are put away. The
// caller holds mu.
func (p *Pool) take(r reading, at time.Time) {
	p.relabel(&r)
	seen := make(map[string]bool, len(r.devices))
	next := slices.DeleteFunc(slices.Clone(p.devices), func(d Device) bool { return d.Kind == KindGPU && !d.Simulated })
	for _, d := range r.devices {
		d.SampledAt = at
		if was, ok := p.known(d.ID, d.UUID); ok && d.ECC > was.ECC && d.UUID != "" {
			p.fault(Fault{Device: d.ID, Text: fmt.Sprintf("%d new memory errors on %s that could not be corrected", d.ECC-was.ECC, d.ID), Fatal: true, At: at})
		}
		seen[d.ID] = true
		next = append(next, d)
	}
	for _, d := range p.devices {
		if d.Kind != KindGPU || d.Simulated || seen[d.ID] {
			continue
		}
		d.Processes = nil
		next = append(next, d) // vanished: people must see that it was there
		why := "it has vanished: the driver does not list it any more"
		if words, ok := r.lost[d.ID]; ok {
			why = "it is lost: " + words
		}
		if _, away := p.away[keyOf(d)]; !away {
			p.fault(Fault{Device: d.ID, Text: d.ID + ": " + why, Fatal: true, At: at})
		}
	}
	for id, words := range r.lost {
		if _, ok := p.known(id, ""); !ok && !seen[id] { // lost before it was ever read
			next = append(next, Device{ID: id, Kind: KindGPU, Name: "unknown GPU"})
			p.fault(Fault{Device: id, Text: id + ": it is lost: " + words, Fatal: true, At: at})
		}
	}
	p.devices = next
	for _, f := range r.faults {
		p.fault(f)
	}
}

// relabel keeps a device's id for as long as this process lives: when one
// vanishes the driver gives the ones behind it smaller numbers, and leases go
// by id. The caller holds mu.
func (p *Pool) relabel(r *reading) {
	used := make(map[string]bool, len(p.ids))
	for _, id := range p.ids {
		used[id] = true
	}
	renamed := make(map[string]string)
	for i := range r.devices {
		d := &r.devices[i]
		if d.UUID == "" {
			continue
		}
		id, ok := p.ids[d.UUID]
		for n := 0; !ok; n++ {
			if id = d.ID; n > 0 {
				id = KindGPU + strconv.Itoa(n-1)
			}
			if ok = !used[id]; ok {
				p.ids[d.UUID], used[id] = id, true
			}
		}
		renamed[d.ID], d.ID = id, id
	}
	for i, f := range r.faults {
		if id, ok := renamed[f.Device]; ok {
			r.faults[i].Device = id
		}
	}
}

// known finds a device of the last reading. The caller holds mu.
func (p *Pool) known(id, uuid string) (Device, bool) {
	for _, d := range p.devices {
		if d.ID == id && (uuid == "" || d.UUID == "" || d.UUID == uuid) {
			return d, true
		}
	}
	return Device{}, false
}

// fault remembers a fault, and puts its device away when it is fatal. The
// caller holds mu.
func (p *Pool) fault(f Fault) {
	p.faults = append(p.faults, f)
	if len(p.faults) > mostFaults {
		p.faults = slices.Delete(p.faults, 0, mostFaults/2)
	}
	p.log.Warn("gpu fault", "component", "gpu", "device", f.Device, "xid", f.XID, "fatal", f.Fatal, "text", f.Text)
	if !f.Fatal {
		return
	}
	key := f.Device
	if d, ok := p.known(f.Device, ""); ok {
		key = keyOf(d)
	}
	if _, away := p.away[key]; !away {
		p.away[key] = f.Text
		p.fresh = append(p.fresh, f)
	}
}

// keyOf names a device over renumbering and restarts.
func keyOf(d Device) string {
	if d.UUID != "" {
		return d.UUID
	}
	return d.ID
}

// Faults returns what drivers and the kernel said of the GPUs since the pool
// was made, oldest first.
func (p *Pool) Faults() []Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.faults)
}

// Fresh returns the faults that put a device away since the last call.
func (p *Pool) Fresh() []Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.fresh
	p.fresh = nil
	return out
}

// Quarantine puts a device away, with the reason that is shown. It returns the
// name to store it under, which survives renumbering.
func (p *Pool) Quarantine(id, why string) (key string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d, ok := p.known(id, "")
	if !ok {
		return "", fmt.Errorf("device %q: there is none", id)
	}
	p.away[keyOf(d)] = why
	return keyOf(d), nil
}

// Unquarantine takes a device into use again.
func (p *Pool) Unquarantine(id string) (key string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d, ok := p.known(id, "")
	if !ok {
		return "", fmt.Errorf("device %q: there is none", id)
	}
	delete(p.away, keyOf(d))
	return keyOf(d), nil
}

// PutAway takes over what was quarantined before a restart, by the names that
// [Pool.Quarantine] gave.
func (p *Pool) PutAway(away map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, why := range away {
		p.away[key] = why
	}
}

// Names returns which id each GPU has, by uuid; [Pool.Name] of a later pool
// keeps them, so that leases by id mean the same devices after a restart.
func (p *Pool) Names() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.ids)
}

// Name takes over the names of an earlier pool. It is for a pool that has read
// nothing yet.
func (p *Pool) Name(ids map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.Copy(p.ids, ids)
}

// Key names a device over restarts.
func (p *Pool) Key(id string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d, ok := p.known(id, ""); ok {
		return keyOf(d)
	}
	return id
}
