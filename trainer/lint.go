package trainer

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// Limits of one line, besides its length.
const (
	maxDepth    = 64  // of nesting
	maxKeyBytes = 512 // of a key in any object
	maxName     = 200 // bytes of a metric name or an id
)

// span is a part of a line, as indices.
type span struct{ from, to int }

// linter walks one JSON object once. It refuses what encoding/json lets pass
// (repeated keys, invalid UTF-8, deep nesting, keys of any length), gives every
// refusal its cause, and notes where the values of the top-level keys lie.
type linter struct {
	b   []byte
	i   int
	top map[string]span
}

// lint checks that b is one JSON object and returns the places of its
// top-level values.
func lint(b []byte) (map[string]span, error) {
	switch {
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		return nil, fault(CauseBOM, "starts with a byte order mark")
	case bytes.IndexByte(b, 0) >= 0:
		return nil, fault(CauseNUL, "NUL at byte %d", bytes.IndexByte(b, 0))
	case !utf8.Valid(b):
		return nil, fault(CauseUTF8, "not UTF-8")
	}
	l := &linter{b: b, top: make(map[string]span, 4)}
	l.space()
	if l.i < len(b) && b[l.i] != '{' {
		if err := l.value(1); err != nil {
			return nil, err
		}
		return nil, fault(CauseSyntax, "not an object")
	}
	if err := l.value(1); err != nil {
		return nil, err
	}
	if l.space(); l.i < len(b) {
		return nil, fault(CauseSyntax, "text after the object at byte %d", l.i)
	}
	return l.top, nil
}

func fault(c Cause, format string, args ...any) error {
	return &valueError{c, fmt.Sprintf(format, args...)}
}

func (l *linter) space() {
	for l.i < len(l.b) {
		switch l.b[l.i] {
		case ' ', '\t', '\r', '\n':
			l.i++
		default:
			return
		}
	}
}

// value reads one value at the given depth; the top-level object has depth 1.
func (l *linter) value(depth int) error {
	l.space()
	if l.i == len(l.b) {
		return l.cut()
	}
	switch c := l.b[l.i]; {
	case c == '{' || c == '[':
		if depth > maxDepth {
			return fault(CauseDepth, "nested more than %d deep", maxDepth)
		}
		if c == '{' {
			return l.object(depth)
		}
		return l.array(depth)
	case c == '"':
		_, err := l.str()
		return err
	case c == '-' || c >= '0' && c <= '9':
		return l.number()
	case c == 'N' || c == 'I':
		return fault(CauseNotFinite, `bare NaN or Infinity at byte %d; write "NaN", "+Inf" or "-Inf"`, l.i)
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if l.b[l.i] == word[0] {
			return l.literal(word)
		}
	}
	return l.unexpected()
}

func (l *linter) object(depth int) error {
	l.i++
	var seen keySet
	for first := true; ; first = false {
		l.space()
		if l.i == len(l.b) {
			return l.cut()
		}
		if l.b[l.i] == '}' && first {
			l.i++
			return nil
		}
		if l.b[l.i] != '"' {
			return l.unexpected()
		}
		key, err := l.key(&seen)
		if err != nil {
			return err
		}
		from := l.i
		if err := l.value(depth + 1); err != nil {
			return err
		}
		if depth == 1 {
			l.top[string(key)] = span{from, l.i}
		}
		more, err := l.separator('}')
		if err != nil || !more {
			return err
		}
	}
}

// key reads a key and its colon, up to the value.
func (l *linter) key(seen *keySet) ([]byte, error) {
	key, err := l.str()
	switch {
	case err != nil:
		return nil, err
	case len(key) > maxKeyBytes:
		return nil, fault(CauseKey, "a key of %d bytes; allowed: at most %d", len(key), maxKeyBytes)
	case !seen.add(key):
		return nil, fault(CauseDuplicate, "key %s twice in one object", clip(key))
	}
	if l.space(); l.i == len(l.b) {
		return nil, l.cut()
	}
	if l.b[l.i] != ':' {
		return nil, l.unexpected()
	}
	l.i++
	l.space()
	return key, nil
}

