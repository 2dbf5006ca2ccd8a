package qa

import (
	"fmt"

	"alidade/sandbox/travel"
	"alidade/sandbox/travel/compact"
	"alidade/trainer"
)

// Config bounds an episode.
type Config struct {
	Labels    uint64 // seed of the labelling
	MaxTurns  int    // 0 = 6
	MaxTokens int    // 0 = 128

	// Renamed is the probability that the question names its tool by another
	// word, drawn anew for each labelling, and that the tool answers to it.
	Renamed float64

	// Known has the unseen tool called by a word that policies have learned to
	// write, for other things, instead of one that they have never written.
	Known bool
}

// Session is one question answered token by token, like [compact.Session].
// Not safe for concurrent use.
type Session struct {
	w   *World
	q   *Question
	cfg Config

	tool compact.Token // the word for the question's tool

	label  map[int]compact.Token // city → token
	town   map[compact.Token]int
	ids    []int
	shown  map[int]compact.Token // row → token
	byID   map[compact.Token]int
	script compact.Script

	turn   []compact.Token
	answer bool // the answer has begun
	turns  []trainer.Turn
	starts []int

	called      bool // what the question is about was looked up
	done        bool
	end         string
	formatError string
	picked      compact.Token // 0 = none
	row         int           // -1 = none
}

// NewSession opens an episode for q.
func (w *World) NewSession(q *Question, cfg Config) *Session {
	if cfg.MaxTurns == 0 {
		cfg.MaxTurns = 6
	}
	if cfg.MaxTokens == 0 {
		cfg.MaxTokens = 128
	}
	r := compact.Rand(cfg.Labels, forLabels)
	s := &Session{w: w, q: q, cfg: cfg, row: -1, label: map[int]compact.Token{}, town: map[compact.Token]int{},
		shown: map[int]compact.Token{}, byID: map[compact.Token]int{}, ids: r.Perm(compact.IDTokens)}
	chosen := []int{q.city[0]}
	if q.city[1] != q.city[0] {
		chosen = append(chosen, q.city[1])
	}
	for _, c := range r.Perm(cities) {
		if len(chosen) < compact.CityTokens && c != q.city[0] && c != q.city[1] {
			chosen = append(chosen, c)
		}
	}
	for i, at := range r.Perm(compact.CityTokens) {
		t := compact.CityWord(at)
		s.label[chosen[i]], s.town[t] = t, chosen[i]
	}
	s.tool = q.toolWord()
	s.rename()
	s.script.Say(false, s.prompt()...)
	return s
}

// rename gives the question's tool another name, if the configuration says so.
func (s *Session) rename() {
	r := compact.Rand(s.cfg.Labels, forNames)
	other, kept := names()
	switch {
	case s.q.tool < 0 && s.cfg.Known:
		s.tool = kept[r.IntN(len(kept))]
	case s.q.tool >= 0 && s.cfg.Renamed > 0 && r.Float64() < s.cfg.Renamed:
		s.tool = other[r.IntN(len(other))]
	}
}

// names are words that can stand for a tool; none begins a call otherwise. Those
// in kept are for the unseen tool alone: policies write them in calls and plans,
// and no trace ever calls a tool by them.
func names() (other, kept []compact.Token) {
	for _, family := range []struct {
		word func(int) compact.Token
		n    int
	}{{compact.DateWord, compact.DateTokens}, {compact.CuisineWord, compact.Cuisines}, {compact.SightWord, compact.SightKinds}, {compact.HotelPriceWord, compact.PriceLevels}} {
		for i := range family.n {
			if i%4 == 2 {
				kept = append(kept, family.word(i))
			} else {
				other = append(other, family.word(i))
			}
		}
	}
	for i := range compact.PriceLevels { // policies never write these
		other = append(other, compact.DrivePriceWord(i), compact.MealPriceWord(i))
	}
	return other, kept
}

// toolWord names the tool of a question: the unseen one has a word that no
// call of a trip uses.
func (q *Question) toolWord() compact.Token {
	if q.tool < 0 {
		return compact.SpareWord()
	}
	return compact.ToolWord(q.tool)
}

