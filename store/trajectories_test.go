package store

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"alidade/ablation"
	"alidade/trainer"
)

func TestTrajectoryKeepsTheLineByteByByte(t *testing.T) {
	s := open(t, t.TempDir())
	run := create(t, s, 1)[0].ID
	start(t, s, run, 1, 0)
	e := trajectory(3, 1, nil)
	line, err := trainer.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	line = bytes.Replace(bytes.TrimSpace(line), []byte(`"step":3`), []byte(`"step": 3 , "extra":"kept"`), 1)
	read, _, err := trainer.Decode(line)
	if err != nil {
		t.Fatal(err)
	}
	f := &feeder{t: t, w: s.RunWriter(), run: run, attempt: 1}
	c := f.append(read)
	got, raw, err := s.Trajectory(t.Context(), run, e.Trajectory.ID)
	if err != nil || !bytes.Equal(raw, line) {
		t.Fatalf("raw line = %s, %v; want %s", raw, err, line)
	}
	if diff := cmp.Diff(*e.Trajectory, got); diff != "" {
		t.Errorf("trajectory (-want +got):\n%s", diff)
	}
	heads, total, err := s.Trajectories(t.Context(), TrajectoryFilter{})
	if err != nil || total != 1 {
		t.Fatalf("Trajectories = %v, %d, %v", heads, total, err)
	}
	if diff := cmp.Diff(c.Trajectories, heads); diff != "" {
		t.Errorf("the commit's head and the list's differ (-commit +list):\n%s", diff)
	}
	advantage := -0.25
	want := TrajectoryHead{
		Seq: 1, Run: run, Attempt: 1, ID: "rl-3-0-1", Phase: "rl", Policy: "policy", Mode: "sampled", Group: "rl-3-0",
		QueryHash: "0123456789abcdef", QueryText: "A 3-day trip from Reno to Bend for 2 people", Level: "easy", End: "answer",
		Rollout: 1, Step: 3, Reward: 0.5, Advantage: &advantage, Turns: 2, Tokens: 120, ToolCalls: 1,
		Failed: []string{"is_valid_restaurants"}, At: clock(3),
	}
	if diff := cmp.Diff(want, heads[0]); diff != "" {
		t.Errorf("head (-want +got):\n%s", diff)
	}
	if _, _, err := s.Trajectory(t.Context(), run, "none"); !errors.Is(err, ablation.ErrNotFound) {
		t.Errorf("Trajectory(none) = %v, want ErrNotFound", err)
	}
}

func TestTrajectoryOfALaterAttemptReplaces(t *testing.T) {
	s := open(t, t.TempDir())
	run := create(t, s, 1)[0].ID
	start(t, s, run, 1, 0)
	(&feeder{t: t, w: s.RunWriter(), run: run, attempt: 1}).append(trajectory(3, 0, nil))
	if err := s.RunWriter().StartAttempt(t.Context(), ablation.Attempt{Run: run, Number: 2, FirstStep: 2}); err != nil {
		t.Fatal(err)
	}
	(&feeder{t: t, w: s.RunWriter(), run: run, attempt: 2}).append(trajectory(3, 0, func(t *trainer.Trajectory) { t.Reward = 1; t.Answer = "Stay at Oak Inn" }))
	heads, total, err := s.Trajectories(t.Context(), TrajectoryFilter{})
	if err != nil || total != 1 || heads[0].Attempt != 2 || heads[0].Reward != 1 {
		t.Errorf("Trajectories = %+v, %d, %v; want the second attempt's", heads, total, err)
	}
	for text, want := range map[string]int{"pine": 0, "oak": 1} {
		if _, n, err := s.Trajectories(t.Context(), TrajectoryFilter{Text: text}); err != nil || n != want {
			t.Errorf("text %q finds %d, %v; want %d", text, n, err, want)
		}
	}
}

