package web

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"alidade/ablation"
	"alidade/store"
	"alidade/templates"
	"alidade/trainer"
)

// groupView builds the page of a group whose rollouts come best first.
func groupView(run ablation.Run, group []trainer.Trajectory, step []store.TrajectoryHead) templates.GroupView {
	first := &group[0]
	v := templates.GroupView{Query: first.Query.Text, Tags: groupTags(first)}
	v.Step, v.Prev, v.Next = groupStripOf(run.ID, first, step)
	v.Matrix = matrixOf(run, group)
	stats := groupSpread(group)
	switch {
	case len(group) == 1:
		v.Title = "One prompt, one rollout"
	case stats.sd == 0:
		v.Title = fmt.Sprintf("One prompt, %s rollouts: all earn %s", inWords(len(group)), fixed(stats.mean, 3))
	default:
		v.Title = fmt.Sprintf("One prompt, %s rollouts: %s", inWords(len(group)), groupFinding(v.Matrix, group))
	}
	if stats.sd == 0 && len(group) > 1 {
		v.NoGradient = fmt.Sprintf("All %d rollouts earned %s, so every advantage is 0 and this prompt moved nothing.", len(group), fixed(stats.mean, 3))
	}
	if stats.sd > 0 && hasComponents(group) {
		v.Split, v.Share = splitOf(group), shareOf(group)
	}
	if len(group) > 1 {
		v.Rules = rulesOf(group)
	}
	return v
}

func groupTags(t *trainer.Trajectory) []string {
	var tags []string
	if t.Query.Level != "" {
		tags = append(tags, templates.Plain(t.Query.Level))
	}
	if t.Query.Days > 0 {
		tags = append(tags, plural(t.Query.Days, "day", "days"))
	}
	if t.Query.People > 0 {
		tags = append(tags, plural(t.Query.People, "person", "people"))
	}
	if t.Budget > 0 {
		tags = append(tags, "budget "+dollars(t.Budget))
	}
	return tags
}

// groupFinding says what decides and how many succeed.
func groupFinding(m templates.MatrixView, group []trainer.Trajectory) string {
	wins := 0
	for _, t := range group {
		if t.Success {
			wins++
		}
	}
	decides := ""
	if len(m.Rows) > 0 {
		decides = m.Rows[0].Name + " decides, "
	}
	switch {
	case wins == 0:
		return decides + "nobody solves it"
	case wins == len(group):
		return "all solve it"
	}
	return fmt.Sprintf("%s%d of %d solve it", decides, wins, len(group))
}

func inWords(n int) string {
	words := []string{"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"}
	if n < len(words) {
		return words[n]
	}
	return strconv.Itoa(n)
}

// spread is the mean and the standard deviation over the group (divisor G),
// as the advantage uses them.
type spread struct{ mean, sd float64 }

func statsOf(xs []float64) spread {
	var s spread
	for _, x := range xs {
		s.mean += x / float64(len(xs))
	}
	for _, x := range xs {
		s.sd += (x - s.mean) * (x - s.mean) / float64(len(xs))
	}
	s.sd = math.Sqrt(s.sd)
	if s.sd < 1e-9 {
		s.sd = 0
	}
	return s
}

// groupSpread is the mean and the SD that the trainer divided by, where it
// said so (some divide by G − 1), else those of the rewards.
func groupSpread(group []trainer.Trajectory) spread {
	s := statsOf(rewardsOf(group))
	if a := group[0].Advantage; a != nil && a.Std > 0 && s.sd > 0 {
		s.mean, s.sd = a.Mean, a.Std
	}
	return s
}

func rewardsOf(group []trainer.Trajectory) []float64 {
	xs := make([]float64, len(group))
	for i, t := range group {
		xs[i] = t.Reward
	}
	return xs
}

// advantageOf is what the trainer said, or, where it did not, the group norm.
func advantageOf(t *trainer.Trajectory, s spread) float64 {
	if t.Advantage != nil {
		return t.Advantage.Value
	}
	if s.sd == 0 {
		return 0
	}
	return (t.Reward - s.mean) / s.sd
}

func hasComponents(group []trainer.Trajectory) bool {
	for _, t := range group {
		if len(t.Components) == 0 {
			return false
		}
	}
	return true
}

