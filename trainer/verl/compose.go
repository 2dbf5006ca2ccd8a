package verl

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"alidade/trainer/native"

	"github.com/goccy/go-yaml"
)

// A Difference is a key whose composed value is not the intended one.
type Difference struct {
	Key, Want, Got string // Got is "" when the key is not there
}

// ParseComposed reads what `--cfg job` prints: the composed configuration as
// YAML, possibly after lines of imports, flat by dotted key.
func ParseComposed(src []byte) (map[string]any, error) {
	var tree map[string]any
	err := yaml.Unmarshal(src, &tree)
	for err != nil || len(tree) == 0 {
		// Warnings of imports stand before the configuration.
		_, rest, ok := bytes.Cut(src, []byte("\n"))
		if !ok {
			return nil, errors.Join(errors.New("no configuration in what was printed"), err)
		}
		if src = nextTop(rest); src == nil {
			return nil, errors.Join(errors.New("no configuration in what was printed"), err)
		}
		tree = nil
		err = yaml.Unmarshal(src, &tree)
	}
	flat := map[string]any{}
	flatten("", tree, flat)
	return flat, nil
}

// nextTop cuts off everything before the next line that opens a section.
func nextTop(src []byte) []byte {
	for len(src) > 0 {
		line, rest, _ := bytes.Cut(src, []byte("\n"))
		if len(line) > 1 && line[0] != ' ' && line[len(line)-1] == ':' && bytes.IndexByte(line, ' ') < 0 {
			return src
		}
		src = rest
	}
	return nil
}

func flatten(prefix string, v any, out map[string]any) {
	m, ok := v.(map[string]any)
	if !ok || len(m) == 0 {
		out[prefix] = v
		return
	}
	for k, x := range m {
		name := k
		if prefix != "" {
			name = prefix + "." + k
		}
		flatten(name, x, out)
	}
}

// Compare holds a composed configuration against the intended settings.
func Compare(composed map[string]any, settings []native.Setting) []Difference {
	var out []Difference
	for _, s := range settings {
		if strings.HasPrefix(s.Key, "hydra.") {
			continue
		}
		got, ok := composed[s.Key]
		if !ok {
			if !mapValue(s.Value) {
				out = append(out, Difference{Key: s.Key, Want: s.Value})
			}
			continue
		}
		if !sameValue(s.Value, got) {
			out = append(out, Difference{Key: s.Key, Want: s.Value, Got: fmt.Sprint(got)})
		}
	}
	return out
}

// mapValue tells whether a value is a map: its keys are composed one by one.
func mapValue(s string) bool { return strings.HasPrefix(s, "{") }

// sameValue compares a value as an override has it with one read from YAML.
func sameValue(want string, got any) bool {
	if list, ok := got.([]any); ok {
		return sameList(want, list)
	}
	if m, ok := got.(map[string]any); ok {
		return mapValue(want) && len(m) == 0
	}
	plain := unquoteOverride(want)
	if b, ok := got.(bool); ok {
		w, isBool := parseBool(plain)
		return isBool && w == b
	}
	if got == nil {
		return plain == "null"
	}
	text := fmt.Sprint(got)
	if text == plain {
		return true
	}
	x, err1 := strconv.ParseFloat(text, 64)
	y, err2 := strconv.ParseFloat(plain, 64)
	return err1 == nil && err2 == nil && x == y
}

func sameList(want string, got []any) bool {
	inner, opened := strings.CutPrefix(want, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if !opened || !closed {
		return false
	}
	var items []string
	for _, item := range strings.Split(inner, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, unquoteOverride(item))
		}
	}
	texts := make([]string, len(got))
	for i, g := range got {
		texts[i] = fmt.Sprint(g)
	}
	return slices.Equal(items, texts)
}

// unquoteOverride undoes [quote].
func unquoteOverride(s string) string {
	u := unquote(s)
	if u == s {
		return s
	}
	return strings.NewReplacer(`\'`, "'", `\\`, `\`).Replace(u)
}

// missing lists mandatory keys that nobody has set.
func missing(composed map[string]any) []string {
	var keys []string
	for k, v := range composed {
		if v == "???" && !strings.HasPrefix(k, "reward.reward_model.") && !strings.HasPrefix(k, "reward_model.") && !strings.HasPrefix(k, "distillation.") {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// composed judges the stage that prints the configuration.
func composed(stdout string, settings []native.Setting) func(int64, int) (bool, string) {
	return func(_ int64, exit int) (bool, string) {
		if exit != 0 {
			return false, fmt.Sprintf("the configuration does not compose (exit code %d): see the log for the key", exit)
		}
		src, err := os.ReadFile(stdout)
		if err != nil {
			return false, fmt.Sprintf("the composed configuration: %v", err)
		}
		config, err := ParseComposed(src)
		if err != nil {
			return false, fmt.Sprintf("the composed configuration: %v", err)
		}
		if keys := missing(config); len(keys) > 0 {
			return false, "the configuration leaves open what has to be set: " + strings.Join(keys, ", ")
		}
		if diff := Compare(config, settings); len(diff) > 0 {
			var parts []string
			for _, d := range diff {
				parts = append(parts, fmt.Sprintf("%s is %q and not %q", d.Key, d.Got, d.Want))
			}
			return false, "the composed configuration is not the intended one: " + strings.Join(parts, "; ")
		}
		return true, ""
	}
}
