package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"alidade/ablation"
	"alidade/store"
)

// headJSON is a rollout of the list as the API gives it.
type headJSON struct {
	Run         ablation.RunID `json:"run"`
	ID          string         `json:"id"`
	Attempt     int            `json:"attempt"`
	Phase       string         `json:"phase"`
	Policy      string         `json:"policy"`
	Mode        string         `json:"mode"`
	Group       string         `json:"group"`
	Rollout     int            `json:"rollout"`
	Step        int64          `json:"step"`
	Query       string         `json:"query"`
	QueryHash   string         `json:"query_hash"`
	Level       string         `json:"level"`
	Reward      float64        `json:"reward"`
	Advantage   *float64       `json:"advantage,omitempty"`
	Success     bool           `json:"success"`
	FormatError bool           `json:"format_error"`
	Overlong    bool           `json:"overlong"`
	End         string         `json:"end"`
	Failed      []string       `json:"failed"`
	Turns       int            `json:"turns"`
	Tokens      int            `json:"tokens"`
	ToolCalls   int            `json:"tool_calls"`
	Injected    int            `json:"injected"`
	At          time.Time      `json:"at"`
	URL         string         `json:"url"`
}

func headOf(h store.TrajectoryHead) headJSON {
	failed := h.Failed
	if failed == nil {
		failed = []string{}
	}
	return headJSON{
		Run: h.Run, ID: h.ID, Attempt: h.Attempt, Phase: h.Phase, Policy: h.Policy, Mode: h.Mode, Group: h.Group, Rollout: h.Rollout, Step: h.Step,
		Query: h.QueryText, QueryHash: h.QueryHash, Level: h.Level, Reward: h.Reward, Advantage: h.Advantage, Success: h.Success, FormatError: h.FormatError,
		Overlong: h.Overlong, End: h.End, Failed: failed, Turns: h.Turns, Tokens: h.Tokens, ToolCalls: h.ToolCalls, Injected: h.Injected, At: h.At,
		URL: "/api/v1" + trajectoryPath(h.Run, h.ID),
	}
}

// apiTrajectories lists rollouts by the filters of the page, newest first.
func (s *site) apiTrajectories(w http.ResponseWriter, r *http.Request) error {
	filter, _, err := trajectoryFilter(r.URL.Query())
	if err != nil {
		return err
	}
	heads, total, err := s.Store.Trajectories(r.Context(), filter)
	if err != nil {
		return fmt.Errorf("list trajectories: %w", err)
	}
	out := make([]headJSON, len(heads))
	for i, h := range heads {
		out[i] = headOf(h)
	}
	return writeJSON(w, http.StatusOK, map[string]any{"trajectories": out, "total": total, "offset": filter.Offset})
}

// apiTrajectory answers the record exactly as it was stored; ranges are served.
func (s *site) apiTrajectory(w http.ResponseWriter, r *http.Request) error {
	_, _, raw, err := s.trajectoryOf(r)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(raw)
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("ETag", strconv.Quote(hex.EncodeToString(sum[:])))
	h.Set("Cache-Control", "private, no-cache")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(raw))
	return nil
}
