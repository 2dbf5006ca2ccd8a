package shim

import (
	"errors"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestOneClaimWins(t *testing.T) {
	dir := t.TempDir()
	var won atomic.Int32
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			switch err := claim(dir, Handle{PID: i + 1}); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, ErrClaimed):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if h, err := ReadHandle(dir); won.Load() != 1 || err != nil || h.PID == 0 {
		t.Errorf("%d claims won, handle %+v, %v; want one", won.Load(), h, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left in the folder: %v, %v; want shim.json alone", entries, err)
	}
	if err := Abandon(dir); !errors.Is(err, ErrClaimed) {
		t.Errorf("Abandon = %v, want ErrClaimed", err)
	}
}

// A process that got the id later is not taken for the trainer.
func TestReusedPID(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	ticks, ok := StartTicks(cmd.Process.Pid)
	if !ok || ticks == 0 {
		t.Fatalf("StartTicks = %d, %v", ticks, ok)
	}
	h := Handle{PID: cmd.Process.Pid, StartTicks: ticks, BootID: BootID(), TrainerPID: cmd.Process.Pid, TrainerTicks: ticks}
	if !h.ShimAlive() || !h.TrainerAlive() {
		t.Errorf("%+v is not alive", h)
	}
	later, rebooted := h, h
	later.StartTicks, later.TrainerTicks = ticks-1, ticks-1
	rebooted.BootID = "another"
	for _, other := range []Handle{later, rebooted, {}} {
		if other.ShimAlive() || other.TrainerAlive() {
			t.Errorf("%+v is taken for the living process %+v", other, h)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"--dir", "x"}, {"--", "true"}, {"--nonsense"}} {
		if code := Main(args); code != codeUsage {
			t.Errorf("Main(%q) = %d, want %d", args, code, codeUsage)
		}
	}
}

func TestExitRecordIsWhole(t *testing.T) {
	dir := t.TempDir()
	want := Exit{ExitCode: -1, Signal: "killed", Started: time.Unix(1, 0).UTC(), Ended: time.Unix(2, 0).UTC(), MaxRSSKiB: 3, OOMKills: 1}
	if err := replace(dir, ExitFile, want); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadExit(dir); err != nil || got != want {
		t.Errorf("ReadExit = %+v, %v, want %+v", got, err, want)
	}
	if err := os.WriteFile(dir+"/"+ExitFile, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadExit(dir); err == nil {
		t.Error("half a record was read without an error")
	}
}
