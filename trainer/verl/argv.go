package verl

import (
	"strings"

	"alidade/trainer/native"
)

// Entries of the trainer.
const (
	modulePPO  = "verl.trainer.main_ppo"
	moduleDAPO = "recipe.dapo.main_dapo"
)

// module is what is started: dynamic sampling was a recipe of its own until
// 0.8, and is part of the V1 trainer from 0.9 on.
func (p Profile) module(filter bool) string {
	if filter && p.DAPORecipe {
		return moduleDAPO
	}
	return modulePPO
}

// recipeKeys are keys that the DAPO recipe's own configuration adds.
var recipeKeys = []string{"algorithm.filter_groups.enable", "algorithm.filter_groups.metric", "algorithm.filter_groups.max_num_gen_batches", "data.gen_batch_size",
	"reward_model.overlong_buffer.enable", "reward_model.overlong_buffer.len", "reward_model.overlong_buffer.penalty_factor", "reward_model.overlong_buffer.log"}

// Overrides writes settings as Hydra's overrides for one version: key=value,
// and ++key=value for a key that the composed configuration does not have.
func (p Profile) Overrides(settings []native.Setting, module string) []string {
	args := make([]string, len(settings))
	for i, s := range settings {
		args[i] = p.prefix(s.Key, module) + s.Key + "=" + s.Value
	}
	return args
}

func (p Profile) prefix(key, module string) string {
	if strings.HasPrefix(key, "hydra.") || p.inTree(key, module) {
		return ""
	}
	return "++"
}

// inTree tells whether the version composes the key by itself.
func (p Profile) inTree(key, module string) bool {
	if module == moduleDAPO {
		for _, k := range recipeKeys {
			if k == key {
				return true
			}
		}
	}
	ok, _ := p.has(key)
	return ok
}
