package compact

import (
	"fmt"
	"slices"

	"alidade/sandbox"
	"alidade/sandbox/travel"
	"alidade/trainer"
)

// SessionConfig says how an episode is played.
type SessionConfig struct {
	Episode    uint64             // number of the episode, for failure injection
	Labels     uint64             // seed of the labelling
	Failures   travel.Failures    // zero: a clean environment
	Milestones map[string]float64 // sub-goal → pay; see [travel.MilestoneNames]
	Profile    travel.Profile     // whose verdicts count; "" = strict
	MaxTurns   int                // tool calls after which an episode without a plan ends; 0 = 12, more for longer trips
	MaxTokens  int                // tokens, prompt included, after which an episode ends; 0 = 192, more for longer trips
	Think      int                // tokens an episode may spend on thoughts; 0 = none
}

// Session is one episode played token by token: [Session.Feed] takes what the
// policy says and returns what it gets to read. Not safe for concurrent use.
type Session struct {
	w   *World
	q   *Query
	c   *codec
	cfg SessionConfig
	ep  *travel.Episode

	script   Script
	turn     []Token // of the call or slot being written
	starts   []int   // where each turn starts in script.Tokens
	begun    bool    // the turn has its start
	thinking bool    // inside a thought
	thought  int     // tokens spent on thoughts
	inPlan   bool
	calls    int
	injected int
	picks    []pickOf
	strange  map[int]Token // picks (by index) of ids that were never shown
	filled   uint64        // slots

	done        bool
	end         string
	formatError string
}

// NewSession opens an episode for q.
func (w *World) NewSession(q *Query, cfg SessionConfig) *Session {
	turns, tokens := Limits(w.days)
	if cfg.MaxTurns == 0 {
		cfg.MaxTurns = turns
	}
	if cfg.MaxTokens == 0 {
		cfg.MaxTokens = max(tokens, 192)
	}
	if cfg.Profile == "" {
		cfg.Profile = travel.Strict
	}
	s := &Session{w: w, q: q, cfg: cfg, c: w.newCodec(q, cfg.Labels)}
	s.ep = travel.NewEpisode(w.Travel, q.Query, travel.EpisodeConfig{
		Failures: cfg.Failures, ID: cfg.Episode, MaxTurns: cfg.MaxTurns, Profile: cfg.Profile, Milestones: cfg.Milestones})
	s.script.say(false, s.c.prompt(q)...)
	return s
}

// Prompt returns the tokens the policy starts from.
func (s *Session) Prompt() []Token { return s.script.Tokens[:s.w.PromptLen()] }

// Script returns the episode so far.
func (s *Session) Script() Script { return s.script }

// Done says whether the episode has ended.
func (s *Session) Done() bool { return s.done }

// Overlong says whether the context budget ended the episode.
func (s *Session) Overlong() bool { return s.end == travel.EndContext }

// FormatError says why the episode broke the language's grammar, or "".
func (s *Session) FormatError() string { return s.formatError }

// Judgement returns the verdicts, once done.
func (s *Session) Judgement() travel.Judgement { return s.ep.Judgement() }

// Milestones returns the turn, counted from 1, at which each sub-goal that the
// configuration pays for was reached.
func (s *Session) Milestones() map[string]int { return s.ep.Milestones() }

// Calls is the number of tool calls so far.
func (s *Session) Calls() int { return s.calls }

// Injected is the number of calls that an injected failure answered.
func (s *Session) Injected() int { return s.injected }

// Answer names the plan by what it picks, whatever the order and the labels,
// for counting votes; "" for no plan.
func (s *Session) Answer() string {
	if s.end != travel.EndAnswer || len(s.picks) == 0 {
		return ""
	}
	picks := slices.SortedStableFunc(slices.Values(s.picks), func(a, b pickOf) int { return a.slot - b.slot })
	return fmt.Sprint(picks)
}

// Passes says under which profiles the finished plan passes in full.
func (s *Session) Passes() map[string]bool { return s.ep.Passes() }

