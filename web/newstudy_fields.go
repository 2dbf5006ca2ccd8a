package web

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"alidade/ablation"
	"alidade/templates"
)

// appliesIf says for which recipes a key matters. Keys that are not here
// always do. What does not matter is carried along unseen.
var appliesIf = map[string]func(r *ablation.Recipe) bool{
	"trainer.command":                isKind("command"),
	"trainer.env":                    isKind("command"),
	"trainer.device":                 onDevices,
	"trainer.memory_gib":             onDevices,
	"model.size":                     isKind("cpu", "command"),
	"model.base":                     isKind("cpu", "command"),
	"data.ood_traces":                isKind("cpu", "command"),
	"data.pass_rate_samples":         isKind("cpu", "command"),
	"sft.control":                    isKind("cpu", "command"),
	"evaluation.validation":          isKind("cpu", "command"),
	"evaluation.ood":                 isKind("cpu", "command"),
	"environment.reasoning":          isKind("cpu", "command"),
	"trainer.kernel":                 isKind("cpu"),
	"data.queries_file":              func(r *ablation.Recipe) bool { return isKind("solver", "endpoint")(r) || r.IsNative() },
	"data.plans":                     isKind("solver"),
	"algorithm.loss_scale_factor":    func(r *ablation.Recipe) bool { return r.Algorithm.LossAgg == "seq-mean-token-sum-norm" },
	"algorithm.kl_loss_coef":         func(r *ablation.Recipe) bool { return r.Algorithm.UseKLLoss },
	"algorithm.kl_loss_type":         func(r *ablation.Recipe) bool { return r.Algorithm.UseKLLoss },
	"algorithm.kl_coef":              func(r *ablation.Recipe) bool { return r.Algorithm.UseKLInReward },
	"algorithm.filter_groups_metric": dynamic,
	"algorithm.entropy_target_delta": func(r *ablation.Recipe) bool { return r.Algorithm.EntropyTarget > 0 },
	"algorithm.max_num_gen_batches":  dynamic,
	"algorithm.initial_rollouts":     branching,
	"algorithm.beam_size":            branching,
	"algorithm.branch_probability":   branching,
	"algorithm.entropy_weight":       branching,
	"data.ood_renamed":               func(r *ablation.Recipe) bool { return r.Data.OODTraces > 0 },
	"evaluation.ood_known":           func(r *ablation.Recipe) bool { return r.Evaluation.OOD > 0 },
	"reward.stages":                  inStages,
	"reward.stage_by":                inStages,
	"reward.weights":                 func(r *ablation.Recipe) bool { return r.Reward.Kind == "WEIGHTED" },
	"reward.milestones":              isKind("command", "cpu"),
	"environment.tables":             func(r *ablation.Recipe) bool { return r.Environment.World == "real" },
	"environment.failure_kind":       failing,
	"environment.failure_rates":      failing,
	"environment.failure_latency_ms": failing,
	"environment.form":               textual,
	"environment.answer":             textual,
}

// applies says whether a key matters for a recipe.
func applies(key string, r *ablation.Recipe) bool {
	if strings.HasPrefix(key, "endpoint.") {
		return r.Trainer.Kind == "endpoint"
	}
	if strings.HasPrefix(key, "native.") {
		return r.IsNative()
	}
	rule := appliesIf[key]
	return rule == nil || rule(r)
}

// textual tells whether a language model plays.
func textual(r *ablation.Recipe) bool { return isKind("command", "endpoint")(r) || r.IsNative() }

// onDevices tells whether a run may ask for GPUs.
func onDevices(r *ablation.Recipe) bool { return r.Trainer.Kind == "command" || r.IsNative() }

// dynamic tells whether groups without spread are sampled again.
func dynamic(r *ablation.Recipe) bool {
	return r.Algorithm.Kind == "dapo" || r.Algorithm.FilterGroups
}

// branching tells whether rollouts branch at tool results.
func branching(r *ablation.Recipe) bool { return r.Algorithm.Kind == "arpo" }

// inStages tells whether the reward goes through stages.
func inStages(r *ablation.Recipe) bool {
	return r.Reward.Kind == "CURRICULUM" || r.Reward.Kind == "PLANNER_R1"
}