func (q *Question) slot() compact.Token {
	switch q.tool {
	case compact.ToolHotels:
		return compact.HotelSlot()
	case compact.ToolRestaurants:
		return compact.MealSlot()
	}
	return compact.SightSlot()
}

// prompt is the tool, the slot of the answer, and what is asked.
func (s *Session) prompt() []compact.Token {
	q := s.q
	p := []compact.Token{s.tool, q.slot(), s.label[q.city[0]]}
	switch q.kind {
	case twoHop:
		p = append(p, q.hint, s.label[q.city[1]])
	case comparison:
		p = append(p, s.label[q.city[1]])
	default:
		p = append(p, q.hint)
	}
	return append(p, compact.TokGo)
}

// Prompt returns the tokens the policy starts from.
func (s *Session) Prompt() []compact.Token {
	n := 0
	for n < len(s.script.Own) && !s.script.Own[n] && (n == 0 || s.script.Tokens[n-1] != compact.TokGo) {
		n++
	}
	return s.script.Tokens[:n]
}

// Script returns the episode so far.
func (s *Session) Script() compact.Script { return s.script }

// Called says whether the first thing that the question needs was looked up:
// with the tool that it names, about the city that it names.
func (s *Session) Called() bool { return s.called }

// Correct says whether the answer is right.
func (s *Session) Correct() bool { return s.done && s.row == s.q.answer }

// FormatError says why the episode broke the language's grammar, or "".
func (s *Session) FormatError() string { return s.formatError }

// Answer is what was answered, for counting votes; "" for no answer.
func (s *Session) Answer() string {
	switch {
	case s.row >= 0:
		return s.w.rows[s.row].name
	case s.picked != 0:
		return "nothing"
	}
	return ""
}

// Feed takes the policy's next token and returns what it reads before it
// speaks again.
func (s *Session) Feed(t compact.Token) (observed []compact.Token, done bool) {
	if s.done {
		return nil, true
	}
	if len(s.turn) == 0 && !s.answer {
		s.starts = append(s.starts, len(s.script.Tokens))
		s.turns = append(s.turns, trainer.Turn{})
	}
	s.script.Say(true, t)
	s.turn = append(s.turn, t)
	if s.answer || t == compact.TokPlan && len(s.turn) == 1 {
		s.answer = true
		s.reply(t)
	} else {
		observed = s.act(t)
		s.script.Say(false, observed...)
	}
	if !s.done && len(s.script.Tokens) >= s.cfg.MaxTokens {
		s.finish(travel.EndContext, "")
		observed = nil
	}
	return observed, s.done
}

// reply takes a token of the answer: plan, slot, key, id, end.
func (s *Session) reply(t compact.Token) {
	switch len(s.turn) {
	case 1:
	case 2:
		if !compact.IsSlot(t) {
			s.wrong(t, "a slot")
		}
	case 3:
		if !compact.IsKey(t) {
			s.wrong(t, "a key")
		}
	case 4:
		if t < compact.TokID || t >= compact.VocabSize {
			s.wrong(t, "an id")
			return
		}
		s.picked = t
		if row, ok := s.byID[t]; ok {
			s.row = row
		}
	default:
		if t != compact.TokEnd {
			s.row = -1
			s.wrong(t, "the end")
			return
		}
		s.finish(travel.EndAnswer, "")
	}
}

// act takes a token of a call.
func (s *Session) act(t compact.Token) []compact.Token {
	head := s.turn[0]
	args := 1
	switch {
	case head == compact.SpareWord(), head == s.tool:
	case head == compact.ToolWord(compact.ToolFlights), head == compact.ToolWord(compact.ToolDistance):
		args = 3
	case head >= compact.ToolWord(0) && head < compact.ToolWord(compact.Tools):
	default:
		s.wrong(t, "a tool or the answer")
		return nil
	}
	if len(s.turn) <= args {
		return nil
	}
	observed := s.look(head, s.turn[1])
	turn := &s.turns[len(s.turns)-1]
	turn.Call = &trainer.Call{Tool: compact.Show(s.turn[:1]), Args: []trainer.Arg{{Name: "about", Value: compact.Show(s.turn[1:])}}}
	turn.Observe = &trainer.Observed{Text: compact.Show(observed), Tokens: len(observed)}
	s.turn = s.turn[:0]
	if len(s.turns) >= s.cfg.MaxTurns {
		s.finish(travel.EndTurns, "")
	}
	return observed
}