// Feed takes the policy's next token and returns the tokens it reads before
// it speaks again. Feeding a session that is done does nothing.
func (s *Session) Feed(t Token) (observed []Token, done bool) {
	if s.done {
		return nil, true
	}
	if !s.begun && !s.inPlan {
		s.begun = true
		s.starts = append(s.starts, len(s.script.Tokens))
	}
	s.script.say(true, t)
	switch {
	case int(t) >= s.w.VocabSize():
		s.wrong(t, "a word of the language")
	case s.thinks(t):
	case s.inPlan:
		s.plan(t)
	default:
		observed = s.act(t)
	}
	if !s.done && len(s.script.Tokens) >= s.cfg.MaxTokens {
		s.finish(travel.EndContext, "")
		observed = nil
	}
	return observed, s.done
}

// Fork returns an independent copy of the session, which goes on from the same
// point and meets the same tool failures.
func (s *Session) Fork() *Session {
	f := s.w.NewSession(s.q, s.cfg)
	for i, t := range s.script.Tokens {
		if s.script.Own[i] {
			f.Feed(t)
		}
	}
	return f
}

// thinks takes a token of a thought: any words between two [TokThink] at the
// start of a turn, as long as the budget lasts.
func (s *Session) thinks(t Token) bool {
	opens := t == TokThink && !s.thinking && len(s.turn) == 0 && !s.inPlan && s.cfg.Think > 0
	if !opens && !s.thinking {
		return false
	}
	s.thought++
	s.thinking = opens || t != TokThink
	if s.thought > s.cfg.Think {
		s.finish(travel.EndFormat, fmt.Sprintf("token %d: thoughts of more than %d tokens", len(s.script.Tokens), s.cfg.Think))
	}
	return true
}

// Thought is the number of tokens spent on thoughts.
func (s *Session) Thought() int { return s.thought }

// act takes a token outside the plan: a tool, an argument, or the plan's start.
func (s *Session) act(t Token) []Token {
	if len(s.turn) == 0 {
		switch {
		case t == TokPlan:
			s.inPlan = true
		case s.c.toolOf(t) >= 0:
			s.turn = append(s.turn, t)
		default:
			s.wrong(t, "a tool or the plan")
		}
		return nil
	}
	tool := s.c.toolOf(s.turn[0])
	want := argsOf(tool)
	if f := want[len(s.turn)-1]; !in(t, f.first, f.n) {
		s.wrong(t, "an argument of "+toolName(tool))
		return nil
	}
	s.turn = append(s.turn, t)
	if len(s.turn) <= len(want) {
		return nil
	}
	k := s.c.decodeCall(s.turn)
	s.turn, s.begun = s.turn[:0], false
	kind, shown := s.call(k)
	k.fail = kind == sandbox.Unavailable || kind == sandbox.Timeout
	observed := spoil(s.c.result(k), kind, shown, sandbox.Mix(s.cfg.Failures.Seed, s.cfg.Episode, uint64(s.calls)))
	s.script.say(false, observed...)
	if s.calls >= s.cfg.MaxTurns {
		s.finish(travel.EndTurns, "")
	}
	return observed
}

// call makes the call in the sandbox and says which failure was injected, if
// any, and how many rows came back.
func (s *Session) call(k call) (kind string, rows int) {
	city := func(i int) string { return s.w.cities[i].Name }
	var seen trainer.Observed
	switch k.tool {
	case toolCities:
		seen = s.ep.Search(travel.ToolCity, s.w.cities[s.w.members[k.a][0]].State, "", "")
	case toolFlight:
		seen = s.ep.Search(travel.ToolFlight, city(k.a), city(k.b), s.w.dates[k.date])
	case toolDistance:
		seen = s.ep.Search(travel.ToolDistance, city(k.a), city(k.b), modeWords[k.mode])
	default:
		tool := [...]string{toolHotels: travel.ToolAccommodation, toolMeals: travel.ToolRestaurant, toolSights: travel.ToolAttraction}[k.tool]
		seen = s.ep.Search(tool, city(k.a), "", "")
	}
	s.calls++
	if seen.Injected != "" {
		s.injected++
	}
	return seen.Injected, len(seen.Rows)
}

