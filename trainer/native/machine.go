package native

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const gib = 1 << 30

// ThisMachine reads what a run would get here: the devices that
// CUDA_VISIBLE_DEVICES shows, the host's memory, and the free disk of the
// data folder. What cannot be read is 0.
func ThisMachine(ctx context.Context, data string) Machine {
	return Machine{DeviceGiB: deviceMemory(ctx), HostGiB: hostMemory(), DiskGiB: freeDisk(data)}
}

// Host is ThisMachine without its devices, which takes no process to ask.
func Host(data string) Machine {
	return Machine{HostGiB: hostMemory(), DiskGiB: freeDisk(data)}
}

// deviceMemory asks nvidia-smi, which opens no context on the device.
func deviceMemory(ctx context.Context) []float64 {
	visible, set := os.LookupEnv("CUDA_VISIBLE_DEVICES")
	if set && visible == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	text, err := exec.CommandContext(ctx, "nvidia-smi", "--query-gpu=index,uuid,memory.total", "--format=csv,noheader,nounits").Output()
	if err != nil {
		return nil
	}
	var all []float64
	byName := map[string]float64{}
	for line := range bytes.Lines(text) {
		f := strings.Split(strings.TrimSpace(string(line)), ", ")
		if len(f) != 3 {
			continue
		}
		mib, err := strconv.ParseFloat(f[2], 64)
		if err != nil {
			continue
		}
		all = append(all, mib/1024)
		byName[f[0]], byName[f[1]] = mib/1024, mib/1024
	}
	if !set {
		return all
	}
	var seen []float64
	for name := range strings.SplitSeq(visible, ",") {
		if g, ok := byName[strings.TrimSpace(name)]; ok {
			seen = append(seen, g)
		}
	}
	return seen
}

func hostMemory() float64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	in := bufio.NewScanner(f)
	for in.Scan() {
		if rest, ok := strings.CutPrefix(in.Text(), "MemTotal:"); ok {
			kib, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			return kib * 1024 / gib
		}
	}
	return 0
}

func freeDisk(dir string) float64 {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0
	}
	return float64(s.Bavail) * float64(s.Bsize) / gib
}
