// Package studyfile reads and writes study files: YAML documents that hold an
// [ablation.Study]. Decode is strict and reports every fault with file, line,
// key, value and what is allowed. Encode writes the canonical document, which
// decodes to the same study and encodes to the same bytes again.
package studyfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"alidade/ablation"
)

// topKeys are the keys of a study file in their canonical order.
var topKeys = []string{"name", "question", "template", "base", "factors", "design", "arms", "seeds", "metric", "min_difference", "concurrency", "priority", "halving", "notes"}

// Decode reads a study file. The name is used in messages only. The error is
// *ablation.Invalid and lists every fault found, not just the first.
func Decode(name string, src []byte) (ablation.Study, error) {
	root, err := parse(name, src)
	if err != nil {
		return ablation.Study{}, err
	}
	d := &decoder{file: name, lines: map[string]int{}}
	st := d.study(root)
	if len(d.bad) == 0 {
		if err := st.Validate(); err != nil {
			d.adopt(err)
		}
	}
	if len(d.bad) > 0 {
		slices.SortStableFunc(d.bad, func(a, b ablation.FieldError) int { return a.Line - b.Line })
		return ablation.Study{}, &ablation.Invalid{Fields: d.bad}
	}
	return st, nil
}

type decoder struct {
	file  string
	bad   []ablation.FieldError
	lines map[string]int // field path → line, for faults found after decoding
}

func (d *decoder) fail(line int, e ablation.FieldError) {
	e.File, e.Line = d.file, line
	d.bad = append(d.bad, e)
}

// adopt takes over faults of a later check and finds their lines.
func (d *decoder) adopt(err error) {
	var inv *ablation.Invalid
	if !errors.As(err, &inv) {
		d.fail(0, ablation.FieldError{Problem: err.Error()})
		return
	}
	for _, f := range inv.Fields {
		if _, isKey := ablation.FieldOf(f.Field); isKey {
			if line, ok := d.lines[f.Field]; ok { // a factor's level broke a rule of the recipe
				d.fail(line, f)
				continue
			}
			f.Field = "base." + f.Field
		}
		d.fail(d.lineOf(f.Field), f)
	}
}

// lineOf returns the line of the longest known prefix of a field path.
func (d *decoder) lineOf(field string) int {
	for p := field; p != ""; {
		if l, ok := d.lines[p]; ok {
			return l
		}
		i := strings.LastIndexAny(p, ".[")
		if i < 0 {
			break
		}
		p = p[:i]
	}
	return 1
}

func (d *decoder) study(root *node) ablation.Study {
	var st ablation.Study
	if root.kind != kindMap {
		d.fail(root.line, ablation.FieldError{Field: "study", Value: root.text(), Problem: "wrong type", Allowed: "a map with name, base, factors, seeds …"})
		return st
	}
	for _, e := range root.entries {
		d.lines[e.key] = e.line
		d.top(&st, e)
	}
	if d.lines["base"] == 0 {
		st.Base, _ = ablation.PresetNamed("quick")
	}
	if st.Design == "" {
		st.Design = ablation.DesignGrid
		if len(st.Arms) > 0 {
			st.Design = ablation.DesignList
		}
	}
	if st.Metric == "" {
		st.Metric = "eval/success"
	}
	return st
}

func (d *decoder) top(st *ablation.Study, e entry) {
	switch e.key {
	case "name":
		st.Name = d.str(e)
	case "question":
		st.Question = d.str(e)
	case "template":
		st.Template = d.str(e)
	case "base":
		st.Base = d.base(e)
	case "factors":
		st.Factors = d.factors(e)
	case "design":
		st.Design = ablation.Design(d.str(e))
	case "arms":
		st.Arms = d.arms(e)
	case "seeds":
		st.Seeds = d.seeds(e)
	case "metric":
		st.Metric = d.str(e)
	case "min_difference":
		st.MinDifference = d.num(e)
	case "concurrency":
		st.Concurrency = d.whole(e)
	case "halving":
		st.Halving = d.halving(e)
	case "priority":
		st.Priority = d.whole(e)
	case "notes":
		st.Notes = d.str(e)
	default:
		d.fail(e.line, ablation.FieldError{Field: e.key, Problem: "unknown key", Allowed: strings.Join(topKeys, ", "), Suggestion: ablation.Nearest(e.key, topKeys)})
	}
}

