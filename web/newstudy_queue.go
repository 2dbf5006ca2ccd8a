package web

import (
	"fmt"
	"strconv"
	"strings"

	"alidade/ablation"
	"alidade/templates"
)

// queueDraft is how a study's runs wait and end early, as it is being typed.
type queueDraft struct {
	Priority                string
	Halving                 string // metric; "" = every run goes to its end
	HalvingRungs, HalvingBy string
}

// queueDraftOf writes it as texts.
func queueDraftOf(st ablation.Study) queueDraft {
	var q queueDraft
	if st.Priority != 0 {
		q.Priority = strconv.Itoa(st.Priority)
	}
	if h := st.Halving; h != nil {
		q.Halving, q.HalvingBy = h.Metric, strconv.Itoa(h.Reduction)
		rungs := make([]string, len(h.Rungs))
		for i, r := range h.Rungs {
			rungs[i] = strconv.FormatInt(r, 10)
		}
		q.HalvingRungs = strings.Join(rungs, ", ")
	}
	return q
}

// read reads the texts into a study and returns what is wrong with them.
func (q queueDraft) read(st *ablation.Study) (bad []ablation.FieldError) {
	number := func(field, text, allowed string) int64 {
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil {
			bad = append(bad, ablation.FieldError{Field: field, Value: text, Problem: "not a whole number", Allowed: allowed})
		}
		return n
	}
	if strings.TrimSpace(q.Priority) != "" {
		st.Priority = int(number("priority", q.Priority, fmt.Sprintf("a whole number from %d to %d; larger runs first", -ablation.MaxPriority, ablation.MaxPriority)))
	}
	if strings.TrimSpace(q.Halving+q.HalvingRungs+q.HalvingBy) == "" {
		return bad
	}
	h := &ablation.Halving{Metric: strings.TrimSpace(q.Halving)}
	for _, text := range strings.FieldsFunc(q.HalvingRungs, func(c rune) bool { return c == ',' || c == ' ' || c == '\n' }) {
		h.Rungs = append(h.Rungs, number("halving.rungs", text, "steps from 1 up, ascending, such as 20, 60, 180"))
	}
	h.Reduction = int(number("halving.reduction", q.HalvingBy, "a whole number from 2 to 100: of so many runs one goes on"))
	st.Halving = h
	return bad
}

// view shows it in the form.
func (q queueDraft) view(problems map[string]string) templates.QueueFields {
	return templates.QueueFields{
		Priority: templates.TextField{Value: q.Priority, Problem: problems["priority"]},
		Metric:   templates.TextField{Value: q.Halving, Problem: problems["halving.metric"]},
		Rungs:    templates.TextField{Value: q.HalvingRungs, Problem: problems["halving.rungs"]},
		By:       templates.TextField{Value: q.HalvingBy, Problem: problems["halving.reduction"]},
	}
}
