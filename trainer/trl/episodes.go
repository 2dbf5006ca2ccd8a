package trl

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"alidade/trainer"
	"alidade/trainer/native"
)

// episodes is the source of what the trainer knows of each episode: advantage,
// lengths in tokens, and for some the values by token. Each process writes a
// file of its own.
type episodes struct {
	glob  string
	norm  string // how advantages are normed, as a trajectory says it
	tails map[string]*native.Tail
}

// Name implements [native.Source].
func (e *episodes) Name() string { return episodesStem }

// Poll implements [native.Source].
func (e *episodes) Poll(last bool, emit func(native.Reading)) error {
	paths, err := filepath.Glob(e.glob)
	if err != nil {
		return err
	}
	for _, p := range paths {
		if e.tails == nil {
			e.tails = map[string]*native.Tail{}
		}
		if e.tails[p] == nil {
			e.tails[p] = &native.Tail{Path: p}
		}
		if err := e.tails[p].Lines(last, func(line []byte) { emit(episodeLine(line, e.norm)) }); err != nil {
			return err
		}
	}
	return nil
}

// episode is one line.
type episode struct {
	Kind      string       `json:"kind"` // episode, invalid
	ID        string       `json:"id"`   // of the environment server
	Step      int64        `json:"step"`
	Group     string       `json:"group"`
	Rollout   int          `json:"rollout"`
	Why       string       `json:"why"`
	Extra     float64      `json:"extra"` // added to the environment's reward
	Advantage float64      `json:"advantage"`
	Mean      float64      `json:"mean"`
	Std       float64      `json:"std"`
	Members   int          `json:"members"`
	InLoss    bool         `json:"in_loss"`
	Overlong  bool         `json:"overlong"`
	Tokens    int          `json:"tokens"`
	Generated int          `json:"generated"`
	Turns     []int        `json:"turns"`
	Detail    []turnDetail `json:"detail"`
}

type turnDetail struct {
	Entropy  []float32 `json:"entropy"`
	LogProbs []float32 `json:"logprobs"`
	Words    []string  `json:"words"`
}

func episodeLine(line []byte, norm string) native.Reading {
	var e episode
	if err := json.Unmarshal(line, &e); err != nil {
		return native.Reading{Bad: 1}
	}
	switch {
	case e.Kind == "invalid":
		return native.Reading{Step: e.Step, Alert: &trainer.Alert{Level: "warn", Code: "rollout-invalid", Step: e.Step,
			Text: fmt.Sprintf("rollout %d of %s failed outside the policy and is left out: %s", e.Rollout, e.Group, e.Why)}}
	case e.ID == "":
		return native.Reading{Bad: 1}
	}
	t := &trainer.Trajectory{ID: e.ID, Step: e.Step, Group: e.Group, Rollout: e.Rollout, Overlong: e.Overlong, Tokens: e.Tokens, Generated: e.Generated,
		Advantage: &trainer.Advantage{Value: e.Advantage, Mean: e.Mean, Std: e.Std, Norm: norm, Zero: e.Members > 1 && e.Std == 0, InLoss: e.InLoss && e.Advantage != 0}}
	if e.Extra != 0 {
		t.Reward, t.Components = e.Extra, []trainer.Component{{Name: "overlong", Value: e.Extra}}
	}
	for i, n := range e.Turns {
		turn := trainer.Turn{Tokens: n}
		if i < len(e.Detail) {
			d := e.Detail[i]
			turn.Entropy, turn.LogProbs, turn.Words = d.Entropy, d.LogProbs, d.Words
		}
		t.Turns = append(t.Turns, turn)
	}
	return native.Reading{Step: e.Step, Trajectory: t}
}
