package report

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"alidade/report/chart"
	"alidade/templates"
)

//go:embed report.css
var reportCSS string

//go:embed tokens.css
var tokensCSS string

// Stylesheet holds the rules of a report in a page, under .report; it uses the
// page's tokens.
func Stylesheet() string { return reportCSS }

// PNGResolution is that of the pictures that [Write] makes, dots an inch.
const PNGResolution = 300

// HTML writes the report as one file that opens without a network.
func HTML(ctx context.Context, r Report) ([]byte, error) {
	v, err := View(r, Place{})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := templates.ReportFile(v, tokensCSS+reportCSS).Render(ctx, &b); err != nil {
		return nil, fmt.Errorf("render report: %w", err)
	}
	return b.Bytes(), nil
}

// JSON writes the report's value, indented.
func JSON(r Report) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return nil, fmt.Errorf("encode report: %w", err)
	}
	return b.Bytes(), nil
}

// FigureFile draws one figure by name in a format, svg or png. The error is
// nil and the bytes are nil when there is no such figure.
func FigureFile(r Report, name, format string) ([]byte, error) {
	for _, f := range r.Figures {
		if f.Name != name || f.Chart == nil {
			continue
		}
		switch format {
		case "svg":
			return chart.SVG(f.Chart)
		case "png":
			return chart.PNG(f.Chart, PNGResolution)
		}
		return nil, fmt.Errorf("figure format %q: allowed are svg and png", format)
	}
	return nil, nil
}

// Write makes report.html, report.md, results.csv, report.json and, under
// figures/, an SVG and a PNG of each figure. Each file is written whole or not
// at all; files of other names are left alone.
func Write(dir string, r Report) error {
	if err := os.MkdirAll(filepath.Join(dir, "figures"), 0o755); err != nil {
		return fmt.Errorf("make report folder: %w", err)
	}
	html, err := HTML(context.Background(), r)
	if err != nil {
		return err
	}
	markdown, err := Markdown(r)
	if err != nil {
		return err
	}
	table, err := CSV(r)
	if err != nil {
		return err
	}
	value, err := JSON(r)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		data []byte
	}{{"report.html", html}, {"report.md", markdown}, {"results.csv", table}, {"report.json", value}} {
		if err := writeFile(filepath.Join(dir, f.name), f.data); err != nil {
			return err
		}
	}
	return writeFigures(dir, r)
}

func writeFigures(dir string, r Report) error {
	for _, f := range r.Figures {
		for _, format := range []string{"svg", "png"} {
			data, err := FigureFile(r, f.Name, format)
			if err != nil {
				return fmt.Errorf("figure %s: %w", f.Name, err)
			}
			if err := writeFile(filepath.Join(dir, "figures", fileName(f.Name)+"."+format), data); err != nil {
				return err
			}
		}
	}
	return nil
}

// fileName keeps letters, digits and hyphens.
func fileName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-':
			return r
		}
		return '-'
	}, s)
}

// writeFile replaces a file by renaming a finished one over it.
func writeFile(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".report-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	defer os.Remove(tmp.Name()) // nothing is left to remove after the rename
	if _, err := tmp.Write(data); err != nil {
		tmp.Close()
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	if err := tmp.Chmod(0o644); err != nil {
		tmp.Close()
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	if err := tmp.Close(); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return nil
}