// matrixOf lays constraints against rollouts.
func matrixOf(run ablation.Run, group []trainer.Trajectory) templates.MatrixView {
	stats := groupSpread(group)
	first := &group[0]
	m := templates.MatrixView{
		Rewards: "Reward, " + templates.Plain(first.RewardKind),
		Spread:  "mean " + fixed(stats.mean, 3) + ", SD " + fixed(stats.sd, 3),
		Norm:    "(reward − mean) ÷ SD",
		Limit:   "tokens",
	}
	if first.RewardKind == "" {
		m.Rewards = "Reward"
	}
	if first.Advantage != nil && first.Advantage.Norm == "group-mean" {
		m.Norm = "reward − mean"
	}
	if limit := run.Arm.Recipe.Environment.MaxTokens; limit > 0 {
		m.Limit = "tokens, limit " + digits(int64(limit))
	}
	m.Title, m.Note = "What separates the better rollouts", "separates by = mean advantage of those that pass minus those that do not"
	m.Caption = fmt.Sprintf("Columns are the %d rollouts, best reward first.", len(group))
	if len(group) == 1 {
		m.Title, m.Note, m.Caption = "How the checks came out", "", "With one rollout there is nothing to compare."
	}
	advantages, most := make([]float64, len(group)), 0.0
	for i := range group {
		advantages[i] = advantageOf(&group[i], stats)
		most = max(most, math.Abs(advantages[i]))
	}
	edge := edgeOf(group, stats)
	if edge >= 0 {
		m.Caption += fmt.Sprintf(" The line after rollout %d is the group mean: left of it is pushed up, right of it down.", group[edge].Rollout+1)
	}
	for i := range group {
		c := columnOf(run.ID, &group[i], advantages[i], most)
		c.Edge = i == edge
		m.Notes = m.Notes || c.Note != ""
		m.Injected = m.Injected || group[i].Injected > 0
		m.Columns = append(m.Columns, c)
	}
	m.Rows, m.Same = matrixRows(run.ID, group, advantages, edge)
	m.SameTitle = "Same in all: these cannot teach anything in this group"
	if len(group) == 1 {
		m.SameTitle = "Constraint"
	}
	m.Reason = firstReason(m)
	return m
}

// edgeOf is the last column above the group mean, −1 when there is no such side.
func edgeOf(group []trainer.Trajectory, s spread) int {
	edge := -1
	for i, t := range group {
		if t.Reward > s.mean+1e-12 {
			edge = i
		}
	}
	if edge == len(group)-1 {
		return -1
	}
	return edge
}

func columnOf(run ablation.RunID, t *trainer.Trajectory, advantage, most float64) templates.MatrixColumn {
	c := templates.MatrixColumn{
		Label: fmt.Sprint(t.Rollout + 1), Href: trajectoryPath(run, t.ID), Title: trajectoryTitle(t),
		Reward: fixed(t.Reward, 3), Advantage: signed(advantage, 2), BarY: "17", BarH: "0",
		Tokens: digits(int64(t.Tokens)), Calls: fmt.Sprint(t.ToolCalls),
	}
	if most > 0 {
		h := math.Abs(advantage) / most * 15
		c.BarH = unit(max(h, .5))
		c.BarY = "17.5"
		if advantage > 0 {
			c.BarY = unit(17.5 - max(h, .5))
		}
	}
	if t.Injected > 0 {
		c.Calls += fmt.Sprintf(" +%d", t.Injected)
	}
	switch {
	case t.FormatError != "":
		c.Note, c.NoteTone = "format", "bad"
	case t.Overlong || t.End == "context":
		c.Note, c.NoteTone = "over-long", "warn"
	case t.End == "turns":
		c.Note, c.NoteTone = "turns", "warn"
	case t.Success:
		c.Note, c.NoteTone = "solved", "ok"
	}
	return c
}

// matrixRows sorts constraints by how much they separate: the mean advantage
// of rollouts that pass minus that of those that do not. Constraints that
// come out the same everywhere go to the second list.
func matrixRows(run ablation.RunID, group []trainer.Trajectory, advantages []float64, edge int) (rows, same []templates.MatrixRow) {
	type ranked struct {
		row templates.MatrixRow
		sep float64
	}
	var sorted []ranked
	most := 0.0
	for _, check := range checksIn(group) {
		row := templates.MatrixRow{Name: check.Name, Family: familyWord(check.Family)}
		passed, failed, outcomes := []float64{}, []float64{}, map[string]bool{}
		unasked := slices.ContainsFunc(group, func(t trainer.Trajectory) bool { return verdictOf(&t, check.Check).Outcome == "n/a" })
		for i := range group {
			v := verdictOf(&group[i], check.Check)
			if unasked && v.Outcome == "closed" { // all rollouts meet the same prompt
				v.Outcome, v.Reason = "n/a", ""
			}
			outcomes[v.Outcome] = true
			switch v.Outcome {
			case "pass":
				passed = append(passed, advantages[i])
			case "n/a", "":
			default:
				failed = append(failed, advantages[i])
			}
			row.Cells = append(row.Cells, cellOf(run, &group[i], check, v, i == edge))
		}
		if len(outcomes) == 1 || len(passed) == 0 || len(failed) == 0 {
			row.Sep = sameWords(outcomes, len(group))
			same = append(same, row)
			continue
		}
		sep := statsOf(passed).mean - statsOf(failed).mean
		most = max(most, math.Abs(sep))
		sorted = append(sorted, ranked{row, sep})
	}
	slices.SortStableFunc(sorted, func(a, b ranked) int {
		switch {
		case math.Abs(a.sep) > math.Abs(b.sep):
			return -1
		case math.Abs(a.sep) < math.Abs(b.sep):
			return 1
		}
		return 0
	})
	for _, r := range sorted {
		w := 0.0
		if most > 0 {
			w = math.Abs(r.sep) / most * 50
		}
		r.row.Sep, r.row.BarX, r.row.BarW = signed(r.sep, 2), "28.5", unit(w)
		if r.sep < 0 {
			w = min(w, 28)
			r.row.Against, r.row.BarX, r.row.BarW = true, unit(28.5-w), unit(w)
		}
		rows = append(rows, r.row)
	}
	return rows, same
}

