package web

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"alidade/ablation"
	"alidade/store"
	"alidade/templates"
	"alidade/trainer"
)

// trajectoryView builds the page of one rollout from its record, its run and
// the heads of its group. tokens names what is shown of each token.
func trajectoryView(t *trainer.Trajectory, run ablation.Run, group []store.TrajectoryHead, tokens string) templates.TrajectoryView {
	base := trajectoryPath(run.ID, t.ID)
	v := templates.TrajectoryView{
		Title:       trajectoryTitle(t),
		Lede:        tripWords(t) + " " + capital(run.Arm.Label) + ", seed " + fmt.Sprint(run.Seed) + ".",
		Query:       t.Query.Text,
		Tags:        trajectoryTags(t),
		Facts:       trajectoryFacts(t, run, group),
		JSONURL:     fmt.Sprintf("/api/v1/runs/%d/trajectories/%s", run.ID, url.PathEscape(t.ID)),
		MessagesURL: base + "/messages.json",
		Plan:        planOf(t),
		Checks:      checksOf(t),
		Worth:       worthOf(t),
	}
	v.View = templates.ChoiceView{Label: "View", Options: []templates.ChoiceOption{
		{Label: "read", Href: base, On: true}, {Label: "raw JSON", Href: base + "?view=raw"},
	}}
	if scored(t) {
		parts := partsOf(t)
		v.Parts = &parts
	}
	v.Prev, v.Next = neighbours(t, run.ID, group)
	if t.Group != "" && len(group) > 1 {
		v.Group = &templates.InspectLink{Text: "Group of " + fmt.Sprint(len(group)), Href: groupPath(run.ID, t.Group), Key: "g g"}
	}
	open := guilty(t)
	m := measureOf(t, tokens)
	if v.Strip = stripOf(t, m, open); v.Strip != nil {
		v.Strip.By = tokenChoice(t, base, m.by)
	}
	v.Turns = turnsOf(t, m, base, open)
	folded := 0
	for _, turn := range v.Turns {
		if !turn.Open {
			folded++
		}
	}
	v.Folded = fmt.Sprintf("%d of %d folded", folded, len(v.Turns))
	if folded == 0 {
		v.Folded = plural(len(v.Turns), "turn", "turns")
	}
	return v
}

func trajectoryPath(run ablation.RunID, id string) string {
	return fmt.Sprintf("/runs/%d/trajectories/%s", run, url.PathEscape(id))
}

func groupPath(run ablation.RunID, group string) string {
	return fmt.Sprintf("/runs/%d/groups/%s", run, url.PathEscape(group))
}

// trajectoryTitle says what is seen: who, and what it came to.
func trajectoryTitle(t *trainer.Trajectory) string {
	who := fmt.Sprintf("Rollout %d", t.Rollout+1)
	switch t.Policy {
	case "expert":
		who = "Expert"
	case "annotated":
		who = "Annotated plan"
	case "random-legal":
		who = "Random-legal policy"
	case "sft", "sft-continued":
		who = "SFT " + strings.ToLower(who)
	}
	if t.FormatError != "" {
		return who + ": a format error, so the reward is " + fixed(t.Reward, 0)
	}
	if len(t.Plan) == 0 {
		return who + ": no plan was delivered"
	}
	if t.Success {
		return who + ": every check passes"
	}
	var failed []string
	for _, v := range t.Verdicts {
		if v.Outcome == "fail" || v.Outcome == "raises" {
			failed = append(failed, checkName(v))
		}
	}
	switch n := len(failed); {
	case n == 0:
		return who + ": not a success"
	case n <= 2:
		return who + ": fails " + listed(failed)
	default:
		return fmt.Sprintf("%s: fails %d checks, %s among them", who, n, failed[0])
	}
}

