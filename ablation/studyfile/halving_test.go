package studyfile

import (
	"strings"
	"testing"

	"alidade/ablation"

	"github.com/google/go-cmp/cmp"
)

// Priority and halving come back as they were written, and faults in them are
// told with their line.
func TestPriorityAndHalving(t *testing.T) {
	src := "name: h\nseeds: [1, 2]\npriority: 5\nhalving:\n  metric: eval/success\n  rungs: [20, 60]\n  reduction: 3\n"
	st, err := Decode("h.yaml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	want := &ablation.Halving{Metric: "eval/success", Rungs: []int64{20, 60}, Reduction: 3}
	if st.Priority != 5 || !cmp.Equal(st.Halving, want) {
		t.Errorf("priority %d, halving %+v", st.Priority, st.Halving)
	}
	text, err := Encode(st)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Decode("again.yaml", text)
	if err != nil || !cmp.Equal(again, st) {
		t.Errorf("written and read again: %v\n%s", err, text)
	}
	for bad, word := range map[string]string{
		"  rungs: [60, 20]\n  metric: a\n  reduction: 3\n": "halving.rungs",
		"  rungs: [20]\n  metric: a\n  reduction: 1\n":     "halving.reduction",
		"  rungs: [20]\n  reduction: 2\n":                  "halving.metric",
		"  rung: [20]\n":                                   "did you mean \"rungs\"",
	} {
		_, err := Decode("bad.yaml", []byte("name: h\nseeds: [1]\nhalving:\n"+bad))
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%q: %v, want %s", bad, err, word)
		}
	}
}