func (l *linter) array(depth int) error {
	l.i++
	if l.space(); l.i < len(l.b) && l.b[l.i] == ']' {
		l.i++
		return nil
	}
	for {
		if err := l.value(depth + 1); err != nil {
			return err
		}
		more, err := l.separator(']')
		if err != nil || !more {
			return err
		}
	}
}

// separator reads a comma (more follows) or the closing bracket.
func (l *linter) separator(end byte) (more bool, err error) {
	l.space()
	if l.i == len(l.b) {
		return false, l.cut()
	}
	c := l.b[l.i]
	if c != ',' && c != end {
		return false, l.unexpected()
	}
	l.i++
	return c == ',', nil
}

// str reads a string and returns what stands between its quotes.
func (l *linter) str() ([]byte, error) {
	l.i++
	from := l.i
	for l.i < len(l.b) {
		switch c := l.b[l.i]; {
		case c == '"':
			l.i++
			return l.b[from : l.i-1], nil
		case c == '\\':
			l.i += 2
		case c < ' ':
			return nil, fault(CauseSyntax, "control character 0x%02x in a string at byte %d", c, l.i)
		default:
			l.i++
		}
	}
	return nil, l.cut()
}

func (l *linter) number() error {
	from := l.i
	if l.b[l.i] == '-' {
		l.i++
		if l.i < len(l.b) && l.b[l.i] == 'I' {
			return fault(CauseNotFinite, `bare -Infinity at byte %d; write "-Inf"`, from)
		}
	}
	whole := l.i
	if l.digits() == 0 {
		return l.unexpected()
	}
	if l.b[whole] == '0' && l.i > whole+1 {
		return fault(CauseSyntax, "number with a leading zero at byte %d", from)
	}
	if l.i < len(l.b) && l.b[l.i] == '.' {
		l.i++
		if l.digits() == 0 {
			return l.unexpected()
		}
	}
	if l.i < len(l.b) && (l.b[l.i] == 'e' || l.b[l.i] == 'E') {
		l.i++
		if l.i < len(l.b) && (l.b[l.i] == '+' || l.b[l.i] == '-') {
			l.i++
		}
		if l.digits() == 0 {
			return l.unexpected()
		}
	}
	return nil
}

func (l *linter) digits() int {
	from := l.i
	for l.i < len(l.b) && l.b[l.i] >= '0' && l.b[l.i] <= '9' {
		l.i++
	}
	return l.i - from
}

func (l *linter) literal(word string) error {
	rest := l.b[l.i:]
	if bytes.HasPrefix(rest, []byte(word)) {
		l.i += len(word)
		return nil
	}
	if bytes.HasPrefix([]byte(word), rest) {
		return l.cut()
	}
	return l.unexpected()
}

func (l *linter) cut() error { return fault(CauseCut, "ends at byte %d inside a value", len(l.b)) }

func (l *linter) unexpected() error {
	if l.i >= len(l.b) {
		return l.cut()
	}
	r, _ := utf8.DecodeRune(l.b[l.i:])
	return fault(CauseSyntax, "unexpected %q at byte %d", r, l.i)
}

// keySet finds repeated keys: by comparing while there are few, by a map after.
type keySet struct {
	few  [][]byte
	many map[string]struct{}
}

// add reports false if key is already there.
func (s *keySet) add(key []byte) bool {
	if s.many != nil {
		if _, twice := s.many[string(key)]; twice {
			return false
		}
		s.many[string(key)] = struct{}{}
		return true
	}
	for _, k := range s.few {
		if bytes.Equal(k, key) {
			return false
		}
	}
	if s.few = append(s.few, key); len(s.few) > 16 {
		s.many = make(map[string]struct{}, 2*len(s.few))
		for _, k := range s.few {
			s.many[string(k)] = struct{}{}
		}
	}
	return true
}
