package templates

// NewStudyView is the form that makes a study: what is asked, what varies,
// the recipe all arms share, and what the launch would start.
type NewStudyView struct {
	Note     string // what stands under the title
	Cards    []TemplateCard
	Form     StudyFormView
	Starting bool // nothing came with the address: a kept draft may be brought back
}

// TemplateCard is a study to start from.
type TemplateCard struct {
	Href, Title, What, Size, Source string
	Thumb                           string // path of the thumbnail
	Dots                            []Dot
	On                              bool
}

// StudyFormView is the form alone; the script swaps it as a whole or in parts.
type StudyFormView struct {
	Name, Question, Notes, Concurrency TextField
	Queue                              QueueFields
	Template                           string // hidden
	Factors                            []FactorView
	Picker                             []PickerGroup
	FactorProblem                      string
	Design                             []DesignOption
	Arms                               TextField
	List                               bool // design list: arms are typed
	Seeds                              TextField
	Metric                             TextField
	Metrics                            []FilterOption
	Difference                         TextField
	DifferenceUnit                     string
	Presets                            []PresetGroup
	PresetNotes                        []PresetNote // of the chosen one
	Refused                            string       // what a launch would run into
	PresetHelp                         string
	BaseNote                           string // "1 field differs from the preset; 1 problem"
	Groups                             []FieldGroup
	Outlook                            OutlookView
	File                               FileView
	Problems                           []ProblemLink
	Runs                               string // "Launch 8 runs"
	Summary                            string // "4 arms × 2 seeds, about 5 min on 2 devices"
	Ready                              bool
	ReadOnly                           string // why nothing can be launched here
}

// TextField is a value as typed, with what is wrong with it.
type TextField struct{ Value, Problem string }

// FactorView is a factor as a chip: name, then levels.
type FactorView struct {
	At          int
	Key, Name   string
	Label, Help string
	Levels      []LevelView
	Options     []string // values an enum has left to add
	Numeric     bool
	Unit        string
	Problem     string
	First, Last bool
}

// LevelView is one level of a factor.
type LevelView struct {
	At      int
	Text    string
	Problem string
}

// PickerGroup is a group of recipe keys that can become factors.
type PickerGroup struct {
	Name  string
	Items []PickerItem
}

// PickerItem is one recipe key.
type PickerItem struct{ Key, Label, Help, Value string }

// DesignOption is one way to make arms of factors.
type DesignOption struct {
	Value, Label string
	On           bool
}

// FieldGroup is a group of recipe fields; it folds.
type FieldGroup struct {
	ID, Name, Summary string
	Open              bool
	Fields            []FieldView
	Hidden            []FieldView // do not apply to this kind of run; carried along
}

// FieldView is one recipe field.
type FieldView struct {
	Key, Label, Help string
	Value            string
	Kind             string // number, text, lines, choice, select, factor
	Rows             string // of kind lines
	Options          []FilterOption
	Unit, Range      string
	Preset           string // the preset's value, when it differs
	Changed          bool
	Problem          string
	Factor           string // "factor: SUM, MACRO"
	Note             string // under the field
}

// OutlookView is what a launch would start.
type OutlookView struct {
	Facts   []Fact
	Heads   []MatrixHead
	Rows    []PlannedArm
	More    string // "460 more arms"
	Note    string // on the matrix
	Advice  []AdviceView
	Memory  *MemoryView // nil: not estimated
	Problem string      // why there is nothing to see
}

// MatrixHead is a factor's column.
type MatrixHead struct {
	Label   string
	Numeric bool
}

// PlannedArm is one arm.
type PlannedArm struct {
	N      string
	Levels []ArmLevel
	Seeds  string // one dot a seed
	Label  string // for screen readers
}

// ArmLevel is an arm's level; Other marks one that is not the reference.
type ArmLevel struct {
	Text    string
	Other   bool
	Numeric bool
}

// AdviceView is something to weigh before launching; it never blocks.
type AdviceView struct{ Icon, Title, Text string }

// PresetGroup is a part of the list of presets.
type PresetGroup struct {
	Name    string
	Options []FilterOption
}

// PresetNote says what of a recipe is published, inferred or unknown.
type PresetNote struct {
	Word  string
	Lines []string
}

// MemoryView draws what each device would hold against what it has.
type MemoryView struct {
	Bars      []MemoryBar
	Limit     string // x of the device's memory
	LimitText string
	Over      bool
	Note      string
}

// MemoryBar is one phase, its parts side by side.
type MemoryBar struct {
	Name, Total, Words string
	Parts              []MemoryPart
}

// MemoryPart is one part; Shade is 1 to 5.
type MemoryPart struct {
	Name, X, W, Text string
	Shade            int
}

// FileView is the study as a file.
type FileView struct {
	Text     string
	Problems []string
	Rows     string // height of the box, lines
}

// ProblemLink leads to a field that is not right.
type ProblemLink struct{ Href, Text string }

// id is what a field is called in addresses.
func (f FieldView) id() string { return "base." + f.Key }

// invalidIf is the value of aria-invalid.
func invalidIf(problem string) string {
	if problem != "" {
		return "true"
	}
	return "false"
}

func problemCount(n int) string {
	if n == 1 {
		return "1 problem"
	}
	return itoa(n) + " problems"
}

// QueueFields say how a study's runs wait and which end early.
type QueueFields struct {
	Priority          TextField
	Metric, Rungs, By TextField // of successive halving
}

// HalvingOpen reports whether successive halving is asked for.
func (q QueueFields) HalvingOpen() bool { return q.Metric.Value+q.Rungs.Value+q.By.Value != "" }
