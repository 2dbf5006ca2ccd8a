package ablation

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
)

// The kinds of stage, which are also the kinds of the artifacts they leave.
const (
	StageBase = "base" // pre-training of a base model that is not shipped
	StageSFT  = "sft"  // supervised fine-tuning on expert traces
)

// A Stage is work before the main phase whose result runs share: of all runs
// with an equal stage one makes it, the others take what it left. Stages are
// comparable. Key covers the recipe; Seed is the run's where the result
// depends on it, else 0.
type Stage struct {
	Kind   string
	Key    string
	BySeed bool
	Seed   uint64
}

// Of returns the stage of a run with the seed.
func (s Stage) Of(seed uint64) Stage {
	s.Seed = 0
	if s.BySeed {
		s.Seed = seed
	}
	return s
}

// ShipsBase reports whether the base checkpoint of a model size is part of the
// program; others are pre-trained once. Trips of more than three days have
// bases of their own.
func ShipsBase(size string, long bool) bool {
	if long {
		return size == "small"
	}
	return slices.Contains([]string{"nano", "small", "medium"}, size)
}

// Stages returns the shared stages of a recipe in the order in which a run
// goes through them, without a seed: see [Stage.Of]. Only the embedded trainer
// is known to share any.
func Stages(r Recipe) []Stage {
	if r.Trainer.Kind != "cpu" {
		return nil
	}
	long := r.Environment.Days > 3
	base := stageBase{r.Model.Size, r.Model.Base, r.Trainer.Kernel, long}
	stages := []Stage{
		{Kind: StageBase, Key: stageKey(base), BySeed: r.Model.Base == "scratch"},
		{Kind: StageSFT, Key: stageKey(sftInputs(&r, base)), BySeed: true},
	}
	if r.Model.Base == "shipped" && ShipsBase(r.Model.Size, long) {
		stages = stages[1:] // it is unpacked in a moment
	}
	if slices.ContainsFunc(stages, func(s Stage) bool { return s.Key == "" }) {
		return nil
	}
	return stages
}

// SFTKey names the SFT checkpoint of a run: runs with an equal one share it.
// It is "" for trainers that are not known to share theirs.
func SFTKey(r Recipe, seed uint64) string {
	for _, s := range Stages(r) {
		if s.Kind == StageSFT {
			return stageKey([]any{s.Key, seed})
		}
	}
	return ""
}

type stageBase struct {
	Size, Base, Kernel string
	Long               bool // in the language of longer trips
}

// stageSFT is what the embedded trainer's SFT checkpoint depends on; a test of
// that trainer holds it against its own key.
type stageSFT struct {
	Base         stageBase
	World        uint64
	Cities       int
	BudgetFactor float64
	Panel        int // its queries are drawn before the traces
	OODTraces    int
	OODRenamed   float64
	Think        int
	Days         int // of a trip
	SFT          SFT
}

func sftInputs(r *Recipe, base stageBase) stageSFT {
	in := stageSFT{
		Base: base, World: r.Data.Seed, Cities: r.Environment.Cities, BudgetFactor: r.Environment.BudgetFactor,
		Panel: r.Evaluation.Queries, OODTraces: r.Data.OODTraces, Days: r.Environment.Days, SFT: r.SFT,
	}
	if in.OODTraces > 0 {
		in.OODRenamed = r.Data.OODRenamed
	}
	in.SFT.Control, in.SFT.FilterFormat = false, false // the checkpoint is the same
	if in.SFT.TracesKind == "real" {
		in.SFT.TracesKind = ""
	}
	if r.Environment.Reasoning == "deliberative" {
		in.Think = cmp.Or(r.Environment.ThinkBudget, 16)
	}
	return in
}

// stageKey names v, "" when it holds a float that is not a number: recipes are
// refused for that elsewhere.
func stageKey(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
