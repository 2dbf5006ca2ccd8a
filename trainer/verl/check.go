package verl

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"alidade/ablation"
	"alidade/trainer/native"
)

// A Subject is a resolved configuration under examination.
type Subject struct {
	Profile  Profile
	Module   string // what is started
	Settings []native.Setting
	Tools    bool // the run needs tools
	Rows     int  // training prompts, 0 = not known
	// WorldSize is the number of devices that wrote the checkpoint to resume
	// from, 0 = none.
	WorldSize int
	Hours     float64 // expected length, h; 0 = not known
}

// lookup reads values of a subject, defaults included.
type lookup struct {
	*Subject
	at map[string]native.Setting
}

func (s *Subject) lookup() *lookup {
	l := &lookup{s, make(map[string]native.Setting, len(s.Settings))}
	for _, x := range s.Settings {
		l.at[x.Key] = x
	}
	return l
}

func (l *lookup) given(key string) bool { _, ok := l.at[key]; return ok }

// text is the key's value as set, else the version's default.
func (l *lookup) text(key string) string {
	if s, ok := l.at[key]; ok {
		return unquote(s.Value)
	}
	if k, ok := KeyOf(key); ok && k.in(l.Profile.Line) {
		return k.Default(l.Profile.Line)
	}
	return ""
}

func (l *lookup) number(key string) (float64, bool) {
	n, err := strconv.ParseFloat(l.text(key), 64)
	return n, err == nil
}

// whole reads a number; 0 for null and what is no number.
func (l *lookup) whole(key string) int {
	n, _ := l.number(key)
	return int(n)
}

func (l *lookup) on(key string) bool { v, _ := parseBool(l.text(key)); return v }

// devices is the number of devices on all nodes.
func (l *lookup) devices() int {
	return max(1, l.whole("trainer.nnodes")) * max(1, l.whole("trainer.n_gpus_per_node"))
}

func (l *lookup) sequence() int {
	return l.whole("data.max_prompt_length") + l.whole("data.max_response_length")
}

// CheckSettings examines a configuration: keys that the version does not have,
// values out of range, keys that it takes and ignores, and rules across keys.
func CheckSettings(s *Subject) []native.Verdict {
	l := s.lookup()
	var out []native.Verdict
	for _, x := range s.Settings {
		out = append(out, l.checkKey(x)...)
	}
	for _, rule := range deadRules() {
		out = append(out, rule.check(l)...)
	}
	for _, rule := range crossRules() {
		if v, bad := rule(l); bad {
			out = append(out, v)
		}
	}
	return out
}

// allowedPlus are the keys outside the tree that may be added.
var allowedPlus = []string{
	"reward_kwargs.overlong_buffer_cfg.enable", "reward_kwargs.overlong_buffer_cfg.len", "reward_kwargs.overlong_buffer_cfg.penalty_factor",
	"reward_kwargs.overlong_buffer_cfg.log", "reward_kwargs.max_resp_len",
	"ray_init._temp_dir", "ray_init.address", "ray_init.num_cpus", "ray_init.runtime_env",
	"multi_turn.tool_config_path", "tools.tool_instances.",
}

func (p Profile) plusAllowed(key string) bool {
	reward := "reward."
	if !p.Reward {
		reward = "reward_model."
	}
	for _, a := range allowedPlus {
		switch {
		case strings.HasPrefix(a, "reward_kwargs"):
			if key == reward+a || p.Migrates && key == "reward_model."+a {
				return true
			}
		case strings.HasSuffix(a, "."):
			if strings.Contains(key, a) {
				return true
			}
		case strings.HasSuffix(key, a):
			return true
		}
	}
	return strings.HasPrefix(key, rollout+"custom.agent_framework.") || key == rollout+"agent.agent_loop_manager_class"
}

// checkKey examines one setting by itself.
func (l *lookup) checkKey(s native.Setting) []native.Verdict {
	if strings.HasPrefix(s.Key, "hydra.") {
		return nil
	}
	if !l.Profile.inTree(s.Key, l.Module) {
		if l.Profile.plusAllowed(s.Key) {
			return nil
		}
		return []native.Verdict{l.noKey(s)}
	}
	k, ok := KeyOf(s.Key)
	if !ok {
		return l.checkTyped(s)
	}
	if k.accepts(s.Value, l.Profile.Line) {
		return nil
	}
	return []native.Verdict{{Level: native.Refuse, Code: "wrong-value", Key: s.Key, Value: s.Value,
		Text: fmt.Sprintf("%s takes %s", s.Key, k.Allowed(l.Profile.Line)), Fix: changeOf(s)}}
}

