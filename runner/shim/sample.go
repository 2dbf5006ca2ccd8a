package shim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"alidade/gpu"
)

// ReadingsFile is the file of an attempt's folder in which a cluster's job
// notes what its GPUs do, one [Readings] a line: the server may not see the
// node.
const ReadingsFile = "gpus.jsonl"

// Readings are what the GPUs of a job did at a moment.
type Readings struct {
	At   time.Time `json:"at"`
	GPUs []Reading `json:"gpus"`
}

// A Reading is that of one GPU.
type Reading struct {
	ID        string  `json:"id"` // "gpu3", as numbered on its node
	Name      string  `json:"name,omitempty"`
	Util      float64 `json:"util"` // fraction 0–1
	MemoryMiB int64   `json:"memory_mib"`
	PowerW    float64 `json:"power_w"`
	TempC     float64 `json:"temp_c"`
}

const (
	sampleEvery = 2 * time.Second
	// A node whose GPUs cannot be read is asked so often.
	mostFailures = 5
)

// ReadReadings reads the complete lines from an offset on, and says where the
// next ones begin. What cannot be read is left out.
func ReadReadings(dir string, offset int64) ([]Readings, int64, error) {
	f, err := os.Open(filepath.Join(dir, ReadingsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, offset, nil
	}
	if err != nil {
		return nil, offset, err
	}
	defer closeFile(f)
	text, err := io.ReadAll(io.NewSectionReader(f, offset, 1<<20))
	if err != nil {
		return nil, offset, err
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	var all []Readings
	for line := range bytes.Lines(text) {
		var r Readings
		if json.Unmarshal(line, &r) == nil && len(r.GPUs) > 0 {
			all = append(all, r)
		}
	}
	return all, offset + int64(len(text)), nil
}

// startHelper starts this program beside the trainer, for what must not share
// the shim's process: it reaps all children and must not fall with a driver's
// library. Its id is 0 when it could not be started.
func (s *shim) startHelper(args ...string) (pid int) {
	exe, err := os.Executable()
	if err != nil {
		return 0
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0
	}
	defer closeFile(null)
	pid, err = syscall.ForkExec(exe, append([]string{exe, "shim"}, args...), &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{null.Fd(), null.Fd(), null.Fd()}, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return 0
	}
	return pid
}

// startSampler has the job's GPUs read, where it was given any.
func (s *shim) startSampler() {
	if s.inJob && hasGPUs(os.Getenv("CUDA_VISIBLE_DEVICES")) {
		s.sampler = s.startHelper("--sample", "--dir", s.dir)
	}
}

// endSampler is called when nothing is left to be read.
func (s *shim) endSampler() {
	if s.sampler > 0 {
		_ = syscall.Kill(s.sampler, syscall.SIGKILL) // it is our child: the id is its own until we reap it
	}
	s.sampler = 0
}

func hasGPUs(visible string) bool { return visible != "" && visible != "NoDevFiles" && visible != "-1" }

// sample notes what the job's GPUs do until the shim is gone. Where no driver
// answers it gives up without a word: a run is not worse for it.
func sample(dir string) int {
	parent := os.Getppid()
	pool, err := gpu.New(gpu.Config{CPUSlots: 1})
	if err != nil {
		return codeUsage
	}
	f, err := openLog(filepath.Join(dir, ReadingsFile))
	if err != nil {
		return codeRecord
	}
	defer closeFile(f)
	var mine map[string]bool
	for failures := 0; failures < mostFailures && os.Getppid() == parent; {
		err := pool.Refresh(context.Background())
		devices := pool.Devices()
		if mine == nil && err == nil {
			mine = ownGPUs(os.Getenv("CUDA_VISIBLE_DEVICES"), devices)
		}
		r := readingsOf(devices, mine)
		if err != nil || len(r.GPUs) == 0 {
			failures++
		} else if failures = 0; !write(f, r) {
			return codeRecord
		}
		time.Sleep(sampleEvery)
	}
	return codeOK
}

func write(f *os.File, r Readings) bool {
	line, err := json.Marshal(r)
	if err != nil {
		return false
	}
	_, err = f.Write(append(line, '\n'))
	return err == nil
}

// ownGPUs are the ids of those that the cluster gave the job: by uuid, or by
// their number among those that the job may open.
func ownGPUs(visible string, devices []gpu.Device) map[string]bool {
	var open []gpu.Device
	for _, d := range devices {
		if d.Kind == gpu.KindGPU && !d.SampledAt.IsZero() {
			open = append(open, d)
		}
	}
	mine := make(map[string]bool)
	for word := range strings.SplitSeq(visible, ",") {
		word = strings.TrimSpace(word)
		if n, err := strconv.Atoi(word); err == nil {
			if n >= 0 && n < len(open) {
				mine[open[n].ID] = true
			}
			continue
		}
		for _, d := range open {
			if word != "" && strings.HasPrefix(d.UUID, word) {
				mine[d.ID] = true
			}
		}
	}
	return mine
}

// readingsOf takes the fresh readings of the job's GPUs.
func readingsOf(devices []gpu.Device, mine map[string]bool) Readings {
	var r Readings
	for _, d := range devices {
		if !mine[d.ID] || d.SampledAt.IsZero() || !d.StaleSince.IsZero() {
			continue
		}
		r.At = d.SampledAt
		r.GPUs = append(r.GPUs, Reading{ID: d.ID, Name: d.Name, Util: d.Util, MemoryMiB: d.UsedMiB, PowerW: d.PowerW, TempC: d.TempC})
	}
	return r
}
