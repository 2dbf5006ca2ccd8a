package cpu

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"alidade/sandbox/travel"
	"alidade/trainer/cpu/nn"
)

// What rollouts say is the same bit for bit whether those that are alike so far
// share a slot or each is sampled alone; tools that fail for some of a group
// part it as words do.
func TestSharedSlotsChangeNothing(t *testing.T) {
	r, _ := bare(t)
	src, ext, ok := shippedBase("small")
	if !ok || ext != extFull {
		t.Fatalf("the base of small is %q", ext)
	}
	path := filepath.Join(t.TempDir(), policyFile)
	if err := os.WriteFile(path, src, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := nn.LoadCheckpoint(path, "auto")
	if err != nil {
		t.Fatal(err)
	}
	m := c.Model
	r.recipe.Algorithm.GroupSize, r.recipe.Algorithm.PromptsPerStep = 8, 5
	r.failures = travel.Failures{Rate: 0.2, Seed: 3}
	stream := func(i int) uint64 { return nn.Stream(5, uint64(i)) }
	open := func() []*rollout {
		var all []*rollout
		for p := range 5 {
			for g := range 8 {
				all = append(all, r.open(1, 0, p, g))
			}
		}
		return all
	}
	for name, how := range map[string]nn.Sampling{"sampled": {Temperature: 0.7}, "top-p": {Temperature: 1, TopP: 0.8}, "greedy": {}} {
		t.Run(name, func(t *testing.T) {
			together := open()
			sm, err := newSampler(m, 8, 2)
			if err != nil {
				t.Fatal(err)
			}
			if err := sm.play(together, how, stream); err != nil {
				t.Fatal(err)
			}
			parted := 0
			for i, o := range open() {
				one, err := newSampler(m, 1, 1)
				if err != nil {
					t.Fatal(err)
				}
				if err := one.batch([]*rollout{o}, how, func(int) uint64 { return stream(i) }); err != nil {
					t.Fatal(err)
				}
				w := together[i]
				if !slices.Equal(o.s.Script().Tokens, w.s.Script().Tokens) || !slices.Equal(o.logprob, w.logprob) || !slices.Equal(o.entropy, w.entropy) {
					t.Fatalf("rollout %d says something else in company", i)
				}
				if i%8 > 0 && !slices.Equal(w.s.Script().Tokens, together[i-1].s.Script().Tokens) {
					parted++
				}
			}
			if parted == 0 {
				t.Error("no two rollouts of a group differ")
			}
		})
	}
}
