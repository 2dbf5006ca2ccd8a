package shim

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"alidade/gpu"
)

// A cluster numbers a job's GPUs among those that the job may open, or names
// them.
func TestOwnGPUs(t *testing.T) {
	read := time.Now()
	devices := []gpu.Device{
		{ID: "cpu0", Kind: gpu.KindCPU, SampledAt: read},
		{ID: "gpu0", Kind: gpu.KindGPU}, // another job's: it could not be opened
		{ID: "gpu1", Kind: gpu.KindGPU, UUID: "GPU-aaaa-1", SampledAt: read},
		{ID: "gpu2", Kind: gpu.KindGPU, UUID: "GPU-bbbb-2", SampledAt: read, StaleSince: read},
	}
	for visible, want := range map[string]string{
		"0": "gpu1", "1": "gpu2", "0,1": "gpu1 gpu2", "2": "", "-1": "", "": "", "x": "",
		"GPU-bbbb": "gpu2", "GPU-aaaa-1, GPU-bbbb-2": "gpu1 gpu2", "MIG-1": "",
	} {
		mine := ownGPUs(visible, devices)
		if got := strings.Join(slices.Sorted(maps.Keys(mine)), " "); got != want {
			t.Errorf("CUDA_VISIBLE_DEVICES=%s gives %q, want %q", visible, got, want)
		}
	}
	r := readingsOf(devices, map[string]bool{"gpu0": true, "gpu1": true, "gpu2": true})
	if len(r.GPUs) != 1 || r.GPUs[0].ID != "gpu1" || !r.At.Equal(read) {
		t.Errorf("readings = %+v, want the fresh one alone", r)
	}
	for visible, want := range map[string]bool{"": false, "NoDevFiles": false, "-1": false, "0": true, "GPU-aaaa": true} {
		if hasGPUs(visible) != want {
			t.Errorf("hasGPUs(%q) = %v", visible, !want)
		}
	}
}

// Readings are taken line by line; what is not whole yet, or is damaged, is no
// error.
func TestReadReadings(t *testing.T) {
	dir := t.TempDir()
	if all, next, err := ReadReadings(dir, 0); len(all) > 0 || next != 0 || err != nil {
		t.Errorf("without a file: %v, %d, %v", all, next, err)
	}
	path := filepath.Join(dir, ReadingsFile)
	line := `{"at":"2026-01-02T03:04:05Z","gpus":[{"id":"gpu0","util":0.5,"memory_mib":1,"power_w":2,"temp_c":3}]}` + "\n"
	if err := os.WriteFile(path, []byte(line+"damaged\n"+line+line[:20]), 0o600); err != nil {
		t.Fatal(err)
	}
	all, next, err := ReadReadings(dir, 0)
	if err != nil || len(all) != 2 || all[1].GPUs[0].Util != 0.5 || next != int64(2*len(line)+len("damaged\n")) {
		t.Errorf("%+v, %d, %v; want two readings and the start of the third line", all, next, err)
	}
	if all, again, err := ReadReadings(dir, next); len(all) > 0 || again != next || err != nil {
		t.Errorf("half a line gives %v, %d, %v", all, again, err)
	}
}

// A task of an array finds its folder by its number alone.
func TestTaskDir(t *testing.T) {
	manifest := filepath.Join(t.TempDir(), "array.json")
	if err := WriteArray(manifest, []string{"/a", "/b $(x)"}); err != nil {
		t.Fatal(err)
	}
	for task, want := range map[string]string{"0": "/a", "1": "/b $(x)"} {
		t.Setenv("SLURM_ARRAY_TASK_ID", task)
		if dir, err := taskDir(manifest); dir != want || err != nil {
			t.Errorf("task %s: %q, %v; want %q", task, dir, err, want)
		}
	}
	for _, task := range []string{"", "2", "-1", "x"} {
		t.Setenv("SLURM_ARRAY_TASK_ID", task)
		if dir, err := taskDir(manifest); err == nil || !strings.Contains(err.Error(), "SLURM_ARRAY_TASK_ID") {
			t.Errorf("task %q: %q, %v; want an error that names the variable", task, dir, err)
		}
	}
	t.Setenv("SLURM_ARRAY_TASK_ID", "1")
	t.Setenv("SLURM_ARRAY_JOB_ID", "7")
	t.Setenv("SLURM_JOB_ID", "9")
	if id := jobID(); id != "7_1" {
		t.Errorf("jobID = %q, want 7_1", id)
	}
}
