package verl

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
)

// A Type is what a key's value is.
type Type byte

// The types of values.
const (
	Bool Type = iota
	Int
	Float
	Text
	Enum
	List
	Path
)

// A Key describes one key of verl's configuration. Defaults and the releases
// that have it were read from the configuration that each release generates.
type Key struct {
	Name     string
	Type     Type
	Null     bool // null is a value
	Min, Max float64
	Above    bool // Min itself is not allowed
	MinusOne bool // −1 is a value besides the range ("all", "off")
	Enum     []string
	Since    Line // first line that has it
	Until    Line // last line that has it, when Ends
	Ends     bool
	Defaults []default_
	Note     string
}

// default_ is a default from a line of versions on.
type default_ struct {
	since Line
	value string
}

// inf is no upper limit.
var inf = math.Inf(1)

const (
	arr     = "actor_rollout_ref."
	actor   = arr + "actor."
	rollout = arr + "rollout."
	refKey  = arr + "ref."
)

func always(value string) []default_ { return []default_{{LineARPO, value}} }

// from lists values with the lines from which they hold.
func from(pairs ...any) []default_ {
	var d []default_
	for i := 0; i+1 < len(pairs); i += 2 {
		d = append(d, default_{pairs[i].(Line), pairs[i+1].(string)})
	}
	return d
}

func boolean(name string, d []default_, note string) Key {
	return Key{Name: name, Type: Bool, Defaults: d, Note: note}
}

func whole(name string, lo, hi float64, d []default_, note string) Key {
	return Key{Name: name, Type: Int, Min: lo, Max: hi, Defaults: d, Note: note}
}

func number(name string, lo, hi float64, d []default_, note string) Key {
	return Key{Name: name, Type: Float, Min: lo, Max: hi, Defaults: d, Note: note}
}

func text(name string, d []default_, note string) Key {
	return Key{Name: name, Type: Text, Defaults: d, Note: note}
}

func path(name string, d []default_, note string) Key {
	return Key{Name: name, Type: Path, Null: true, Defaults: d, Note: note}
}

func enum(name string, values []string, d []default_, note string) Key {
	return Key{Name: name, Type: Enum, Enum: values, Defaults: d, Note: note}
}

func (k Key) since(l Line) Key { k.Since = l; return k }
func (k Key) until(l Line) Key { k.Until, k.Ends = l, true; return k }
func (k Key) null() Key        { k.Null = true; return k }
func (k Key) above() Key       { k.Above = true; return k }
func (k Key) orMinusOne() Key  { k.MinusOne = true; return k }
func (k Key) in(l Line) bool   { return l >= k.Since && (!k.Ends || l <= k.Until) }

// Default is the value that a line of versions has.
func (k Key) Default(l Line) string {
	value := ""
	for _, d := range k.Defaults {
		if l >= d.since {
			value = d.value
		}
	}
	return value
}

var curated = sync.OnceValue(func() map[string]Key {
	m := map[string]Key{}
	for _, list := range [][]Key{algorithmKeys(), modelKeys(), actorKeys(), rolloutKeys(), dataKeys(), rewardKeys(), trainerKeys()} {
		for _, k := range list {
			m[k.Name] = k
		}
	}
	return m
})

// KeyOf finds the description of a key that this package knows more about
// than its name.
func KeyOf(name string) (Key, bool) {
	k, ok := curated()[name]
	return k, ok
}

// EnumOf lists the values of an enum in one line of versions.
func (k Key) EnumOf(l Line) []string {
	if k.Name == actor+"policy_loss.loss_mode" {
		return lossModes(l)
	}
	if k.Name == rollout+"multi_turn.format" {
		return toolFormats(l)
	}
	if k.Name == actor+"loss_agg_mode" && l < Line09 {
		return k.Enum[:4]
	}
	if k.Name == rollout+"mode" && l >= Line07 {
		return []string{"async"}
	}
	if k.Name == rollout+"mode" && l == LineARPO {
		return []string{"sync", "async", "sync_with_tool"}
	}
	return k.Enum
}

// Allowed says in words what the key takes.
func (k Key) Allowed(l Line) string {
	var s string
	switch k.Type {
	case Bool:
		s = "True or False"
	case Int:
		s = "a whole number" + k.limits()
	case Float:
		s = "a number" + k.limits()
	case Enum:
		s = strings.Join(k.EnumOf(l), ", ")
	case List:
		s = "a list, such as [console,file]"
	case Path:
		s = "an absolute path"
	default:
		s = "a text"
	}
	if k.MinusOne {
		s += ", or -1"
	}
	if k.Null {
		s += ", or null"
	}
	return s
}

func (k Key) limits() string {
	low := "from "
	if k.Above {
		low = "above "
	}
	switch {
	case math.IsInf(k.Max, 1) && math.IsInf(k.Min, -1):
		return ""
	case math.IsInf(k.Max, 1):
		return " " + low + strconv.FormatFloat(k.Min, 'g', -1, 64)
	}
	return fmt.Sprintf(" %s%g to %g", low, k.Min, k.Max)
}

// accepts tells whether a value as written in an override fits the key.
func (k Key) accepts(value string, l Line) bool {
	value = unquote(value)
	if value == "null" || value == "None" {
		return k.Null
	}
	switch k.Type {
	case Bool:
		_, ok := parseBool(value)
		return ok
	case Int, Float:
		return k.acceptsNumber(value)
	case Enum:
		for _, e := range k.EnumOf(l) {
			if e == value {
				return true
			}
		}
		return false
	case List:
		return strings.HasPrefix(value, "[") && strings.HasSuffix(value, "]")
	case Text, Path:
		return value != ""
	}
	return true
}

func (k Key) acceptsNumber(value string) bool {
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || math.IsNaN(n) || (k.Type == Int && n != math.Trunc(n)) {
		return false
	}
	if k.MinusOne && n == -1 {
		return true
	}
	return (n > k.Min || n == k.Min && !k.Above) && n <= k.Max
}

// parseBool reads a Boolean as YAML and Hydra do.
func parseBool(s string) (value, ok bool) {
	switch strings.ToLower(s) {
	case "true", "yes", "on":
		return true, true
	case "false", "no", "off":
		return false, true
	}
	return false, false
}

// unquote takes one pair of quotes off.
func unquote(s string) string {
	if len(s) >= 2 && (s[0] == '\'' || s[0] == '"') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}
