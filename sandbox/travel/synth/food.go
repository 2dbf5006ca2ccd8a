package synth

import "strings"

// foodBits turns "Cafe, Pizza" into a bit set over cuisines. Unknown words
// are ignored: they cannot be asked for.
func foodBits(list string) uint16 {
	var bits uint16
	for c := range strings.SplitSeq(list, ", ") {
		bits |= foodBit(strings.TrimSpace(c))
	}
	return bits
}

func foodBit(name string) uint16 {
	for i, c := range cuisines {
		if c == name {
			return 1 << i
		}
	}
	return 0
}
