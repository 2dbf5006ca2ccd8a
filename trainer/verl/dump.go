package verl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"alidade/trainer"
	"alidade/trainer/native"
)

// A DumpRow is one rollout of a dump, <folder>/<step>.jsonl.
type DumpRow struct {
	Input, Output string
	Truth         string // ground truth as text
	Score         float64
	Step          int64
	UID           string // "<prompt>_<rollout>_<output>", from 0.9 on
	Episode       string // id in the environment server, where the reward function returned it
	Group         string // that it named
	Success       *bool  // acc, where the reward function returned it
	Extra         map[string]float64
	Components    map[string]float64
}

// ParseDumpRow reads one line of a dump. Keys that the reward function has
// returned are kept: numbers in Extra.
func ParseDumpRow(line []byte) (DumpRow, error) {
	var raw map[string]any
	dec := json.NewDecoder(bytes.NewReader(quoteNaN(line)))
	dec.UseNumber()
	if err := dec.Decode(&raw); err != nil {
		return DumpRow{}, fmt.Errorf("dump: %w", err)
	}
	if _, ok := raw["output"].(string); !ok {
		return DumpRow{}, fmt.Errorf("dump: a row without output")
	}
	row := DumpRow{Input: textOf(raw["input"]), Output: textOf(raw["output"]), Truth: textOf(raw["gts"]), UID: textOf(raw["uid"]),
		Episode: textOf(raw["wb_episode"]), Group: textOf(raw["wb_group"]), Extra: map[string]float64{}}
	if row.UID == "" {
		row.UID = textOf(raw["request_id"])
	}
	score, ok := numberOf(raw["score"])
	if !ok {
		score = math.NaN()
	}
	row.Score = score
	if step, ok := numberOf(raw["step"]); ok {
		row.Step = int64(step)
	}
	if acc, ok := numberOf(raw["acc"]); ok {
		passed := acc > 0.5
		row.Success = &passed
	}
	if parts, ok := raw["wb_components"].(string); ok {
		_ = json.Unmarshal([]byte(parts), &row.Components) // without them the score is one part
	}
	for key, v := range raw {
		switch key {
		case "input", "output", "gts", "score", "step", "uid", "request_id", "wb_episode", "wb_group", "wb_components":
			continue
		}
		if n, ok := numberOf(v); ok {
			row.Extra[key] = n
		}
	}
	return row, nil
}

// quoteNaN puts Python's bare NaN and infinities between quotes.
func quoteNaN(line []byte) []byte {
	if !bytes.Contains(line, []byte("NaN")) && !bytes.Contains(line, []byte("Infinity")) {
		return line
	}
	out := make([]byte, 0, len(line)+16)
	inside := false
	for i := 0; i < len(line); i++ {
		c := line[i]
		if inside {
			out = append(out, c)
			if c == '\\' && i+1 < len(line) {
				i++
				out = append(out, line[i])
			} else if c == '"' {
				inside = false
			}
			continue
		}
		inside = c == '"'
		if word := bareWord(line[i:]); word != "" {
			out = append(append(append(out, '"'), word...), '"')
			i += len(word) - 1
			continue
		}
		out = append(out, c)
	}
	return out
}

func bareWord(b []byte) string {
	for _, w := range []string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(b, []byte(w)) {
			return w
		}
	}
	return ""
}

