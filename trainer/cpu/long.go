package cpu

import (
	"alidade/ablation"
	"alidade/sandbox/travel/compact"
)

// longDays is the length of trips that speak the long language, 0 for three
// days: what depends on it is named as before for those.
func longDays(rec *ablation.Recipe) int {
	if rec.Environment.Days > 3 {
		return rec.Environment.Days
	}
	return 0
}

// newWorld makes the recipe's world for the recipe's trips.
func newWorld(rec *ablation.Recipe) (*compact.World, error) {
	w, err := compact.NewWorld(rec.Data.Seed, rec.Environment.Cities)
	if err != nil {
		return nil, err
	}
	return w.ForDays(rec.Environment.Days)
}

// usualLimits fills in the tool-call and context budgets that a recipe leaves
// to the length of its trips.
func usualLimits(rec *ablation.Recipe) {
	turns, tokens := compact.Limits(rec.Environment.Days)
	if rec.Environment.MaxTurns == 0 {
		rec.Environment.MaxTurns = turns
	}
	if rec.Environment.MaxTokens == 0 {
		rec.Environment.MaxTokens = tokens
	}
}

// baseName is the name of the recipe's shipped base.
func baseName(rec *ablation.Recipe) string {
	if longDays(rec) > 0 {
		return rec.Model.Size + longBase
	}
	return rec.Model.Size
}

// longBase ends the names of bases in the language of longer trips.
const longBase = "-long"

// LongPretrain returns the settings of a base checkpoint in the language of
// longer trips, which serves five and seven days alike. Strolls are of both.
func LongPretrain(size string) PretrainConfig {
	c := DefaultPretrain(size)
	c.Long, c.RecallSteps, c.StrollSteps = true, 1500, 1500
	return c
}

func (c *PretrainConfig) vocab() int {
	if c.Long {
		return compact.LongVocabSize
	}
	return compact.VocabSize
}

func (c *PretrainConfig) recall(seed, stream uint64) compact.Script {
	if c.Long {
		return compact.RecallLong(seed, stream)
	}
	return compact.Recall(seed, stream)
}

// strollWorld is a world to stroll in, once for each length of trips.
type strollWorld []*compact.World

// world makes the world of a data seed for the strolls of c.
func (c *PretrainConfig) world(seed uint64) (strollWorld, error) {
	w, err := compact.NewWorld(seed, 30)
	if err != nil || !c.Long {
		return strollWorld{w}, err
	}
	var all strollWorld
	for _, days := range []int{5, 7} {
		v, err := w.ForDays(days)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// stroll writes a stroll; lengths take turns.
func (s strollWorld) stroll(seed, stream uint64) compact.Script {
	return s[stream%uint64(len(s))].StrollScript(seed, stream)
}
