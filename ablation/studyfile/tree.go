package studyfile

import (
	"errors"
	"fmt"
	"strings"

	"alidade/ablation"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// node is a YAML value with the line it stands on. Exactly one of entries,
// items and scalar is meaningful, by kind.
type node struct {
	line    int
	kind    kind
	entries []entry
	items   []*node
	scalar  any // nil, bool, int64, uint64, float64 or string
}

type kind int

const (
	kindScalar kind = iota
	kindMap
	kindList
)

type entry struct {
	key   string
	line  int
	value *node
}

// maxBytes bounds a study file; real ones have a few kilobytes.
const maxBytes = 1 << 20

// parse reads one YAML document of plain maps, lists and scalars. Anchors,
// aliases, tags and merge keys are refused: a study file needs none, and
// they are how small files become huge.
func parse(file string, src []byte) (*node, error) {
	if len(src) > maxBytes {
		return nil, invalid(file, 0, "", fmt.Sprintf("%d bytes", len(src)), "file too large", fmt.Sprintf("at most %d bytes", maxBytes))
	}
	f, err := parser.ParseBytes(src, 0)
	if err != nil {
		return nil, syntaxError(file, err)
	}
	if len(f.Docs) != 1 || f.Docs[0].Body == nil {
		if len(f.Docs) > 1 {
			return nil, invalid(file, f.Docs[1].GetToken().Position.Line, "", fmt.Sprintf("%d documents", len(f.Docs)), "several YAML documents", "one document a file")
		}
		return nil, invalid(file, 1, "", "", "empty file", "a study: name, base, factors, seeds …")
	}
	return convert(file, f.Docs[0].Body, 0)
}

func syntaxError(file string, err error) error {
	var se *yaml.SyntaxError
	if errors.As(err, &se) && se.Token != nil {
		return invalid(file, se.Token.Position.Line, "", "", "YAML syntax: "+se.Message, "well-formed YAML")
	}
	var dup *yaml.DuplicateKeyError
	if errors.As(err, &dup) && dup.Token != nil {
		return invalid(file, dup.Token.Position.Line, dup.Token.Value, "", "key given twice", "each key once")
	}
	msg, _, _ := strings.Cut(err.Error(), "\n")
	return invalid(file, 0, "", "", "YAML syntax: "+msg, "well-formed YAML")
}

func invalid(file string, line int, field, value, problem, allowed string) error {
	return &ablation.Invalid{Fields: []ablation.FieldError{{File: file, Line: line, Field: field, Value: value, Problem: problem, Allowed: allowed}}}
}

const maxDepth = 12

func convert(file string, n ast.Node, depth int) (*node, error) {
	line := 0
	if t := n.GetToken(); t != nil {
		line = t.Position.Line
	}
	if depth > maxDepth {
		return nil, invalid(file, line, "", "", "nested too deeply", fmt.Sprintf("at most %d levels", maxDepth))
	}
	out := &node{line: line}
	switch v := n.(type) {
	case *ast.MappingNode:
		return convertMap(file, line, v.Values, depth)
	case *ast.MappingValueNode:
		return convertMap(file, line, []*ast.MappingValueNode{v}, depth)
	case *ast.SequenceNode:
		out.kind = kindList
		for _, item := range v.Values {
			c, err := convert(file, item, depth+1)
			if err != nil {
				return nil, err
			}
			out.items = append(out.items, c)
		}
	case *ast.NullNode:
	case *ast.BoolNode:
		out.scalar = v.Value
	case *ast.IntegerNode:
		out.scalar = v.Value
	case *ast.FloatNode:
		out.scalar = v.Value
	case *ast.InfinityNode:
		out.scalar = v.Value
	case *ast.NanNode:
		out.scalar = v.GetValue()
	case *ast.StringNode:
		out.scalar = v.Value
	case *ast.LiteralNode:
		out.scalar = v.Value.Value
	default:
		return nil, invalid(file, line, "", strings.TrimSpace(n.String()), "anchors, aliases and tags are not used in study files", "plain maps, lists and values")
	}
	return out, nil
}

func convertMap(file string, line int, values []*ast.MappingValueNode, depth int) (*node, error) {
	out := &node{line: line, kind: kindMap}
	if len(values) > 0 {
		if t := values[0].Key.GetToken(); t != nil {
			out.line = t.Position.Line
		}
	}
	seen := map[string]bool{}
	for _, mv := range values {
		key, ok := mv.Key.(ast.Node)
		kline := line
		if t := mv.Key.GetToken(); t != nil {
			kline = t.Position.Line
		}
		name := ""
		if ok {
			name = keyText(key)
		}
		if name == "" || name == "<<" {
			return nil, invalid(file, kline, strings.TrimSpace(mv.Key.String()), "", "not a usable key", "a plain text key")
		}
		if seen[name] {
			return nil, invalid(file, kline, name, "", "key given twice", "each key once")
		}
		seen[name] = true
		c, err := convert(file, mv.Value, depth+1)
		if err != nil {
			return nil, err
		}
		out.entries = append(out.entries, entry{key: name, line: kline, value: c})
	}
	return out, nil
}

func keyText(n ast.Node) string {
	switch k := n.(type) {
	case *ast.StringNode:
		return k.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return k.GetToken().Value
	case *ast.MergeKeyNode:
		return "<<"
	}
	return ""
}

// plain turns a node into maps, lists and scalars.
func (n *node) plain() any {
	switch n.kind {
	case kindMap:
		m := map[string]any{}
		for _, e := range n.entries {
			m[e.key] = e.value.plain()
		}
		return m
	case kindList:
		l := make([]any, len(n.items))
		for i, c := range n.items {
			l[i] = c.plain()
		}
		return l
	}
	return n.scalar
}

// text describes the node for an error message.
func (n *node) text() string {
	switch n.kind {
	case kindMap:
		return "a map"
	case kindList:
		return "a list"
	}
	if n.scalar == nil {
		return "nothing"
	}
	return fmt.Sprint(n.scalar)
}
