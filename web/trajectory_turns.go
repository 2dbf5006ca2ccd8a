package web

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"alidade/templates"
	"alidade/trainer"
)

// How much of a trajectory one page carries. What is cut says how much of it
// is shown, and the whole turn is one request away.
const (
	rowsShown   = 4       // table rows before the fold
	rowsInPage  = 60      // table rows sent with the page
	textInPage  = 4_000   // runes of a text sent with the page
	bytesInPage = 600_000 // of turns sent unfolded; later ones come as stubs
	wholeText   = 400_000 // runes of a text in the fragment of one turn
	wholeRows   = 5_000
)

// limits bound how much of a turn is rendered.
type limits struct{ rows, text int }

// turnsOf builds the turns of a trajectory. A turn opens where something went
// wrong or the plan fails because of it; short episodes open all.
func turnsOf(t *trainer.Trajectory, m measure, base string, open map[int]bool) []templates.TurnView {
	views := make([]templates.TurnView, len(t.Turns))
	room, plan := bytesInPage, indexPlan(t.Plan)
	for i := range t.Turns {
		l := limits{rowsInPage, textInPage}
		if room <= 0 {
			l = limits{0, 0}
		}
		v := turnOf(t, plan, m, i, l, base)
		v.Open = open[i+1] || v.Tone != "" || len(t.Turns) <= 6 || v.Final
		room -= turnBytes(v)
		views[i] = v
	}
	return views
}

// turnOf builds one turn within limits.
func turnOf(t *trainer.Trajectory, plan planIndex, m measure, i int, l limits, base string) templates.TurnView {
	turn := t.Turns[i]
	v := templates.TurnView{N: i + 1, Branch: turn.Branch}
	if turn.Tokens > 0 {
		v.Tokens = digits(int64(turn.Tokens)) + " tok"
	}
	if h, ok := meanEntropy(turn); ok {
		v.Tokens += ", H " + fixed(h, 2)
	}
	cut := false
	take := func(s string) string {
		out, c := clip(s, l.text)
		cut = cut || c
		return out
	}
	v.Think = take(turn.Think)
	if l.text > 0 {
		v.Words, v.WordsLeft = wordsOf(t, turn, m)
	}
	if turn.Call != nil {
		v.Tool = turn.Call.Tool
		for _, a := range turn.Call.Args {
			v.Args = append(v.Args, templates.TurnArg{Name: a.Name, Value: take(a.Value)})
		}
		v.Line = argsLine(turn.Call.Args)
	}
	answers := turn.Call == nil && i == len(t.Turns)-1 && t.FormatError == "" && (t.End == "answer" || len(t.Plan) > 0)
	if turn.Raw != "" {
		v.Raw = take(turn.Raw)
		if !answers && turn.Call == nil {
			v.Tone, v.Problem = "bad", "Could not be read as a call or an answer."
		}
		if turn.Call == nil && t.FormatError != "" {
			v.Tone, v.Problem = "bad", "Format error: "+sentence(t.FormatError)
		}
	}
	if turn.Observe != nil {
		observe(&v, t, plan, i, turn.Observe, l, take)
	}
	if answers || turn.Call == nil && turn.Raw == "" {
		v.Final = true
		v.Answer = take(t.Answer)
		v.AnswerOf = "the answer as written"
		if n := len(t.Plan); n > 0 {
			v.AnswerOf = "the plan of " + plural(n, "day", "days") + " as text"
		}
		if n := len(t.Plan); n > 0 {
			v.Result = "plan of " + plural(n, "day", "days")
		}
	}
	if v.Table != nil && v.Table.Left != "" {
		cut = true
	}
	if cut {
		v.LoadURL = fmt.Sprintf("%s/turns/%d", base, i+1)
		if m.by == byAdvantage {
			v.LoadURL += "?tokens=" + byAdvantage
		}
		v.More = "cut here; the whole turn is " + digits(int64(turnSize(turn))) + " bytes"
	}
	return v
}

