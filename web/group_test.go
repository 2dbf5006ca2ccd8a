package web

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"alidade/templates"
	"alidade/trainer"
)

// smallGroup is three rollouts worked out by hand: rewards 3, 1, 0 with mean
// 4/3 and SD √(14/9) (divisor G).
func smallGroup() []trainer.Trajectory {
	verdicts := func(budget, route string) []trainer.Verdict {
		return []trainer.Verdict{
			{Check: "is_reasonable_visiting_city", Family: "commonsense", Outcome: route},
			{Check: "valid_cost", Family: "hard", Outcome: budget, Reason: "too dear"},
		}
	}
	part := func(macro, success, format float64) []trainer.Component {
		return []trainer.Component{{Name: "cs_macro", Value: macro}, {Name: "success", Value: success}, {Name: "format_error", Value: format}}
	}
	scores := func(cs, hard, success float64) map[string]float64 {
		return map[string]float64{"cs_micro": cs, "cs_macro": cs, "hard_micro": hard, "hard_macro": hard, "success": success}
	}
	plan := []trainer.Day{{Day: 1, City: "A"}}
	return []trainer.Trajectory{
		{ID: "a", Rollout: 0, Reward: 3, RewardKind: "MACRO", Components: part(2, 1, 0), Verdicts: verdicts("pass", "pass"), Scores: scores(1, 1, 1), Success: true, Plan: plan},
		{ID: "b", Rollout: 1, Reward: 1, RewardKind: "MACRO", Components: part(1, 0, 0), Verdicts: verdicts("fail", "pass"), Scores: scores(1, 0, 0), Plan: plan},
		{ID: "c", Rollout: 2, Reward: 0, RewardKind: "MACRO", Components: part(1, 0, -1), Verdicts: verdicts("fail", "pass"), Scores: scores(1, 0, 0), Plan: plan, FormatError: "tag"},
	}
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-12 }

func TestAdvantageSplit(t *testing.T) {
	group := smallGroup()
	s := groupSpread(group)
	sd := math.Sqrt(14) / 3
	if !near(s.mean, 4./3) || !near(s.sd, sd) {
		t.Fatalf("spread %+v", s)
	}
	macro, success, format := contributions(group, "cs_macro", s.sd), contributions(group, "success", s.sd), contributions(group, "format_error", s.sd)
	for i, want := range [][3]float64{{2. / 3, 2. / 3, 1. / 3}, {-1. / 3, -1. / 3, 1. / 3}, {-1. / 3, -1. / 3, -2. / 3}} {
		got := [3]float64{macro[i] * sd, success[i] * sd, format[i] * sd}
		for k := range want {
			if !near(got[k], want[k]) {
				t.Errorf("rollout %d: parts %v, want %v", i, got, want)
				break
			}
		}
		if total := macro[i] + success[i] + format[i]; !near(total, (group[i].Reward-s.mean)/s.sd) {
			t.Errorf("rollout %d: parts sum to %v", i, total)
		}
	}
	// covariances with the reward over its variance 14/9: 5/14, 5/14, 4/14
	share := shareOf(group)
	var titles []string
	for _, seg := range share.Segs {
		titles = append(titles, seg.Title)
	}
	if got := strings.Join(titles, "; "); got != "commonsense macro 36\u202f%; success 36\u202f%; format error 29\u202f%" {
		t.Errorf("shares: %s", got)
	}
}

func TestMatrixOrder(t *testing.T) {
	m := matrixOf(sampleRun(1), smallGroup())
	if len(m.Rows) != 1 || m.Rows[0].Name != "Budget" || len(m.Same) != 1 || m.Same[0].Sep != "all 3 pass" {
		t.Fatalf("rows %+v, same %+v", m.Rows, m.Same)
	}
	// 5/√14 for the one that passes, the mean of −1/√14 and −4/√14 for the others: 7.5/√14
	if want := signed(7.5/math.Sqrt(14), 2); m.Rows[0].Sep != want {
		t.Errorf("separates by %s, want %s", m.Rows[0].Sep, want)
	}
	if m.Reason.Who != "rollout 2" || m.Reason.Head != "Budget fails." || m.Reason.Text != "Too dear." {
		t.Errorf("reason %+v", m.Reason)
	}
	if !m.Columns[0].Edge || m.Columns[1].Edge {
		t.Error("the mean does not lie after the first rollout")
	}
}

