package qa

import (
	"slices"
	"testing"

	"alidade/sandbox/travel/compact"
)

// play feeds what the policy says in a script to a fresh session.
func play(w *World, q *Question, labels uint64, script compact.Script) *Session {
	s := w.NewSession(q, Config{Labels: labels})
	for i, t := range script.Tokens {
		if script.Own[i] {
			s.Feed(t)
		}
	}
	return s
}

func TestWrittenAnswersAreRight(t *testing.T) {
	w := NewWorld(3)
	held, train := w.Split(80, 60)
	if len(held) != 80 || len(train) != 60 {
		t.Fatalf("%d held out, %d to train on", len(held), len(train))
	}
	count := map[string]int{}
	for i, q := range append(slices.Clone(held), train...) {
		count[q.Kind]++
		script := w.Write(q, uint64(i), 0)
		s := play(w, q, uint64(i), script)
		if !s.Correct() || s.FormatError() != "" || !slices.Equal(s.Script().Tokens, script.Tokens) {
			t.Fatalf("%s %q: %s is wrong: %s", q.Kind, q.Text, compact.Show(script.Tokens), s.FormatError())
		}
		if p := s.Prompt(); p[len(p)-1] != compact.TokGo || len(p) > 6 {
			t.Fatalf("prompt %s", compact.Show(p))
		}
		tr := s.Trajectory(nil, nil)
		if !tr.Success || tr.ToolCalls != len(q.calls) || len(tr.Turns) != len(q.calls)+1 {
			t.Fatalf("record %+v", tr)
		}
	}
	for _, k := range Kinds {
		if count[k] < 20 {
			t.Errorf("%d questions of kind %s", count[k], k)
		}
	}
	for _, q := range train {
		if q.kind == unseen {
			t.Error("a trace shows the unseen tool")
		}
	}
}

func TestWrongAnswersAndBrokenForm(t *testing.T) {
	w := NewWorld(3)
	held, _ := w.Split(8, 0)
	for i, q := range held {
		script := w.Write(q, 5, 0)
		n := len(script.Tokens)
		for name, change := range map[string]func([]compact.Token){
			"another id":   func(x []compact.Token) { x[n-2] = compact.IDWord((int(x[n-2]-compact.TokID) + 1) % compact.IDTokens) },
			"no end":       func(x []compact.Token) { x[n-1] = compact.TokGo },
			"id not shown": func(x []compact.Token) { x[n-2] = compact.TokGo },
		} {
			changed := compact.Script{Tokens: slices.Clone(script.Tokens), Own: script.Own}
			change(changed.Tokens)
			if s := play(w, q, 5, changed); s.Correct() {
				t.Errorf("question %d: %s counts as right", i, name)
			}
		}
		s := w.NewSession(q, Config{MaxTurns: 2})
		for range 2 {
			s.Feed(compact.ToolWord(compact.ToolHotels))
			s.Feed(compact.CityWord(0))
		}
		if _, done := s.Feed(compact.TokPlan); !done || s.Correct() {
			t.Errorf("question %d goes on after its last turn", i)
		}
	}
}

// The panel, its labels and its world follow from the seed.
func TestQuestionsRepeat(t *testing.T) {
	a, _ := NewWorld(1).Split(40, 10)
	b, _ := NewWorld(1).Split(40, 99)
	c, _ := NewWorld(2).Split(40, 10)
	for i := range a {
		if a[i].Key != b[i].Key {
			t.Fatal("the panel depends on how many traces there are")
		}
	}
	if a[0].Key == c[0].Key {
		t.Error("two seeds, one question")
	}
}