// failing tells whether tools fail in training.
func failing(r *ablation.Recipe) bool { return r.Environment.ToolFailureRate > 0 }

func isKind(kinds ...string) func(*ablation.Recipe) bool {
	return func(r *ablation.Recipe) bool { return slices.Contains(kinds, r.Trainer.Kind) }
}

// openGroups are the groups of the form that start unfolded.
var openGroups = []string{"Model", "Algorithm", "Reward", "Data"}

// baseGroups builds the recipe form in the order of the schema, and the note
// that counts what differs from the preset.
func baseGroups(d draft, st ablation.Study, problems map[string]string) (groups []templates.FieldGroup, note string) {
	preset, _ := ablation.PresetNamed(d.Preset)
	changed, wrong := 0, 0
	recipes := varieties(st)
	for _, f := range ablation.Fields() {
		if len(groups) == 0 || groups[len(groups)-1].Name != f.Group {
			groups = append(groups, templates.FieldGroup{ID: strings.ToLower(f.Group), Name: f.Group, Open: slices.Contains(openGroups, f.Group)})
		}
		g := &groups[len(groups)-1]
		v := fieldView(f, d, preset, problems[f.Key])
		if v.Changed && v.Kind != "factor" {
			changed++
		}
		if v.Problem != "" {
			wrong++
		}
		matters := slices.ContainsFunc(recipes, func(r ablation.Recipe) bool { return applies(f.Key, &r) })
		if !matters && v.Kind != "factor" && v.Problem == "" && !v.Changed {
			g.Hidden = append(g.Hidden, v)
			continue
		}
		g.Open = g.Open || v.Problem != "" || v.Changed && v.Kind != "factor" || g.Name == "Language model"
		g.Fields = append(g.Fields, v)
	}
	for i := range groups {
		groups[i].Summary = groupSummary(groups[i])
	}
	note = "as the preset has it"
	if changed > 0 {
		note = plural(changed, "field differs", "fields differ") + " from the preset"
	}
	if wrong > 0 {
		note += "; " + plural(wrong, "problem", "problems")
	}
	return groups, note
}

// varieties are the base recipe and what it becomes with each level of each
// factor: a field is in sight when it matters in one of them.
func varieties(st ablation.Study) []ablation.Recipe {
	out := []ablation.Recipe{st.Base}
	for _, f := range st.Factors {
		for _, l := range f.Levels {
			r := st.Base
			if ablation.Set(&r, f.Key, l) == nil {
				out = append(out, r)
			}
		}
	}
	return out
}

func fieldView(f ablation.Field, d draft, preset ablation.Recipe, problem string) templates.FieldView {
	v := templates.FieldView{Key: f.Key, Label: f.Label, Help: capital(f.Help) + ". " + capital(f.Allowed()) + ".", Value: d.Values[f.Key], Unit: f.Unit, Problem: problem}
	if value, err := ablation.Get(&preset, f.Key); err == nil {
		v.Preset = valueText(value)
		v.Changed = v.Preset != v.Value
		v.Preset = strings.ReplaceAll(v.Preset, "\n", " ")
		if v.Preset == "" {
			v.Preset = "empty"
		}
	}
	for _, df := range d.Factors {
		if df.Key == f.Key {
			v.Kind, v.Factor, v.Problem, v.Changed = "factor", "factor: "+strings.Join(df.Levels, ", "), "", false
			return v
		}
	}
	switch f.Kind {
	case ablation.KindEnum, ablation.KindBool:
		values := f.Enum
		if f.Kind == ablation.KindBool {
			values = []string{"true", "false"}
		}
		v.Kind, v.Options = choiceOf(values, v.Value, f.Kind == ablation.KindBool)
	case ablation.KindList, ablation.KindMap:
		v.Range = map[ablation.FieldKind]string{ablation.KindList: "one argument a line", ablation.KindMap: "NAME=value, one a line"}[f.Kind]
		v.Kind, v.Rows = "lines", strconv.Itoa(min(max(strings.Count(v.Value, "\n")+1, 1), 12))
	case ablation.KindInt, ablation.KindUint, ablation.KindFloat:
		v.Kind, v.Range = "number", capital(f.Allowed())
	default:
		v.Kind = "text"
	}
	return v
}

