package rllm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
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
	"alidade/trainer"
	"alidade/trainer/endpoint"
	"alidade/trainer/endpoint/endpointtest"
)

// gateway is a server whose episodes a real small agent plays.
type gateway struct {
	*Server
	*client
	model   *endpointtest.Server
	queries []travel.Query

	mu      sync.Mutex
	records []trainer.Trajectory
}

func newGateway(t *testing.T, form string, change func(*ablation.Recipe)) *gateway {
	t.Helper()
	r, _ := ablation.PresetNamed("endpoint")
	r.Environment.Cities, r.Environment.Days, r.Evaluation.Queries, r.Environment.Form = 20, 3, 6, form
	r.Reward.Kind = "SUCCESS"
	if change != nil {
		change(&r)
	}
	world, queries, err := endpoint.Queries(t.Context(), r, "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := serve.ConfigOf(r, 7)
	if err != nil {
		t.Fatal(err)
	}
	c.World, c.Tasks = world.World, serve.Tasks{"train": serve.TasksOf(queries[:4]), "eval": serve.TasksOf(queries[4:])}
	env, err := serve.New(c)
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{queries: queries, model: endpointtest.New(t, world, queries, "vllm", form == "react")}
	rows := []Row{{"0", "eval", queries[4].Hash(), queries[4].Level}, {"1", "eval", queries[5].Hash(), queries[5].Level}}
	g.Server, g.client = newClient(t, Config{Recipe: r, Steps: 10, Estimator: "grpo", ByStd: true, Eval: rows, Open: env.Open, Record: func(x trainer.Trajectory) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.records = append(g.records, x)
	}})
	return g
}

func (g *gateway) ask(task, split, session, more string) string {
	return fmt.Sprintf(`{"task":{"task_id":%q,"split":%q},"base_url":%q,"model":"m","session_uid":%q%s}`, task, split, g.model.URL+"/sessions/"+session, session, more)
}

func (g *gateway) last() trainer.Trajectory {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.records[len(g.records)-1]
}

// TestPlay plays episodes for a trainer in both forms and tells them apart by
// step, group and rollout.
func TestPlay(t *testing.T) {
	for _, form := range []string{"react", "tools"} {
		t.Run(form, func(t *testing.T) {
			g := newGateway(t, form, nil)
			id := openSession(g.client)
			out := g.ok(PlayPath, g.ask("1", "train", "u1:0", ""))
			if out["reward"] != 1.0 || out["is_correct"] != true || out["termination_reason"] != "env_done" || out["metrics"].(map[string]any)["delivery"] != 1.0 {
				t.Errorf("query 1, which the agent solves: %v", out)
			}
			x := g.last()
			if x.Step != 1 || x.Group != "rl-1-u1" || x.Rollout != 0 || x.ID != "u1:0" || x.Phase != "rl" || len(x.Turns) < 3 || x.Turns[0].Call == nil || x.Turns[0].Observe == nil || x.Turns[0].Think == "" || len(x.Plan) == 0 {
				t.Errorf("recorded as step %d group %q rollout %d id %q with %d turns", x.Step, x.Group, x.Rollout, x.ID, len(x.Turns))
			}
			out = g.ok(PlayPath, g.ask("0", "train", "u1:3", ""))
			if out["reward"] != 0.0 || out["is_correct"] != false {
				t.Errorf("query 0, which the agent does not solve: %v", out)
			}
			g.ok("/api/metrics", fmt.Sprintf(`{"session_id":%q,"step":1,"data":{"a":1}}`, id))
			g.ok(PlayPath, g.ask("0", "eval", "v1:0", ""))
			if x := g.last(); x.Phase != "eval" || x.Step != 1 {
				t.Errorf("a rollout for validation is recorded as %s at step %d", x.Phase, x.Step)
			}
			g.ok(PlayPath, g.ask("2", "train", "u2:1", `,"validate":false`))
			if x := g.last(); x.Step != 2 || x.Group != "rl-2-u2" || x.Rollout != 1 {
				t.Errorf("after step 1: step %d group %q rollout %d", x.Step, x.Group, x.Rollout)
			}
			// The trainer lost it and asks once more.
			g.ok(PlayPath, g.ask("2", "train", "u2:1", ""))
			if x := g.last(); x.ID != "u2:1#2" || x.Group == "rl-2-u2" {
				t.Errorf("played again: %q in %q", x.ID, x.Group)
			}
		})
	}
}

