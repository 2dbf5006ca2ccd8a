package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"alidade/server"

	"github.com/spf13/cobra"
)

// finding is one line of the doctor: what was looked at, what was found, and
// what to do when it is not right.
type finding struct {
	name, found, fix string
	bad              bool // the product does not work without it
}

func doctorCommand() *cobra.Command {
	var data, addr string
	c := &cobra.Command{
		Use: "doctor", Short: "Look at this machine and say what is missing", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return doctor(c.Context(), c.OutOrStdout(), data, addr)
		},
	}
	dataFlag(c, &data)
	c.Flags().StringVar(&addr, "addr", "127.0.0.1:7717", "address that serve would use")
	return c
}

func doctor(ctx context.Context, out io.Writer, data, addr string) error {
	findings := []finding{checkCPU(), checkGPU(ctx), checkData(data), checkFileSystem(data), checkDisk(data), checkPort(data, addr),
		checkProgram(ctx, "Python", "python3", "needed for trainers of kind command written in Python, and for TRL, verl, rLLM", "--version"),
		checkProgram(ctx, "Slurm", "sbatch", "needed only to train on a Slurm cluster", "--version")}
	wrong := 0
	for _, f := range findings {
		mark := "ok  "
		if f.bad {
			mark, wrong = "FIX ", wrong+1
		} else if f.fix != "" {
			mark = "note"
		}
		fmt.Fprintf(out, "%s  %-12s %s\n", mark, f.name, f.found)
		if f.fix != "" {
			fmt.Fprintf(out, "      %-12s %s\n", "", f.fix)
		}
	}
	if wrong > 0 {
		return exitError(1)
	}
	return nil
}

func checkCPU() finding {
	return finding{name: "processor", found: fmt.Sprintf("%d cores, %s/%s: %d embedded runs at once", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())}
}

func checkGPU(ctx context.Context) finding {
	f := finding{name: "GPUs"}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	b, err := exec.CommandContext(ctx, "nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader").Output()
	if err != nil {
		f.found = "none found (nvidia-smi: " + reason(err) + ")"
		f.fix = "fine for the embedded trainer; for CUDA trainers install NVIDIA's driver, which brings nvidia-smi"
		return f
	}
	f.found = strings.ReplaceAll(strings.TrimSpace(string(b)), "\n", "; ")
	return f
}

func reason(err error) string {
	msg := err.Error()
	if i := strings.LastIndex(msg, ": "); i >= 0 {
		return msg[i+2:]
	}
	return msg
}

func checkData(data string) finding {
	f := finding{name: "data folder", found: absolute(data)}
	dir := data
	for {
		if _, err := os.Stat(dir); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	probe, err := os.CreateTemp(dir, ".alidade-doctor-*")
	if err != nil {
		f.bad, f.fix = true, fmt.Sprintf("cannot write in %s (%s): choose another folder with --data or change its owner", dir, reason(err))
		return f
	}
	probe.Close()
	os.Remove(probe.Name())
	if here, _, ok := server.Find(data); ok {
		f.found += fmt.Sprintf(", served by process %d at %s", here.PID, here.URL)
	}
	return f
}

// networkFS are file systems on which SQLite's locks cannot be trusted.
var networkFS = map[int64]string{0x6969: "NFS", 0xff534d42: "CIFS", 0x517b: "SMB", 0x65735546: "FUSE", 0x47504653: "GPFS", 0x0bd00bd0: "Lustre", 0x19830326: "BeeGFS"}

func checkFileSystem(data string) finding {
	f := finding{name: "file system", found: "local"}
	var st syscall.Statfs_t
	dir := data
	for syscall.Statfs(dir, &st) != nil && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	if name, ok := networkFS[int64(st.Type)]; ok {
		f.found, f.bad = name, true
		f.fix = "SQLite's locks do not hold on network file systems: put the data folder on a local disk"
	}
	return f
}

func checkDisk(data string) finding {
	f := finding{name: "disk"}
	var st syscall.Statfs_t
	dir := data
	for syscall.Statfs(dir, &st) != nil && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	free := float64(st.Bavail) * float64(st.Bsize) / (1 << 30)
	f.found = fmt.Sprintf("%.1f GiB free", free)
	if free < 1 {
		f.bad, f.fix = true, "below 1 GiB the queue pauses: free some space or choose another data folder"
	}
	return f
}

func checkPort(data, addr string) finding {
	f := finding{name: "address", found: addr + " is free"}
	if here, _, ok := server.Find(data); ok && strings.HasSuffix(here.URL, addr) {
		f.found = addr + " is used by this data folder's own server"
		return f
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		f.found, f.bad = addr+": "+reason(err), true
		f.fix = "serve on another one: alidade serve --addr 127.0.0.1:0"
		return f
	}
	l.Close()
	return f
}

func checkProgram(ctx context.Context, name, program, use string, args ...string) finding {
	f := finding{name: name}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	b, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		f.found, f.fix = program+" not found", use
		return f
	}
	f.found, _, _ = strings.Cut(strings.TrimSpace(string(b)), "\n")
	return f
}
