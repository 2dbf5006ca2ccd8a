package cpu

import (
	"fmt"
	"testing"

	"alidade/ablation"
	"alidade/sandbox/travel/compact"
	"alidade/trainer"
	"alidade/trainer/cpu/nn"
)

// realSFTKey is what addresses the SFT checkpoint of a recipe and seed, with
// the inputs of world and base model in place of their hashes.
func realSFTKey(t *testing.T, rec ablation.Recipe, seed uint64) string {
	t.Helper()
	shape, err := nn.SizeConfig(rec.Model.Size, compact.VocabFor(rec.Environment.Days))
	if err != nil {
		t.Fatal(err)
	}
	r := &run{spec: trainer.Spec{Seed: seed}, recipe: rec, shape: shape}
	base := rec.Model.Size
	if _, _, ok := shippedBase(baseName(&rec)); !ok || rec.Model.Base != "shipped" {
		base += " made with " + rec.Trainer.Kernel
	}
	if rec.Model.Base == "scratch" {
		base += fmt.Sprint(" by ", seed)
	}
	key, err := hashOf(r.sftKeyOf(fmt.Sprint(rec.Data.Seed, rec.Environment.Cities), base))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// The scheduler's idea of equal SFT stages is the trainer's own: each key of
// the recipe changes both names of the checkpoint, or neither.
func TestStagesAreForetold(t *testing.T) {
	first := tinyRecipe(t)
	first.Environment.Reasoning, first.Environment.ThinkBudget = "deliberative", 8
	real, told := realSFTKey(t, first, 1), ablation.SFTKey(first, 1)
	if told == "" {
		t.Fatal("the embedded trainer shares no SFT stage")
	}
	changed := 0
	for _, f := range ablation.Fields() {
		if f.Key == "trainer.kind" {
			continue
		}
		for _, value := range otherValues(f) {
			r := first
			if ablation.Set(&r, f.Key, value) != nil {
				continue // not of this trainer
			}
			if now, _ := ablation.Get(&first, f.Key); fmt.Sprint(now) == fmt.Sprint(value) {
				continue
			}
			isReal, isTold := realSFTKey(t, r, 1) != real, ablation.SFTKey(r, 1) != told
			if isReal != isTold {
				t.Errorf("%s = %v: the trainer makes another checkpoint: %v, the scheduler thinks so: %v", f.Key, value, isReal, isTold)
			}
			if isReal {
				changed++
			}
		}
	}
	if changed < 12 {
		t.Errorf("only %d changes made another checkpoint", changed)
	}
	if ablation.SFTKey(first, 2) == told {
		t.Error("runs with different seeds share an SFT checkpoint")
	}
	for _, size := range []string{"nano", "small", "medium", "large", "xl"} {
		for _, long := range []bool{false, true} {
			name := size
			if long {
				name += longBase
			}
			if _, _, ok := shippedBase(name); ok != ablation.ShipsBase(size, long) {
				t.Errorf("the base of %s is shipped: %v, the scheduler thinks so: %v", name, ok, !ok)
			}
		}
	}
}

// otherValues are values of a field's kind, some of which differ from any.
func otherValues(f ablation.Field) []any {
	switch f.Kind {
	case ablation.KindBool:
		return []any{true, false}
	case ablation.KindEnum:
		var all []any
		for _, v := range f.Enum {
			all = append(all, v)
		}
		return all
	case ablation.KindInt:
		if f.Key == "environment.days" {
			return []any{5, 7}
		}
		return []any{13, 21}
	case ablation.KindUint:
		return []any{uint64(13), uint64(21)}
	case ablation.KindFloat:
		return []any{0.125, 0.375}
	case ablation.KindString:
		if f.Key == "model.size" {
			return []any{"nano", "small", "large"}
		}
		return []any{"1:1:1"}
	}
	return nil
}
