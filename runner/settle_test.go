package runner

import (
	"os"
	"strings"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/runner/shim"
	"alidade/trainer"
)

func TestJudge(t *testing.T) {
	run := ablation.Run{State: ablation.Running, Step: 12, TotalSteps: 40}
	finished := &trainer.Done{OK: true, Step: 40, Reason: "finished"}
	stopped := &trainer.Done{Step: 12, Reason: "stopped"}
	zero, one, killed := &shim.Exit{}, &shim.Exit{ExitCode: 1}, &shim.Exit{ExitCode: -1, Signal: "killed"}
	tests := []struct {
		name  string
		in    evidence
		event ablation.Event
		code  string
		cause string // part of it
	}{
		{"finished", evidence{done: finished, exit: zero}, ablation.EvSucceeded, "", ""},
		{"finished, no record", evidence{done: finished}, ablation.EvSucceeded, "", ""},
		{"finished before the stop", evidence{done: finished, exit: zero, stopping: true}, ablation.EvSucceeded, "", ""},
		{"finished, then failed", evidence{done: finished, exit: one}, ablation.EvFailed, "trainer", "exit code 1"},
		{"too short", evidence{done: &trainer.Done{OK: true, Step: 39}, exit: zero}, ablation.EvFailed, "short", "step 39 of 40"},
		{"stopped on request", evidence{done: stopped, exit: zero, stopping: true}, ablation.EvStopped, "", "on request"},
		{"had to be killed", evidence{exit: killed, stopping: true, killed: true}, ablation.EvStopped, "", "was killed"},
		{"stopped by others", evidence{done: stopped, exit: zero}, ablation.EvStopped, "", "outside"},
		{"no record", evidence{}, ablation.EvLost, "lost", "cannot be known"},
		{"exit 0 without done", evidence{exit: zero}, ablation.EvFailed, "exit", "never said that it was done, at step 12 of 40"},
		{"killed", evidence{exit: killed}, ablation.EvFailed, "signal", "SIGKILL"},
		{"killed by the kernel", evidence{exit: &shim.Exit{ExitCode: -1, Signal: "killed", OOMKills: 1}}, ablation.EvFailed, "oom-killer", "out-of-memory killer"},
		{"native crash", evidence{exit: &shim.Exit{ExitCode: -1, Signal: "segmentation fault"}}, ablation.EvFailed, "native", "native code"},
		{"not started", evidence{exit: &shim.Exit{ExitCode: 127, Error: "start trainer: no such file"}}, ablation.EvFailed, "not-started", "no such file"},
		{"own words", evidence{exit: one, done: &trainer.Done{Reason: "the panel is empty"}}, ablation.EvFailed, "trainer", "the panel is empty (exit code 1)"},
		{"own words without a record", evidence{done: &trainer.Done{Reason: "the panel is empty"}}, ablation.EvFailed, "trainer", "the panel is empty"},
		{"disk", evidence{exit: one, stderr: []byte("OSError: [Errno 28] No space left on device\n")}, ablation.EvFailed, "disk-full", "the disk is full"},
		{"a wrapper's name is no cause", evidence{exit: one, stderr: []byte("ray.exceptions.RayTaskError(OutOfMemoryError): ray::WorkerDict.update()\ntorch.OutOfMemoryError: CUDA out of memory.\n")}, ablation.EvFailed, "cuda-oom", "GPU's memory"},
		{"host memory", evidence{exit: one, stderr: []byte("Traceback (most recent call last):\nMemoryError\n")}, ablation.EvFailed, "host-oom", "machine's memory"},
		{"a printed configuration is no cause", evidence{exit: one, stdout: []byte("actor.ppo_mini_batch_size = 16\n"), done: &trainer.Done{Reason: "rl: it ended with exit code 1"}}, ablation.EvFailed, "trainer", "exit code 1"},
		{"batch sizes", evidence{exit: one, stderr: []byte("AssertionError: train_batch_size (8) must be >= actor.ppo_mini_batch_size (16)\n")}, ablation.EvFailed, "batch-sizes", "batch sizes"},
		{"killed below its driver", evidence{exit: one, stderr: []byte("run ended err=\"rl: verl ended with exit code 137 at step 3\"\n")}, ablation.EvFailed, "killed", "was killed"},
		{"crashed below its driver", evidence{exit: one, stderr: []byte("run ended err=\"rl: verl ended with exit code 139 at step 3\"\n")}, ablation.EvFailed, "native", "native code"},
		{"first cause wins", evidence{exit: one, stderr: []byte("torch.OutOfMemoryError: CUDA out of memory.\nncclRemoteError: peer gone\n")}, ablation.EvFailed, "cuda-oom", "GPU's memory"},
		{"bad key", evidence{exit: one, stderr: []byte("Could not override 'actor.lrr'\n")}, ablation.EvFailed, "config", "refused its configuration"},
		{"python", evidence{exit: one, stderr: []byte("Traceback (most recent call last):\n  File \"a.py\"\nKeyError: 'x'\n\nDuring handling\nTraceback (most recent call last):\n  b\nValueError: y\n")}, ablation.EvFailed, "exception", "KeyError: 'x' (exit code 1)"},
		{"go", evidence{exit: &shim.Exit{ExitCode: 2}, stderr: []byte("panic: index out of range\n\ngoroutine 1\n")}, ablation.EvFailed, "exception", "panic: index out of range"},
		{"nan", evidence{exit: one, nan: "policy/loss is NaN at step 9"}, ablation.EvFailed, "nan", "policy/loss is NaN at step 9"},
		{"last words", evidence{exit: &shim.Exit{ExitCode: 3}, stderr: []byte("10%\r20%\rcannot go on\n\n")}, ablation.EvFailed, "exit", "exit code 3) and never said that it was done, at step 12 of 40: cannot go on"},
	}
	for _, tt := range tests {
		tt.in.run = run
		v := judge(tt.in)
		if v.event != tt.event || v.code != tt.code || !strings.Contains(v.cause, tt.cause) {
			t.Errorf("%s: judge = %s, %q, %q; want %s, %q, %q", tt.name, v.event, v.code, v.cause, tt.event, tt.code, tt.cause)
		}
		if next, err := run.State.Next(v.event); err != nil || next != v.state {
			t.Errorf("%s: the event leads to %s (%v), the verdict says %s", tt.name, next, err, v.state)
		}
	}
}

