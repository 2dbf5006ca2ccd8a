package cpu

import "slices"

// diagnose adds what the updates of a step tell about their health: quantiles
// of the probability ratio, the effective sample size (Σρ)²/(n·Σρ²) as a
// share, and the gradient norm by part of the model.
func (st *updateStats) diagnose(m map[string]float64) {
	for name, norm := range st.layers {
		m["policy/grad_norm_"+name] = norm
	}
	m["policy/clip_dual"] = st.clipDual
	if st.kl != 0 {
		m["policy/kl_loss"] = st.kl
	}
	if len(st.ratios) == 0 {
		return
	}
	sorted := slices.Sorted(slices.Values(st.ratios))
	at := func(q float64) float64 { return sorted[int(q*float64(len(sorted)-1)+0.5)] }
	for name, q := range map[string]float64{"min": 0, "p01": 0.01, "p10": 0.1, "p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1} {
		m["policy/ratio_"+name] = at(q)
	}
	sum, squares := 0.0, 0.0
	for _, r := range st.ratios {
		sum += r
		squares += r * r
	}
	m["policy/ess"] = sum * sum / (float64(len(st.ratios)) * squares)
}
