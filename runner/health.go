package runner

import (
	"fmt"
	"math"
	"slices"

	"alidade/ablation"
	"alidade/trainer"
)

// A finding is a sign that a run learns nothing, or the wrong thing.
type finding struct {
	alert trainer.Alert
	stop  bool // it only wastes its devices: end it, keep its checkpoint
}

const (
	mostKept = 128 // values kept of each metric
	window   = 10  // steps a judgement looks at
	repeatIn = 100 // steps before the same code is told again
)

// health watches the metrics of RL steps for the signs of sick training. Its
// findings name the steps they rest on; the trajectories of those steps are
// the evidence. It is not safe for concurrent use.
type health struct {
	phase  string
	values map[string]*recent
	last   map[string]int64 // code → step at which it was told
	ending map[string]bool  // codes that asked for the end
	calls  map[int64]*toolCalls
	notNum int // steps in a row whose loss or gradient is not a number
	bad    []int64
}

// recent is the last values of one metric.
type recent struct {
	steps  []int64
	values []float64
	first  float64 // the first value of all, for comparison
}

// toolCalls counts a step's calls in trajectories.
type toolCalls struct{ all, failed int }

func newHealth() health {
	return health{values: make(map[string]*recent), last: make(map[string]int64), ending: make(map[string]bool), calls: make(map[int64]*toolCalls)}
}

// told notes an alert that was given before a restart of the server.
func (h *health) told(a ablation.Alert) {
	if at, ok := h.last[a.Code]; !ok || a.Step > at {
		h.last[a.Code] = a.Step
	}
}

// hear takes one event and returns what it shows.
func (h *health) hear(e *trainer.Event) []finding {
	switch e.Kind {
	case trainer.KindPhase:
		h.phase = e.Phase.Name
	case trainer.KindTrajectory:
		h.trajectory(e.Trajectory)
	case trainer.KindPoints:
		return h.points(e.Points)
	}
	return nil
}

// trajectory counts tool calls that failed and were not meant to.
func (h *health) trajectory(t *trainer.Trajectory) {
	if t.Phase != "rl" {
		return
	}
	c := h.calls[t.Step]
	if c == nil {
		if len(h.calls) > 4*window {
			clear(h.calls)
		}
		c = new(toolCalls)
		h.calls[t.Step] = c
	}
	for _, turn := range t.Turns {
		if turn.Call == nil || turn.Observe == nil || turn.Observe.Injected != "" {
			continue
		}
		c.all++
		if infrastructure[turn.Observe.Error] {
			c.failed++
		}
	}
}

// infrastructure are the errors of an observation that are not the policy's:
// a call without hits or with bad arguments is.
var infrastructure = map[string]bool{"infrastructure": true, "exception": true, "unreachable": true, "timeout": true}

// points takes the metrics of a step and applies every rule.
func (h *health) points(p *trainer.Points) []finding {
	if c := h.calls[p.Step]; c != nil && c.all > 0 {
		h.add("tools/failed", p.Step, float64(c.failed)/float64(c.all))
		delete(h.calls, p.Step)
	}
	rl := false
	for name, v := range p.Values {
		h.add(name, p.Step, float64(v))
		rl = rl || name == "reward/mean" || name == "policy/loss"
	}
	var found []finding
	if f, ok := h.notNumbers(p); ok {
		found = append(found, f)
	}
	if !rl {
		return found
	}
	for _, rule := range rules {
		f, ok := rule(h)
		if !ok {
			continue
		}
		f.alert.Step = p.Step
		found = h.tell(found, f)
	}
	return found
}

func (h *health) tell(found []finding, f finding) []finding {
	if at, ok := h.last[f.alert.Code]; ok && f.alert.Step-at < repeatIn && (!f.stop || h.ending[f.alert.Code]) {
		return found
	}
	h.ending[f.alert.Code] = h.ending[f.alert.Code] || f.stop
	h.last[f.alert.Code] = f.alert.Step
	return append(found, f)
}

func (h *health) add(name string, step int64, v float64) {
	r := h.values[name]
	if r == nil {
		if len(h.values) > 4096 {
			return // a trainer that invents names must not fill the memory
		}
		r = &recent{first: v}
		h.values[name] = r
	}
	if n := len(r.steps); n > 0 && step <= r.steps[n-1] {
		return // written again by a resumed attempt
	}
	r.steps, r.values = append(r.steps, step), append(r.values, v)
	if len(r.steps) > 2*mostKept {
		r.steps, r.values = slices.Delete(r.steps, 0, mostKept), slices.Delete(r.values, 0, mostKept)
	}
}

