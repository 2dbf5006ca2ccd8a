package compact

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"alidade/sandbox"
	"alidade/sandbox/travel"
)

func longWorld(t testing.TB, cities, days int) *World {
	t.Helper()
	w, err := NewWorld(7, cities)
	if err != nil {
		t.Fatal(err)
	}
	if w, err = w.ForDays(days); err != nil {
		t.Fatal(err)
	}
	return w
}

// eachLong runs f for both lengths and for worlds of few and many cities.
func eachLong(t *testing.T, f func(t *testing.T, w *World)) {
	for _, days := range []int{5, 7} {
		for _, cities := range []int{15, 40} {
			t.Run(fmt.Sprintf("%d days, %d cities", days, cities), func(t *testing.T) { f(t, longWorld(t, cities, days)) })
		}
	}
}

func TestLongVocabularyBeginsWithTheShortOne(t *testing.T) {
	long := LongWords()
	if !slices.Equal(long[:VocabSize], Words()) {
		t.Error("a word of three-day trips has another meaning in longer ones")
	}
	seen := map[string]int{}
	for i, w := range long {
		if j, twice := seen[w]; twice || w == "" {
			t.Errorf("tokens %d and %d are both %q", j, i, w)
		}
		seen[w] = i
	}
	for slot := range longSlots {
		if got := slotOf(slotToken(slot)); got != slot {
			t.Errorf("slot %d is written as %q and read as %d", slot, long[slotToken(slot)], got)
		}
	}
}

func TestOnlyThreeFiveAndSevenDays(t *testing.T) {
	w := testWorld(t)
	for _, days := range []int{-1, 0, 1, 4, 6, 8} {
		if _, err := w.ForDays(days); err == nil || !strings.Contains(err.Error(), "environment.days") {
			t.Errorf("%d days: error %v", days, err)
		}
	}
	short, err := w.ForDays(3)
	if err != nil || short.VocabSize() != VocabSize || short.PromptLen() != PromptLen {
		t.Errorf("three days: %d words, prompts of %d, %v", short.VocabSize(), short.PromptLen(), err)
	}
}

// The solver's and the clean expert's plans satisfy the strict judge, who knows
// nothing of tokens, and cost what the solver says at least.
func TestLongSolversPlanPassesStrict(t *testing.T) {
	eachLong(t, func(t *testing.T, w *World) {
		for _, factor := range []float64{0.7, 1} {
			for i, q := range testQueries(t, w, factor, 60) {
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
				if j := s.Judgement(); !j.Success || *j.Cost < sol.Cost {
					t.Fatalf("query %d (%s): expert failed (%s %s): %+v\n%s", i, q.Text, s.end, s.formatError, j, Show(s.script.Tokens))
				}
			}
		}
	})
}

// The cheapest menu is the cheapest of all menus, tried one by one.
func TestCheapestMenuIsExact(t *testing.T) {
	w := longWorld(t, 15, 5)
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		cities := w.members[r.IntN(len(w.members))][:2]
		q := &Query{cuisines: r.Perm(9)[:r.IntN(4)]}
		q.People = 1
		slices.Sort(q.cuisines)
		best := 1e9
		w.threeMeals(cities[0], func(a [3]int, pa float64) {
			w.threeMeals(cities[1], func(b [3]int, pb float64) {
				met := map[int]bool{}
				for _, m := range append(a[:], b[:]...) {
					met[w.rows[m].taste] = true
				}
				for _, c := range q.cuisines {
					if !met[c] {
						return
					}
				}
				best = min(best, pa+pb)
			})
		})
		meals, cost := w.cheapestMenu(q, cities)
		if (best < 1e9) != (meals != nil) || meals != nil && cost != best {
			t.Fatalf("cuisines %v in %v: menu %v of $%g, the cheapest is $%g", q.cuisines, cities, meals, cost, best)
		}
	}
}

