package travel

import "strconv"

// Rate is a share with its denominator.
type Rate struct {
	Passed, Total int
}

// Value is Passed/Total, 0 of nothing.
func (r Rate) Value() float64 {
	if r.Total == 0 {
		return 0
	}
	return float64(r.Passed) / float64(r.Total)
}

// Metrics are the benchmark's six rates over a set of judged plans. The
// denominators come from the queries and never shrink for plans that are not
// delivered or whose gate is shut. The zero value is an empty set.
type Metrics struct {
	Delivery  Rate // plans delivered
	CSMicro   Rate // commonsense checks passed, of 8 a query
	CSMacro   Rate // plans that pass all 8
	HardMicro Rate // hard checks passed, of 1 + number of wishes a query
	HardMacro Rate // plans with the gate open that fail no hard check
	Final     Rate // plans that pass everything

	cells map[cell]*[nChecks]Tally
}

type cell struct {
	level string
	days  int
}

// Tally counts the verdicts of one check.
type Tally struct {
	True  int  `json:"true"`
	False int  `json:"false"`
	Total *int `json:"total,omitempty"` // queries to which the check applies
}

func (t Tally) equal(o Tally) bool {
	if t.Total == nil || o.Total == nil {
		return t.True == o.True && t.False == o.False && t.Total == o.Total
	}
	return t.True == o.True && t.False == o.False && *t.Total == *o.Total
}

// Add counts one judged plan of a query.
func (m *Metrics) Add(q *Query, j Judgement) {
	m.Delivery.add(j.Delivered)
	m.CSMicro.Total += nCommonsense
	m.HardMicro.Total += q.HardChecks()
	// The benchmark counts a plan's commonsense macro only when it also gets
	// to the hard checks, which every plan that passes all 8 does.
	m.CSMacro.add(j.CSMacro == 1)
	m.HardMacro.add(j.HardMacro == 1)
	m.Final.add(j.Success)
	tallies := m.cell(q)
	for c := Check(0); c < nChecks; c++ {
		t := &tallies[c]
		if applies(c, q) {
			*t.Total++
		}
		if !j.Delivered {
			continue
		}
		switch j.Verdicts[c].Outcome {
		case OutcomePass:
			t.True++
			if int(c) < nCommonsense {
				m.CSMicro.Passed++
			} else if j.Raised == "" {
				m.HardMicro.Passed++
			}
		case OutcomeFail, OutcomeRaises:
			t.False++
		}
	}
}

func (r *Rate) add(passed bool) {
	r.Total++
	if passed {
		r.Passed++
	}
}

func (m *Metrics) cell(q *Query) *[nChecks]Tally {
	if m.cells == nil {
		m.cells = map[cell]*[nChecks]Tally{}
	}
	key := cell{q.Level, q.Days}
	t := m.cells[key]
	if t == nil {
		t = new([nChecks]Tally)
		for i := range t {
			t[i].Total = new(int)
		}
		m.cells[key] = t
	}
	return t
}

// applies tells whether a query asks for a check.
func applies(c Check, q *Query) bool {
	switch c {
	case CheckRoomRule:
		return q.Wish.HouseRule != ""
	case CheckRoomType:
		return q.Wish.RoomType != ""
	case CheckCuisine:
		return len(q.Wish.Cuisine) > 0
	case CheckMode:
		return q.Wish.Transportation != ""
	}
	return true
}

// Record is the detail by family, level, number of days and check's name,
// as the benchmark's scorer prints it: a total stands only where its tables
// have one, and a cell without a single evaluated plan is empty.
func (m *Metrics) Record() map[string]map[string]map[string]map[string]Tally {
	record := map[string]map[string]map[string]map[string]Tally{"Commonsense Constraint": {}, "Hard Constraint": {}}
	for _, levels := range record {
		for _, level := range []string{"easy", "medium", "hard"} {
			levels[level] = map[string]map[string]Tally{"3": {}, "5": {}, "7": {}}
		}
	}
	for key, tallies := range m.cells {
		for c := Check(0); c < nChecks; c++ {
			family := "Commonsense Constraint"
			if int(c) >= nCommonsense {
				family = "Hard Constraint"
			}
			level := record[family][key.level]
			if level == nil {
				level = map[string]map[string]Tally{}
				record[family][key.level] = level
			}
			days := strconv.Itoa(key.days)
			if level[days] == nil {
				level[days] = map[string]Tally{}
			}
			t := tallies[c]
			if !hasTotal(c, key.level) {
				t.Total = nil
			}
			level[days][c.String()] = t
		}
	}
	return record
}

// hasTotal says where the published tables have a total for a hard check.
func hasTotal(c Check, level string) bool {
	switch c {
	case CheckRoomRule, CheckRoomType, CheckCuisine:
		return level == "medium" || level == "hard"
	case CheckMode:
		return level == "hard"
	}
	return true
}
