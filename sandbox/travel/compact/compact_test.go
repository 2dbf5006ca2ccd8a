package compact

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"alidade/sandbox/travel"
)

func testWorld(t testing.TB) *World {
	t.Helper()
	w, err := NewWorld(7, 20)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func testQueries(t testing.TB, w *World, factor float64, n int) []*Query {
	t.Helper()
	sets, err := w.Queries(7, factor, QuerySet{n, Mix{4, 3, 3}})
	if err != nil {
		t.Fatal(err)
	}
	return sets[0]
}

func TestVocabularyHasAWordForEveryToken(t *testing.T) {
	if VocabSize > 256 {
		t.Fatalf("vocabulary of %d words, want at most 256", VocabSize)
	}
	seen := map[string]int{}
	for i, w := range Words() {
		if w == "" {
			t.Errorf("token %d has no word", i)
		}
		if j, ok := seen[w]; ok {
			t.Errorf("tokens %d and %d are both %q", j, i, w)
		}
		seen[w] = i
	}
}

// The solver and the clean expert never break a rule: every query is
// certified, so strict must agree, and on the cost too.
func TestSolversPlanPassesStrict(t *testing.T) {
	for _, factor := range []float64{0.7, 1} {
		w := testWorld(t)
		for i, q := range testQueries(t, w, factor, 300) {
			sol, ok := w.Solve(q)
			if !ok {
				t.Fatalf("query %d (%s) is not solvable", i, q.Text)
			}
			expert := w.Expert(q, 0, 1, uint64(i))
			if j := w.Judge(Trace{Query: q, calls: expert.calls, picks: sol.picks}); !j.Success || *j.Cost != sol.Cost {
				t.Fatalf("query %d (%s): the solver's plan of $%g fails: %+v", i, q.Text, sol.Cost, j)
			}
			s := w.NewSession(q, SessionConfig{Labels: uint64(i)})
			s.Play(expert)
			j := s.Judgement()
			if !s.Done() || !j.Success {
				t.Fatalf("query %d (%s): expert failed (%s %s): %+v\n%s", i, q.Text, s.end, s.formatError, j, Show(s.script.Tokens))
			}
			if j.Cost == nil || *j.Cost > q.Budget {
				t.Fatalf("query %d: cost %v over budget %g", i, j.Cost, q.Budget)
			}
			if *j.Cost < sol.Cost {
				t.Fatalf("query %d: judged cost %g is below the solver's cheapest, %g", i, *j.Cost, sol.Cost)
			}
		}
	}
}

// A written trace, fed back token by token, is the same episode.
func TestTraceSurvivesTheRoundTrip(t *testing.T) {
	w := testWorld(t)
	for i, q := range testQueries(t, w, 1, 200) {
		for name, tr := range map[string]Trace{
			"expert": w.Expert(q, 0.25, 3, uint64(i)), "legal": w.RandomLegal(q, 3, uint64(i)), "stroll": w.Stroll(q, 3, uint64(i)),
		} {
			tr.calls = slices.DeleteFunc(slices.Clone(tr.calls), func(c call) bool { return c.fail })
			want := w.Write(tr, uint64(i))
			s := w.NewSession(q, SessionConfig{Labels: uint64(i)})
			for j := PromptLen; j < len(want.Tokens); j++ {
				if want.Own[j] {
					s.Feed(want.Tokens[j])
				}
			}
			if got := s.Script(); !slices.Equal(got.Tokens, want.Tokens) || !slices.Equal(got.Own, want.Own) {
				t.Fatalf("%s of query %d:\nwant %s\ngot  %s\n%s", name, i, Show(want.Tokens), Show(got.Tokens), s.formatError)
			}
			if !slices.Equal(s.picks, tr.picks) {
				t.Fatalf("%s of query %d: picks %v, want %v", name, i, s.picks, tr.picks)
			}
		}
	}
}

func TestSameSeedSameEverything(t *testing.T) {
	digest := func(seed uint64) string {
		w, err := NewWorld(seed, 16)
		if err != nil {
			t.Fatal(err)
		}
		sets, err := w.Queries(seed, 0.8, QuerySet{20, Mix{4, 3, 3}}, QuerySet{20, Mix{1, 0, 0}})
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for s, set := range sets {
			for i, q := range set {
				fmt.Fprintln(&b, s, q.Key, q.Text, w.Write(w.Expert(q, 0.25, seed, uint64(i)), uint64(i)).Tokens)
			}
		}
		return b.String()
	}
	first, again := digest(1), digest(1)
	if first != again {
		t.Error("the same seed gave two different worlds")
	}
	if first == digest(2) {
		t.Error("different seeds gave the same world")
	}
}

func TestQuerySetsAreDisjointAndMixed(t *testing.T) {
	w := testWorld(t)
	sets, err := w.Queries(7, 1, QuerySet{100, Mix{4, 3, 3}}, QuerySet{100, Mix{0, 0, 1}}, QuerySet{100, Mix{0, 0, 1}})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	levels := map[string]int{}
	for s, set := range sets {
		for _, q := range set {
			if seen[q.Key] {
				t.Errorf("query %s occurs twice", q.Key)
			}
			seen[q.Key] = true
			levels[fmt.Sprint(s, q.Level)]++
		}
	}
	want := map[string]int{"0easy": 40, "0medium": 30, "0hard": 30, "1hard": 100, "2hard": 100}
	for k, n := range want {
		if levels[k] != n {
			t.Errorf("set and level %s: %d queries, want %d (%v)", k, levels[k], n, levels)
		}
	}
}

func TestBrokenEpisodesEndWithAReason(t *testing.T) {
	w := testWorld(t)
	q := testQueries(t, w, 1, 1)[0]
	play := func(cfg SessionConfig, tokens ...Token) *Session {
		s := w.NewSession(q, cfg)
		for _, tok := range tokens {
			s.Feed(tok)
		}
		return s
	}
	hotels := []Token{TokTool + toolHotels, tokCity}
	tests := []struct {
		name   string
		s      *Session
		end    string
		reason string
	}{
		{"no tool", play(SessionConfig{}, tokCity), travel.EndFormat, "a tool or the plan was due"},
		{"bad argument", play(SessionConfig{}, TokTool, tokDate), travel.EndFormat, "an argument of flights was due"},
		{"no slot", play(SessionConfig{}, TokPlan, TokID), travel.EndFormat, "a slot or the end was due"},
		{"slot twice", play(SessionConfig{}, TokPlan, tokSlot, tokMode, tokSlot), travel.EndFormat, "a slot not yet filled was due"},
		{"bad key", play(SessionConfig{}, TokPlan, tokSlot+slotHotel, tokCuisine), travel.EndFormat, "a key for hotel was due"},
		{"no id", play(SessionConfig{}, TokPlan, tokSlot+slotHotel, tokHotel, tokHotel), travel.EndFormat, "an id was due"},
		{"turns", play(SessionConfig{MaxTurns: 2}, append(hotels, hotels...)...), travel.EndTurns, ""},
		{"context", play(SessionConfig{MaxTokens: 30}, hotels...), travel.EndContext, ""},
		{"invented", play(SessionConfig{}, TokPlan, tokSlot+slotHotel, tokHotel, TokID+3, TokEnd), travel.EndAnswer, ""},
	}
	for _, tt := range tests {
		if !tt.s.Done() || tt.s.end != tt.end || !strings.Contains(tt.s.formatError, tt.reason) {
			t.Errorf("%s: done %v, end %q, reason %q; want end %q, reason %q", tt.name, tt.s.Done(), tt.s.end, tt.s.formatError, tt.end, tt.reason)
		}
		if tt.s.Judgement().Success {
			t.Errorf("%s: a success", tt.name)
		}
	}
}

func TestFailuresAreInjectedInTheSessionOnly(t *testing.T) {
	w := testWorld(t)
	q := testQueries(t, w, 1, 1)[0]
	s := w.NewSession(q, SessionConfig{Failures: travel.Failures{Rate: 0.5, Seed: 3}, MaxTurns: 100, MaxTokens: 1000})
	s.Play(w.Expert(q, 0, 1, 0))
	if !s.Judgement().Success {
		t.Errorf("a retrying expert fails: %s", Show(s.script.Tokens))
	}
	if tr := s.Trajectory(nil, nil); tr.Injected == 0 {
		t.Error("no failure at a rate of 0.5")
	}
}

func TestRatesOfTheReferencePolicies(t *testing.T) {
	w := testWorld(t)
	for _, factor := range []float64{0.7, 0.8, 0.9, 1} {
		qs := testQueries(t, w, factor, 500)
		rate := map[string]int{}
		tokens, calls := 0, 0
		for i, q := range qs {
			for name, tr := range map[string]Trace{"noisy": w.Expert(q, 0.25, 1, uint64(i)), "legal": w.RandomLegal(q, 1, uint64(i)), "clean": w.Expert(q, 0, 1, uint64(i))} {
				s := w.NewSession(q, SessionConfig{})
				s.Play(tr)
				if s.Judgement().Success {
					rate[name]++
					rate[name+" "+q.Level]++
				}
				if name == "noisy" {
					tokens += len(s.script.Tokens)
					calls += s.calls
				}
			}
		}
		t.Logf("budget × %g: successes of 500: %v; %d tokens, %.2f calls an episode", factor, rate, tokens/len(qs), float64(calls)/float64(len(qs)))
	}
}

func TestTrajectoryReadsWell(t *testing.T) {
	w := testWorld(t)
	q := testQueries(t, w, 1, 3)[2]
	s := w.NewSession(q, SessionConfig{})
	s.Play(w.Expert(q, 0.25, 1, 0))
	own := 0
	for _, o := range s.script.Own {
		if o {
			own++
		}
	}
	tr := s.Trajectory(make([]float32, own), make([]float32, own))
	if tr.Generated != own || tr.Tokens != len(s.script.Tokens) {
		t.Errorf("tokens %d generated %d, want %d and %d", tr.Tokens, tr.Generated, len(s.script.Tokens), own)
	}
	sum := 0
	for _, turn := range tr.Turns {
		sum += turn.Tokens
		if len(turn.Entropy) != turn.Tokens {
			t.Errorf("%d entropies for %d tokens", len(turn.Entropy), turn.Tokens)
		}
	}
	if sum != own {
		t.Errorf("turns hold %d tokens, want %d", sum, own)
	}
	t.Log(q.Text)
	t.Logf("%+v", tr)
}

func BenchmarkEpisode(b *testing.B) {
	w := testWorld(b)
	qs := testQueries(b, w, 1, 64)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		q := qs[i%len(qs)]
		s := w.NewSession(q, SessionConfig{Labels: uint64(i)})
		s.Play(w.RandomLegal(q, 1, uint64(i)))
		i++
	}
}
