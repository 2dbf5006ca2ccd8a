package synth_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"alidade/sandbox/travel"
	"alidade/sandbox/travel/synth"
)

// tablesDir is the folder of the public tables; the test is skipped without it.
func tablesDir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("ALIDADE_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared")
	}
	dir = filepath.Join(dir, "data", "travelplanner", "tables")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("TravelPlanner's tables are not on this machine")
	}
	return dir
}

func open(t testing.TB, s synth.Spec) (*synth.World, travel.Cache) {
	t.Helper()
	w, c, err := synth.Open(s)
	if err != nil {
		t.Fatal(err)
	}
	return w, c
}

func TestOpenedWorldsAreTheGeneratedOnes(t *testing.T) {
	cache := t.TempDir()
	s := synth.Spec{Cities: 24, Seed: 5, Cache: cache}
	first, c := open(t, s)
	if c.Hit {
		t.Errorf("first opening: %+v", c)
	}
	again, c := open(t, s)
	if !c.Hit || again.Hash() != first.Hash() {
		t.Errorf("second opening: %+v, hash %s, want %s", c, again.Hash(), first.Hash())
	}
	tables, err := synth.Generate(5, 24)
	if err != nil {
		t.Fatal(err)
	}
	if w := synth.NewWorld(tables); w.Hash() != first.Hash() {
		t.Error("Open and Generate differ")
	}
	s.Seed = 6
	if other, c := open(t, s); c.Hit || other.Hash() == first.Hash() {
		t.Errorf("another seed: %+v", c)
	}
	a, _, _, err := first.Queries(t.Context(), synth.Options{N: 10, Mix: mix, Seed: 1, Certify: true})
	if err != nil {
		t.Fatal(err)
	}
	b, _, _, err := again.Queries(t.Context(), synth.Options{N: 10, Mix: mix, Seed: 1, Certify: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range a {
		if a[i].Hash() != b[i].Hash() || a[i].Text != b[i].Text {
			t.Errorf("query %d differs in the mapped world", i)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for want, s := range map[string]synth.Spec{
		"cities 3":        {Cities: 3},
		"flight days":     {Cities: 12, Window: synth.Window{Days: 9999}},
		`world is "moon"`: {Kind: "moon"},
		"tables:":         {Dir: "no-such-folder"},
	} {
		if _, _, err := synth.Open(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%+v) = %v, want …%s…", s, err, want)
		}
	}
}

func TestReferenceWorld(t *testing.T) {
	dir := filepath.Dir(tablesDir(t))
	w, _ := open(t, synth.Spec{Kind: synth.Reference, File: filepath.Join(dir, "train_ref_info.jsonl"), States: filepath.Join(dir, "city_states.tsv")})
	if n := w.NumFlights(); n != 313 {
		t.Errorf("%d flights, want 313", n)
	}
}

// BenchmarkOpen measures how worlds start, and their memory.
func BenchmarkOpen(b *testing.B) {
	for _, c := range []struct {
		name string
		spec synth.Spec
	}{
		{"real, 31 days", synth.Spec{Dir: "tables", Seed: 1}},
		{"full, 31 days", synth.Spec{Cities: 312, Seed: 1}},
		{"full, 3.8 M flights", synth.Spec{Cities: 312, Seed: 1, Window: synth.Window{First: synth.HalfYear().First, Days: 198}}},
	} {
		if c.spec.Dir != "" {
			c.spec.Dir = tablesDir(b)
		}
		b.Run(c.name+"/made", func(b *testing.B) {
			for b.Loop() {
				w, _ := open(b, c.spec)
				memory(b, w)
			}
		})
		b.Run(c.name+"/cached", func(b *testing.B) {
			c.spec.Cache = b.TempDir()
			open(b, c.spec)
			for b.Loop() {
				w, hit := open(b, c.spec)
				if !hit.Hit {
					b.Fatal(hit.Why)
				}
				memory(b, w)
				b.ReportMetric(float64(hit.Bytes)/(1<<20), "file-MiB")
			}
		})
	}
}

func memory(b *testing.B, w *synth.World) {
	b.StopTimer()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapInuse)/(1<<20), "heap-MiB")
	b.ReportMetric(float64(w.NumFlights()), "flights")
	b.StartTimer()
}
