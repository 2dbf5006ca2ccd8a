package cpu

import (
	"slices"
	"sync"
	"testing"

	"alidade/sandbox/travel/compact"
)

// A walk visits everything once a pass, whatever else is walked in between and
// however many ask.
func TestWalks(t *testing.T) {
	var w walks
	const n = 17
	var busy sync.WaitGroup
	for seed := range uint64(4) {
		busy.Go(func() {
			for pass := range 5 {
				var got []int
				for i := range n {
					got = append(got, w.nth(pass*n+i, n, seed))
				}
				if want := compact.Rand(seed, forOrder, uint64(pass)).Perm(n); !slices.Equal(got, want) {
					t.Errorf("seed %d, pass %d: %v, want %v", seed, pass, got, want)
				}
			}
		})
	}
	busy.Wait()
	if len(w.kept) > keptWalks {
		t.Errorf("%d walks kept", len(w.kept))
	}
	if a, b := w.nth(3, 10, 1), w.nth(3, 11, 1); a >= 10 || b >= 11 {
		t.Error("a walk of another length was taken")
	}
}
