package gpu

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

const maxDevices = 4096 // more than any node has; a typing mistake must not fill the memory

// topology is what a device option asks for.
type topology struct {
	cpus      int
	simulated []Device
	nvidia    bool // also ask nvidia-smi
}

// parseTopology reads a device option: "" or "auto" (CPU slots and the GPUs
// found), "cpu" or "cpu:4" (CPU slots only), "sim:8xA100-80G" (CPU slots and
// simulated GPUs; several groups are separated by commas).
func parseTopology(spec string, slots int) (topology, error) {
	if slots < 0 || slots > maxDevices {
		return topology{}, fmt.Errorf("cpu slots: %d: want 0 (one per core) to %d", slots, maxDevices)
	}
	if slots == 0 {
		slots = runtime.NumCPU()
	}
	kind, arg, hasArg := strings.Cut(spec, ":")
	switch {
	case spec == "" || spec == "auto":
		return topology{cpus: slots, nvidia: true}, nil
	case kind == "cpu" && !hasArg:
		return topology{cpus: slots}, nil
	case kind == "cpu":
		n, err := strconv.Atoi(arg)
		if err != nil || n < 1 || n > maxDevices {
			return topology{}, fmt.Errorf("devices: %q: want cpu:N with N from 1 to %d", spec, maxDevices)
		}
		return topology{cpus: n}, nil
	case kind == "sim":
		sim, err := parseSimulated(arg)
		if err != nil {
			return topology{}, fmt.Errorf("devices: %q: %w", spec, err)
		}
		return topology{cpus: slots, simulated: sim}, nil
	}
	return topology{}, fmt.Errorf("devices: %q: want auto, cpu, cpu:N or sim:NxNAME-MEMG, for instance sim:8xA100-80G", spec)
}

// parseSimulated reads "8xA100-80G,2xH100-94G".
func parseSimulated(groups string) ([]Device, error) {
	var out []Device
	for _, group := range strings.Split(groups, ",") {
		count, rest, ok := strings.Cut(group, "x")
		dash := strings.LastIndex(rest, "-")
		n, err := strconv.Atoi(count)
		if !ok || err != nil || n < 1 || dash < 1 || !strings.HasSuffix(rest, "G") {
			return nil, fmt.Errorf("group %q: want NxNAME-MEMG, for instance 8xA100-80G", group)
		}
		gib, err := strconv.ParseInt(strings.TrimSuffix(rest[dash+1:], "G"), 10, 32)
		if err != nil || gib < 1 {
			return nil, fmt.Errorf("group %q: memory %q: want GiB as a whole number above 0", group, rest[dash+1:])
		}
		if len(out)+n > maxDevices {
			return nil, fmt.Errorf("group %q: more than %d devices", group, maxDevices)
		}
		for range n {
			i := len(out)
			out = append(out, Device{
				ID: "gpu" + strconv.Itoa(i), Kind: KindGPU, Name: rest[:dash] + " (simulated)",
				MemoryMiB: gib * 1024, Simulated: true, Note: "simulated",
			})
		}
	}
	return out, nil
}

// cpuSlots makes n CPU slots that share the machine's memory equally.
func cpuSlots(n int) []Device {
	share := memTotalMiB() / int64(max(n, 1))
	out := make([]Device, n)
	for i := range out {
		out[i] = Device{ID: "cpu" + strconv.Itoa(i), Kind: KindCPU, Name: "CPU slot", MemoryMiB: share}
	}
	return out
}

// memTotalMiB reads the machine's memory; 0 when it cannot be known.
func memTotalMiB() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "MemTotal:" {
			kib, _ := strconv.ParseInt(f[1], 10, 64)
			return kib / 1024
		}
	}
	return 0
}
