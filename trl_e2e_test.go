package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/server"
	"alidade/store"
	"alidade/trainer"
)

// trlBudget bounds each wait of the test: imports alone take minutes on a busy
// machine.
const trlBudget = 40 * time.Minute

// trlTest is a server of its own with one study of the real TRL.
type trlTest struct {
	t    *testing.T
	srv  *server.Server
	api  *client
	data string
	run  ablation.RunID
}

// TestTRL trains the tiny model with the real TRL through the server, the
// runner and the shim: SFT, a smoke run, GRPO on the travel sandbox; stops it,
// resumes it, and reports. `make test-trl` installs TRL and runs it.
func TestTRL(t *testing.T) {
	installed, bin := os.Getenv("ALIDADE_TRL_DATA"), os.Getenv("ALIDADE_BIN")
	if installed == "" || bin == "" {
		t.Skip("real TRL: `make test-trl` installs it and runs this")
	}
	x := startTRL(t, installed, bin)
	x.waitStep(7)
	x.live()
	x.stopAndResume()
	last := x.wait("succeeded", func(r ablation.Run) bool { return r.State == ablation.Succeeded })
	if last.Step != last.TotalSteps || last.Attempt != 2 {
		t.Errorf("ended at step %d of %d in attempt %d", last.Step, last.TotalSteps, last.Attempt)
	}
	x.stored()
	x.moved()
	dir := t.TempDir()
	if err := writeReport(t.Context(), os.Stdout, x.data, 1, dir); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "report.html")); err != nil || !strings.Contains(string(text), "trl-tiny") {
		t.Errorf("report: %d bytes, %v", len(text), err)
	}
}

