package gpu

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// The columns asked of nvidia-smi, in the order parseGPUs expects. Only names
// that every driver since 2018 knows: one unknown name fails the whole call.
const (
	gpuFields  = "index,uuid,name,memory.total,memory.used,utilization.gpu,power.draw,temperature.gpu,mig.mode.current,pci.bus_id,ecc.errors.uncorrected.volatile.total"
	procFields = "gpu_uuid,pid,process_name,used_memory"
)

// smi runs nvidia-smi. A call that hangs (a sick GPU) is left behind at the
// deadline; no other is made before the kernel lets it go.
type smi struct {
	path    string
	timeout time.Duration
	busy    chan struct{} // holds one token while a call is under way
	kernel  *kernelLog
}

// read lists the GPUs with the processes that hold a context.
func (s *smi) read(ctx context.Context) (reading, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	out, err := s.call(ctx, "--query-gpu="+gpuFields, "--format=csv,noheader,nounits")
	if err != nil {
		return reading{}, err
	}
	devices, buses, err := parseGPUs(out)
	if err != nil {
		return reading{}, err
	}
	out, err = s.call(ctx, "--query-compute-apps="+procFields, "--format=csv,noheader,nounits")
	if err != nil {
		return reading{}, err
	}
	procs, err := parseProcesses(out)
	for i := range devices {
		devices[i].Processes = procs[devices[i].UUID]
	}
	return reading{devices: devices, faults: s.kernel.read(buses)}, err
}

func (s *smi) call(ctx context.Context, args ...string) ([]byte, error) {
	type result struct {
		out []byte
		err error
	}
	select {
	case s.busy <- struct{}{}:
	default:
		return nil, errors.New("nvidia-smi hangs: an earlier call has not ended")
	}
	done := make(chan result, 1)
	go func() { // may outlive the call when the kernel does not let nvidia-smi die
		cmd := exec.CommandContext(ctx, s.path, args...)
		cmd.WaitDelay = time.Second
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			text, _, _ := strings.Cut(strings.TrimSpace(stderr.String()+" "+string(out)), "\n")
			err = fmt.Errorf("%w: %s", err, text)
		}
		<-s.busy
		done <- result{out, err}
	}()
	select {
	case r := <-done:
		if ctx.Err() != nil {
			return nil, fmt.Errorf("nvidia-smi gave no answer in %s", s.timeout)
		}
		return r.out, r.err
	case <-ctx.Done():
		return nil, fmt.Errorf("nvidia-smi gave no answer in %s", s.timeout)
	}
}

// parseGPUs returns the devices and, by PCI bus, their ids.
func parseGPUs(text []byte) ([]Device, map[string]string, error) {
	rows, err := readCSV(text, strings.Count(gpuFields, ",")+1)
	if err != nil {
		return nil, nil, err
	}
	buses := make(map[string]string, len(rows))
	devices := make([]Device, 0, len(rows))
	for _, f := range rows {
		index, err := strconv.Atoi(f[0])
		if err != nil {
			return nil, nil, fmt.Errorf("nvidia-smi: index %q: not a number", f[0])
		}
		d := Device{
			ID: "gpu" + strconv.Itoa(index), Kind: KindGPU, UUID: f[1], Name: f[2],
			MemoryMiB: int64(number(f[3])), UsedMiB: int64(number(f[4])),
			Util: number(f[5]) / 100, PowerW: number(f[6]), TempC: number(f[7]), ECC: int64(number(f[10])),
		}
		buses[busOf(f[9])] = d.ID
		if f[8] == "Enabled" {
			d.Note = "MIG is enabled: its parts are not used as devices"
		}
		devices = append(devices, d)
	}
	return devices, buses, nil
}

func parseProcesses(text []byte) (map[string][]Process, error) {
	rows, err := readCSV(text, strings.Count(procFields, ",")+1)
	if err != nil {
		return nil, err
	}
	procs := make(map[string][]Process)
	for _, f := range rows {
		pid, _ := strconv.Atoi(f[1]) // "[N/A]" in some containers: still a process
		procs[f[0]] = append(procs[f[0]], Process{PID: pid, Name: f[2], UsedMiB: int64(number(f[3]))})
	}
	return procs, nil
}

func readCSV(text []byte, fields int) ([][]string, error) {
	r := csv.NewReader(bytes.NewReader(text))
	r.TrimLeadingSpace = true
	r.LazyQuotes = true
	r.FieldsPerRecord = fields
	rows, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("nvidia-smi: %w", err)
	}
	return rows, nil
}

// number turns one value into a number; "[N/A]", "[Not Supported]" and the
// like are zero.
func number(s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0
	}
	return v
}

var errNoSMI = errors.New("nvidia-smi is not installed")

func findSMI(path string) (string, error) {
	if path == "" {
		path = "nvidia-smi"
	}
	found, err := exec.LookPath(path)
	if err != nil {
		return "", errNoSMI
	}
	return found, nil
}
