package verl

import (
	"fmt"
	"strconv"
	"strings"
)

// A Line is a line of versions that behave alike, in the order in which they
// came. The forks stand where their code was cut off.
type Line int

// The lines that are known.
const (
	LineARPO Line = iota // ARPO's fork, of 0.3.1.dev
	Line05               // 0.5
	LineOAR              // Open-AgentRL's fork, of 0.5.0.dev
	Line06               // 0.6.1
	Line07               // 0.7.1
	Line08               // 0.8
	Line09               // 0.9 and what follows
)

// A Profile says how one line of versions behaves.
type Profile struct {
	Line    Line
	Name    string // native.version that names it: "0.7.1", "open-agentrl"
	Version string // the release that its keys were checked against
	Fork    bool
	tree    byte // its mark in tree.txt, 0 = that of no release

	FileLogger bool // the JSONL logger is there
	Unbuffered bool // … and writes whole lines at once
	Reward     bool // the reward is set under reward.*, else under reward_model.* and custom_reward_function.*
	Migrates   bool // the old reward keys still work beside the new ones
	Scheduler  string
	RayPrefix  string // section of Ray's own settings: "ray_kwargs.ray_init" or "ray_init"
	AgentData  bool   // a tool is told which trajectory calls it
	AgentLoops bool   // own agent loops can be named in a file, and one is the default
	V1         bool   // the trainer that keeps groups in a queue: uid in dumps, filter_groups built in
	DAPORecipe bool   // dynamic sampling is the separate entry recipe.dapo.main_dapo
	SyncMode   string // rollout.mode of an agent: async, or sync_with_tool in ARPO's fork
	ToolReturn string // what a tool returns: "response" or, before 0.6, "text"
}

// profiles in order of Line.
var profiles = []Profile{
	{Line: LineARPO, Name: "arpo", Version: "0.3.1.dev", Fork: true, Scheduler: "warmup_style", RayPrefix: "ray_init", SyncMode: "sync_with_tool", ToolReturn: "text"},
	{Line: Line05, Name: "0.5", Version: "0.5.0", tree: '5', Scheduler: "warmup_style", RayPrefix: "ray_init", DAPORecipe: true, SyncMode: "async", ToolReturn: "text"},
	{Line: LineOAR, Name: "open-agentrl", Version: "0.5.0.dev", Fork: true, tree: '5', Scheduler: "warmup_style", RayPrefix: "ray_init", SyncMode: "async", ToolReturn: "text"},
	{Line: Line06, Name: "0.6.1", Version: "0.6.1", tree: '6', FileLogger: true, Scheduler: "lr_scheduler_type", RayPrefix: "ray_kwargs.ray_init",
		AgentLoops: true, DAPORecipe: true, SyncMode: "async", ToolReturn: "response"},
	{Line: Line07, Name: "0.7.1", Version: "0.7.1", tree: '7', FileLogger: true, Unbuffered: true, Reward: true, Migrates: true, Scheduler: "lr_scheduler_type",
		RayPrefix: "ray_kwargs.ray_init", AgentData: true, AgentLoops: true, DAPORecipe: true, SyncMode: "async", ToolReturn: "response"},
	{Line: Line08, Name: "0.8", Version: "0.8.0", tree: '8', FileLogger: true, Unbuffered: true, Reward: true, Migrates: true, Scheduler: "lr_scheduler_type",
		RayPrefix: "ray_kwargs.ray_init", AgentData: true, AgentLoops: true, DAPORecipe: true, SyncMode: "async", ToolReturn: "response"},
	{Line: Line09, Name: "0.9", Version: "0.9.0", tree: '9', FileLogger: true, Unbuffered: true, Reward: true, Scheduler: "lr_scheduler_type",
		RayPrefix: "ray_kwargs.ray_init", AgentData: true, AgentLoops: true, V1: true, SyncMode: "async", ToolReturn: "response"},
}

// Profiles lists the lines of versions that are known, oldest first.
func Profiles() []Profile { return append([]Profile(nil), profiles...) }

// ProfileNames lists the names that native.version takes.
func ProfileNames() []string {
	var names []string
	for _, p := range profiles {
		names = append(names, p.Name)
	}
	return names
}

// ProfileOf finds the profile of a version: a profile's name, a release such
// as 0.7.1, or what a development version reports. exact is false when the
// version is a neighbour of the one that the keys were checked against.
func ProfileOf(version string) (p Profile, exact bool, err error) {
	version = strings.TrimPrefix(strings.TrimSpace(version), "v")
	for _, p := range profiles {
		if version == p.Name || version == p.Version {
			return p, true, nil
		}
	}
	major, minor, patch, ok := parseVersion(version)
	if !ok || major != 0 {
		return Profile{}, false, fmt.Errorf("verl version %q is not known; known: %s", version, strings.Join(ProfileNames(), ", "))
	}
	line := Line09
	switch {
	case minor == 5:
		line = Line05
	case minor == 6:
		line = Line06
	case minor == 7:
		line = Line07
	case minor == 8:
		line = Line08
	case minor < 5:
		return Profile{}, false, fmt.Errorf("verl version %q is too old; known: %s", version, strings.Join(ProfileNames(), ", "))
	}
	p = profiles[line]
	// 0.7.0 still buffered its log file, as 0.6 does.
	if minor == 7 && patch == 0 {
		p.Unbuffered = false
	}
	return p, false, nil
}

// parseVersion reads "0.10.0.dev0" or "0.7.1".
func parseVersion(s string) (major, minor, patch int, ok bool) {
	parts := strings.SplitN(s, ".", 4)
	if len(parts) < 2 {
		return 0, 0, 0, false
	}
	numbers := [3]int{}
	for i := range min(len(parts), 3) {
		n, err := strconv.Atoi(parts[i])
		if err != nil || n < 0 {
			return 0, 0, 0, false
		}
		numbers[i] = n
	}
	return numbers[0], numbers[1], numbers[2], true
}
