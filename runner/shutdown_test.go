package runner_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/runner/shim"
	"alidade/store"
)

// SIGTERM ends the server soon and touches no run; a second one does no harm.
func TestServerIsAskedToEnd(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	runs := planSteps(t, data, []string{"ok", "5"}, 200, 0)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "server", data)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	until(t, "two trainers", func() bool { return started(data, runs) == 2 })
	began := time.Now()
	for range 2 {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Log(err) // it has ended already
		}
		time.Sleep(50 * time.Millisecond)
	}
	_ = cmd.Wait()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the server took %s to end", took)
	}
	st, err := store.Open(data, store.Options{ReadOnly: true})
	if err != nil {
		t.Fatalf("the data folder cannot be read after SIGTERM: %v", err)
	}
	for _, id := range runs {
		if run, err := st.Run(t.Context(), id); err != nil || !run.State.Live() {
			t.Errorf("run %d is %s (%v), want it live", id, run.State, err)
		}
	}
	if err := st.Close(); err != nil {
		t.Error(err)
	}
	until(t, "both exits without a server", func() bool { return exits(data, runs) == 2 })
	exit, err := shim.ReadExit(attemptDir(data, runs[1]))
	if err != nil || exit.ExitCode != 5 || exit.Signal != "" {
		t.Errorf("exit = %+v, %v; want code 5: the server's end changes no exit code", exit, err)
	}
	g := newRig(t, data, rigOptions{slots: 2})
	if a := g.wait(runs[1], ablation.Failed); a.Attempt != 1 {
		t.Errorf("run = %+v", a)
	}
	g.wait(runs[0], ablation.Succeeded)
}

// The last line that a trainer wrote is stored at most a second after its end.
func TestLastLine(t *testing.T) {
	t.Parallel()
	g := newRig(t, "", rigOptions{})
	id := g.launch(300, 1, "ok", 2*time.Millisecond)[0].ID
	g.waitStep(id, 5)
	dir := filepath.Dir(g.file(id, 1, "x"))
	until(t, "exit", func() bool { _, err := shim.ReadExit(dir); return err == nil })
	time.Sleep(time.Second)
	if points := g.series(id, "reward/mean"); len(points) != 300 {
		t.Errorf("%d points a second after the end, want 300", len(points))
	}
}
