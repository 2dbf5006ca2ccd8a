package web

import (
	"math"
	"strings"
	"testing"

	"alidade/ablation"
)

func ratioSeries(values map[string][]float64) map[string][]ablation.Point {
	by := map[string][]ablation.Point{}
	for name, vs := range values {
		for i, v := range vs {
			by[name] = append(by[name], ablation.Point{Step: int64(10 * (i + 1)), Value: v})
		}
	}
	return by
}

func TestRatioFan(t *testing.T) {
	by := ratioSeries(map[string][]float64{
		"policy/ratio_p01": {0.9, 0.5}, "policy/ratio_p10": {0.95, 0.9}, "policy/ratio_p50": {1, 1}, "policy/ratio_p90": {1.05, 1.1}, "policy/ratio_p99": {1.1, 2},
	})
	v := ratioView(by, ablation.Algorithm{Kind: "grpo", ClipLow: 0.2, ClipHigh: 0.28})
	if want := "At step 20 98" + thin + "% of the tokens have a ratio from 0.500 to 2.000"; v.Title != want {
		t.Errorf("title %q, want %q", v.Title, want)
	}
	if !strings.Contains(v.Note, "0.80 and 1.28") || len(v.Wide.Clips) != 2 || len(v.Wide.Bands) != 2 || v.Wide.First != "10" || v.Wide.Last != "step 20" {
		t.Errorf("%+v", v)
	}
	// On a logarithmic axis 1/2 and 2 lie as far from 1.
	f := fan{low: 0.5, high: 2, firstStep: 10, lastStep: 20, width: 140}
	if up, down := f.y(1)-f.y(2), f.y(0.5)-f.y(1); math.Abs(up-down) > 1e-9 || up <= 0 || f.y(2) != ratioTop || f.y(0.5) != ratioBase {
		t.Errorf("heights %g %g %g", f.y(0.5), f.y(1), f.y(2))
	}
	if got := f.line(by["policy/ratio_p50"]); got != "M0 62L100 62" {
		t.Errorf("median %q", got)
	}
	if v := ratioView(by, ablation.Algorithm{Kind: "gspo", ClipLow: 3e-4, ClipHigh: 4e-4}); len(v.Wide.Clips) != 0 || strings.Contains(v.Note, "dashed") {
		t.Errorf("sequence ratios show the token clip: %+v", v)
	}
	// A clip of everything below has no place on the axis.
	if v := ratioView(by, ablation.Algorithm{Kind: "grpo", ClipLow: 1, ClipHigh: 2}); len(v.Wide.Clips) != 1 || strings.Contains(v.Wide.Median+v.Wide.Clips[0].Y, "NaN") {
		t.Errorf("%+v", v.Wide)
	}
	if got := finite(ratioSeries(map[string][]float64{"x": {1, 0, math.NaN(), math.Inf(1), 2}})["x"]); len(got) != 2 {
		t.Errorf("kept %v", got)
	}
}