// lastN returns the last n values of a metric and the step of the first of
// them; false when there are fewer.
func (h *health) lastN(name string, n int) (values []float64, since int64, ok bool) {
	r := h.values[name]
	if r == nil || len(r.values) < n {
		return nil, 0, false
	}
	at := len(r.values) - n
	return r.values[at:], r.steps[at], true
}

// notNumbers is the rule for NaN and infinity: one is told, three in a row or
// more than one in twenty of the last hundred steps end the run. Some trainers
// skip such an update and go on with exit code 0.
func (h *health) notNumbers(p *trainer.Points) (finding, bool) {
	name := firstNaN(p)
	if name == "" {
		if _, ok := p.Values["policy/loss"]; ok {
			h.notNum = 0
		}
		return finding{}, false
	}
	h.notNum++
	h.bad = append(h.bad, p.Step)
	h.bad = slices.DeleteFunc(h.bad, func(s int64) bool { return s <= p.Step-100 })
	stop := h.notNum >= 3 || len(h.bad) > 5
	_, told := h.last["nan"]
	if told && (!stop || h.ending["nan"]) {
		return finding{}, false
	}
	h.last["nan"], h.ending["nan"] = p.Step, stop
	text := name
	if stop {
		text = fmt.Sprintf("%s; %d of the last 100 steps, %d in a row: go on from an earlier checkpoint with a changed recipe", name, len(h.bad), h.notNum)
	}
	return finding{stop: stop, alert: trainer.Alert{Level: "bad", Code: "nan", Text: text, Step: p.Step, Since: h.bad[0]}}, true
}

// rules of sick training. Each looks at what is kept and says what it sees.
var rules = []func(*health) (finding, bool){
	rewardConstant, zeroVariance, entropyLow, klExploding, gradientExploding, formatErrors, toolFailures, lengthAtLimit, rewardWithoutSuccess,
}

func warn(code string, since int64, format string, args ...any) (finding, bool) {
	return finding{alert: trainer.Alert{Level: "warn", Code: code, Text: fmt.Sprintf(format, args...), Since: since}}, true
}

// rewardConstant: the same reward at every step, to the last bit. With no
// difference inside any group either, nothing can be learned: the run is ended
// after a hundred such steps.
func rewardConstant(h *health) (finding, bool) {
	v, since, ok := h.lastN("reward/mean", window)
	if !ok || !constant(v) {
		return finding{}, false
	}
	f, _ := warn("reward-constant", since, "the mean reward has been exactly %.4g for %d steps: a wrong reward function, a wrong data source, or an environment that is down", v[0], window)
	long, from, ok := h.lastN("reward/mean", 100)
	zero, _, hasZero := h.lastN("group/zero_variance", 100)
	if ok && hasZero && constant(long) && slices.Min(zero) >= 1 {
		f.stop, f.alert.Level, f.alert.Since = true, "bad", from
		f.alert.Text = fmt.Sprintf("the mean reward has been exactly %.4g for 100 steps and no group holds a difference: nothing can be learned from it", long[0])
	}
	return f, true
}

func constant(v []float64) bool {
	return !slices.ContainsFunc(v, func(x float64) bool { return x != v[0] })
}

func zeroVariance(h *health) (finding, bool) {
	v, since, ok := h.lastN("group/zero_variance", window)
	if !ok || slices.Min(v) < 1 {
		return finding{}, false
	}
	return warn("zero-variance", since, "for %d steps all rollouts of each group had the same reward: no advantage, no gradient; the prompts are too easy or too hard", window)
}

// entropyLow: below a hundredth of a nat, or a fiftieth of where it began.
func entropyLow(h *health) (finding, bool) {
	v, since, ok := h.lastN("policy/entropy", window)
	if !ok {
		return finding{}, false
	}
	floor := max(0.01, h.values["policy/entropy"].first/50)
	if !(slices.Max(v) < floor) {
		return finding{}, false
	}
	return warn("entropy-low", since, "the policy's entropy has been below %.3g nats for %d steps (it began at %.3g): it explores no more", floor, window, h.values["policy/entropy"].first)
}

