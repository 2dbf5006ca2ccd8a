package templates

// TrajectoryView is one rollout: what it earned and why, turn by turn, with
// the plan as an itinerary and each failed check at the item it concerns. All
// strings are finished; those a model or a tool wrote are drawn by Untrusted.
type TrajectoryView struct {
	Title string
	Lede  string
	Query string // as the user asked, untrusted
	Tags  []string
	Facts []Fact

	Prev, Next, Group *InspectLink
	View              ChoiceView // read, raw
	JSONURL           string     // the whole record
	MessagesURL       string
	Raw               *RawView // set in the raw view, instead of the rest

	Strip  *StripView
	Turns  []TurnView
	Folded string // "12 of 16 folded"
	Plan   PlanView
	Checks ChecksView
	Parts  *PartsView // nil when nothing was paid
	Worth  string     // one sentence on how the advantage came about
}

// InspectLink is a link in words with the key that follows it.
type InspectLink struct {
	Text, Href, Key string
}

// RawView is the start of the stored record as text.
type RawView struct {
	Text    string // untrusted
	Showing string // "all 12,041 bytes" or "the first 65,536 of 1,204,100 bytes"
}

// StripView is the token strip: every generated token of the episode in order,
// observations between them, turns numbered. It navigates.
type StripView struct {
	Title, Caption, Aria string
	By                   *ChoiceView // what is shown of each token; nil = no choice
	Wide, Narrow         StripDrawing
}

// StripDrawing is the strip at one width. Lengths are SVG user units.
type StripDrawing struct {
	ViewBox string
	Width   string
	Base    string // path of the base line
	Grid    string // path of the grid lines
	Masks   []StripMask
	Turns   []StripTurn
	Total   string
}

// StripMask is an observation: tokens the policy did not write.
type StripMask struct{ X, W string }

// StripTurn is one turn's stretch of the strip.
type StripTurn struct {
	N            int
	Href         string
	X, W         string // hit area
	Bars         string // path, one upright a token (or the tallest of several)
	Below        string // path, those below zero
	Branch       string // path of the mark where the episode was forked, "" = none
	BarWidth     string
	LabelX       string
	Label        string // "" where there is no room
	Tick         string // path
	Mark         string // path of the injected-failure mark, "" = none
	Title        string
	Failed, Last bool
}

// TurnView is one step of the policy and what came back.
type TurnView struct {
	N      int
	Open   bool
	Tone   string // "", inj, bad
	Tokens string // "62 tok, H 0.41"
	Line   string // arguments on one line, untrusted
	Result string // "11 places, 96–870 $"
	Branch bool

	Words     []WordView // what the policy wrote, token by token
	WordsLeft string

	Injected string // sentence, "" = not injected
	Think    string // untrusted
	Tool     string // untrusted
	Args     []TurnArg
	Raw      string // untrusted; what could not be parsed
	Problem  string // why it could not be parsed, or the tool's error in words
	Table    *ObsTable
	Text     string // untrusted
	More     string // "showing 4,000 of 120,000 characters"
	Final    bool   // the answer turn
	Answer   string // untrusted
	AnswerOf string // "plan as written, 806 tokens"
	LoadURL  string // fragment of the whole turn, when this one is cut
}

// WordView is one token of the policy, untrusted. Class shades it.
type WordView struct{ Text, Class, Title string }

// TurnArg is one argument of a call, untrusted.
type TurnArg struct{ Name, Value string }

// ObsTable is an observation as a table. Rows the plan uses come first-class:
// they are shown even where the rest is folded.
type ObsTable struct {
	Head   []ObsHead
	Rows   []ObsRow
	Folded []ObsRow
	Fold   string // "3 more of 6"
	Left   string // rows that are not in the page
}

// ObsHead is a column head.
type ObsHead struct {
	Text    string
	Numeric bool
}

// ObsRow is one row; Used marks what the plan takes from it.
type ObsRow struct {
	Cells []ObsCell
	Used  bool
}

// ObsCell is one cell, untrusted.
type ObsCell struct {
	Text    string
	Numeric bool
}

// PlanView is the plan as an itinerary.
type PlanView struct {
	Empty   string // why there is none
	Caption string
	Cost    *CostView
	Days    []DayView
	Whole   []PinView // checks that concern the whole plan
}

// CostView is the plan's cost against its budget.
type CostView struct {
	ViewBox  string
	Segs     []CostSeg
	Over     *StripMask // the part past the budget
	BudgetX  string
	LabelX   string
	Anchor   string // start, middle, end
	Budget   string // "budget 3,000 $"
	Rows     []CostRow
	Tone     string // ok, bad, off
	Sentence string // "3,219 $ of 3,000 $: 219 $ over"
	ID       string // of the failed check that the sentence stands for
	Pins     []PinView
}

// CostSeg is a part of the bar; Class names its shade.
type CostSeg struct{ Class, X, W, Title string }

// CostRow is a line of the bar's key.
type CostRow struct{ Class, Label, Value string }

// DayView is one day of the plan.
type DayView struct {
	N     int
	Title string // untrusted
	Date  string
	Cost  string
	Items []ItemView
	Pins  []PinView // checks that concern the day
}

// ItemView is one item of a day.
type ItemView struct {
	Kind      string // "travel", "dinner"
	Text      string // untrusted
	FoundHref string
	Found     string // "t5", "" = unknown
	Cost      string
	Pins      []PinView
}

// PinView is a failed check at the item that caused it.
type PinView struct{ ID, Name, Reason string }

// ChecksView is every check in two columns.
type ChecksView struct {
	Sides     []ChecksSide
	Agreement string // how the three evaluators agree
	Split     bool   // they do not
}

// ChecksSide is one family of checks.
type ChecksSide struct {
	Name, Score string
	Items       []CheckItem
}

// CheckItem is one check's outcome: pass, fail, asked-not (n/a), closed, raises.
type CheckItem struct {
	Name, Outcome, Note, Href, Reason string
}

// PartsView is the reward as parts that add up to it.
type PartsView struct {
	ViewBox string
	Zero    string // path
	Segs    []CostSeg
	TotalX  string
	Rows    []CostRow
	Total   string
	Note    string
}

// checkClass, checkIcon and checkWord draw an outcome: form and word first.
func checkClass(outcome string) string {
	switch outcome {
	case "pass":
		return "pass"
	case "fail", "raises":
		return "fail"
	case "closed":
		return "closed"
	}
	return "none"
}

func checkIcon(outcome string) string {
	switch outcome {
	case "pass":
		return "tick"
	case "fail":
		return "bad"
	case "raises":
		return "warn"
	case "closed":
		return "queue"
	}
	return "dot"
}

func checkWord(outcome string) string {
	switch outcome {
	case "pass", "fail":
		return outcome
	case "raises":
		return "could not be evaluated"
	case "closed":
		return "not evaluated, counts as fail"
	}
	return "not asked"
}
