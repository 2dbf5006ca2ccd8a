//go:build cgo && linux

package gpu

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"
)

// mockMachine is a machine of eight H100 whose devices answer all that is asked.
type mockMachine struct {
	lib     *server.Server
	devices []*server.Device
	events  []nvml.EventData
	hang    chan struct{}
}

func newMockMachine(t *testing.T) *mockMachine {
	t.Helper()
	m := &mockMachine{lib: dgxh100.New()}
	for i := range m.lib.Devices {
		d, ok := m.lib.Devices[i].(*server.Device)
		if !ok {
			t.Fatalf("mock device is a %T", m.lib.Devices[i])
		}
		d.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) { return nvml.Utilization{Gpu: 50}, nvml.SUCCESS }
		d.GetPowerUsageFunc = func() (uint32, nvml.Return) {
			if m.hang != nil {
				<-m.hang
			}
			return 400_500, nvml.SUCCESS
		}
		d.GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) { return 60, nvml.SUCCESS }
		d.GetTotalEccErrorsFunc = func(nvml.MemoryErrorType, nvml.EccCounterType) (uint64, nvml.Return) {
			return 0, nvml.ERROR_NOT_SUPPORTED
		}
		d.GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) { return nil, nvml.SUCCESS }
		d.RegisterEventsFunc = func(uint64, nvml.EventSet) nvml.Return { return nvml.SUCCESS }
		m.devices = append(m.devices, d)
	}
	m.lib.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) {
		return &mock.EventSet{WaitFunc: func(uint32) (nvml.EventData, nvml.Return) {
			if len(m.events) == 0 {
				return nvml.EventData{}, nvml.ERROR_TIMEOUT
			}
			e := m.events[0]
			m.events = m.events[1:]
			return e, nvml.SUCCESS
		}}, nvml.SUCCESS
	}
	return m
}

func (m *mockMachine) pool(t *testing.T) *Pool {
	t.Helper()
	p := newPool(t, Config{SMI: "/nowhere/nvidia-smi", CPUSlots: 1})
	l, err := openLibrary(m.lib, 500*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	p.maybe, p.driver = true, l
	if err := p.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

func device(t *testing.T, p *Pool, id string) Device {
	t.Helper()
	for _, d := range p.Devices() {
		if d.ID == id {
			return d
		}
	}
	t.Fatalf("no device %s", id)
	return Device{}
}

func TestLibraryReadings(t *testing.T) {
	m := newMockMachine(t)
	p := m.pool(t)
	if n := p.Capacity(KindGPU); n != 8 {
		t.Fatalf("%d GPUs, want 8", n)
	}
	d := device(t, p, "gpu3")
	if !d.Free || d.Util != 0.5 || d.PowerW != 400.5 || d.TempC != 60 || d.MemoryMiB < 80_000 || !strings.HasPrefix(d.UUID, "GPU-") || !strings.Contains(d.Name, "H100") {
		t.Errorf("gpu3 = %+v", d)
	}
	// A foreign process with a context: not free, whatever its utilisation.
	m.devices[3].GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) { return nvml.Utilization{}, nvml.SUCCESS }
	m.devices[3].GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) {
		return []nvml.ProcessInfo{{Pid: uint32(os.Getpid()), UsedGpuMemory: ^uint64(0)}}, nvml.SUCCESS
	}
	m.devices[4].GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) { return nil, nvml.ERROR_UNKNOWN }
	if err := p.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := device(t, p, "gpu3"); d.Free || !strings.Contains(d.Holder, "pid") || d.Processes[0].UsedMiB != 0 {
		t.Errorf("gpu3 with a foreign context = %+v", d)
	}
	if d := device(t, p, "gpu4"); d.Free || !strings.Contains(d.Note, "cannot be listed") {
		t.Errorf("gpu4 = %+v, want not free: unsure", d)
	}
}

// One GPU falls off the bus: it is put away with the reason, the others go on
// under their old names.
func TestLostGPU(t *testing.T) {
	m := newMockMachine(t)
	p := m.pool(t)
	lease, err := p.Take(7, []string{"gpu5"})
	if err != nil {
		t.Fatal(err)
	}
	m.devices[2].GetPowerUsageFunc = func() (uint32, nvml.Return) { return 0, nvml.ERROR_GPU_IS_LOST }
	if err := p.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	d := device(t, p, "gpu2")
	if d.Free || !d.Quarantined || !strings.Contains(d.Note, "GPU is lost") {
		t.Errorf("gpu2 = %+v, want put away as lost", d)
	}
	if fresh := p.Fresh(); len(fresh) != 1 || fresh[0].Device != "gpu2" || !fresh[0].Fatal {
		t.Errorf("fresh faults = %+v", fresh)
	}
	// It vanishes from the list: the numbers of those behind it change, their names do not.
	before := device(t, p, "gpu5").UUID
	m.lib.Devices = append(append([]nvml.Device{}, m.lib.Devices[:2]...), m.lib.Devices[3:]...)
	m.lib.DeviceGetCountFunc = func() (int, nvml.Return) { return 7, nvml.SUCCESS }
	if err := p.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := device(t, p, "gpu5"); d.UUID != before || d.Run != lease.Run {
		t.Errorf("gpu5 = %+v, want the same device and lease", d)
	}
	if d := device(t, p, "gpu2"); !d.Quarantined {
		t.Errorf("gpu2 = %+v, want it still put away", d)
	}
	if _, err := p.Acquire(8, Request{Kind: KindGPU, N: 6}); err != nil {
		t.Errorf("the other six: %v", err)
	}
}

func TestXIDEvents(t *testing.T) {
	m := newMockMachine(t)
	p := m.pool(t)
	m.events = []nvml.EventData{
		{Device: m.devices[1], EventType: nvml.EventTypeXidCriticalError, EventData: 31}, // the program's own
		{Device: m.devices[6], EventType: nvml.EventTypeXidCriticalError, EventData: 79},
	}
	if err := p.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := device(t, p, "gpu1"); d.Quarantined || !d.Free {
		t.Errorf("gpu1 after XID 31 = %+v, want free", d)
	}
	if d := device(t, p, "gpu6"); !d.Quarantined || !strings.Contains(d.Note, "79") {
		t.Errorf("gpu6 after XID 79 = %+v, want put away", d)
	}
	if n := len(p.Faults()); n != 2 {
		t.Errorf("%d faults, want 2", n)
	}
	if _, err := p.Unquarantine("gpu6"); err != nil || !device(t, p, "gpu6").Free {
		t.Errorf("after Unquarantine: %v, %+v", err, device(t, p, "gpu6"))
	}
}

// A driver that hangs holds up nobody, and is asked once.
func TestLibraryHangs(t *testing.T) {
	m := newMockMachine(t)
	p := m.pool(t)
	m.hang = make(chan struct{})
	defer close(m.hang)
	began := time.Now()
	for range 2 {
		if err := p.Refresh(t.Context()); err == nil {
			t.Error("Refresh with a hanging driver succeeded")
		}
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("two readings took %s", took)
	}
	if d := device(t, p, "gpu0"); d.Free || d.StaleSince.IsZero() {
		t.Errorf("gpu0 = %+v, want stale and not free", d)
	}
}

// Without the library Init fails and nothing else is called.
func TestNoLibrary(t *testing.T) {
	lib := &mock.Interface{InitFunc: func() nvml.Return { return nvml.ERROR_LIBRARY_NOT_FOUND }}
	if _, err := openLibrary(lib, time.Second); err == nil || !strings.Contains(err.Error(), "not installed") {
		t.Errorf("openLibrary = %v", err)
	}
}
