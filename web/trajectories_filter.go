package web

import (
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"alidade/ablation"
	"alidade/store"
	"alidade/templates"
)

// sortKeys are the orders of the list; "-" before one turns it round.
var sortKeys = []string{"newest", "reward", "turns", "tokens", "step"}

// toolNames are the tools of the travel sandbox, for the filter.
var toolNames = []string{"SearchFlight", "GoogleDistanceMatrix", "SearchAccommodation", "SearchRestaurant", "SearchAttraction", "SearchCity"}

// trajectoryFilter reads the list's filters from the address. It answers
// *ablation.Invalid for a value that cannot be read.
func trajectoryFilter(q url.Values) (f store.TrajectoryFilter, page int, err error) {
	rd := paramReader{q: q}
	f.Study = ablation.StudyID(rd.whole("study", 0))
	if id := rd.whole("run", 0); id > 0 {
		f.Runs = []ablation.RunID{ablation.RunID(id)}
	}
	f.Arm = rd.index("arm")
	f.StepFrom, f.StepTo = rd.step("from"), rd.step("to")
	f.RewardMin, f.RewardMax = rd.number("min"), rd.number("max")
	f.Phase, f.Policy, f.Mode = rd.text("phase"), rd.text("policy"), rd.text("mode")
	f.Group, f.Level, f.Tool, f.Text = rd.text("group"), rd.text("level"), rd.text("tool"), rd.text("q")
	f.FailedCheck = rd.oneOf("check", checkKeys())
	f.Injected, f.FormatError, f.Overlong = rd.flag("injected"), rd.flag("format"), rd.flag("overlong")
	if outcome := rd.oneOf("outcome", []string{"success", "failed"}); outcome != "" {
		success := outcome == "success"
		f.Success = &success
	}
	if success := rd.flag("success"); success != nil { // the API's own name for the same
		f.Success = success
	}
	f.Sort = rd.oneOf("sort", allSorts())
	if f.Sort == "" {
		f.Sort = "newest"
	}
	page = int(max(rd.whole("page", 1), 1))
	f.Limit, f.Offset = rolloutsOnPage, (page-1)*rolloutsOnPage
	if len(rd.bad) > 0 {
		return f, page, &ablation.Invalid{Fields: rd.bad}
	}
	return f, page, nil
}

func allSorts() []string {
	all := slices.Clone(sortKeys)
	for _, k := range sortKeys {
		all = append(all, "-"+k)
	}
	return all
}

func checkKeys() []string {
	keys := make([]string, len(checkList))
	for i, c := range checkList {
		keys[i] = c.Key
	}
	return keys
}

// A paramReader reads values of an address and gathers what is wrong.
type paramReader struct {
	q   url.Values
	bad []ablation.FieldError
}

func (p *paramReader) refuse(name, value, allowed string) {
	p.bad = append(p.bad, ablation.FieldError{Field: name, Value: templates.Plain(value), Problem: "not allowed", Allowed: allowed})
}

func (p *paramReader) text(name string) string {
	s := strings.TrimSpace(p.q.Get(name))
	if len(s) > 500 {
		p.refuse(name, s[:40]+"…", "at most 500 bytes")
		return ""
	}
	return s
}