// TestPlayedEpisodesGetTheirAdvantage joins what was played here with what
// the logger says of it.
func TestPlayedEpisodesGetTheirAdvantage(t *testing.T) {
	g := newGateway(t, "react", nil)
	id := openSession(g.client)
	for k := range 2 {
		g.ok(PlayPath, g.ask(fmt.Sprint(k), "train", fmt.Sprintf("u:%d", k), ""))
	}
	g.ok("/api/episodes/batch", fmt.Sprintf(`{"session_id":%q,"episodes":[%s,%s]}`, id, episode(id, 1, "u:0", 0, "0"), episode(id, 1, "u:1", 1, "1")))
	g.ok("/api/trajectory-groups/batch", fmt.Sprintf(`{"session_id":%q,"groups":[{"step":1,"group_id":"u:travel","num_trajectories":2,"avg_reward":0.5,"metadata":[{"episode_id":"u:0"},{"episode_id":"u:1"}]}]}`, id))
	got := map[string]*trainer.Trajectory{}
	for _, r := range readings(t, g.Server, false) {
		if r.Trajectory != nil {
			got[r.Trajectory.ID] = r.Trajectory
		}
	}
	x := got["u:1"]
	if len(got) != 2 || x == nil || x.Query.Text != "" || x.Advantage == nil || x.Advantage.Value < 0.99 || x.Labels["trainer reward"] != "1" {
		t.Errorf("told of the trainer: %+v", got)
	}
}

// TestPlayAfterResume counts on from the checkpoint's step.
func TestPlayAfterResume(t *testing.T) {
	g := newGateway(t, "react", nil)
	cfg := g.cfg
	cfg.Done = stepOf("/x/checkpoints/global_step_6")
	var got trainer.Trajectory
	cfg.Record = func(x trainer.Trajectory) { got = x }
	_, c := newClient(t, cfg)
	for split, want := range map[string]int64{"train": 7, "eval": 6} {
		if split == "eval" {
			_, c = newClient(t, cfg) // before any rollout of training
		}
		c.ok(PlayPath, g.ask("0", split, "u:0", ""))
		if got.Step != want {
			t.Errorf("a rollout of %s after step 6 is for step %d, want %d", split, got.Step, want)
		}
	}
}

// TestPlayInfrastructure answers a model that is away with 503 and no reward.
func TestPlayInfrastructure(t *testing.T) {
	g := newGateway(t, "react", nil)
	g.player = endpoint.NewPlayer(g.cfg.Recipe, ablation.Endpoint{Temperature: -1, TimeoutS: 2})
	g.model.Trouble = func(_ int, _ *http.Request, w http.ResponseWriter, _ string, _ int) bool {
		http.Error(w, "engine died", http.StatusInternalServerError)
		return true
	}
	code, out := g.post(PlayPath, g.ask("1", "train", "u:0", ""))
	if code != http.StatusServiceUnavailable || out["reward"] != nil || len(g.records) != 0 {
		t.Errorf("answered %d %v with %d records", code, out, len(g.records))
	}
	if code, _ := g.post(PlayPath, g.ask("99", "train", "u:1", "")); code != http.StatusUnprocessableEntity {
		t.Errorf("a task that is not there: %d", code)
	}
}

// TestUniAgent posts the reward to the session's own address.
func TestUniAgent(t *testing.T) {
	g := newGateway(t, "react", nil)
	var got map[string]map[string]any
	reward := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewDecoder(r.Body).Decode(&got)
	}))
	defer reward.Close()
	session := "session-sample-4-rollout-2-abc"
	g.ok(PlayPath, g.ask("1", "train", session, fmt.Sprintf(`,"reward_info_url":%q,"sample_index":4`, reward.URL+"/reward")))
	info := got["reward_info"]
	if info["reward"] != 1.0 || info["acc"] != 1.0 || info["finished"] != true {
		t.Errorf("posted %v", got)
	}
	if x := g.last(); x.Group != "rl-1-sample-4" || x.Rollout != 2 {
		t.Errorf("group %q rollout %d", x.Group, x.Rollout)
	}
}

// TestOverlong charges what rLLM cannot.
func TestOverlong(t *testing.T) {
	path := func(tokens int, over bool) *trainer.Trajectory {
		return &trainer.Trajectory{Reward: 0.8, Tokens: tokens, Overlong: over, Labels: map[string]string{endpoint.LabelTask: "100"}}
	}
	shape := Overlong{How: "shape", Limit: 1000, Buffer: 200, Factor: 1}
	for _, tt := range []struct {
		o    Overlong
		t    *trainer.Trajectory
		want float64
	}{
		{shape, path(900, false), 0}, {shape, path(1000, false), -0.5}, {shape, path(1100, true), -1}, {shape, path(1300, true), -2},
		{Overlong{How: "zero"}, path(10, true), -0.8}, {Overlong{How: "zero"}, path(10, false), 0}, {Overlong{How: "mask"}, path(5000, true), 0},
	} {
		if got := tt.o.penalty(tt.t); got != tt.want {
			t.Errorf("%+v at %d tokens: %v, want %v", tt.o, tt.t.Tokens, got, tt.want)
		}
	}
}

