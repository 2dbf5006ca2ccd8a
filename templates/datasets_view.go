package templates

// DatasetsView lists the datasets, and the other things runs share.
type DatasetsView struct {
	Lede     string
	Actions  []ActionView
	Making   []MakingRow // sets that are being drawn
	Live     LiveConfig
	Datasets []DatasetRow
	Others   []SharedRow
	Empty    *EmptyView
	Note     string
}

// MakingRow is a run that draws a set of queries.
type MakingRow struct {
	ID, Href, What string
	Status         Status
	Rule           RuleView
	Step, Left     string
}

// DatasetRow is one dataset with its card.
type DatasetRow struct {
	Href, Hash             string
	World                  string
	Prompts, Traces, Panel string
	Mix                    string
	MixBar                 []CostSeg // easy, medium, hard; of 96 units
	Seed                   string
	Used                   string // "by 8 runs"
	Made, At               string
	MadeBy                 Link
	Size                   string
}

// SharedRow is a shared product that is no dataset.
type SharedRow struct {
	Kind, Hash, What string
	Used             string
	MadeBy           Link
	Made, At, Size   string
}

// DatasetView is one dataset: its card and its queries.
type DatasetView struct {
	Title, Lede string
	Facts       []Fact
	Card        []CardLine
	Levels      []LevelShare
	Sets        ChoiceView
	Set         string
	Queries     []QueryRow
	Shown       string
	Prev, Next  string
	Problem     string // why the queries cannot be shown

	Actions  []ActionView
	Exports  []ActionView // behind a menu
	Hists    []HistView
	Wishes   []BarRow
	Draws    []BarRow // what became of the draws
	DrawNote string
}

// HistView is a histogram, stacked by level; easy is the lightest.
type HistView struct {
	Title, Sub, Label string
	Bars              []HistBar
	Low, High         string
	Source            string
}

// HistBar is a part of a bin.
type HistBar struct{ Class, X, Y, W, H, Title string }

// BarRow is a count with a bar of 96 units.
type BarRow struct{ Label, Count, Share, W string }

// DatasetForm asks for a set to draw or to import.
type DatasetForm struct {
	Title, Lede string
	Action      string
	Fields      []FormField
	Problems    []string
	Submit      string
	File        bool // a file is sent
}

// FormField is a labelled input: a number, a text, a choice, a file or lines.
type FormField struct {
	Key, Label, Value, Unit, Help, Problem string
	Kind                                   string // number, text, choice, file, lines
	Options                                []string
}

// CardLine is one line of a dataset's card.
type CardLine struct{ Label, Value string }

// LevelShare is how many queries of a level there are.
type LevelShare struct{ Level, Count, Share string }

// QueryRow is one query. Text is untrusted.
type QueryRow struct {
	Href, Hash, Text, Level, Days, People, Budget, Wish string

	Trace *Link // the expert's
}