func (p *paramReader) whole(name string, otherwise int64) int64 {
	s := p.text(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > 1<<40 {
		p.refuse(name, s, "a whole number of at least 0")
		return otherwise
	}
	return n
}

func (p *paramReader) index(name string) *int {
	if p.text(name) == "" {
		return nil
	}
	n := int(p.whole(name, 0))
	return &n
}

func (p *paramReader) step(name string) *int64 {
	if p.text(name) == "" {
		return nil
	}
	n := p.whole(name, 0)
	return &n
}

func (p *paramReader) number(name string) *float64 {
	s := strings.Replace(p.text(name), minus, "-", 1)
	if s == "" {
		return nil
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(x) {
		p.refuse(name, s, "a number")
		return nil
	}
	return &x
}

func (p *paramReader) flag(name string) *bool {
	switch s := p.text(name); s {
	case "":
		return nil
	case "1", "yes", "true", "0", "no", "false":
		on := s == "1" || s == "yes" || s == "true"
		return &on
	default:
		p.refuse(name, s, "1 or 0, yes or no")
		return nil
	}
}

func (p *paramReader) oneOf(name string, allowed []string) string {
	s := p.text(name)
	if s != "" && !slices.Contains(allowed, s) {
		p.refuse(name, s, strings.Join(allowed, ", "))
		return ""
	}
	return s
}

// listLink is the list's address with one value changed; a new filter or
// order starts at the first page.
func listLink(q url.Values, name, value string) string {
	next := maps.Clone(q)
	if next == nil {
		next = url.Values{}
	}
	if name != "page" {
		next.Del("page")
	}
	next.Set(name, value)
	for k, v := range next {
		if len(v) == 0 || v[0] == "" {
			next.Del(k)
		}
	}
	if len(next) == 0 {
		return "/trajectories"
	}
	return "/trajectories?" + next.Encode()
}

// sortColumns are the heads of the list.
func sortColumns(q url.Values, sorted string) []templates.SortColumn {
	head := func(label, key string, numeric, wide bool) templates.SortColumn {
		c := templates.SortColumn{Label: label, Numeric: numeric, Wide: wide}
		if key == "" {
			return c
		}
		next := "-" + key // the large ones are looked for first
		switch sorted {
		case "-" + key:
			c.Order, next = "descending", key
		case key:
			c.Order = "ascending"
		}
		c.Href = listLink(q, "sort", next)
		return c
	}
	return []templates.SortColumn{
		head("outcome", "", false, false), head("query, rollout", "", false, false), head("fails", "", false, true), head("level", "", false, true),
		head("reward", "reward", true, false), head("advantage", "", true, true), head("turns", "turns", true, true), head("tokens", "tokens", true, true), head("step", "step", true, true),
	}
}

// filterForm fills the form from the address.
func filterForm(q url.Values, f store.TrajectoryFilter, studies []ablation.StudyRecord) templates.TrajectoriesFilter {
	form := templates.TrajectoriesFilter{
		Text: q.Get("q"), Run: q.Get("run"), From: q.Get("from"), To: q.Get("to"), Min: q.Get("min"), Max: q.Get("max"),
		Sort: q.Get("sort"), Group: f.Group, Policy: f.Policy, Mode: f.Mode,
		Injected: q.Get("injected") == "1", FormatError: q.Get("format") == "1", Overlong: q.Get("overlong") == "1",
		Phases:   choices(q.Get("phase"), "any phase", pairs("rl", "eval", "sft", "expert", "baseline")),
		Levels:   choices(q.Get("level"), "any level", pairs("easy", "medium", "hard")),
		Outcomes: choices(q.Get("outcome"), "any outcome", [][2]string{{"success", "success"}, {"failed", "no success"}}),
		Tools:    choices(q.Get("tool"), "any tool", pairs(toolNames...)),
	}
	var checks, names [][2]string
	for _, c := range checkList {
		checks = append(checks, [2]string{c.Key, c.Name})
	}
	form.Checks = choices(q.Get("check"), "any check", checks)
	for _, st := range studies {
		names = append(names, [2]string{fmt.Sprint(st.ID), fmt.Sprintf("%s (%d)", st.Study.Name, st.ID)})
		if st.ID == f.Study {
			form.Arms = armChoices(q.Get("arm"), st.Study)
		}
	}
	form.Studies = choices(q.Get("study"), "any study", names)
	return form
}

func armChoices(chosen string, st ablation.Study) []templates.FilterOption {
	arms, err := ablation.Arms(st)
	if err != nil { // a study stored by an older version may not validate now
		return nil
	}
	var names [][2]string
	for _, a := range arms {
		names = append(names, [2]string{fmt.Sprint(a.Index), a.Label})
	}
	return choices(chosen, "any arm", names)
}

func pairs(values ...string) [][2]string {
	out := make([][2]string, len(values))
	for i, v := range values {
		out[i] = [2]string{v, v}
	}
	return out
}

// choices makes the options of a select, the first of them meaning any. A
// chosen value that is not among them is added.
func choices(chosen, none string, values [][2]string) []templates.FilterOption {
	out := []templates.FilterOption{{Value: "", Label: none, On: chosen == ""}}
	found := chosen == ""
	for _, v := range values {
		out = append(out, templates.FilterOption{Value: v[0], Label: v[1], On: v[0] == chosen})
		found = found || v[0] == chosen
	}
	if !found {
		out = append(out, templates.FilterOption{Value: chosen, Label: templates.Plain(chosen), On: true})
	}
	return out
}

// filterChips are the filters that are set, each with the link without it.
func filterChips(q url.Values, studies []ablation.StudyRecord) []templates.FilterChip {
	words := []struct{ name, label string }{
		{"q", "text: %s"}, {"study", "study %s"}, {"arm", "arm %s"}, {"run", "run %s"}, {"phase", "phase: %s"}, {"policy", "policy: %s"}, {"mode", "mode: %s"}, {"group", "group: %s"},
		{"from", "step from %s"}, {"to", "step to %s"}, {"min", "reward from %s"}, {"max", "reward to %s"},
		{"outcome", "%s"}, {"success", "success: %s"}, {"check", "fails %s"}, {"tool", "calls %s"}, {"level", "%s"},
		{"injected", "injected failure"}, {"format", "format error"}, {"overlong", "over-long"},
	}
	var chips []templates.FilterChip
	for _, w := range words {
		value := q.Get(w.name)
		if value == "" {
			continue
		}
		label := w.label
		if strings.Contains(label, "%s") {
			label = fmt.Sprintf(label, chipValue(w.name, value, q, studies))
		}
		chips = append(chips, templates.FilterChip{Label: label, Href: listLink(q, w.name, "")})
	}
	return chips
}

func chipValue(name, value string, q url.Values, studies []ablation.StudyRecord) string {
	switch name {
	case "check":
		return nameOfCheck(value)
	case "outcome":
		if value == "failed" {
			return "no success"
		}
	case "study", "arm":
		for _, st := range studies {
			if fmt.Sprint(st.ID) != q.Get("study") {
				continue
			}
			if name == "study" {
				return st.Study.Name
			}
			for _, a := range armChoices(value, st.Study) {
				if a.Value == value {
					return a.Label
				}
			}
		}
	}
	return value
}