// stubs stand for the packages that the generated scripts import, with the
// parts of rLLM's flow engine that call them.
var stubs = map[string]string{
	"hydra.py": `
class _D(dict):
    pass
def main(**kw):
    def wrap(f):
        return lambda: f({})
    return wrap
`,
	"rllm/__init__.py": "", "rllm/data/__init__.py": "", "rllm/eval/__init__.py": "", "rllm/workflows/__init__.py": "", "rllm/experimental/__init__.py": "",
	"rllm/data/dataset.py": `
import json
class Dataset:
    @classmethod
    def load_data(cls, path):
        return [json.loads(l) for l in open(path)]
`,
	"rllm/eval/types.py": `
from dataclasses import dataclass, field
@dataclass
class Signal:
    name: str
    value: float
@dataclass
class EvalOutput:
    reward: float
    is_correct: bool
    signals: list = field(default_factory=list)
    metadata: dict = field(default_factory=dict)
`,
	"rllm/types.py": `
from dataclasses import dataclass, field
@dataclass
class Trajectory:
    name: str
@dataclass
class Episode:
    trajectories: list
    artifacts: dict
    termination_reason: object = None
`,
	"rllm/workflows/workflow.py": `
from enum import Enum
class TerminationReason(Enum):
    MAX_TURNS_EXCEEDED = "max_turns_exceeded"
    MAX_RESPONSE_LENGTH_EXCEEDED = "max_response_length_exceeded"
    ENV_DONE = "env_done"
`,
	"rllm/experimental/unified_trainer.py": `
import os
from types import SimpleNamespace as N
class AgentTrainer:
    def __init__(self, backend, agent_flow, evaluator, config, train_dataset, val_dataset):
        self.flow, self.evaluator, self.data = agent_flow, evaluator, train_dataset + val_dataset
    def train(self):
        for i, row in enumerate(self.data):
            uid = f"u{i}:0"
            task = N(id=uid, metadata=row)
            e = self.flow.run(task, N(base_url=os.environ["GATEWAY"] + "/sessions/" + uid, model="m", session_uid=uid))
            o = self.evaluator.evaluate(row, e)
            print("OUT", o.reward, o.is_correct, e.termination_reason.value, len(o.signals))
`,
}

// TestGeneratedFlow runs the generated train.py in Python, with stubs in place
// of rLLM, against this server and a model.
func TestGeneratedFlow(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 to run the generated script")
	}
	g := newGateway(t, "react", nil)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, text := range stubs {
		write(name, text)
	}
	train := write("train set.jsonl", `{"task_id":"0","split":"train"}`+"\n"+`{"task_id":"1","split":"train"}`+"\n")
	eval := write("eval.jsonl", `{"task_id":"0","split":"eval"}`+"\n")
	write("train.py", string(trainScript(train, eval)))
	cmd := exec.CommandContext(t.Context(), python, "-u", "train.py")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PYTHONPATH="+dir, URLEnv+"="+g.client.url, KeyEnv+"="+secret, "GATEWAY="+g.model.URL)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !bytes.Contains(out, []byte("OUT 0.0 False env_done")) && !bytes.Contains(out, []byte("OUT 0 False env_done")) || strings.Count(string(out), "OUT 1") != 2 {
		t.Errorf("train.py printed\n%s", out)
	}
	if len(g.records) != 3 {
		t.Errorf("%d episodes were recorded, want 3", len(g.records))
	}

	write("alidade_runner.py", string(UniAgentRunner()))
	write("once.py", `
import asyncio, os
from types import SimpleNamespace as N
import alidade_runner
s = N(session_id="session-sample-0-rollout-1-ff", base_url=os.environ["GATEWAY"] + "/v1", reward_info_url=None)
print(asyncio.run(alidade_runner.run(session=s, raw_prompt=[], tools_kwargs={"task": {"task_id": "1", "split": "train"}}, sample_index=0, extra=1))["reward"])
`)
	cmd = exec.CommandContext(t.Context(), python, "once.py")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), URLEnv+"="+g.client.url, KeyEnv+"="+secret, "GATEWAY="+g.model.URL)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "1") {
		t.Errorf("the Uni-Agent runner: %v\n%s", err, out)
	}
}

// TestShimsAreSmall keeps the generated scripts as small as they were meant.
func TestShimsAreSmall(t *testing.T) {
	for name, text := range map[string][]byte{"train.py": trainScript("/a", "/b"), "uniagent.py": UniAgentRunner()} {
		if n := bytes.Count(text, []byte("\n")); n > 40 {
			t.Errorf("%s has %d lines, at most 40 are wanted", name, n)
		}
	}
}