// tripWords sums the query up from its fields.
func tripWords(t *trainer.Trajectory) string {
	q := t.Query
	var parts []string
	if q.Days > 0 {
		parts = append(parts, plural(q.Days, "day", "days"))
	}
	if q.People > 0 {
		parts = append(parts, plural(q.People, "person", "people"))
	}
	if q.Org != "" && q.Dest != "" {
		parts = append(parts, templates.Plain(q.Org)+" to "+templates.Plain(q.Dest))
	}
	for _, key := range sortedKeys(q.Constraints) {
		if key == "budget" { // said last, from its own field
			continue
		}
		parts = append(parts, templates.Plain(q.Constraints[key]))
	}
	if t.Budget > 0 {
		parts = append(parts, dollars(t.Budget))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + "."
}

func trajectoryTags(t *trainer.Trajectory) []string {
	var tags []string
	for _, s := range []string{t.Query.Level, t.Phase, t.Mode} {
		if s != "" {
			tags = append(tags, templates.Plain(s))
		}
	}
	if t.Policy != "" && t.Policy != "policy" && t.Policy != t.Mode {
		tags = append(tags, templates.Plain(t.Policy))
	}
	if t.Overlong {
		tags = append(tags, "over-long")
	}
	for _, k := range sortedKeys(t.Labels) {
		tags = append(tags, templates.Plain(k+": "+t.Labels[k]))
	}
	return tags
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func trajectoryFacts(t *trainer.Trajectory, run ablation.Run, group []store.TrajectoryHead) []templates.Fact {
	reward := templates.Fact{Label: "reward, " + templates.Plain(t.RewardKind), Value: fixed(t.Reward, 3)}
	if most := rewardRange(t.RewardKind); most > 0 {
		reward.Unit = "of " + fixed(most, 0)
	}
	var facts []templates.Fact
	if scored(t) {
		facts = append(facts, reward, advantageFact(t, group))
	}
	for _, family := range []string{"commonsense", "hard"} {
		if f, ok := checkFact(t, family); ok {
			facts = append(facts, f)
		}
	}
	facts = append(facts,
		templates.Fact{Label: "turns", Value: digits(int64(len(t.Turns))), Unit: ofLimit(run.Arm.Recipe.Environment.MaxTurns)},
		templates.Fact{Label: "tool calls", Value: digits(int64(t.ToolCalls)), Unit: toolWords(t)},
		formatFact(t))
	if t.Tokens > 0 {
		tokens := templates.Fact{Label: "tokens", Value: digits(int64(t.Tokens)), Unit: ofLimit(run.Arm.Recipe.Environment.MaxTokens)}
		facts = slices.Insert(facts, len(facts)-2, tokens)
	}
	return facts
}

// scored tells whether the rollout was paid for: plans that are only judged
// have no reward.
func scored(t *trainer.Trajectory) bool { return t.RewardKind != "" || len(t.Components) > 0 }

func ofLimit(n int) string {
	if n <= 0 {
		return ""
	}
	return "of " + digits(int64(n))
}

func toolWords(t *trainer.Trajectory) string {
	var parts []string
	if t.Injected > 0 {
		parts = append(parts, plural(t.Injected, "injected failure", "injected failures"))
	}
	if t.ToolErrors > 0 {
		parts = append(parts, plural(t.ToolErrors, "error", "errors"))
	}
	if n := repeated(t); n > 0 {
		parts = append(parts, fmt.Sprintf("%d repeated", n))
	}
	return strings.Join(parts, ", ")
}

// repeated counts calls that were made before with the same arguments and
// were answered then.
func repeated(t *trainer.Trajectory) int {
	seen, n := map[string]bool{}, 0
	for _, turn := range t.Turns {
		if turn.Call == nil || turn.Observe == nil || turn.Observe.Injected != "" {
			continue
		}
		key := fmt.Sprint(turn.Call.Tool, turn.Call.Args)
		if seen[key] {
			n++
		}
		seen[key] = true
	}
	return n
}

func advantageFact(t *trainer.Trajectory, group []store.TrajectoryHead) templates.Fact {
	f := templates.Fact{Label: "advantage"}
	if t.Advantage == nil {
		f.Value, f.Unit = "–", "none in "+inPhase(t.Phase)
		return f
	}
	f.Value = signed(t.Advantage.Value, 2)
	if t.Advantage.Norm == "group-std" {
		f.Unit = "SD"
	}
	if t.Advantage.Zero {
		f.Unit = "all rewards of the group are equal"
		return f
	}
	if rank := rankOf(t, group); rank > 0 {
		f.Unit = strings.TrimPrefix(f.Unit+", ", ", ") + ordinal(rank) + " of " + fmt.Sprint(len(group))
	}
	if !t.Advantage.InLoss {
		f.Unit = strings.TrimPrefix(f.Unit+", ", ", ") + "not in the loss"
	}
	return f
}

func inPhase(phase string) string {
	switch phase {
	case "eval":
		return "an evaluation"
	case "":
		return "this phase"
	}
	return templates.Plain(phase)
}

// rankOf is the place of t in its group by reward, 1 = best.
func rankOf(t *trainer.Trajectory, group []store.TrajectoryHead) int {
	rank, found := 1, false
	for _, h := range group {
		if h.Reward > t.Reward {
			rank++
		}
		found = found || h.ID == t.ID
	}
	if !found {
		return 0
	}
	return rank
}

func checkFact(t *trainer.Trajectory, family string) (templates.Fact, bool) {
	passed, asked, closed, any := 0, 0, false, false
	for _, v := range t.Verdicts {
		if v.Family != family {
			continue
		}
		any = true
		switch outcomeIn(t, v) {
		case "pass":
			passed, asked = passed+1, asked+1
		case "n/a":
		case "closed":
			asked, closed = asked+1, true
		default:
			asked++
		}
	}
	if !any {
		return templates.Fact{}, false
	}
	f := templates.Fact{Label: family, Value: fmt.Sprint(passed), Unit: fmt.Sprintf("of %d", asked)}
	prefix := map[string]string{"commonsense": "cs", "hard": "hard"}[family]
	micro, ok1 := t.Scores[prefix+"_micro"]
	macro, ok2 := t.Scores[prefix+"_macro"]
	switch {
	case closed:
		f.Unit += ", gate shut"
	case ok1 && ok2:
		f.Unit += ": " + fixed(micro, 3) + " + " + fixed(macro, 0)
	}
	return f, true
}

func formatFact(t *trainer.Trajectory) templates.Fact {
	s := templates.Status{Kind: "ok", Word: "valid"}
	switch {
	case t.FormatError != "":
		line, cut := clip(templates.Plain(t.FormatError), 60)
		if cut {
			line += "…"
		}
		s = templates.Status{Kind: "bad", Word: line}
	case t.End == "turns":
		s = templates.Status{Kind: "warn", Word: "out of turns"}
	case t.End == "context" || t.Overlong:
		s = templates.Status{Kind: "warn", Word: "context full"}
	}
	return templates.Fact{Label: "format", Status: []templates.Status{s}}
}

// neighbours are the rollouts before and after t in its group.
func neighbours(t *trainer.Trajectory, run ablation.RunID, group []store.TrajectoryHead) (prev, next *templates.InspectLink) {
	sorted := slices.Clone(group)
	slices.SortFunc(sorted, func(a, b store.TrajectoryHead) int { return a.Rollout - b.Rollout })
	at := slices.IndexFunc(sorted, func(h store.TrajectoryHead) bool { return h.ID == t.ID })
	if at > 0 {
		h := sorted[at-1]
		prev = &templates.InspectLink{Text: "‹ " + fmt.Sprint(h.Rollout+1), Href: trajectoryPath(run, h.ID), Key: "h"}
	}
	if at >= 0 && at+1 < len(sorted) {
		h := sorted[at+1]
		next = &templates.InspectLink{Text: fmt.Sprint(h.Rollout+1) + " ›", Href: trajectoryPath(run, h.ID), Key: "l"}
	}
	return prev, next
}

// guilty are the turns to open: those that found an item which fails a check.
func guilty(t *trainer.Trajectory) map[int]bool {
	open := map[int]bool{}
	for _, v := range t.Verdicts {
		if v.Outcome != "fail" && v.Outcome != "raises" {
			continue
		}
		for i, day := range t.Plan {
			n := day.Day
			if n == 0 {
				n = i + 1
			}
			if turn := day.Found[normalField(v.Field)]; n == v.Day && turn > 0 {
				open[turn] = true
			}
		}
	}
	return open
}

// worthOf says how the advantage came about.
func worthOf(t *trainer.Trajectory) string {
	a := t.Advantage
	if a == nil {
		return ""
	}
	if a.Zero {
		return "Every rollout of the group earned " + fixed(a.Mean, 3) + ", so this prompt gave no gradient."
	}
	s := fmt.Sprintf("Advantage %s = (%s − group mean %s)", signed(a.Value, 3), fixed(t.Reward, 3), fixed(a.Mean, 3))
	if a.Norm == "group-std" {
		s += " ÷ group SD " + fixed(a.Std, 3)
	} else {
		s += ", not divided by the SD of " + fixed(a.Std, 3)
	}
	if !a.InLoss {
		return s + ". It is masked: out of the loss, in the group's statistics."
	}
	return s + ", the same on every token it wrote."
}