// plan takes a token inside the plan: label, key, id, or the end.
func (s *Session) plan(t Token) {
	switch len(s.turn) {
	case 0:
		slot := slotOf(t)
		switch {
		case t == TokEnd:
			s.finish(travel.EndAnswer, "")
		case slot < 0 || slot >= s.w.days*slotsPerDay:
			s.wrong(t, "a slot or the end")
		case s.filled>>slot&1 == 1 && slot%slotsPerDay != slotSight:
			s.wrong(t, "a slot not yet filled")
		default:
			s.filled |= 1 << slot
			s.turn = append(s.turn, t)
		}
	case 1:
		slot := slotOf(s.turn[0])
		switch {
		case slot%slotsPerDay == slotRide && in(t, tokMode, 2) && s.w.long():
			s.turn = append(s.turn, t) // the city it goes to follows
		case slot%slotsPerDay == slotRide && in(t, tokMode, 2):
			s.put(pickOf{slot, rideDrive - int(t-tokMode)})
		case isKey(slot%slotsPerDay, t):
			s.turn = append(s.turn, t)
		default:
			s.wrong(t, "a key for "+slotWords[slot%slotsPerDay])
		}
	default:
		if mode := s.turn[1]; in(mode, tokMode, 2) {
			s.driveTo(t, int(mode-tokMode))
			return
		}
		if !IsID(t) {
			s.wrong(t, "an id")
			return
		}
		row := s.c.row[t-TokID]
		if row < 0 {
			if s.strange == nil {
				s.strange = map[int]Token{}
			}
			s.strange[len(s.picks)] = t
		}
		s.put(pickOf{slotOf(s.turn[0]), row})
	}
}

// driveTo takes the city that a drive of a longer trip goes to.
func (s *Session) driveTo(t Token, mode int) {
	if !in(t, tokCity, CityTokens) {
		s.wrong(t, "a city to drive to")
		return
	}
	s.put(pickOf{slotOf(s.turn[0]), driveTo(s.c.city[t-tokCity], mode)})
}

func (s *Session) put(p pickOf) {
	s.picks = append(s.picks, p)
	s.turn = s.turn[:0]
}

func (s *Session) wrong(t Token, want string) {
	s.finish(travel.EndFormat, fmt.Sprintf("token %d: %q where %s was due", len(s.script.Tokens), Show([]Token{t}), want))
}

// finish ends the episode and has the plan judged. A plan cut short by the
// context budget is judged as far as it goes; a format error delivers none.
func (s *Session) finish(end, formatError string) {
	s.done, s.end, s.formatError = true, end, formatError
	var p travel.Plan
	if s.inPlan && formatError == "" && len(s.picks) > 0 {
		p = travel.NewPlan(s.decode())
	}
	s.ep.Finish(p, end, formatError)
}

// decode turns the picks into a plan in the benchmark's fields. Where one is
// follows from the transport taken, so a plan that never flies home fails the
// route check, as it should.
func (s *Session) decode() []travel.Day {
	out := make([]travel.Day, s.w.days)
	at := s.q.org
	for d := range out {
		day := &out[d]
		*day = travel.Day{Day: d + 1, Transportation: "-", Breakfast: "-", Lunch: "-", Dinner: "-", Attraction: "-", Accommodation: "-"}
		from := at
		for i, p := range s.picks {
			if p.slot/slotsPerDay != d {
				continue
			}
			if p.slot%slotsPerDay == slotRide {
				day.Transportation, at = s.ride(i, p, from)
				continue
			}
			*field(day, p.slot%slotsPerDay) = s.item(i, p, *field(day, p.slot%slotsPerDay), at)
		}
		day.City = s.w.cities[at].Name
		if at != from {
			day.City = fmt.Sprintf("from %s to %s", s.w.cities[from].Name, s.w.cities[at].Name)
		}
	}
	return out
}

func field(d *travel.Day, slot int) *string {
	return [...]*string{slotBreakfast: &d.Breakfast, slotLunch: &d.Lunch, slotDinner: &d.Dinner,
		slotSight: &d.Attraction, slotHotel: &d.Accommodation}[slot]
}

// ride writes the i-th pick as transport and returns where it ends.
func (s *Session) ride(i int, p pickOf, from int) (string, int) {
	if p.row < rideTaxi {
		to, mode := driven(p.row)
		return s.drive(from, to, mode == modeTaxi), to
	}
	if p.row < 0 {
		if t, strange := s.strange[i]; strange {
			return "Flight Number: " + s.unseen(t), from
		}
		to := s.q.dest
		if from == s.q.dest {
			to = s.q.org
		}
		return s.drive(from, to, p.row == rideTaxi), to
	}
	r := &s.w.rows[p.row]
	if r.kind != kindFlight {
		return r.name, from
	}
	return r.text, r.city
}