// observe fills in what came back.
func observe(v *templates.TurnView, t *trainer.Trajectory, plan planIndex, i int, o *trainer.Observed, l limits, take func(string) string) {
	if o.Injected != "" {
		v.Tone = "inj"
		v.Injected = "Injected failure (" + templates.Plain(o.Injected) + "), drawn by the environment" + failureRate(t) + ". Not a format error; it costs one turn."
	}
	if o.Error != "" && o.Injected == "" {
		v.Problem = errorWords(o.Error)
	}
	if len(o.Rows) == 0 || len(o.Columns) == 0 {
		v.Text = take(o.Text)
		v.Result = resultLine(v.Tool, o)
		return
	}
	v.Table = tableOf(plan, i, o, l)
	v.Result = resultLine(v.Tool, o)
	if len(t.Plan) > 0 && len(o.Rows) > 0 && !slices.ContainsFunc(v.Table.Rows, func(r templates.ObsRow) bool { return r.Used }) {
		v.Result += ", none used"
	}
}

func failureRate(t *trainer.Trajectory) string {
	if rate := t.Labels["tool_failure_rate"]; rate != "" {
		return " at rate " + templates.Plain(rate)
	}
	return ""
}

// tableOf lays out an observation's rows: the first few and those the plan
// uses are shown, the rest folds, and rows beyond the limit are left out.
func tableOf(plan planIndex, i int, o *trainer.Observed, l limits) *templates.ObsTable {
	table := &templates.ObsTable{}
	numeric := make([]bool, len(o.Columns))
	for c, name := range o.Columns {
		numeric[c] = numericColumn(o.Rows, c)
		table.Head = append(table.Head, templates.ObsHead{Text: strings.ToLower(strings.ReplaceAll(name, "_", " ")), Numeric: numeric[c]})
	}
	used := usedRows(plan, i+1, o)
	sent := 0
	for r, cells := range o.Rows {
		if !used[r] && sent >= l.rows {
			continue
		}
		sent++
		row := templates.ObsRow{Used: used[r]}
		for c := range o.Columns {
			text := ""
			if c < len(cells) {
				text, _ = clip(cells[c], 400)
				if countColumn(o.Columns[c]) {
					text = strings.TrimSuffix(text, ".0")
				}
			}
			row.Cells = append(row.Cells, templates.ObsCell{Text: text, Numeric: numeric[c]})
		}
		if used[r] || len(table.Rows) < rowsShown || len(o.Rows) <= rowsShown+1 {
			table.Rows = append(table.Rows, row)
		} else {
			table.Folded = append(table.Folded, row)
		}
	}
	if n := len(table.Folded); n > 0 {
		table.Fold = fmt.Sprintf("%s more of %s", digits(int64(n)), digits(int64(len(o.Rows))))
	}
	if left := len(o.Rows) - sent; left > 0 {
		table.Left = plural(left, "row is", "rows are") + " not in the page"
	}
	return table
}

// A planIndex finds the items of a plan quickly: most rows of most tables are
// not in it.
type planIndex struct {
	all    string // every field, one a line
	fields []planItem
}

// planItem is one filled field; from is the turn that showed it, 0 = unknown.
type planItem struct {
	value string
	from  int
}

func indexPlan(days []trainer.Day) planIndex {
	var p planIndex
	var all strings.Builder
	for _, day := range days {
		for field, value := range dayFields(day) {
			if empty(value) {
				continue
			}
			p.fields = append(p.fields, planItem{value, day.Found[field]})
			all.WriteString(value + "\n")
		}
	}
	p.all = all.String()
	return p
}

// uses reports whether the plan takes item from turn n: a field names it that
// this turn is said to have shown, or that nobody said where it came from.
func (p planIndex) uses(item string, n int) bool {
	if len(item) < 2 || !strings.Contains(p.all, item) {
		return false
	}
	for _, f := range p.fields {
		if (f.from == 0 || f.from == n) && mentions(f.value, item) {
			return true
		}
	}
	return false
}

// usedRows says which rows of turn n's observation the plan takes something
// from.
func usedRows(plan planIndex, n int, o *trainer.Observed) map[int]bool {
	used := map[int]bool{}
	name := nameColumn(o)
	if name < 0 {
		return used
	}
	for r, cells := range o.Rows {
		if name < len(cells) && plan.uses(cells[name], n) {
			used[r] = true
		}
	}
	return used
}

