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