func startTRL(t *testing.T, installed, bin string) *trlTest {
	t.Helper()
	data := t.TempDir()
	venv, err := filepath.Abs(filepath.Join(installed, "trainers", "trl"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(data, "trainers"), 0o755), os.Symlink(venv, filepath.Join(data, "trainers", "trl"))); err != nil {
		t.Fatal(err)
	}
	srv, err := server.Open(t.Context(), server.Config{Data: data, Addr: "127.0.0.1:0", Exe: bin, Devices: "cpu:1", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := errors.Join(srv.Runner().StopAll(ctx), srv.Close(ctx)); err != nil {
			t.Error(err)
		}
	})
	source, err := os.ReadFile("examples/trl-tiny.yaml")
	if err != nil {
		t.Fatal(err)
	}
	x := &trlTest{t: t, srv: srv, api: newClient(srv.URL(), srv.Token()), data: data}
	l, err := x.api.launch(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	x.run = l.Runs[0].ID
	return x
}

// wait waits until the run is as wanted; one that failed fails the test.
func (x *trlTest) wait(what string, ok func(ablation.Run) bool) ablation.Run {
	x.t.Helper()
	for end := time.Now().Add(trlBudget); ; {
		r, err := x.srv.Store().Run(x.t.Context(), x.run)
		switch {
		case err != nil:
			x.t.Fatal(err)
		case ok(r):
			return r
		case r.State == ablation.Failed || r.State == ablation.Lost:
			x.t.Fatalf("the run is %s: %s\n%s", r.State, r.Cause, x.logs(r.Attempt))
		case time.Now().After(end):
			x.t.Fatalf("waited %v for %s; the run is %s in phase %s at step %d\n%s", trlBudget, what, r.State, r.Phase, r.Step, x.logs(r.Attempt))
		}
		time.Sleep(time.Second)
	}
}

func (x *trlTest) logs(attempt int) string {
	text, err := os.ReadFile(filepath.Join(x.srv.Store().AttemptDir(x.run, attempt), "stderr.log"))
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}

func (x *trlTest) waitStep(n int64) {
	x.wait(fmt.Sprintf("step %d", n), func(r ablation.Run) bool { return r.Step >= n })
}

// live looks at what is in the store while the trainer runs.
func (x *trlTest) live() {
	c, err := x.srv.Store().Counts(x.t.Context(), x.run)
	if err != nil {
		x.t.Fatal(err)
	}
	if c.Trajectories == 0 || c.Malformed > 0 || c.Unknown > 0 {
		x.t.Errorf("while it runs: %+v", c)
	}
	if n := len(x.series("reward/mean")); n < 7 {
		x.t.Errorf("while it runs: %d points of reward/mean", n)
	}
}

func (x *trlTest) series(metric string) []ablation.Point {
	x.t.Helper()
	s, err := x.srv.Store().Series(x.t.Context(), store.SeriesQuery{Runs: []ablation.RunID{x.run}, Metrics: []string{metric}})
	if err != nil || len(s) != 1 {
		x.t.Fatalf("series %s: %d, %v", metric, len(s), err)
	}
	return s[0].Points
}

func (x *trlTest) act(what string) {
	x.t.Helper()
	var out any
	if err := x.api.do(x.t.Context(), http.MethodPost, fmt.Sprintf("/api/v1/runs/%d/%s", x.run, what), "application/json", []byte("{}"), &out); err != nil {
		x.t.Fatal(err)
	}
}

func (x *trlTest) stopAndResume() {
	x.act("stop")
	r := x.wait("the stop", func(r ablation.Run) bool { return r.State == ablation.Stopped })
	saved, err := x.srv.Store().Checkpoints(x.t.Context(), x.run)
	if err != nil || len(saved) == 0 {
		x.t.Fatalf("%d checkpoints after the stop, %v", len(saved), err)
	}
	if at := saved[len(saved)-1].Step; at != r.Step {
		x.t.Errorf("stopped at step %d, the newest checkpoint is of step %d", r.Step, at)
	}
	x.act("resume")
	x.wait("the second attempt", func(r ablation.Run) bool { return r.Attempt == 2 && r.State == ablation.Running })
}

// stored looks at what is in the store at the end.
func (x *trlTest) stored() {
	ctx, s := x.t.Context(), x.srv.Store()
	hello, err := s.Hello(ctx, x.run)
	if err != nil || hello.Info["trl"] == "" || !strings.Contains(hello.Info["objective"], "loss_type") {
		x.t.Errorf("hello: %+v, %v", hello.Info, err)
	}
	for _, m := range []string{"reward/mean", "policy/loss", "policy/entropy", "policy/grad_norm", "group/zero_variance", "speed/tokens_per_s", "time/step_s", "train/success", "rollout/tool_calls"} {
		seen := map[int64]bool{}
		for _, p := range x.series(m) {
			seen[p.Step] = true
		}
		if len(seen) != 20 {
			x.t.Errorf("%s has %d of 20 steps", m, len(seen))
		}
	}
	if n := len(x.series("sft/loss")); n == 0 {
		x.t.Error("no SFT loss")
	}
	evals, err := s.Evaluations(ctx, []ablation.RunID{x.run})
	if err != nil || len(evals) < 3 {
		x.t.Errorf("%d evaluations, %v; want those of steps 0, 10 and 20", len(evals), err)
	}
	kinds := map[string]bool{}
	made, err := s.Artifacts(ctx, x.run)
	if err != nil {
		x.t.Fatal(err)
	}
	for _, a := range made {
		kinds[a.Kind] = true
	}
	if !kinds["dataset"] || !kinds["sft"] || !kinds["smoke"] {
		x.t.Errorf("artifacts: %v", kinds)
	}
	x.episodes()
}

// episodes: every rollout of training is there with its advantage, some with
// values by token.
func (x *trlTest) episodes() {
	heads, total, err := x.srv.Store().Trajectories(x.t.Context(), store.TrajectoryFilter{Runs: []ablation.RunID{x.run}, Phase: "rl", Limit: 1000})
	if err != nil || total < 20*16 {
		x.t.Fatalf("%d episodes of training, want %d, %v", total, 20*16, err)
	}
	advantages, tokens := 0, 0
	for _, h := range heads {
		e, _, err := x.srv.Store().Trajectory(x.t.Context(), x.run, h.ID)
		if err != nil {
			x.t.Fatal(err)
		}
		if e.Advantage != nil {
			advantages++
		}
		if hasEntropy(e) {
			tokens++
		}
		sum := 0.0
		for _, c := range e.Components {
			sum += c.Value
		}
		if diff := sum - e.Reward; diff > 1e-6 || diff < -1e-6 {
			x.t.Errorf("%s: the parts sum to %v, the reward is %v", e.ID, sum, e.Reward)
		}
	}
	x.t.Logf("%d episodes of training, %d with an advantage, %d with values by token", total, advantages, tokens)
	if advantages < total*9/10 || tokens < 20 {
		x.t.Errorf("of %d episodes %d have an advantage and %d values by token", total, advantages, tokens)
	}
}

func hasEntropy(e trainer.Trajectory) bool {
	for _, t := range e.Turns {
		if len(t.Entropy) > 0 && len(t.Entropy) == len(t.Words) {
			return true
		}
	}
	return false
}

// moved compares the reward at the start and at the end.
func (x *trlTest) moved() {
	points := x.series("reward/mean")
	mean := func(list []ablation.Point) (sum float64) {
		for _, p := range list {
			sum += p.Value / float64(len(list))
		}
		return sum
	}
	first, last := mean(points[:5]), mean(points[len(points)-5:])
	x.t.Logf("mean reward of the first five steps %.3f, of the last five %.3f", first, last)
	if last <= first {
		x.t.Errorf("the reward did not rise: %.3f at the start, %.3f at the end", first, last)
	}
}
