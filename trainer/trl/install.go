package trl

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"alidade/trainer/native"
)

// An Install puts TRL into a virtual environment of the data folder.
type Install struct {
	Data   string    // data folder
	Python string    // interpreter to build on; "" = python3
	Wheels string    // folder of wheels to install from without a network; "" = the configured index
	Out    io.Writer // progress
}

// stampFile holds the hash of the requirements that an environment was made
// from; it is written when everything has been verified.
const stampFile = "alidade-requirements"

// minPython is the oldest Python that the locked requirements have files for.
const minPython = "3.11"

// Run makes the environment, or finds it made. What was cut short is gone on
// with. It prints what it does, and ends with the versions that were found.
func (i Install) Run(ctx context.Context) error {
	dir, err := filepath.Abs(native.EnvironmentDir(i.Data, Kind))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("install trl: %w", err)
	}
	unlock, err := native.Lock(ctx, dir+".lock")
	if err != nil {
		return fmt.Errorf("install trl: %w", err)
	}
	defer unlock()
	python := filepath.Join(dir, "bin", "python")
	stamp := filepath.Join(dir, stampFile)
	sum := sha256.Sum256(Requirements())
	want := hex.EncodeToString(sum[:])
	if have, err := os.ReadFile(stamp); err == nil && strings.TrimSpace(string(have)) == want {
		if v, err := (Adapter{}).Probe(ctx, python); err == nil {
			fmt.Fprintf(i.Out, "trl is installed already in %s: %s\n", dir, versionText(v))
			return nil
		}
	}
	if err := i.install(ctx, dir, python); err != nil {
		return fmt.Errorf("install trl: %w", err)
	}
	if err := i.verify(ctx, dir, python); err != nil {
		return fmt.Errorf("install trl: %w", err)
	}
	return os.WriteFile(stamp, []byte(want+"\n"), 0o644)
}

func (i Install) install(ctx context.Context, dir, python string) error {
	base := i.Python
	if base == "" {
		base = "python3"
	}
	base, err := exec.LookPath(base)
	if err != nil {
		return fmt.Errorf("python: %w", err)
	}
	if err := checkVersion(ctx, base); err != nil {
		return err
	}
	requirements := filepath.Join(filepath.Dir(dir), "trl-requirements.txt")
	if err := os.WriteFile(requirements, Requirements(), 0o644); err != nil {
		return err
	}
	var offline []string
	if i.Wheels != "" {
		wheels, err := filepath.Abs(i.Wheels)
		if err != nil {
			return err
		}
		if _, err := os.Stat(wheels); err != nil {
			return fmt.Errorf("folder of wheels: %w", err)
		}
		offline = []string{"--no-index", "--find-links", wheels}
	}
	_, err = os.Stat(python)
	made := err == nil
	if uv, err := exec.LookPath("uv"); err == nil {
		if !made {
			if err := i.step(ctx, uv, "venv", "--quiet", "--python", base, dir); err != nil {
				return err
			}
		}
		return i.step(ctx, uv, append([]string{"pip", "install", "--python", python, "--requirement", requirements}, offline...)...)
	}
	if !made {
		if err := i.step(ctx, base, "-m", "venv", dir); err != nil {
			return err
		}
	}
	return i.step(ctx, python, append([]string{"-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off", "--requirement", requirements}, offline...)...)
}

// checkVersion refuses a Python that is too old.
func checkVersion(ctx context.Context, python string) error {
	text, err := exec.CommandContext(ctx, python, "-c", "import sys; print('%d.%d' % sys.version_info[:2]); sys.exit(sys.version_info < (3, 11))").Output()
	version := strings.TrimSpace(string(text))
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case version == "":
		return fmt.Errorf("%s does not run: %w", python, err)
	}
	return fmt.Errorf("%s is Python %s, must be %s or newer; name another one with --python", python, version, minPython)
}

// step runs one command, its output going to ours.
func (i Install) step(ctx context.Context, argv0 string, args ...string) error {
	fmt.Fprintf(i.Out, "%s %s\n", filepath.Base(argv0), strings.Join(args, " "))
	began := time.Now()
	cmd := exec.CommandContext(ctx, argv0, args...)
	cmd.Stdout, cmd.Stderr = i.Out, i.Out
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return errors.Join(context.Cause(ctx), fmt.Errorf("%s: %w", filepath.Base(argv0), err))
	}
	fmt.Fprintf(i.Out, "  done in %.0f s\n", time.Since(began).Seconds())
	return nil
}

// verify asks the new environment for its versions, and whether it works.
func (i Install) verify(ctx context.Context, dir, python string) error {
	v, err := (Adapter{}).Probe(ctx, python)
	if err != nil {
		return err
	}
	text, err := exec.CommandContext(ctx, python, "-c", "import torch, transformers, trl.trainer.grpo_trainer, peft; print('CUDA ' + str(torch.version.cuda) + ', ' + str(torch.cuda.device_count()) + ' GPUs')").CombinedOutput()
	if err != nil {
		return fmt.Errorf("the packages are there but cannot be used: %w: %s", err, tail(string(text), 800))
	}
	fmt.Fprintf(i.Out, "installed in %s: %s; %s\n", dir, versionText(v), strings.TrimSpace(tail(string(text), 200)))
	return nil
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

func versionText(v native.Versions) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(v)) {
		parts = append(parts, name+" "+v[name])
	}
	return strings.Join(parts, ", ")
}
