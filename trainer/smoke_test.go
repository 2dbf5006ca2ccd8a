package trainer

import (
	"math"
	"path/filepath"
	"testing"
)

func TestSmoke(t *testing.T) {
	p := filepath.Join(t.TempDir(), "events.jsonl")
	w, err := NewWriter(p, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.Hello(Hello{Trainer: "x"})
	if err := w.Points(3, map[string]float64{"a": math.NaN(), "b": math.Inf(-1), "c": 0.1}); err != nil {
		t.Fatal(err)
	}
	w.file.WriteString("{\"v\":1,\"kind\":\"points\",\"t\":1,\"points\":{\"step\":1,\"values\":{\"a\":NaN}}}\n{\"v\":1,\"kind\":\"zzz\"}\n{\"v\":1,")
	f := Follow(p, FollowOptions{})
	l, err := f.Read(0)
	t.Logf("%+v %v", l, err)
	for _, e := range l.Events {
		t.Logf("%+v", e.Points)
	}
	w.Close()
}
