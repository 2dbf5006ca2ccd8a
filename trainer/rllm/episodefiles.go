package rllm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"alidade/sandbox/travel"
	"alidade/trainer"
	"alidade/trainer/native"
)

// fileMost bounds what is read of one episode file.
const fileMost = 64 << 20

// Episodes is the source of the folder in which rLLM writes each episode as
// JSON. It comes late, after the pushes, and tells only what server was never
// told: an episode that was played here or pushed is passed over. server nil
// means that nobody else tells anything.
func Episodes(name, dir string, server *Server) native.Source {
	return &episodeFiles{name: name, dir: filepath.Join(dir, "episodes"), server: server, read: map[string]bool{}}
}

type episodeFiles struct {
	name   string
	dir    string
	server *Server
	read   map[string]bool // files and whole folders that are done
}

// Name implements [native.Source].
func (f *episodeFiles) Name() string { return f.name }

var stepFolder = regexp.MustCompile(`^(train|val)_step_(\d+)_epoch_(\d+)$`)

// Poll implements [native.Source]. A folder counts as written when its
// summary is there; before the end others are left alone.
func (f *episodeFiles) Poll(last bool, emit func(native.Reading)) error {
	folders, err := os.ReadDir(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, d := range folders {
		m := stepFolder.FindStringSubmatch(d.Name())
		if m == nil || f.read[d.Name()] {
			continue
		}
		dir := filepath.Join(f.dir, d.Name())
		if _, err := os.Stat(filepath.Join(dir, "batch_summary.json")); err != nil && !last {
			continue
		}
		f.read[d.Name()] = true
		n, err := strconv.ParseInt(m[2], 10, 64)
		if err != nil {
			continue
		}
		if err := f.folder(dir, m[1] == "val", n, emit); err != nil {
			return err
		}
	}
	return nil
}

// folder tells the episodes of one step.
func (f *episodeFiles) folder(dir string, val bool, n int64, emit func(native.Reading)) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var list []*episodeFile
	bad := 0
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "episode_") || !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		x, err := readEpisode(filepath.Join(dir, e.Name()))
		if err != nil {
			bad++
			continue
		}
		if f.server != nil && f.server.knows(n, x.ID) {
			continue
		}
		list = append(list, x)
	}
	groups := map[string][]float64{}
	for _, x := range list {
		g, _ := parts(x.ID)
		groups[g] = append(groups[g], x.reward())
	}
	at := map[string]int{}
	for _, x := range list {
		g, rollout := parts(x.ID)
		t := x.trajectory(n, val, g, rollout)
		if f.server != nil && !val {
			if all := groupAdvantages(f.server.cfg.Estimator, f.server.cfg.ByStd, groups[g]); all != nil {
				t.Advantage = &all[at[g]]
			}
		}
		at[g]++
		emit(native.Reading{Step: n, Trajectory: t})
	}
	if bad > 0 {
		emit(native.Reading{Step: n, Bad: bad})
	}
	return nil
}

