package templates

import "strings"

// RunView is the page of one run.
type RunView struct {
	Title, Lede string
	Mark        *MarkView
	Actions     []ActionView
	Facts       []Fact
	Phases      []PhaseView
	PhasesNote  string
	Alerts      []AlertView
	Charts      ChartConfig
	LiveNote    string
	Ratios      *RatioView // nil without any
	Recipe      []RecipeGroup
	RecipeNote  string
	Attempts    []AttemptRow
	Log         LogView
	Artifacts   []ArtifactRow
	Trajs       []Link
	TrajsNote   string
}

// RatioView is the fan of probability ratios over the steps.
type RatioView struct {
	Title, Note  string
	Wide, Narrow RatioDrawing
}

// RatioDrawing is the fan at one width. Lengths are SVG user units.
type RatioDrawing struct {
	ViewBox, Width, LabelX string
	Base, One              string   // heights of the axis and of ratio 1
	Bands                  []string // paths, the wider first
	Median                 string   // path
	Clips                  []RatioMark
	First, Last            string // steps
}

// RatioMark is a line across the fan with its label.
type RatioMark struct{ Y, Text string }

// PhaseView is a phase on the run's time line.
type PhaseView struct {
	Name, Detail string
	Status       Status
	Rule         *RuleView
}

// RecipeGroup is a section of the recipe.
type RecipeGroup struct {
	Name string
	Rows []RecipeRow
	Open bool
}

// RecipeRow is one recipe key.
type RecipeRow struct {
	Key, Label, Value, Unit string
	Base                    string // the base recipe's value, where it differs
	Factor                  bool   // differs because a factor rules it
}

// AttemptRow is one execution of the trainer.
type AttemptRow struct {
	Number   string
	Status   Status
	Cause    string
	Device   string
	From     string // step it started from
	Started  string
	Lasted   string
	Exit     string
	PID      string
	Selected bool
	LogHref  string
}

// LogView is the tail of a log.
type LogView struct {
	Choice  ChoiceView
	Address string // of the plain text
	Text    string
	Note    string
	Live    bool
}

// ArtifactRow is a checkpoint or another product.
type ArtifactRow struct {
	Kind, Step, Hash, Bytes, Path, When string
}

// recipeSummary says what of a group differs from the base.
func recipeSummary(g RecipeGroup) string {
	var names []string
	for _, r := range g.Rows {
		if r.Base != "" {
			names = append(names, r.Label+" "+r.Value)
		}
	}
	if len(names) == 0 {
		return "as the base"
	}
	return strings.Join(names, ", ")
}
