package emulator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// environment is a client of the run's environment server.
type environment struct {
	url, token string
	http       http.Client
}

func (p *process) environment(url, tokenEnv string) *environment {
	return &environment{url: url, token: p.env(tokenEnv), http: http.Client{Timeout: 30 * time.Second}}
}

func (e *environment) ask(method, path string, body, out any) error {
	src, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if method == http.MethodGet {
		src = nil
	}
	req, err := http.NewRequest(method, e.url+path, bytes.NewReader(src))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+e.token)
	req.Header.Set("Content-Type", "application/json")
	res, err := e.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %d %s", method, path, res.StatusCode, text)
	}
	return json.Unmarshal(text, out)
}

// task is one task of a split.
type task struct {
	ID   string `json:"task_id"`
	Hash string `json:"hash"`
	Text string `json:"text"`
}

// tasks lists a split.
func (e *environment) tasks(split string) ([]task, error) {
	var out struct {
		Tasks []task `json:"tasks"`
	}
	err := e.ask(http.MethodGet, "/env/tasks?limit=1000&split="+split, nil, &out)
	return out.Tasks, err
}

// played is an episode that was played and scored.
type played struct {
	ID         string
	Group      string
	Score      float64
	Success    bool
	Components map[string]float64
	Metrics    map[string]float64
}

// opening says which episode it is.
type opening struct {
	TaskID  string `json:"task_id"`
	Split   string `json:"split"`
	Seed    uint64 `json:"seed"`
	GroupID string `json:"group_id"`
	Rollout int    `json:"rollout_index"`
	Phase   string `json:"phase"`
	Policy  string `json:"policy"`
	Mode    string `json:"mode"`
	Step    int64  `json:"step"`
}

// play plays an episode to its end, as the frameworks' shims do.
func (e *environment) play(o opening, p policy, progress float64) (played, error) {
	o.Policy, o.Mode = "policy", "sampled"
	var made struct {
		ID string `json:"episode_id"`
	}
	if err := e.ask(http.MethodPost, "/env/episodes", o, &made); err != nil {
		return played{}, err
	}
	for i, c := range lookups {
		var seen struct {
			Text string `json:"text"`
		}
		if err := e.ask(http.MethodPost, "/env/episodes/"+made.ID+"/call", map[string]any{"name": c.Name, "arguments": c.Args, "index": i}, &seen); err != nil {
			return played{}, err
		}
	}
	text, _ := p.turn(len(lookups))
	var scored struct {
		Score      float64            `json:"score"`
		Success    bool               `json:"success"`
		Components map[string]float64 `json:"components"`
		Metrics    map[string]float64 `json:"metrics"`
	}
	err := e.ask(http.MethodPost, "/env/episodes/"+made.ID+"/score", map[string]any{"final_text": text, "progress": progress}, &scored)
	return played{made.ID, o.GroupID, scored.Score, scored.Success, scored.Components, scored.Metrics}, err
}
