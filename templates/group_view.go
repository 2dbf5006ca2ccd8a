package templates

import "strconv"

// GroupView is the rollouts of one prompt at one step: what separates the
// better ones, and where each advantage comes from.
type GroupView struct {
	Title      string
	Query      string // untrusted
	Tags       []string
	Prev, Next *InspectLink
	Step       *GroupStrip
	Matrix     MatrixView
	Split      *SplitView
	Share      *ShareView
	Rules      *RulesView
	NoGradient string // why the group teaches nothing; "" = it does
}

// GroupStrip shows the stored groups of the step, one dot a rollout.
type GroupStrip struct {
	Title, Note   string
	Wide, Narrow  GroupStripDrawing
	Equal, Groups int
}

// GroupStripDrawing is the strip at one width.
type GroupStripDrawing struct {
	ViewBox string
	Grid    string
	Axis    []ChartLabel
	Groups  []GroupStripItem
}

// GroupStripItem is one group of the strip.
type GroupStripItem struct {
	Href, Title, Label string
	X, HitX, HitW      string
	Stem               string
	Dots               []Dot
	Hollow, Current    bool
}

// Dot is a disc in SVG user units.
type Dot struct{ X, Y, R string }

// ChartLabel is a text in a drawing.
// Anchor is start (or empty), middle or end.
type ChartLabel struct{ X, Y, Text, Anchor string }

// MatrixView is constraint × rollout, most separating constraint first.
type MatrixView struct {
	Title, Note string
	Caption     string
	Rewards     string // "Reward, SUM"
	Spread      string // "mean 1.469, SD 0.981"
	Norm        string // "(reward − mean) ÷ SD"
	Limit       string // "tokens, limit 30,000"
	Columns     []MatrixColumn
	Rows        []MatrixRow
	Same        []MatrixRow
	SameTitle   string
	Notes       bool // some column has one
	Injected    bool
	Reason      MatrixReason
}

// MatrixColumn is one rollout.
type MatrixColumn struct {
	Label, Href, Title string
	Reward             string
	Advantage          string
	BarY, BarH         string // advantage bar, 34 units high, zero at 17
	Tokens, Calls      string
	Note, NoteTone     string
	Edge               bool // the group mean lies after it
}

// MatrixRow is one constraint.
type MatrixRow struct {
	Name, Family string
	Sep          string // "+1.64"; for constraints that do not differ, why
	BarX, BarW   string // of 80 units, zero at 28
	Against      bool   // those that pass do worse
	Cells        []MatrixCell
}

// MatrixCell is one verdict.
type MatrixCell struct {
	Outcome string // pass, fail, closed, raises, n/a
	Href    string
	Label   string // for screen readers
	Who     string // "rollout 2"
	Head    string // "Budget fails."
	Reason  string
	Edge    bool
	Current bool
}

// MatrixReason is what the reason line says at first.
type MatrixReason struct{ Who, Head, Text, Href string }

// SplitView is the advantage of each rollout by reward component.
type SplitView struct {
	ViewBox string
	Grid    string
	Zero    string
	Ticks   []ChartLabel
	Rows    []SplitRow
	AxisY   string
	Axis    string
	Keys    []CostRow
	Note    string
	Exact   string // caption
}

// SplitRow is one rollout's stack.
type SplitRow struct {
	Y, Label, Value, LabelY string
	Segs                    []CostSeg
	Total                   string // path of the mark
}

// ShareView is each component's share of the group's signal.
type ShareView struct {
	ViewBox string
	Segs    []CostSeg
	Labels  []ChartLabel
	Note    string
}

// RulesView is the same group scored by other rewards.
type RulesView struct {
	ViewBox  string
	Columns  []RuleColumn
	Mean     string // path
	Lines    []RuleLine
	Dots     []Dot
	Labels   []ChartLabel
	Findings []RuleFinding
}

// RuleColumn is one reward of the slope drawing.
type RuleColumn struct {
	X, Name, Note, SD, Stem string
}

// RuleLine is one rollout across the rewards.
type RuleLine struct {
	Path    string
	Changes bool // it changes side of the mean
	Title   string
}

// RuleFinding is what one reward would do.
type RuleFinding struct{ Icon, Head, Text string }

func itoa(n int) string { return strconv.Itoa(n) }
