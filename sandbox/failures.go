package sandbox

// Failures injects transient tool failures: at any tool call, with
// probability Rate and whatever the tool, the real result is replaced. The
// draw depends on (Seed, episode, call index) only, so every arm of a study
// that uses the same seed meets the same failures, and a run is repeatable.
// The zero value injects nothing.
type Failures struct {
	Rate float64 // 0..1
	Seed uint64
}

// Injected says whether the call with this 0-based index within the episode fails.
func (f Failures) Injected(episode uint64, call int) bool {
	if f.Rate <= 0 {
		return false
	}
	h := Mix(f.Seed, episode, uint64(call))
	return float64(h>>11)/(1<<53) < f.Rate
}

// Mix hashes a few words into one well-spread word (splitmix64 finaliser
// after each word). It is the one source of seeded draws in the sandboxes.
func Mix(words ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, w := range words {
		h += w + 0x9e3779b97f4a7c15
		h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9
		h = (h ^ (h >> 27)) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}