// choiceOf shows few short values as a row, more as a list.
func choiceOf(values []string, chosen string, yesNo bool) (kind string, options []templates.FilterOption) {
	letters := 0
	for _, o := range values {
		label := o
		if yesNo {
			label = map[string]string{"true": "yes", "false": "no"}[o]
		}
		letters += len(label) + 3
		options = append(options, templates.FilterOption{Value: o, Label: label, On: o == chosen})
	}
	if !slices.Contains(values, chosen) {
		label := chosen
		if label == "" {
			label = "default"
			letters += len(label) + 3
		}
		options = append([]templates.FilterOption{{Value: chosen, Label: label, On: true}}, options...)
	}
	if letters > 30 {
		return "select", options
	}
	return "choice", options
}

// groupSummary says in one line what a folded group holds.
func groupSummary(g templates.FieldGroup) string {
	var parts []string
	for _, f := range g.Fields {
		value := f.Value
		if f.Kind == "factor" {
			value = "a factor"
		}
		if value == "" || len(value) > 24 || strings.Contains(value, "\n") {
			continue
		}
		switch value {
		case "true":
			value = "yes"
		case "false":
			value = "no"
		}
		parts = append(parts, f.Label+" "+value)
		if len(parts) == 4 {
			break
		}
	}
	return strings.Join(parts, ", ")
}

// outlookOf is what a launch would start: counts, the matrix of arms, and
// what is worth weighing before.
func outlookOf(d draft, st ablation.Study, arms []ablation.Arm, planned []ablation.Planned, past history, faults int) templates.OutlookView {
	v := templates.OutlookView{}
	if len(planned) == 0 {
		v.Facts = []templates.Fact{{Label: "runs", Value: "–"}, {Label: "time", Value: "–"}, {Label: "difference it can see", Value: "–"}}
		v.Problem = "The matrix of runs appears here once " + verb(faults, "the problem is", "the problems are") + " solved."
		return v
	}
	runs := templates.Fact{Label: "runs", Value: digits(int64(len(planned))), Unit: fmt.Sprintf("%s × %s", plural(len(arms), "arm", "arms"), plural(len(st.Seeds), "seed", "seeds"))}
	v.Facts = append([]templates.Fact{runs}, past.facts(arms, len(st.Seeds))...)
	if isRate(st.Metric) && st.Base.Evaluation.Queries > 0 {
		v.Facts = append(v.Facts, templates.Fact{Label: "difference it can see", Value: fixed(100*detectable(st.Base.Evaluation.Queries, len(st.Seeds)), 1), Unit: "points at best"})
	}
	keys, heads := columnsOf(st, arms)
	v.Heads = heads
	v.Note = map[ablation.Design]string{ablation.DesignGrid: "every combination", ablation.DesignOneFactor: "one factor at a time around the first levels", ablation.DesignList: "as listed"}[st.Design] + "; the same held-out queries in every arm"
	const shown = 48
	for i, a := range arms {
		if i == shown {
			v.More = plural(len(arms)-shown, "more arm", "more arms")
			break
		}
		v.Rows = append(v.Rows, armRow(i, a, st, keys, heads))
	}
	v.Advice = adviceOf(st, arms)
	return v
}

// columnsOf are the keys that the arms set, factors first.
func columnsOf(st ablation.Study, arms []ablation.Arm) (keys []string, heads []templates.MatrixHead) {
	add := func(key, name string) {
		if slices.Contains(keys, key) {
			return
		}
		f, _ := ablation.FieldOf(key)
		if name == "" {
			name = f.Label
		}
		keys = append(keys, key)
		heads = append(heads, templates.MatrixHead{Label: name, Numeric: f.Kind == ablation.KindInt || f.Kind == ablation.KindFloat})
	}
	for _, f := range st.Factors {
		add(f.Key, f.Name)
	}
	for _, a := range arms {
		for _, f := range ablation.Fields() {
			if _, set := a.Levels[f.Key]; set {
				add(f.Key, "")
			}
		}
	}
	return keys, heads
}

