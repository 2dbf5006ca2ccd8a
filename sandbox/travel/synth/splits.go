package synth

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"alidade/sandbox"
)

// Splits shares queries out to named sets by their hash: two files made with
// any seeds, at any time, never share a query if they were made for different
// sets of the same Splits.
type Splits struct {
	names   []string
	weights []uint64
	total   uint64
}

// ParseSplits reads names with weights, "train:8,validation:1,test:1".
func ParseSplits(s string) (Splits, error) {
	var out Splits
	for part := range strings.SplitSeq(s, ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(part), ":")
		n, err := strconv.ParseUint(strings.TrimSpace(weight), 10, 32)
		if name = strings.TrimSpace(name); name == "" || err != nil || n == 0 || slices.Contains(out.names, name) {
			return Splits{}, fmt.Errorf("splits are %q, must be different names with whole weights above 0, such as train:8,validation:1,test:1", s)
		}
		out.names, out.weights, out.total = append(out.names, name), append(out.weights, n), out.total+n
	}
	return out, nil
}

// Names lists the sets.
func (s Splits) Names() []string { return slices.Clone(s.names) }

// Of returns the set that a query hash belongs to.
func (s Splits) Of(hash string) string {
	h := fnv.New64a()
	h.Write([]byte(hash))
	x := sandbox.Mix(h.Sum64()) % s.total
	for i, w := range s.weights {
		if x < w {
			return s.names[i]
		}
		x -= w
	}
	return s.names[len(s.names)-1]
}

// Keep returns the test for one set, for [Options].
func (s Splits) Keep(name string) (func(hash string) bool, error) {
	if !slices.Contains(s.names, name) {
		return nil, fmt.Errorf("split is %q, must be one of %s", name, strings.Join(s.names, ", "))
	}
	return func(hash string) bool { return s.Of(hash) == name }, nil
}
