package preflight

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"alidade/ablation"
	"alidade/trainer/native"
)

// framework is an adapter that is there, or is not.
type framework struct {
	kind   string
	probes atomic.Int32
	err    error
}

func (f *framework) Kind() string { return f.kind }
func (f *framework) Probe(context.Context, string) (native.Versions, error) {
	f.probes.Add(1)
	return native.Versions{f.kind: "1.0"}, f.err
}
func (f *framework) Check(r ablation.Recipe, v native.Versions, m native.Machine) []native.Verdict {
	return []native.Verdict{{Level: native.Warn, Code: "own", Value: v[f.kind]}}
}
func (f *framework) Plan(native.Job) (native.Plan, error) {
	return native.Plan{}, errors.New("not here")
}

func TestWhatIsInstalledIsAskedOnce(t *testing.T) {
	here := &framework{kind: "trl"}
	gone := &framework{kind: "verl", err: &native.Missing{Kind: "verl", Python: "/usr/bin/python3", How: "install it", Err: errors.New("no module")}}
	s := New(Config{Adapters: []native.Adapter{here, gone}, Python: func(string) string { return "/usr/bin/python3" }})
	for range 3 {
		got := s.Trainers(t.Context())
		if len(got) != 2 || !got[0].Ready || got[0].Versions["trl"] != "1.0" || got[1].Ready || got[1].How != "install it" || got[1].Problem != "not installed" {
			t.Fatalf("trainers: %+v", got)
		}
	}
	if n := here.probes.Load(); n != 1 {
		t.Errorf("asked %d times within %v, want once", n, fresh)
	}
}

// Every kind that a recipe may name must have an adapter, and words.
func TestEveryNativeKindHasAnAdapter(t *testing.T) {
	var kinds []string
	for _, a := range Adapters() {
		kinds = append(kinds, a.Kind())
		if what[a.Kind()] == "" {
			t.Errorf("%s has no words", a.Kind())
		}
	}
	if !slices.Equal(slices.Sorted(slices.Values(kinds)), slices.Sorted(slices.Values(ablation.NativeKinds()))) {
		t.Errorf("adapters %v, kinds %v", kinds, ablation.NativeKinds())
	}
}

func TestCheckPutsEverythingTogether(t *testing.T) {
	s := New(Config{
		Adapters: []native.Adapter{&framework{kind: "verl"}}, Python: func(string) string { return "python3" },
		Machine: func(n int) native.Machine { return machine(n, 16) },
	})
	got := s.Check(t.Context(), star("verl", "Qwen/Qwen2.5-7B", 1))
	code := func(c string) bool {
		return slices.ContainsFunc(got.Verdicts, func(v native.Verdict) bool { return v.Code == c })
	}
	if !got.Refused() || !code("memory") || !code("own") || code("not-installed") || got.Memory == nil || got.Device != 16 {
		t.Errorf("a 7B model on one device of 16 GiB: %+v", got)
	}
	if r := s.Check(t.Context(), ablation.Recipe{Trainer: ablation.Trainer{Kind: "cpu"}}); len(r.Verdicts) != 0 {
		t.Errorf("the embedded trainer: %+v", r)
	}
	missing := New(Config{Adapters: []native.Adapter{&framework{kind: "verl", err: &native.Missing{Kind: "verl", How: "install it"}}}, Python: func(string) string { return "python3" }})
	if r := missing.Check(t.Context(), star("verl", "Qwen/Qwen2.5-7B", 1)); !r.Refused() || r.Verdicts[0].Fix != "install it" {
		t.Errorf("not installed: %+v", r)
	}
}