// changeOf says where a setting is changed.
func changeOf(s native.Setting) string {
	switch s.From {
	case "", "native.overrides":
		return "change " + s.Key + " in native.overrides"
	case "seed":
		return "another seed"
	}
	return "change " + s.From
}

// checkTyped examines a key of which only the type of its default is known.
func (l *lookup) checkTyped(s native.Setting) []native.Verdict {
	types := tree()[s.Key].types
	value := unquote(s.Value)
	want := ""
	switch _, isBool := parseBool(value); {
	case value == "null":
	case types == "b" && !isBool:
		want = "True or False"
	case types == "i" || types == "f":
		if n, err := strconv.ParseFloat(value, 64); err != nil || types == "i" && n != float64(int64(n)) {
			want = map[string]string{"i": "a whole number", "f": "a number"}[types]
		}
	case types == "l" && !strings.HasPrefix(value, "["):
		want = "a list"
	}
	if want == "" {
		return nil
	}
	return []native.Verdict{{Level: native.Refuse, Code: "wrong-value", Key: s.Key, Value: s.Value, Text: s.Key + " takes " + want, Fix: changeOf(s)}}
}

// noKey explains a key that the version does not have.
func (l *lookup) noKey(s native.Setting) native.Verdict {
	v := native.Verdict{Level: native.Refuse, Code: "unknown-key", Key: s.Key, Value: s.Value,
		Text: fmt.Sprintf("verl %s has no key %s", l.Profile.Name, s.Key), Fix: "leave it out"}
	if other := renamed(s.Key, l.Profile); other != "" {
		v.Fix = "write " + other
		return v
	}
	if in := tree()[s.Key].in; in != "" {
		var names []string
		for _, p := range profiles {
			if p.tree != 0 && !p.Fork && strings.IndexByte(in, p.tree) >= 0 {
				names = append(names, p.Name)
			}
		}
		v.Text += "; it is in " + strings.Join(names, ", ")
		return v
	}
	if near := ablation.Nearest(s.Key, l.Profile.keys()); near != "" {
		v.Fix = "did you mean " + near + "?"
	}
	return v
}

// renames are keys that moved: old name, new name, first line with the new.
var renames = []struct {
	old, new string
	since    Line
}{
	{actor + "optim.warmup_style", actor + "optim.lr_scheduler_type", Line06},
	{"custom_reward_function.path", "reward.custom_reward_function.path", Line07},
	{"custom_reward_function.name", "reward.custom_reward_function.name", Line07},
	{"reward_model.reward_manager", "reward.reward_manager.name", Line07},
	{"reward_model.reward_kwargs.max_resp_len", "reward.reward_kwargs.max_resp_len", Line07},
	{"reward_model.sandbox_fusion.url", "reward.sandbox_fusion.url", Line07},
	{"sandbox_fusion.url", "reward.sandbox_fusion.url", Line07},
	{"ray_init.num_cpus", "ray_kwargs.ray_init.num_cpus", Line06},
}

// renamed is the name of a key in the profile's version, "" when it has none
// or the same.
func renamed(key string, p Profile) string {
	for _, r := range renames {
		switch {
		case key == r.old && p.Line >= r.since:
			return r.new
		case key == r.new && p.Line < r.since:
			return r.old
		}
	}
	if rest, ok := strings.CutPrefix(key, "reward_model.reward_kwargs."); ok && p.Line >= Line07 {
		return "reward.reward_kwargs." + rest
	}
	if rest, ok := strings.CutPrefix(key, "reward.reward_kwargs."); ok && p.Line < Line07 {
		return "reward_model.reward_kwargs." + rest
	}
	return ""
}

// levelOf is the worst level of verdicts.
func levelOf(list []native.Verdict) string {
	for _, level := range []string{native.Refuse, native.Warn, native.Note} {
		if slices.ContainsFunc(list, func(v native.Verdict) bool { return v.Level == level }) {
			return level
		}
	}
	return ""
}