// A renamed tool answers to the word in the prompt, which is never that of the
// unseen tool, and nothing else of the question changes.
func TestRenamedTools(t *testing.T) {
	w := NewWorld(3)
	held, train := w.Split(40, 60)
	seen := map[compact.Token]bool{}
	for i, q := range append(slices.Clone(held), train...) {
		plain, script := w.Write(q, uint64(i), 0), w.Write(q, uint64(i), 1)
		name := script.Tokens[0]
		seen[name] = true
		if q.kind == unseen {
			if !slices.Equal(plain.Tokens, script.Tokens) {
				t.Fatal("the unseen tool was renamed")
			}
			continue
		}
		if name == plain.Tokens[0] || name == compact.SpareWord() || len(script.Tokens) != len(plain.Tokens) {
			t.Fatalf("renamed %s to %s", compact.Show(plain.Tokens), compact.Show(script.Tokens))
		}
		for k := range script.Tokens {
			if same := script.Tokens[k] == plain.Tokens[k]; !same && script.Tokens[k] != name {
				t.Fatalf("token %d of %s became %s", k, compact.Show(plain.Tokens), compact.Show(script.Tokens))
			}
		}
		s := w.NewSession(q, Config{Labels: uint64(i), Renamed: 1})
		for k, tok := range script.Tokens {
			if script.Own[k] {
				s.Feed(tok)
			}
		}
		if !s.Correct() || !s.Called() || s.FormatError() != "" {
			t.Fatalf("%s is wrong: %s", compact.Show(script.Tokens), s.FormatError())
		}
		// In a session that has not renamed it the word is no tool.
		if s := play(w, q, uint64(i), script); s.Correct() || s.Called() {
			t.Fatalf("%s is right where %s is no tool", compact.Show(script.Tokens), compact.Show(script.Tokens[:1]))
		}
	}
	if len(seen) < 25 {
		t.Errorf("only %d names", len(seen))
	}
}

// A look-up counts as called if tool and city are those of the question.
func TestCalled(t *testing.T) {
	w := NewWorld(3)
	held, _ := w.Split(16, 0)
	for _, q := range held {
		for name, c := range map[string]struct {
			tool compact.Token
			city int
			want bool
		}{
			"right":        {q.toolWord(), q.city[0], true},
			"another tool": {compact.ToolWord(compact.ToolHotels), q.city[0], q.tool == compact.ToolHotels},
			"another city": {q.toolWord(), -1, false},
		} {
			s := w.NewSession(q, Config{Labels: 4})
			about, ok := s.label[c.city]
			for city, label := range s.label {
				if !ok && city != q.city[0] {
					about = label
				}
			}
			s.Feed(c.tool)
			s.Feed(about)
			if s.Called() != c.want {
				t.Errorf("%s, %s: called is %v", q.Kind, name, s.Called())
			}
		}
	}
}

// With Known the unseen tool answers to a word that no trace calls a tool by.
func TestUnseenToolByAKnownWord(t *testing.T) {
	other, kept := names()
	for _, w := range kept {
		if slices.Contains(other, w) {
			t.Fatalf("%s is among the names in traces", compact.Show([]compact.Token{w}))
		}
	}
	if len(other) != 43 || len(kept) != 8 {
		t.Errorf("%d names, %d kept", len(other), len(kept))
	}
	w := NewWorld(3)
	held, _ := w.Split(80, 0)
	seen := map[compact.Token]bool{}
	for i, q := range held {
		s := w.NewSession(q, Config{Labels: uint64(i), Known: true})
		name := s.Prompt()[0]
		if q.kind != unseen {
			if name != q.toolWord() {
				t.Fatalf("a %s question calls its tool %s", q.Kind, compact.Show([]compact.Token{name}))
			}
			continue
		}
		if !slices.Contains(kept, name) {
			t.Fatalf("the unseen tool is called %s", compact.Show([]compact.Token{name}))
		}
		seen[name] = true
		s.Feed(name)
		s.Feed(s.label[q.city[0]])
		for _, tok := range []compact.Token{compact.TokPlan, q.slot(), w.rows[q.answer].keyWord(), s.shown[q.answer], compact.TokEnd} {
			s.Feed(tok)
		}
		if !s.Called() || !s.Correct() {
			t.Fatalf("%s: called %v, right %v: %s", compact.Show(s.Script().Tokens), s.Called(), s.Correct(), s.FormatError())
		}
	}
	if len(seen) < 5 {
		t.Errorf("only %d names for it", len(seen))
	}
}
