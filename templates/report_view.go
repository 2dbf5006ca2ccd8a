package templates

// ReportView is a report as finished strings, in reading order. The page, the
// self-contained file and the Markdown file are all written from it.
type ReportView struct {
	Kicker   string // "Alidade report 12, 26 November 2026"
	Title    string
	By       string // design in a line
	Partial  string // why this is not the last word; "" for a finished study
	Answer   string
	Sections []ReportSection
	Foot     string
	Links    []Link // files of the report, shown on the page only
}

// ReportSection is one numbered section; Margin stands beside it.
type ReportSection struct {
	ID, Title string
	Margin    []string
	Blocks    []ReportBlock
}

// ReportBlock is one of a paragraph, list, table, figure or code; the first
// that is set counts.
type ReportBlock struct {
	Text   string
	Status *ReportStatus // opens the paragraph
	List   []string
	Table  *ReportTable
	Figure *ReportFigure
	Quotes []ReportQuote
	Code   []string
}

// ReportStatus is an icon and a word: ok, warn, bad, open.
type ReportStatus struct{ Kind, Word string }

// ReportTable is a table with its caption above and its note below.
type ReportTable struct {
	Title, Caption, Note string
	Head                 []ReportCell
	Rows                 [][]ReportCell
}

// ReportCell is a table cell.
type ReportCell struct {
	Text     string
	Interval string // after the number, in grey
	Mark     string // before the number: "best", "= best"
	Note     string // second line, small
	Number   bool   // right, mono
	Strong   bool
	Head     bool // heads its row
	Arm      int  // 1–8: the arm's marker stands before the text; 0 = none
	Marker   int
	Status   *ReportStatus
	Href     string
}

// ReportFigure is a figure; SVG is trusted markup made by the chart package.
type ReportFigure struct {
	Name, Title, Subtitle, Source, Alt string
	SVG                                string
}

// ReportQuote is an example trajectory in short.
type ReportQuote struct {
	Head    string // "best, medium, reward 3.00"
	Href    string
	Text    string
	Reasons []string
}
