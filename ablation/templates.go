package ablation

// A Template is a study to start from: a published table or figure at a size
// that this machine can run. Published values are linked by its ID.
type Template struct {
	ID     string
	Title  string // "Table 1"
	What   string // "reward × scale"
	Source string // where it was published
	Study  Study
}

// Templates lists the study templates in the order of the gallery.
func Templates() []Template {
	const star = "STAR, arXiv 2603.21972"
	quick := quickRecipe()
	with := func(change func(*Recipe)) Recipe {
		r := quick.clone()
		change(&r)
		return r
	}
	curriculum := with(func(r *Recipe) { r.Reward.Kind = "CURRICULUM" })
	macro := with(func(r *Recipe) { r.Reward.Kind = "MACRO" })
	study := func(id, name, question string, base Recipe, seeds []uint64, factors ...Factor) Study {
		return Study{Name: name, Question: question, Template: id, Base: base, Factors: factors, Design: DesignGrid, Seeds: seeds, Metric: "eval/success", MinDifference: 0.05}
	}
	rewards := Factor{Key: "reward.kind", Name: "reward", Levels: []any{"SUM", "MACRO", "SUCCESS", "CURRICULUM"}}
	algorithms := Factor{Key: "algorithm.kind", Name: "algorithm", Levels: []any{"grpo", "dapo", "arpo"}}
	scale := Factor{Key: "model.size", Name: "scale", Levels: []any{"nano", "small", "medium"}}
	three := []uint64{1, 2, 3}
	return []Template{
		{ID: "star-table-1-quick", Title: "Rewards", What: "reward at one scale, from Table 1", Source: star,
			Study: study("star-table-1-quick", "rewards", "Which reward design lifts success most at the smallest proxy scale?", quick, []uint64{1, 2}, rewards)},
		{ID: "star-table-1", Title: "Table 1", What: "reward × scale", Source: star,
			Study: study("star-table-1", "table-1", "Does the best reward depend on the scale of the policy?", quick, three, rewards, scale)},
		{ID: "star-table-2-quick", Title: "Table 2", What: "out of domain", Source: star,
			Study: outOfDomain(study("star-table-2-quick", "out-of-domain", "What does RL on trips do to answers out of its domain, and does the reward matter?", quick, three, rewards))},
		{ID: "star-table-3-quick", Title: "Table 3", What: "difficulty mix", Source: star,
			Study: study("star-table-3-quick", "difficulty", "Does a mix of difficulties teach more than any one of them?", curriculum, three,
				Factor{Key: "data.mix", Name: "difficulty", Levels: []any{"1:0:0", "0:1:0", "0:0:1", "4:3:3"}})},
		{ID: "star-table-4-quick", Title: "Algorithms", What: "algorithm at one scale, from Table 4", Source: star,
			Study: study("star-table-4-quick", "algorithms", "Which algorithm lifts success most at the smallest proxy scale?", macro, three, algorithms)},
		{ID: "star-table-4", Title: "Table 4", What: "algorithm × scale", Source: star,
			Study: study("star-table-4", "table-4", "Does the best algorithm depend on the scale of the policy?", macro, three, algorithms, scale)},
		{ID: "star-figure-4-quick", Title: "Figure 4", What: "policy scale", Source: star,
			Study: study("star-figure-4-quick", "scale", "How does success after RL grow with the size of the policy?", with(func(r *Recipe) { r.Reward.Kind = "MACRO"; r.SFT.Control = false }), three, scale)},
		{ID: "star-figure-5-quick", Title: "Figure 5", What: "data size", Source: star,
			Study: study("star-figure-5-quick", "data-size", "Does success keep rising with more distinct prompts when the number of steps is fixed?", curriculum, three,
				Factor{Key: "data.prompts", Name: "prompts", Levels: []any{int64(100), int64(200), int64(500), int64(1000), int64(2000)}})},
		{ID: "star-figure-6-quick", Title: "Figure 6", What: "tool failures", Source: star,
			Study: study("star-figure-6-quick", "failures", "Up to which tool-failure rate does training stay unharmed?", macro, three,
				Factor{Key: "environment.tool_failure_rate", Name: "tool failures", Levels: []any{0.0, 0.01, 0.02, 0.05, 0.1}})},
		{ID: "settings-quick", Title: "Algorithm settings", What: "clip, group size, SD: one at a time", Source: "",
			Study: Study{Name: "algorithm", Question: "Do the upper clip, the group size or the division by the group's SD matter at this budget?", Template: "settings-quick", Base: macro,
				Factors: []Factor{
					{Key: "algorithm.clip_high", Name: "clip high", Levels: []any{0.28, 0.2}},
					{Key: "algorithm.group_size", Name: "group size", Levels: []any{int64(8), int64(4), int64(16)}},
					{Key: "algorithm.norm_adv_by_std", Name: "divide by SD", Levels: []any{true, false}},
				}, Design: DesignOneFactor, Seeds: three, Metric: "eval/success", MinDifference: 0.05}},
	}
}

// outOfDomain judges a study on questions of which SFT saw a few and RL none.
func outOfDomain(s Study) Study {
	s.Base.Data.OODTraces, s.Base.Evaluation.OOD = 60, 256
	s.Metric = "ood/accuracy"
	return s
}

// TemplateByID returns a study template.
func TemplateByID(id string) (Template, bool) {
	for _, t := range Templates() {
		if t.ID == id {
			return t, true
		}
	}
	return Template{}, false
}
