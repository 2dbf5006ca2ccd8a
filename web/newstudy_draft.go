package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"alidade/ablation"
	"alidade/templates"
)

// A draft is a study as it is being typed: every value a text, so that what
// is wrong can be shown where it was written. draftOf and study are inverse
// to each other for any study that is right.
type draft struct {
	Name, Question, Template, Preset string
	Design, Seeds, Metric            string
	MinDifference                    string // in the unit the page shows: points where the metric is a rate
	Concurrency, Notes, Arms         string
	Queue                            queueDraft
	Values                           map[string]string // recipe key → text
	Factors                          []draftFactor
	YAML                             string // as typed in the file view, when that was the last thing changed
}

// draftFactor is a factor as it is being typed. Add is text not yet a level.
type draftFactor struct {
	Key, Name string
	Levels    []string
	Add       string
}

// blankDraft is a study with nothing decided but the defaults.
func blankDraft() draft {
	st := ablation.Study{Base: ablation.Presets()[0].Recipe, Design: ablation.DesignGrid, Seeds: []uint64{1, 2}, Metric: "eval/success", MinDifference: 0.05}
	return draftOf(st)
}

// draftOf writes a study as texts.
func draftOf(st ablation.Study) draft {
	d := draft{
		Name: st.Name, Question: st.Question, Template: st.Template, Preset: st.Base.Preset,
		Design: string(st.Design), Seeds: seedsText(st.Seeds), Metric: st.Metric,
		MinDifference: scaledText(st.MinDifference, st.Metric), Notes: st.Notes, Arms: armsText(st.Arms), Queue: queueDraftOf(st),
		Values: map[string]string{},
	}
	if d.Preset == "" {
		d.Preset = ablation.Presets()[0].Name
	}
	if st.Concurrency != 0 {
		d.Concurrency = strconv.Itoa(st.Concurrency)
	}
	for _, f := range ablation.Fields() {
		v, err := ablation.Get(&st.Base, f.Key)
		if err == nil {
			d.Values[f.Key] = valueText(v)
		}
	}
	for _, f := range st.Factors {
		df := draftFactor{Key: f.Key, Name: f.Name}
		for _, l := range f.Levels {
			df.Levels = append(df.Levels, valueText(l))
		}
		d.Factors = append(d.Factors, df)
	}
	return d
}

// study reads the texts. What cannot be read is in bad, by field; the study
// then keeps the preset's value there. What the study says is not checked.
func (d draft) study() (st ablation.Study, bad []ablation.FieldError) {
	st = ablation.Study{
		Name: strings.TrimSpace(d.Name), Question: d.Question, Template: d.Template,
		Design: ablation.Design(d.Design), Metric: strings.TrimSpace(d.Metric), Notes: d.Notes,
	}
	adopt := func(field string, err error) {
		if err == nil {
			return
		}
		var fe ablation.FieldError
		if !errors.As(err, &fe) {
			fe = ablation.FieldError{Problem: err.Error()}
		}
		fe.Field = field
		bad = append(bad, fe)
	}
	base, ok := ablation.PresetNamed(d.Preset)
	if !ok {
		base = ablation.Presets()[0].Recipe
		bad = append(bad, ablation.FieldError{Field: "preset", Value: d.Preset, Problem: "unknown value", Allowed: strings.Join(ablation.PresetNames(), ", ")})
	}
	for _, f := range ablation.Fields() {
		text, given := d.Values[f.Key]
		if current, err := ablation.Get(&base, f.Key); err != nil || !given || text == valueText(current) {
			continue
		}
		v, err := parseValue(f, text)
		if err == nil {
			err = ablation.Set(&base, f.Key, v)
		}
		adopt(f.Key, err)
	}
	st.Base = base
	for i, df := range d.Factors {
		factor, err := df.factor(i)
		bad = append(bad, err...)
		st.Factors = append(st.Factors, factor)
	}
	var err error
	if st.Seeds, err = parseSeeds(d.Seeds); err != nil {
		adopt("seeds", err)
	}
	if st.MinDifference, err = parseScaled(d.MinDifference, st.Metric); err != nil {
		adopt("min_difference", err)
	}
	if text := strings.TrimSpace(d.Concurrency); text != "" {
		if st.Concurrency, err = strconv.Atoi(text); err != nil {
			adopt("concurrency", ablation.FieldError{Value: text, Problem: "not a whole number", Allowed: "0 for no limit, or the most runs at once"})
		}
	}
	bad = append(bad, d.Queue.read(&st)...)
	if st.Design == ablation.DesignList {
		var wrong []ablation.FieldError
		st.Arms, wrong = parseArms(d.Arms)
		bad = append(bad, wrong...)
	}
	return st, bad
}

