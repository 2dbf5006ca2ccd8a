package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"alidade/trainer"
)

const (
	pollEvery       = 300 * time.Millisecond
	checkpointEvery = 2 * time.Second

	// termAfter is how long a request to stop may take to reach the native
	// process as a member of our process group, before it is sent by us.
	termAfter = 500 * time.Millisecond
	// lingers is how long descendants may hold the pipes of a process that has
	// ended.
	lingers = 10 * time.Second
)

// launch runs the process of a plan to its end, translating what it writes.
func (r *run) launch(ctx context.Context, stage string, plan Plan, job Job) error {
	if err := r.writePlan(plan, job); err != nil {
		return err
	}
	if plan.Companion != nil {
		end, err := r.companion(*plan.Companion, job)
		if err != nil {
			return err
		}
		defer end()
	}
	end, err := r.service(ctx, &plan)
	if err != nil {
		return err
	}
	defer end()
	p, err := r.start(plan, job.Dir, "")
	if err != nil {
		return fmt.Errorf("%s: start %s: %w", stage, plan.Argv[0], err)
	}
	w := &watch{r: r, stage: stage, plan: plan, job: job, known: map[string]bool{}, began: time.Now()}
	return w.follow(ctx, p)
}

// writePlan writes the files of a plan, and for the record what was resolved.
func (r *run) writePlan(plan Plan, job Job) error {
	for name, text := range plan.Files {
		path := filepath.Join(job.Dir, filepath.FromSlash(name))
		if !strings.HasPrefix(path, job.Dir+string(filepath.Separator)) {
			return fmt.Errorf("plan: file %q leads out of the stage's folder", name)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("plan: %w", err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return fmt.Errorf("plan: %w", err)
		}
	}
	for _, s := range plan.Resolved {
		from := ""
		if s.From != "" {
			from = "  (" + s.From + ")"
		}
		fmt.Fprintf(r.stdout(), "%s: %s = %s%s\n", job.Stage, s.Key, s.Value, from)
	}
	record := struct {
		Argv     []string  `json:"argv"`
		Resolved []Setting `json:"resolved,omitempty"`
		Versions Versions  `json:"versions"`
	}{plan.Argv, plan.Resolved, r.versions}
	src, err := json.MarshalIndent(record, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(job.Dir, "plan.json"), append(src, '\n'), 0o644)
}

// process is a native process under way.
type process struct {
	cmd    *exec.Cmd
	ended  chan struct{} // closed when it has been waited for
	err    error         // of the wait
	stderr *complaint
	logs   []io.Closer
}

// start starts a plan's process in our process group, so that what the shim
// sends reaches it too. Its output goes into files and is copied to ours.
func (r *run) start(plan Plan, dir, prefix string) (*process, error) {
	p := &process{ended: make(chan struct{}), stderr: &complaint{}}
	open := func(name string) (*os.File, error) {
		f, err := os.OpenFile(filepath.Join(dir, prefix+name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err == nil {
			p.logs = append(p.logs, f)
		}
		return f, err
	}
	stdout, err := open("stdout.log")
	if err != nil {
		return nil, err
	}
	stderr, err := open("stderr.log")
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(plan.Argv[0], plan.Argv[1:]...)
	p.cmd.Dir, p.cmd.Env = dir, r.environ(plan)
	p.cmd.Stdout = io.MultiWriter(stdout, orDiscard(r.cfg.Stdout))
	p.cmd.Stderr = io.MultiWriter(stderr, p.stderr, orDiscard(r.cfg.Stderr))
	p.cmd.WaitDelay = lingers
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(err, p.close())
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

func (p *process) close() error {
	var errs []error
	for _, f := range p.logs {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// exit is the exit code, 128 + the number of the signal that ended it.
func (p *process) exit() int {
	if s, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return 128 + int(s.Signal())
	}
	return p.cmd.ProcessState.ExitCode()
}

// environ is a native process's environment: ours, the environment server's
// token, and what the plan adds and takes away.
func (r *run) environ(plan Plan) []string {
	env := slices.DeleteFunc(os.Environ(), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return name == "GOMAXPROCS" || slices.Contains(plan.Unset, name)
	})
	threads := strconv.Itoa(max(1, r.spec.Threads))
	env = append(env, "PYTHONUNBUFFERED=1", "OMP_NUM_THREADS="+threads, TokenEnv+"="+r.token)
	return append(env, plan.Env...)
}

// companion starts a plan's companion and returns what ends it.
func (r *run) companion(plan Plan, job Job) (end func(), err error) {
	for name, text := range plan.Files {
		if err := os.WriteFile(filepath.Join(job.Dir, filepath.Base(name)), text, 0o600); err != nil {
			return nil, fmt.Errorf("companion: %w", err)
		}
	}
	p, err := r.start(plan, job.Dir, "companion.")
	if err != nil {
		return nil, fmt.Errorf("companion: start %s: %w", plan.Argv[0], err)
	}
	return func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-p.ended:
		case <-time.After(lingers):
			_ = p.cmd.Process.Kill()
			<-p.ended
		}
		if err := p.close(); err != nil {
			r.log.Warn("companion's log", "err", err)
		}
	}, nil
}

// watch follows the process of one stage.
type watch struct {
	r     *run
	stage string
	plan  Plan
	job   Job

	known   map[string]bool // checkpoints that were announced
	looked  time.Time       // at checkpoints
	bad     int             // lines that no source understood
	total   int64
	began   time.Time
	quieted bool
}

// follow polls until the process has ended, and judges its end.
func (w *watch) follow(ctx context.Context, p *process) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var told <-chan time.Time
	stopping := ctx.Done()
	for {
		select {
		case <-tick.C:
			if err := w.poll(false); err != nil {
				w.r.log.Error("read what the trainer writes", "err", err)
			}
		case <-w.r.cfg.Save:
			if w.plan.Save != nil {
				if err := w.plan.Save(); err != nil {
					w.r.log.Warn("checkpoint asked for", "err", err)
				}
			}
		case <-stopping:
			stopping, told = nil, time.After(termAfter)
		case <-told:
			_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		case <-p.ended:
			return errors.Join(w.end(ctx, p), p.close())
		}
	}
}

// poll reads all sources once, and looks for checkpoints now and then.
func (w *watch) poll(last bool) error {
	var errs []error
	for rank, s := range w.plan.Sources {
		err := s.Poll(last, func(x Reading) {
			w.bad += x.Bad
			w.total = max(w.total, x.Total)
			w.r.book.read(rank, x)
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.Name(), err))
		}
	}
	errs = append(errs, w.r.book.settle(last))
	if last || time.Since(w.looked) > checkpointEvery {
		w.looked = time.Now()
		errs = append(errs, w.checkpoints())
	}
	return errors.Join(append(errs, w.quiet())...)
}