// A written trace, fed back token by token, is the same episode, and its
// plan reads back as the same picks.
func TestLongTraceSurvivesTheRoundTrip(t *testing.T) {
	eachLong(t, func(t *testing.T, w *World) {
		for i, q := range testQueries(t, w, 0.8, 60) {
			for name, tr := range map[string]Trace{
				"expert": w.Expert(q, 0.25, 3, uint64(i)), "legal": w.RandomLegal(q, 3, uint64(i)), "stroll": w.Stroll(q, 3, uint64(i)),
			} {
				tr.calls = slices.DeleteFunc(slices.Clone(tr.calls), func(c call) bool { return c.fail })
				want := w.Write(tr, uint64(i))
				s := w.NewSession(q, SessionConfig{Labels: uint64(i), MaxTokens: 1000, MaxTurns: 100})
				for j := w.PromptLen(); j < len(want.Tokens); j++ {
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
				if f := s.Fork(); f.Answer() != s.Answer() || len(f.script.Tokens) != len(s.script.Tokens) {
					t.Fatalf("%s of query %d: a fork differs", name, i)
				}
			}
		}
	})
}

// What the random-legal policy does is legal: everything exists, is in its
// place and complete; only choices can be wrong.
func TestRandomLegalIsLegal(t *testing.T) {
	choices := map[string]bool{"valid_cost": true, "valid_cuisine": true, "valid_room_rule": true, "valid_room_type": true,
		"is_valid_accommodation": true, "is_valid_information_in_sandbox": true} // nights; a road that does not exist
	eachLong(t, func(t *testing.T, w *World) {
		for i, q := range testQueries(t, w, 1, 100) {
			for _, v := range w.Judge(w.RandomLegal(q, 1, uint64(i))).Verdicts {
				if v.Outcome == "fail" && !choices[v.Check] {
					t.Fatalf("query %d (%s): %+v", i, q.Text, v)
				}
				if v.Check == "is_valid_information_in_sandbox" && v.Outcome == "fail" && q.ride != 1 {
					t.Fatalf("query %d (%s): %+v", i, q.Text, v)
				}
			}
		}
	})
}

func TestBrokenLongEpisodesEndWithAReason(t *testing.T) {
	w := longWorld(t, 20, 5)
	q := testQueries(t, w, 1, 1)[0]
	play := func(tokens ...Token) *Session {
		s := w.NewSession(q, SessionConfig{})
		for _, tok := range tokens {
			s.Feed(tok)
		}
		return s
	}
	ride := slotToken(2*slotsPerDay + slotRide)
	tests := []struct {
		name   string
		s      *Session
		reason string
	}{
		{"a city where a state is due", play(tokToolCities, tokCity), "an argument of cities was due"},
		{"a drive without its end", play(TokPlan, ride, tokMode, ride), "a city to drive to was due"},
		{"a drive to a row", play(TokPlan, ride, tokMode, TokID), "a city to drive to was due"},
		{"a sixth day", play(TokPlan, slotToken(5*slotsPerDay)), "a slot or the end was due"},
		{"a slot twice", play(TokPlan, ride, tokMode, tokCity, ride), "a slot not yet filled was due"},
		{"a dish for a hotel", play(TokPlan, slotToken(4*slotsPerDay+slotHotel), tokTasteMore), "a key for hotel was due"},
		{"no word", play(LongVocabSize), "a word of the language was due"},
		{"less than no word", play(-1), "a tool or the plan was due"},
	}
	for _, tt := range tests {
		if !tt.s.Done() || tt.s.end != travel.EndFormat || !strings.Contains(tt.s.formatError, tt.reason) || tt.s.Judgement().Success {
			t.Errorf("%s: done %v, end %q, reason %q; want %q", tt.name, tt.s.Done(), tt.s.end, tt.s.formatError, tt.reason)
		}
	}
	s := testWorld(t).NewSession(testQueries(t, testWorld(t), 1, 1)[0], SessionConfig{})
	if s.Feed(tokToolCities); !strings.Contains(s.formatError, "a word of the language") {
		t.Errorf("a three-day trip takes a word of longer ones: %q", s.formatError)
	}
}

// A trip with one stay longer than the other and a taxi is within the language
// and judged on its merits.
func TestUnevenStaysCanBeTold(t *testing.T) {
	w := longWorld(t, 40, 5)
	for _, q := range testQueries(t, w, 1, 40) {
		for _, cities := range w.routes(q) {
			fly, _ := w.tours(q, cities)
			if q.ride == 1 || fly.cost > q.Budget/2 {
				continue
			}
			a, b := cities[0], cities[1]
			hop := w.cheapest(w.flightsOn(a, b, q.out+3))
			meals := func(c int) []int { return w.meals[c] }
			var p []pickOf
			put := func(day, slot, row int) { p = append(p, pickOf{day*slotsPerDay + slot, row}) }
			put(0, slotRide, fly.rides[0])
			put(0, slotHotel, fly.hotels[0])
			for day := 1; day <= 2; day++ {
				for k := range 3 {
					put(day, slotBreakfast+k, meals(a)[3*(day-1)+k])
				}
				put(day, slotSight, w.sights[a][day])
				put(day, slotHotel, fly.hotels[0])
			}
			put(3, slotRide, hop)
			put(3, slotHotel, fly.hotels[1])
			put(4, slotRide, fly.rides[2])
			s := w.NewSession(q, SessionConfig{})
			s.Play(Trace{Query: q, calls: []call{{tool: toolFlight, a: a, b: b, date: q.out + 3}}, picks: p})
			for _, v := range s.Judgement().Verdicts[:8] {
				if v.Outcome != "pass" && v.Check != "is_valid_accommodation" { // one night may be too few
					t.Fatalf("%s: %+v", q.Text, v)
				}
			}
			return
		}
	}
	t.Fatal("no query to try")
}

func TestLongFailureKindsShow(t *testing.T) {
	w := longWorld(t, 40, 7)
	for i, q := range testQueries(t, w, 1, 10) {
		for _, tool := range []int{toolCities, toolHotels, toolFlight} {
			k := call{tool: tool, a: w.members[q.state][0]}
			switch tool {
			case toolCities:
				k.a = q.state
			case toolFlight:
				k = call{tool: tool, a: w.members[q.state][0], b: w.members[q.state][1], date: q.out + 2}
			}
			ask := func(f travel.Failures) (obs []Token) {
				s := w.NewSession(q, SessionConfig{Episode: uint64(i), Failures: f})
				for _, tok := range s.c.encodeCall(k) {
					obs, _ = s.Feed(tok)
				}
				return obs
			}
			clean := ask(travel.Failures{})
			cut := ask(travel.Failures{Rate: 1, Seed: 5, Kind: sandbox.Truncated})
			if len(cut) >= len(clean) || cut[len(cut)-1] != TokRows || !slices.Equal(cut[:len(cut)-1], clean[:len(cut)-1]) {
				t.Errorf("%s truncated: %q where a clean tool says %q", toolName(tool), Show(cut), Show(clean))
			}
			stale := ask(travel.Failures{Rate: 1, Seed: 5, Kind: sandbox.Stale})
			if same := slices.Equal(stale, clean); same != (tool == toolCities) || len(stale) != len(clean) {
				t.Errorf("%s stale: %q where a clean tool says %q", toolName(tool), Show(stale), Show(clean))
			}
		}
	}
}

func TestLongReferencePolicies(t *testing.T) {
	for _, days := range []int{5, 7} {
		w := longWorld(t, 40, days)
		for _, factor := range []float64{0.7, 1} {
			qs := testQueries(t, w, factor, 100)
			rate := map[string]int{}
			tokens, calls, open := 0, 0, 0.0
			for i, q := range qs {
				routes, _ := w.feasible(q)
				open += float64(len(routes)) / float64(len(w.routes(q)))
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
			if rate["clean"] != len(qs) {
				t.Errorf("%d days, budget × %g: the clean expert solves %d of %d", days, factor, rate["clean"], len(qs))
			}
			t.Logf("%d days, budget × %g: of %d: %v; %d tokens, %.2f calls an episode; %.2f of the routes can succeed", days, factor, len(qs), rate, tokens/len(qs), float64(calls)/float64(len(qs)), open/float64(len(qs)))
		}
	}
}

func TestLongScriptsFitTheirLimits(t *testing.T) {
	for _, days := range []int{5, 7} {
		w := longWorld(t, 40, days)
		turns, tokens := Limits(days)
		longest, most := 0, 0
		for i, q := range testQueries(t, w, 0.7, 100) {
			s := w.WriteDeliberate(w.Expert(q, 0.25, 1, uint64(i)), 1, 16)
			longest = max(longest, len(s.Tokens))
			most = max(most, len(w.Expert(q, 0.25, 1, uint64(i)).calls))
			if n := len(w.NewSession(q, SessionConfig{}).Prompt()); n != w.PromptLen() || s.Tokens[n-1] != TokGo {
				t.Fatalf("a prompt of %d tokens, want %d", n, w.PromptLen())
			}
		}
		if longest > tokens || most > turns {
			t.Errorf("%d days: a trace of %d tokens and %d calls, the usual limits are %d and %d", days, longest, most, tokens, turns)
		}
		for i := range uint64(50) {
			for name, s := range map[string]Script{"stroll": w.StrollScript(1, i), "recall": RecallLong(1, i)} {
				for _, tok := range s.Tokens {
					if tok < 0 || tok >= LongVocabSize {
						t.Fatalf("%s %d holds token %d", name, i, tok)
					}
				}
			}
		}
	}
}

// No sequence of tokens upsets a session: it ends, with a plan that can be
// judged and told.
func FuzzLongSession(f *testing.F) {
	w := longWorld(f, 15, 7)
	q := testQueries(f, w, 1, 1)[0]
	seed := func(s Script) {
		var b []byte
		for i, t := range s.Tokens {
			if s.Own[i] {
				b = append(b, byte(t), byte(t>>8))
			}
		}
		f.Add(b, true)
	}
	for i := range uint64(4) {
		seed(w.Write(w.Expert(q, 0.25, 1, i), 0))
		seed(w.Write(w.Stroll(q, 1, i), 0))
	}
	f.Fuzz(func(t *testing.T, b []byte, ascend bool) {
		s := w.NewSession(q, SessionConfig{Failures: travel.Failures{Rate: 0.1, Seed: 1, Kind: "mixed"}, Think: 4})
		for i := 0; i+1 < len(b) && !s.Done(); i += 2 {
			s.Feed(Token(int16(uint16(b[i]) | uint16(b[i+1])<<8)))
		}
		if !s.Done() {
			s.Feed(-1)
		}
		if j := s.Judgement(); j.Success && s.FormatError() != "" {
			t.Fatalf("a success with the format error %q", s.FormatError())
		}
		s.Trajectory(nil, nil)
		s.Answer()
	})
}