func (df draftFactor) factor(i int) (ablation.Factor, []ablation.FieldError) {
	out := ablation.Factor{Key: df.Key, Name: df.Name}
	var bad []ablation.FieldError
	field, ok := ablation.FieldOf(df.Key)
	for j, text := range df.Levels {
		if !ok {
			out.Levels = append(out.Levels, text)
			continue
		}
		v, err := parseValue(field, text)
		if err == nil {
			v, err = field.Coerce(v)
		}
		if err != nil {
			fe := ablation.FieldError{Value: text, Problem: err.Error(), Allowed: field.Allowed()}
			errors.As(err, &fe)
			fe.Field = fmt.Sprintf("factors[%d].levels[%d]", i, j)
			bad = append(bad, fe)
			continue
		}
		out.Levels = append(out.Levels, v)
	}
	return out, bad
}

// check reads and expands the draft: the study, its runs, and all that is
// wrong, each fault once.
func (d draft) check() (ablation.Study, []ablation.Planned, []ablation.FieldError) {
	st, bad := d.study()
	planned, err := ablation.Expand(st)
	var inv *ablation.Invalid
	if errors.As(err, &inv) {
		for _, f := range inv.Fields {
			f.Field = strings.TrimPrefix(f.Field, "base.")
			if !slices.ContainsFunc(bad, func(b ablation.FieldError) bool { return b.Field == f.Field }) {
				bad = append(bad, f)
			}
		}
	}
	if len(bad) > 0 {
		planned = nil
	}
	return st, planned, bad
}

// valueText writes a recipe value as the form shows it.
func valueText(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		return x
	case bool:
		return strconv.FormatBool(x)
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	case []float64:
		parts := make([]string, len(x))
		for i, n := range x {
			parts[i] = strconv.FormatFloat(n, 'g', -1, 64)
		}
		return strings.Join(parts, ", ")
	case []string:
		if slices.ContainsFunc(x, func(s string) bool { return s == "" || strings.TrimSpace(s) != s || strings.ContainsAny(s, "\n\r") }) || len(x) > 0 && x[0][0] == '[' {
			return jsonText(x)
		}
		return strings.Join(x, "\n")
	case map[string]string:
		var lines []string
		for _, k := range slices.Sorted(maps.Keys(x)) {
			if k == "" || strings.TrimSpace(k) != k || strings.ContainsAny(k+x[k], "\n\r") || strings.Contains(k, "=") || k[0] == '{' || strings.TrimSpace(x[k]) != x[k] {
				return jsonText(x)
			}
			lines = append(lines, k+"="+x[k])
		}
		return strings.Join(lines, "\n")
	case []any:
		return jsonText(x)
	case map[string]any:
		return jsonText(x)
	}
	return fmt.Sprint(v)
}

