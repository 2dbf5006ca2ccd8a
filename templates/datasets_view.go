package templates

// DatasetsView lists the datasets, and the other things runs share.
type DatasetsView struct {
	Lede     string
	Datasets []DatasetRow
	Others   []SharedRow
	Empty    *EmptyView
	Note     string
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
}

// CardLine is one line of a dataset's card.
type CardLine struct{ Label, Value string }

// LevelShare is how many queries of a level there are.
type LevelShare struct{ Level, Count, Share string }

// QueryRow is one query. Text is untrusted.
type QueryRow struct {
	Href, Hash, Text, Level, Days, People, Budget, Wish string
}
