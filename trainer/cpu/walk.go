package cpu

import (
	"slices"
	"sync"

	"alidade/sandbox/travel/compact"
)

// walks remembers the orders of the passes that are under way, which many ask
// for at a time. The zero value is ready.
type walks struct {
	mu   sync.Mutex
	kept []walk // the one asked for last is the first
}

// walk is one pass through 0…n−1.
type walk struct {
	seed, pass uint64
	order      []int
}

// keptWalks is enough for two passes of prompts, of further prompts, and of
// traces.
const keptWalks = 6

// nth returns the i-th index of an endless walk through 0…n−1 in a new random
// order at each pass. It depends on i alone, so a resumed run goes on where it
// was.
func (w *walks) nth(i, n int, seed uint64) int {
	pass := uint64(i / n)
	w.mu.Lock()
	defer w.mu.Unlock()
	at := slices.IndexFunc(w.kept, func(k walk) bool { return k.seed == seed && k.pass == pass && len(k.order) == n })
	if at < 0 {
		w.kept = append(w.kept, walk{seed, pass, compact.Rand(seed, forOrder, pass).Perm(n)})
		at = len(w.kept) - 1
	}
	found := w.kept[at]
	copy(w.kept[1:at+1], w.kept[:at])
	w.kept[0] = found
	w.kept = w.kept[:min(len(w.kept), keptWalks)]
	return found.order[i%n]
}
