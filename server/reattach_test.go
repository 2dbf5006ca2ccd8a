package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"alidade/ablation"
)

// scripts is a study of eight runs of a shell script that writes a step every
// 100 ms and ends with its seed as exit code.
func scripts(steps int) string {
	return fmt.Sprintf(`name: scripts
base:
  preset: command
  trainer:
    kind: command
    command: [sh, -c, 'n=0; seed=$(tr -d " \n" <{spec} | sed "s/.*\"seed\":\([0-9]*\),\"recipe.*/\1/"); f={dir}/events.jsonl
      ; echo "{\"v\":1,\"kind\":\"hello\",\"t\":1,\"hello\":{\"trainer\":\"sh\",\"version\":\"1\",\"pid\":$$,\"host\":\"here\",\"total_steps\":%[1]d}}" >>$f
      ; echo "{\"v\":1,\"kind\":\"phase\",\"t\":1,\"phase\":{\"name\":\"rl\",\"step\":0,\"total\":%[1]d,\"main\":true}}" >>$f
      ; while [ $n -lt %[1]d ]; do n=$((n+1)); echo "{\"v\":1,\"kind\":\"points\",\"t\":$(date +%%s%%3N),\"points\":{\"step\":$n,\"values\":{\"reward/mean\":$n}}}" >>$f; sleep 0.1; done
      ; echo "{\"v\":1,\"kind\":\"done\",\"t\":1,\"done\":{\"ok\":true,\"step\":%[1]d,\"reason\":\"finished\"}}" >>$f
      ; exit $seed']
  budget: {steps: %[1]d, checkpoint_every: 5}
seeds: [0, 1, 2, 3, 4, 5, 6, 7]
`, steps)
}

// TestEightRunsAreTakenOver: the server is killed while eight runs train. All
// go on, the next server serves within 2 s and follows all eight within 5 s,
// and knows each exit code afterwards, also those of the time without a server.
func TestEightRunsAreTakenOver(t *testing.T) {
	const steps = 150
	data := t.TempDir()
	p := serve(t, data, "--cpu-slots", "8", "--devices", "cpu:8")
	id := p.launch(t, scripts(steps))
	atLeast := func(step int64) func() bool {
		return func() bool {
			runs := p.runs(t, id)
			return len(runs) == 8 && !slices.ContainsFunc(runs, func(r ablation.Run) bool { return r.State != ablation.Running || r.Step < step })
		}
	}
	waitFor(t, time.Minute, "eight runs to train", atLeast(2))
	p.kill()
	before := sizes(t, data)
	time.Sleep(2 * time.Second)
	for run, n := range sizes(t, data) {
		if n <= before[run] {
			t.Errorf("run %d wrote nothing while no server was there", run)
		}
	}
	began := time.Now()
	p = serve(t, data, "--cpu-slots", "8", "--devices", "cpu:8")
	serving := time.Since(began)
	now := p.runs(t, id)[0].Step
	waitFor(t, 5*time.Second, "all eight to be followed again", atLeast(now+1))
	t.Logf("serving after %s, all eight followed after %s", serving.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	if serving > 2*time.Second {
		t.Errorf("serving after %s, want 2 s", serving)
	}
	p.kill()
	waitFor(t, time.Minute, "all trainers to end without a server", func() bool {
		ended, err := filepath.Glob(filepath.Join(data, "runs", "*", "1", "exit.json"))
		return err == nil && len(ended) == 8
	})
	p = serve(t, data, "--cpu-slots", "8", "--devices", "cpu:8")
	for _, run := range p.wait(t, id, time.Minute) {
		want := ablation.Failed
		if run.Seed == 0 {
			want = ablation.Succeeded
		}
		if run.State != want || run.Attempt != 1 || run.Step != steps || run.Seed > 0 && !strings.Contains(run.Cause, fmt.Sprintf("exit code %d", run.Seed)) {
			t.Errorf("run %d (seed %d) is %s at step %d in attempt %d: %q", run.ID, run.Seed, run.State, run.Step, run.Attempt, run.Cause)
		}
	}
	p.stop(t)
	s := openStore(t, data)
	defer s.Close()
	for run := ablation.RunID(1); run <= 8; run++ {
		series, err := s.Series(t.Context(), seriesOf(run, "reward/mean"))
		if err != nil || len(series) != 1 || len(series[0].Points) != steps {
			t.Errorf("run %d: %d series, %v; want one of %d points", run, len(series), err, steps)
		}
	}
}

// sizes are those of the events files.
func sizes(t *testing.T, data string) map[int]int64 {
	t.Helper()
	out := make(map[int]int64)
	for run := 1; run <= 8; run++ {
		info, err := os.Stat(filepath.Join(data, "runs", fmt.Sprint(run), "1", "events.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		out[run] = info.Size()
	}
	return out
}
