package travel

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// ErrNoPlan is returned for an answer that holds no plan in either form.
var ErrNoPlan = errors.New("the answer holds no plan: it must be a JSON list of days or the text form \"Day 1:\"")

const maxAnswerBytes = 1 << 20

// ParsePlan reads an answer leniently: a JSON list of days, with or without
// code fences and text around it, or the text form "Day N:" that [FormatPlan]
// writes. Values keep their JSON types.
func ParsePlan(answer string) (Plan, error) {
	if len(answer) > maxAnswerBytes {
		return Plan{}, errors.New("the answer is longer than 1 MiB")
	}
	text := strings.TrimSpace(unfence(answer))
	if p, err := ParsePlanStrict(text); err == nil {
		return p, nil
	}
	if i, j := strings.IndexByte(text, '['), strings.LastIndexByte(text, ']'); i >= 0 && j > i {
		if v, err := ParseValue([]byte(text[i : j+1])); err == nil && looksLikePlan(v) {
			return PlanOf(v), nil
		}
	}
	if p, ok := parseDays(text); ok {
		return p, nil
	}
	return Plan{}, ErrNoPlan
}

// looksLikePlan tells a list of days from a bracketed value in a text.
func looksLikePlan(v Value) bool {
	if v.Kind != List || len(v.Items) == 0 || v.Items[0].Kind != Object {
		return false
	}
	for _, k := range v.Items[0].Keys {
		if fieldOf(k) != noField {
			return true
		}
	}
	return false
}

// ParsePlanStrict reads an answer that is exactly one JSON list or object.
func ParsePlanStrict(answer string) (Plan, error) {
	text := strings.TrimSpace(answer)
	if text == "" || text[0] != '[' && text[0] != '{' {
		return Plan{}, ErrNoPlan
	}
	v, err := ParseValue([]byte(text))
	if err != nil {
		return Plan{}, err
	}
	return PlanOf(v), nil
}

// unfence returns what stands in the first Markdown code fence, or all.
func unfence(s string) string {
	_, rest, ok := strings.Cut(s, "```")
	if !ok {
		return s
	}
	if line, body, ok := strings.Cut(rest, "\n"); ok && !strings.ContainsAny(line, "[{") {
		rest = body
	}
	body, _, _ := strings.Cut(rest, "```")
	return body
}

var textKeys = [nFields]string{"", "Current City", "Transportation", "Breakfast", "Attraction", "Lunch", "Dinner", "Accommodation"}

// FormatPlan writes days in the text form: a line "Day N:" and a line a
// field. A value that would not survive its line is quoted as in JSON.
func FormatPlan(days []Day) string {
	var b strings.Builder
	for i := range days {
		d := &days[i]
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("Day " + strconv.Itoa(d.Day) + ":\n")
		for f := FieldCity; f < nFields; f++ {
			b.WriteString(textKeys[f] + ": " + lineValue(d.get(f)) + "\n")
		}
	}
	return b.String()
}

// lineValue quotes what has line breaks, blanks at its ends or a leading quote.
func lineValue(s string) string {
	if s == "" || s[0] == '"' || s != strings.TrimSpace(s) || strings.ContainsAny(s, "\n\r") || strings.Contains(s, "**") {
		var b bytes.Buffer
		writeJSONString(&b, s)
		return b.String()
	}
	return s
}

// parseDays reads the text form. Marks of lists, headings and bold type are
// skipped, and so are lines that are no field.
func parseDays(text string) (Plan, bool) {
	var p Plan
	p.Root.Kind = List
	for _, line := range strings.Split(text, "\n") {
		line = bare(line)
		if n, ok := dayHead(line); ok {
			d := RawDay{Kind: Object}
			d.Fields[FieldDay] = Value{Kind: Number, Int: true, Num: float64(n)}
			p.Days = append(p.Days, d)
			continue
		}
		key, value, ok := strings.Cut(line, ":")
		if !ok || len(p.Days) == 0 {
			continue
		}
		if f := textField(key); f != noField {
			p.Days[len(p.Days)-1].Fields[f] = Text(unquote(value))
		}
	}
	return p, len(p.Days) > 0
}

// bare strips the marks at the start of a line and the signs of bold type around its key.
func bare(line string) string {
	line = strings.TrimLeft(strings.TrimSpace(line), "-*#>•_ \t")
	if i := strings.IndexByte(line, ':'); i >= 0 {
		if j := strings.Index(line, "**"); j >= 0 && j <= i+1 {
			line = line[:j] + line[j+2:]
		}
	} else {
		line = strings.TrimRight(line, "*_ ")
	}
	return line
}

// dayHead reads "Day 3", with or without a colon or more behind it.
func dayHead(line string) (int, bool) {
	if len(line) < 5 || !hasPrefixFold(line, "day ") {
		return 0, false
	}
	end := 4
	for end < len(line) && end < 8 && line[end] >= '0' && line[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(line[4:end])
	if err != nil || end < len(line) && strings.IndexByte(": (,-\t", line[end]) < 0 {
		return 0, false
	}
	return n, true
}

func textField(key string) Field {
	key = strings.ToLower(strings.Trim(key, " \t*_`\""))
	key = strings.ReplaceAll(key, "_", " ")
	switch key {
	case "current city", "city":
		return FieldCity
	case "transportation", "transport":
		return FieldTransportation
	case "breakfast":
		return FieldBreakfast
	case "attraction", "attractions":
		return FieldAttraction
	case "lunch":
		return FieldLunch
	case "dinner":
		return FieldDinner
	case "accommodation", "accommodations":
		return FieldAccommodation
	}
	return noField
}

func unquote(s string) string {
	s = strings.TrimSpace(s)
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		var plain string
		if json.Unmarshal([]byte(s), &plain) == nil {
			return plain
		}
	}
	return s
}

// JSONPlan writes days as the JSON list of the benchmark.
func JSONPlan(days []Day) string {
	var b bytes.Buffer
	b.WriteByte('[')
	for i := range days {
		if i > 0 {
			b.WriteString(",\n ")
		}
		b.WriteString(`{"day": ` + strconv.Itoa(days[i].Day))
		for f := FieldCity; f < nFields; f++ {
			b.WriteString(`, "` + f.String() + `": `)
			writeJSONString(&b, days[i].get(f))
		}
		b.WriteByte('}')
	}
	b.WriteByte(']')
	return b.String()
}

func (d *Day) get(f Field) string {
	switch f {
	case FieldCity:
		return d.City
	case FieldTransportation:
		return d.Transportation
	case FieldBreakfast:
		return d.Breakfast
	case FieldAttraction:
		return d.Attraction
	case FieldLunch:
		return d.Lunch
	case FieldDinner:
		return d.Dinner
	case FieldAccommodation:
		return d.Accommodation
	}
	return ""
}
