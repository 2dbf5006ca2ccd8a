package native

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestMetricsLine(t *testing.T) {
	for _, c := range []struct {
		line string
		step int64
		want map[string]float64
		bad  int
	}{
		{`{"step": 3, "time": 1.5, "data": {"loss": 0.5, "text": "hello", "list": [1]}}`, 3, map[string]float64{"loss": 0.5}, 0},
		{`{"step":1,"data":{"a":NaN,"b":-Infinity,"c":"NaN","say \"NaN":1,"d":true}}`, 1, map[string]float64{"a": math.NaN(), "b": math.Inf(-1), "c": math.NaN(), `say "NaN`: 1, "d": 1}, 0},
		{`{"step":1,"data":{"reward":"0.25"}}`, 1, map[string]float64{"reward": 0.25}, 0},
		{`{"data":{"a":1}}`, 0, nil, 1},
		{`{"step":-1,"data":{"a":1}}`, 0, nil, 1},
		{`{"step":1,"data":{"a":1}`, 0, nil, 1},
		{`Traceback`, 0, nil, 1},
		{``, 0, nil, 0},
	} {
		r := metricsLine([]byte(c.line))
		if r.Bad != c.bad || r.Step != c.step && c.bad == 0 || len(r.Values) != len(c.want) {
			t.Errorf("%s: %+v", c.line, r)
			continue
		}
		for k, v := range c.want {
			if got := r.Values[k]; got != v && !(math.IsNaN(got) && math.IsNaN(v)) {
				t.Errorf("%s: %s is %v, want %v", c.line, k, got, v)
			}
		}
	}
}

func FuzzMetricsLine(f *testing.F) {
	f.Add([]byte(`{"step":1,"data":{"a":NaN,"b":"-Infinity"}}`))
	f.Add([]byte(`{"step":1e30,"data":{"\"":-Inf}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if r := metricsLine(line); r.Step < 0 || r.Bad > 1 || r.Bad == 1 && len(r.Values) > 0 {
			t.Errorf("%+v", r)
		}
	})
}

// TestTail: lines come once and whole, however they were written, also after
// the file was replaced by a shorter one.
func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	tail := Tail{Path: path}
	var got []string
	poll := func(last bool) {
		t.Helper()
		if err := tail.Lines(last, func(line []byte) { got = append(got, string(line)) }); err != nil {
			t.Fatal(err)
		}
	}
	write := func(text string, flag int) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|flag, 0o644)
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
	poll(false) // not there yet
	write("one\ntw", os.O_APPEND)
	poll(false)
	write("o\r\nthree", os.O_APPEND)
	poll(false)
	poll(true)
	poll(true)
	write("new\n", os.O_TRUNC)
	poll(false)
	if s := strings.Join(got, "|"); s != "one|two|three|new" {
		t.Errorf("lines: %s", s)
	}
}

// TestLesserSource: a value of a lesser source counts where the first one has
// none, and waits until it can be known.
func TestLesserSource(t *testing.T) {
	spec := newSpec(t, t.TempDir(), nil)
	r := newRun(t, spec)
	b := r.book
	b.begin(StageRL)
	b.read(1, Reading{Step: 1, Values: map[string]float64{"loss": 9, "extra": 1}})
	b.read(1, Reading{Step: 2, Values: map[string]float64{"loss": 9}})
	if err := b.settle(false); err != nil {
		t.Fatal(err)
	}
	b.read(0, Reading{Step: 1, Values: map[string]float64{"loss": 0.1}})
	if err := b.settle(false); err != nil {
		t.Fatal(err)
	}
	b.low[0].at = time.Now().Add(-time.Hour) // step 2: the first source never tells it
	if err := b.settle(false); err != nil {
		t.Fatal(err)
	}
	b.read(0, Reading{Step: 2, Values: map[string]float64{"loss": 0.2}})
	if err := r.out.Close(); err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, e := range events(t, spec) {
		for name, v := range e.Points.Values {
			key := name + "@" + string(rune('0'+e.Points.Step))
			if _, twice := got[key]; twice {
				t.Errorf("%s twice", key)
			}
			got[key] = float64(v)
		}
	}
	if got["policy/loss@1"] != 0.1 || got["trl/extra@1"] != 1 || got["policy/loss@2"] != 9 || len(got) != 3 {
		t.Errorf("points: %v", got)
	}
}
