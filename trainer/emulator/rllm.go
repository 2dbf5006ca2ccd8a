package emulator

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// rllmRun is a run of rLLM 0.3: it opens a gateway with the emulated policy
// behind it, asks the flow's server for episodes, and pushes what its "ui"
// logger would.
type rllmRun struct {
	p           *process
	set         map[string]string
	train, eval []json.RawMessage
	gateway     string
	ui, key     string
	http        http.Client
	session     string
	jsonl       *metricsFile
	steps       int64
	smoke       bool
	made        int // prompts so far
}

// rllm emulates train.py of the rLLM adapter.
func (p *process) rllm(args []string) int {
	r := &rllmRun{p: p, set: settings(args), ui: p.env("RLLM_UI_URL"), key: p.env("RLLM_API_KEY"), http: http.Client{Timeout: time.Minute}}
	r.steps, _ = strconv.ParseInt(r.set["rllm.trainer.total_batches"], 10, 64)
	r.smoke = r.steps == 1
	if code, now := p.fails(0, r.smoke); now {
		return code
	}
	err := r.all()
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

func (r *rllmRun) all() error {
	if err := r.data(); err != nil {
		return err
	}
	stop, err := r.openGateway()
	if err != nil {
		return err
	}
	defer stop()
	if path := r.p.env("VERL_FILE_LOGGER_PATH"); path != "" && strings.Contains(r.set["rllm.trainer.logger"], "file") {
		if r.jsonl, err = openMetrics(path, true); err != nil {
			return err
		}
	}
	defer func() { _ = r.jsonl.close() }()
	var opened struct {
		ID string `json:"id"`
	}
	if err := r.post("/api/sessions", map[string]any{"project": r.set["rllm.trainer.project_name"], "experiment": r.set["rllm.trainer.experiment_name"], "config": r.set, "source_metadata": map[string]any{}, "session_type": "training"}, &opened); err != nil {
		return err
	}
	r.session = opened.ID
	r.p.printf("\x1b[1;34mrllm-ui\x1b[0m: View run at http://localhost:5173/runs/%s\n", r.session)
	if err := r.post("/api/sessions/"+r.session+"/heartbeat", nil, nil); err != nil {
		return err
	}
	first := int64(1)
	if from := r.set["trainer.resume_from_path"]; r.set["trainer.resume_mode"] == "resume_path" {
		n, err := strconv.ParseInt(from[strings.LastIndex(from, "global_step_")+len("global_step_"):], 10, 64)
		if err != nil {
			return err
		}
		first = n + 1
		if r.p.cfg.Fail == "empty-resume" {
			return r.complete(0)
		}
	}
	if truthy(r.set["rllm.trainer.val_before_train"]) {
		if err := r.validate(first - 1); err != nil {
			return err
		}
	}
	for step := first; step <= r.steps; step++ {
		if err := r.step(step); err != nil {
			var end *ended
			if errors.As(err, &end) && end.code != 0 {
				return errors.Join(err, r.complete(end.code))
			}
			return err
		}
	}
	return r.complete(0)
}

func (r *rllmRun) complete(code int) error {
	status := "completed"
	if code != 0 {
		status = "failed"
	}
	return r.post("/api/sessions/"+r.session+"/complete", map[string]any{"status": status, "exit_code": code}, nil)
}

// data finds the tasks' files in the generated train.py and reads them.
func (r *rllmRun) data() error {
	src, err := os.ReadFile("train.py")
	if err != nil {
		return err
	}
	_, rest, ok := strings.Cut(string(src), "for p in (")
	if !ok {
		return errors.New("train.py names no data")
	}
	names, _, _ := strings.Cut(rest, ")")
	for i, name := range strings.SplitN(names, ",", 2) {
		path, err := strconv.Unquote(strings.TrimSpace(name))
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<24)
		for lines.Scan() {
			row := json.RawMessage(bytes.Clone(lines.Bytes()))
			if i == 0 {
				r.train = append(r.train, row)
			} else {
				r.eval = append(r.eval, row)
			}
		}
		if err := errors.Join(lines.Err(), f.Close()); err != nil {
			return err
		}
	}
	if len(r.train) == 0 {
		return errors.New("there are no tasks")
	}
	return nil
}

// openGateway serves chat completions by the emulated policy. An address of
// its own stands for each rollout: …/sessions/<uid>/v1/chat/completions.
func (r *rllmRun) openGateway() (stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r.gateway = "http://" + l.Addr().String()
	s := &http.Server{Handler: http.HandlerFunc(r.chat), ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(l) }() // it ends with the process
	return func() { _ = s.Close() }, nil
}

