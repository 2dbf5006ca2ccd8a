package templates

// StudyView is the page of one study.
type StudyView struct {
	Title, Lede string
	Actions     []ActionView
	More        []ActionView // behind the menu
	Facts       []Fact
	Banner      []AlertView // why its runs are not started
	Alerts      []AlertView
	LiveNote    string
	Legend      []MarkView
	Arms        ArmTable
	Charts      ChartConfig
	Runs        []RunRow // the first ones, for a page without script
	RunsNote    string
	NoRuns      *EmptyView
	RunTable    RunTableConfig
	RunsColumns []string
}

// ArmTable is the arm × metric table.
type ArmTable struct {
	Note        string
	Scale       []string // ends of the interval axis
	Metrics     []ArmColumn
	Rows        []ArmRow
	Warning     string
	WarningWord string
	Empty       *EmptyView
}

// ArmColumn is a metric's head.
type ArmColumn struct {
	Label string
	Title string // the metric's own name
	Main  bool
}

// ArmRow is one arm.
type ArmRow struct {
	Mark     MarkView
	Seeds    string
	Interval IntervalView
	Cells    []ArmCell
	Lead     bool
}

// ArmCell is a mean with its spread and verdict.
type ArmCell struct {
	Verdict string // best, = best
	Mean    string
	Spread  string // "±1.5"
	Title   string // method and n
	Best    bool
	Main    bool
}

// IntervalView is an interval on the column's common axis.
type IntervalView struct {
	Width     float64
	Low, High string // ends, px; "" = none
	At        string // the mean, px; "" = none
	Marker    string // path
	Ticks     []string
	WashX     string // the best arm's interval
	WashW     string
	Class     string
	DashClass string
	Label     string
}

// ChartConfig is what the script needs to draw a study's or a run's charts.
type ChartConfig struct {
	Study   int64                 `json:"study"`
	Runs    []ChartRun            `json:"runs"`
	Arms    []ChartArm            `json:"arms"`
	Primary string                `json:"primary"`
	Side    []string              `json:"side"`
	Metrics []string              `json:"metrics"`
	Info    map[string]MetricInfo `json:"info"`
	Active  bool                  `json:"active"`
	Single  bool                  `json:"single"` // one run, not arms
	Facets  []ChartFacet          `json:"facets,omitempty"`
	Points  int                   `json:"points"`
	Total   int64                 `json:"total"` // steps of a run, as far as known
}

// ChartRun is a run of a chart.
type ChartRun struct {
	ID       int64  `json:"id"`
	Arm      int    `json:"arm"`
	Seed     string `json:"seed"`
	State    string `json:"state"`
	Started  int64  `json:"started,omitempty"` // unix ms
	Devices  int    `json:"devices"`
	Rollouts int    `json:"rollouts"` // a step
}

// ChartArm is an arm of a chart.
type ChartArm struct {
	Index  int    `json:"index"`
	Label  string `json:"label"`
	Color  int    `json:"color"`
	Marker int    `json:"marker"`
	Dash   int    `json:"dash"`
	Facet  int    `json:"facet"`
	Short  string `json:"short"` // label within its facet
}

// ChartFacet is a small multiple.
type ChartFacet struct {
	Label string `json:"label"`
}

// MetricInfo says how the script writes a metric.
type MetricInfo struct {
	Label   string `json:"label"`
	Unit    string `json:"unit,omitempty"`
	Percent bool   `json:"percent,omitempty"`
	Zero    bool   `json:"zero,omitempty"`
	Line    bool   `json:"line,omitempty"`
	Digits  int    `json:"digits"`
}

// RunTableConfig is the data of the windowed run table, in columns.
type RunTableConfig struct {
	Columns []RunColumn `json:"columns"`
	Rows    []RunData   `json:"rows"`
}

// RunColumn is a metric column of the run table.
type RunColumn struct {
	Metric string     `json:"metric"`
	Info   MetricInfo `json:"info"`
}

// RunData is a run in the windowed table. Values are numbers, or "NaN",
// "+Inf", "-Inf", or null where nothing is stored.
type RunData struct {
	ID     int64   `json:"id"`
	Arm    int     `json:"arm"`
	Seed   string  `json:"seed"`
	State  string  `json:"state"`
	Kind   string  `json:"kind"`
	Word   string  `json:"word"`
	Cause  string  `json:"cause,omitempty"`
	Step   int64   `json:"step"`
	Total  int64   `json:"total"`
	Device string  `json:"device,omitempty"`
	Left   string  `json:"left,omitempty"`
	LeftS  float64 `json:"left_s"`
	Values []any   `json:"values"`
}

// liveTitle heads the charts: while runs go, and after.
func liveTitle(active bool) string {
	if active {
		return "Live"
	}
	return "Curves"
}
