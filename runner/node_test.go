package runner_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/gpu"
)

// Forty runs that want 1, 2, 4 or 8 of a simulated node's eight GPUs, with real
// processes: no two attempts that overlap in time share a device, and all end.
func TestFortyMixedRuns(t *testing.T) {
	t.Parallel()
	g := newRig(t, "", rigOptions{devices: gpu.Config{Spec: "sim:8xA100-80G", CPUSlots: 1}})
	st := study(t, "forty", 3, 10, "fake", "ok", "10", "{spec}")
	st.Factors = []ablation.Factor{{Key: "trainer.devices", Levels: []any{1, 8, 2, 4}}}
	runs := g.launchStudy(st)
	type use struct {
		run      ablation.RunID
		from, to time.Time
	}
	uses := make(map[string][]use)
	for _, run := range runs {
		got := g.wait(run.ID, ablation.Succeeded)
		ids := strings.Split(got.Device, ",")
		if len(ids) != got.Arm.Recipe.Trainer.Devices {
			t.Errorf("run %d has %q, want %d devices", run.ID, got.Device, got.Arm.Recipe.Trainer.Devices)
		}
		a := g.attempt(run.ID, 1)
		for _, id := range ids {
			uses[id] = append(uses[id], use{run.ID, a.StartedAt, a.EndedAt})
		}
	}
	if len(uses) != 8 {
		t.Errorf("%d devices were used, want 8", len(uses))
	}
	for id, list := range uses {
		slices.SortFunc(list, func(a, b use) int { return a.from.Compare(b.from) })
		for i := 1; i < len(list); i++ {
			if list[i].from.Before(list[i-1].to) {
				t.Errorf("%s was used by runs %d and %d at once", id, list[i-1].run, list[i].run)
			}
		}
	}
}
