package rllm

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"alidade/trainer/native"
)

// waitGroups is how long episodes wait for their groups. The logger sends
// both in a row.
const waitGroups = 15 * time.Second

// episodeBody is an episode as the logger sends it.
type episodeBody struct {
	Session     string                     `json:"session_id"`
	Kind        string                     `json:"session_type"`
	Step        step                       `json:"step"`
	ID          string                     `json:"episode_id"`
	Task        json.RawMessage            `json:"task"`
	Termination json.RawMessage            `json:"termination_reason"`
	Correct     bool                       `json:"is_correct"`
	Metrics     map[string]json.RawMessage `json:"metrics"`
	Artifacts   map[string]json.RawMessage `json:"artifacts"`

	Trajectories []struct {
		UID    string   `json:"uid"`
		Name   string   `json:"name"`
		Reward *float64 `json:"reward"`
		Steps  []struct {
			Input    json.RawMessage `json:"input"`
			Output   json.RawMessage `json:"output"`
			Action   json.RawMessage `json:"action"`
			Reward   float64         `json:"reward"`
			Done     bool            `json:"done"`
			Metadata struct {
				Thought     json.RawMessage `json:"thought"`
				Response    json.RawMessage `json:"model_response"`
				Observation json.RawMessage `json:"observation"`
			} `json:"metadata"`
		} `json:"steps"`
	} `json:"trajectories"`
}

// groupBody is a group of trajectories that were compared with each other.
type groupBody struct {
	Session  string   `json:"session_id"`
	Step     step     `json:"step"`
	ID       string   `json:"group_id"`
	N        int      `json:"num_trajectories"`
	Mean     *float64 `json:"avg_reward"`
	Metadata []struct {
		Episode string `json:"episode_id"`
	} `json:"metadata"`
}

// batch are the episodes of a step that wait for their groups.
type batch struct {
	since    time.Time
	order    []string // ids in the order in which they came
	episodes map[string]*episodeBody
	groups   map[string][]string // episodes by group
	grouped  bool
}

func (s *Server) oneEpisode(_ *http.Request, body []byte) (any, error) {
	var e episodeBody
	if err := decode(body, &e); err != nil {
		return nil, err
	}
	return s.episodes(e.Session, "", []episodeBody{e}, len(body))
}

func (s *Server) manyEpisodes(_ *http.Request, body []byte) (any, error) {
	var q struct {
		Session  string        `json:"session_id"`
		Episodes []episodeBody `json:"episodes"`
	}
	if err := decode(body, &q); err != nil {
		return nil, err
	}
	if q.Episodes == nil {
		return nil, refuse("episodes", "", "missing", "a list of episodes")
	}
	return s.episodes(q.Session, "episodes", q.Episodes, len(body))
}