func TestWatch(t *testing.T) {
	timing := Timing{}.withDefaults()
	now := time.Unix(1000, 0)
	w := newWatch(timing, ablation.Recipe{}, now)
	steps := func(phase string, first, n int64, gap time.Duration) []trainer.Event {
		events := []trainer.Event{{Kind: trainer.KindPhase, Phase: &trainer.Phase{Name: phase}}}
		for i := range n {
			events = append(events, trainer.Event{Kind: trainer.KindPoints, T: 1 + i*gap.Milliseconds(), Points: &trainer.Points{Step: first + i}})
		}
		return events
	}
	quiet := func(d time.Duration, want string) {
		t.Helper()
		got := ""
		if a := w.look(now.Add(d), "/x/events.jsonl"); a != nil {
			got = a.Code
		}
		if got != want {
			t.Errorf("after %s of silence in phase %q: alert %q, want %q", d, w.phase, got, want)
		}
	}
	quiet(4*time.Minute, "")
	quiet(5*time.Minute, "nothing-received")
	quiet(6*time.Minute, "") // once

	w.hear(now, steps("rl", 1, 10, time.Second))
	quiet(59*time.Second, "")
	quiet(61*time.Second, "stalled")
	w.hear(now, steps("rl", 11, 10, time.Minute))
	w.hear(now, steps("rl", 21, 10, time.Minute))
	quiet(3*time.Minute, "") // the pace is a minute now
	quiet(4*time.Minute+time.Second, "stalled")
	w.hear(now, steps("eval", 30, 1, 0)) // a phase without a pace of its own
	quiet(4*time.Minute+time.Second, "")
	w.hear(now, steps("rl", 31, 1, 0)) // the first step of a phase may be slow
	quiet(2*time.Minute, "")
}

// Steps that bring a checkpoint or an evaluation are learned apart.
func TestWatchOfSlowSteps(t *testing.T) {
	now := time.Unix(1000, 0)
	var recipe ablation.Recipe
	recipe.Budget.CheckpointEvery, recipe.Evaluation.Every = 10, 1000
	w := newWatch(Timing{}.withDefaults(), recipe, now)
	clock := int64(1)
	to := func(last int64, checkpoint time.Duration) {
		for step := w.step + 1; step <= last; step++ {
			gap := time.Second
			if (step-1)%10 == 0 {
				gap = checkpoint
			}
			clock += gap.Milliseconds()
			w.hear(now, []trainer.Event{{Kind: trainer.KindPoints, T: clock, Points: &trainer.Points{Step: step}}})
		}
	}
	patient := func(want time.Duration) {
		t.Helper()
		if got := w.patience(); got != want {
			t.Errorf("patience after step %d = %s, want %s", w.step, got, want)
		}
	}
	to(5, 0)
	patient(time.Minute)
	to(10, 0)
	patient(5 * time.Minute) // the first checkpoint: nobody knows how long it takes
	to(15, 30*time.Second)
	patient(time.Minute)
	to(20, 30*time.Second)
	patient(6 * time.Minute) // ten times longer raises nothing
	clock -= 86_400_000      // the clock is set back by a day
	to(25, time.Second)
	patient(time.Minute)
	clock += 2 * 86_400_000
	to(28, time.Second)
	patient(time.Minute)

	// After a restart the pace is known at once, and a silence that was there counts.
	again := newWatch(Timing{}.withDefaults(), recipe, now)
	var events []trainer.Event
	for step := int64(21); step <= 28; step++ {
		events = append(events, trainer.Event{Kind: trainer.KindPoints, T: 1000 * step, Points: &trainer.Points{Step: step}})
	}
	path := t.TempDir() + "/events.jsonl"
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, now, now.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	again.relearn(now, events, path)
	if a := again.look(now.Add(4*time.Second), path); a != nil {
		t.Errorf("alert before the trainer could write: %+v", a)
	}
	if a := again.look(now.Add(6*time.Second), path); a == nil || a.Code != "stalled" {
		t.Errorf("alert = %+v, want stalled soon after the restart", a)
	}
}
