package verl

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// treeText lists the keys of the configuration that each release composes, one
// a line: name, type letters of its defaults, and the releases that have it
// (5 = 0.5.0 … 9 = 0.9.0). scripts/verl-compose.sh prints it anew from the
// packages and compares.
//
// Types: b bool, i whole number, f number, s text, l list, m map, n null,
// r a reference to another key.
//
//go:embed tree.txt
var treeText string

// A leaf is one key of the tree.
type leaf struct {
	types string
	in    string // marks of the releases
}

var tree = sync.OnceValue(func() map[string]leaf {
	t := map[string]leaf{}
	for line := range strings.Lines(treeText) {
		if f := strings.Fields(line); len(f) == 3 {
			t[f[0]] = leaf{f[1], f[2]}
		}
	}
	return t
})

// unlisted are parts of the tree that tree.txt leaves out: their keys are left
// to Hydra, which refuses unknown ones when it composes.
var unlisted = []string{"critic.", "distillation.", "global_profiler.", "veomni", "torchtitan", "nsight", "npu_profile", "profiler.", ".qat.", ".mtp.",
	"MooncakeStore", "disaggregation.", "reward_model.rollout.", "teacher_model", "skip.", "prometheus.", "_target_", ".engine.", "model_engine"}

// has tells whether the version's tree has the key; listed is false when that
// is not known here.
func (p Profile) has(key string) (ok, listed bool) {
	if p.tree == 0 { // ARPO's fork is older than all releases that were read
		_, ok = curated()[key]
		return ok, ok
	}
	if l, found := tree()[key]; found {
		return strings.IndexByte(l.in, p.tree) >= 0, true
	}
	for _, part := range unlisted {
		if strings.Contains(key, part) {
			return true, false
		}
	}
	return false, true
}

// keys lists the version's keys, sorted.
func (p Profile) keys() []string {
	var names []string
	for name, l := range tree() {
		if strings.IndexByte(l.in, p.tree) >= 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
