package preflight

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"alidade/ablation"
	"alidade/trainer/native"
)

// fresh is how long a probe is believed, and stale how long its answer is
// still shown while a new one is under way.
const (
	fresh     = 30 * time.Second
	probeTime = 20 * time.Second
)

// A Trainer is a kind that can train a language model here, or could.
type Trainer struct {
	Kind     string          `json:"kind"`
	What     string          `json:"what"`
	Python   string          `json:"python,omitempty"` // the interpreter that was asked
	Versions native.Versions `json:"versions,omitempty"`
	Ready    bool            `json:"ready"`
	Problem  string          `json:"problem,omitempty"`
	How      string          `json:"how,omitempty"` // to install it
}

// Config says what a Service looks at.
type Config struct {
	Adapters []native.Adapter
	Python   func(kind string) string         // the interpreter of a kind; needed
	Machine  func(devices int) native.Machine // what a run of so many devices would get; nil = nothing is known
	What     map[string]string                // kind → what it is, in words
}

// A Service answers what is installed and what a launch would meet. It keeps
// the answers of its probes for a while; it is safe for concurrent use.
type Service struct {
	c Config

	mu    sync.Mutex
	asked map[string]*asked
}

// asked is one interpreter's answer for a kind.
type asked struct {
	at       time.Time
	versions native.Versions
	err      error
	busy     chan struct{} // closed when the probe under way has ended; nil = none
}

// New returns a service. It starts nothing.
func New(c Config) *Service { return &Service{c: c, asked: map[string]*asked{}} }

// Trainers lists the kinds, in the order of the adapters, with what a probe
// finds. It may take some seconds the first time.
func (s *Service) Trainers(ctx context.Context) []Trainer {
	out := make([]Trainer, len(s.c.Adapters))
	var wg sync.WaitGroup
	for i, a := range s.c.Adapters {
		wg.Go(func() { out[i] = s.trainer(ctx, a) })
	}
	wg.Wait()
	return out
}

func (s *Service) trainer(ctx context.Context, a native.Adapter) Trainer {
	t := Trainer{Kind: a.Kind(), What: s.c.What[a.Kind()], Python: s.c.Python(a.Kind())}
	v, err := s.probe(ctx, a, t.Python)
	t.Versions, t.Ready = v, err == nil
	var missing *native.Missing
	switch {
	case errors.As(err, &missing):
		t.Problem, t.How = "not installed", missing.How
	case err != nil:
		t.Problem = err.Error()
	}
	return t
}

// probe asks an interpreter, or remembers what it said. An old answer is given
// at once while a new probe runs; only the first is waited for.
func (s *Service) probe(ctx context.Context, a native.Adapter, python string) (native.Versions, error) {
	key := a.Kind() + "\x00" + python
	s.mu.Lock()
	e := s.asked[key]
	if e == nil {
		e = &asked{}
		s.asked[key] = e
	}
	known := !e.at.IsZero()
	if e.busy == nil && time.Since(e.at) > fresh {
		e.busy = make(chan struct{})
		go s.ask(a, python, e) // not bound to one caller: others wait for it too
	}
	busy, v, err := e.busy, e.versions, e.err
	s.mu.Unlock()
	if known {
		return v, err
	}
	select {
	case <-busy:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.versions, e.err
}

func (s *Service) ask(a native.Adapter, python string, e *asked) {
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	v, err := a.Probe(ctx, python)
	s.mu.Lock()
	defer s.mu.Unlock()
	e.versions, e.err, e.at = maps.Clone(v), err, time.Now()
	close(e.busy)
	e.busy = nil
}

// A Report is what a launch of one recipe would meet.
type Report struct {
	Verdicts []native.Verdict `json:"verdicts"`
	Memory   *Estimate        `json:"memory,omitempty"` // nil on the CPU and for unknown models
	Device   float64          `json:"device_gib,omitempty"`
}

// Refused tells whether anything stands in the way.
func (r Report) Refused() bool {
	return slices.ContainsFunc(r.Verdicts, func(v native.Verdict) bool { return v.Level == native.Refuse })
}

// Check looks at a recipe of a kind that trains language models; for other
// kinds it finds nothing.
func (s *Service) Check(ctx context.Context, r ablation.Recipe) Report {
	i := slices.IndexFunc(s.c.Adapters, func(a native.Adapter) bool { return a.Kind() == r.Trainer.Kind })
	if i < 0 || !r.IsNative() {
		return Report{}
	}
	a, python := s.c.Adapters[i], r.Native.Python
	if python == "" {
		python = s.c.Python(r.Trainer.Kind)
	}
	var m native.Machine
	if s.c.Machine != nil {
		m = s.c.Machine(max(1, r.Trainer.Devices))
	}
	var out Report
	v, err := s.probe(ctx, a, python)
	if err != nil {
		verdict := native.Verdict{Level: native.Refuse, Code: "not-installed", Key: "trainer.kind", Value: r.Trainer.Kind, Text: err.Error()}
		var missing *native.Missing
		if errors.As(err, &missing) {
			verdict.Text, verdict.Fix = "the interpreter "+missing.Python+" has no "+r.Trainer.Kind, missing.How
		}
		out.Verdicts = append(out.Verdicts, verdict)
	}
	out.Verdicts = append(out.Verdicts, a.Check(r, v, m)...)
	fits, e := Fits(r, m)
	out.Verdicts, out.Memory = append(out.Verdicts, fits...), e
	if len(m.DeviceGiB) > 0 {
		out.Device = slices.Min(m.DeviceGiB)
	}
	return out
}
