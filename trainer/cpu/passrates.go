package cpu

import (
	"context"
	"fmt"
	"path/filepath"

	"alidade/sandbox"
	"alidade/sandbox/travel/compact"
	"alidade/trainer/cpu/nn"
)

const ratesFile = "pass-rates.json"

// rateKey is what pass rates depend on.
type rateKey struct {
	Code    string
	SFT     string
	Data    string
	Samples int
	Seed    uint64
	Temp    float64
	Kernel  string
}

// pickPrompts is difficulty-aware sampling: the SFT policy answers every
// prompt a few times, and prompts that it always or never solves are dropped.
func (r *run) pickPrompts(ctx context.Context) error {
	n := r.recipe.Data.PassRateSamples
	if n == 0 {
		return nil
	}
	if err := r.phase("pass rates", 0, false); err != nil {
		return err
	}
	key := rateKey{Code: codeVersion, SFT: r.start.hash, Data: r.data.hash, Samples: n, Seed: r.spec.Seed,
		Temp: r.recipe.Algorithm.Temperature, Kernel: r.recipe.Trainer.Kernel}
	dir, err := r.artifact(ctx, "pass-rates", key, func(dir string) (map[string]any, error) {
		rates, err := r.passRates(n)
		if err != nil {
			return nil, err
		}
		return map[string]any{"prompts": len(rates), "samples": n}, writeJSON(filepath.Join(dir, ratesFile), rates)
	})
	if err != nil {
		return err
	}
	var passed []int
	if err := readJSON(filepath.Join(dir, ratesFile), &passed); err != nil {
		return err
	}
	return r.dropPrompts(passed, n)
}

// passRates counts how many of n rollouts solve each prompt.
func (r *run) passRates(n int) ([]int, error) {
	sm, err := newSampler(r.start.model, n, r.spec.Threads)
	if err != nil {
		return nil, err
	}
	p := &panel{name: "prompts", queries: r.data.prompts, words: []uint64{forPassRates}}
	all := r.sittings(p, n)
	seed := sandbox.Mix(r.spec.Seed, forPassRates)
	err = sm.play(all, nn.Sampling{Temperature: r.recipe.Algorithm.Temperature}, func(i int) uint64 { return nn.Stream(seed, uint64(i)) })
	if err != nil {
		return nil, err
	}
	passed := make([]int, len(p.queries))
	for _, o := range all {
		if o.s.Judgement().Success {
			passed[o.group]++
		}
	}
	return passed, nil
}

// dropPrompts keeps the prompts that are solved sometimes and reports the
// histogram: easy from 3/4 on, hard up to 1/4.
func (r *run) dropPrompts(passed []int, n int) error {
	if len(passed) != len(r.data.prompts) {
		return fmt.Errorf("pass rates of %d prompts, there are %d", len(passed), len(r.data.prompts))
	}
	m := map[string]float64{"data/pass_never": 0, "data/pass_hard": 0, "data/pass_medium": 0, "data/pass_easy": 0, "data/pass_always": 0}
	var kept []*compact.Query
	for i, c := range passed {
		name := "data/pass_medium"
		switch {
		case c == 0:
			name = "data/pass_never"
		case c == n:
			name = "data/pass_always"
		case 4*c >= 3*n:
			name = "data/pass_easy"
		case 4*c <= n:
			name = "data/pass_hard"
		}
		m[name] += 1 / float64(len(passed))
		if c > 0 && c < n {
			kept = append(kept, r.data.prompts[i])
		}
	}
	if len(kept) == 0 {
		return fmt.Errorf("the SFT policy solves none of %d prompts now and then (data.pass_rate_samples: %d): raise it, or set it to 0", len(passed), n)
	}
	m["data/prompts_kept"] = float64(len(kept))
	r.data.prompts = kept
	return r.out.Points(0, m)
}