// chat is a turn of the policy.
func (r *rllmRun) chat(w http.ResponseWriter, q *http.Request) {
	var body struct {
		Messages []struct {
			Role string `json:"role"`
		} `json:"messages"`
		Tools []json.RawMessage `json:"tools"`
	}
	if err := json.NewDecoder(q.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	turn := 0
	for _, m := range body.Messages {
		if m.Role == "assistant" {
			turn++
		}
	}
	uid := strings.Split(strings.TrimPrefix(q.URL.Path, "/sessions/"), "/")[0]
	sum := 0
	for _, c := range uid {
		sum += int(c)
	}
	if r.p.cfg.Fail == "lost-rollout" && strings.HasPrefix(uid, fmt.Sprintf("t-%d-", r.p.cfg.At)) && strings.HasSuffix(uid, ":0") {
		http.Error(w, "EngineDeadError", http.StatusInternalServerError)
		return
	}
	p := policy{react: len(body.Tools) == 0, good: sum%2 == 0 && r.p.cfg.Fail != "constant"}
	text, c := p.turn(turn)
	message := map[string]any{"role": "assistant", "content": text}
	finish := "stop"
	if c != nil && !p.react {
		args, _ := json.Marshal(c.Args) // texts
		finish = "tool_calls"
		message["tool_calls"] = []any{map[string]any{"id": fmt.Sprintf("c%d", turn), "type": "function", "function": map[string]any{"name": c.Name, "arguments": string(args)}}}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish}},
		"usage":   map[string]int{"prompt_tokens": 900 + 50*turn, "completion_tokens": 30},
	})
}

func (r *rllmRun) post(path string, body, out any) error {
	src, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodPost, r.ui+path, bytes.NewReader(src))
	if err != nil {
		return err
	}
	req.Header.Set("X-API-Key", r.key)
	req.Header.Set("Content-Type", "application/json")
	res, err := r.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= 300 {
		return fmt.Errorf("%s: %d %s", path, res.StatusCode, text)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}

// answered is what the flow's server says of an episode.
type answered struct {
	Reward      float64            `json:"reward"`
	Correct     bool               `json:"is_correct"`
	Termination string             `json:"termination_reason"`
	Metrics     map[string]float64 `json:"metrics"`
}

// sample asks for n episodes of each row and returns them as the logger
// writes them, with the members of each group.
func (r *rllmRun) sample(rows []json.RawMessage, n int, step int64, val bool) (episodes []map[string]any, groups []map[string]any, err error) {
	for _, row := range rows {
		r.made++
		prompt := fmt.Sprintf("%s-%d-%d", map[bool]string{false: "t", true: "v"}[val], step, r.made)
		var members []map[string]any
		sum := 0.0
		for k := range n {
			uid := fmt.Sprintf("%s:%d", prompt, k)
			a, err := r.rollout(row, uid, val)
			if err != nil { // left out, and no reward of 0
				episodes = append(episodes, r.episode(row, uid, step, answered{Termination: "error"}, false))
				continue
			}
			episodes = append(episodes, r.episode(row, uid, step, a, true))
			members = append(members, map[string]any{"episode_id": uid})
			sum += a.Reward
		}
		groups = append(groups, map[string]any{"session_id": r.session, "step": step, "group_id": prompt + ":travel", "num_trajectories": len(members), "avg_reward": sum / float64(max(1, len(members))), "metadata": members})
	}
	return episodes, groups, nil
}

// rollout asks for one episode, three times if need be, as rLLM's engine does
// with raise_on_error off.
func (r *rllmRun) rollout(row json.RawMessage, uid string, val bool) (a answered, err error) {
	ask := map[string]any{"task": row, "base_url": r.gateway + "/sessions/" + uid + "/v1", "model": r.set["model.name"], "session_uid": uid, "validate": val}
	for try := 1; try <= 3; try++ {
		if err = r.post("/play", ask, &a); err == nil {
			r.p.printf("\x1b[33m[%s] Rollout completed. Rewards: [travel: %.1f], Termination: TerminationReason.ENV_DONE\x1b[0m\n", uid, a.Reward)
			return a, nil
		}
		fmt.Fprintf(r.p.err, "[%s] Attempt %d/3 failed: %v\n", uid, try, err)
	}
	return a, err
}

// episode is a rollout as the logger writes it; one that failed has no
// trajectory.
func (r *rllmRun) episode(row json.RawMessage, uid string, step int64, a answered, whole bool) map[string]any {
	paths := []any{}
	if whole {
		paths = append(paths, map[string]any{"uid": uid, "name": "travel", "reward": a.Reward, "steps": []any{
			map[string]any{"id": "1", "input": nil, "output": nil, "action": nil, "reward": a.Reward, "done": true, "metadata": map[string]any{"model_response": "emulated"}},
		}})
	}
	return map[string]any{
		"session_id": r.session, "session_type": "training", "step": step, "episode_id": uid, "task": row, "termination_reason": a.Termination,
		"is_correct": a.Correct, "metrics": a.Metrics, "metadata": map[string]any{}, "artifacts": map[string]any{}, "trajectories": paths,
	}
}

// rewardOf is the reward of an episode that has one.
func rewardOf(e map[string]any) (x float64, ok bool) {
	paths, _ := e["trajectories"].([]any)
	if len(paths) == 0 {
		return 0, false
	}
	path, _ := paths[0].(map[string]any)
	x, ok = path["reward"].(float64)
	return x, ok
}

func (r *rllmRun) whole(key string, standard int) int {
	n, err := strconv.Atoi(r.set[key])
	if err != nil {
		return standard
	}
	return n
}