func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// parseValue reads a text into something the field's Coerce takes.
func parseValue(f ablation.Field, text string) (any, error) {
	trimmed := strings.TrimSpace(text)
	switch f.Kind {
	case ablation.KindList:
		if strings.HasPrefix(trimmed, "[") {
			var l []string
			if err := json.Unmarshal([]byte(trimmed), &l); err != nil {
				return nil, ablation.FieldError{Value: trimmed, Problem: "not a JSON list", Allowed: "one argument a line, or a JSON list of texts"}
			}
			return l, nil
		}
		return nonEmptyLines(text), nil
	case ablation.KindMap:
		if strings.HasPrefix(trimmed, "{") {
			m := map[string]string{}
			if err := json.Unmarshal([]byte(trimmed), &m); err != nil {
				return nil, ablation.FieldError{Value: trimmed, Problem: "not a JSON map", Allowed: "one NAME=value a line, or a JSON map of texts"}
			}
			return m, nil
		}
		m := map[string]string{}
		for _, line := range nonEmptyLines(text) {
			k, v, ok := strings.Cut(line, "=")
			if !ok {
				return nil, ablation.FieldError{Value: line, Problem: "no = in the line", Allowed: "one NAME=value a line"}
			}
			m[strings.TrimSpace(k)] = strings.TrimSpace(v)
		}
		return m, nil
	case ablation.KindString:
		return text, nil
	case ablation.KindFloats:
		return trimmed, nil
	}
	return strings.Replace(trimmed, minus, "-", 1), nil
}

func nonEmptyLines(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}

func seedsText(seeds []uint64) string {
	parts := make([]string, len(seeds))
	for i, s := range seeds {
		parts[i] = strconv.FormatUint(s, 10)
	}
	return strings.Join(parts, ", ")
}

// parseSeeds reads "1, 2, 3" and "1–5".
func parseSeeds(text string) ([]uint64, error) {
	allowed := "whole numbers with commas, or a range such as 1–5"
	var out []uint64
	for part := range strings.FieldsFuncSeq(strings.Trim(text, "[] "), func(r rune) bool { return r == ',' || r == ' ' || r == ';' }) {
		a, b, isRange := strings.Cut(strings.ReplaceAll(part, "–", "-"), "-")
		from, err := strconv.ParseUint(a, 10, 64)
		to := from
		if err == nil && isRange {
			to, err = strconv.ParseUint(b, 10, 64)
		}
		if err != nil || to < from || to-from > ablation.MaxRuns {
			return nil, ablation.FieldError{Value: part, Problem: "not a seed", Allowed: allowed}
		}
		for s := from; ; s++ {
			out = append(out, s)
			if s == to {
				break
			}
		}
	}
	return out, nil
}

// isRate reports whether a metric is a fraction that the page shows in points.
func isRate(metric string) bool { return metricTable[metric].Percent }