// episodes takes all of a list or none, so that a client that posts them one
// by one after an error posts nothing twice. Those that were told are repeats.
func (s *Server) episodes(session, field string, list []episodeBody, size int) (any, error) {
	for i := range list {
		at := ""
		if field != "" {
			at = field + "[" + itoa(i) + "]."
		}
		switch e := &list[i]; {
		case e.ID == "":
			return nil, refuse(at+"episode_id", "", "missing", "the episode's id")
		case len(e.ID) > 200:
			return nil, refuse(at+"episode_id", e.ID, "too long", "at most 200 bytes")
		case !e.Step.set:
			return nil, refuse(at+"step", "", "missing", "a whole number, 0 or more")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.known(session); err != nil {
		return nil, err
	}
	if err := s.room(size); err != nil {
		return nil, err
	}
	repeated := 0
	for i := range list {
		e := &list[i]
		b := s.batches[e.Step.n]
		if s.done[e.Step.n][e.ID] || b != nil && b.episodes[e.ID] != nil {
			repeated++
			continue
		}
		if b == nil {
			b = &batch{since: s.cfg.Now(), episodes: map[string]*episodeBody{}, groups: map[string][]string{}}
			s.batches[e.Step.n] = b
		}
		b.episodes[e.ID] = e
		b.order = append(b.order, e.ID)
	}
	return map[string]any{"ok": true, "stored": len(list) - repeated, "repeated": repeated}, nil
}

func (s *Server) oneGroup(_ *http.Request, body []byte) (any, error) {
	var g groupBody
	if err := decode(body, &g); err != nil {
		return nil, err
	}
	return s.groups(g.Session, "", []groupBody{g}, false)
}

func (s *Server) manyGroups(_ *http.Request, body []byte) (any, error) {
	var q struct {
		Session string      `json:"session_id"`
		Groups  []groupBody `json:"groups"`
	}
	if err := decode(body, &q); err != nil {
		return nil, err
	}
	if q.Groups == nil {
		return nil, refuse("groups", "", "missing", "a list of groups")
	}
	return s.groups(q.Session, "groups", q.Groups, true)
}

// groups takes who was compared with whom. A whole list releases its step.
func (s *Server) groups(session, field string, list []groupBody, whole bool) (any, error) {
	for i := range list {
		at := ""
		if field != "" {
			at = field + "[" + itoa(i) + "]."
		}
		switch g := &list[i]; {
		case g.ID == "" || len(g.ID) > 200:
			return nil, refuse(at+"group_id", g.ID, "missing or too long", "1 to 200 bytes")
		case !g.Step.set:
			return nil, refuse(at+"step", "", "missing", "a whole number, 0 or more")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.known(session); err != nil {
		return nil, err
	}
	late := 0
	for i := range list {
		g := &list[i]
		b := s.batches[g.Step.n]
		if b == nil {
			late++
			continue
		}
		b.grouped = true
		members := make([]string, 0, len(g.Metadata))
		for _, m := range g.Metadata {
			members = append(members, m.Episode)
		}
		b.groups[g.ID] = members
	}
	if whole {
		for i := range list {
			s.tell(list[i].Step.n)
		}
	}
	return map[string]any{"ok": true, "stored": len(list) - late, "late": late}, nil
}

// flush tells the episodes of steps before n. The caller holds the lock.
func (s *Server) flush(n int64) {
	for old := range s.batches {
		if old < n {
			s.tell(old)
		}
	}
}

// age tells episodes that have waited long enough. The caller holds the lock.
func (s *Server) age(last bool) {
	for n, b := range s.batches {
		if last || s.cfg.Now().Sub(b.since) > waitGroups {
			s.tell(n)
		}
	}
}

// tell releases the episodes of a step. The caller holds the lock.
func (s *Server) tell(n int64) {
	b := s.batches[n]
	if b == nil {
		return
	}
	delete(s.batches, n)
	group := b.grouping()
	advantages := s.advantages(b, group)
	seen := s.done[n]
	if seen == nil {
		seen = map[string]bool{}
		s.done[n] = seen
		prune(s.done, n)
	}
	for i, id := range b.order {
		seen[id] = true
		t := s.trajectory(b.episodes[id], group[id], i)
		t.Advantage = advantages[id]
		s.ready = append(s.ready, native.Reading{Step: n, Trajectory: t})
	}
}

// grouping finds each episode's group: as the trainer told, else by the
// first part of the id, which is the prompt's.
func (b *batch) grouping() map[string]string {
	group := make(map[string]string, len(b.order))
	for _, id := range names(b.groups) {
		for _, episode := range b.groups[id] {
			group[episode] = id
		}
	}
	for _, id := range b.order {
		if group[id] == "" && !b.grouped {
			group[id], _ = parts(id)
		}
	}
	return group
}

// parts takes an episode's id apart: "<prompt>:<rollout>".
func parts(id string) (prompt string, rollout int) {
	i := strings.LastIndexByte(id, ':')
	if i < 0 {
		return id, 0
	}
	n := 0
	for _, c := range id[i+1:] {
		if c < '0' || c > '9' || n > 1<<20 {
			return id, 0
		}
		n = 10*n + int(c-'0')
	}
	return id[:i], n
}

// reward is what the trainer has paid for an episode: the sum over its
// trajectories, of which there is one in ours.
func (e *episodeBody) reward() float64 {
	sum := 0.0
	for _, t := range e.Trajectories {
		switch {
		case t.Reward != nil:
			sum += *t.Reward
		case len(t.Steps) > 0:
			sum += t.Steps[len(t.Steps)-1].Reward
		}
	}
	return sum
}