func armRow(i int, a ablation.Arm, st ablation.Study, keys []string, heads []templates.MatrixHead) templates.PlannedArm {
	row := templates.PlannedArm{N: strconv.Itoa(i + 1), Label: plural(len(st.Seeds), "seed", "seeds")}
	for c, key := range keys {
		value, ok := a.Levels[key]
		level := templates.ArmLevel{Text: "–", Numeric: heads[c].Numeric}
		if ok {
			level.Text = cellText(key, value)
		}
		for _, f := range st.Factors {
			if f.Key == key && len(f.Levels) > 0 && ok {
				level.Other = valueText(f.Levels[0]) != valueText(value)
			}
		}
		row.Levels = append(row.Levels, level)
	}
	row.Seeds = strings.Repeat("●", min(len(st.Seeds), 10))
	if len(st.Seeds) > 10 {
		row.Seeds = fmt.Sprintf("● × %d", len(st.Seeds))
	}
	return row
}

// cellText writes a level for a table cell.
func cellText(key string, v any) string {
	if key == "environment.tool_failure_rate" {
		if x, ok := v.(float64); ok {
			return strconv.FormatFloat(x*100, 'g', 6, 64) + thin + "%"
		}
	}
	switch x := v.(type) {
	case bool:
		return map[bool]string{true: "yes", false: "no"}[x]
	case int64:
		return digits(x)
	}
	text, _ := clip(templates.Plain(valueText(v)), 40)
	return text
}

// detectable is the smallest difference between two arms' success rates that
// is found 4 times in 5 at the two-sided 5 % level if nothing but the draw of
// queries varied, at a rate of one half: 2.8 × √(2 · ¼ ÷ (queries × seeds)).
// Seeds vary too, so a real study sees less.
func detectable(queries, seeds int) float64 {
	return 2.8 * math.Sqrt(.5/float64(queries*max(seeds, 1)))
}

// adviceOf says what to weigh before launching.
func adviceOf(st ablation.Study, arms []ablation.Arm) []templates.AdviceView {
	var out []templates.AdviceView
	seeds, queries := len(st.Seeds), st.Base.Evaluation.Queries
	if len(arms) < 2 {
		out = append(out, templates.AdviceView{Icon: "info", Title: "One arm compares nothing", Text: "Add a factor with two levels to see a difference."})
	}
	switch {
	case seeds == 1:
		out = append(out, templates.AdviceView{Icon: "warn", Title: "One seed has no spread", Text: "Differences between arms cannot be told from differences between seeds. Three seeds are the least that give an interval."})
	case seeds == 2:
		out = append(out, templates.AdviceView{Icon: "info", Title: "Two seeds give wide intervals", Text: "The t interval over 2 seeds is 12.7 standard errors wide to each side, over 3 it is 4.3, over 5 it is 2.8."})
	}
	if see := detectable(queries, seeds); isRate(st.Metric) && st.MinDifference > 0 && queries > 0 && see > st.MinDifference && len(arms) > 1 {
		need := int(math.Ceil(2.8 * 2.8 * .5 / (st.MinDifference * st.MinDifference) / float64(queries)))
		out = append(out, templates.AdviceView{Icon: "info", Title: fmt.Sprintf("%s points is finer than this can see", strconv.FormatFloat(st.MinDifference*100, 'g', 4, 64)),
			Text: fmt.Sprintf("%s × %s held-out queries separate %s points at best, by the draw of queries alone. %s seeds would reach it; so would more queries.", plural(seeds, "seed", "seeds"), digits(int64(queries)), fixed(see*100, 1), digits(int64(need)))})
	}
	for _, f := range st.Factors {
		if f.Key == "data.seed" {
			out = append(out, templates.AdviceView{Icon: "warn", Title: "Arms meet different held-out queries", Text: "The data seed is a factor, so arms are judged on different panels and are not comparable query by query."})
		}
		if strings.HasPrefix(f.Key, "evaluation.") {
			out = append(out, templates.AdviceView{Icon: "warn", Title: "The evaluation itself varies", Text: f.Key + " is a factor: arms are judged in different ways."})
		}
	}
	return out
}