func klExploding(h *health) (finding, bool) {
	return exploding(h, "policy/kl", "kl-exploding", 10, 0.5, "the divergence from the reference policy")
}

func gradientExploding(h *health) (finding, bool) {
	return exploding(h, "policy/grad_norm", "gradient-exploding", 50, 10, "the gradient's norm")
}

// exploding: three steps in a row above so many times the median of those
// before, and above a floor.
func exploding(h *health, metric, code string, times, floor float64, words string) (finding, bool) {
	v, _, ok := h.lastN(metric, 3+2*window)
	if !ok {
		return finding{}, false
	}
	before := slices.Clone(v[:len(v)-3])
	before = slices.DeleteFunc(before, math.IsNaN)
	if len(before) == 0 {
		return finding{}, false
	}
	slices.Sort(before)
	median, now := before[len(before)/2], v[len(v)-3:]
	if !(slices.Min(now) > max(floor, times*median)) {
		return finding{}, false
	}
	_, since, _ := h.lastN(metric, 3)
	return warn(code, since, "%s is %.3g, %.0f times its median of the steps before", words, now[2], now[2]/max(median, 1e-12))
}

func formatErrors(h *health) (finding, bool) {
	v, since, ok := h.lastN("rollout/format_error", window)
	if !ok || !(mean(v) > 0.2) || falling(v) {
		return finding{}, false
	}
	return warn("format-errors", since, "%.0f %% of the rollouts of the last %d steps broke the format", 100*mean(v), window)
}

// toolFailures: failures that were not injected. The rates are the failure
// study's own: above 5 % results suffer, above 10 % training is not worth it;
// a run in which half of the calls fail is ended.
func toolFailures(h *health) (finding, bool) {
	for _, metric := range []string{"rollout/tool_failure", "tools/failed"} {
		v, since, ok := h.lastN(metric, window)
		share := 0.0
		if ok {
			share = mean(v)
		}
		if !(share > 0.05) {
			continue
		}
		f, _ := warn("tool-failures", since, "%.1f %% of the tool calls of the last %d steps failed, beside the injected ones", 100*share, window)
		if share > 0.10 {
			f.alert.Level, f.alert.Code = "bad", "tool-failures-high"
		}
		if share > 0.50 {
			f.stop = true
			f.alert.Text += ": the environment is broken, training on it teaches nothing"
		}
		return f, true
	}
	return finding{}, false
}

func lengthAtLimit(h *health) (finding, bool) {
	v, since, ok := h.lastN("rollout/overlong", window)
	if !ok || !(mean(v) > 0.5) {
		return finding{}, false
	}
	return warn("length-at-limit", since, "%.0f %% of the rollouts of the last %d steps ended at the context limit", 100*mean(v), window)
}

// rewardWithoutSuccess: over forty steps the reward rose while strict success
// fell, both by more than their noise: the policy games the reward.
func rewardWithoutSuccess(h *health) (finding, bool) {
	reward, since, ok := h.lastN("reward/mean", 4*window)
	success, _, ok2 := h.lastN("train/success", 4*window)
	if !ok || !ok2 {
		return finding{}, false
	}
	rise := mean(reward[3*window:]) - mean(reward[:window])
	fall := mean(success[:window]) - mean(success[3*window:])
	noise := 2 * deviation(success[:window]) / math.Sqrt(window)
	rewardNoise := 2 * deviation(reward[:window]) / math.Sqrt(window)
	if !(rise > max(rewardNoise, 0.02*math.Abs(mean(reward[:window]))) && fall > max(0.05, 2*noise)) {
		return finding{}, false
	}
	return warn("reward-without-success", since, "over %d steps the reward rose by %.3g while strict success fell by %.1f points: the policy may be gaming the reward; look at the rollouts of these steps", 4*window, rise, 100*fall)
}

// falling reports whether the second half of v is clearly below the first: a
// policy that is learning the format needs no alert.
func falling(v []float64) bool {
	half := len(v) / 2
	return mean(v[half:]) < 0.8*mean(v[:half])
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

func deviation(v []float64) float64 {
	m, sum := mean(v), 0.0
	for _, x := range v {
		sum += (x - m) * (x - m)
	}
	return math.Sqrt(sum / float64(max(1, len(v)-1)))
}
