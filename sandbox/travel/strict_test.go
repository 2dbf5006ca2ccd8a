package travel

import "testing"

func TestStrictAnnotated(t *testing.T) {
	s := loadTrain(t)
	passed := 0
	for _, l := range s.lines {
		j := Judge(s.w, l.Query, l.Plan, Strict)
		if j.Success {
			passed++
			continue
		}
		t.Logf("plan %s:\n%s", l.ID, j.Explain())
	}
	t.Logf("%d pass", passed)
}
