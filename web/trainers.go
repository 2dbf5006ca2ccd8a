package web

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"alidade/ablation"
	"alidade/templates"
)

// Trainers says which frameworks for language models are installed here and
// what a launch with one of them would meet. It is asked while somebody types,
// so it must answer from memory.
type Trainers interface {
	Found(ctx context.Context) []TrainerFound
	Preflight(ctx context.Context, r ablation.Recipe) Preflight
}

// A TrainerFound is a framework that is here, or could be.
type TrainerFound struct {
	Kind, What string
	Ready      bool
	Found      string // "trl 1.16.0, torch 2.8.0" or what is wrong
	How        string // to install it
}

// A Preflight is what stands in the way of a recipe, what is worth a look,
// and the memory that it would take of each device.
type Preflight struct {
	Findings  []Finding
	Phases    []MemoryPhase // none on the CPU
	DeviceGiB float64
	Simulated bool // the devices are
	Assumed   []string
}

// A Finding is one verdict; Level is refuse, warn or note.
type Finding struct{ Level, Key, Value, Text, Fix string }

// A MemoryPhase is what one device holds at the worst moment of a phase.
type MemoryPhase struct {
	Name  string
	Parts []MemoryPart
}

// A MemoryPart is one use of it, GiB.
type MemoryPart struct {
	Name string
	GiB  float64
}

// missingKinds lists the frameworks that are not installed, with how to
// install each.
func (s *site) missingKinds(ctx context.Context) map[string]string {
	missing := map[string]string{}
	if s.Trainers == nil {
		return missing
	}
	for _, t := range s.Trainers.Found(ctx) {
		if !t.Ready {
			missing[t.Kind] = t.How
		}
	}
	return missing
}

// offer takes the trainers that are not installed out of the form's choices,
// unless one is chosen, and says how to install them.
func offer(groups []templates.FieldGroup, missing map[string]string) {
	if len(missing) == 0 {
		return
	}
	for g := range groups {
		for i := range groups[g].Fields {
			f := &groups[g].Fields[i]
			if f.Key != "trainer.kind" {
				continue
			}
			var kinds []string
			f.Options = slices.DeleteFunc(f.Options, func(o templates.FilterOption) bool {
				_, gone := missing[o.Value]
				if gone {
					kinds = append(kinds, o.Value)
				}
				return gone && !o.On
			})
			if len(kinds) > 0 {
				f.Note = "Not installed here: " + strings.Join(kinds, ", ") + "."
				for _, k := range kinds {
					if missing[k] != "" && !strings.Contains(f.Note, missing[k]) {
						f.Note += " " + capital(missing[k]) + "."
					}
				}
			}
		}
	}
}

// mostArms is how many arms a preflight looks at: it runs while somebody
// types.
const mostArms = 64

// preflight looks at every arm of a study and puts what it finds under the
// outlook: refusals first, each once, with the arms that it concerns.
// It returns what a launch would run into, in words; "" = nothing.
func (s *site) preflight(ctx context.Context, arms []ablation.Arm, v *templates.OutlookView) string {
	if s.Trainers == nil {
		return ""
	}
	type found struct {
		Finding
		arms int
	}
	var all []found
	var worst Preflight
	looked, refused := 0, 0
	for i, a := range arms {
		if i == mostArms {
			break
		}
		if !a.Recipe.IsNative() {
			continue
		}
		looked++
		p := s.Trainers.Preflight(ctx, a.Recipe)
		if peakOf(p) > peakOf(worst) {
			worst = p
		}
		for _, f := range p.Findings {
			at := slices.IndexFunc(all, func(x found) bool { return x.Finding == f })
			if at < 0 {
				all = append(all, found{f, 0})
				at = len(all) - 1
			}
			all[at].arms++
		}
	}
	rank := map[string]int{"refuse": 0, "warn": 1, "note": 2}
	slices.SortStableFunc(all, func(a, b found) int { return rank[a.Level] - rank[b.Level] })
	var advice []templates.AdviceView
	for _, f := range all {
		if f.Level == "note" {
			continue
		}
		a := templates.AdviceView{Icon: "warn", Title: f.subject(), Text: capital(f.Text) + "."}
		if f.Level == "refuse" {
			refused++
			a.Icon = "bad"
			a.Title += ": the run would be refused"
		}
		if f.Fix != "" {
			a.Text += " Instead: " + f.Fix + "."
		}
		if f.arms < looked {
			a.Text += " In " + plural(f.arms, "arm", "arms") + " of " + digits(int64(looked)) + "."
		}
		advice = append(advice, a)
	}
	v.Advice = append(advice, v.Advice...)
	v.Memory = memoryView(worst, looked > 1)
	if refused == 0 {
		return ""
	}
	return plural(refused, "finding", "findings") + " would end these runs at their start"
}

// subject names what a finding is about.
func (f Finding) subject() string {
	name := f.Key
	if field, ok := ablation.FieldOf(f.Key); ok {
		name = capital(field.Label)
	}
	switch {
	case name == "":
		return "Preflight"
	case f.Value == "":
		return name
	}
	value, _ := clip(templates.Plain(f.Value), 40)
	return name + " " + value
}

func peakOf(p Preflight) float64 {
	most := 0.0
	for _, ph := range p.Phases {
		most = max(most, ph.gib())
	}
	return most
}

func (p MemoryPhase) gib() float64 {
	sum := 0.0
	for _, x := range p.Parts {
		sum += x.GiB
	}
	return sum
}

// memoryWide is the width of the drawing, in its own units.
const memoryWide = 320.0

// memoryView draws what each device holds, phase by phase, against what it
// has.
func memoryView(p Preflight, several bool) *templates.MemoryView {
	if len(p.Phases) == 0 || p.DeviceGiB <= 0 {
		return nil
	}
	peak := peakOf(p)
	scale := memoryWide / (1.08 * max(peak, p.DeviceGiB))
	v := &templates.MemoryView{
		Limit: unit(p.DeviceGiB * scale), LimitText: fmt.Sprintf("device %s GiB", fixed(p.DeviceGiB, 0)),
		Over: peak > p.DeviceGiB, Note: "estimate, right within a quarter; " + strings.Join(p.Assumed, "; "),
	}
	if p.Simulated {
		v.LimitText += ", simulated"
	}
	if several {
		v.Note = "the arm that needs most; " + v.Note
	}
	for _, ph := range p.Phases {
		bar := templates.MemoryBar{Name: ph.Name, Total: fixed(ph.gib(), 0) + " GiB"}
		x := 0.0
		var words []string
		for i, part := range ph.Parts {
			w := part.GiB * scale
			bar.Parts = append(bar.Parts, templates.MemoryPart{Name: part.Name, X: unit(x), W: unit(max(w, .5)), Shade: i%5 + 1, Text: part.Name + " " + fixed(part.GiB, 1) + " GiB"})
			words = append(words, part.Name+" "+fixed(part.GiB, 1))
			x += w
		}
		bar.Words = strings.Join(words, ", ")
		v.Bars = append(v.Bars, bar)
	}
	return v
}