func sameWords(outcomes map[string]bool, n int) string {
	switch {
	case n == 1 && outcomes["pass"]:
		return "passes"
	case n == 1 && !outcomes["n/a"]:
		return "fails"
	case len(outcomes) > 1:
		return "never passed"
	case outcomes["pass"]:
		return fmt.Sprintf("all %d pass", n)
	case outcomes["n/a"], outcomes[""]:
		return "not asked in this prompt"
	}
	return fmt.Sprintf("all %d fail", n)
}

func familyWord(f string) string {
	if f == "commonsense" {
		return "cs"
	}
	return f
}

// checksIn lists the checks that occur in the group, in the contract's order.
func checksIn(group []trainer.Trajectory) []trainer.Verdict {
	var out []trainer.Verdict
	for _, t := range group {
		for _, v := range t.Verdicts {
			if !slices.ContainsFunc(out, func(o trainer.Verdict) bool { return o.Check == v.Check }) {
				out = append(out, trainer.Verdict{Check: v.Check, Name: checkName(v), Family: v.Family})
			}
		}
	}
	place := func(key string) int {
		for i, c := range checkList {
			if c.Key == key {
				return i
			}
		}
		return len(checkList)
	}
	slices.SortStableFunc(out, func(a, b trainer.Verdict) int { return place(a.Check) - place(b.Check) })
	return out
}

// verdictOf is a rollout's verdict on a check. Without any verdict (no plan)
// the check counts as not evaluated.
func verdictOf(t *trainer.Trajectory, check string) trainer.Verdict {
	for _, v := range t.Verdicts {
		if v.Check == check {
			return v
		}
	}
	return trainer.Verdict{Check: check, Outcome: "closed", Reason: "This rollout delivered no plan."}
}

func cellOf(run ablation.RunID, t *trainer.Trajectory, check, v trainer.Verdict, edge bool) templates.MatrixCell {
	who := fmt.Sprintf("rollout %d", t.Rollout+1)
	c := templates.MatrixCell{
		Outcome: v.Outcome, Who: who, Edge: edge, Href: trajectoryPath(run, t.ID),
		Reason: sentence(v.Reason),
	}
	switch v.Outcome {
	case "pass":
		c.Head = check.Name + " passes."
	case "fail":
		c.Head, c.Href = check.Name+" fails.", c.Href+"#pin-"+v.Check
	case "raises":
		c.Head, c.Href = check.Name+" could not be evaluated.", c.Href+"#pin-"+v.Check
	case "closed":
		c.Head = check.Name + " was not evaluated."
		if c.Reason == "" {
			c.Reason = "The checks before it shut the gate; it counts as a fail."
		}
	default:
		c.Head = check.Name + " is not asked in this prompt."
	}
	c.Label = who + ": " + c.Head
	return c
}

// firstReason picks the cell that the reason line starts with: the first fail
// of the most separating constraint.
func firstReason(m templates.MatrixView) templates.MatrixReason {
	for _, rows := range [][]templates.MatrixRow{m.Rows, m.Same} {
		for _, r := range rows {
			for i, c := range r.Cells {
				if c.Outcome == "fail" {
					r.Cells[i].Current = true
					return templates.MatrixReason{Who: c.Who, Head: c.Head, Text: c.Reason, Href: c.Href}
				}
			}
		}
	}
	return templates.MatrixReason{Who: "group", Head: "Nothing fails.", Text: strings.TrimSpace("Every rollout passes what was asked.")}
}
