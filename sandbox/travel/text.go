package travel

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The texts of a plan are taken apart by the rules of the benchmark's
// patterns, written out by hand: judging happens at every rollout.

// isSpace is Python's idea of white space.
func isSpace(r rune) bool {
	if r < utf8.RuneSelf {
		return r == ' ' || r >= '\t' && r <= '\r' || r >= 0x1c && r <= 0x1f
	}
	return unicode.IsSpace(r)
}

// trim cuts white space from both ends.
func trim(s string) string {
	if s == "" || inner(s[0]) && inner(s[len(s)-1]) {
		return s
	}
	return strings.TrimFunc(s, isSpace)
}

// inner tells whether a byte is an ASCII character that is not white space.
func inner(c byte) bool { return c > ' ' && c < utf8.RuneSelf }

// stripState cuts "(State)" and all behind it. The text before the first
// bracket must not break the line. It does not trim.
func stripState(s string) string {
	i := strings.IndexByte(s, '(')
	if i < 0 || strings.IndexByte(s[i:], ')') < 0 || strings.IndexByte(s[:i], '\n') >= 0 {
		return s
	}
	return s[:i]
}

// nameCity splits "Name, City" at the last comma; the name begins at its own
// line. ok is false without a comma or with nothing at all behind it. Name
// and city are trimmed, the state is still there.
func nameCity(s string) (name, city string, ok bool) {
	i := strings.LastIndexByte(s, ',')
	if i < 0 || i == len(s)-1 {
		return "-", "-", false
	}
	name = s[:i]
	if j := strings.LastIndexByte(name, '\n'); j >= 0 {
		name = name[j+1:]
	}
	return trim(name), trim(s[i+1:]), true
}

// fromTo finds "from A to B": the first "from", white space, a shortest A
// on one line, white space, "to", white space, and B up to the next comma.
// Neither is trimmed.
func fromTo(s string) (from, to string, ok bool) {
	for base := 0; ; {
		i := strings.Index(s[base:], "from")
		if i < 0 {
			return "", "", false
		}
		start := base + i + len("from")
		from, to, resume, ok := fromToAt(s, start)
		if ok {
			return from, to, true
		}
		base = resume
	}
}

// fromToAt tries a match whose "from" ends at start. After a vain try it says
// where to look on: a later "from" on a line without a "to" part has none either.
func fromToAt(s string, start int) (from, to string, resume int, ok bool) {
	a := skipSpace(s, start) // where A begins if all the white space is the gap
	if a == start {
		return "", "", start, false
	}
	resume = len(s)
	for e := a; e < len(s); {
		if s[e] == '\n' {
			resume = e + 1
			if line := strings.TrimRightFunc(s[:e], isSpace); strings.HasSuffix(line, "from") {
				resume = len(line) - len("from") // its gap crosses the line end
			}
			break
		}
		_, n := utf8.DecodeRuneInString(s[e:])
		e += n // A is s[a:e], at least one character
		if b, ok := toAt(s, e); ok {
			return s[a:e], b, 0, true
		}
	}
	// A pattern matcher would now give blanks of the gap to A: one blank,
	// with at least one before and one behind it.
	for e := prevRune(s, a); e > start; {
		i := prevRune(s, e)
		if i <= start {
			break
		}
		if s[i] != '\n' {
			if b, ok := toAt(s, e); ok {
				return s[i:e], b, 0, true
			}
		}
		e = i
	}
	return "", "", resume, false
}

// prevRune returns where the character before position i begins.
func prevRune(s string, i int) int {
	_, n := utf8.DecodeLastRuneInString(s[:i])
	return i - n
}

// toAt matches white space, "to", white space and B at position e.
func toAt(s string, e int) (b string, ok bool) {
	i := skipSpace(s, e)
	if i == e || !strings.HasPrefix(s[i:], "to") {
		return "", false
	}
	i += len("to")
	j := skipSpace(s, i)
	if j == i {
		return "", false
	}
	if j == len(s) || s[j] == ',' { // B must not be empty: it takes the last blank, if one is left for the gap
		j = prevRune(s, j)
		if j == i {
			return "", false
		}
	}
	b = s[j:]
	if k := strings.IndexByte(b, ','); k >= 0 {
		b = b[:k]
	}
	return b, true
}

func skipSpace(s string, i int) int {
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !isSpace(r) {
			break
		}
		i += n
	}
	return i
}

// containsFold tells whether s, put in lower case, contains the lower-case
// ASCII text sub.
func containsFold(s, sub string) bool {
	first := sub[0]
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= utf8.RuneSelf {
			return strings.Contains(lower(s), sub)
		}
		if lowerByte(c) == first && hasPrefixFold(s[i:], sub) {
			return true
		}
	}
	return false
}

func hasPrefixFold(s, sub string) bool {
	if len(s) < len(sub) {
		return false
	}
	for i := 0; i < len(sub); i++ {
		if lowerByte(s[i]) != sub[i] {
			return false
		}
	}
	return true
}

func lowerByte(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// lower is Python's: the dotted capital I keeps its dot as a mark of its own.
func lower(s string) string {
	return strings.ToLower(strings.ReplaceAll(s, "İ", "i̇"))
}

// flightNumber returns what stands between the first "Flight Number: " and
// the next comma or the next "Flight Number: ". Not trimmed.
func flightNumber(s string) (string, bool) {
	const key = "Flight Number: "
	i := strings.Index(s, key)
	if i < 0 {
		return "", false
	}
	s = s[i+len(key):]
	if j := strings.Index(s, key); j >= 0 {
		s = s[:j]
	}
	if j := strings.IndexByte(s, ','); j >= 0 {
		s = s[:j]
	}
	return s, true
}

// sights calls yield for every piece of an attraction text that a semicolon
// ends, and for the rest behind the last one if open is true.
func sights(s string, open bool, yield func(string) bool) bool {
	for {
		i := strings.IndexByte(s, ';')
		if i < 0 {
			return !open || yield(s)
		}
		if !yield(s[:i]) {
			return false
		}
		s = s[i+1:]
	}
}
