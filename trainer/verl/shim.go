package verl

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"

	"alidade/ablation"
	"alidade/trainer/native"

	"github.com/goccy/go-yaml"
)

//go:embed shims/*.py
var shimFiles embed.FS

// Names that the generated files and the settings share.
const (
	managerClass = "AlidadeRewardManager"
	arpoModule   = "alidade_arpo"
	tokenEnv     = "ALIDADE_ENV_TOKEN" // when the driver names no variable
)

// loopName is the agent loop that rows and settings name.
func loopName(own bool) string {
	if own {
		return "alidade_agent"
	}
	return "tool_agent"
}

// ShimSpec is what the generated Python depends on.
type ShimSpec struct {
	Profile  Profile
	Recipe   ablation.Recipe
	Env      native.EnvServer
	Progress string // path of the file that says how far the run is
	Task     string // id of any training task, for tools that do not know theirs
}

// Masks tells whether over-long rollouts are masked by an agent loop of ours.
func (s *ShimSpec) masks() bool {
	o := resolve(&s.Recipe)
	return o.Overlong == "mask" && s.Profile.AgentLoops
}

// Shims writes the Python and YAML that join verl to the environment server:
// tools, their schemas, the reward, and an agent loop where the recipe needs
// one. No file is longer than a screen, and none holds a secret.
func Shims(s ShimSpec) (map[string][]byte, error) {
	o := resolve(&s.Recipe)
	form := "native"
	if s.Recipe.Environment.Form != "tools" {
		form = "react"
	}
	token := s.Env.TokenEnv
	if token == "" {
		token = tokenEnv
	}
	files := map[string][]byte{"alidade_client.py": s.fill("alidade_client.py", "@PROGRESS@", s.Progress, "@TOKEN_ENV@", token, "@FORM@", form)}
	reward := s.fill("alidade_reward.py")
	if o.Overlong == "shape" && s.Profile.Reward {
		reward = append(reward, s.fill("manager.py")...)
	}
	files["alidade_reward.py"] = reward
	if s.Profile.Line == LineARPO {
		files[arpoModule+".py"] = s.fill("alidade_arpo.py", "@TASK@", s.Task)
		return files, nil
	}
	switch {
	case s.Profile.AgentData:
		files["alidade_tool.py"] = s.fill("alidade_tool.py")
	case s.Profile.ToolReturn == "text":
		files["alidade_tool.py"] = s.fill("alidade_tool_stateless.py", "@IMPORT@\n", "\n", "@RESULT@", "text")
	default:
		files["alidade_tool.py"] = s.fill("alidade_tool_stateless.py", "@IMPORT@", "from verl.tools.schemas import ToolResponse\n", "@RESULT@", "ToolResponse(text=text)")
	}
	tools, err := s.toolYAML()
	if err != nil {
		return nil, err
	}
	files["tools.yaml"] = tools
	if s.masks() {
		files["alidade_loop.py"] = s.fill("alidade_loop.py", "@MAX_TURNS@", fmt.Sprint(s.Recipe.Environment.MaxTurns))
		files["loops.yaml"] = []byte("- name: " + loopName(true) + "\n  _target_: alidade_loop.AlidadeAgentLoop\n")
	}
	return files, nil
}

// fill reads a template and puts values in the place of names.
func (s *ShimSpec) fill(name string, pairs ...string) []byte {
	src, err := shimFiles.ReadFile("shims/" + name)
	if err != nil {
		return nil // the files are part of the program; a test reads them all
	}
	return []byte(strings.NewReplacer(pairs...).Replace(string(src)))
}

// toolYAML lists the tools as verl's registry reads them.
func (s *ShimSpec) toolYAML() ([]byte, error) {
	var schemas []map[string]any
	if err := json.Unmarshal(s.Env.Tools, &schemas); err != nil {
		return nil, fmt.Errorf("tool schemas of the environment: %w", err)
	}
	if len(schemas) == 0 {
		return nil, fmt.Errorf("the environment names no tools")
	}
	var tools []yaml.MapSlice
	for _, schema := range schemas {
		config := yaml.MapSlice{{Key: "type", Value: "native"}}
		if !s.Profile.AgentData {
			config = append(config, yaml.MapItem{Key: "task_id", Value: s.Task})
		}
		tools = append(tools, yaml.MapSlice{
			{Key: "class_name", Value: "alidade_tool.AlidadeTool"},
			{Key: "config", Value: config},
			{Key: "tool_schema", Value: schema},
		})
	}
	return yaml.Marshal(yaml.MapSlice{{Key: "tools", Value: tools}})
}
