package studyfile

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"alidade/ablation"

	"github.com/goccy/go-yaml"
)

// Encode writes the canonical study file. The base is written as its preset
// and the keys that differ from it, so that a reader sees what was chosen.
func Encode(st ablation.Study) ([]byte, error) {
	w := &writer{}
	w.pair(0, "name", st.Name)
	w.optional(0, "question", st.Question)
	w.optional(0, "template", st.Template)
	w.base(st.Base)
	w.factors(st.Factors)
	w.pair(0, "design", string(st.Design))
	w.arms(st.Arms, st.Factors)
	w.pair(0, "seeds", st.Seeds)
	w.pair(0, "metric", st.Metric)
	if st.MinDifference != 0 {
		w.pair(0, "min_difference", st.MinDifference)
	}
	if st.Concurrency != 0 {
		w.pair(0, "concurrency", st.Concurrency)
	}
	if st.Priority != 0 {
		w.pair(0, "priority", st.Priority)
	}
	if h := st.Halving; h != nil {
		w.line(0, "halving:")
		w.pair(1, "metric", h.Metric)
		w.pair(1, "rungs", h.Rungs)
		w.pair(1, "reduction", h.Reduction)
	}
	w.optional(0, "notes", st.Notes)
	return w.buf.Bytes(), w.err
}

type writer struct {
	buf bytes.Buffer
	err error
}

func (w *writer) line(depth int, s string) {
	w.buf.WriteString(strings.Repeat("  ", depth) + s + "\n")
}

func (w *writer) pair(depth int, key string, v any) { w.line(depth, key+": "+w.inline(v)) }

func (w *writer) optional(depth int, key, v string) {
	if v != "" {
		w.pair(depth, key, v)
	}
}

// inline writes a value on one line, quoted where YAML would misread it.
func (w *writer) inline(v any) string {
	rv := reflect.ValueOf(v)
	switch rv.Kind() {
	case reflect.Slice:
		parts := make([]string, rv.Len())
		for i := range parts {
			parts[i] = w.inline(rv.Index(i).Interface())
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case reflect.Map:
		var parts []string
		m, _ := v.(map[string]string)
		for _, k := range sorted(m) {
			parts = append(parts, w.inline(k)+": "+w.inline(m[k]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case reflect.String:
		return quote(rv.String())
	case reflect.Float64:
		return number(rv.Float())
	}
	return fmt.Sprint(v)
}

func number(x float64) string {
	s := fmt.Sprintf("%g", x)
	if strings.Contains(s, "e") && !strings.Contains(s, ".") { // 1e-06 is read as text by some YAML readers
		s = strings.Replace(s, "e", ".0e", 1)
	}
	return s
}

// quote writes a text plainly when the library reads it back as the same
// text, and as a double-quoted scalar otherwise.
func quote(s string) string {
	plain := s != "" && !strings.ContainsAny(s, "\n\r\t\"'\\{}[],&*#?|<>=!%@`:") && strings.TrimSpace(s) == s && s[0] != '-' && s != "~"
	if plain {
		var back any
		if err := yaml.Unmarshal([]byte(s), &back); err == nil && back == any(s) {
			return s
		}
	}
	return doubleQuote(s)
}

func doubleQuote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func (w *writer) base(r ablation.Recipe) {
	name := r.Preset
	preset, ok := ablation.PresetNamed(name)
	if !ok {
		name = "quick"
		preset, _ = ablation.PresetNamed(name)
	}
	w.line(0, "base:")
	w.pair(1, "preset", name)
	section := ""
	for _, key := range ablation.Diff(preset, r) {
		v, err := ablation.Get(&r, key)
		if err != nil {
			w.err = err
			return
		}
		head, last, _ := strings.Cut(key, ".")
		if head != section {
			w.line(1, head+":")
			section = head
		}
		w.pair(2, last, v)
	}
}

func (w *writer) factors(fs []ablation.Factor) {
	if len(fs) == 0 {
		return
	}
	w.line(0, "factors:")
	for _, f := range fs {
		w.line(1, "- key: "+w.inline(f.Key))
		if f.Name != "" {
			w.pair(2, "name", f.Name)
		}
		canonLevels(&f)
		w.pair(2, "levels", f.Levels)
	}
}

func (w *writer) arms(arms []map[string]any, factors []ablation.Factor) {
	if len(arms) == 0 {
		return
	}
	w.line(0, "arms:")
	for _, a := range arms {
		if len(a) == 0 {
			w.line(1, "- {}")
			continue
		}
		lead := "- "
		for _, k := range sorted(a) {
			w.line(1, lead+k+": "+w.inline(a[k]))
			lead = "  "
		}
	}
}

func sorted[V any](m map[string]V) []string {
	var keys []string
	for _, k := range reflect.ValueOf(m).MapKeys() {
		keys = append(keys, k.String())
	}
	slices.Sort(keys)
	return keys
}
