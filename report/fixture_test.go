package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"alidade/ablation"
	"alidade/ablation/published"
)

// A maker builds a synthetic study: runs that learn along a saturating curve
// and are judged on a panel of queries, all from fixed seeds.
type maker struct {
	study   ablation.Study
	id      ablation.StudyID
	queries int
	steps   int64
	every   int64
	samples int
	gain    func(arm ablation.Arm) float64 // success at the end, as a fraction
	change  func(i int, r *RunData)        // last word on a run
}

var fixtureStart = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

func (m maker) input() Input {
	planned, err := ablation.Expand(m.study)
	if err != nil {
		panic(err)
	}
	in := Input{
		Options:   Options{Made: time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC), Version: "test", Seed: 1, Resamples: 400},
		Study:     ablation.StudyRecord{ID: m.id, Study: m.study, CreatedAt: fixtureStart},
		Published: published.For(m.study.Template),
	}
	for i, p := range planned {
		in.Runs = append(in.Runs, m.run(i, p))
	}
	return in
}

const sftRate = 0.08

func (m maker) run(i int, p ablation.Planned) RunData {
	id := ablation.RunID(i + 1)
	rng := rand.New(rand.NewPCG(p.Seed, uint64(p.Arm.Index)+100))
	start := fixtureStart.Add(time.Duration(i) * 70 * time.Second)
	r := RunData{
		Run: ablation.Run{
			ID: id, Study: m.id, Arm: p.Arm, Seed: p.Seed, State: ablation.Succeeded, Attempt: 1, Step: m.steps, TotalSteps: m.steps, Device: "cpu0",
			QueuedAt: fixtureStart, StartedAt: start, EndedAt: start.Add(62 * time.Second),
		},
		Attempts: []ablation.Attempt{{Run: id, Number: 1, State: ablation.Succeeded, StartedAt: start, EndedAt: start.Add(62 * time.Second)}},
		Hello: Hello{Trainer: "alidade-cpu", Version: "0.1.0", Info: map[string]string{
			"kernel": "avx2", "code_hash": "77ab91c0d1e2f3a4", "environment_hash": "5d20e1c4aa00bb11", "parameters": sizes[p.Arm.Recipe.Model.Size], "host": "secret-host",
		}},
		Series:    map[string][]ablation.Point{},
		Last:      map[string]ablation.Point{},
		Artifacts: []ablation.Artifact{{Kind: "sft", Hash: fmt.Sprintf("8ab102fe%08d", p.Seed)}},
	}
	end := m.gain(p.Arm) + rng.NormFloat64()*0.01
	add := func(metric string, step int64, v float64) {
		pt := ablation.Point{Step: step, Wall: start, Value: v}
		r.Series[metric] = append(r.Series[metric], pt)
		r.Last[metric] = pt
	}
	for step := int64(0); step <= m.steps; step++ {
		share := 1 - math.Exp(-4*float64(step)/float64(m.steps))
		level := sftRate + (end-sftRate)*share
		if step > 0 {
			add("reward/mean", step, 3*level+rng.NormFloat64()*0.05)
			add("policy/entropy", step, 0.9-0.4*share+rng.NormFloat64()*0.01)
		}
		if step%m.every == 0 {
			add("eval/success", step, level+rng.NormFloat64()*0.008)
			add("eval/delivery", step, 0.9+0.05*share)
			add("eval/cs_macro", step, 0.3+0.4*share)
			add("eval/tool_calls", step, 9+2*share)
		}
	}
	for k, check := range checkKeys() {
		r.Last["eval/check/"+check] = ablation.Point{Step: m.steps, Value: 0.6 + 0.03*float64(k)}
	}
	r.Evaluations = []ablation.EvalResult{
		m.evaluate(id, p, policyOwn, modeSampled, m.steps, end),
		m.evaluate(id, p, policyOwn, modeGreedy, m.steps, end+0.02),
		m.evaluate(id, p, policySFT, modeSampled, 0, sftRate),
		m.evaluate(id, p, policyControl, modeSampled, 0, 0.11),
		m.evaluate(id, p, policyRandom, modeSampled, 0, 0.004),
		m.evaluate(id, p, policyExpert, modeSampled, 0, 0.98),
	}
	r.Examples = []Example{
		{Kind: "best", Run: id, ID: fmt.Sprintf("eval-%d-g1-0", m.steps), Step: m.steps, Level: "hard", Query: "Plan 3 days from Basra to Ephesus for 2 people, $1,400, cuisine: Mexican", Reward: 3, Success: true, Turns: 9},
		{Kind: "worst", Run: id, ID: fmt.Sprintf("eval-%d-g9-2", m.steps), Step: m.steps, Level: "easy", Query: "Plan 3 days from Ur to Nineveh | for 1 person <b>, $500", Reward: 0, FormatError: true, Turns: 4, Reasons: []string{"Day 2, dinner: “=Kebab & Co” is not in Nineveh."}},
	}
	if m.change != nil {
		m.change(i, &r)
	}
	return r
}

