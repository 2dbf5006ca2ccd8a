package dataset

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"alidade/sandbox/travel"
)

// Forms of a set of queries.
const (
	FormTravelPlanner = "travelplanner" // the benchmark's JSONL
	FormStar          = "star"          // Agent-STAR's: the same and generated_model
	FormVerl          = "verl"          // Parquet for verl
	FormTRL           = "trl"           // Parquet for TRL
)

// Forms lists them.
func Forms() []string { return []string{FormTravelPlanner, FormStar, FormVerl, FormTRL} }

// FormOf is the form that a file's name asks for.
func FormOf(path string) string {
	if strings.EqualFold(filepath.Ext(path), ".parquet") {
		return FormVerl
	}
	return FormTravelPlanner
}

// Write writes a set in a form; "" takes what the file's name asks for. "-"
// is standard output. A failed write leaves no half of a file.
func Write(path, form string, lines []travel.QueryLine, o Rows) error {
	if form == "" {
		form = FormOf(path)
	}
	if !slices.Contains(Forms(), form) {
		return fmt.Errorf("form is %q, must be one of %s", form, strings.Join(Forms(), ", "))
	}
	return WriteFile(path, func(w io.Writer) error {
		switch form {
		case FormVerl:
			return WriteVerl(w, lines, o)
		case FormTRL:
			return WriteTRL(w, lines, o)
		case FormStar:
			lines = slices.Clone(lines)
			for i := range lines {
				lines[i].Plan, lines[i].Reference = travel.Plan{}, nil
				if lines[i].Model == "" {
					lines[i].Model = "template"
				}
			}
		}
		return travel.WriteQueryLines(w, lines)
	})
}

// Read reads a set in any of the forms, by the file's name.
func Read(path string) ([]travel.QueryLine, error) {
	if FormOf(path) == FormVerl {
		lines, err := readParquet(path)
		if err != nil {
			return nil, fmt.Errorf("read data set: %w", err)
		}
		return lines, nil
	}
	return travel.LoadQueryLines(path)
}

// WriteCard writes the card as JSON and, beside it, as Markdown.
func WriteCard(path string, c Card) error {
	base := strings.TrimSuffix(path, filepath.Ext(path))
	err := WriteFile(base+".json", func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", " ")
		enc.SetEscapeHTML(false)
		return enc.Encode(c)
	})
	if err != nil {
		return err
	}
	return WriteFile(base+".md", func(w io.Writer) error {
		_, err := io.WriteString(w, c.Markdown())
		return err
	})
}

// WriteFile writes through a temporary file beside the target; "-" is
// standard output.
func WriteFile(path string, write func(io.Writer) error) error {
	if path == "-" {
		return write(os.Stdout)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".dataset-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once it is renamed
	b := bufio.NewWriter(f)
	if err = write(b); err == nil {
		err = b.Flush()
	}
	if err == nil {
		err = f.Chmod(0o644)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}
