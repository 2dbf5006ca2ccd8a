package endpoint

import (
	"maps"
	"strconv"

	"alidade/ablation"
	"alidade/trainer"
)

// tally adds up finished episodes, whichever attempt finished them.
type tally struct {
	n        int
	values   map[string]mean // by metric
	outcomes map[int]outcome // by query
	in, out  float64         // tokens
	cost     float64         // $, of finished episodes
}

type mean struct{ n, sum float64 }

type outcome struct{ done, passed int }

func newTally() *tally {
	return &tally{values: map[string]mean{}, outcomes: map[int]outcome{}}
}

func (t *tally) put(name string, v float64) {
	m := t.values[name]
	t.values[name] = mean{m.n + 1, m.sum + v}
}

func (t *tally) mean(name string) float64 {
	if m := t.values[name]; m.n > 0 {
		return m.sum / m.n
	}
	return 0
}

// add counts the trajectory of an episode.
func (t *tally) add(query int, e *trainer.Trajectory) {
	t.n++
	o := t.outcomes[query]
	o.done++
	t.put("eval/success", share(e.Success))
	if e.Success {
		o.passed++
	}
	t.outcomes[query] = o
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
	t.put("eval/tool_calls", float64(e.ToolCalls))
	t.put("eval/tokens", float64(e.Tokens))
	t.put("eval/format_error", share(e.FormatError != ""))
	t.put("eval/overlong", share(e.Overlong))
	t.put("eval/turns", float64(len(e.Turns)))
	t.put("endpoint/episode_s", label(e, labelSeconds))
	t.in += label(e, labelIn)
	t.out += label(e, labelOut)
	t.cost += label(e, labelCost)
}

func label(e *trainer.Trajectory, name string) float64 {
	x, err := strconv.ParseFloat(e.Labels[name], 64)
	if err != nil {
		return 0
	}
	return x
}

// final are the metrics of the whole run.
func (t *tally) final() map[string]float64 {
	out := make(map[string]float64, len(t.values)+6)
	for name := range maps.Keys(t.values) {
		out[name] = t.mean(name)
	}
	out["endpoint/prompt_tokens"], out["endpoint/generated_tokens"] = t.in, t.out
	if t.n > 0 && t.cost > 0 {
		out["endpoint/cost_per_episode"] = t.cost / float64(t.n)
		if passed := t.values["eval/success"].sum; passed > 0 {
			out["endpoint/cost_per_success"] = t.cost / passed
		}
	}
	return out
}

// evaluation is the outcome of each query whose samples are all finished.
func (t *tally) evaluation(run ablation.RunID, p *panel, samples int, step int64) ablation.EvalResult {
	res := ablation.EvalResult{Run: run, Panel: "test", Policy: "policy", Mode: "sampled", Step: step, Samples: samples, Hash: p.hash}
	for i, q := range p.queries {
		if o := t.outcomes[i]; o.done == samples {
			res.Queries = append(res.Queries, ablation.QueryResult{Query: q.Hash(), Level: q.Level, Passed: o.passed})
		}
	}
	return res
}
