package compact

import (
	"reflect"
	"slices"
	"testing"
)

// A stitched trace holds every step somebody would take, in the form of a real
// one, and succeeds less often: nobody minded the whole.
func TestStitchedTraces(t *testing.T) {
	w, err := NewWorld(3, 30)
	if err != nil {
		t.Fatal(err)
	}
	sets, err := w.Queries(3, 0.7, QuerySet{N: 200, Mix: Mix{4, 3, 3}})
	if err != nil {
		t.Fatal(err)
	}
	const noise = 0.25
	passed, real, mixed := 0, 0, 0
	for i, q := range sets[0] {
		tr := w.Stitch(q, noise, 3, uint64(i))
		if again := w.Stitch(q, noise, 3, uint64(i)); !reflect.DeepEqual(tr, again) {
			t.Fatal("the same stream gave another trace")
		}
		shown := rowsOf(w.seen(tr.calls))
		for _, p := range tr.picks {
			if p.row >= 0 && !slices.Contains(shown, p.row) {
				t.Fatalf("query %d: slot %d holds a row that no call showed", i, p.slot)
			}
			if !somebody(w, q, noise, p) {
				t.Errorf("query %d: no expert fills slot %d with row %d", i, p.slot, p.row)
			}
		}
		s := w.NewSession(q, SessionConfig{})
		s.Play(tr)
		if s.FormatError() != "" || !s.Done() {
			t.Fatalf("query %d: %s", i, s.FormatError())
		}
		expert := w.Expert(q, noise, 3, uint64(i))
		if w.Judge(tr).Success {
			passed++
		}
		if w.Judge(expert).Success {
			real++
		}
		if hotelsDiffer(tr) {
			mixed++
		}
	}
	t.Logf("success of 200 traces: real %d, stitched %d; %d change hotels", real, passed, mixed)
	if passed >= real*2/3 || passed == 0 || mixed == 0 {
		t.Errorf("success of 200 traces: real %d, stitched %d; %d change hotels", real, passed, mixed)
	}
}

func rowsOf(byKind map[kind][]int) []int {
	var all []int
	for _, rows := range byKind {
		all = append(all, rows...)
	}
	return all
}

// somebody says whether one of many experts fills the slot alike.
func somebody(w *World, q *Query, noise float64, p pickOf) bool {
	for k := range 1000 {
		if slices.Contains(w.Expert(q, noise, 99, uint64(k)).picks, p) {
			return true
		}
	}
	return false
}

func hotelsDiffer(t Trace) bool {
	var rows []int
	for _, p := range t.picks {
		if p.slot == goHotel || p.slot == midHotel {
			rows = append(rows, p.row)
		}
	}
	return len(rows) == 2 && rows[0] != rows[1]
}
