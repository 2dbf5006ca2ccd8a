package travel

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// smallFolder writes the small world as a database folder.
func smallFolder(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := WriteTables(dir, smallTables()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestWriteTablesReadsBack(t *testing.T) {
	got, err := LoadTables(smallFolder(t))
	if err != nil {
		t.Fatal(err)
	}
	want := smallTables()
	if !reflect.DeepEqual(got.Flights, want.Flights) || !reflect.DeepEqual(got.Hotels, want.Hotels) || !reflect.DeepEqual(got.Distances, want.Distances) ||
		NewWorld(got).Hash() != smallWorld().Hash() {
		t.Errorf("read back %+v", got)
	}
}

func TestCacheGivesTheSameWorld(t *testing.T) {
	dir, cache := smallFolder(t), t.TempDir()
	built, c, err := LoadWorldCached(dir, cache)
	if err != nil || c.Hit || c.Why == "" {
		t.Fatalf("first time: %+v, %v", c, err)
	}
	mapped, c, err := LoadWorldCached(dir, cache)
	if err != nil || !c.Hit {
		t.Fatalf("second time: %+v, %v", c, err)
	}
	if mapped.Hash() != built.Hash() || !reflect.DeepEqual(mapped.Tables(), built.Tables()) {
		t.Error("the mapped world differs")
	}
	fresh := NewWorld(func() Tables {
		x := mapped.Tables()
		mapped.EachFlight(func(f Flight) bool { x.Flights = append(x.Flights, f); return true })
		return x
	}())
	if fresh.Hash() != mapped.Hash() {
		t.Error("the hash in the file is not the hash of its rows")
	}
	for _, call := range []map[string]any{{"departure": "Alder", "destination": "Birch", "date": "2022-03-01"}, {"departure": "Alder", "destination": "Nowhere", "date": "2022-03-01"}} {
		if a, b := built.Call(ToolFlight, call), mapped.Call(ToolFlight, call); !reflect.DeepEqual(a, b) {
			t.Errorf("%v: %+v, mapped %+v", call, a, b)
		}
	}
	a, b := Judge(built, smallQuery(), NewPlan(smallPlan()), Strict), Judge(mapped, smallQuery(), NewPlan(smallPlan()), Strict)
	if !reflect.DeepEqual(a, b) || !b.Success {
		t.Errorf("judged %+v, mapped %+v", a, b)
	}
}

func TestCacheFollowsItsSources(t *testing.T) {
	dir, cache := smallFolder(t), t.TempDir()
	load := func() Cache {
		t.Helper()
		_, c, err := LoadWorldCached(dir, cache)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	load()
	path := filepath.Join(dir, "restaurants", "clean_restaurant_2022.csv")
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	if c := load(); !c.Hit {
		t.Errorf("a touched file made the world again: %s", c.Why)
	}
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(src, []byte("Plum"), []byte("Pium"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, later.Add(time.Hour), later.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if c := load(); c.Hit || !strings.Contains(c.Why, "has changed") {
		t.Errorf("a changed file: %+v", c)
	}
	if c := load(); !c.Hit {
		t.Errorf("made again, then: %+v", c)
	}
}

func TestDamagedCacheIsMadeAgain(t *testing.T) {
	dir, cache := smallFolder(t), t.TempDir()
	_, c, err := LoadWorldCached(dir, cache)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(c.Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, damage := range []func([]byte) []byte{
		func(b []byte) []byte { return b[:10] },
		func(b []byte) []byte { return b[:len(b)-1] },
		func(b []byte) []byte { b[3] ^= 1; return b },
		func(b []byte) []byte { b[30] ^= 1; return b },
		func(b []byte) []byte { b[len(b)-200] ^= 1; return b },
		func([]byte) []byte { return nil },
	} {
		// A new file, as a mapped one must not be written to.
		if err := os.Remove(c.Path); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(c.Path, damage(bytes.Clone(whole)), 0o600); err != nil {
			t.Fatal(err)
		}
		w, got, err := LoadWorldCached(dir, cache)
		if err != nil || got.Hit || w.Hash() != smallWorld().Hash() {
			t.Errorf("damaged cache: %+v, %v", got, err)
		}
	}
	if _, got, err := LoadWorldCached(dir, filepath.Join(dir, "background", "citySet_with_states.txt")); err != nil || got.Path != "" || got.Why == "" {
		t.Errorf("a cache folder that is a file: %+v, %v", got, err)
	}
}

func FuzzCache(f *testing.F) {
	var b bytes.Buffer
	w := smallWorld()
	if err := writeCache(&b, Origin{Kind: "tables"}, w.Hash(), w.Tables(), &w.flights); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(cacheMagic))
	f.Fuzz(func(t *testing.T, src []byte) {
		_, _ = openMapped(src, Origin{})
		_, _, _ = decodeTables(src)
	})
}