func (d *decoder) str(e entry) string {
	if s, ok := e.value.scalar.(string); ok && e.value.kind == kindScalar {
		return s
	}
	d.fail(e.line, ablation.FieldError{Field: e.key, Value: e.value.text(), Problem: "wrong type", Allowed: "a text"})
	return ""
}

func (d *decoder) num(e entry) float64 {
	if e.value.kind == kindScalar {
		switch n := e.value.scalar.(type) {
		case int64:
			return float64(n)
		case uint64:
			return float64(n)
		case float64:
			return n
		}
	}
	d.fail(e.line, ablation.FieldError{Field: e.key, Value: e.value.text(), Problem: "wrong type", Allowed: "a number"})
	return 0
}

// halvingKeys are the keys of halving.
var halvingKeys = []string{"metric", "rungs", "reduction"}

func (d *decoder) halving(e entry) *ablation.Halving {
	h := new(ablation.Halving)
	if e.value.kind != kindMap {
		d.fail(e.line, ablation.FieldError{Field: "halving", Value: e.value.text(), Problem: "wrong type", Allowed: "a map with metric, rungs and reduction"})
		return nil
	}
	for _, k := range e.value.entries {
		at := entry{key: "halving." + k.key, line: k.line, value: k.value}
		d.lines[at.key] = k.line
		switch k.key {
		case "metric":
			h.Metric = d.str(at)
		case "reduction":
			h.Reduction = d.whole(at)
		case "rungs":
			if k.value.kind != kindList {
				d.fail(k.line, ablation.FieldError{Field: at.key, Value: k.value.text(), Problem: "wrong type", Allowed: "a list of steps"})
				continue
			}
			for i, item := range k.value.items {
				h.Rungs = append(h.Rungs, int64(d.whole(entry{key: fmt.Sprintf("%s[%d]", at.key, i), line: item.line, value: item})))
			}
		default:
			d.fail(k.line, ablation.FieldError{Field: at.key, Problem: "unknown key", Allowed: strings.Join(halvingKeys, ", "), Suggestion: ablation.Nearest(k.key, halvingKeys)})
		}
	}
	return h
}

func (d *decoder) whole(e entry) int {
	n := d.num(e)
	if n != float64(int(n)) {
		d.fail(e.line, ablation.FieldError{Field: e.key, Value: e.value.text(), Problem: "wrong type", Allowed: "a whole number"})
	}
	return int(n)
}

// base starts from the preset and sets each key given, nested or dotted.
func (d *decoder) base(e entry) ablation.Recipe {
	preset := "quick"
	if e.value.kind != kindMap {
		d.fail(e.line, ablation.FieldError{Field: "base", Value: e.value.text(), Problem: "wrong type", Allowed: "a map of recipe keys; preset: NAME starts from a preset"})
	}
	for _, k := range e.value.entries {
		if k.key == "preset" {
			preset = d.str(entry{key: "base.preset", line: k.line, value: k.value})
		}
	}
	r, ok := ablation.PresetNamed(preset)
	if !ok {
		d.fail(e.line, ablation.FieldError{Field: "base.preset", Value: preset, Problem: "unknown value", Allowed: strings.Join(ablation.PresetNames(), ", "), Suggestion: ablation.Nearest(preset, ablation.PresetNames())})
	}
	d.recipeKeys(&r, "", e.value)
	return r
}