// mentions reports whether value names the item: as a whole word sequence,
// so that "F35" is not found in "F3573120".
func mentions(value, item string) bool {
	for at := 0; ; {
		i := strings.Index(value[at:], item)
		if i < 0 {
			return false
		}
		i += at
		end := i + len(item)
		if (i == 0 || !wordByte(value[i-1])) && (end == len(value) || !wordByte(value[end])) {
			return true
		}
		at = i + 1
	}
}

func wordByte(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80
}

// dayFields are the fields of a plan's day by name.
func dayFields(d trainer.Day) map[string]string {
	return map[string]string{
		"transportation": d.Transportation, "breakfast": d.Breakfast, "lunch": d.Lunch,
		"dinner": d.Dinner, "attraction": d.Attraction, "accommodation": d.Accommodation,
	}
}

// nameColumn is the column that identifies a row: one called like a name or
// a number, else the first.
func nameColumn(o *trainer.Observed) int {
	for c, col := range o.Columns {
		switch strings.ToLower(col) {
		case "name", "flight", "flight number", "flight_number", "number", "city":
			return c
		}
	}
	return min(len(o.Columns), 1) - 1
}

// numericColumn reports whether every filled cell of column c is a number.
func numericColumn(rows [][]string, c int) bool {
	seen := false
	for i, r := range rows {
		if i == 200 {
			break
		}
		if c >= len(r) || r[c] == "" {
			continue
		}
		if _, err := strconv.ParseFloat(strings.ReplaceAll(strings.Trim(r[c], "$ "), ",", ""), 64); err != nil {
			return false
		}
		seen = true
	}
	return seen
}

// countColumn reports whether a column holds whole numbers by its meaning: the
// published tables write them as "2.0".
func countColumn(name string) bool {
	switch strings.ReplaceAll(strings.ToLower(name), "_", " ") {
	case "minimum nights", "maximum occupancy":
		return true
	}
	return false
}

// hitNouns name what a tool returns.
var hitNouns = map[string][2]string{
	"SearchFlight":        {"flight", "flights"},
	"SearchAccommodation": {"place", "places"},
	"SearchRestaurant":    {"restaurant", "restaurants"},
	"SearchAttraction":    {"sight", "sights"},
	"SearchCity":          {"city", "cities"},
}

// resultLine sums up an observation: "4 flights, 195–301 $".
func resultLine(tool string, o *trainer.Observed) string {
	if o.Injected != "" {
		return "injected failure"
	}
	if o.Error != "" {
		return errorWords(o.Error)
	}
	if len(o.Rows) == 0 {
		if way, ok := wayWords(o.Text); ok {
			return way
		}
		head, _ := clip(o.Text, 400)
		first, _, _ := strings.Cut(strings.TrimSpace(head), "\n")
		line, cut := clip(templates.Plain(first), 64)
		if cut {
			line += "…"
		}
		return line
	}
	if way, ok := wayRow(o); ok {
		return way
	}
	noun, ok := hitNouns[tool]
	if !ok {
		noun = [2]string{"row", "rows"}
	}
	line := plural(len(o.Rows), noun[0], noun[1])
	if lo, hi, ok := priceRange(o); ok {
		line += ", " + digits(int64(lo))
		if hi > lo {
			line += "–" + digits(int64(hi))
		}
		line += thin + "$"
	}
	return line
}

// wayFacts are the parts of the distance tool's one line.
var wayFacts = regexp.MustCompile(`(duration|distance|cost): *((?:[^,;]|,\d)+)`)

// wayWords shortens "taxi, from A to B, duration: …, distance: …, cost: …" to
// what the arguments do not already say.
func wayWords(text string) (string, bool) {
	if len(text) > 300 {
		return "", false
	}
	found := wayFacts.FindAllStringSubmatch(text, 3)
	if len(found) < 2 {
		return "", false
	}
	var parts []string
	for _, f := range found {
		value := strings.TrimSpace(templates.Plain(f[2]))
		if amount, ok := strings.CutPrefix(value, "$"); ok {
			value = amount + thin + "$"
		} else if f[1] == "cost" {
			value += thin + "$"
		}
		parts = append(parts, shortSpan(value))
	}
	return strings.Join(parts, ", "), true
}