var sizes = map[string]string{"nano": "30,000", "small": "150000", "medium": "0.4M", "large": "0.7M"}

// evaluate draws per-query outcomes: queries differ in difficulty, the same
// for all policies, and references are the same in all arms of a seed.
func (m maker) evaluate(id ablation.RunID, p ablation.Planned, policy, mode string, step int64, rate float64) ablation.EvalResult {
	samples := m.samples
	if mode == modeGreedy {
		samples = 1
	}
	e := ablation.EvalResult{Run: id, Panel: "test", Policy: policy, Mode: mode, Step: step, Samples: samples, Hash: "c0ffee1234567890"}
	stream := uint64(len(policy)*7 + len(mode))
	if policy == policyOwn {
		stream += 1000 * uint64(p.Arm.Index+1)
	}
	rng := rand.New(rand.NewPCG(p.Seed, stream))
	for q := range m.queries {
		ease := math.Sin(float64(q)*1.7)*1.2 - 0.2
		chance := 1 / (1 + math.Exp(-(math.Log(rate/(1-rate)) + ease)))
		passed := 0
		for range samples {
			if rng.Float64() < chance {
				passed++
			}
		}
		e.Queries = append(e.Queries, ablation.QueryResult{Query: fmt.Sprintf("q%04d", q), Level: []string{"easy", "medium", "hard"}[q%3], Passed: passed})
	}
	return e
}

// recipe is a complete recipe of the fixture's own, so that its golden files
// do not follow the presets.
func recipe() ablation.Recipe {
	return ablation.Recipe{
		Trainer:     ablation.Trainer{Kind: "cpu", Devices: 1, Kernel: "auto"},
		Model:       ablation.Model{Size: "small", Base: "shipped"},
		Data:        ablation.Data{Prompts: 1000, Mix: "4:3:3", Seed: 1, Plans: "solver"},
		SFT:         ablation.SFT{Traces: 500, Epochs: 8, LR: 1.5e-3, Batch: 16, Noise: 0.25, FilterFormat: true, Control: true},
		Reward:      ablation.Reward{Kind: "MACRO", Stages: []float64{0.4, 0.4, 0.2}, Profile: "strict", FormatError: "zero"},
		Algorithm:   ablation.Algorithm{Kind: "grpo", GroupSize: 8, PromptsPerStep: 16, LR: 1e-3, ClipLow: 0.2, ClipHigh: 0.28, Minibatches: 2, StdNorm: true, LossAgg: "token-mean", Temperature: 1, GradClip: 1, Overlong: "mask"},
		Environment: ablation.Environment{Kind: "travel", World: "nano", Cities: 8, Days: 3, BudgetFactor: 1, MaxTurns: 20, MaxTokens: 256},
		Budget:      ablation.Budget{Steps: 40, CheckpointEvery: 20},
		Evaluation:  ablation.Evaluation{Every: 10, Queries: 120, Samples: 4, Temperature: 1},
	}
}

