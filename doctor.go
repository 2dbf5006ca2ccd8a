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

	"alidade/gpu"
	"alidade/runner"
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
	findings := []finding{checkCPU()}
	findings = append(findings, checkGPUs(ctx)...)
	findings = append(findings, checkData(data), checkFileSystem(data), checkRuns(data), checkDisk(data), checkPort(data, addr), checkSettings(data))
	findings = append(findings, checkPython(ctx)...)
	findings = append(findings, checkSlurm(ctx))
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

// checkGPUs reads the devices as serve would.
func checkGPUs(ctx context.Context) []finding {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	driver := finding{name: "driver"}
	text, err := os.ReadFile("/proc/driver/nvidia/version")
	if err == nil {
		driver.found, _, _ = strings.Cut(strings.TrimSpace(string(text)), "\n")
	} else {
		driver.found = "no NVIDIA driver is loaded"
		driver.fix = "fine for the embedded trainer, which works on CPU slots; for CUDA trainers install NVIDIA's driver and reboot"
	}
	f := finding{name: "GPUs"}
	pool, err := gpu.New(gpu.Config{})
	if err == nil {
		err = pool.Refresh(ctx)
	}
	if err != nil {
		f.found = "they cannot be read: " + err.Error()
		f.fix = "look at nvidia-smi: after an upgrade of the driver a reboot is due; in a container the devices must be passed in"
		return []finding{driver, f}
	}
	out := []finding{driver}
	for _, d := range pool.Devices() {
		if d.Kind != gpu.KindGPU {
			continue
		}
		g := finding{name: d.ID, found: fmt.Sprintf("%s, %.0f GiB", d.Name, float64(d.MemoryMiB)/1024)}
		if !d.Free {
			g.found += ", not free: " + strings.TrimSpace(d.Holder+" "+d.Note)
			g.fix = "runs start there when nothing else holds a context on it"
		}
		out = append(out, g)
	}
	if len(out) == 1 {
		f.found = "none: runs of the embedded trainer use CPU slots"
		out = append(out, f)
	}
	return out
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

func checkFileSystem(data string) finding {
	f := finding{name: "file system", found: "local"}
	fs := runner.FileSystemOf(data)
	switch {
	case fs.Refused:
		f.found, f.bad = fs.Name, true
		f.fix = "SQLite's locks do not hold on network file systems: put the data folder on a local disk"
	case fs.Name != "":
		f.found, f.fix = fs.Name, "fine when it is a local one; a shared one damages the database"
	}
	return f
}

// checkRuns looks at the runs' folders, which may lie elsewhere.
func checkRuns(data string) finding {
	f := finding{name: "run folders", found: "in the data folder"}
	target, err := filepath.EvalSymlinks(filepath.Join(data, "runs"))
	if err == nil && target != filepath.Join(absolute(data), "runs") {
		f.found = target
		if fs := runner.FileSystemOf(target); fs.Name != "" {
			f.found += " on " + fs.Name
		}
		return f
	}
	if _, err := exec.LookPath("sbatch"); err == nil {
		f.fix = "for Slurm jobs on other machines make the folder runs a link to one that they share"
	}
	return f
}

func checkSettings(data string) finding {
	f := finding{name: "settings", found: "none: " + filepath.Join(data, runner.SettingsFile) + " is not there"}
	if _, err := os.Stat(filepath.Join(data, runner.SettingsFile)); err != nil {
		return f
	}
	f.found = filepath.Join(data, runner.SettingsFile)
	if _, err := runner.ReadSettings(data); err != nil {
		f.bad, f.fix = true, err.Error()
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

// packages are what the CUDA trainers need, with what each is for.
var packages = []struct{ name, use string }{
	{"torch", "all CUDA trainers"}, {"transformers", "all CUDA trainers"}, {"trl", "trainer kind command with TRL"},
	{"verl", "trainer kind command with verl"}, {"rllm", "trainer kind command with rLLM"}, {"vllm", "rollouts of verl and TRL"}, {"ray", "verl and rLLM"},
}

// listPackages prints the version of each package that is installed.
const listPackages = `import importlib.metadata as m, sys
for n in sys.argv[1:]:
    try: print(n, m.version(n))
    except m.PackageNotFoundError: pass`

// checkPython finds Python and the trainers in it.
func checkPython(ctx context.Context) []finding {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	f := finding{name: "Python"}
	version, err := exec.CommandContext(ctx, "python3", "--version").CombinedOutput()
	if err != nil {
		f.found, f.fix = "python3 not found", "needed for trainers of kind command written in Python, and for TRL, verl, rLLM: install it, or put the trainer's environment into PATH"
		return []finding{f}
	}
	f.found = strings.TrimSpace(string(version))
	if path, err := exec.LookPath("python3"); err == nil {
		f.found += " (" + path + ")"
	}
	var names []string
	for _, p := range packages {
		names = append(names, p.name)
	}
	out, err := exec.CommandContext(ctx, "python3", append([]string{"-c", listPackages}, names...)...).Output()
	if err != nil {
		f.fix = "its packages cannot be listed: " + reason(err)
		return []finding{f}
	}
	trainers := finding{name: "trainers"}
	var have, lack []string
	for _, p := range packages {
		i := strings.Index("\n"+string(out), "\n"+p.name+" ")
		if i < 0 {
			lack = append(lack, p.name+" ("+p.use+")")
			continue
		}
		line, _, _ := strings.Cut(string(out)[i:], "\n")
		have = append(have, line)
	}
	trainers.found = "embedded"
	if len(have) > 0 {
		trainers.found += ", " + strings.Join(have, ", ")
	}
	if len(lack) > 0 {
		trainers.fix = "not installed for this Python: " + strings.Join(lack, ", ")
	}
	return []finding{f, trainers}
}

// checkSlurm finds Slurm and asks its controller.
func checkSlurm(ctx context.Context) finding {
	f := finding{name: "Slurm"}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	path, err := exec.LookPath("sbatch")
	if err != nil {
		f.found, f.fix = "sbatch not found", "needed only to train on a Slurm cluster: install its client programs"
		return f
	}
	f.found = path
	version, err := exec.CommandContext(ctx, "sbatch", "--version").Output()
	if err != nil {
		f.fix = "it finds no cluster: set SLURM_CONF to the site's slurm.conf"
		return f
	}
	f.found = strings.TrimSpace(string(version))
	out, err := exec.CommandContext(ctx, "sinfo", "--noheader", "--format=%P %D nodes %G").Output()
	if err != nil {
		f.fix = "its controller does not answer: use serve --launcher slurm on a machine that reaches it (SLURM_CONF)"
		return f
	}
	f.found += ": " + strings.ReplaceAll(strings.TrimSpace(string(out)), "\n", "; ") + " (serve --launcher slurm)"
	return f
}
