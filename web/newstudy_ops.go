package web

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"alidade/ablation"
	"alidade/ablation/studyfile"
)

// apply does what a button of the form asks for. An act that names something
// which is not there changes nothing. The error is *ablation.Invalid when a
// study file was given and could not be read.
func (d *draft) apply(act, yaml string) error {
	act, arg, _ := strings.Cut(act, ":")
	d.takeTyped()
	switch act {
	case "template":
		if t, ok := ablation.TemplateByID(arg); ok {
			*d = draftOf(t.Study)
		}
	case "blank":
		*d = blankDraft()
	case "preset":
		d.setPreset(arg)
	case "yaml":
		st, err := studyfile.Decode("study.yaml", []byte(yaml))
		if err != nil {
			d.YAML = yaml
			return err
		}
		*d = draftOf(st)
	case "reset":
		if r, ok := ablation.PresetNamed(d.Preset); ok {
			if v, err := ablation.Get(&r, arg); err == nil {
				d.Values[arg] = valueText(v)
			}
		}
	case "factor-add":
		d.addFactor(arg)
	case "factor-remove":
		if i := d.factorAt(arg); i >= 0 {
			d.Factors = slices.Delete(d.Factors, i, i+1)
		}
	case "factor-up", "factor-down":
		i := d.factorAt(arg)
		j := i - 1
		if act == "factor-down" {
			j = i + 1
		}
		if i >= 0 && j >= 0 && j < len(d.Factors) {
			d.Factors[i], d.Factors[j] = d.Factors[j], d.Factors[i]
		}
	case "level-remove":
		at, which, _ := strings.Cut(arg, ":")
		i := d.factorAt(at)
		j, err := strconv.Atoi(which)
		if i >= 0 && err == nil && j >= 0 && j < len(d.Factors[i].Levels) {
			d.Factors[i].Levels = slices.Delete(d.Factors[i].Levels, j, j+1)
		}
	}
	return nil
}

// takeTyped turns what stands in the "+ level" boxes into levels.
func (d *draft) takeTyped() {
	for i := range d.Factors {
		f := &d.Factors[i]
		if f.Add == "" {
			continue
		}
		texts := []string{f.Add}
		if field, ok := ablation.FieldOf(f.Key); ok && field.Kind != ablation.KindFloats && field.Kind != ablation.KindList && field.Kind != ablation.KindMap {
			texts = strings.Split(f.Add, ",")
		}
		for _, text := range texts {
			if text = strings.TrimSpace(text); text != "" {
				f.Levels = append(f.Levels, text)
			}
		}
		f.Add = ""
	}
}

func (d *draft) factorAt(arg string) int {
	i, err := strconv.Atoi(arg)
	if err != nil || i < 0 || i >= len(d.Factors) {
		return -1
	}
	return i
}

// setPreset starts the base recipe again from a preset. Factors stay.
func (d *draft) setPreset(name string) {
	r, ok := ablation.PresetNamed(name)
	if !ok {
		return
	}
	fresh := draftOf(ablation.Study{Base: r})
	d.Preset, d.Values = name, fresh.Values
}

// addFactor makes a recipe key a factor. Its first level is what the base
// says; a second is proposed so that there is something to compare.
func (d *draft) addFactor(key string) {
	field, ok := ablation.FieldOf(key)
	if !ok || len(d.Factors) >= ablation.MaxFactors || slices.ContainsFunc(d.Factors, func(f draftFactor) bool { return f.Key == key }) {
		return
	}
	base := d.Values[key]
	f := draftFactor{Key: key, Name: field.Label}
	if base != "" {
		f.Levels = append(f.Levels, base)
	}
	if next := secondLevel(field, base); next != "" && next != base {
		f.Levels = append(f.Levels, next)
	}
	d.Factors = append(d.Factors, f)
}

// secondLevel proposes a level beside the base: the next enum value, the
// other boolean, twice the number if it is allowed.
func secondLevel(f ablation.Field, base string) string {
	switch f.Kind {
	case ablation.KindEnum:
		at := slices.Index(f.Enum, base)
		return f.Enum[(at+1)%len(f.Enum)]
	case ablation.KindBool:
		return strconv.FormatBool(base != "true")
	case ablation.KindInt, ablation.KindFloat:
		x, err := strconv.ParseFloat(base, 64)
		if err != nil {
			return ""
		}
		for _, y := range []float64{2 * x, x / 2} {
			if x == 0 {
				y = min(f.Max, 0.05)
			}
			text := strconv.FormatFloat(y, 'g', 6, 64)
			if _, err := f.Coerce(text); err == nil {
				return text
			}
		}
	}
	return ""
}

// copyName names a study made from another: "rewards-2".
func copyName(name string) string {
	stem, last, ok := cutLast(name, "-")
	if n, err := strconv.Atoi(last); ok && err == nil {
		return fmt.Sprintf("%s-%d", stem, n+1)
	}
	return name + "-2"
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
