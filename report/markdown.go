package report

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"alidade/templates"
)

// Markdown writes the report as GitHub-flavoured Markdown. Figures are linked
// as figures/NAME.svg beside the file.
func Markdown(r Report) ([]byte, error) {
	v, err := View(r, Place{})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n%s\n\n%s\n\n", md(v.Title), md(v.Kicker), md(v.By))
	if v.Partial != "" {
		fmt.Fprintf(&b, "> %s\n\n", md(v.Partial))
	}
	fmt.Fprintf(&b, "**Answer.** %s\n\n", md(v.Answer))
	for i, s := range v.Sections {
		fmt.Fprintf(&b, "## %d %s\n\n", i+1, md(s.Title))
		for _, block := range s.Blocks {
			writeBlock(&b, block)
		}
		if len(s.Margin) > 0 {
			fmt.Fprintf(&b, "*%s*\n\n", md(strings.Join(s.Margin, " · ")))
		}
	}
	fmt.Fprintf(&b, "---\n\n%s\n", md(v.Foot))
	return b.Bytes(), nil
}

func writeBlock(b *bytes.Buffer, block templates.ReportBlock) {
	switch {
	case block.Table != nil:
		writeTable(b, *block.Table)
	case block.Figure != nil:
		f := block.Figure
		fmt.Fprintf(b, "**%s**\n\n%s\n\n![%s](figures/%s.svg)\n\n%s\n\n", md(f.Title), md(f.Subtitle), md(f.Title), f.Name, md(f.Source))
	case len(block.List) > 0:
		writeList(b, block.List)
	case len(block.Code) > 0:
		fmt.Fprintf(b, "```\n%s\n```\n\n", strings.Join(block.Code, "\n"))
	case len(block.Quotes) > 0:
		for _, q := range block.Quotes {
			fmt.Fprintf(b, "> **%s**  \n> %s\n", md(q.Head), md(q.Text))
			for _, r := range q.Reasons {
				fmt.Fprintf(b, "> - %s\n", md(r))
			}
			b.WriteString("\n")
		}
	default:
		if block.Status != nil {
			b.WriteString("**" + md(block.Status.Word) + "** ")
		}
		fmt.Fprintf(b, "%s\n\n", md(block.Text))
	}
}

func writeList(b *bytes.Buffer, items []string) {
	for _, item := range items {
		fmt.Fprintf(b, "- %s\n", md(item))
	}
	b.WriteString("\n")
}

func writeTable(b *bytes.Buffer, t templates.ReportTable) {
	fmt.Fprintf(b, "**%s** %s\n\n", md(t.Title), md(t.Caption))
	rows := make([][]string, 0, len(t.Rows)+1)
	head := make([]string, len(t.Head))
	widths := make([]int, len(t.Head))
	for i, h := range t.Head {
		head[i] = md(h.Text)
	}
	rows = append(rows, head)
	for _, row := range t.Rows {
		line := make([]string, len(row))
		for i, c := range row {
			line[i] = cellText(c)
		}
		rows = append(rows, line)
	}
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c), 3)
		}
	}
	for k, row := range rows {
		for i, c := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if t.Head[i].Number {
				fmt.Fprintf(b, "| %s%s ", pad, c)
			} else {
				fmt.Fprintf(b, "| %s%s ", c, pad)
			}
		}
		b.WriteString("|\n")
		if k == 0 {
			for i := range row {
				rule := strings.Repeat("-", widths[i])
				if t.Head[i].Number {
					rule = rule[1:] + ":"
				}
				fmt.Fprintf(b, "| %s ", rule)
			}
			b.WriteString("|\n")
		}
	}
	b.WriteString("\n")
	if t.Note != "" {
		fmt.Fprintf(b, "%s\n\n", md(t.Note))
	}
}

// cellText is a cell as one line of text.
func cellText(c templates.ReportCell) string {
	var parts []string
	for _, s := range []string{c.Mark, statusWord(c.Status), c.Text, c.Interval} {
		if s != "" {
			parts = append(parts, md(s))
		}
	}
	s := strings.Join(parts, " ")
	if c.Note != "" {
		s += " (" + md(c.Note) + ")"
	}
	return s
}

func statusWord(s *templates.ReportStatus) string {
	if s == nil {
		return ""
	}
	return s.Word
}

// mdEscape neutralises what Markdown and HTML would read as markup: reports
// hold text that policies wrote.
var mdEscape = strings.NewReplacer("\\", "\\\\", "`", "\\`", "*", "\\*", "_", "\\_", "|", "\\|", "<", "&lt;", "[", "\\[", "]", "\\]", "#", "\\#", "\n", " ", "\r", " ")

func md(s string) string { return mdEscape.Replace(s) }
