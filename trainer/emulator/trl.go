package emulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// trlJob is what the TRL adapter's script is given.
type trlJob struct {
	Dir       string `json:"dir"`
	Metrics   string `json:"metrics"`
	Episodes  string `json:"episodes"`
	Steps     int64  `json:"total_steps"`
	SaveEvery int64  `json:"save_every"`
	EvalEvery int64  `json:"eval_every"`
	Updates   int64  `json:"updates"`
	Resume    string `json:"resume"`
	Env       struct {
		URL      string `json:"url"`
		TokenEnv string `json:"token_env"`
	} `json:"env"`
	Config map[string]any `json:"config"`
}

// trl emulates the script of the TRL adapter: console dicts, the callback's
// lines, checkpoints.
func (p *process) trl(path string) int {
	src, err := os.ReadFile(path)
	var job trlJob
	if err == nil {
		err = json.Unmarshal(src, &job)
	}
	if err == nil {
		err = p.trlSteps(&job)
	}
	var end *ended
	switch {
	case errors.As(err, &end):
		return end.code
	case err != nil:
		fmt.Fprintln(p.err, "Traceback (most recent call last):")
		fmt.Fprintf(p.err, "EmulatorError: %v\n", err)
		return 1
	}
	return 0
}

func (p *process) trlSteps(job *trlJob) error {
	smoke := job.Steps == 1
	if code, now := p.fails(0, smoke); now {
		return &ended{code}
	}
	stop := &p.stopped
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		stop.Store(true)
	}()
	env := p.environment(job.Env.URL, job.Env.TokenEnv)
	train, err := env.tasks("train")
	if err != nil {
		return err
	}
	lines, err := os.OpenFile(job.Metrics, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = lines.Close() }()
	updates := max(1, job.Updates)
	first := int64(1)
	if job.Resume != "" {
		n, err := strconv.ParseInt(job.Resume[strings.LastIndexByte(job.Resume, '-')+1:], 10, 64)
		if err != nil {
			return err
		}
		first = n/updates + 1
		if p.cfg.Fail == "empty-resume" {
			return nil
		}
	}
	for step := first; step <= job.Steps && !stop.Load(); step++ {
		p.waits(step)
		p.sleep()
		values, err := p.trlStep(env, train, step, job, smoke)
		if err != nil {
			return err
		}
		if code, now := p.fails(step, smoke); now {
			return &ended{code}
		}
		p.printf("{%s}\n", pyDict(values))
		if err := json.NewEncoder(lines).Encode(map[string]any{"step": step, "time": float64(time.Now().UnixMilli()) / 1000, "data": finite(values)}); err != nil {
			return err
		}
		if job.SaveEvery > 0 && (step%job.SaveEvery == 0 || step == job.Steps || stop.Load()) {
			if err := p.trlCheckpoint(job, step, updates); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *process) trlStep(env *environment, train []task, step int64, job *trlJob, smoke bool) (map[string]float64, error) {
	const prompts, n = 2, 2
	sum := 0.0
	for i := range prompts {
		t := train[(int(step-1)*prompts+i)%len(train)]
		for k := range n {
			good := (i+k)%2 == 0 && !p.is("constant", step, smoke)
			e, err := env.play(opening{TaskID: t.ID, Split: "train", Seed: uint64(step), GroupID: fmt.Sprintf("rl-%d-%d", step, i), Rollout: k, Phase: "rl", Step: step}, policy{react: true, good: good}, 0)
			if err != nil {
				return nil, err
			}
			sum += e.Score
		}
	}
	m := map[string]float64{
		"loss": 0.0123, "grad_norm": 0.41, "learning_rate": 1e-6, "reward": sum / (prompts * n), "reward_std": 0.2, "frac_reward_zero_std": 0,
		"completions/mean_length": 120, "completions/clipped_ratio": 0, "entropy": 0.5 / math.Sqrt(float64(step)), "epoch": float64(step) / 10, "num_tokens": float64(step * 4000),
	}
	if p.is("nan-grad", step, smoke) {
		m["grad_norm"] = math.NaN()
	}
	return m, nil
}

func (p *process) trlCheckpoint(job *trlJob, step, updates int64) error {
	out, _ := job.Config["output_dir"].(string)
	if out == "" {
		out = filepath.Join(job.Dir, "checkpoints")
	}
	dir := filepath.Join(out, fmt.Sprintf("checkpoint-%d", step*updates))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var errs []error
	for name, text := range map[string]string{
		"model.safetensors": "emulated", "optimizer.pt": "emulated", "scheduler.pt": "emulated", "config.json": `{"model_type": "emulated"}`,
		"trainer_state.json": fmt.Sprintf(`{"global_step": %d, "log_history": []}`, step*updates),
	} {
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	errs = append(errs, os.WriteFile(filepath.Join(dir, "complete.json"), fmt.Appendf(nil, `{"step": %d, "updates": %d}`, step, updates), 0o644))
	return errors.Join(errs...)
}

// pyDict writes values as transformers 5 prints them: texts.
func pyDict(values map[string]float64) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(values)) {
		parts = append(parts, fmt.Sprintf("'%s': '%.4g'", k, values[k]))
	}
	return strings.Join(parts, ", ")
}

// finite writes what JSON cannot as texts.
func finite(values map[string]float64) map[string]any {
	out := make(map[string]any, len(values))
	for k, v := range values {
		out[k] = v
		if math.IsNaN(v) || math.IsInf(v, 0) {
			out[k] = fmt.Sprint(v)
		}
	}
	return out
}
