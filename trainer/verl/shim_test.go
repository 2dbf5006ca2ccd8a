package verl

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"alidade/ablation"
	"alidade/sandbox/serve"
	"alidade/sandbox/travel"
	"alidade/sandbox/travel/synth"
	"alidade/trainer"
	"alidade/trainer/native"

	"github.com/goccy/go-yaml"
)

// sandbox is a running environment server with one task that the plan solves.
type sandbox struct {
	url, token, plan string
	mu               sync.Mutex
	records          []trainer.Trajectory
}

func startSandbox(t *testing.T, form string) *sandbox {
	t.Helper()
	tables, err := synth.Generate(3, 8)
	if err != nil {
		t.Fatal(err)
	}
	w := synth.NewWorld(tables)
	queries, solutions, _, err := w.Queries(context.Background(), synth.Options{N: 2, Mix: [3]int{1, 1, 0}, Days: 3, Seed: 5, Certify: true})
	if err != nil {
		t.Fatal(err)
	}
	b := &sandbox{token: "secret-of-the-test", plan: travel.JSONPlan(solutions[0].Days)}
	c := serve.Config{World: w.World, Tasks: serve.Tasks{"train": serve.TasksOf(queries[:1]), "eval": serve.TasksOf(queries[:1])}, Token: b.token, Form: form,
		Record: func(r trainer.Trajectory) { b.mu.Lock(); b.records = append(b.records, r); b.mu.Unlock() }}
	s, err := serve.New(c)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s)
	t.Cleanup(func() { s.Close(); srv.Close() })
	b.url = srv.URL
	return b
}

