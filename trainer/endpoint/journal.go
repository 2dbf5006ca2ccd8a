package endpoint

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"alidade/trainer"
)

// journalFile holds the replies of a run's episodes, in the run's folder: all
// attempts share it.
const journalFile = "replies.jsonl"

// runDir is the folder of the run, which its attempts share.
func runDir(spec trainer.Spec) string { return filepath.Dir(spec.Dir) }

// A journal appends replies, each with one write, so that a kill can only cut
// the last line. It is safe for concurrent use.
type journal struct {
	mu   sync.Mutex
	file *os.File
	torn bool // the file ends inside a line
}

// openJournal opens the run's journal and reads what is in it: the replies by
// episode, in the order of their turns, and what all of them cost.
func openJournal(runDir string) (j *journal, past map[string][]reply, spent float64, err error) {
	path := filepath.Join(runDir, journalFile)
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, nil, 0, fmt.Errorf("open journal: %w", err)
	}
	j, past = &journal{file: file}, map[string][]reply{}
	in := bufio.NewReaderSize(file, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		var r reply
		if json.Unmarshal(bytes.TrimSpace(line), &r) == nil && r.Episode != "" {
			spent += r.Cost
			if r.Turn == len(past[r.Episode]) {
				past[r.Episode] = append(past[r.Episode], r)
			}
		}
		if errors.Is(err, io.EOF) {
			j.torn = len(line) > 0
			return j, past, spent, nil
		}
		if err != nil {
			return nil, nil, 0, errors.Join(fmt.Errorf("read journal: %w", err), file.Close())
		}
	}
}

func (j *journal) add(r reply) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	line = append(line, '\n')
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := j.file.Write(line)
	j.torn = n > 0 && n < len(line) || n == 0 && j.torn
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

func (j *journal) close() error { return j.file.Close() }

// finished reads the trajectories that earlier attempts of the run wrote.
func finished(spec trainer.Spec, each func(trainer.Trajectory)) error {
	run := runDir(spec)
	entries, err := os.ReadDir(run)
	if err != nil {
		return fmt.Errorf("read earlier attempts: %w", err)
	}
	var attempts []int
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && e.IsDir() && n < spec.Attempt {
			attempts = append(attempts, n)
		}
	}
	slices.Sort(attempts)
	for _, n := range attempts {
		if err := trajectories(filepath.Join(run, strconv.Itoa(n), filepath.Base(spec.Events)), each); err != nil {
			return fmt.Errorf("read attempt %d: %w", n, err)
		}
	}
	return nil
}

func trajectories(path string, each func(trainer.Trajectory)) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	in := trainer.NewReader(f, trainer.ReaderOptions{})
	for in.Next() {
		if e := in.Event(); e.Kind == trainer.KindTrajectory {
			each(*e.Trajectory)
		}
	}
	return in.Err()
}
