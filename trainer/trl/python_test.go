package trl

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"alidade/sandbox/serve"
	"alidade/sandbox/travel"
	"alidade/sandbox/travel/synth"
	"alidade/trainer"
)

// TestEnvironmentClient plays episodes with the script's environments against
// a real server: at the same time, with one that is lost on the way.
func TestEnvironmentClient(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	url, recorded := startServer(t)
	tools := filepath.Join(t.TempDir(), "tools.json")
	src, err := json.Marshal(travel.ToolSchemas())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tools, src, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "testdata/play.py", "python", url, tools)
	cmd.Env = append(os.Environ(), "TOKEN=secret", "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Tools      []string
		Documented bool
		Texts      []string
		Unknown    string
		Rewards    []*float64
		Spare      *float64
		Failed     string
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if len(got.Tools) != 6 || !got.Documented {
		t.Errorf("tools that TRL would see: %v, documented %v", got.Tools, got.Documented)
	}
	for i, x := range got.Texts {
		if x == "" || x != got.Texts[0] {
			t.Errorf("rollout %d was answered %q", i, x)
		}
	}
	if got.Unknown == "" || got.Spare != nil {
		t.Errorf("an empty search %q, a spare rollout's reward %v", got.Unknown, got.Spare)
	}
	for i, r := range got.Rewards {
		switch {
		case i == 2: // lost: it has no reward, which is no 0
			if r != nil || got.Failed == "" {
				t.Errorf("the lost rollout has the reward %v, why %q", r, got.Failed)
			}
		case r == nil:
			t.Errorf("rollout %d has no reward", i)
		case i == 1 && *r != 0, i == 3 && *r != 0.75, i != 1 && i != 3 && *r != 1:
			t.Errorf("rollout %d has the reward %v", i, *r)
		}
	}
	list := recorded()
	if len(list) != 8 {
		t.Fatalf("%d episodes recorded", len(list))
	}
	seen := map[int]bool{}
	for _, x := range list {
		seen[x.Rollout] = true
		if x.Group != "rl-1-0" || x.Step != 1 || x.Phase != "rl" {
			t.Errorf("recorded as %s of step %d in phase %s", x.Group, x.Step, x.Phase)
		}
	}
	if len(seen) != 8 {
		t.Errorf("rollouts %v", seen)
	}
}

// startServer serves one task that pays for a delivered plan.
func startServer(t *testing.T) (url string, recorded func() []trainer.Trajectory) {
	t.Helper()
	w, _, err := synth.Open(synth.Spec{Kind: synth.Generated, Cities: 12, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	qs, _, _, err := w.Queries(t.Context(), synth.Options{N: 1, Mix: [3]int{1, 0, 0}, Days: 3, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var list []trainer.Trajectory
	s, err := serve.New(serve.Config{World: w.World, Tasks: serve.Tasks{"train": serve.TasksOf(qs)}, Token: "secret",
		Reward: travel.Reward{Kind: travel.RewardWeighted, Weights: map[string]float64{"delivery": 1}},
		Record: func(x trainer.Trajectory) { mu.Lock(); list = append(list, x); mu.Unlock() }})
	if err != nil {
		t.Fatal(err)
	}
	l, err := serve.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String(), func() []trainer.Trajectory { mu.Lock(); defer mu.Unlock(); return list }
}

// TestDialogue: what SFT learns from is, token by token, what the loop puts
// together turn by turn, in both forms; it needs an environment with TRL.
func TestDialogue(t *testing.T) {
	data := os.Getenv("ALIDADE_TRL_DATA")
	if data == "" {
		t.Skip("needs TRL: `make test-trl` runs it")
	}
	python, err := filepath.Abs(filepath.Join(data, "trainers", "trl", "bin", "python"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "testdata/dialogue.py", "python", t.TempDir())
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "TOKENIZERS_PARALLELISM=false")
	text, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(text), "all well") {
		t.Errorf("%v: %s", err, text)
	}
}