func (d *decoder) recipeKeys(r *ablation.Recipe, prefix string, n *node) {
	for _, e := range n.entries {
		if prefix == "" && e.key == "preset" {
			continue
		}
		key := e.key
		if prefix != "" {
			key = prefix + "." + e.key
		} else {
			key = ablation.ResolveKeyIfLeaf(key, e.value.kind == kindMap)
		}
		d.lines["base."+key] = e.line
		if f, ok := ablation.FieldOf(key); ok && !(e.value.kind == kindMap && f.Kind != ablation.KindMap) {
			d.set(r, key, "base."+key, e.value, e.line)
			continue
		}
		if e.value.kind == kindMap && isSection(key) {
			d.recipeKeys(r, key, e.value)
			continue
		}
		d.fail(e.line, ablation.FieldError{Field: "base." + key, Value: scalarText(e.value), Problem: "unknown key", Allowed: allowedUnder(prefix), Suggestion: suggest(key)})
	}
}

func (d *decoder) set(r *ablation.Recipe, key, field string, v *node, line int) {
	err := ablation.Set(r, key, v.plain())
	var fe ablation.FieldError
	if errors.As(err, &fe) {
		fe.Field = field
		if v.kind != kindScalar || v.scalar == nil {
			fe.Value = v.text()
		}
		d.fail(line, fe)
	}
}

func scalarText(n *node) string {
	if n.kind == kindScalar && n.scalar != nil {
		return n.text()
	}
	return ""
}

func isSection(key string) bool {
	for _, k := range ablation.FieldKeys() {
		if strings.HasPrefix(k, key+".") {
			return true
		}
	}
	return false
}

func allowedUnder(prefix string) string {
	var names []string
	for _, k := range ablation.FieldKeys() {
		if prefix == "" {
			section, _, _ := strings.Cut(k, ".")
			if !slices.Contains(names, section) {
				names = append(names, section)
			}
			continue
		}
		if rest, ok := strings.CutPrefix(k, prefix+"."); ok {
			names = append(names, rest)
		}
	}
	if prefix == "" {
		return "preset, " + strings.Join(names, ", ")
	}
	return strings.Join(names, ", ")
}

func suggest(key string) string {
	section, last, nested := strings.Cut(key, ".")
	if !nested {
		var sections []string
		for _, k := range ablation.FieldKeys() {
			s, _, _ := strings.Cut(k, ".")
			sections = append(sections, s)
		}
		if s := ablation.Nearest(key, sections); s != "" {
			return s
		}
		return ablation.Nearest(key, ablation.FieldKeys())
	}
	var lasts []string
	for _, k := range ablation.FieldKeys() {
		if rest, ok := strings.CutPrefix(k, section+"."); ok {
			lasts = append(lasts, rest)
		}
	}
	if s := ablation.Nearest(last, lasts); s != "" {
		return section + "." + s
	}
	return ablation.Nearest(key, ablation.FieldKeys())
}

func (d *decoder) factors(e entry) []ablation.Factor {
	if e.value.kind != kindList {
		d.fail(e.line, ablation.FieldError{Field: "factors", Value: e.value.text(), Problem: "wrong type", Allowed: "a list of maps with key and levels"})
		return nil
	}
	var out []ablation.Factor
	for i, item := range e.value.items {
		at := fmt.Sprintf("factors[%d]", i)
		d.lines[at] = item.line
		if item.kind != kindMap {
			d.fail(item.line, ablation.FieldError{Field: at, Value: item.text(), Problem: "wrong type", Allowed: "a map with key and levels"})
			continue
		}
		out = append(out, d.factor(at, item))
	}
	return out
}