// shimDir writes what a run in the profile's version would get.
func shimDir(t *testing.T, r ablation.Recipe, p Profile, url string) string {
	t.Helper()
	tools, err := json.Marshal(travel.ToolSchemas())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files, err := Shims(ShimSpec{Profile: p, Recipe: r, Env: native.EnvServer{URL: url, TokenEnv: "ALIDADE_ENV_TOKEN", Tools: tools}, Progress: filepath.Join(dir, "progress"), Task: "0"})
	if err != nil {
		t.Fatal(err)
	}
	files["progress"] = []byte("4 10\n")
	for name, src := range files {
		if err := os.WriteFile(filepath.Join(dir, name), src, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// standIns are the few names of verl that the generated Python imports, with
// the behaviour that the agent's loop relies on. scripts/verl-compose.sh has
// the real ones where torch is at hand.
var standIns = map[string]string{
	"verl/tools/base_tool.py": `
class BaseTool:
    def __init__(self, config, tool_schema):
        self.config, self.tool_schema, self.name = config, tool_schema, tool_schema["function"]["name"]
`,
	"verl/tools/schemas.py": "class ToolResponse:\n    def __init__(self, text=None):\n        self.text = text\n",
	"verl/experimental/reward_loop/reward_manager/dapo.py": `
class DAPORewardManager:
    async def run_single(self, data):
        return data.non_tensor_batch["extra_info"][0]
`,
	"verl/experimental/agent_loop/tool_agent_loop.py": `
class ToolAgentLoop:
    async def run(self, sampling_params, **kwargs):
        return kwargs["output"]
`,
	"verl/workers/rollout/tools/base_tool.py": "class BaseTool:\n    pass\n",
}

func writeStandIns(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, src := range standIns {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(src), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// runPython runs a script with the shims and verl on its path, and returns
// the JSON that it prints last.
func runPython(t *testing.T, b *sandbox, shims, verl, script string, to any) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 here")
	}
	cmd := exec.CommandContext(t.Context(), python, "-c", script)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+shims+":"+verl, "ALIDADE_ENV_URL="+b.url, "ALIDADE_ENV_TOKEN="+b.token, "PLAN="+b.plan, "PYTHONDONTWRITEBYTECODE=1")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	if err := json.Unmarshal([]byte(lastLine(string(out))), to); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
}

// scored is what compute_score returns.
type scored struct {
	Score      float64 `json:"score"`
	Acc        float64 `json:"acc"`
	Group      string  `json:"wb_group"`
	Episode    string  `json:"wb_episode"`
	Components string  `json:"wb_components"`
	Calls      float64 `json:"wb_tool_calls"`
	Tool       string  `json:"tool"`
	Error      string  `json:"error"`
}

// play calls two tools as verl's agent does, then the reward function.
const play = `
import asyncio, json, os, types
from alidade_tool import AlidadeTool
from alidade_reward import compute_score
schema = {"function": {"name": "SearchCity"}}
tool = AlidadeTool({"type": "native", "task_id": "0"}, schema)
agent = types.SimpleNamespace(extra_fields={}, request_id="0123456789abcdef", tools_kwargs={"SearchCity": {"create_kwargs": {"task_id": "0", "split": "train"}}})
async def calls():
    for state in ("Ohio", "Nevada"):
        answer, reward, metrics = await tool.execute("instance", {"state": state}, **EXTRA)
        yield answer if isinstance(answer, str) else answer.text
async def collect():
    return [text async for text in calls()]
EXTRA = {"agent_data": agent} if STATEFUL else {}
texts = asyncio.run(collect())
said = "".join('<tool_call>\n{"name": "SearchCity", "arguments": {"state": "%s"}}\n</tool_call>\nuser\n<tool_response>\n%s [{"day": 0}]\n</tool_response>\nassistant\n' % (s, t) for s, t in zip(("Ohio", "Nevada"), texts))
info = {"task_id": "0", "split": "train", **(agent.extra_fields if STATEFUL else {})}
out = compute_score("alidade/travel", said + os.environ["PLAN"], "hash", info)
out["tool"] = texts[0]
print(json.dumps(out))
`

func TestShimsPlayAnEpisode(t *testing.T) {
	verl := writeStandIns(t)
	r, _ := ablation.PresetNamed("star-3b")
	for _, p := range Profiles() {
		if p.Line == LineARPO {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			b := startSandbox(t, serve.FormNative)
			script := strings.ReplaceAll(play, "STATEFUL", map[bool]string{true: "True", false: "False"}[p.AgentData])
			var got scored
			runPython(t, b, shimDir(t, r, p, b.url), verl, script, &got)
			if got.Acc != 1 || got.Score <= 0 || got.Episode == "" || got.Group != "rl-5-0" || got.Calls != 2 || !strings.Contains(got.Components, "success") {
				t.Errorf("score %+v", got)
			}
			if len(b.records) != 1 {
				t.Fatalf("%d episodes were recorded, want one", len(b.records))
			}
			e := b.records[0]
			if e.ID != got.Episode || e.Step != 5 || e.ToolCalls != 2 || !e.Success || e.Phase != "rl" || len(e.Turns) != 3 || e.Turns[0].Observe.Text != got.Tool {
				t.Errorf("record %+v", e)
			}
		})
	}
}

// TestToolTextIsNoAnswer: what a tool said is never scored, though it holds a plan.
func TestToolTextIsNoAnswer(t *testing.T) {
	verl := writeStandIns(t)
	r, _ := ablation.PresetNamed("star-3b")
	b := startSandbox(t, serve.FormNative)
	script := `
import json, os
from alidade_reward import compute_score
text = "<tool_call>\n{\"name\": \"SearchCity\", \"arguments\": {\"state\": \"Ohio\"}}\n</tool_call>\nuser\n<tool_response>\n" + os.environ["PLAN"] + "\n</tool_response>\nassistant\nI give up."
print(json.dumps(compute_score(solution_str=text, extra_info={"task_id": "0", "split": "eval"})))`
	var got scored
	runPython(t, b, shimDir(t, r, profiles[Line06], b.url), verl, script, &got)
	if got.Score != 0 || got.Acc != 0 {
		t.Errorf("a plan in a tool's result was paid: %+v", got)
	}
	if e := b.records[0]; e.Phase != "eval" || e.Step != 5 {
		t.Errorf("record %+v", e)
	}
}

// TestLostEpisodeIsNoZero: an episode that the environment has lost stops the
// run; it does not become a reward of 0.
func TestLostEpisodeIsNoZero(t *testing.T) {
	verl := writeStandIns(t)
	r, _ := ablation.PresetNamed("star-3b")
	b := startSandbox(t, serve.FormNative)
	script := `
import json
from alidade_reward import compute_score
out = {}
for info in ({"wb_lost": "alidade environment: gone"}, {"wb_episode": "nope", "wb_group": "g"}):
    try:
        compute_score(solution_str="x", extra_info=info)
    except RuntimeError as e:
        out["error"] = out.get("error", "") + str(e) + ";"
print(json.dumps(out))`
	var got scored
	runPython(t, b, shimDir(t, r, profiles[Line08], b.url), verl, script, &got)
	if strings.Count(got.Error, "alidade environment") != 2 {
		t.Errorf("errors %q", got.Error)
	}
}

func TestManagerAndLoopShims(t *testing.T) {
	verl := writeStandIns(t)
	r, _ := ablation.PresetNamed("dapo")
	b := startSandbox(t, serve.FormNative)
	var manager map[string]any
	runPython(t, b, shimDir(t, r, profiles[Line09], b.url), verl, `
import asyncio, json, types
from alidade_reward import AlidadeRewardManager
data = types.SimpleNamespace(non_tensor_batch={"extra_info": [{"task_id": "0"}], "tool_extra_fields": [{"wb_episode": "e", "turn_scores": [1]}]})
print(json.dumps(asyncio.run(AlidadeRewardManager().run_single(data))))`, &manager)
	if manager["wb_episode"] != "e" || manager["turn_scores"] != nil {
		t.Errorf("the reward function is told %v", manager)
	}
	mask, _ := ablation.PresetNamed("star-3b")
	var masks [][]int
	runPython(t, b, shimDir(t, mask, profiles[Line08], b.url), verl, `
import asyncio, json, types
from alidade_loop import AlidadeAgentLoop
loop = AlidadeAgentLoop()
loop.response_length = 4
loop.tokenizer = types.SimpleNamespace(decode=lambda ids: "</tool_call><|im_end|>" if 9 in ids else "text")
def run(ids, turns):
    out = types.SimpleNamespace(response_ids=ids, response_mask=[1] * len(ids), num_turns=turns, extra_fields={})
    return asyncio.run(loop.run({}, output=out)).response_mask
print(json.dumps([run([1, 2], 2), run([1, 2, 3, 4], 2), run([1, 9], 4), run([1, 9], 120)]))`, &masks)
	want := [][]int{{1, 1}, {0, 0, 0, 0}, {0, 0}, {1, 1}}
	if a, b := mustJSON(t, masks), mustJSON(t, want); a != b {
		t.Errorf("masks %s, want %s: full, at the limit, a result that did not fit, out of turns", a, b)
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestARPOShim(t *testing.T) {
	verl := writeStandIns(t)
	r, _ := ablation.PresetNamed("arpo")
	b := startSandbox(t, serve.FormReact)
	var got []string
	runPython(t, b, shimDir(t, r, profiles[LineARPO], b.url), verl, `
import json
from alidade_arpo import AlidadeTool
tool = AlidadeTool()
print(json.dumps([tool.trigger_tag, tool.execute('{"name": "SearchCity", "arguments": {"state": "Ohio"}}', timeout=3), tool.execute("Ohio")]))`, &got)
	if len(got) != 3 || got[0] != "tool_call" || got[1] == "" || !strings.HasPrefix(got[2], "Error") {
		t.Errorf("tool answers %q", got)
	}
}

// TestShimFiles: each is short, has no template left, and the schemas are what
// verl's registry takes.
func TestShimFiles(t *testing.T) {
	for _, preset := range presets(t) {
		for _, p := range Profiles() {
			r := adapted(preset.Recipe, p)
			dir := shimDir(t, r, p, "http://127.0.0.1:1")
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				src, err := os.ReadFile(filepath.Join(dir, e.Name()))
				if err != nil {
					t.Fatal(err)
				}
				if lines := strings.Count(string(src), "\n"); strings.HasSuffix(e.Name(), ".py") && lines > 60 {
					t.Errorf("%s has %d lines", e.Name(), lines)
				}
				if i := strings.Index(string(src), "@"); i >= 0 && !strings.Contains(string(src[i:]), "@property") {
					t.Errorf("%s of %s: a name was not filled in: %.40s", e.Name(), p.Name, src[i:])
				}
			}
			if p.Line == LineARPO {
				continue
			}
			var tools struct {
				Tools []struct {
					ClassName string         `yaml:"class_name"`
					Config    map[string]any `yaml:"config"`
					Schema    struct {
						Type     string `yaml:"type"`
						Function struct {
							Name, Description string
							Parameters        struct {
								Type       string
								Properties map[string]struct{ Type string }
								Required   []string
							}
						}
					} `yaml:"tool_schema"`
				}
			}
			src, err := os.ReadFile(filepath.Join(dir, "tools.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal(src, &tools); err != nil {
				t.Fatal(err)
			}
			if len(tools.Tools) != 6 {
				t.Fatalf("%d tools", len(tools.Tools))
			}
			for _, x := range tools.Tools {
				f := x.Schema.Function
				if x.ClassName != "alidade_tool.AlidadeTool" || x.Config["type"] != "native" || f.Name == "" || f.Description == "" || len(f.Parameters.Properties) == 0 || f.Parameters.Required == nil {
					t.Errorf("tool %+v", x)
				}
			}
		}
	}
}
