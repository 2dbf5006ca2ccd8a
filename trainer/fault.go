package trainer

import "fmt"

// Cause says what is wrong with a line that could not be read. Causes are
// stable keys; a Fault's Text says the rest in words.
type Cause string

// The causes of a malformed line.
const (
	CauseCut       Cause = "cut"       // JSON ends before it is complete
	CauseNotFinite Cause = "nan"       // bare NaN or Infinity, which JSON does not have
	CauseUTF8      Cause = "utf8"      // bytes that are not UTF-8
	CauseNUL       Cause = "nul"       // a NUL byte
	CauseBOM       Cause = "bom"       // a byte order mark
	CauseDepth     Cause = "depth"     // nested too deeply
	CauseNumber    Cause = "number"    // a number outside float64, such as 1e999
	CauseDuplicate Cause = "duplicate" // the same key twice in one object
	CauseKey       Cause = "key"       // a key or metric name that is empty or too long
	CauseSyntax    Cause = "syntax"    // not JSON for another reason
	CauseType      Cause = "type"      // a field of the wrong type
	CauseVersion   Cause = "version"   // another version of the protocol
	CauseField     Cause = "field"     // a field is missing or out of range
)

// A Fault is one malformed line: where it is and why it could not be read.
type Fault struct {
	Line   int64  `json:"line"`   // 1-based in the file, from where the reader began
	Offset int64  `json:"offset"` // byte at which the line begins
	Cause  Cause  `json:"cause"`
	Text   string `json:"text"` // in words, with the start of the line
}

// Error writes the fault as one line a person can act on.
func (f Fault) Error() string { return fmt.Sprintf("line %d: %s: %s", f.Line, f.Cause, f.Text) }