func (s *Session) drive(from, to int, taxi bool) string {
	word, rd, cost := "Self-driving", s.w.road(from, to), ""
	if taxi {
		word = "Taxi"
	}
	if rd.ok {
		d, _ := s.w.Travel.Distance(s.w.cities[from].Name, s.w.cities[to].Name)
		price, _ := travel.DriveCost(d, s.q.People)
		if taxi {
			price, _ = travel.TaxiCost(d, s.q.People)
		}
		cost = fmt.Sprintf(", duration: %s, distance: %s, cost: %g", rd.duration, rd.distance, price)
	}
	return fmt.Sprintf("%s, from %s to %s%s", word, s.w.cities[from].Name, s.w.cities[to].Name, cost)
}

// item writes the i-th pick as "Name, City"; attractions of a day add up. at is
// where the traveller is.
func (s *Session) item(i int, p pickOf, have string, at int) string {
	var text string
	if t, strange := s.strange[i]; strange {
		if !s.w.long() {
			at = s.q.dest
		}
		text = s.unseen(t) + ", " + s.w.cities[at].Name
	} else {
		r := &s.w.rows[p.row]
		text = r.name + ", " + s.w.cities[r.city].Name
	}
	if p.slot%slotsPerDay != slotSight {
		return text
	}
	if have == "-" {
		have = ""
	}
	return have + text + ";"
}

// unseen names an id that no tool ever returned: an invented place.
func (s *Session) unseen(t Token) string { return fmt.Sprintf("unseen #%d", t-TokID+1) }

// thoughtAt is the thought that a turn opens with, in words.
func (s *Session) thoughtAt(start, stop int) string {
	if s.cfg.Think == 0 || s.script.Tokens[start] != TokThink {
		return ""
	}
	end := start + 1
	for end < stop && s.script.Tokens[end] != TokThink {
		end++
	}
	return Show(s.script.Tokens[start+1 : end])
}

// Judge plays the trace in a clean environment and returns the strict verdicts.
func (w *World) Judge(t Trace) travel.Judgement {
	s := w.NewSession(t.Query, SessionConfig{})
	s.Play(t)
	return s.Judgement()
}

// Play feeds the trace to a session, as if a policy had said it. The trace's
// own failures are left out: failures are the session's.
func (s *Session) Play(t Trace) {
	for _, k := range t.calls {
		if k.fail {
			continue
		}
		for again := true; again && !s.done; {
			for _, tok := range s.c.encodeCall(k) {
				obs, _ := s.Feed(tok)
				again = len(obs) > 0 && obs[0] == TokFail
			}
		}
	}
	for _, tok := range s.c.encodePlan(t.picks) {
		s.Feed(tok)
	}
}

// Trajectory returns the record of a finished episode. entropy and logprobs
// hold one value for each token the policy wrote, in order, or are nil. The
// caller fills in what the sandbox does not know: id, phase, step, group,
// reward and advantage.
func (s *Session) Trajectory(entropy, logprobs []float32) trainer.Trajectory {
	t := s.ep.Trajectory()
	t.Overlong = s.Overlong()
	t.Tokens = len(s.script.Tokens)
	own := 0
	for i, start := range s.starts {
		stop := len(s.script.Tokens)
		if i+1 < len(s.starts) {
			stop = s.starts[i+1]
		}
		said := start
		for said < stop && s.script.Own[said] {
			said++
		}
		if i >= len(t.Turns) {
			t.Turns = append(t.Turns, trainer.Turn{})
		}
		turn := &t.Turns[i]
		turn.Tokens = said - start
		turn.Think = s.thoughtAt(start, said)
		if turn.Call == nil {
			turn.Raw = Show(s.script.Tokens[start:said])
		}
		if turn.Observe != nil {
			turn.Observe.Tokens = stop - said
		}
		if entropy != nil {
			turn.Entropy = entropy[own : own+said-start]
			turn.LogProbs = logprobs[own : own+said-start]
		}
		own += said - start
	}
	if n := len(s.starts); n > 0 && s.inPlan {
		t.Answer = Show(s.script.Tokens[s.starts[n-1]:])
	}
	t.Generated = own
	return t
}
