package native

import (
	"fmt"

	"alidade/ablation"
	"alidade/trainer"
)

// tally adds up episodes by metric.
type tally map[string]mean

type mean struct{ n, sum float64 }

func (t tally) put(name string, v float64) {
	m := t[name]
	t[name] = mean{m.n + 1, m.sum + v}
}

// values are the means.
func (t tally) values() map[string]float64 {
	out := make(map[string]float64, len(t))
	for name, m := range t {
		if m.n > 0 {
			out[name] = m.sum / m.n
		}
	}
	return out
}

// add counts an episode under the group of metrics: rollout or eval.
func (t tally) add(group string, e *trainer.Trajectory) {
	success := "eval/success"
	if group == "rollout" {
		success = "train/success"
		t.put("reward/mean", e.Reward)
		for _, c := range e.Components {
			t.put("reward/"+c.Name, c.Value)
		}
		failed := 0
		for i := range e.Turns {
			if o := e.Turns[i].Observe; o != nil && o.Error == "error" && o.Injected == "" {
				failed++
			}
		}
		t.put("rollout/tool_failure", float64(failed)/float64(max(1, e.ToolCalls)))
		t.put("rollout/injected_share", float64(e.Injected)/float64(max(1, e.ToolCalls)))
		t.put("rollout/injected", float64(e.Injected))
		t.put("rollout/delivery", e.Scores["delivery"])
	} else {
		t.put("eval/success_"+e.Query.Level, share(e.Success))
		for _, name := range []string{"delivery", "cs_micro", "cs_macro", "hard_micro", "hard_macro"} {
			t.put("eval/"+name, e.Scores[name])
		}
		for profile, passes := range e.Passes {
			t.put("eval/success_"+profile, share(passes))
		}
		for _, v := range e.Verdicts {
			if v.Outcome != "n/a" {
				t.put("eval/check/"+v.Check, share(v.Outcome == "pass"))
			}
		}
		t.put("eval/reward", e.Reward)
	}
	t.put(success, share(e.Success))
	t.put(group+"/tool_calls", float64(e.ToolCalls))
	t.put(group+"/tool_errors", float64(e.ToolErrors))
	t.put(group+"/format_error", share(e.FormatError != ""))
	t.put(group+"/overlong", share(e.Overlong))
	t.put(group+"/turns", float64(len(e.Turns)))
	t.put(group+"/tokens", float64(e.Tokens))
}

func share(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// evalTally is one evaluation of the panel under way.
type evalTally struct {
	sums   tally
	n      int
	done   map[string]int // episodes by query
	passed map[string]int
	mode   string
}

// evaluated counts an episode of the panel.
func (b *book) evaluated(t *trainer.Trajectory) {
	p := b.panels[t.Step]
	if p == nil {
		p = &evalTally{sums: tally{}, done: map[string]int{}, passed: map[string]int{}}
		b.panels[t.Step] = p
	}
	p.n++
	p.mode = t.Mode
	p.sums.add("eval", t)
	p.done[t.Query.Hash]++
	if t.Success {
		p.passed[t.Query.Hash]++
	}
}

// panelEnded writes the evaluation at a step: whole, or not at all, since a
// part of the panel is not comparable with the rest.
func (b *book) panelEnded(step int64) {
	p := b.panels[step]
	if p == nil {
		return
	}
	delete(b.panels, step)
	queries := b.r.set.eval
	samples := p.n / max(1, len(queries))
	res := ablation.EvalResult{Run: b.r.spec.Run, Panel: "test", Policy: "policy", Mode: p.mode, Step: step, Samples: samples, Hash: b.r.set.panel}
	if res.Mode == "" {
		res.Mode = "sampled"
	}
	for _, q := range queries {
		h := q.Hash()
		if samples < 1 || p.done[h] != samples {
			b.keep(b.r.out.Alert(trainer.Alert{Level: "warn", Code: "evaluation-cut", Step: step,
				Text: fmt.Sprintf("the evaluation at step %d has %d episodes for %d queries, not equally many for each: it is left out", step, p.n, len(queries))}))
			return
		}
		res.Queries = append(res.Queries, ablation.QueryResult{Query: h, Level: q.Level, Passed: p.passed[h]})
	}
	b.keep(b.r.out.Points(step, p.sums.values()))
	b.keep(b.r.out.Evaluation(res))
}
