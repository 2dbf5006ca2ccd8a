package compact

import (
	"slices"
	"testing"

	"alidade/sandbox"
	"alidade/sandbox/travel"
)

// hotelsUnder asks for the hotels of the destination when every call fails
// in one way.
func hotelsUnder(w *World, q *Query, kind string, episode uint64) (clean, seen []Token, injected int) {
	ask := func(f travel.Failures) ([]Token, *Session) {
		s := w.NewSession(q, SessionConfig{Episode: episode, Failures: f})
		s.Feed(ToolWord(ToolHotels))
		obs, _ := s.Feed(s.c.label[q.dest])
		return obs, s
	}
	clean, _ = ask(travel.Failures{})
	seen, s := ask(travel.Failures{Rate: 1, Seed: 5, Kind: kind})
	return clean, seen, s.Injected()
}

func TestFailureKindsShow(t *testing.T) {
	w := testWorld(t)
	for i, q := range testQueries(t, w, 1, 20) {
		for _, kind := range []string{sandbox.Unavailable, sandbox.Timeout, sandbox.Truncated, sandbox.Stale, sandbox.Corrupted, sandbox.Latency} {
			clean, seen, injected := hotelsUnder(w, q, kind, uint64(i))
			ok := injected == 1
			switch kind {
			case sandbox.Unavailable, sandbox.Timeout:
				ok = ok && slices.Equal(seen, []Token{TokFail})
			case sandbox.Truncated:
				ok = ok && len(seen) < len(clean) && seen[len(seen)-1] == TokRows && slices.Equal(seen[:len(seen)-1], clean[:len(seen)-1])
			case sandbox.Latency:
				ok = ok && slices.Equal(seen, clean)
			default:
				ok = ok && len(seen) == len(clean) && !slices.Equal(seen, clean)
				for k := range seen {
					if seen[k] != clean[k] && !in(clean[k], tokHotel, PriceLevels) {
						ok = false // only keys may be spoilt
					}
				}
			}
			if !ok {
				t.Fatalf("%s: %q where a clean tool says %q (%d injected)", kind, Show(seen), Show(clean), injected)
			}
		}
	}
}

func TestThoughtsHaveABudget(t *testing.T) {
	w := testWorld(t)
	q := testQueries(t, w, 1, 1)[0]
	trace := w.Expert(q, 0, 1, 1)
	plain, deliberate := w.Write(trace, 3), w.WriteDeliberate(trace, 3, 16)
	if len(deliberate.Tokens) <= len(plain.Tokens)+2 {
		t.Fatalf("no thought in %s", Show(deliberate.Tokens))
	}
	play := func(budget int) *Session {
		s := w.NewSession(q, SessionConfig{Labels: 3, Think: budget})
		for i, tok := range deliberate.Tokens {
			if deliberate.Own[i] {
				s.Feed(tok)
			}
		}
		return s
	}
	s := play(16)
	if j := s.Judgement(); !j.Success || s.FormatError() != "" || s.Thought() < 3 {
		t.Errorf("a deliberate expert fails: %s, %d tokens of thought", s.FormatError(), s.Thought())
	}
	tr := s.Trajectory(nil, nil)
	if last := tr.Turns[len(tr.Turns)-1]; last.Think == "" || len(tr.Turns) != s.Calls()+1 {
		t.Errorf("the thought is not in the record: %+v", last)
	}
	if f := s.Fork(); !f.Done() || f.Answer() != s.Answer() {
		t.Error("a fork of a finished session differs")
	}
	for _, budget := range []int{0, 3} {
		if s := play(budget); s.FormatError() == "" {
			t.Errorf("thoughts beyond a budget of %d pass", budget)
		}
	}
}
