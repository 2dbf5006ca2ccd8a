package travel

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"alidade/ablation"
)

func TestWeightedReward(t *testing.T) {
	j := Judge(smallWorld(), smallQuery(), NewPlan(smallPlan()), Strict)
	r := Reward{Kind: RewardWeighted, Weights: map[string]float64{ScoreSuccess: 2, "valid_cost": 0.5, ScoreCSMicro: -1, ScoreSchema: 0.25}}
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	got, parts := r.Score(0, j, nil, false)
	var names []string
	for _, p := range parts {
		names = append(names, p.Name)
	}
	if got != 1.75 || !reflect.DeepEqual(names, []string{"cs_micro", "success", "schema", "valid_cost"}) {
		t.Errorf("reward %v of %v", got, parts)
	}
	for _, bad := range []Reward{
		{Kind: RewardWeighted}, {Kind: "SUMM"}, {Kind: RewardWeighted, Weights: map[string]float64{"joy": 1}},
		{Kind: RewardWeighted, Weights: map[string]float64{ScoreSuccess: math.Inf(1)}}, {Kind: RewardSum, Stages: []float64{2}},
	} {
		if bad.Check() == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}

func TestPlannerR1Stages(t *testing.T) {
	r := Reward{Kind: RewardPlannerR1}
	good := Judge(smallWorld(), smallQuery(), NewPlan(smallPlan()), Strict)
	loose, err := ParsePlan(`[{"day": 1, "current_city": "Birch"}]`)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		progress float64
		plan     Judgement
		want     float64
	}{{0, good, 6}, {0.5, good, 4}, {0.9, good, 1}, {0.5, Judge(smallWorld(), smallQuery(), loose, Strict), 0}, {0, Judgement{Schema: true}, 1}} {
		if got, _ := r.Score(c.progress, c.plan, nil, false); got != c.want {
			t.Errorf("after %v of the steps it pays %v, want %v", c.progress, got, c.want)
		}
	}
}

func TestStageShares(t *testing.T) {
	r, _ := ablation.PresetNamed("solver")
	r.Data.Prompts, r.Algorithm.PromptsPerStep, r.Budget.Steps = 1000, 32, 160 // 32 steps an epoch
	for _, c := range []struct {
		by     string
		stages []float64
		want   []float64
	}{
		{"", []float64{0.5, 0.3, 0.2}, []float64{0.5, 0.3, 0.2}},
		{"step", []float64{80, 40}, []float64{0.5, 0.25}},
		{"epoch", []float64{2, 2, 1}, []float64{0.4, 0.4, 0.2}},
		{"epoch", []float64{4, 4}, []float64{0.8, 0.2}},
	} {
		r.Reward.Kind, r.Reward.StageBy, r.Reward.Stages = RewardCurriculum, c.by, c.stages
		if err := r.Validate(); err != nil {
			t.Fatal(err)
		}
		got := StageShares(r)
		if len(got) != len(c.want) {
			t.Fatalf("%v by %q gives shares %v, want %v", c.stages, c.by, got, c.want)
		}
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 1e-9 {
				t.Errorf("%v by %q gives shares %v, want %v", c.stages, c.by, got, c.want)
			}
		}
	}
	r.Reward.StageBy, r.Reward.Stages = "step", []float64{1, 2, 3, 4}
	if r.Validate() == nil {
		t.Error("four stages were taken")
	}
}

func TestMilestones(t *testing.T) {
	pay := map[string]float64{"way_out": 0.1, "hotels": 0.2, "restaurants": 0.05, milestonePlan: 0.5, "cities": 9}
	e := NewEpisode(smallWorld(), smallQuery(), EpisodeConfig{Milestones: pay})
	e.Call(ToolAccommodation, map[string]any{"city": "Cedar"}) // not the destination
	e.Call(ToolFlight, map[string]any{"departure": "Alder", "destination": "Birch", "date": "2022-03-07"})
	for range 2 {
		e.Call(ToolAccommodation, birch)
		e.Call(ToolDistance, map[string]any{"departure": "Alder", "destination": "Birch"})
	}
	e.Finish(NewPlan(smallPlan()), EndAnswer, "")
	if got, want := e.Milestones(), map[string]int{"hotels": 3, "way_out": 4, milestonePlan: 6}; !reflect.DeepEqual(got, want) {
		t.Errorf("milestones %v, want %v", got, want)
	}
	if got := e.Pay(Reward{Kind: RewardSuccess}, 0); math.Abs(got-1.8) > 1e-12 {
		t.Errorf("reward %v, want 1.8", got)
	}
	tr := e.Trajectory()
	sum := 0.0
	for _, c := range tr.Components {
		sum += c.Value
	}
	if sum != tr.Reward || !strings.Contains(tr.Labels["milestones"], "outside the published design: hotels turn 3") {
		t.Errorf("components %v, label %q", tr.Components, tr.Labels["milestones"])
	}
	bad := NewEpisode(smallWorld(), smallQuery(), EpisodeConfig{Milestones: pay})
	bad.Call(ToolAccommodation, birch)
	bad.Finish(NewPlan(smallPlan()), EndAnswer, "out of form")
	if got := bad.Pay(Reward{Kind: RewardSum}, 0); got != 0 {
		t.Errorf("a format error still pays %v", got)
	}
}

func TestRecipeNamesAreTheSandboxs(t *testing.T) {
	r, _ := ablation.PresetNamed("solver")
	set := func(keys []string, value string) map[string]string {
		m := map[string]string{}
		for _, k := range keys {
			m[k] = value
		}
		return m
	}
	r.Reward.Kind, r.Reward.Weights, r.Reward.Milestones = RewardWeighted, set(WeightNames(), "1"), set(MilestoneNames(), "1")
	r.Environment.FailureRates = set(ToolNames(), "0.5")
	if err := r.Validate(); err != nil {
		t.Errorf("the recipe refuses a name of the sandbox: %v", err)
	}
	for _, kind := range RewardKinds() {
		r.Reward.Kind = kind
		if err := r.Validate(); err != nil {
			t.Errorf("reward kind %s: %v", kind, err)
		}
	}
}
