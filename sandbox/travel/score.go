package travel

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// ScoreOptions says what [ScoreFiles] reads and writes.
type ScoreOptions struct {
	DB      string  // folder of tables in TravelPlanner's layout
	Queries string  // JSONL of queries
	Plans   string  // JSONL of plans: pair_id, query_id, plan; or a submission: idx, plan
	Profile Profile // "" = strict
	Out     string  // JSONL, a line a pair; "-" = standard output
	Metrics string  // JSON with the six rates; "" = none
	Cache   string  // folder for the ready world, see [OpenWorld]; "" = read the tables
}

// ScoreFiles judges every plan of a file and writes the verdicts, and the six
// rates of the whole set if asked for. Pairs on which the public program stops
// are in no rate, as it would not get to the end of such a file.
func ScoreFiles(o ScoreOptions) error {
	if o.Profile == "" {
		o.Profile = Strict
	}
	if _, err := ParseProfile(string(o.Profile)); err != nil {
		return err
	}
	w, _, err := LoadWorldCached(o.DB, o.Cache)
	if err != nil {
		return err
	}
	pairs, err := LoadPairs(o.Queries, o.Plans)
	if err != nil {
		return err
	}
	scored := make([]Scored, len(pairs))
	for i := range pairs {
		scored[i] = Scored{pairs[i], Judge(w, pairs[i].Query, pairs[i].Plan, o.Profile)}
	}
	err = writeFile(o.Out, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		for i := range scored {
			if err := enc.Encode(scored[i].line()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write verdicts: %w", err)
	}
	if o.Metrics == "" {
		return nil
	}
	err = writeFile(o.Metrics, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", " ")
		return enc.Encode(summarise(o.Profile, scored))
	})
	if err != nil {
		return fmt.Errorf("write metrics: %w", err)
	}
	return nil
}

// writeFile writes through a temporary file beside the target, so that a
// failed run leaves no half of it.
func writeFile(path string, write func(io.Writer) error) error {
	if path == "-" {
		return write(os.Stdout)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".score-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once it is renamed
	b := bufio.NewWriter(f)
	if err = write(b); err == nil {
		err = b.Flush()
	}
	if err == nil {
		err = f.Chmod(0o644)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}

// Pair is a plan with its query.
type Pair struct {
	ID    string
	Query Query
	Plan  Plan
}

// Scored is a pair with its judgement.
type Scored struct {
	Pair
	Judgement Judgement
}

// LoadPairs joins plans with their queries: by query_id, else by idx, else by
// their order. Both files are JSONL.
func LoadPairs(queries, plans string) ([]Pair, error) {
	lines, err := LoadQueryLines(queries)
	if err != nil {
		return nil, err
	}
	byID := make(map[string]*Query, len(lines))
	for i := range lines {
		byID[lines[i].ID] = &lines[i].Query
	}
	var pairs []Pair
	err = eachLine(plans, func(n int, src []byte) error {
		v, err := ParseValue(src)
		if err != nil {
			return err
		}
		if v.Kind != Object {
			return fmt.Errorf("the line is %s, must be an object with a plan", v.Kind)
		}
		p := Pair{ID: firstOf(v, "pair_id", "idx", "query_id"), Plan: PlanOf(v.Get("plan"))}
		if p.ID == "" {
			p.ID = strconv.Itoa(n)
		}
		id := firstOf(v, "query_id", "idx")
		q := byID[id]
		if q == nil && id == "" && len(pairs) < len(lines) {
			q = &lines[len(pairs)].Query
		}
		if q == nil {
			return fmt.Errorf("query_id is %q, must be the id of a query in %s", clip(id), queries)
		}
		p.Query = *q
		pairs = append(pairs, p)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load plans: %w", err)
	}
	return pairs, nil
}

func firstOf(v Value, keys ...string) string {
	for _, k := range keys {
		if x := v.Get(k); x.Kind == String && x.Str != "" || x.Kind == Number {
			return x.show()
		}
	}
	return ""
}

// scoredLine is one line of output. A verdict is [true|false|null, message]
// or ["raises", exception].
type scoredLine struct {
	PairID      string            `json:"pair_id"`
	Delivered   bool              `json:"delivered"`
	Outcome     string            `json:"outcome"`
	Raised      *raisedAt         `json:"raised"`
	Commonsense map[string][2]any `json:"commonsense"`
	Hard        map[string][2]any `json:"hard"`
	Cost        *float64          `json:"cost"`
	FinalPass   bool              `json:"final_pass"`
}

type raisedAt struct {
	In         string `json:"in"`
	Constraint string `json:"constraint"`
	Exception  string `json:"exception"`
}

func (s *Scored) line() scoredLine {
	j := &s.Judgement
	l := scoredLine{PairID: s.ID, Delivered: j.Delivered, Outcome: j.outcome(), Cost: j.Cost, FinalPass: j.Success}
	if !j.Delivered {
		return l
	}
	l.Commonsense = map[string][2]any{}
	if j.GateOpen {
		l.Hard = map[string][2]any{}
	}
	for i := range j.Verdicts {
		v := &j.Verdicts[i]
		if v.Check == j.RaisedAt {
			l.Raised = &raisedAt{v.Family, v.Check, j.Raised}
		}
		switch {
		case i < nCommonsense:
			l.Commonsense[v.Check] = pairForm(v.Outcome, v.Value, v.Reason)
		case j.GateOpen:
			l.Hard[v.Check] = pairForm(v.Outcome, v.Value, v.Reason)
		}
	}
	return l
}

func pairForm(outcome, value, reason string) [2]any {
	switch outcome {
	case OutcomePass:
		return [2]any{true, nil}
	case OutcomeFail:
		return [2]any{false, reason}
	case OutcomeRaises:
		return [2]any{"raises", value}
	}
	return [2]any{nil, nil}
}

// summary is the metrics file.
type summary struct {
	Profile  Profile               `json:"profile"`
	Excluded []string              `json:"excluded_because_the_program_raises"`
	setOf                          // the whole file
	Sets     map[string]setOf      `json:"sets"` // all, easy, medium, hard
	Star     map[string]starScores `json:"agent_star,omitempty"`
}

type setOf struct {
	Pairs   int                                               `json:"pairs"`
	Metrics map[string]rateOf                                 `json:"metrics"`
	Record  map[string]map[string]map[string]map[string]Tally `json:"by_level_and_days"`
}

type rateOf struct {
	Passed int     `json:"passed"`
	Total  int     `json:"total"`
	Rate   float64 `json:"rate"`
}

func summarise(pr Profile, scored []Scored) summary {
	s := summary{Profile: pr, Excluded: []string{}, Sets: map[string]setOf{}}
	var kept []Scored
	for _, x := range scored {
		if x.Judgement.Raised != "" {
			s.Excluded = append(s.Excluded, x.ID)
			continue
		}
		kept = append(kept, x)
	}
	slices.Sort(s.Excluded)
	s.setOf = setFor(kept)
	for _, level := range []string{"all", "easy", "medium", "hard"} {
		part := kept
		if level != "all" {
			part = nil
			for _, x := range kept {
				if x.Query.Level == level {
					part = append(part, x)
				}
			}
		}
		s.Sets[level] = setFor(part)
		if pr == Star {
			if s.Star == nil {
				s.Star = map[string]starScores{}
			}
			s.Star[level] = starFor(part)
		}
	}
	return s
}

func setFor(scored []Scored) setOf {
	var m Metrics
	for i := range scored {
		m.Add(&scored[i].Query, scored[i].Judgement)
	}
	rate := func(r Rate) rateOf { return rateOf{r.Passed, r.Total, r.Value()} }
	return setOf{Pairs: len(scored), Record: m.Record(), Metrics: map[string]rateOf{
		"delivery": rate(m.Delivery), "commonsense_micro": rate(m.CSMicro), "commonsense_macro": rate(m.CSMacro),
		"hard_micro": rate(m.HardMicro), "hard_macro": rate(m.HardMacro), "final": rate(m.Final),
	}}
}

// starScores are the figures that Agent-STAR's script prints for a set.
type starScores struct {
	Pairs   int               `json:"pairs"`
	Metrics map[string]string `json:"metrics"`
	Count   int               `json:"hard_micro_count"`
}

// starBase is the denominator that script uses for every set but the train set.
const starBase = 420

func starFor(scored []Scored) starScores {
	s := starScores{Pairs: len(scored)}
	var csMacro, csMicro, hardMacro, hardMicro, success float64
	for i := range scored {
		j := &scored[i].Judgement
		csMacro, csMicro = csMacro+j.CSMacro, csMicro+j.CSMicro
		hardMacro, hardMicro = hardMacro+j.HardMacro, hardMicro+j.HardMicro
		success += number(j.Success)
		for c := nCommonsense; j.GateOpen && c < int(nChecks); c++ {
			if j.Verdicts[c].Outcome == OutcomePass {
				s.Count++
			}
		}
	}
	share := func(sum, n float64) string { return percent(sum / max(n, 1)) }
	n := float64(len(scored))
	s.Metrics = map[string]string{
		"commonsense_macro_score": share(csMacro, n), "commonsense_micro_score": share(csMicro, n),
		"hard_macro_score": share(hardMacro, n), "hard_micro_score_case_avg": share(hardMicro, n),
		"success_pass": share(success, n), "hard_micro_score": share(float64(s.Count), starBase),
	}
	return s
}

// percent rounds to two places and drops zeros at the end, but one.
func percent(x float64) string {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(x*100, 'f', 2, 64), 64)
	if r == math.Trunc(r) {
		return strconv.FormatFloat(r, 'f', 1, 64) + "%"
	}
	return strconv.FormatFloat(r, 'f', -1, 64) + "%"
}
