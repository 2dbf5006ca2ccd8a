package verl

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"alidade/trainer/native"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestParseConsole(t *testing.T) {
	for _, tc := range []struct {
		name, line string
		step       int64
		values     map[string]float64
		bad        int
		no         bool
	}{
		{name: "as published", line: "(TaskRunner pid=41277) step:34 - global_seqlen/mean:71824.5 - actor/entropy:0.41 - response_length/clip_ratio:0.03 - timing_s/step:212.8",
			step: 34, values: map[string]float64{"global_seqlen/mean": 71824.5, "actor/entropy": 0.41, "response_length/clip_ratio": 0.03, "timing_s/step": 212.8}},
		{name: "another node", line: "(TaskRunner pid=9, ip=10.0.0.7) step:1 - a:1", step: 1, values: map[string]float64{"a": 1}},
		{name: "no prefix", line: "step:0 - val-core/alidade/travel/acc/mean@8:0.25", values: map[string]float64{"val-core/alidade/travel/acc/mean@8": 0.25}},
		{name: "colours", line: "\x1b[36m(TaskRunner pid=7)\x1b[0m step:3 - a/b:2", step: 3, values: map[string]float64{"a/b": 2}},
		{name: "numpy", line: "step:5 - a:np.float64(0.41) - b:np.int64(3) - c:np.float32(nan)", step: 5, values: map[string]float64{"a": 0.41, "b": 3, "c": math.NaN()}},
		{name: "not finite", line: "step:5 - a:nan - b:inf - c:-inf", step: 5, values: map[string]float64{"a": math.NaN(), "b": math.Inf(1), "c": math.Inf(-1)}},
		{name: "last colon", line: "step:5 - val-core/http://x/acc/mean@1:0.5", step: 5, values: map[string]float64{"val-core/http://x/acc/mean@1": 0.5}},
		{name: "no number", line: "step:5 - a:1 - b:tensor(1.) - words", step: 5, values: map[string]float64{"a": 1}, bad: 2},
		{name: "after a progress bar", line: "Training Progress:  12%|#  | 6/50\r(TaskRunner pid=7) step:6 - a:1", step: 6, values: map[string]float64{"a": 1}},
		{name: "repeated", line: "(TaskRunner pid=7) step:6 - a:1 [repeated 2x across cluster] (Ray deduplicates logs)", step: 6, values: map[string]float64{"a": 1}},
		{name: "exponent", line: "step:6 - actor/lr:1e-06", step: 6, values: map[string]float64{"actor/lr": 1e-6}},
		{name: "other text", line: "(WorkerDict pid=3) timestep:6 is not a line of metrics", no: true},
		{name: "global step", line: "Setting global_step:60", no: true},
		{name: "negative", line: "step:-1 - a:1", no: true},
		{name: "too large", line: "step:99999999999999999999 - a:1", no: true},
	} {
		step, values, bad, ok := ParseConsole(tc.line)
		if ok == tc.no || step != tc.step || bad != tc.bad {
			t.Errorf("%s: step %d, bad %d, ok %v", tc.name, step, bad, ok)
			continue
		}
		if d := cmp.Diff(tc.values, values, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: %s", tc.name, d)
		}
	}
}

// poll reads a source once and returns what it emits.
func poll(t *testing.T, s native.Source, last bool) []native.Reading {
	t.Helper()
	var out []native.Reading
	if err := s.Poll(last, func(r native.Reading) { out = append(out, r) }); err != nil {
		t.Fatal(err)
	}
	return out
}

func appendFile(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestConsoleSourceCountsWhatGoesWrong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stdout.log")
	s := ConsoleSource(path)
	if got := poll(t, s, false); len(got) != 0 {
		t.Fatalf("a log that is not there yet gave %v", got)
	}
	appendFile(t, path, "Total training steps: 50\n"+
		strings.Repeat("(AgentLoopWorker pid=5) ERROR Failed to decode tool call: Expecting value\n", 60)+
		"(AgentLoopWorker pid=5) WARNING Error executing tool 'SearchCity': timed out\n"+
		"(WorkerDict pid=6) WARN: rank 0 grad_norm is not finite: nan\n"+
		"(TaskRunner pid=7) step:1 - critic/score/me")
	got := poll(t, s, false)
	if len(got) != 1 || got[0].Total != 50 {
		t.Fatalf("readings before the line is whole: %+v", got)
	}
	appendFile(t, path, "an:0.5\n(TaskRunner pid=7) step:2 - critic/score/mean:0.6\n")
	got = poll(t, s, false)
	if len(got) != 3 {
		t.Fatalf("readings: %+v", got)
	}
	want := map[string]float64{"critic/score/mean": 0.5, decodeErrorsName: 60, toolErrorsName: 1, badGradientName: 1}
	if d := cmp.Diff(want, got[0].Values); d != "" {
		t.Error(d)
	}
	if got[1].Alert == nil || got[1].Alert.Code != "tools" || got[1].Alert.Step != 1 {
		t.Errorf("no alert about 61 failed calls: %+v", got[1])
	}
	if got[2].Step != 2 || got[2].Values[decodeErrorsName] != 0 {
		t.Errorf("the next step: %+v", got[2])
	}
}

// The two streams are read one after the other: failures on one must count for
// the step that the other tells of, and not be lost after the last step.
func TestFailuresOnTheOtherStream(t *testing.T) {
	dir := t.TempDir()
	out, errs := filepath.Join(dir, "stdout.log"), filepath.Join(dir, "stderr.log")
	noise := strings.Repeat("(AgentLoopWorker pid=5) ERROR Failed to decode tool call: Expecting value\n", 60)
	alerts := func(got []native.Reading) (n int) {
		for _, r := range got {
			if r.Alert != nil {
				n++
			}
		}
		return n
	}
	s := ConsoleSource(out, errs)
	appendFile(t, out, "(TaskRunner pid=7) step:1 - critic/score/mean:0.5\n")
	appendFile(t, errs, noise)
	if got := poll(t, s, false); alerts(got) != 1 {
		t.Errorf("failures beside their step's line: %+v", got)
	}
	appendFile(t, errs, noise)
	if got := poll(t, s, false); len(got) != 0 {
		t.Errorf("before the step's line: %+v", got)
	}
	if got := poll(t, s, true); alerts(got) != 1 {
		t.Errorf("failures after the last line: %+v", got)
	}
}

func FuzzParseConsole(f *testing.F) {
	f.Add("(TaskRunner pid=41277) step:34 - a:np.float64(0.41) - b:nan")
	f.Add("\x1b[36m(x pid=1, ip=1.2.3.4)\x1b[0m step:1 - val-core/x/acc/mean@8:1 [repeated 3x across cluster]")
	f.Add("step:0 -  - :1 - a: - step:5")
	f.Fuzz(func(t *testing.T, line string) {
		step, values, bad, ok := ParseConsole(line)
		if !ok && (len(values) > 0 || bad != 0) || step < 0 || bad < 0 {
			t.Errorf("step %d, %d values, bad %d, ok %v", step, len(values), bad, ok)
		}
		for name := range values {
			if name == "" {
				t.Error("a metric without a name")
			}
		}
	})
}