// knows tells whether an episode was played here, or pushed.
func (s *Server) knows(n int64, id string) bool {
	if s.rollouts.latest(id) != "" {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.batches[n]
	return s.done[n][id] || b != nil && b.episodes[id] != nil
}

// episodeFile is one episode as rLLM writes it.
type episodeFile struct {
	Step        int64           `json:"training_step"`
	ID          string          `json:"episode_id"`
	Task        json.RawMessage `json:"task"`
	Hash        string          `json:"task_hash"`
	Correct     bool            `json:"is_correct"`
	Termination json.RawMessage `json:"termination_reason"`

	Trajectories []struct {
		Name   string   `json:"name"`
		Reward *float64 `json:"reward"`
		Steps  []struct {
			Observation json.RawMessage `json:"observation"`
			Thought     json.RawMessage `json:"thought"`
			Response    json.RawMessage `json:"model_response"`
			Reward      float64         `json:"reward"`
			Chat        []fileMessage   `json:"chat_completions"`
		} `json:"steps"`
	} `json:"trajectories"`
}

type fileMessage struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls []struct {
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

func readEpisode(path string) (*episodeFile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > fileMost {
		return nil, fmt.Errorf("%s has %d bytes, at most %d are read", filepath.Base(path), info.Size(), int64(fileMost))
	}
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var x episodeFile
	if err := json.Unmarshal(quoteNaN(src), &x); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	if x.ID == "" || len(x.ID) > 200 {
		return nil, fmt.Errorf("%s: episode_id %q; allowed: 1 to 200 bytes", filepath.Base(path), x.ID[:min(len(x.ID), 200)])
	}
	return &x, nil
}

func (x *episodeFile) reward() float64 {
	sum := 0.0
	for _, t := range x.Trajectories {
		switch {
		case t.Reward != nil:
			sum += *t.Reward
		case len(t.Steps) > 0:
			sum += t.Steps[len(t.Steps)-1].Reward
		}
	}
	return sum
}

// trajectory is the file as a record.
func (x *episodeFile) trajectory(n int64, val bool, group string, rollout int) *trainer.Trajectory {
	phase := "rl"
	if val {
		phase = "eval"
	}
	t := &trainer.Trajectory{
		ID: fmt.Sprintf("%s-%d-%s", phase, n, x.ID), Phase: phase, Policy: "policy", Mode: "sampled", Step: n,
		Group: fmt.Sprintf("%s-%d-%s", phase, n, group), Rollout: rollout, Query: queryOf(x.Task),
		Reward: x.reward(), RewardKind: "trainer", Components: []trainer.Component{{Name: "trainer", Value: x.reward()}},
		Success: x.Correct, End: endOf(text(x.Termination)), Scores: map[string]float64{"success": share(x.Correct)},
		Labels: map[string]string{"source": "episode file of the trainer"},
	}
	t.Overlong = t.End == travel.EndContext
	for _, path := range x.Trajectories {
		if len(path.Steps) == 0 {
			continue
		}
		chat := path.Steps[len(path.Steps)-1].Chat
		if len(chat) > 0 {
			readChat(t, chat)
			continue
		}
		for i := range path.Steps {
			s := &path.Steps[i]
			turn := turnOf(text(s.Response), text(s.Thought))
			if i+1 < len(path.Steps) {
				if seen := text(path.Steps[i+1].Observation); seen != "" {
					turn.Observe = &trainer.Observed{Text: seen}
				}
			}
			t.Turns = append(t.Turns, turn)
		}
	}
	if t.Query.Text == "" {
		t.Query.Text = "(task " + x.Hash + ")"
	}
	return t
}

// readChat reads a conversation as turns: what the assistant said, and what
// came back before it spoke again.
func readChat(t *trainer.Trajectory, chat []fileMessage) {
	var open *trainer.Turn
	for i := range chat {
		m := &chat[i]
		said := contentOf(m.Content)
		switch {
		case m.Role == "assistant":
			turn := turnOf(said, "")
			if len(m.ToolCalls) > 0 {
				f := m.ToolCalls[0].Function
				args := map[string]any{}
				_ = json.Unmarshal([]byte(argumentsOf(f.Arguments)), &args) // else no arguments
				turn.Call, turn.Raw = callOf(f.Name, args), ""
				if turn.Think == "" {
					turn.Think = strings.TrimSpace(said)
				}
			}
			if turn.Call != nil {
				t.ToolCalls++
				if t.Tools == nil {
					t.Tools = map[string]int{}
				}
				t.Tools[turn.Call.Tool]++
			} else {
				t.Answer = turn.Raw
			}
			t.Turns = append(t.Turns, turn)
			open = &t.Turns[len(t.Turns)-1]
		case open != nil && (m.Role == "tool" || m.Role == "user"):
			if open.Observe == nil {
				open.Observe = &trainer.Observed{Text: said}
			} else {
				open.Observe.Text += "\n" + said
			}
		case m.Role == "user" && t.Query.Text == "":
			t.Query.Text = said
		}
	}
}

// contentOf reads a content that is a text, null, or a list of parts.
func contentOf(src json.RawMessage) string {
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(src, &parts) == nil && len(parts) > 0 {
		var b strings.Builder
		for _, p := range parts {
			b.WriteString(p.Text)
		}
		return b.String()
	}
	return text(src)
}

// argumentsOf is the text of a call's arguments, which may come as an object.
func argumentsOf(src json.RawMessage) string {
	var s string
	if json.Unmarshal(src, &s) == nil {
		return s
	}
	return string(src)
}
