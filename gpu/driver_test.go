package gpu

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseXID(t *testing.T) {
	tests := []struct {
		line string
		bus  string
		xid  int
		ok   bool
	}{
		{"4,1234,5678,-;NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", "3b:00", 79, true},
		{"NVRM: Xid (PCI:0000:AF:00.0): 31, pid=12, Ch 00000018", "af:00", 31, true},
		{"NVRM: Xid (PCI:0000:3b:00)", "", 0, false},
		{"usb 1-1: new device", "", 0, false},
	}
	for _, tt := range tests {
		if bus, xid, ok := parseXID(tt.line); bus != tt.bus || xid != tt.xid || ok != tt.ok {
			t.Errorf("parseXID(%q) = %q, %d, %v", tt.line, bus, xid, ok)
		}
	}
	if got := busOf("00000000:3B:00.0"); got != "3b:00" {
		t.Errorf("busOf = %q", got)
	}
}

// nvidia-smi and the kernel's log together: a fatal XID puts the device away.
func TestKernelLog(t *testing.T) {
	path, set := fakeSMI(t, twoGPUs, "")
	p := newPool(t, Config{SMI: path, NoLibrary: true, CPUSlots: 1})
	log := filepath.Join(t.TempDir(), "kmsg")
	if err := os.WriteFile(log, []byte("4,1,1,-;NVRM: Xid (PCI:0000:3b:00): 79, from before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.smi.kernel = openKernelLog(log)
	if err := p.Refresh(t.Context()); err != nil || !p.Devices()[1].Free {
		t.Fatalf("%v, %+v", err, p.Devices()[1])
	}
	f, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.WriteString("4,2,2,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n")
	_ = f.Close()
	if err := p.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := p.Devices()[1]; !d.Quarantined || d.Free || !strings.Contains(d.Note, "fallen off the bus") {
		t.Errorf("gpu0 = %+v, want put away", d)
	}
	if key := p.Key("gpu0"); key != "GPU-aaaa" {
		t.Errorf("Key = %q, want the uuid", key)
	}
	set(strings.SplitAfter(twoGPUs, "\n")[0], "") // gpu1 vanishes
	if err := p.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	later := newPool(t, Config{SMI: path, NoLibrary: true, CPUSlots: 1})
	later.Name(p.Names())
	set(strings.Replace(strings.SplitAfter(twoGPUs, "\n")[1], "1,", "0,", 1), "") // after a reboot gpu1 is the only one, with another number
	if err := later.Refresh(t.Context()); err != nil || later.Devices()[1].ID != "gpu1" {
		t.Errorf("after a restart: %+v, %v; want the same name", later.Devices(), err)
	}
	if d := p.Devices()[2]; d.ID != "gpu1" || !d.Quarantined || !strings.Contains(d.Note, "vanished") {
		t.Errorf("gpu1 = %+v, want it shown as vanished", d)
	}
}
