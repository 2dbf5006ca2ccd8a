package sandbox_test

import (
	"math"
	"strings"
	"testing"

	"alidade/sandbox"
)

func TestDrawFollowsTheRates(t *testing.T) {
	f := sandbox.Failures{Rate: 0.1, Seed: 4, Tools: map[string]float64{"never": 0, "often": 0.5}}
	const n = 20_000
	count := map[string]int{}
	for call := range n {
		for _, tool := range []string{"common", "never", "often"} {
			if kind, _ := f.Draw(tool, uint64(call%7), call); kind != "" {
				count[tool]++
			}
		}
	}
	for tool, rate := range map[string]float64{"common": 0.1, "never": 0, "often": 0.5} {
		if got := float64(count[tool]) / n; math.Abs(got-rate) > 4*math.Sqrt(rate*(1-rate)/n) {
			t.Errorf("%s fails at %v, want %v", tool, got, rate)
		}
	}
}

// TestHigherRatesFailAtLeastWhereLowerDo is what makes arms of a rate axis comparable.
func TestHigherRatesFailAtLeastWhereLowerDo(t *testing.T) {
	low, high := sandbox.Failures{Rate: 0.05, Seed: 1}, sandbox.Failures{Rate: 0.2, Seed: 1, Kind: sandbox.Mixed}
	for call := range 2000 {
		if low.Injected(3, call) {
			if kind, _ := high.Draw("x", 3, call); kind == "" {
				t.Fatalf("call %d fails at 0.05 and not at 0.2", call)
			}
		}
	}
}

func TestMixedDrawsEveryKindEvenly(t *testing.T) {
	f := sandbox.Failures{Rate: 1, Seed: 2, Kind: sandbox.Mixed}
	count := map[string]int{}
	for call := range 6000 {
		kind, _ := f.Draw("x", 0, call)
		count[kind]++
	}
	if len(count) != 6 || count[sandbox.Mixed] > 0 || count[""] > 0 {
		t.Fatalf("kinds %v", count)
	}
	for kind, n := range count {
		if n < 850 || n > 1150 {
			t.Errorf("%s %d of 6000, want about 1000", kind, n)
		}
	}
}

func TestDelayHasTheMean(t *testing.T) {
	f := sandbox.Failures{LatencyMS: 200}
	sum := 0.0
	for i := range 20_000 {
		d := f.Delay(sandbox.Mix(uint64(i)))
		if d < 0 || d > 2000 {
			t.Fatalf("delay %v", d)
		}
		sum += d
	}
	if mean := sum / 20_000; mean < 190 || mean > 210 {
		t.Errorf("mean delay %v, want about 200", mean)
	}
}

func TestCheckNamesWhatIsWrong(t *testing.T) {
	for want, f := range map[string]sandbox.Failures{
		"failure rate is 1.5":      {Rate: 1.5},
		"failure rate is NaN":      {Rate: math.NaN()},
		`failure kind is "boom"`:   {Kind: "boom"},
		`for tool "b"`:             {Tools: map[string]float64{"b": 0.1}},
		"failure rate of a is -1":  {Tools: map[string]float64{"a": -1}},
		"failure latency is -2 ms": {LatencyMS: -2},
	} {
		if err := f.Check([]string{"a"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Check(%+v) = %v, want …%s…", f, err, want)
		}
	}
	if err := (sandbox.Failures{Rate: 1, Kind: sandbox.Mixed, Tools: map[string]float64{"a": 0}}).Check([]string{"a"}); err != nil {
		t.Error(err)
	}
}
