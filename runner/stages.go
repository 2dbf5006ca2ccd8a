package runner

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"alidade/ablation"
	"alidade/store"
	"alidade/trainer"
)

// stages knows the work that runs share before their main phase: what has been
// made, and what a live run makes right now. A queued run waits while another
// makes what it needs: it would only hold its devices and wait for the same.
// What nobody makes is made by the run that starts first, so no run waits for
// one that does not live.
type stages struct {
	data string // data folder

	mu     sync.Mutex
	made   map[ablation.Stage]string           // its folder; a folder that is gone was not made
	making map[ablation.RunID][]ablation.Stage // by live runs, in the order they make them
	exists func(path string) bool              // nil = on disk
}

// begin notes a run that goes through its stages from now on.
func (s *stages) begin(run ablation.RunID, shared []ablation.Stage, seed uint64) {
	if len(shared) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.making == nil {
		s.making = make(map[ablation.RunID][]ablation.Stage)
	}
	own := make([]ablation.Stage, len(shared))
	for i, st := range shared {
		own[i] = st.Of(seed)
	}
	s.making[run] = own
}

// left forgets a run that makes nothing more: its main phase has begun, or it
// has ended however. It reports whether the run was making something.
func (s *stages) left(run ablation.RunID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, was := s.making[run]
	delete(s.making, run)
	return was
}

// has notes that a run has come by the artifact of a stage, its own or
// another's, and with it through all stages before. It reports whether that
// was being made.
func (s *stages) has(run ablation.RunID, kind, path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.making[run]
	for i, st := range own {
		if st.Kind != kind {
			continue
		}
		s.note(st, path)
		if rest := own[i+1:]; len(rest) > 0 {
			s.making[run] = rest
		} else {
			delete(s.making, run)
		}
		return true
	}
	return false
}

// note keeps where a stage lies. The caller holds mu.
func (s *stages) note(st ablation.Stage, path string) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.data, path)
	}
	if s.made == nil {
		s.made = make(map[ablation.Stage]string)
	}
	s.made[st] = path
}

// now returns what is being made and is not there yet, with its maker; of two
// the one with the smaller id.
func (s *stages) now() map[ablation.Stage]ablation.RunID {
	s.mu.Lock()
	defer s.mu.Unlock()
	making := make(map[ablation.Stage]ablation.RunID, len(s.making))
	for run, own := range s.making {
		for _, st := range own {
			if s.there(st) {
				continue
			}
			if by, ok := making[st]; !ok || run < by {
				making[st] = run
			}
		}
	}
	return making
}

// there reports whether a stage has been made and still lies on the disk. The
// caller holds mu.
func (s *stages) there(st ablation.Stage) bool {
	path, ok := s.made[st]
	if !ok {
		return false
	}
	if s.exists != nil {
		return s.exists(path)
	}
	_, err := os.Stat(path)
	return err == nil
}

// waitsFor says in words which stage of a run another one makes; "" = none.
func waitsFor(making map[ablation.Stage]ablation.RunID, shared []ablation.Stage, seed uint64) string {
	for _, st := range shared {
		by, ok := making[st.Of(seed)]
		switch {
		case !ok:
		case st.Kind == ablation.StageBase:
			return fmt.Sprintf("waits for the base model of run %d", by)
		default:
			return fmt.Sprintf("waits for the SFT checkpoint of run %d", by)
		}
	}
	return ""
}

// sharesAny reports whether one of an arm's stages is being made, for
// whichever seed.
func sharesAny(making map[ablation.Stage]ablation.RunID, shared []ablation.Stage) bool {
	for m := range making {
		for _, st := range shared {
			if m.Kind == st.Kind && m.Key == st.Key {
				return true
			}
		}
	}
	return false
}

// begins notes the stages of a run that is about to live, or lives on under a
// new server, unless it is past them.
func (r *Runner) begins(run ablation.Run) {
	switch run.Phase {
	case "", "data", "pretrain", "sft":
		r.stages.begin(run.ID, ablation.Stages(run.Arm.Recipe), run.Seed)
	}
}

// passed keeps the stages right as a run writes: an artifact ends its stage,
// the main phase ends all of them.
func (l *life) passed(events []trainer.Event) {
	changed := false
	for i := range events {
		switch e := &events[i]; {
		case e.Kind == trainer.KindArtifact:
			changed = l.r.stages.has(l.run.ID, e.Artifact.Kind, e.Artifact.Path) || changed
		case e.Kind == trainer.KindPhase && e.Phase.Main:
			changed = l.r.stages.left(l.run.ID) || changed
		}
	}
	if changed {
		l.r.Wake()
	}
}

// recallStages reads what earlier runs have made. What cannot be read counts
// as not made: then a run may wait a moment for nothing.
func (r *Runner) recallStages(ctx context.Context) {
	all, err := r.store.Made(ctx, ablation.StageBase, ablation.StageSFT)
	if err != nil {
		r.log.Error("read the stages that were made", "err", err)
		return
	}
	arms := make(map[armKey][]ablation.Stage)
	for _, m := range all {
		key := armKey{m.Study, m.Arm}
		shared, ok := arms[key]
		if !ok {
			if shared, err = r.stagesOfArm(ctx, m); err != nil {
				r.log.Error("read an arm's stages", "study", m.Study, "arm", m.Arm, "err", err)
			}
			arms[key] = shared
		}
		r.stages.mu.Lock()
		for _, st := range shared {
			if st.Kind == m.Kind {
				r.stages.note(st.Of(m.Seed), m.Path)
			}
		}
		r.stages.mu.Unlock()
	}
	r.Wake()
}

func (r *Runner) stagesOfArm(ctx context.Context, m store.Made) ([]ablation.Stage, error) {
	run, err := r.store.Run(ctx, m.Run)
	if err != nil {
		return nil, err
	}
	return ablation.Stages(run.Arm.Recipe), nil
}