// wayRow sums up a way that came as the one row of a table.
func wayRow(o *trainer.Observed) (string, bool) {
	if len(o.Rows) != 1 {
		return "", false
	}
	var parts []string
	for _, key := range []string{"duration", "distance", "cost"} {
		for c, name := range o.Columns {
			if !strings.EqualFold(name, key) || c >= len(o.Rows[0]) || o.Rows[0][c] == "" {
				continue
			}
			text := shortSpan(strings.TrimPrefix(templates.Plain(o.Rows[0][c]), "$"))
			if key == "cost" {
				text += thin + "$"
			}
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, ", "), len(parts) >= 2
}

// shortSpan writes "1 hour 58 mins" as "1 h 58 min".
func shortSpan(s string) string {
	return spanWords.Replace(s)
}

var spanWords = strings.NewReplacer(" hours", " h", " hour", " h", " minutes", " min", " minute", " min", " mins", " min")

func priceRange(o *trainer.Observed) (lo, hi float64, ok bool) {
	col := -1
	for c, name := range o.Columns {
		if n := strings.ToLower(name); strings.Contains(n, "price") || strings.Contains(n, "cost") {
			col = c
		}
	}
	if col < 0 {
		return 0, 0, false
	}
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, r := range o.Rows {
		if col >= len(r) {
			continue
		}
		if x, err := strconv.ParseFloat(strings.ReplaceAll(strings.Trim(r[col], "$ "), ",", ""), 64); err == nil {
			lo, hi = min(lo, x), max(hi, x)
		}
	}
	return lo, hi, lo <= hi
}

// errorWords says what a tool's error key means.
func errorWords(key string) string {
	switch key {
	case "no_hits":
		return "no hits"
	case "invalid_parameters":
		return "invalid parameters"
	}
	return templates.Plain(strings.ReplaceAll(key, "_", " "))
}

// argsLine writes a call's arguments on one line: two places as a way.
func argsLine(args []trainer.Arg) string {
	var parts []string
	for i := 0; i < len(args); i++ {
		if i+1 < len(args) && isOrigin(args[i].Name) && isDestination(args[i+1].Name) {
			parts = append(parts, args[i].Value+" → "+args[i+1].Value)
			i++
			continue
		}
		parts = append(parts, args[i].Value)
	}
	line, cut := clip(strings.Join(parts, ", "), 160)
	if cut {
		line += "…"
	}
	return line
}

func isOrigin(name string) bool { return name == "departure" || name == "origin" || name == "from" }
func isDestination(name string) bool {
	return name == "destination" || name == "dest" || name == "to"
}

// sentence ends s with a full stop and starts it with a capital.
func sentence(s string) string {
	s = strings.TrimSpace(templates.Plain(s))
	if s == "" {
		return ""
	}
	s = strings.ToUpper(s[:1]) + s[1:]
	if !strings.ContainsAny(s[len(s)-1:], ".!?…") {
		s += "."
	}
	return s
}

func turnBytes(v templates.TurnView) int {
	n := 600 + len(v.Think) + len(v.Text) + len(v.Raw) + len(v.Answer) + 120*len(v.Words)
	if v.Table != nil {
		for _, r := range append(v.Table.Rows, v.Table.Folded...) {
			for _, c := range r.Cells {
				n += 20 + len(c.Text)
			}
		}
	}
	return n
}

// turnSize is roughly what the turn's record takes.
func turnSize(turn trainer.Turn) int {
	n := len(turn.Think) + len(turn.Raw)
	if turn.Call != nil {
		for _, a := range turn.Call.Args {
			n += len(a.Name) + len(a.Value)
		}
	}
	if turn.Observe != nil {
		n += len(turn.Observe.Text)
		for _, r := range turn.Observe.Rows {
			for _, c := range r {
				n += len(c) + 3
			}
		}
	}
	return n
}
