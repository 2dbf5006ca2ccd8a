package trl

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestInstallRefuses: what cannot work is said before anything is fetched.
func TestInstallRefuses(t *testing.T) {
	old := filepath.Join(t.TempDir(), "python3.9")
	if err := os.WriteFile(old, []byte("#!/bin/sh\necho 3.9\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(t.TempDir(), "python3")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\nexit 127\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	recent := filepath.Join(t.TempDir(), "python3.12")
	if err := os.WriteFile(recent, []byte("#!/bin/sh\necho 3.12\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		in   Install
		want string
	}{
		{"old", Install{Python: old}, "is Python 3.9, must be 3.11 or newer"},
		{"broken", Install{Python: broken}, "does not run"},
		{"none", Install{Python: "/nowhere/python3"}, "/nowhere/python3"},
		{"wheels", Install{Python: recent, Wheels: "/nowhere/wheels"}, "folder of wheels"},
	} {
		var out bytes.Buffer
		c.in.Data, c.in.Out = t.TempDir(), &out
		if err := c.in.Run(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (Install{Data: t.TempDir(), Python: recent, Out: &bytes.Buffer{}}).Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// TestRequirementsAreLocked: every line names one version.
func TestRequirementsAreLocked(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(string(Requirements())), "\n")
	found := map[string]bool{}
	for _, l := range lines {
		name, rest, ok := strings.Cut(l, "==")
		if !ok || strings.TrimSpace(rest) == "" {
			t.Errorf("not locked: %q", l)
		}
		found[name] = true
	}
	for _, name := range packages {
		if name != "vllm" && !found[name] {
			t.Errorf("%s is not among the requirements", name)
		}
	}
}