func (r *rllmRun) step(step int64) error {
	r.p.waits(step)
	r.p.sleep()
	batch := min(r.whole("rllm.data.train_batch_size", 64), len(r.train))
	rows := make([]json.RawMessage, batch)
	for i := range rows {
		rows[i] = r.train[(int(step-1)*batch+i)%len(r.train)]
	}
	episodes, groups, err := r.sample(rows, r.whole("rllm.rollout.n", 8), step, false)
	if err != nil {
		return err
	}
	if code, now := r.p.fails(step, r.smoke); now {
		return &ended{code}
	}
	if dir := r.set["trainer.default_local_dir"]; dir != "" {
		if every := int64(r.whole("rllm.trainer.save_freq", -1)); every > 0 && (step%every == 0 || step == r.steps) {
			if _, err := checkpoint(dir, step, 1); err != nil {
				return err
			}
		}
	}
	lo, hi, sum, n := math.Inf(1), math.Inf(-1), 0.0, 0.0
	for _, e := range episodes {
		if x, ok := rewardOf(e); ok {
			lo, hi, sum, n = min(lo, x), max(hi, x), sum+x, n+1
		}
	}
	values := map[string]float64{
		"reward/travel/mean": sum / max(1, n), "reward/travel/max": hi, "reward/travel/min": lo,
		"actor/entropy": 0.5 / math.Sqrt(float64(step)), "actor/grad_norm": 0.2, "actor/pg_loss": -0.01, "training/global_step": float64(step),
		"batch/travel/fractions/effective": 1, "batch/termination_reason/error": 1 - n/float64(max(1, len(episodes))), "time/step": float64(r.p.cfg.StepMS) / 1000,
	}
	if r.p.is("nan-grad", step, r.smoke) {
		values["actor/grad_norm"] = math.NaN()
	}
	if err := r.files(step, "train", episodes); err != nil {
		return err
	}
	if err := r.log(step, values, episodes, groups); err != nil {
		return err
	}
	if every := int64(r.whole("rllm.trainer.test_freq", -1)); every > 0 && (step%every == 0 || step == r.steps) {
		return r.validate(step)
	}
	return nil
}

// log pushes what the logger's worker does, in its order. A server that is
// away loses it, as rLLM's does.
func (r *rllmRun) log(step int64, values map[string]float64, episodes, groups []map[string]any) error {
	r.p.printf("step:%d - %d metrics\n", step, len(values))
	if err := r.jsonl.step(step, values); err != nil {
		return err
	}
	// A NaN makes the logger's HTTP client refuse the body, and the logger goes on.
	if slices.ContainsFunc(slices.Collect(maps.Values(values)), math.IsNaN) {
		fmt.Fprintln(r.p.err, "WARNING:rllm.utils.tracking:Failed to send metrics to UI: Out of range float values are not JSON compliant: nan")
	} else if err := r.post("/api/metrics", map[string]any{"session_id": r.session, "step": step, "data": values}, nil); err != nil {
		return err
	}
	if len(episodes) == 0 {
		return nil
	}
	if err := r.post("/api/episodes/batch", map[string]any{"session_id": r.session, "episodes": episodes}, nil); err != nil {
		return err
	}
	return r.post("/api/trajectory-groups/batch", map[string]any{"session_id": r.session, "groups": groups}, nil)
}

func (r *rllmRun) validate(step int64) error {
	n := max(1, r.whole("rllm.rollout.n_val", 1))
	episodes, _, err := r.sample(r.eval, n, step, true)
	if err != nil || len(episodes) == 0 {
		return err
	}
	passed := 0.0
	for _, e := range episodes {
		if e["is_correct"] == true {
			passed++
		}
	}
	if err := r.files(step, "val", episodes); err != nil {
		return err
	}
	return r.log(step, map[string]float64{"val/travel/pass@1": passed / float64(len(episodes))}, nil, nil)
}

// files writes the episodes of a step as rLLM's episode logger does.
func (r *rllmRun) files(step int64, mode string, episodes []map[string]any) error {
	root := r.set["rllm.episode_logging.episode_log_dir"]
	if root == "" || !truthy(r.set["rllm.episode_logging.log_episodes"]) {
		return nil
	}
	dir := filepath.Join(root, "episodes", fmt.Sprintf("%s_step_%d_epoch_0", mode, step))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, e := range episodes {
		id := e["episode_id"].(string) // as sample wrote it
		out := map[string]any{"training_step": step, "epoch": 0, "episode_id": id, "task": e["task"], "task_hash": "0a1b2c3d", "is_correct": e["is_correct"],
			"termination_reason": e["termination_reason"], "metrics": e["metrics"], "timing": map[string]any{}, "trajectories": e["trajectories"]}
		src, err := json.MarshalIndent(out, "", "  ")
		if err != nil {
			return err
		}
		name := fmt.Sprintf("episode_hash0a1b2c3d_id%s.json", strings.ReplaceAll(id, ":", "_"))
		if err := os.WriteFile(filepath.Join(dir, name), append(src, '\n'), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "batch_summary.json"), fmt.Appendf(nil, `{"training_step": %d, "num_episodes": %d}`, step, len(episodes)), 0o644)
}
