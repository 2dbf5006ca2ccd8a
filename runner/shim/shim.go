// Package shim is the process beside a trainer: `alidade shim --dir DIR --
// argv…`. [Main] starts the trainer in a process group of its own with files
// for its output, forwards signals to it, records how it ended (exit.json)
// and leaves only when nothing the trainer started is left. It outlives the
// server; a later server finds it through shim.json.
//
// It reads no events and knows no recipes; what to start is its arguments.
package shim

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The exit codes of the shim itself; the trainer's is in exit.json.
const (
	codeOK      = 0
	codeUsage   = 2
	codeClaimed = 3 // the folder belongs to another shim or was given up
	codeRecord  = 4 // a record could not be written
)

// savingGrace is how long a stopped script's children may go on.
const savingGrace = 10 * time.Second

// cannotStart is the exit code recorded for a trainer that could not be
// started, as shells have it.
const cannotStart = 127

// Main runs the shim with the arguments after the word "shim" and returns the
// process's exit code. It writes shim.json, stdout.log, stderr.log and
// exit.json into DIR. Only a process of its own may call it: it takes over
// signals and reaps all children.
func Main(args []string) int {
	s := &shim{}
	flags := flag.NewFlagSet("alidade shim", flag.ContinueOnError)
	flags.StringVar(&s.dir, "dir", "", "the attempt's folder")
	flags.DurationVar(&s.grace, "grace", 2*time.Second, "time between SIGTERM and SIGKILL for processes the trainer left behind")
	job := flags.String("job", "", "in a cluster's job: the file that says what to run")
	array := flags.String("array", "", "in a task of a cluster's job array: the file that lists the attempts' folders")
	sampler := flags.Bool("sample", false, "note what the job's GPUs do; a shim starts it beside itself")
	dumper := flags.Bool("dump", false, "note what the attempt's processes do; a shim starts it when it is asked")
	if err := flags.Parse(args); err != nil {
		return codeUsage
	}
	if *sampler && s.dir != "" {
		return sample(s.dir)
	}
	if *dumper && s.dir != "" {
		return dump(s.dir)
	}
	if *array != "" {
		var err error
		if s.dir, err = taskDir(*array); err != nil {
			fmt.Fprintln(os.Stderr, "alidade shim:", err)
			return codeUsage
		}
		*job = filepath.Join(s.dir, JobFile)
	}
	s.argv, s.env = flags.Args(), os.Environ()
	if s.dir == "" || (len(s.argv) == 0) == (*job == "") {
		fmt.Fprintln(os.Stderr, "usage: alidade shim --dir DIR -- argv…, or --dir DIR --job FILE, or --array FILE")
		return codeUsage
	}
	if *job != "" {
		if err := s.loadJob(*job); err != nil {
			fmt.Fprintln(os.Stderr, "alidade shim:", err)
			return codeUsage
		}
	}
	err := s.run()
	switch {
	case err == nil:
		return codeOK
	case errors.Is(err, ErrClaimed):
		fmt.Fprintln(os.Stderr, "alidade shim:", err)
		return codeClaimed
	}
	fmt.Fprintln(os.Stderr, "alidade shim:", err)
	return codeRecord
}

type shim struct {
	dir   string
	argv  []string
	env   []string
	grace time.Duration
	job   Job
	inJob bool

	handle  Handle
	exit    Exit
	limited time.Time // when the job's time was nearly up
	signals chan os.Signal
	told    time.Time // when the whole group was last asked to end
	sampler int       // process; 0 = none
}

// run is the shim's life, top to bottom.
func (s *shim) run() error {
	_, _ = syscall.Setsid() // refused when the launcher has made us a session leader already
	// What the trainer leaves behind becomes our child, so that we can end it.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	s.signals = make(chan os.Signal, 64)
	signal.Notify(s.signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT, syscall.SIGCHLD)

	if s.inJob {
		signal.Notify(s.signals, AskDump)
	}
	started := time.Now()
	oom := oomKills()
	s.handle = Handle{PID: os.Getpid(), BootID: BootID(), Started: started, Job: jobID()}
	s.handle.Host, _ = os.Hostname()
	s.handle.StartTicks, _ = StartTicks(s.handle.PID)
	if err := claim(s.dir, s.handle); err != nil {
		return err
	}
	s.exit.Started = started
	if err := s.start(); err != nil {
		s.exit.ExitCode, s.exit.Error, s.exit.Ended = cannotStart, err.Error(), time.Now()
		return errors.Join(replace(s.dir, ExitFile, s.exit), s.leave())
	}
	if err := replace(s.dir, HandleFile, s.handle); err != nil {
		s.complain(err) // an adopting server still finds us by the first record
	}
	s.startSampler()
	status, usage := s.wait()
	s.endSampler()
	exit := &s.exit
	exit.Ended = time.Now()
	exit.LastedS = exit.Ended.Sub(started).Seconds() // both carry the monotonic clock
	exit.ExitCode = status.ExitStatus()
	if status.Signaled() {
		exit.Signal = status.Signal().String()
	}
	exit.MaxRSSKiB, exit.UserS, exit.SysS = usage.Maxrss, seconds(usage.Utime), seconds(usage.Stime)
	exit.OOMKills = oomKills() - oom
	err := s.record(*exit)
	s.sweep()
	return errors.Join(err, s.leave())
}