func TestTrajectoryFilters(t *testing.T) {
	s := open(t, t.TempDir())
	runs := create(t, s, 1)
	for _, r := range runs {
		start(t, s, r.ID, 1, 0)
		f := &feeder{t: t, w: s.RunWriter(), run: r.ID, attempt: 1}
		for step := range int64(4) {
			f.append(trajectory(step, 0, func(t *trainer.Trajectory) {
				t.Reward = float64(step) / 4
				t.Success = step == 3
				t.Tokens = int(100 - step)
				if step == 2 {
					t.Phase, t.Mode, t.Policy, t.Query.Level = "eval", "greedy", "sft", "hard"
					t.Tools = map[string]int{"SearchHotel": 2}
					t.Injected, t.FormatError, t.Overlong = 1, "no answer tag", true
					t.Verdicts = []trainer.Verdict{{Check: "valid_cost", Outcome: "fail"}, {Check: "valid_cuisine", Outcome: "raises"}}
					t.Query.Text = `Trip to "Saint-Étienne" 100% sure`
				}
			}))
		}
	}
	yes, no, one := true, false, 1
	low, high := 0.25, 0.5
	from, to := int64(1), int64(2)
	tests := []struct {
		name string
		f    TrajectoryFilter
		want int
	}{
		{"none", TrajectoryFilter{}, 8},
		{"study", TrajectoryFilter{Study: 1}, 8},
		{"other study", TrajectoryFilter{Study: 2}, 0},
		{"run", TrajectoryFilter{Runs: []ablation.RunID{2}}, 4},
		{"no runs", TrajectoryFilter{Runs: []ablation.RunID{}}, 0},
		{"arm", TrajectoryFilter{Arm: &one}, 4},
		{"phase", TrajectoryFilter{Phase: "eval"}, 2},
		{"unknown phase", TrajectoryFilter{Phase: "dreaming"}, 0},
		{"policy", TrajectoryFilter{Policy: "sft"}, 2},
		{"mode", TrajectoryFilter{Mode: "sampled"}, 6},
		{"level", TrajectoryFilter{Level: "hard"}, 2},
		{"group", TrajectoryFilter{Group: "rl-1-0"}, 2},
		{"steps", TrajectoryFilter{StepFrom: &from, StepTo: &to}, 4},
		{"reward", TrajectoryFilter{RewardMin: &low, RewardMax: &high}, 4},
		{"success", TrajectoryFilter{Success: &yes}, 2},
		{"no success", TrajectoryFilter{Success: &no}, 6},
		{"failed check", TrajectoryFilter{FailedCheck: "valid_cost"}, 2},
		{"raising check", TrajectoryFilter{FailedCheck: "valid_cuisine"}, 2},
		{"check that never failed", TrajectoryFilter{FailedCheck: "is_not_absent"}, 0},
		{"tool counted", TrajectoryFilter{Tool: "SearchHotel"}, 2},
		{"tool called in a turn", TrajectoryFilter{Tool: "SearchFlight"}, 8},
		{"injected", TrajectoryFilter{Injected: &yes}, 2},
		{"not injected", TrajectoryFilter{Injected: &no}, 6},
		{"format error", TrajectoryFilter{FormatError: &yes}, 2},
		{"overlong", TrajectoryFilter{Overlong: &no}, 6},
		{"text", TrajectoryFilter{Text: "bend RENO"}, 6},
		{"text without accents", TrajectoryFilter{Text: "etienne"}, 2},
		{"beginning of a word", TrajectoryFilter{Text: "searchho"}, 2},
		{"text with signs", TrajectoryFilter{Text: `"saint-étienne" 100% AND (NEAR*`}, 0},
		{"quoted text", TrajectoryFilter{Text: `"saint 100%`}, 2},
		{"all at once", TrajectoryFilter{Study: 1, Arm: &one, Phase: "eval", Tool: "SearchHotel", FailedCheck: "valid_cost", Text: "trip"}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			heads, total, err := s.Trajectories(t.Context(), tt.f)
			if err != nil || total != tt.want || len(heads) != tt.want {
				t.Errorf("Trajectories = %d of %d, %v; want %d", len(heads), total, err, tt.want)
			}
		})
	}
}

func TestTrajectoryOrderAndPages(t *testing.T) {
	s := open(t, t.TempDir())
	run := create(t, s, 1)[0].ID
	start(t, s, run, 1, 0)
	f := &feeder{t: t, w: s.RunWriter(), run: run, attempt: 1}
	for i, reward := range []float64{0.5, 1, 0, 0.5} {
		f.append(trajectory(int64(i), 0, func(t *trainer.Trajectory) { t.Reward, t.Tokens = reward, 10*i }))
	}
	for sort, want := range map[string][]int64{
		"": {3, 2, 1, 0}, "newest": {3, 2, 1, 0}, "-newest": {0, 1, 2, 3},
		"reward": {2, 3, 0, 1}, "-reward": {1, 3, 0, 2}, "tokens": {0, 1, 2, 3}, "-step": {3, 2, 1, 0},
	} {
		heads, _, err := s.Trajectories(t.Context(), TrajectoryFilter{Sort: sort})
		got := []int64{}
		for _, h := range heads {
			got = append(got, h.Step)
		}
		if err != nil || !equal(got, want) {
			t.Errorf("sort %q = %v, %v; want %v", sort, got, err, want)
		}
	}
	heads, total, err := s.Trajectories(t.Context(), TrajectoryFilter{Limit: 2, Offset: 1})
	if err != nil || total != 4 || len(heads) != 2 || heads[0].Step != 2 {
		t.Errorf("page = %v, %d, %v", heads, total, err)
	}
	if _, _, err := s.Trajectories(t.Context(), TrajectoryFilter{Sort: "colour"}); !errors.Is(err, ablation.ErrInvalid) {
		t.Errorf("sort by colour = %v, want ErrInvalid", err)
	}
}
