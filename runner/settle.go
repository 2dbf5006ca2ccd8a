package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"alidade/ablation"
	"alidade/runner/shim"
	"alidade/trainer"
)

// Evidence is what is known when an attempt has ended.
type evidence struct {
	run      ablation.Run
	done     *trainer.Done // nil = not read
	exit     *shim.Exit    // nil = no record
	stopping bool          // we asked it to end
	killed   bool          // … and had to kill it
	nan      string        // the first NaN among losses, in words
	because  string        // why Alidade itself asked it to end; "" = a person did
	cluster  *Ending       // what the launcher knows of the end; nil = nothing
	stderr   []byte        // its end
	stdout   []byte        // its end
	kernel   []string      // lines of the kernel's log about its devices
}

// A verdict says how an attempt ended.
type verdict struct {
	event    ablation.Event
	state    ablation.State
	code     string   // of the alert; "" = none
	cause    string   // in words
	evidence []string // lines that prove it
	cluster  bool     // the launcher's cluster ended it: it may be tried again though it has not failed
}

// judge decides from the evidence alone. The done event is the first witness,
// the exit code the second; where they disagree the run has not succeeded.
func judge(e evidence) verdict {
	reached := e.done != nil && e.done.OK && e.done.Step >= e.run.TotalSteps
	clean := e.exit == nil || e.exit.ExitCode == 0
	switch {
	case reached && clean:
		return verdict{event: ablation.EvSucceeded, state: ablation.Succeeded}
	case e.stopping && e.because != "":
		return verdict{event: ablation.EvStopped, state: ablation.Stopped, cause: "stopped by Alidade: " + e.because}
	case e.stopping:
		cause := "stopped on request"
		if e.killed && (e.exit == nil || e.exit.Signal == syscall.SIGKILL.String()) {
			cause += "; it did not end by itself and was killed"
		}
		return verdict{event: ablation.EvStopped, state: ablation.Stopped, cause: cause}
	case e.cluster != nil && e.cluster.Code != "":
		return clusterVerdict(e)
	case stoppedItself(e.done) && clean:
		return verdict{event: ablation.EvStopped, state: ablation.Stopped, cause: "ended by a signal from outside Alidade"}
	case e.exit == nil && (e.done == nil || e.done.OK):
		return verdict{event: ablation.EvLost, state: ablation.Lost, code: "lost",
			cause: "it ended without an exit record (the machine was restarted, or its shim was killed too); how it ended cannot be known"}
	case e.done != nil && e.done.OK && clean:
		return failed("short", fmt.Sprintf("it said that it was done at step %d of %d", e.done.Step, e.run.TotalSteps), nil)
	}
	return diagnose(e)
}

// clusterVerdict is for what the cluster did to a run: that is not the run's
// failure, and may be tried again.
func clusterVerdict(e evidence) verdict {
	v := verdict{event: ablation.EvFailed, state: ablation.Failed, code: e.cluster.Code, cause: e.cluster.Text, cluster: true}
	if stoppedItself(e.done) || e.cluster.Code == "cancelled" {
		v.event, v.state = ablation.EvStopped, ablation.Stopped
	}
	return v
}

func failed(code, cause string, lines []string) verdict {
	return verdict{event: ablation.EvFailed, state: ablation.Failed, code: code, cause: cause, evidence: lines}
}

// recorded reports whether the exit record is there.
func (l *life) recorded() bool {
	_, err := shim.ReadExit(l.attempt.Dir)
	return err == nil
}

// settle writes down how the attempt ended. It is safe to do again after a
// crash in its middle: the same evidence gives the same verdict.
func (l *life) settle(ctx context.Context) {
	e := evidence{
		run: l.run, done: l.done, nan: l.nan, stopping: l.stopping(), killed: l.stopper.stage == killing, because: l.because(),
		stderr: tailOf(filepath.Join(l.attempt.Dir, shim.StderrFile), evidenceBytes),
		stdout: tailOf(filepath.Join(l.attempt.Dir, shim.StdoutFile), evidenceBytes),
		kernel: l.kernelLines(),
	}
	if ender, ok := l.r.cfg.Launcher.(Ender); ok {
		if ending, known := ender.Ending(ctx, l.handle); known {
			e.cluster = &ending
		}
	}
	exit, err := shim.ReadExit(l.attempt.Dir)
	if err == nil {
		e.exit = &exit
	} else if !errors.Is(err, fs.ErrNotExist) {
		l.r.log.Error("read exit record", "run", l.run.ID, "err", err)
	}
	v := judge(e)
	d := l.decideNow(ctx, v)
	if d.words != "" {
		v.cause += "; " + d.words
	}
	if v.code != "" {
		level := "bad"
		if d.again || v.code == "cancelled" {
			level = "warn"
		}
		l.alert(ctx, trainer.Alert{Level: level, Code: v.code, Text: withLines(v.cause, v.evidence)})
	}
	l.attempt.Code, l.attempt.Evidence = v.code, strings.Join(v.evidence, "\n")
	if v.state == ablation.Stopped && strings.HasPrefix(e.because, censored) {
		l.attempt.Code = censored
	}
	l.account(e.exit)
	l.end(ctx, v.state, v.cause, e.exit)
	l.settled(ctx, v.event, v.cause)
	if v.event != ablation.EvLost {
		l.sweep(ctx)
	}
	l.again(ctx)
	l.retry(ctx, d)
	if v.event == ablation.EvLost {
		if err := l.r.remember(ctx, l.run); err != nil {
			l.r.log.Error("remember lost run", "run", l.run.ID, "err", err)
		}
	}
	l.guard(ctx, v)
}

