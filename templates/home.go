package templates

// HomeView is the page that shows what is going on.
type HomeView struct {
	Title, Lede string
	Actions     []ActionView
	Banner      []AlertView // why nothing is started
	Which       ChoiceView
	RunsNote    string
	Runs        []RunRow
	More        *Link // further runs of the chosen kind
	NoRuns      *EmptyView
	Alerts      []AlertView
	AlertsNote  string
	Devices     []DeviceView
	DevicesNote string
	DevicesSum  string
	Studies     []StudyRow
	AllStudies  Link
	NoStudies   *EmptyView
	Live        LiveConfig
	Metric      string // head of the column of the primary metric
}

// LiveConfig tells the page's script what to subscribe to.
type LiveConfig struct {
	Study   int64    `json:"study"`
	Runs    []int64  `json:"runs,omitempty"`
	Metrics []string `json:"metrics,omitempty"`
}

// RunRow is a run in a table.
type RunRow struct {
	ID, Href  string
	Study     string // name of its study; "" where the page is the study's
	Arm       string
	Why       string // what a queued run waits for
	Mark      *MarkView
	Seed      string
	Status    Status
	Rule      RuleView
	RuleSmall RuleView // for narrow screens
	Step      string
	Spark     SparkView
	Metric    string
	Latest    string
	Device    string
	Left      string
	Current   bool
}

// StudyRow is a study in a table.
type StudyRow struct {
	Number, Href string
	Question     string
	Design       string
	Status       Status
	Rule         RuleView
	Says         string
	Active       string
	At           string
	Archived     bool
}

// DeviceView is a device in the strip of the home page.
type DeviceView struct {
	ID, Holder, HolderHref string
	Name                   string
	Facts                  []Fact
	Bar                    BarView
	Note                   string
	Simulated              bool
	Curves                 []DeviceCurve // on the devices page
	Stands                 []Status      // quarantined, stale …
	Processes              []ProcessLine
	Actions                []ActionView
}

// DeviceCurve is what a device did in the last minutes.
type DeviceCurve struct {
	Label, Value, Unit string
	Spark              SparkView
}

// ProcessLine is a process that holds a context on a GPU.
type ProcessLine struct {
	Name, Detail string
	Foreign      bool // not of the run that holds the device
}

// BarView is a small level bar, 0–1.
type BarView struct {
	Share float64
	Label string
	Known bool
}
