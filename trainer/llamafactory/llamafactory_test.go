package llamafactory

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"alidade/ablation"
	"alidade/trainer"
	"alidade/trainer/native"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write golden files")

const traceTools = `{"task_id":"h1","messages":[{"role":"system","content":"Plan."},{"role":"user","content":"Trip."},` +
	`{"role":"assistant","content":"<think>A city.</think>","tool_calls":[{"id":"c0","type":"function","function":{"name":"SearchCity","arguments":"{\"state\": \"Ohio\"}"}}]},` +
	`{"role":"tool","content":"Akron\n","tool_call_id":"c0"},{"role":"assistant","content":"<think>Done.</think>\n[]"}],"success":true}`

const traceReact = `{"task_id":"h2","messages":[{"role":"system","content":"Plan."},{"role":"user","content":"Trip."},` +
	`{"role":"assistant","content":"<think>x</think>\n<tool_call>{}</tool_call>"},{"role":"user","content":"<tool_response>\ny\n</tool_response>"},{"role":"assistant","content":"<answer>[]</answer>"}],"success":true}`

func TestShareGPT(t *testing.T) {
	got, err := ShareGPT([]byte(traceTools))
	if err != nil {
		t.Fatal(err)
	}
	want := shareRow{System: "Plan.", TaskID: "h1", Conversations: []shareTurn{
		{"human", "Trip."},
		{"gpt", "<think>A city.</think>\n<tool_call>\n{\"name\": \"SearchCity\", \"arguments\": {\"state\": \"Ohio\"}}\n</tool_call>"},
		{"human", "<tool_response>\nAkron\n</tool_response>"},
		{"gpt", "<think>Done.</think>\n[]"},
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got, err := ShareGPT([]byte(traceReact)); err != nil || len(got.Conversations) != 4 || got.Conversations[2].Value != "<tool_response>\ny\n</tool_response>" {
		t.Errorf("text form: %+v, %v", got, err)
	}
	for _, tc := range []struct{ name, line, says string }{
		{"no JSON", "{", "unexpected end"},
		{"a role", `{"messages":[{"role":"developer"}]}`, "developer"},
		{"ends with the user", `{"messages":[{"role":"user","content":"x"}]}`, "end with the assistant"},
		{"begins with the assistant", `{"messages":[{"role":"assistant","content":"x"},{"role":"user","content":"y"}]}`, "begin with a user"},
		{"late system", `{"messages":[{"role":"user","content":"x"},{"role":"system","content":"y"}]}`, "message 2"},
		{"broken arguments", `{"messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"function":{"name":"F","arguments":"{"}}]}]}`, "F are not JSON"},
	} {
		if _, err := ShareGPT([]byte(tc.line)); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

func jobFor(t *testing.T, preset string) native.Job {
	t.Helper()
	r, ok := ablation.PresetNamed(preset)
	if !ok {
		t.Fatalf("no preset %s", preset)
	}
	dir := t.TempDir()
	traces := filepath.Join(dir, "traces.jsonl")
	if err := os.WriteFile(traces, []byte(traceReact+"\n"+traceReact+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return native.Job{Spec: trainer.Spec{Run: 3, Attempt: 1, Seed: 7, Recipe: r, Threads: 4}, Stage: native.StageSFT, Versions: versions, Python: "/venv/bin/python",
		Machine: eight, Model: r.Native.Model, Dir: dir, Out: filepath.Join(dir, "out"), Data: native.Data{Traces: traces}, Env: native.EnvServer{Tools: []byte("[]")}}
}

var (
	versions = native.Versions{"llamafactory": "0.9.5", "transformers": "4.57.1", "deepspeed": "0.18"}
	eight    = native.Machine{DeviceGiB: []float64{79, 79, 79, 79, 79, 79, 79, 79}}
)

// TestPresetConfigurations pins what each preset becomes.
func TestPresetConfigurations(t *testing.T) {
	found := 0
	for _, p := range ablation.Presets() {
		if p.Recipe.Trainer.Kind != "llamafactory" {
			continue
		}
		found++
		j := jobFor(t, p.Name)
		plan, err := (Adapter{}).Plan(j)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.ReplaceAll(strings.Join(plan.Argv, " ")+"\n"+strings.Join(plan.Env, " ")+"\n\n"+string(plan.Files[configFile])+"\n"+string(plan.Files["dataset_info.json"])+"\n"+string(plan.Files["deepspeed.json"]), j.Dir, "/run")
		path := filepath.Join("testdata", p.Name+".txt")
		if *update {
			if err := os.MkdirAll("testdata", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), got); d != "" {
			t.Errorf("%s (-want +got):\n%s", path, d)
		}
		var config map[string]any
		if err := yaml.Unmarshal(plan.Files[configFile], &config); err != nil {
			t.Fatal(err)
		}
		if _, ok := config["learning_rate"].(float64); !ok {
			t.Errorf("learning_rate is %T", config["learning_rate"])
		}
		for _, v := range (Adapter{}).Check(p.Recipe, versions, eight) {
			if v.Level == native.Refuse {
				t.Errorf("%s: %s", p.Name, v)
			}
		}
	}
	if found != 3 {
		t.Errorf("%d presets", found)
	}
}

func TestPlan(t *testing.T) {
	j := jobFor(t, "star-sft-3b")
	for _, stage := range []string{native.StageRL, native.StageSmoke, native.StageCompose, native.StageEval} {
		j.Stage = stage
		if plan, err := (Adapter{}).Plan(j); err != nil || len(plan.Argv) != 0 {
			t.Errorf("%s: %v, %v", stage, plan.Argv, err)
		}
	}
	j.Stage = native.StageSFT
	plan, err := (Adapter{}).Plan(j)
	if err != nil {
		t.Fatal(err)
	}
	var row shareRow
	line, _, _ := strings.Cut(string(plan.Files["traces.jsonl"]), "\n")
	if err := json.Unmarshal([]byte(line), &row); err != nil || len(row.Conversations) != 4 {
		t.Errorf("first trace %s: %v", line, err)
	}
	if ok, reason := plan.Finished(10, 0); ok || !strings.Contains(reason, "no model") {
		t.Errorf("without a model: %v, %q", ok, reason)
	}
	if err := os.MkdirAll(j.Out, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(j.Out, "config.json"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if ok, _ := plan.Finished(10, 0); !ok {
		t.Error("a model is there")
	}
	if ok, _ := plan.Finished(10, 1); ok {
		t.Error("exit code 1 is an end")
	}
	j.Versions = native.Versions{"llamafactory": "0.9.5", "transformers": "5.6.0"}
	plan, err = (Adapter{}).Plan(j)
	if err != nil || !strings.Contains(string(plan.Files[configFile]), "warmup_steps: 0.1") {
		t.Errorf("transformers 5: %v\n%s", err, plan.Files[configFile])
	}
}

func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*ablation.Recipe)
		found  native.Versions
		m      native.Machine
		level  string
		code   string
	}{
		{name: "steps", change: func(r *ablation.Recipe) { r.Budget.Steps = 5 }, level: native.Refuse, code: "no-rl"},
		{name: "no traces", change: func(r *ablation.Recipe) { r.SFT.Traces = 0 }, level: native.Refuse, code: "no-traces"},
		{name: "tiny", change: func(r *ablation.Recipe) { r.Native.Model = "tiny" }, level: native.Refuse, code: "model"},
		{name: "unknown template", change: func(r *ablation.Recipe) { r.Native.Model = "org/unheard-of" }, level: native.Refuse, code: "template"},
		{name: "batch", change: func(r *ablation.Recipe) { r.SFT.Batch = 12 }, level: native.Refuse, code: "batch-sizes"},
		{name: "devices", m: native.Machine{DeviceGiB: []float64{79}}, level: native.Refuse, code: "devices"},
		{name: "no GPU", m: native.Machine{HostGiB: 1}, level: native.Warn, code: "devices"},
		{name: "no deepspeed", found: native.Versions{"llamafactory": "0.9.5"}, level: native.Refuse, code: "deepspeed"},
		{name: "version", change: func(r *ablation.Recipe) { r.Native.Version = "0.9.3" }, level: native.Refuse, code: "version"},
		{name: "lora", change: func(r *ablation.Recipe) { r.Native.LoraRank = 16 }, level: native.Warn, code: "lora"},
		{name: "conflict", change: func(r *ablation.Recipe) { r.Native.Overrides = map[string]string{"learning_rate": "1"} }, level: native.Refuse, code: "override-conflict"},
	} {
		r, _ := ablation.PresetNamed("star-sft-3b")
		if tc.change != nil {
			tc.change(&r)
		}
		found, m := tc.found, tc.m
		if found == nil {
			found = versions
		}
		if m.DeviceGiB == nil && m.HostGiB == 0 {
			m = eight
		}
		got := (Adapter{}).Check(r, found, m)
		if !slices.ContainsFunc(got, func(v native.Verdict) bool { return v.Level == tc.level && v.Code == tc.code }) {
			t.Errorf("%s: no %s %s among %v", tc.name, tc.level, tc.code, got)
		}
	}
}

func TestLogSource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trainer_log.jsonl")
	text := `{"current_steps": 1, "total_steps": 150, "loss": 0.91, "lr": 1.2e-06, "epoch": 0.03, "percentage": 0.67, "elapsed_time": "0:00:12", "remaining_time": "0:29:48", "throughput": 5120.5}` + "\nnot JSON\n" +
		`{"current_steps": 2, "total_steps": 150, "loss": 0.9, "epoch": 0.05}` + "\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var got []native.Reading
	if err := LogSource(path).Poll(true, func(r native.Reading) { got = append(got, r) }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 4 || got[0].Total != 150 || got[1].Step != 1 || got[1].Values["loss"] != 0.91 || got[1].Values["throughput"] != 5120.5 || got[2].Bad != 1 || got[3].Step != 2 {
		t.Errorf("readings %+v", got)
	}
	if _, ok := got[1].Values["percentage"]; ok {
		t.Error("the place in the run is taken for a metric")
	}
}

func FuzzParseLog(f *testing.F) {
	f.Add([]byte(`{"current_steps": 1, "total_steps": 150, "loss": 0.91}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if _, _, values, err := ParseLog(line); err == nil && values == nil {
			t.Error("no values and no error")
		}
	})
}

func FuzzShareGPT(f *testing.F) {
	f.Add([]byte(traceTools))
	f.Add([]byte(traceReact))
	f.Fuzz(func(t *testing.T, line []byte) {
		row, err := ShareGPT(line)
		if err != nil {
			return
		}
		for i, turn := range row.Conversations {
			if want := []string{"human", "gpt"}[i%2]; turn.From != want {
				t.Errorf("turn %d is from %s", i, turn.From)
			}
		}
	})
}
