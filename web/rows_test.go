package web

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"alidade/ablation"
)

func TestDeviceText(t *testing.T) {
	for in, want := range map[string]string{
		"": "–", "cpu0": "cpu0", "gpu0,gpu1,gpu2,gpu3": "gpu0–3", "gpu0,gpu2": "gpu0, gpu2", "gpu0,gpu1,gpu4,gpu5": "gpu0–1, gpu4–5",
		"node": "node", "node-7:1042": "node-7:1042", "gpu1,cpu2": "gpu1, cpu2",
	} {
		if got := deviceText(in); got != want {
			t.Errorf("deviceText(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestBudgetSaidOnce: a failed budget is one line in the plan's head, which a
// link to the check leads to, and minimum nights are whole numbers.
// An alert about a stretch of steps leads to their curves and to their rollouts.
func TestAlertLinks(t *testing.T) {
	at := time.Now()
	for _, tt := range []struct {
		a    ablation.Alert
		want []string
	}{
		{ablation.Alert{Run: 3, Code: "nan", Step: 7}, []string{"/runs/3", "/trajectories?run=3&from=7&to=7"}},
		{ablation.Alert{Run: 3, Code: "entropy-low", Step: 20, Since: 11}, []string{"/runs/3", "/runs/3?zoom=11-20#live", "/trajectories?run=3&from=11&to=20"}},
		{ablation.Alert{Run: 3, Code: "nothing-received"}, []string{"/runs/3"}},
	} {
		var got []string
		for _, l := range alertView(tt.a, at).Links {
			got = append(got, l.Href)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s leads to %q, want %q", tt.a.Code, got, tt.want)
		}
	}
}

func TestBudgetSaidOnce(t *testing.T) {
	tr := sampleTrajectory(40, 1, 6)
	for i := range tr.Turns {
		if o := tr.Turns[i].Observe; o != nil && len(o.Columns) > 5 && o.Columns[4] == "minimum nights" {
			for r := range o.Rows {
				o.Rows[r] = slices.Clone(o.Rows[r])
				o.Rows[r][4] += ".0"
			}
		}
	}
	var b strings.Builder
	if err := templatesTrajectory(&b, trajectoryView(&tr, sampleRun(1), nil, "")); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if n := strings.Count(page, "the budget is $1,900"); n > 1 {
		t.Errorf("the failed budget's reason stands %d times", n)
	}
	if !strings.Contains(page, "Budget fails") || !regexp.MustCompile(`class="cost-line"\s+id="[^"]+"`).MatchString(page) {
		t.Error("the cost line does not stand for the failed check")
	}
	if strings.Contains(page, ">1.0<") || strings.Contains(page, ">3.0<") {
		t.Error("nights are written with a decimal")
	}
}
