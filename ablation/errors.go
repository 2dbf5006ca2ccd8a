package ablation

import (
	"errors"
	"fmt"
	"strings"
)

// The classes of error that callers ask for with errors.Is.
var (
	ErrNotFound = errors.New("not found")
	ErrConflict = errors.New("conflict")
	ErrInvalid  = errors.New("invalid")
)

// FieldError says what is wrong with one field of an input.
type FieldError struct {
	Field      string `json:"field"`                // recipe or study key, e.g. "base.algorithm.lr"
	Value      string `json:"value,omitempty"`      // as given
	Problem    string `json:"problem,omitempty"`    // what is wrong: "unknown key", "wrong type" …
	Allowed    string `json:"allowed,omitempty"`    // what would be right
	File       string `json:"file,omitempty"`       // study file, when there is one
	Line       int    `json:"line,omitempty"`       // 1-based; 0 = unknown
	Suggestion string `json:"suggestion,omitempty"` // the nearest right key or value
}

// Error writes the field error as one line a person can act on.
func (e FieldError) Error() string {
	var b strings.Builder
	if e.File != "" || e.Line > 0 {
		fmt.Fprintf(&b, "%s:%d: ", e.File, e.Line)
	}
	b.WriteString(e.Field)
	if e.Problem != "" && e.Field != "" {
		b.WriteString(": ")
	}
	b.WriteString(e.Problem)
	if e.Value != "" {
		fmt.Fprintf(&b, " %q", e.Value)
	}
	if e.Allowed != "" {
		b.WriteString("; allowed: " + e.Allowed)
	}
	if e.Suggestion != "" {
		fmt.Fprintf(&b, "; did you mean %q?", e.Suggestion)
	}
	return b.String()
}

// Invalid is an input refused for what its fields say. It is ErrInvalid.
type Invalid struct {
	Fields []FieldError `json:"fields"`
}

// Error joins the field errors, one a line.
func (e *Invalid) Error() string {
	lines := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// Is makes errors.Is(err, ErrInvalid) true.
func (e *Invalid) Is(target error) bool { return target == ErrInvalid }

// Nearest returns the name among names closest to s by edit distance, or ""
// when none is near enough to be a likely misspelling.
func Nearest(s string, names []string) string {
	best, bestDist := "", len(s)/2+1
	for _, n := range names {
		if d := editDistance(strings.ToLower(s), strings.ToLower(n)); d < bestDist {
			best, bestDist = n, d
		}
	}
	if bestDist > 3 {
		return ""
	}
	return best
}

// editDistance is the Levenshtein distance over bytes.
func editDistance(a, b string) int {
	prev := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diag := prev[0]
		prev[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diag
			if a[i-1] != b[j-1] {
				cost++
			}
			diag = prev[j]
			prev[j] = min(cost, prev[j]+1, prev[j-1]+1)
		}
	}
	return prev[len(b)]
}
