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
	gpuFields  = "index,uuid,name,memory.total,memory.used,utilization.gpu,power.draw,temperature.gpu,mig.mode.current"
	procFields = "gpu_uuid,pid,process_name,used_memory"
)

// A process holds a context on a GPU.
type process struct {
	PID  int
	Name string
}

// smi runs nvidia-smi. A call that hangs (a sick GPU) is left behind at the
// deadline; no other is made before the kernel lets it go.
type smi struct {
	path    string
	timeout time.Duration
	busy    chan struct{} // holds one token while a call is under way
}

// read lists the GPUs and, by uuid, the processes that hold a context.
func (s smi) read(ctx context.Context) ([]Device, map[string][]process, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	out, err := s.call(ctx, "--query-gpu="+gpuFields, "--format=csv,noheader,nounits")
	if err != nil {
		return nil, nil, err
	}
	devices, err := parseGPUs(out)
	if err != nil {
		return nil, nil, err
	}
	out, err = s.call(ctx, "--query-compute-apps="+procFields, "--format=csv,noheader,nounits")
	if err != nil {
		return nil, nil, err
	}
	procs, err := parseProcesses(out)
	return devices, procs, err
}

func (s smi) call(ctx context.Context, args ...string) ([]byte, error) {
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

func parseGPUs(text []byte) ([]Device, error) {
	rows, err := readCSV(text, strings.Count(gpuFields, ",")+1)
	if err != nil {
		return nil, err
	}
	devices := make([]Device, 0, len(rows))
	for _, f := range rows {
		index, err := strconv.Atoi(f[0])
		if err != nil {
			return nil, fmt.Errorf("nvidia-smi: index %q: not a number", f[0])
		}
		d := Device{
			ID: "gpu" + strconv.Itoa(index), Kind: KindGPU, UUID: f[1], Name: f[2],
			MemoryMiB: int64(reading(f[3])), UsedMiB: int64(reading(f[4])),
			Util: reading(f[5]) / 100, PowerW: reading(f[6]), TempC: reading(f[7]),
		}
		if f[8] == "Enabled" {
			d.Note = "MIG is enabled: its parts are not used as devices"
		}
		devices = append(devices, d)
	}
	return devices, nil
}

func parseProcesses(text []byte) (map[string][]process, error) {
	rows, err := readCSV(text, strings.Count(procFields, ",")+1)
	if err != nil {
		return nil, err
	}
	procs := make(map[string][]process)
	for _, f := range rows {
		pid, _ := strconv.Atoi(f[1]) // "[N/A]" in some containers: still a process
		procs[f[0]] = append(procs[f[0]], process{PID: pid, Name: f[2]})
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

// reading turns one value into a number; "[N/A]", "[Not Supported]" and the
// like are zero.
func reading(s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0
	}
	return v
}

// errNoDriver says that no GPU can be looked for on this machine.
var errNoDriver = errors.New("nvidia-smi is not installed")

func findSMI(path string) (string, error) {
	if path == "" {
		path = "nvidia-smi"
	}
	found, err := exec.LookPath(path)
	if err != nil {
		return "", errNoDriver
	}
	return found, nil
}
