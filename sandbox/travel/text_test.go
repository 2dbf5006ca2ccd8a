package travel

import (
	"regexp"
	"testing"
)

// The patterns of the public evaluators, as written there but for Python's
// idea of white space. They are the reference for the hand-written code.
const space = `[\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]`

var (
	fromToPattern = regexp.MustCompile(`from` + space + `+(.+?)` + space + `+to` + space + `+([^,]+)`)
	placePattern  = regexp.MustCompile(`(.*?),` + space + `*([^,]+)$`)
	statePattern  = regexp.MustCompile(`^(.*?)\([^)]*\)`)
)

func FuzzText(f *testing.F) {
	for _, s := range []string{
		"from A to B", "from  to  to to", "from   to X", "from \n to X", "from\u00a0A\u3000to\tB, C", "fromfrom A to B to C", "from A\nfrom B to C",
		"from A from\nB to C", "from A to , B to C", "from A to  , B", "from to to", "x from A  to\nB\n", "from \v\x1c to X", "from",
		"Name, City", "a\nb, c", "Name, City(State)", ", City", "Name,", "Name, ", "a,b,c", "Name, C\n", "N(x), C", "a(b(c)d", "\n(a)", "a)(b", "(", "",
		"Flight Number: F1, x", "Flight Number: F1 Flight Number: F2, y", "TAXİ", "sElf-drİving", "é(ü)",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		from, to, ok := fromTo(s)
		if m := fromToPattern.FindStringSubmatch(s); ok != (m != nil) || ok && (from != m[1] || to != m[2]) {
			t.Errorf("fromTo(%q) = %q %q %v, want %q", s, from, to, ok, m)
		}
		name, city, ok := nameCity(s)
		if m := placePattern.FindStringSubmatch(s); ok != (m != nil) || ok && (name != trim(m[1]) || city != trim(m[2])) {
			t.Errorf("nameCity(%q) = %q %q %v, want %q", s, name, city, ok, m)
		}
		want := s
		if m := statePattern.FindStringSubmatch(s); m != nil {
			want = m[1]
		}
		if got := stripState(s); got != want {
			t.Errorf("stripState(%q) = %q, want %q", s, got, want)
		}
		for _, word := range []string{"taxi", "self-driving", "flight", "flight number"} {
			v := Text(lower(s))
			if got, want := containsFold(s, word), contains(&v, word); got != want {
				t.Errorf("containsFold(%q, %q) = %v, want %v", s, word, got, want)
			}
		}
	})
}

func TestFromToIsLinear(t *testing.T) {
	for _, unit := range []string{"from ", "from x ", "from a t", "from\n", "from  ", " from to", "to from "} {
		s := ""
		for len(s) < 1<<18 {
			s += unit
			if len(s) < 1<<12 {
				continue
			}
			s += s
		}
		fromTo(s) // a quadratic search would not come back within the test's time
	}
}
