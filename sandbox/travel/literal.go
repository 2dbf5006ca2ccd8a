package travel

import (
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The published query files hold lists and dictionaries as the text of a
// Python literal: "{'house rule': None, 'cuisine': ['Tea', 'BBQ']}".

const maxLiteralDepth = 100

var errLiteral = errors.New("not a Python literal")

// ParseLiteral reads a Python literal made of None, True, False, numbers,
// strings, lists, tuples and dictionaries with string keys.
func ParseLiteral(src string) (Value, error) {
	p := literalParser{src: src}
	v, err := p.value(0)
	if err == nil {
		p.space()
		if p.pos < len(src) {
			err = errLiteral
		}
	}
	if err != nil {
		return Value{}, fmt.Errorf("parse literal at byte %d: %w", p.pos, err)
	}
	return v, nil
}

type literalParser struct {
	src string
	pos int
}

func (p *literalParser) space() {
	for p.pos < len(p.src) && strings.IndexByte(" \t\r\n", p.src[p.pos]) >= 0 {
		p.pos++
	}
}

func (p *literalParser) peek() byte {
	p.space()
	if p.pos < len(p.src) {
		return p.src[p.pos]
	}
	return 0
}

func (p *literalParser) value(depth int) (Value, error) {
	if depth > maxLiteralDepth {
		return Value{}, errLiteral
	}
	switch c := p.peek(); c {
	case '[':
		return p.list(']', depth)
	case '(':
		return p.list(')', depth)
	case '{':
		return p.dict(depth)
	case '\'', '"':
		s, err := p.text()
		return Text(s), err
	case 0:
		return Value{}, errLiteral
	}
	start := p.pos
	for p.pos < len(p.src) && strings.IndexByte(",:]}) \t\r\n", p.src[p.pos]) < 0 {
		p.pos++
	}
	switch word := p.src[start:p.pos]; word {
	case "None", "null":
		return Value{Kind: Null}, nil
	case "True", "true":
		return Value{Kind: Bool, Num: 1}, nil
	case "False", "false":
		return Value{Kind: Bool}, nil
	default:
		n, err := strconv.ParseFloat(word, 64)
		if err != nil {
			p.pos = start
			return Value{}, errLiteral
		}
		return Value{Kind: Number, Num: n, Int: !strings.ContainsAny(word, ".eE")}, nil
	}
}

func (p *literalParser) list(end byte, depth int) (Value, error) {
	v := Value{Kind: List}
	p.pos++
	for {
		if p.peek() == end {
			p.pos++
			return v, nil
		}
		item, err := p.value(depth + 1)
		if err != nil {
			return v, err
		}
		v.Items = append(v.Items, item)
		if c := p.peek(); c == ',' {
			p.pos++
		} else if c != end {
			return v, errLiteral
		}
	}
}

func (p *literalParser) dict(depth int) (Value, error) {
	items := map[string]Value{}
	p.pos++
	for p.peek() != '}' {
		if c := p.peek(); c != '\'' && c != '"' {
			return Value{}, errLiteral
		}
		key, err := p.text()
		if err != nil {
			return Value{}, err
		}
		if p.peek() != ':' {
			return Value{}, errLiteral
		}
		p.pos++
		if items[key], err = p.value(depth + 1); err != nil {
			return Value{}, err
		}
		if c := p.peek(); c == ',' {
			p.pos++
		} else if c != '}' {
			return Value{}, errLiteral
		}
	}
	p.pos++
	v := Value{Kind: Object}
	for k := range items {
		v.Keys = append(v.Keys, k)
	}
	sort.Strings(v.Keys)
	for _, k := range v.Keys {
		v.Items = append(v.Items, items[k])
	}
	return v, nil
}

// text reads a quoted string at the current position.
func (p *literalParser) text() (string, error) {
	end := p.src[p.pos]
	p.pos++
	var b strings.Builder
	for p.pos < len(p.src) {
		c := p.src[p.pos]
		p.pos++
		switch c {
		case end:
			return b.String(), nil
		case '\\':
			if err := p.escape(&b); err != nil {
				return "", err
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", errLiteral
}

var escapes = map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', '\\': '\\', '\'': '\'', '"': '"', 'a': 7, 'b': 8, 'f': 12, 'v': 11}

func (p *literalParser) escape(b *strings.Builder) error {
	if p.pos >= len(p.src) {
		return errLiteral
	}
	c := p.src[p.pos]
	p.pos++
	if plain, ok := escapes[c]; ok {
		b.WriteByte(plain)
		return nil
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
	if digits == 0 {
		b.WriteByte('\\')
		b.WriteByte(c)
		return nil
	}
	if p.pos+digits > len(p.src) {
		return errLiteral
	}
	n, err := strconv.ParseUint(p.src[p.pos:p.pos+digits], 16, 32)
	if err != nil || n > utf8.MaxRune {
		return errLiteral
	}
	p.pos += digits
	b.WriteRune(rune(n))
	return nil
}
