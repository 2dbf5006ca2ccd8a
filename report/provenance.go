package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"math"
	"slices"
	"strings"

	"alidade/stats"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// provenance gathers hashes, versions and commands.
func (b *builder) provenance() Provenance {
	p := Provenance{DataHash: b.dataHash(), Study: b.studyHash(), Seed: b.sample.Seed, Resample: b.sample.Resamples}
	info := map[string]map[string]bool{}
	for _, a := range b.arms {
		for _, o := range a.final {
			if p.Panel == "" {
				p.Panel = o.hash
			}
		}
		for _, r := range a.runs {
			noteInfo(info, r.Hello)
			for _, art := range r.Artifacts {
				if name := art.Kind + " " + shortHash(art.Hash); (art.Kind == "dataset" || art.Kind == "sft") && !slices.Contains(p.Datasets, name) {
					p.Datasets = append(p.Datasets, name)
				}
			}
		}
	}
	slices.Sort(p.Datasets)
	for _, k := range sortedKeys(info) {
		if p.Trainer == nil {
			p.Trainer = map[string]string{}
		}
		p.Trainer[k] = strings.Join(sortedKeys(info[k]), ", ")
	}
	name := b.in.Study.Study.Name
	p.Commands = []string{fmt.Sprintf("alidade run %s.yaml --wait", name), fmt.Sprintf("alidade report S-%d --out report/", b.in.Study.ID)}
	return p
}

// private are facts of a trainer that a shared report leaves out.
var private = []string{"host", "hostname", "user", "dir", "path", "argv", "command", "cwd", "pid"}

func noteInfo(info map[string]map[string]bool, h Hello) {
	note := func(k, v string) {
		if v == "" || slices.Contains(private, strings.ToLower(k)) {
			return
		}
		if info[k] == nil {
			info[k] = map[string]bool{}
		}
		info[k][v] = true
	}
	note("trainer", h.Trainer)
	note("version", h.Version)
	for k, v := range h.Info {
		note(k, v)
	}
}

func (b *builder) studyHash() string {
	if b.in.Study.Source != "" {
		return digest([]byte(b.in.Study.Source))
	}
	raw, err := json.Marshal(b.in.Study.Study)
	if err != nil {
		return ""
	}
	return digest(raw)
}

func digest(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}

// dataHash is over every number the report is computed from, so that a report
// on changed data can be told apart.
func (b *builder) dataHash() string {
	h := sha256.New()
	for _, r := range b.in.Runs {
		fmt.Fprintf(h, "run %d arm %d %s seed %d %s\n", r.Run.ID, r.Run.Arm.Index, r.Run.Arm.Hash, r.Run.Seed, r.Run.State)
		for _, e := range r.Evaluations {
			fmt.Fprintf(h, "eval %s %s %s %d %d %s\n", e.Panel, e.Policy, e.Mode, e.Step, e.Samples, e.Hash)
			queries := slices.Clone(e.Queries)
			slices.SortFunc(queries, func(x, y queryResult) int { return cmp.Compare(x.Query, y.Query) })
			for _, q := range queries {
				fmt.Fprintf(h, "%s %s %d\n", q.Query, q.Level, q.Passed)
			}
		}
		for _, m := range sortedKeys(r.Series) {
			for _, p := range r.Series[m] {
				hashPoint(h, m, p.Step, p.Value)
			}
		}
		for _, m := range sortedKeys(r.Last) {
			hashPoint(h, m, r.Last[m].Step, r.Last[m].Value)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func hashPoint(h hash.Hash, metric string, step int64, value float64) {
	fmt.Fprintf(h, "%s %d %016x\n", metric, step, math.Float64bits(value))
}

// limits says what the study cannot show.
func (b *builder) limits() []string {
	st := b.in.Study.Study
	var out []string
	if st.Base.Trainer.Kind == "cpu" {
		out = append(out, "Small proxy policies on a synthetic world: a claim about how the method behaves here, not about language models of billions of parameters.")
	}
	if n := b.fewestSeeds(); n > 0 && n < stats.EnoughSeeds {
		s := fmt.Sprintf("%s an arm: ", plural(n, "seed", "seeds"))
		switch {
		case n < stats.UsefulSeeds:
			s += "query noise is stated, seed noise cannot be; training again may change the order of arms."
		default:
			s += fmt.Sprintf("seed intervals rest on few values; five or more would narrow them%s.", b.halfWidths())
		}
		out = append(out, s)
	}
	random, hasRandom := b.lineOf("random_legal")
	if sft, ok := b.lineOf("sft"); ok && hasRandom && sft.Mean < random.Mean {
		out = append(out, fmt.Sprintf("The SFT checkpoint (%s) is below the random legal policy (%s): a lift over it is a lift from a weak start. Compare with both lines.",
			b.primary.value(float64(sft.Mean)), b.primary.value(float64(random.Mean))))
	}
	if b.sharedSFT() {
		out = append(out, "All seeds of an arm start from one SFT checkpoint, so the seed noise of SFT itself is not in the lifts.")
	}
	if q := b.report.Results; len(q) > 0 && q[0].Queries > 0 {
		out = append(out, "Held-out queries come from the same source as the training prompts; nothing here speaks of other kinds of queries.")
	}
	if s := b.heldFixed(); s != "" {
		out = append(out, s)
	}
	for _, c := range b.report.Curves {
		out = append(out, c.NoFit)
	}
	if slices.ContainsFunc(b.report.Published, func(p Published) bool { return !p.Comparable }) {
		out = append(out, "Published values are shown for their shape, not their level: other policies, world and checks, and mostly one run each.")
	}
	return out
}

func (b *builder) halfWidths() string {
	low, high := math.Inf(1), 0.0
	for _, a := range b.arms {
		if iv := a.value.Seed; iv != nil {
			w := b.primary.shown(iv.High-iv.Low) / 2
			low, high = min(low, w), max(high, w)
		}
	}
	if high == 0 {
		return ""
	}
	return fmt.Sprintf(" (now ±%s to ±%s %s)", num(low, 1), num(high, 1), b.primary.Points)
}

// sharedSFT says whether seeds of an arm start from the same checkpoint.
func (b *builder) sharedSFT() bool {
	for _, a := range b.arms {
		for i := 1; i < len(a.sft); i++ {
			if maps.Equal(a.sft[0].passed, a.sft[i].passed) && len(a.sft[0].passed) > 0 {
				return true
			}
		}
	}
	return false
}

// heldFixed names the main axes that the study does not vary.
func (b *builder) heldFixed() string {
	var fixed []string
	for _, axis := range []struct{ key, name string }{
		{"reward.kind", "reward"}, {"algorithm.kind", "algorithm"}, {"model.size", "policy scale"}, {"data.prompts", "data size"},
	} {
		if !slices.Contains(b.varied(), axis.key) {
			fixed = append(fixed, axis.name)
		}
	}
	if len(fixed) == 0 {
		return ""
	}
	return fmt.Sprintf("Held fixed: %s. Interactions with them are not seen.", and(fixed))
}
