package runner

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The table of docs/runner.md names a test for each row, each in the package
// that it says.
func TestTableOfRowsNamesTests(t *testing.T) {
	text, err := os.ReadFile("../docs/runner.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "## What shows it")
	if !ok {
		t.Fatal("no table")
	}
	rows := make(map[string]bool)
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 || !strings.Contains(line, "`Test") {
			continue
		}
		rows[strings.TrimSpace(cells[1])] = true
		for _, part := range strings.Split(cells[2], ";") {
			folder, _, _ := strings.Cut(strings.TrimSpace(part), " ")
			for _, m := range regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(part, -1) {
				if !declares(t, filepath.Join("..", folder), m[1]) {
					t.Errorf("row %s: no %s in %s", cells[1], m[1], folder)
				}
			}
		}
	}
	for _, row := range strings.Fields("R1 R2 R4 R5 R8 R9 R12 R17 R19 R22 R24 C10 C15 C16 C18 C30 C37 C38 C54 C56b") {
		if !rows[row] {
			t.Errorf("no test shows row %s", row)
		}
	}
}

func declares(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(src), "\nfunc "+name+"(t *testing.T)") {
			return true
		}
	}
	return false
}