func textOf(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		return x
	case json.Number:
		return x.String()
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

func numberOf(v any) (float64, bool) {
	switch x := v.(type) {
	case json.Number:
		f, err := x.Float64()
		return f, err == nil
	case bool:
		if x {
			return 1, true
		}
		return 0, true
	case string:
		switch x {
		case "NaN", "Infinity", "-Infinity":
			f, err := strconv.ParseFloat(x, 64)
			return f, err == nil
		}
	}
	return 0, false
}

// GroupOf names the group of a row: by the id that our reward function
// returned, else verl's uid, else a hash of the prompt, which is right only
// where all rollouts of a prompt have the same text. Neighbours in the file
// are no group: the trainer moves rows to balance its devices.
func (r *DumpRow) GroupOf() string {
	if r.Group != "" {
		return r.Group
	}
	if r.UID != "" {
		parts := strings.Split(r.UID, "_")
		if len(parts) >= 3 {
			return strings.Join(parts[:len(parts)-2], "_")
		}
		return r.UID
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(r.Input))
	return fmt.Sprintf("%016x", h.Sum64())
}

// Trajectory makes a record of a row that nobody else has kept.
func (r *DumpRow) Trajectory(phase string, rollout int) *trainer.Trajectory {
	turns, answer := SplitTurns(r.Output)
	group := r.GroupOf()
	t := &trainer.Trajectory{
		ID: fmt.Sprintf("%s-%d-%s-%d", phase, r.Step, group, rollout), Phase: phase, Policy: "policy", Step: r.Step, Group: group, Rollout: rollout, Mode: "sampled",
		Query: trainer.Query{Text: LastUser(r.Input)}, Turns: turns, Answer: answer, Reward: r.Score, RewardKind: "dump", End: "answer",
		Components: []trainer.Component{}, Tools: map[string]int{},
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(r.Input))
	t.Query.Hash = fmt.Sprintf("%016x", h.Sum64())
	if math.IsNaN(r.Score) || math.IsInf(r.Score, 0) {
		t.Reward, t.Labels = 0, map[string]string{"reward": "not a number"}
	}
	for name, v := range r.Components {
		t.Components = append(t.Components, trainer.Component{Name: name, Value: v})
	}
	slices.SortFunc(t.Components, func(a, b trainer.Component) int { return strings.Compare(a.Name, b.Name) })
	if len(t.Components) == 0 {
		t.Components = append(t.Components, trainer.Component{Name: "score", Value: t.Reward})
	}
	for i := range turns {
		if c := turns[i].Call; c != nil {
			t.ToolCalls++
			t.Tools[c.Tool]++
		}
	}
	if r.Success != nil {
		t.Success = *r.Success
	}
	if answer == "" {
		t.End = "context"
	}
	return t
}

// DumpOptions say what a folder of dumps is.
type DumpOptions struct {
	Dir   string
	Phase string // rl or eval
	// Known says that the environment server has a record of every rollout:
	// then a row only adds to it, and rows without an id add nothing.
	Known bool
	// Std divides advantages by the group's standard deviation. Groups is off
	// where advantages are not relative to a group.
	Groups, Std bool
	Panel       string // names the evaluation panel; "" = no evaluations are made of dumps
}

// DumpSource reads a folder of dumps as it fills.
func DumpSource(o DumpOptions) native.Source {
	return &dumps{DumpOptions: o, open: map[string]*dumpFile{}, done: map[string]bool{}}
}

type dumps struct {
	DumpOptions
	open map[string]*dumpFile
	done map[string]bool
}

type dumpFile struct {
	tail    native.Tail
	step    int64
	rows    []dumpedRow
	members map[string]int // rows by group
	size    int64
	idle    int // polls without growth
}

// dumpedRow is what of a row is needed once its step is complete.
type dumpedRow struct {
	group, episode, id string
	score              float64
	rollout            int
	query              string
	passed             bool
}

func (d *dumps) Name() string { return "dumps of " + d.Phase }

// idlePolls without growth make a dump complete: it is written in one go.
const idlePolls = 20

func (d *dumps) Poll(last bool, emit func(native.Reading)) error {
	entries, err := os.ReadDir(d.Dir)
	if err != nil {
		if os.IsNotExist(err) {
			return nil
		}
		return err
	}
	newest := int64(-1)
	for _, e := range entries {
		step, ok := stepFile(e.Name())
		if !ok || e.IsDir() || d.done[e.Name()] {
			continue
		}
		newest = max(newest, step)
		if d.open[e.Name()] == nil {
			d.open[e.Name()] = &dumpFile{tail: native.Tail{Path: filepath.Join(d.Dir, e.Name())}, step: step}
		}
	}
	names := keysOf(d.open)
	slices.SortFunc(names, func(a, b string) int { return int(d.open[a].step - d.open[b].step) })
	for _, name := range names {
		if err := d.read(name, last || d.open[name].step < newest, last, emit); err != nil {
			return err
		}
	}
	return nil
}

// stepFile reads the step out of a name such as 12.jsonl.
func stepFile(name string) (int64, bool) {
	base, ok := strings.CutSuffix(name, ".jsonl")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(base, 10, 64)
	return n, err == nil && n >= 0
}

// read takes what is new of one dump and closes it when it is complete.
func (d *dumps) read(name string, complete, last bool, emit func(native.Reading)) error {
	f := d.open[name]
	info, err := os.Stat(f.tail.Path)
	if err != nil {
		return err
	}
	if info.Size() == f.size {
		f.idle++
	} else {
		f.size, f.idle = info.Size(), 0
	}
	if err := f.tail.Lines(last || complete, func(line []byte) { d.row(f, line, emit) }); err != nil {
		return err
	}
	if complete || f.idle >= idlePolls && len(f.rows) > 0 {
		d.finish(f, emit)
		delete(d.open, name)
		d.done[name] = true
	}
	return nil
}

func (d *dumps) row(f *dumpFile, line []byte, emit func(native.Reading)) {
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	r, err := ParseDumpRow(line)
	if err != nil {
		emit(native.Reading{Bad: 1})
		return
	}
	if r.Step == 0 {
		r.Step = f.step
	}
	x := dumpedRow{group: r.GroupOf(), episode: r.Episode, score: r.Score, query: r.Truth, passed: r.Success != nil && *r.Success}
	if f.members == nil {
		f.members = map[string]int{}
	}
	x.rollout = f.members[x.group]
	f.members[x.group]++
	if !d.Known {
		t := r.Trajectory(d.Phase, x.rollout)
		x.id = t.ID
		emit(native.Reading{Step: r.Step, Trajectory: t})
	}
	f.rows = append(f.rows, x)
}

// finish says what only a complete step shows: advantages, and the share of
// groups that give no gradient.
func (d *dumps) finish(f *dumpFile, emit func(native.Reading)) {
	if d.Groups {
		d.advantages(f, emit)
	}
	if d.Panel != "" && len(f.rows) > 0 {
		emit(native.Reading{Step: f.step, Evaluation: d.evaluation(f)})
	}
}

// advantages are computed here from the scores of the dump, as verl does:
// (R − mean)/(SD + 1e-6) with n − 1 in the SD, or R − mean.
func (d *dumps) advantages(f *dumpFile, emit func(native.Reading)) {
	groups := map[string][]*dumpedRow{}
	for i := range f.rows {
		groups[f.rows[i].group] = append(groups[f.rows[i].group], &f.rows[i])
	}
	uniform, sizes := 0, 0
	for _, name := range keysOf(groups) {
		rows := groups[name]
		mean, sd := meanSD(rows)
		sizes += len(rows)
		if sd == 0 {
			uniform++
		}
		for _, r := range rows {
			if !d.Known || r.episode == "" {
				continue
			}
			a := &trainer.Advantage{Value: r.score - mean, Mean: mean, Std: sd, Norm: "group-mean", Zero: sd == 0, InLoss: true}
			if d.Std {
				a.Value, a.Norm = (r.score-mean)/(sd+1e-6), "group-std"
			}
			emit(native.Reading{Step: f.step, Trajectory: &trainer.Trajectory{ID: r.episode, Step: f.step, Advantage: a}})
		}
	}
	if n := len(groups); n > 0 {
		emit(native.Reading{Step: f.step, Values: map[string]float64{uniformName: float64(uniform) / float64(n), groupSizeName: float64(sizes) / float64(n)}})
	}
}

// Names of what is worked out from dumps.
const (
	uniformName   = "dump/groups_uniform"
	groupSizeName = "dump/group_size"
)

func meanSD(rows []*dumpedRow) (mean, sd float64) {
	for _, r := range rows {
		mean += r.score / float64(len(rows))
	}
	if len(rows) < 2 {
		return mean, 0
	}
	for _, r := range rows {
		sd += (r.score - mean) * (r.score - mean) / float64(len(rows)-1)
	}
	return mean, math.Sqrt(sd)
}