// leave notes in a cluster's job that nothing of it runs any more: those who
// cannot see its processes read it there.
func (s *shim) leave() error {
	if !s.inJob {
		return nil
	}
	s.handle.Left = time.Now()
	return replace(s.dir, HandleFile, s.handle)
}

// start starts the trainer, its output appended to files: a pipe would tie it
// to us.
func (s *shim) start() error {
	path, err := exec.LookPath(s.argv[0])
	if err != nil {
		return fmt.Errorf("start trainer: %w", err)
	}
	stdin, err := os.Open(os.DevNull)
	if err != nil {
		return fmt.Errorf("start trainer: %w", err)
	}
	defer closeFile(stdin)
	stdout, err := openLog(filepath.Join(s.dir, StdoutFile))
	if err != nil {
		return fmt.Errorf("start trainer: %w", err)
	}
	defer closeFile(stdout)
	stderr, err := openLog(filepath.Join(s.dir, StderrFile))
	if err != nil {
		return fmt.Errorf("start trainer: %w", err)
	}
	defer closeFile(stderr)
	pid, err := syscall.ForkExec(path, s.argv, &syscall.ProcAttr{
		Dir:   s.job.WorkDir,
		Env:   s.env,
		Files: []uintptr{stdin.Fd(), stdout.Fd(), stderr.Fd()},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return fmt.Errorf("start trainer: %s: %w", path, err)
	}
	s.handle.TrainerPID = pid
	s.handle.TrainerTicks, _ = StartTicks(pid) // our child: the id cannot be another's before we reap it
	return nil
}

// wait forwards signals until the trainer has ended, and reaps what was
// reparented to us on the way.
func (s *shim) wait() (syscall.WaitStatus, syscall.Rusage) {
	tick := time.NewTicker(time.Second) // should a SIGCHLD be missed
	defer tick.Stop()
	for {
		var status syscall.WaitStatus
		var usage syscall.Rusage
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, &usage)
		switch {
		case err == nil && pid == s.handle.TrainerPID:
			return status, usage
		case err == nil && pid > 0, errors.Is(err, syscall.EINTR):
			if pid == s.sampler {
				s.sampler = 0 // its id may soon be another's
			}
			continue
		}
		select {
		case sig := <-s.signals:
			if sig, ok := sig.(syscall.Signal); ok && sig != syscall.SIGCHLD {
				s.forward(sig)
			}
		case <-tick.C:
		}
		s.beforeLimit()
	}
}

// forward passes a signal to the trainer's whole group. SIGUSR1 and SIGUSR2
// go to those that handle them: the others they would kill.
func (s *shim) forward(sig syscall.Signal) {
	if s.inCluster(sig) {
		return
	}
	group := s.handle.TrainerPID
	if sig == syscall.SIGTERM || sig == syscall.SIGINT {
		s.told = time.Now()
	}
	if sig != syscall.SIGUSR1 && sig != syscall.SIGUSR2 {
		_ = syscall.Kill(-group, sig)
		s.passed(sig, 1)
		return
	}
	to := catchers(group, sig)
	for _, pid := range to {
		_ = syscall.Kill(pid, sig)
	}
	s.passed(sig, len(to))
}

// record writes exit.json. It is the only witness of how the trainer ended,
// so a full disk is waited out for a while.
func (s *shim) record(exit Exit) error {
	var err error
	for range 60 {
		if err = replace(s.dir, ExitFile, exit); err == nil || !errors.Is(err, syscall.ENOSPC) {
			return err
		}
		time.Sleep(time.Second)
	}
	return err
}

// sweep ends what the trainer left behind, in its group or escaped from it:
// SIGTERM, grace, SIGKILL until nothing is left. Where the group was asked to
// end already, a script may have died of it while the real trainer, its child,
// saves its state: that one is not asked twice, and gets longer.
func (s *shim) sweep() {
	sig, until := syscall.SIGTERM, time.Now().Add(s.grace)
	if !s.told.IsZero() {
		sig, until = 0, s.told.Add(savingGrace)
	}
	signalled := make(map[int]syscall.Signal)
	for {
		for {
			var status syscall.WaitStatus
			if pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil); pid <= 0 && !errors.Is(err, syscall.EINTR) {
				break
			}
		}
		left := s.leftovers()
		if len(left) == 0 {
			return
		}
		if time.Now().After(until) {
			sig = syscall.SIGKILL
		}
		for _, p := range left {
			if sig != 0 && signalled[p.pid] != sig {
				signalled[p.pid] = sig
				_ = syscall.Kill(p.pid, sig)
			}
		}
		select {
		case <-s.signals:
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// leftovers lists the living processes of the trainer's group and all
// descendants of ours.
func (s *shim) leftovers() []process {
	all := processes()
	ours := map[int]bool{os.Getpid(): true}
	for grew := true; grew; {
		grew = false
		for _, p := range all {
			if !ours[p.pid] && (ours[p.ppid] || p.pgrp == s.handle.TrainerPID) {
				ours[p.pid], grew = true, true
			}
		}
	}
	left := all[:0:0]
	for _, p := range all {
		if ours[p.pid] && p.pid != os.Getpid() {
			left = append(left, p)
		}
	}
	return left
}

// complain writes where the trainer's user will look.
func (s *shim) complain(err error) {
	f, openErr := openLog(filepath.Join(s.dir, StderrFile))
	if openErr != nil {
		return
	}
	defer closeFile(f)
	fmt.Fprintln(f, "alidade shim:", err)
}

func openLog(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

func closeFile(c io.Closer) { _ = c.Close() }

func seconds(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
