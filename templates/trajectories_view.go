package templates

// TrajectoriesView is the list of rollouts with its filters.
type TrajectoriesView struct {
	Title, Lede string
	Filter      TrajectoriesFilter
	Chips       []FilterChip
	ClearHref   string
	Columns     []SortColumn
	Rows        []TrajectoryRow
	Shown       string // "1–100 of 12,040"
	Prev, Next  string // addresses; "" = none
	Here        string // this list's first page
	Empty       *EmptyView
}

// TrajectoriesFilter holds the form's values as given and its choices.
type TrajectoriesFilter struct {
	Text, Run, From, To, Min, Max   string
	Sort, Group, Policy, Mode       string // kept through the form, set by links
	Injected, FormatError, Overlong bool
	Studies, Arms, Phases, Levels   []FilterOption
	Outcomes, Checks, Tools         []FilterOption
	Active                          int // filters set, for the fold on small screens
}

// FilterOption is one choice of a select.
type FilterOption struct {
	Value, Label string
	On           bool
}

// FilterChip is a filter that is set; its link takes it off.
type FilterChip struct{ Label, Href string }

// SortColumn is a column head; a link when the list can be sorted by it.
type SortColumn struct {
	Label, Href, Order string // Order: "", ascending, descending
	Numeric, Wide      bool
}

// TrajectoryRow is one rollout in the list. Query is untrusted.
type TrajectoryRow struct {
	Href                                   string
	Name                                   string // "step 40, rollout 5"
	GroupRef                               Link   // "prompt 17"
	RunRef                                 Link   // "run 41"
	Arm                                    string
	Query                                  string
	Level                                  string
	Phase                                  string
	Outcome                                Status
	Failed                                 string // names of failed checks
	Flags                                  []Status
	Reward, Advantage, Turns, Tokens, Step string
}

// kept are the values that links set and the form carries on.
func (f TrajectoriesFilter) kept() [][2]string {
	var out [][2]string
	for _, k := range [][2]string{{"sort", f.Sort}, {"group", f.Group}, {"policy", f.Policy}, {"mode", f.Mode}} {
		if k[1] != "" {
			out = append(out, k)
		}
	}
	return out
}

func sortArrow(order string) string {
	switch order {
	case "ascending":
		return " ↑"
	case "descending":
		return " ↓"
	}
	return ""
}
