package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"alidade/ablation"
)

// savedFile keeps, in the data folder, what a person or the runner has decided
// about the queue and its devices.
const savedFile = "queue.json"

// queueState is the content of queue.json.
type queueState struct {
	Paused      string                        `json:"paused,omitempty"` // why a person paused the queue; "" = it runs
	PausedAt    time.Time                     `json:"paused_at,omitzero"`
	Crashes     map[ablation.StudyID][]string `json:"crashes,omitempty"`     // attempts ("run/attempt") that crashed at once, in a row
	Quarantined map[string]string             `json:"quarantined,omitempty"` // device → why
	Names       map[string]string             `json:"names,omitempty"`       // of GPUs, by uuid: leases go by them
}

// A saved queue state is read once and written whole at each change.
type saved struct {
	path string
	mu   sync.Mutex
	read bool
	now  queueState
}

// get returns the state. One that cannot be read counts as empty: it must not
// keep runs from being followed.
func (s *saved) get() queueState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.load().copy()
}

func (s *saved) load() *queueState {
	if !s.read {
		s.read = true
		if text, err := os.ReadFile(s.path); err == nil && json.Unmarshal(text, &s.now) != nil {
			s.now = queueState{}
		}
	}
	return &s.now
}

func (q *queueState) copy() queueState {
	c := *q
	c.Quarantined, c.Names = maps.Clone(q.Quarantined), maps.Clone(q.Names)
	c.Crashes = make(map[ablation.StudyID][]string, len(q.Crashes))
	for id, list := range q.Crashes {
		c.Crashes[id] = slices.Clone(list)
	}
	return c
}

// change changes the state, on the disk too.
func (s *saved) change(change func(*queueState)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.load().copy()
	if next.Quarantined == nil {
		next.Quarantined = make(map[string]string)
	}
	change(&next)
	s.now = next
	text, err := json.MarshalIndent(next, "", "  ")
	if err == nil {
		err = writeWhole(s.path, append(text, '\n'))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a data folder that is gone keeps nothing
		return fmt.Errorf("save %s: %w", savedFile, err)
	}
	return nil
}

// writeWhole replaces a file: a reader, or a power cut, sees the old or the
// new one.
func writeWhole(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