func (d *decoder) factor(at string, n *node) ablation.Factor {
	var f ablation.Factor
	for _, e := range n.entries {
		d.lines[at+"."+e.key] = e.line
		named := entry{key: at + "." + e.key, line: e.line, value: e.value}
		switch e.key {
		case "key":
			f.Key = ablation.ResolveKey(d.str(named))
			d.lines[f.Key] = e.line
		case "name":
			f.Name = d.str(named)
		case "levels":
			if e.value.kind != kindList {
				d.fail(e.line, ablation.FieldError{Field: named.key, Value: e.value.text(), Problem: "wrong type", Allowed: "a list of values, such as [SUM, MACRO]"})
				continue
			}
			for j, l := range e.value.items {
				d.lines[fmt.Sprintf("%s.levels[%d]", at, j)] = l.line
				f.Levels = append(f.Levels, l.plain())
			}
		default:
			d.fail(e.line, ablation.FieldError{Field: named.key, Problem: "unknown key", Allowed: "key, name, levels", Suggestion: ablation.Nearest(e.key, []string{"key", "name", "levels"})})
		}
	}
	if f.Key == "" && d.lines[at+".key"] == 0 {
		d.fail(n.line, ablation.FieldError{Field: at + ".key", Problem: "missing", Allowed: "a recipe key, such as reward.kind or data.prompts"})
	}
	canonLevels(&f)
	return f
}

// canonLevels gives levels the type of their key, so that 1 and 1.0 are one value.
func canonLevels(f *ablation.Factor) {
	field, ok := ablation.FieldOf(f.Key)
	if !ok {
		return
	}
	for i, l := range f.Levels {
		if c, err := field.Coerce(l); err == nil {
			f.Levels[i] = c
		}
	}
}

func (d *decoder) arms(e entry) []map[string]any {
	if e.value.kind != kindList {
		d.fail(e.line, ablation.FieldError{Field: "arms", Value: e.value.text(), Problem: "wrong type", Allowed: "a list of maps from recipe keys to values"})
		return nil
	}
	var out []map[string]any
	for i, item := range e.value.items {
		at := fmt.Sprintf("arms[%d]", i)
		d.lines[at] = item.line
		if item.kind != kindMap {
			d.fail(item.line, ablation.FieldError{Field: at, Value: item.text(), Problem: "wrong type", Allowed: "a map from recipe keys to values"})
			continue
		}
		arm := map[string]any{}
		for _, k := range item.entries {
			key := ablation.ResolveKey(k.key)
			field := at + "." + key
			d.lines[field] = k.line
			f, ok := ablation.FieldOf(key)
			if !ok {
				d.fail(k.line, ablation.FieldError{Field: field, Problem: "unknown key", Allowed: "a recipe key, such as reward.kind or data.prompts", Suggestion: suggest(key)})
				continue
			}
			v, err := f.Coerce(k.value.plain())
			var fe ablation.FieldError
			if errors.As(err, &fe) {
				fe.Field = field
				d.fail(k.line, fe)
				continue
			}
			arm[key] = v
		}
		out = append(out, arm)
	}
	return out
}

// seeds takes a list of whole numbers, or one number n for seeds 1 to n.
func (d *decoder) seeds(e entry) []uint64 {
	const allowed = "a list of whole numbers such as [1, 2, 3], or how many (5 stands for 1 to 5)"
	if e.value.kind == kindScalar {
		n, ok := whole(e.value.scalar)
		if !ok || n < 1 || n > 1000 {
			d.fail(e.line, ablation.FieldError{Field: "seeds", Value: e.value.text(), Problem: "wrong value", Allowed: allowed})
			return nil
		}
		out := make([]uint64, n)
		for i := range out {
			out[i] = uint64(i + 1)
		}
		return out
	}
	if e.value.kind != kindList {
		d.fail(e.line, ablation.FieldError{Field: "seeds", Value: e.value.text(), Problem: "wrong type", Allowed: allowed})
		return nil
	}
	var out []uint64
	for i, item := range e.value.items {
		n, ok := whole(item.scalar)
		if item.kind != kindScalar || !ok {
			d.fail(item.line, ablation.FieldError{Field: fmt.Sprintf("seeds[%d]", i), Value: item.text(), Problem: "wrong type", Allowed: "a whole number of at least 0"})
			continue
		}
		out = append(out, n)
	}
	return out
}

func whole(v any) (uint64, bool) {
	switch n := v.(type) {
	case uint64:
		return n, n <= 1<<53
	case int64:
		return uint64(n), n >= 0 && n <= 1<<53
	case int:
		return uint64(n), n >= 0
	}
	return 0, false
}