// quiet alerts once when nothing was heard of a process since its start.
func (w *watch) quiet() error {
	limit := w.plan.Quiet
	if limit == 0 {
		limit = 15 * time.Minute
	}
	w.r.book.mu.Lock()
	heard, lines := w.r.book.heard, w.r.book.lines
	w.r.book.mu.Unlock()
	if w.quieted || lines > 0 || time.Since(heard) < limit {
		return nil
	}
	w.quieted = true
	return w.r.out.Alert(trainer.Alert{Level: "warn", Code: "native-quiet", Step: w.r.last,
		Text: fmt.Sprintf("stage %s has written no metric and played no episode for %v; its log is native/%s/stderr.log", w.stage, limit, w.stage)})
}

// checkpoints announces those of the main phase that are new.
func (w *watch) checkpoints() error {
	if w.plan.Checkpoints == nil || w.stage != StageRL {
		return nil
	}
	list, err := w.plan.Checkpoints()
	if err != nil {
		return fmt.Errorf("look for checkpoints: %w", err)
	}
	for _, c := range list {
		if w.known[c.Path] {
			continue
		}
		path := c.Path
		if rel, err := filepath.Rel(w.r.spec.Dir, c.Path); err == nil && !strings.HasPrefix(rel, "..") {
			path = rel
		}
		if err := w.r.out.Checkpoint(trainer.Checkpoint{Step: c.Step, Path: path, Bytes: size(c.Path)}); err != nil {
			return err
		}
		w.known[c.Path] = true
	}
	return nil
}

// end judges how the process ended.
func (w *watch) end(ctx context.Context, p *process) error {
	if err := w.poll(true); err != nil {
		return err
	}
	if w.bad > 0 {
		err := w.r.out.Alert(trainer.Alert{Level: "info", Code: "native-unread", Step: w.r.last,
			Text: fmt.Sprintf("%d lines that %s wrote in stage %s were not understood", w.bad, w.r.recipe.Trainer.Kind, w.stage)})
		if err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	exit := p.exit()
	if w.plan.Finished != nil {
		last := w.r.last
		if w.stage != StageRL { // its steps are not the run's progress
			last = w.r.book.newestStep()
		}
		if ok, reason := w.plan.Finished(last, exit); !ok {
			return fmt.Errorf("%s: %s%s", w.stage, reason, p.stderr.because())
		}
		return nil
	}
	switch {
	case exit != 0:
		return fmt.Errorf("%s: %s ended with exit code %d at step %d%s", w.stage, w.r.recipe.Trainer.Kind, exit, w.r.last, p.stderr.because())
	case w.stage == StageRL && w.r.last < w.job.Steps:
		return fmt.Errorf("%s: %s ended with exit code 0 at step %d of %d", w.stage, w.r.recipe.Trainer.Kind, w.r.last, w.job.Steps)
	}
	return nil
}

// complaint remembers the first exception that a process printed: later ones
// are usually its consequences.
type complaint struct {
	rest   []byte
	inside bool
	first  string
}

// Write implements io.Writer.
func (c *complaint) Write(b []byte) (int, error) {
	c.rest = append(c.rest, b...)
	for {
		i := slices.Index(c.rest, '\n')
		if i < 0 {
			break
		}
		line := string(c.rest[:i])
		c.rest = c.rest[i+1:]
		switch {
		case c.first != "":
		case strings.HasPrefix(line, "Traceback (most recent call last):"):
			c.inside = true
		case c.inside && strings.TrimSpace(line) != "" && line[0] != ' ' && line[0] != '\t':
			c.first = strings.TrimSpace(line)
		}
	}
	if len(c.rest) > 1<<16 {
		c.rest = nil
	}
	return len(b), nil
}

// because is the exception as the end of a sentence.
func (c *complaint) because() string {
	if c.first == "" {
		return ""
	}
	return ": " + c.first[:min(len(c.first), 500)]
}
