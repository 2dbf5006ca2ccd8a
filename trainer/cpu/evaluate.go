package cpu

import (
	"alidade/ablation"
	"alidade/sandbox"
	"alidade/sandbox/travel/compact"
	"alidade/trainer"
	"alidade/trainer/cpu/nn"
)

// exam is the outcome of the held-out panel for one policy: results by query,
// the metrics of an evaluation, and records of its episodes.
type exam struct {
	Results      []ablation.EvalResult `json:"results"` // sampled, greedy
	Metrics      map[string]float64    `json:"metrics"`
	Trajectories []trainer.Trajectory  `json:"-"`
}

// examine has a model answer the panels: samples rollouts a query at the
// evaluation temperature, and one greedy on the test panel. The environment is
// clean and the judge strict, whatever the recipe trains with; labels and
// random numbers are the same at every step, so that checkpoints differ by
// what they learned. With keep, the first sampled rollout of each query is
// recorded.
func (r *run) examine(m *nn.Model, policy string, samples int, keep bool) (*exam, error) {
	sm, err := newSampler(m, 1, r.spec.Threads)
	if err != nil {
		return nil, err
	}
	e := &exam{Metrics: map[string]float64{}}
	for _, s := range []struct {
		panel       *panel
		samples     int
		temperature float64
	}{
		{&r.data.test, samples, r.recipe.Evaluation.Temperature},
		{&r.data.test, 1, 0},
		{&r.data.validation, 1, r.recipe.Evaluation.Temperature},
	} {
		if len(s.panel.queries) == 0 {
			continue
		}
		all := r.sittings(s.panel, s.samples)
		seed := sandbox.Mix(append([]uint64{r.recipe.Data.Seed, r.spec.Seed, forPanelRollouts}, s.panel.words...)...)
		err := sm.play(all, nn.Sampling{Temperature: s.temperature}, func(i int) uint64 {
			return nn.Stream(seed, uint64(all[i].group), uint64(all[i].index))
		})
		if err != nil {
			return nil, err
		}
		mode := "sampled"
		if s.temperature == 0 {
			mode = "greedy"
		}
		r.grade(e, s.panel, all, policy, mode, s.samples, keep && s.panel == &r.data.test && mode == "sampled")
	}
	return e, r.examineOOD(e, sm, policy, samples, keep)
}

// sittings opens samples clean episodes for each query of a panel.
func (r *run) sittings(p *panel, samples int) []*rollout {
	env := &r.recipe.Environment
	var out []*rollout
	for g, q := range p.queries {
		for i := range samples {
			labels := sandbox.Mix(append([]uint64{r.recipe.Data.Seed, forPanelLabels, uint64(g)}, p.words...)...)
			s := r.data.world.NewSession(q, compact.SessionConfig{Labels: labels, MaxTurns: env.MaxTurns, MaxTokens: env.MaxTokens, Think: think(env)})
			out = append(out, &rollout{query: q, group: g, index: i, s: s, ep: s})
		}
	}
	return out
}

// grade adds the outcome of finished rollouts to the exam.
func (r *run) grade(e *exam, p *panel, all []*rollout, policy, mode string, samples int, keep bool) {
	res := ablation.EvalResult{Run: r.spec.Run, Panel: p.name, Policy: policy, Mode: mode, Samples: samples, Hash: p.id}
	t := tally{}
	for _, o := range all {
		o.judged = o.s.Judgement()
		if len(res.Queries) == o.group {
			res.Queries = append(res.Queries, ablation.QueryResult{Query: o.query.Key, Level: o.query.Level})
		}
		if o.judged.Success {
			res.Queries[o.group].Passed++
		}
		t.add(o)
		if mode == "sampled" {
			for profile, passes := range o.s.Passes() {
				t.put("success_"+profile, share(passes))
			}
		}
		if keep && o.index == 0 {
			e.Trajectories = append(e.Trajectories, r.record(o, "eval", policy, mode))
		}
	}
	e.Results = append(e.Results, res)
	switch {
	case p != &r.data.test:
		e.Metrics["eval/"+p.name] = t.mean("success")
		return
	case mode == "greedy":
		e.Metrics["eval/success_greedy"] = t.mean("success")
		return
	}
	votes(e.Metrics, "eval/", ballots(all))
	for name, metric := range map[string]string{"success": "eval/success", "delivery": "eval/delivery", "cs_micro": "eval/cs_micro", "cs_macro": "eval/cs_macro",
		"hard_micro": "eval/hard_micro", "hard_macro": "eval/hard_macro", "tool_calls": "eval/tool_calls", "tokens": "eval/tokens",
		"format_error": "eval/format_error", "overlong": "eval/overlong",
		"success_official": "eval/success_official", "success_star": "eval/success_star"} {
		e.Metrics[metric] = t.mean(name)
	}
	for _, l := range compact.Levels {
		if t[l].n > 0 {
			e.Metrics["eval/success_"+l] = t.mean(l)
		}
	}
	t.checks("eval/check/", e.Metrics)
}

// tally averages named values.
type tally map[string]mean

type mean struct{ n, sum float64 }

func (t tally) put(name string, v float64) {
	m := t[name]
	t[name] = mean{m.n + 1, m.sum + v}
}

func (t tally) mean(name string) float64 {
	if m := t[name]; m.n > 0 {
		return m.sum / m.n
	}
	return 0
}

// add counts a finished, judged rollout.
func (t tally) add(o *rollout) {
	j := &o.judged
	t.put("success", share(j.Success))
	t.put(o.query.Level, share(j.Success))
	t.put("delivery", share(j.Delivered))
	t.put("cs_micro", j.CSMicro)
	t.put("cs_macro", j.CSMacro)
	t.put("hard_micro", j.HardMicro)
	t.put("hard_macro", j.HardMacro)
	t.put("tool_calls", float64(o.s.Calls()))
	t.put("tokens", float64(len(o.s.Script().Tokens)))
	t.put("format_error", share(o.s.FormatError() != ""))
	t.put("overlong", share(o.s.Overlong()))
	for _, v := range j.Verdicts {
		if v.Outcome != "n/a" {
			t.put("check/"+v.Check, share(v.Outcome == "pass"))
		}
	}
}

// checks copies the pass rates of the single checks under a prefix.
func (t tally) checks(prefix string, into map[string]float64) {
	for name, m := range t {
		if len(name) > 6 && name[:6] == "check/" {
			into[prefix+name[6:]] = m.sum / m.n
		}
	}
}

func share(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