// look answers a call. Flights and distances are not part of this world.
func (s *Session) look(head, about compact.Token) []compact.Token {
	city, known := s.town[about]
	what := map[compact.Token]kind{compact.ToolWord(compact.ToolHotels): hotel, compact.ToolWord(compact.ToolRestaurants): restaurant,
		compact.ToolWord(compact.ToolAttractions): attraction, compact.SpareWord(): event}
	k, ok := what[head]
	if head == s.tool {
		k, ok = s.q.calls[0].kind, true
	}
	if !known || !ok {
		return []compact.Token{compact.TokNone}
	}
	s.called = s.called || call{k, city} == s.q.calls[0]
	var out []compact.Token
	for _, i := range s.w.city[city][k] {
		r := &s.w.rows[i]
		switch k {
		case hotel:
			out = append(out, compact.HotelWords(r.words[0], r.words[1], r.words[2])...)
		case restaurant:
			out = append(out, compact.MealPriceWord(r.level))
		}
		out = append(out, r.keyWord(), s.show(i))
	}
	return append(out, compact.TokRows)
}

// show gives a row an id.
func (s *Session) show(row int) compact.Token {
	if t, ok := s.shown[row]; ok {
		return t
	}
	t := compact.IDWord(s.ids[len(s.shown)%len(s.ids)])
	s.shown[row], s.byID[t] = t, row
	return t
}

func (s *Session) wrong(t compact.Token, want string) {
	s.finish(travel.EndFormat, fmt.Sprintf("token %d: %q where %s was due", len(s.script.Tokens), compact.Show([]compact.Token{t}), want))
}

func (s *Session) finish(end, formatError string) {
	s.done, s.end, s.formatError = true, end, formatError
	if end != travel.EndAnswer {
		s.row = -1
	}
}

// Write writes the question answered as it should be; renamed is
// [Config.Renamed].
func (w *World) Write(q *Question, labels uint64, renamed float64) compact.Script {
	s := w.NewSession(q, Config{Labels: labels, Renamed: renamed})
	for _, c := range q.calls {
		s.Feed(s.tool)
		s.Feed(s.label[c.city])
	}
	for _, t := range []compact.Token{compact.TokPlan, q.slot(), w.rows[q.answer].keyWord(), s.shown[q.answer], compact.TokEnd} {
		s.Feed(t)
	}
	return s.script
}

// Trajectory returns the record of a finished episode; entropy and logprobs
// have a value for each token the policy wrote, or are nil. The caller fills
// in who sampled it and why.
func (s *Session) Trajectory(entropy, logprobs []float32) trainer.Trajectory {
	t := trainer.Trajectory{
		Query: trainer.Query{Hash: s.q.Key, Text: s.q.Text, Level: s.q.Kind}, Turns: s.turns,
		Success: s.Correct(), FormatError: s.formatError, Overlong: s.end == travel.EndContext, End: s.end,
		Tokens: len(s.script.Tokens), Answer: s.Answer(), Labels: map[string]string{"family": "question answering"},
	}
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
		turn := &t.Turns[i]
		turn.Tokens = said - start
		if turn.Call == nil {
			turn.Raw = compact.Show(s.script.Tokens[start:said])
		} else {
			t.ToolCalls++
		}
		if entropy != nil {
			turn.Entropy, turn.LogProbs = entropy[own:own+said-start], logprobs[own:own+said-start]
		}
		own += said - start
	}
	t.Generated = own
	return t
}