// end closes the attempt's record.
func (l *life) end(ctx context.Context, state ablation.State, cause string, exit *shim.Exit) {
	a := l.attempt
	a.State, a.Cause, a.EndedAt = state, cause, time.Now()
	if exit != nil {
		a.ExitCode, a.Signal, a.EndedAt = &exit.ExitCode, exit.Signal, exit.Ended
		if _, ok := l.r.cfg.Launcher.(Queuer); ok && !exit.Started.IsZero() {
			a.StartedAt = exit.Started // the cluster's queue does not count
		}
		a.EndedAt = steadyEnd(a.StartedAt, exit)
	}
	l.attempt = a
	l.patiently(ctx, "end attempt", func(ctx context.Context) error { return l.r.writer.EndAttempt(ctx, a) })
}

// clockSlack is by how much two readings of a clock may differ before it counts
// as set.
const clockSlack = 5 * time.Second

// steadyEnd is when an attempt ended. When the clock was set meanwhile it is
// as long after the start as the attempt lasted, so that no time is negative
// or a day too long.
func steadyEnd(started time.Time, exit *shim.Exit) time.Time {
	lasted := time.Duration(exit.LastedS * float64(time.Second))
	if wall := exit.Ended.Sub(exit.Started); lasted > 0 && (wall-lasted).Abs() > clockSlack {
		return started.Add(lasted)
	}
	return exit.Ended
}

// settled moves the run to where it ends. A run that was asked to stop between
// the evidence and now has ended all the same.
func (l *life) settled(ctx context.Context, ev ablation.Event, cause string) {
	at := l.attempt.EndedAt
	if at.IsZero() {
		at = time.Now()
	}
	l.patiently(ctx, "settle run", func(ctx context.Context) error {
		run, err := l.r.move(ctx, l.run.ID, ev, func(run *ablation.Run) {
			run.Cause, run.EndedAt = cause, at
			if ev == ablation.EvRequeue {
				run.Cause, run.EndedAt = "", time.Time{}
			}
		})
		if errors.Is(err, ablation.ErrConflict) && ev == ablation.EvRequeue {
			ev = ablation.EvStopped
			run, err = l.r.move(ctx, l.run.ID, ev, ended(cause))
		}
		if err == nil {
			l.run = run
		}
		return err
	})
}

// again queues a run that was stopped only to be paused.
func (l *life) again(ctx context.Context) {
	if l.run.State != ablation.Stopped || l.run.Hold == "" {
		return
	}
	l.patiently(ctx, "queue a paused run", func(ctx context.Context) error {
		run, err := l.r.move(ctx, l.run.ID, ablation.EvRequeue, func(run *ablation.Run) {
			run.Cause, run.EndedAt, run.QueuedAt, run.Place = "", time.Time{}, time.Now(), 0
			if run.Hold == goesOn {
				run.Hold = ""
			}
		})
		if err == nil {
			l.run = run
		}
		return err
	})
}

// patiently repeats a write until it succeeds, cannot ever, or the server
// ends; a last try is made then, so that a verdict is not lost to a shutdown.
func (l *life) patiently(ctx context.Context, what string, write func(context.Context) error) {
	for {
		once, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
		err := write(once)
		cancel()
		if err == nil {
			return
		}
		l.r.log.Error(what, "run", l.run.ID, "attempt", l.attempt.Number, "err", err)
		if errors.Is(err, ablation.ErrConflict) || errors.Is(err, ablation.ErrNotFound) {
			return
		}
		select {
		case <-ctx.Done():
			return // the next server settles it from the same evidence
		case <-time.After(time.Second):
		}
	}
}