// scaledText writes the smallest difference in the unit the page shows.
func scaledText(x float64, metric string) string {
	if x == 0 {
		return ""
	}
	if isRate(metric) {
		if text := strconv.FormatFloat(x*100, 'g', 12, 64); parsesTo(text, x) {
			return text
		}
		return strconv.FormatFloat(x, 'g', -1, 64) + "/1" // a fraction that points cannot say exactly
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

func parsesTo(points string, x float64) bool {
	y, err := strconv.ParseFloat(points, 64)
	return err == nil && y/100 == x
}

func parseScaled(text, metric string) (float64, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0, nil
	}
	plain, fraction := strings.CutSuffix(text, "/1")
	x, err := strconv.ParseFloat(plain, 64)
	if err != nil {
		return 0, ablation.FieldError{Value: text, Problem: "not a number", Allowed: "a number of at least 0"}
	}
	if isRate(metric) && !fraction {
		x /= 100
	}
	return x, nil
}

// armsText writes the arms of a list, one a line: "reward.kind=SUM; data.mix=1:0:0".
func armsText(arms []map[string]any) string {
	lines := make([]string, len(arms))
	for i, arm := range arms {
		var parts []string
		plain := true
		for _, k := range slices.Sorted(maps.Keys(arm)) {
			text := valueText(arm[k])
			plain = plain && !strings.ContainsAny(text, ";\n\r") && strings.TrimSpace(text) == text
			parts = append(parts, k+"="+text)
		}
		lines[i] = strings.Join(parts, "; ")
		if !plain || len(parts) == 0 {
			lines[i] = jsonText(arm)
		}
	}
	return strings.Join(lines, "\n")
}

func parseArms(text string) (arms []map[string]any, bad []ablation.FieldError) {
	for i, line := range nonEmptyLines(text) {
		at := fmt.Sprintf("arms[%d]", i)
		arm := map[string]any{}
		if strings.HasPrefix(line, "{") {
			if err := json.Unmarshal([]byte(line), &arm); err != nil {
				bad = append(bad, ablation.FieldError{Field: at, Value: line, Problem: "not a JSON map", Allowed: "key=value; key=value"})
				continue
			}
		} else {
			for part := range strings.SplitSeq(line, ";") {
				k, v, ok := strings.Cut(part, "=")
				if !ok {
					bad = append(bad, ablation.FieldError{Field: at, Value: strings.TrimSpace(part), Problem: "no = in it", Allowed: "key=value; key=value"})
					continue
				}
				arm[ablation.ResolveKey(strings.TrimSpace(k))] = strings.TrimSpace(v)
			}
		}
		for k, v := range arm {
			field, ok := ablation.FieldOf(k)
			if !ok {
				bad = append(bad, ablation.FieldError{Field: at, Value: k, Problem: "unknown key", Allowed: "a recipe key, such as reward.kind", Suggestion: ablation.Nearest(k, ablation.FieldKeys())})
				continue
			}
			if s, isText := v.(string); isText {
				if parsed, err := parseValue(field, s); err == nil {
					v = parsed
				}
			}
			c, err := field.Coerce(v)
			if err != nil {
				fe := ablation.FieldError{Problem: err.Error()}
				errors.As(err, &fe)
				fe.Field = at
				bad = append(bad, fe)
				continue
			}
			arm[k] = c
		}
		arms = append(arms, arm)
	}
	return arms, bad
}

// draftFromForm reads a posted form.
func draftFromForm(q url.Values) draft {
	text := func(name string) string {
		return strings.ReplaceAll(q.Get(name), "\r\n", "\n")
	}
	d := draft{
		Name: text("name"), Question: text("question"), Template: text("template"), Preset: text("preset"),
		Design: text("design"), Seeds: text("seeds"), Metric: text("metric"), MinDifference: text("min_difference"),
		Queue:       queueDraft{Priority: text("priority"), Halving: text("halving.metric"), HalvingRungs: text("halving.rungs"), HalvingBy: text("halving.reduction")},
		Concurrency: text("concurrency"), Notes: text("notes"), Arms: text("arms"), YAML: text("yaml"),
		Values: map[string]string{},
	}
	for _, f := range ablation.Fields() {
		if name := "base." + f.Key; q.Has(name) {
			d.Values[f.Key] = text(name)
		}
	}
	for i := 0; i <= ablation.MaxFactors*2 && q.Has(fmt.Sprintf("f.%d.key", i)); i++ {
		at := fmt.Sprintf("f.%d.", i)
		d.Factors = append(d.Factors, draftFactor{
			Key: text(at + "key"), Name: text(at + "name"), Levels: slices.Clone(q[at+"level"]), Add: strings.TrimSpace(text(at + "add")),
		})
	}
	return d
}

// problemText says what is wrong in words that can be acted on.
func problemText(e ablation.FieldError) string {
	var parts []string
	if e.Problem != "" {
		p := capital(templates.Plain(e.Problem))
		if e.Value != "" && len(e.Value) < 60 {
			p += ": " + templates.Plain(e.Value)
		}
		parts = append(parts, p)
	}
	if e.Allowed != "" {
		parts = append(parts, "Allowed: "+e.Allowed)
	}
	s := strings.Join(parts, ". ")
	if s != "" && !strings.HasSuffix(s, ".") {
		s += "."
	}
	if e.Suggestion != "" {
		s += " Did you mean " + e.Suggestion + "?"
	}
	return strings.TrimSpace(s)
}