// rewardStudy is the demo's shape: four rewards, two seeds.
func rewardStudy() maker {
	return maker{
		id: 12, queries: 120, steps: 40, every: 10, samples: 4,
		study: ablation.Study{
			Name: "rewards", Question: "Which reward design lifts success most at the smallest proxy scale?", Template: "star-table-1-quick", Base: recipe(), Design: ablation.DesignGrid,
			Factors: []ablation.Factor{{Key: "reward.kind", Name: "reward", Levels: []any{"SUM", "MACRO", "SUCCESS", "CURRICULUM"}}},
			Seeds:   []uint64{1, 2}, Metric: "eval/success", MinDifference: 0.05,
		},
		gain: func(a ablation.Arm) float64 {
			return map[any]float64{"SUM": 0.24, "MACRO": 0.33, "SUCCESS": 0.12, "CURRICULUM": 0.31}[a.Levels["reward.kind"]]
		},
	}
}

// scaleStudy crosses two rewards with three scales, three seeds, and has runs
// that failed, were retried or logged NaN.
func scaleStudy() maker {
	m := rewardStudy()
	m.id = 13
	m.study.Name, m.study.Template, m.study.Question = "table-1", "star-table-1", "Does the best reward depend on the scale of the policy?"
	m.study.Factors = []ablation.Factor{
		{Key: "reward.kind", Name: "reward", Levels: []any{"SUM", "MACRO"}},
		{Key: "model.size", Name: "scale", Levels: []any{"small", "medium", "large"}},
	}
	m.study.Seeds = []uint64{1, 2, 3}
	m.gain = func(a ablation.Arm) float64 {
		g := map[any]float64{"small": 0.2, "medium": 0.27, "large": 0.36}[a.Levels["model.size"]]
		if a.Levels["reward.kind"] == "MACRO" && a.Levels["model.size"] == "large" {
			g += 0.08
		}
		return g
	}
	m.change = func(i int, r *RunData) {
		switch i {
		case 4:
			r.Run.State, r.Run.Cause, r.Run.Step = ablation.Failed, "out of memory (killed by signal 9)", 17
		case 7:
			r.Series["reward/mean"][9].Value = math.NaN()
			r.Series["eval/success"][2].Value = math.NaN()
			r.Attempts = append(r.Attempts, ablation.Attempt{Run: r.Run.ID, Number: 2, FirstStep: 20, StartedAt: r.Run.EndedAt, EndedAt: r.Run.EndedAt.Add(time.Minute)})
		case 9:
			r.Alerts = []ablation.Alert{{Run: r.Run.ID, Level: "warn", Code: "entropy", Text: "entropy under 0.05 nats", Step: 33}}
		}
	}
	return m
}

// failureStudy has a numeric factor and published values.
func failureStudy() maker {
	m := rewardStudy()
	m.id = 14
	m.study.Name, m.study.Template, m.study.Question = "failures", "star-figure-6-quick", "Up to which tool-failure rate does training stay unharmed?"
	m.study.Factors = []ablation.Factor{{Key: "environment.tool_failure_rate", Name: "tool failures", Levels: []any{0.0, 0.01, 0.02, 0.05, 0.1}}}
	m.study.Seeds = []uint64{1, 2, 3}
	m.gain = func(a ablation.Arm) float64 {
		return 0.31 - 1.2*a.Levels["environment.tool_failure_rate"].(float64)
	}
	return m
}

// dataStudy varies the number of prompts.
func dataStudy() maker {
	m := failureStudy()
	m.id = 15
	m.study.Name, m.study.Template, m.study.Question = "data-size", "star-figure-5-quick", "Does success keep rising with more distinct prompts?"
	m.study.Base.Reward.Kind = "CURRICULUM"
	m.study.Factors = []ablation.Factor{{Key: "data.prompts", Name: "prompts", Levels: []any{int64(100), int64(200), int64(500), int64(1000), int64(2000)}}}
	m.gain = func(a ablation.Arm) float64 { return 0.05 * math.Log10(float64(a.Recipe.Data.Prompts)) * 2 }
	return m
}
