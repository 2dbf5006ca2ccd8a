package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// programs puts small scripts, and nothing else, in front of PATH.
func programs(t *testing.T, scripts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, body := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
}

func diagnose(t *testing.T, data string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := doctor(t.Context(), &out, data, "127.0.0.1:0")
	return out.String(), err
}

func TestDoctorFindsTrainersAndSlurm(t *testing.T) {
	programs(t, map[string]string{
		"python3": `case "$1" in --version) echo Python 3.12.1;; *) echo torch 2.9.0; echo trl 1.0;; esac`,
		"sbatch":  "echo slurm 24.11", "sinfo": "echo 'gpu* 4 nodes gpu:h200:8'",
		"nvidia-smi": `case "$1" in --query-gpu=*) echo "0, GPU-a, NVIDIA H200, 143771, 4, 0, 80, 30, Disabled, 00000000:3B:00.0, 0";; *) echo "GPU-a, 77, stranger, 100";; esac`,
	})
	out, err := diagnose(t, t.TempDir())
	if err != nil {
		t.Errorf("doctor = %v, want nothing to fix:\n%s", err, out)
	}
	for _, want := range []string{"Python 3.12.1", "torch 2.9.0, trl 1.0", "not installed for this Python: transformers", "slurm 24.11: gpu* 4 nodes", "NVIDIA H200, 140 GiB, not free: stranger (pid 77)"} {
		if !strings.Contains(out, want) {
			t.Errorf("doctor does not say %q:\n%s", want, out)
		}
	}
}

// Each fault comes with what to do about it.
func TestDoctorSaysTheFix(t *testing.T) {
	programs(t, map[string]string{"sbatch": "exit 1", "python3": "exit 127", "nvidia-smi": "echo 'driver/library version mismatch' >&2; exit 18"})
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "settings.json"), []byte(`{"slurm": {"gpus": "all"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := diagnose(t, data)
	if err == nil {
		t.Error("doctor found nothing to fix")
	}
	for _, want := range []string{"FIX   settings", "slurm.gpus", "set SLURM_CONF", "version mismatch", "a reboot is due", "python3 not found"} {
		if !strings.Contains(out, want) {
			t.Errorf("doctor does not say %q:\n%s", want, out)
		}
	}
}

// Without a driver, Python or Slurm nothing is broken: the doctor says what
// each would be for and how to get it, and that runs go on CPU slots.
func TestDoctorWithoutADriver(t *testing.T) {
	if _, err := os.Stat("/proc/driver/nvidia/version"); err == nil {
		t.Skip("this machine has NVIDIA's driver")
	}
	t.Setenv("PATH", t.TempDir())
	out, err := diagnose(t, t.TempDir())
	if err != nil {
		t.Errorf("doctor = %v, want nothing that must be fixed:\n%s", err, out)
	}
	for _, want := range []string{
		"note  driver       no NVIDIA driver is loaded", "works on CPU slots", "install NVIDIA's driver and reboot",
		"GPUs         none: runs of the embedded trainer use CPU slots",
		"python3 not found", "install it, or put the trainer's environment into PATH",
		"sbatch not found", "install its client programs", "embedded runs at once", "GiB free", "127.0.0.1:0 is free",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("doctor does not say %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "FIX ") {
		t.Errorf("something must be fixed:\n%s", out)
	}
}