func TestOtherRewards(t *testing.T) {
	scored := rescore(smallGroup())
	for i, want := range [][3]float64{{5, 2, 0}, {3, 1, 0}, {1, 0, 0}} {
		mean := (want[0] + want[1] + want[2]) / 3
		if !near(scored[i].stats.mean, mean) {
			t.Errorf("%s: mean %v, want %v", scored[i].name, scored[i].stats.mean, mean)
		}
	}
	// SUCCESS ties b and c below the mean; nobody changes side
	v := rulesOf(smallGroup())
	for _, f := range v.Findings {
		if !strings.Contains(f.Head, "nobody changes side") {
			t.Errorf("finding %+v", f)
		}
	}
	equal := smallGroup()[1:2]
	equal = append(equal, equal[0])
	for _, f := range rulesOf(equal).Findings {
		if !strings.Contains(f.Head, "no gradient either") {
			t.Errorf("finding %+v", f)
		}
	}
}

func TestUntrusted(t *testing.T) {
	for in, want := range map[string]string{
		"plain":             "plain",
		"<b>&\"":            "&lt;b&gt;&amp;&#34;",
		"a\u202eb":          `a<span class="cp" title="bidirectional control">U+202E</span>b`,
		"\u200b":            `<span class="cp" title="zero-width character">U+200B</span>`,
		"\x1b[31mred":       `<span class="cp" title="escape character">U+001B</span>[31mred`,
		"line\n\ttab":       "line\n\ttab",
		"é 日本 🙂":            "é 日本 🙂",
		"x\U000e0041":       `x<span class="cp" title="invisible tag character">U+E0041</span>`,
		"bad\xffbyte\u00ad": "bad\xffbyte<span class=\"cp\" title=\"invisible character\">U+00AD</span>",
	} {
		var b bytes.Buffer
		if err := templates.Untrusted(in).Render(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
		if b.String() != want {
			t.Errorf("%q: %s, want %s", in, b.String(), want)
		}
	}
	if got := templates.Plain("a\u202eb"); got != "a⟨U+202E⟩b" {
		t.Errorf("Plain: %s", got)
	}
}

func TestWords(t *testing.T) {
	for got, want := range map[string]string{
		digits(1234567): "1,234,567", digits(-1000): "−1,000", digits(12): "12",
		fixed(-0.001, 2): "0.00", fixed(math.NaN(), 1): "NaN", signed(0.5, 1): "+0.5", signed(-0.5, 1): "−0.5", signed(0, 2): "0.00",
		ordinal(1): "1st", ordinal(12): "12th", ordinal(23): "23rd", listed([]string{"a", "b", "c"}): "a, b and c",
		cityLine("from A to B"): "A → B", cityLine("B"): "B",
		transportText("Flight Number: F12, from A to B, Departure Time: 07:05, Arrival Time: 09:41"): "Flight F12, 07:05 to 09:41",
		transportText("Taxi, from A to B, duration: 1 hour 58 mins, distance: 206 km, cost: 206"):    "Taxi, 1 h 58 min, 206 km",
		transportText("a train"): "a train", shortGroup("rl-40-17"): "17", shortGroup("17"): "17",
		copyName("rewards"): "rewards-2", copyName("rewards-9"): "rewards-10",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if mentions("Flight Number: F3573120, from", "F35") || !mentions("Flight Number: F3573120, from", "F3573120") {
		t.Error("mentions")
	}
}

// BenchmarkTrajectoryPage builds and renders an episode of 1 MB.
func BenchmarkTrajectoryPage(b *testing.B) {
	tr := sampleTrajectory(40, 0, 4)
	for i := range 60 {
		turn := trainer.Turn{Think: strings.Repeat("think ", 100), Tokens: 150, Call: &trainer.Call{Tool: "SearchAccommodation", Args: []trainer.Arg{{Name: "city", Value: "Boise"}}},
			Observe: &trainer.Observed{Columns: stayColumns, Tokens: 900}}
		for j := range 200 {
			row := append([]string{fmt.Sprintf("Inn %d-%d", i, j)}, sampleStays["Boise"][j%7][1:]...)
			turn.Observe.Rows = append(turn.Observe.Rows, row)
		}
		for range 150 {
			turn.Entropy = append(turn.Entropy, .3)
		}
		tr.Turns = append(tr.Turns, turn)
	}
	run := sampleRun(1)
	for b.Loop() {
		var out bytes.Buffer
		if err := templatesTrajectory(&out, trajectoryView(&tr, run, nil, "")); err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(out.Len()))
	}
}
