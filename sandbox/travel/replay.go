package travel

import (
	"fmt"
	"slices"

	"alidade/trainer"
)

// Replay plays a recorded trajectory again: the same calls in the same order
// in an episode under the same rules, then the recorded plan. It returns the
// new record, which has the verdicts of today's rules, and an error that
// names the first turn at which the sandbox answered otherwise than recorded.
func Replay(w *World, q Query, c EpisodeConfig, t trainer.Trajectory) (trainer.Trajectory, error) {
	if c.Profile == "" {
		c.Profile = Profile(t.Profile)
	}
	e := NewEpisode(w, q, c)
	var diff error
	for i := range t.Turns {
		old := &t.Turns[i]
		if old.Call == nil {
			response := ""
			if old.Observe != nil {
				response = old.Observe.Text
			}
			e.Say(old.Raw, response)
		} else {
			args := make(map[string]any, len(old.Call.Args))
			for _, a := range old.Call.Args {
				args[a.Name] = a.Value
			}
			e.Call(old.Call.Tool, args)
		}
		turn := e.Last()
		turn.Think, turn.Tokens, turn.Branch = old.Think, old.Tokens, old.Branch
		turn.Entropy, turn.LogProbs, turn.Words, turn.Advantages = old.Entropy, old.LogProbs, old.Words, old.Advantages
		if old.Observe != nil && turn.Observe != nil {
			turn.Observe.Tokens = old.Observe.Tokens
			if diff == nil && !sameObserved(old.Observe, turn.Observe) {
				diff = fmt.Errorf("replay: turn %d: the sandbox answers %s, recorded is %s", i+1, quote(turn.Observe.Text), quote(old.Observe.Text))
			}
		}
	}
	e.SetAnswer(t.Answer)
	e.Finish(replayPlan(t), t.End, t.FormatError)
	if t.RewardKind != "" {
		e.reward, e.rewardKind, e.components = t.Reward, t.RewardKind, t.Components
	}
	n := e.Trajectory()
	n.ID, n.Phase, n.Policy, n.Step, n.Group, n.Rollout, n.Mode = t.ID, t.Phase, t.Policy, t.Step, t.Group, t.Rollout, t.Mode
	n.Advantage, n.Labels, n.Overlong = t.Advantage, t.Labels, t.Overlong
	return n, diff
}

// replayPlan takes the plan from the answer as written, which keeps JSON
// types, or from the recorded days.
func replayPlan(t trainer.Trajectory) Plan {
	if t.Answer != "" {
		if p, err := ParsePlan(t.Answer); err == nil {
			return p
		}
	}
	if len(t.Plan) == 0 {
		return Plan{}
	}
	days := make([]Day, len(t.Plan))
	for i, d := range t.Plan {
		days[i] = Day{Day: d.Day, City: d.City, Transportation: d.Transportation, Breakfast: d.Breakfast,
			Lunch: d.Lunch, Dinner: d.Dinner, Attraction: d.Attraction, Accommodation: d.Accommodation}
	}
	return NewPlan(days)
}

func sameObserved(a, b *trainer.Observed) bool {
	return a.Text == b.Text && a.Injected == b.Injected && a.Error == b.Error && slices.EqualFunc(a.Rows, b.Rows, slices.Equal[[]string])
}
