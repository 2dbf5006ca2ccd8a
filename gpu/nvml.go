//go:build cgo && linux

package gpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// library reads the GPUs through NVIDIA's management library. After a failed
// Init no other call is made: the dynamic linker would end the process. A call
// that hangs is left behind at the deadline; no other is made before it is
// back.
type library struct {
	lib     nvml.Interface
	timeout time.Duration
	busy    chan struct{} // holds one token while calls are under way
	events  nvml.EventSet // nil = the driver gives none
	hears   map[string]bool
}

// openLibrary loads the library and starts it; an error says why it is not
// there.
func openLibrary(lib nvml.Interface, timeout time.Duration) (*library, error) {
	if lib == nil {
		lib = nvml.New()
	}
	if ret := lib.Init(); ret != nvml.SUCCESS {
		return nil, fmt.Errorf("nvml: %s", words(ret))
	}
	return &library{lib: lib, timeout: timeout, busy: make(chan struct{}, 1), hears: make(map[string]bool)}, nil
}

// words of an error code without asking a library that is not there.
func words(ret nvml.Return) string {
	switch ret {
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return "the library libnvidia-ml.so.1 is not installed"
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return "the driver is not loaded"
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return "library and driver differ in version: reboot after the upgrade"
	case nvml.ERROR_NO_PERMISSION:
		return "no permission for the device files"
	case nvml.ERROR_GPU_IS_LOST:
		return "GPU is lost"
	case nvml.ERROR_RESET_REQUIRED:
		return "GPU requires a reset"
	}
	return "error " + strconv.Itoa(int(ret))
}

func (l *library) read(ctx context.Context) (reading, error) {
	type result struct {
		r   reading
		err error
	}
	select {
	case l.busy <- struct{}{}:
	default:
		return reading{}, errors.New("nvml hangs: an earlier call has not come back")
	}
	done := make(chan result, 1)
	go func() { // may outlive the call when the driver does not come back
		r, err := l.all()
		<-l.busy
		done <- result{r, err}
	}()
	select {
	case res := <-done:
		return res.r, res.err
	case <-ctx.Done():
		return reading{}, ctx.Err()
	case <-time.After(l.timeout):
		return reading{}, fmt.Errorf("nvml gave no answer in %s", l.timeout)
	}
}

// all reads every device. One that is lost does not hide the others.
func (l *library) all() (reading, error) {
	n, ret := l.lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return reading{}, fmt.Errorf("nvml: count devices: %s", words(ret))
	}
	r := reading{lost: make(map[string]string)}
	ids := make(map[string]string, n)
	for i := range n {
		id := KindGPU + strconv.Itoa(i)
		h, ret := l.lib.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			r.lost[id] = words(ret)
			continue
		}
		d, lost := l.device(id, h)
		if lost != "" {
			r.lost[id] = lost
			continue
		}
		ids[d.UUID] = id
		r.devices = append(r.devices, d)
		l.register(d.UUID, h)
	}
	r.faults = l.heard(ids)
	return r, nil
}

// device reads one GPU; lost says in the driver's words that it answers no
// more. A field that the device does not have stays zero.
func (l *library) device(id string, h nvml.Device) (d Device, lost string) {
	d = Device{ID: id, Kind: KindGPU}
	check := func(ret nvml.Return) bool {
		if ret == nvml.ERROR_GPU_IS_LOST || ret == nvml.ERROR_RESET_REQUIRED {
			lost = words(ret)
		}
		return ret == nvml.SUCCESS
	}
	uuid, ret := h.GetUUID()
	if check(ret) {
		d.UUID = uuid
	}
	if name, ret := h.GetName(); check(ret) {
		d.Name = name
	}
	if lost != "" {
		return d, lost
	}
	if m, ret := h.GetMemoryInfo(); check(ret) {
		d.MemoryMiB, d.UsedMiB = int64(m.Total>>20), int64(m.Used>>20)
	}
	if u, ret := h.GetUtilizationRates(); check(ret) {
		d.Util = float64(u.Gpu) / 100
	}
	if mw, ret := h.GetPowerUsage(); check(ret) {
		d.PowerW = float64(mw) / 1000
	}
	if t, ret := h.GetTemperature(nvml.TEMPERATURE_GPU); check(ret) {
		d.TempC = float64(t)
	}
	if n, ret := h.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC); check(ret) {
		d.ECC = int64(n)
	}
	if mode, _, ret := h.GetMigMode(); check(ret) && mode == nvml.DEVICE_MIG_ENABLE {
		d.Note = "MIG is enabled: its parts are not used as devices"
	}
	procs, ret := h.GetComputeRunningProcesses()
	if !check(ret) && ret != nvml.ERROR_NOT_SUPPORTED && lost == "" {
		d.Note = "its processes cannot be listed: " + words(ret) // unsure: not free
	}
	for _, p := range procs {
		d.Processes = append(d.Processes, Process{PID: int(p.Pid), Name: processName(int(p.Pid)), UsedMiB: usedMiB(p.UsedGpuMemory)})
	}
	return d, lost
}

// usedMiB of a process; the driver's largest number means that it is unknown.
func usedMiB(bytes uint64) int64 {
	if bytes == ^uint64(0) {
		return 0
	}
	return int64(bytes >> 20)
}

func processName(pid int) string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	if err != nil {
		return "a process"
	}
	return strings.TrimSpace(string(text))
}

// register asks once for a device's critical events.
func (l *library) register(uuid string, h nvml.Device) {
	if l.hears[uuid] {
		return
	}
	l.hears[uuid] = true
	if l.events == nil {
		set, ret := l.lib.EventSetCreate()
		if ret != nvml.SUCCESS {
			return
		}
		l.events = set
	}
	_ = h.RegisterEvents(nvml.EventTypeXidCriticalError|nvml.EventTypeDoubleBitEccError, l.events) // some devices have none
}

// heard returns the events since the last call, without waiting.
func (l *library) heard(ids map[string]string) []Fault {
	if l.events == nil {
		return nil
	}
	var faults []Fault
	for range 100 {
		e, ret := l.events.Wait(1)
		if ret != nvml.SUCCESS { // a time-out is the idle case
			return faults
		}
		uuid, _ := e.Device.GetUUID()
		device := ids[uuid]
		if device == "" {
			continue
		}
		xid := int(e.EventData)
		if e.EventType == nvml.EventTypeDoubleBitEccError {
			xid = 48
		}
		faults = append(faults, xidFault(device, xid, "", time.Now()))
	}
	return faults
}

// newLibrary is openLibrary as a driver.
func newLibrary(timeout time.Duration) (driver, error) {
	l, err := openLibrary(nil, timeout)
	if err != nil {
		return nil, err
	}
	return l, nil
}
