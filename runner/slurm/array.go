package slurm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"alidade/runner"
	"alidade/runner/shim"
)

// The files of a job array, in the folder of its first attempt.
const (
	manifestFile = "array.json"
	arrayScript  = "array.sh"
)

// A batch gathers runs that are launched at the same time and ask Slurm for
// the same, to be submitted as one job array. It is submitted when it is full,
// when no further run has come for a moment, or when the first has waited long
// enough.
type batch struct {
	wants   []runner.Launch
	opened  time.Time
	timer   *time.Timer
	sent    chan struct{} // closed when the outcomes are there
	records []record
	errs    []error
}

const (
	gather     = 250 * time.Millisecond // for the next run
	gatherMost = 2 * time.Second        // for all of them
	// A cluster without a setting of its own takes arrays of 1000.
	defaultArray = 1000
)

// together submits a run with others that ask for the same.
func (l *Launcher) together(want runner.Launch) (record, error) {
	key := strings.Join(l.options(want), "\x00") // what differs beside it is in job.json
	l.gathering.Lock()
	b := l.batches[key]
	if b == nil {
		b = &batch{opened: time.Now(), sent: make(chan struct{})}
		b.timer = time.AfterFunc(gather, func() { l.send(key, b) })
		l.batches[key] = b
	} else {
		b.timer.Reset(min(gather, gatherMost-time.Since(b.opened)))
	}
	i := len(b.wants)
	b.wants = append(b.wants, want)
	full := len(b.wants) >= l.mostInArray()
	l.gathering.Unlock()
	if full {
		l.send(key, b)
	}
	<-b.sent // bounded by the time limit of sbatch; the server's end must not leave it open
	return b.records[i], b.errs[i]
}

// send closes a batch for further runs and submits it, once.
func (l *Launcher) send(key string, b *batch) {
	l.gathering.Lock()
	mine := l.batches[key] == b
	if mine {
		delete(l.batches, key)
		b.timer.Stop()
	}
	l.gathering.Unlock()
	if !mine {
		return // full and timed out at once: the other one sends
	}
	b.records, b.errs = l.submitAll(b.wants)
	close(b.sent)
}

// mostInArray is the setting, within what the cluster takes.
func (l *Launcher) mostInArray() int {
	l.arrays.once.Do(func() {
		l.arrays.most = min(l.cfg.Settings.Array, defaultArray)
		if out, err := call(context.Background(), "scontrol", "show", "config"); err == nil {
			if n := maxArraySize(out); n > 0 {
				l.arrays.most = min(l.cfg.Settings.Array, n-1)
			}
		}
	})
	return l.arrays.most
}

// maxArraySize reads `scontrol show config`; 0 when it is not there.
func maxArraySize(config string) int {
	for line := range strings.Lines(config) {
		if name, value, ok := strings.Cut(line, "="); ok && strings.TrimSpace(name) == "MaxArraySize" {
			n, _ := strconv.Atoi(strings.TrimSpace(value))
			return n
		}
	}
	return 0
}

// submitAll submits runs as one array; a single one as a job of its own, and
// each by itself where the site refuses the array as such.
func (l *Launcher) submitAll(wants []runner.Launch) ([]record, []error) {
	records, errs := make([]record, len(wants)), make([]error, len(wants))
	if len(wants) > 1 || l.arrays.always {
		err := l.submitArray(wants, records)
		if err == nil {
			return records, errs
		}
		if !refusesArrays(err) {
			for i := range wants {
				records[i], errs[i] = l.notTaken(wants[i].Dir, err)
			}
			return records, errs
		}
		l.log.Warn("the cluster refuses a job array; its runs are submitted one by one", "component", "slurm", "runs", len(wants), "err", err)
	}
	for i := range wants {
		records[i], errs[i] = l.submitOne(wants[i])
	}
	return records, errs
}

// refusesArrays holds for a definite refusal that a single job may not meet.
func refusesArrays(err error) bool {
	text := err.Error()
	for _, words := range []string{"job array", "QOS", "policy", "limit"} {
		if strings.Contains(text, words) && !strings.Contains(text, "timed out") {
			return true
		}
	}
	return false
}

// submitArray hands the runs over as the tasks of one array. Each folder says
// beforehand to which array it belongs, so that a task is found again whose
// number could not be recorded.
func (l *Launcher) submitArray(wants []runner.Launch, records []record) error {
	first := wants[0].Dir
	manifest := filepath.Join(first, manifestFile)
	dirs := make([]string, len(wants))
	now := time.Now()
	for i, want := range wants {
		dirs[i] = want.Dir
		records[i] = record{Array: manifest, Index: i, Submitted: now}
	}
	if err := shim.WriteArray(manifest, dirs); err != nil {
		return err
	}
	for i, dir := range dirs {
		if err := writeRecord(dir, records[i]); err != nil {
			return err
		}
	}
	script := filepath.Join(first, arrayScript)
	text := "#!/bin/sh\n# Runs attempts of Alidade's runs, one a task; see " + manifestFile + " beside this file.\n" +
		"exec " + quote(l.cfg.Exe) + " shim --array " + quote(manifest) + "\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		return err
	}
	options := append([]string{
		fmt.Sprintf("--array=0-%d", len(wants)-1), fmt.Sprintf("--job-name=%s-x%d-%s", nameOf(wants[0]), len(wants), mark(manifest)),
		"--chdir=" + workDir(wants[0]), "--output=" + filepath.Join(first, "slurm-%a.log"),
	}, l.options(wants[0])...)
	id, err := sbatch(append(options, script))
	if err != nil {
		return err
	}
	for i, dir := range dirs {
		records[i].Job = fmt.Sprintf("%s_%d", id, i)
		if err := writeRecord(dir, records[i]); err != nil {
			l.log.Error("record job", "component", "slurm", "job", records[i].Job, "err", err) // Attach finds it by its name
		}
	}
	l.log.Info("job array submitted", "component", "slurm", "job", id, "runs", len(wants), "first", wants[0].Name)
	return nil
}

// notTaken makes sure that an attempt whose submission failed never starts: the
// error may have come after Slurm had taken the job. Where it has started
// already it is as good as submitted.
func (l *Launcher) notTaken(dir string, err error) (record, error) {
	aerr := shim.Abandon(dir)
	if errors.Is(aerr, shim.ErrClaimed) {
		if h, herr := shim.ReadHandle(dir); herr == nil && h.Job != "" {
			rec := record{Job: h.Job, Submitted: h.Started}
			return rec, writeRecord(dir, rec)
		}
	}
	return record{}, fmt.Errorf("submit job: %w", errors.Join(err, aerr))
}
