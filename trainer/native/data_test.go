package native

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"alidade/ablation"
	"alidade/sandbox/travel"
)

// tinyRecipe is a small study's recipe for the kind.
func tinyRecipe(kind string) ablation.Recipe {
	r, _ := ablation.PresetNamed("quick")
	r.Trainer.Kind = kind
	r.Native.Model = "tiny"
	r.Environment.World, r.Environment.Cities, r.Environment.Days = "small", 12, 3
	r.Environment.BudgetFactor, r.Environment.MaxTurns, r.Environment.MaxTokens = 1, 12, 8192
	r.Data.Prompts, r.Evaluation.Queries, r.SFT.Traces = 8, 4, 6
	r.SFT.Noise = 0
	r.Reward.Kind, r.Reward.Weights = "WEIGHTED", map[string]string{"delivery": "1"}
	return r
}

func TestDataFiles(t *testing.T) {
	for _, form := range []string{FormReact, FormTools} {
		r := tinyRecipe("trl")
		r.Environment.Form = form
		s, err := newTaskSet(t.Context(), r, "")
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if _, err := s.write(dir, form); err != nil {
			t.Fatal(err)
		}
		if len(s.train) != 8 || len(s.eval) != 4 || len(s.traces) == 0 {
			t.Fatalf("%d prompts, %d in the panel, %d traces", len(s.train), len(s.eval), len(s.traces))
		}
		seen := map[string]string{}
		for _, name := range []string{trainFile, evalFile} {
			for _, line := range readLines[taskLine](t, filepath.Join(dir, name)) {
				if other, twice := seen[line.QueryHash]; twice {
					t.Errorf("%s: query %s stands in %s too", name, line.QueryHash, other)
				}
				seen[line.QueryHash] = name
				if len(line.Prompt) != 2 || line.Prompt[0].Content != systemPrompt(form) {
					t.Errorf("%s: prompt of %d messages", name, len(line.Prompt))
				}
			}
		}
		for _, line := range readLines[traceLine](t, filepath.Join(dir, tracesFile)) {
			if line.TaskID == "" || seen[line.TaskID] != "" {
				t.Errorf("trace of %q, which is in %s", line.TaskID, seen[line.TaskID])
			}
			checkTrace(t, form, line.Messages)
		}
	}
}

// checkTrace holds a conversation against the rules of its form.
func checkTrace(t *testing.T, form string, messages []travel.ChatMessage) {
	t.Helper()
	calls := 0
	for i, m := range messages {
		switch {
		case form == FormReact && (m.Role == "tool" || len(m.ToolCalls) > 0):
			t.Errorf("message %d of the text form is %s with %d calls", i, m.Role, len(m.ToolCalls))
		case form == FormTools && strings.Contains(m.Content, "<tool_"):
			t.Errorf("message %d of the native form has tags: %s", i, m.Content)
		case form == FormTools && m.Role == "assistant":
			if problem := travel.CheckMessage(m); problem != "" {
				t.Errorf("message %d: %s", i, problem)
			}
			calls += len(m.ToolCalls)
		case m.Role == "tool":
			calls--
			if prev := messages[i-1]; len(prev.ToolCalls) != 1 || prev.ToolCalls[0].ID != m.ToolCallID {
				t.Errorf("message %d answers %s", i, m.ToolCallID)
			}
		}
	}
	if calls != 0 {
		t.Errorf("%d calls have no answer", calls)
	}
}

func readLines[T any](t *testing.T, path string) (out []T) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	in := bufio.NewScanner(f)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var v T
		if err := json.Unmarshal(in.Bytes(), &v); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		out = append(out, v)
	}
	return out
}

// TestPanelStays: more prompts or traces leave the panel as it is.
func TestPanelStays(t *testing.T) {
	r := tinyRecipe("trl")
	a, err := newTaskSet(t.Context(), r, "")
	if err != nil {
		t.Fatal(err)
	}
	r.Data.Prompts, r.Data.Mix, r.SFT.Traces = 16, "1:0:0", 3
	b, err := newTaskSet(t.Context(), r, "")
	if err != nil {
		t.Fatal(err)
	}
	if a.panel != b.panel {
		t.Errorf("panel %s became %s", a.panel, b.panel)
	}
}
