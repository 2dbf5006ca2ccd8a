package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"alidade/ablation"
	"alidade/trainer"
)

// TrajectoryFilter picks trajectories; zero fields do not filter.
type TrajectoryFilter struct {
	Study ablation.StudyID
	Runs  []ablation.RunID
	Arm   *int

	Phase, Policy, Mode, Group, Level string
	StepFrom, StepTo                  *int64   // both included
	RewardMin, RewardMax              *float64 // both included
	Success                           *bool
	FailedCheck                       string // key of a check whose outcome was fail or raises
	Tool                              string // name of a tool that was called
	Text                              string // words in query, tool names or answer; all must occur, as beginnings of words
	Injected, FormatError, Overlong   *bool

	Sort   string // newest (default), reward, turns, tokens, step; "-" prefix = descending (of newest: oldest first)
	Limit  int    // 0 = all
	Offset int
}

// TrajectoryHead is a trajectory without its body.
type TrajectoryHead struct {
	Seq     int64 // in the order stored
	Run     ablation.RunID
	Attempt int
	ID      string

	Phase, Policy, Mode, Group         string
	QueryHash, QueryText, Level, End   string
	Rollout                            int
	Step                               int64
	Reward                             float64
	Advantage                          *float64
	Success, FormatError, Overlong     bool
	Turns, Tokens, ToolCalls, Injected int
	Failed                             []string // keys of the checks whose outcome was fail or raises
	At                                 time.Time
}

// sortings are the orders of a list; the last key makes each one total.
var sortings = map[string]string{
	"newest": "t.seq DESC", "-newest": "t.seq",
	"reward": "t.reward, t.seq DESC", "-reward": "t.reward DESC, t.seq DESC",
	"turns": "t.turns, t.seq DESC", "-turns": "t.turns DESC, t.seq DESC",
	"tokens": "t.tokens, t.seq DESC", "-tokens": "t.tokens DESC, t.seq DESC",
	"step": "t.step, t.seq", "-step": "t.step DESC, t.seq DESC",
}

// Trajectories returns the heads of the trajectories that f picks, one page of
// them, and how many it picks in all. A sort that does not exist is an
// *ablation.Invalid.
func (s *Store) Trajectories(ctx context.Context, f TrajectoryFilter) (heads []TrajectoryHead, total int, err error) {
	order, ok := sortings[f.Sort]
	if f.Sort == "" {
		order, ok = sortings["newest"], true
	}
	if !ok {
		return nil, 0, &ablation.Invalid{Fields: []ablation.FieldError{{
			Field: "sort", Value: f.Sort, Problem: "unknown order", Allowed: `newest, reward, turns, tokens, step, each with or without "-"`,
		}}}
	}
	where := f.conditions()
	heads = []TrajectoryHead{}
	err = s.view(ctx, "list trajectories", func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM trajectories t "+where.sql(), where.args...).Scan(&total); err != nil {
			return err
		}
		if f.Offset >= total {
			return nil
		}
		rows, err := tx.QueryContext(ctx, headColumns+where.sql()+" ORDER BY "+order+page(f.Limit, f.Offset), where.args...)
		if err != nil {
			return err
		}
		heads, err = s.scanHeads(ctx, tx, rows)
		return err
	})
	return heads, total, err
}

// headColumns joins the query's text after the page was cut: the heads that
// are filtered and sorted stay narrow.
const headColumns = `
	SELECT t.seq, t.run, t.attempt, t.tid, t.grp, t.rollout, t.step, t.reward, t.advantage,
	       t.success, t.format_error, t.overlong, t.turns, t.tokens, t.tool_calls, t.injected, t.at,
	       t.phase, t.policy, t.mode, t.level, t.ending, t.failed, t.query
	FROM trajectories t `

func (f *TrajectoryFilter) conditions() *conditions {
	w := &conditions{}
	if f.Study != 0 {
		w.add("t.study = ?", f.Study)
	}
	if f.Runs != nil {
		w.add("t.run IN (SELECT value FROM json_each(?))", jsonList(f.Runs))
	}
	if f.Group != "" {
		w.add("t.grp = ?", f.Group)
	}
	for _, word := range [...]struct{ column, text string }{
		{"phase", f.Phase}, {"policy", f.Policy}, {"mode", f.Mode}, {"level", f.Level},
	} {
		if word.text != "" {
			w.add("t."+word.column+" = (SELECT id FROM words WHERE text = ?)", word.text)
		}
	}
	for _, list := range [...]struct{ column, text string }{{"failed", f.FailedCheck}, {"tools", f.Tool}} {
		if list.text != "" {
			w.add("instr(t."+list.column+", (SELECT ',' || id || ',' FROM words WHERE text = ?)) > 0", list.text)
		}
	}
	addIf(w, "t.arm = ?", f.Arm)
	addIf(w, "t.step >= ?", f.StepFrom)
	addIf(w, "t.step <= ?", f.StepTo)
	addIf(w, "t.reward >= ?", f.RewardMin)
	addIf(w, "t.reward <= ?", f.RewardMax)
	addIf(w, "t.success = ?", f.Success)
	addIf(w, "(t.injected > 0) = ?", f.Injected)
	addIf(w, "t.format_error = ?", f.FormatError)
	addIf(w, "t.overlong = ?", f.Overlong)
	if text := matchAll(f.Text); text != "" {
		w.add("t.seq IN (SELECT rowid FROM trajectory_text WHERE trajectory_text MATCH ?)", text)
	}
	return w
}

func addIf[T any](w *conditions, term string, v *T) {
	if v != nil {
		w.add(term, *v)
	}
}

// matchAll turns what a person typed into a query of the text index: every
// word must occur, as the beginning of a word. Nothing typed is syntax.
func matchAll(text string) string {
	words := strings.Fields(text)
	for i, word := range words {
		words[i] = `"` + strings.ReplaceAll(strings.ReplaceAll(word, "\x00", ""), `"`, `""`) + `"*`
	}
	return strings.Join(words, " ")
}

func (s *Store) scanHeads(ctx context.Context, tx *sql.Tx, rows *sql.Rows) ([]TrajectoryHead, error) {
	heads := []TrajectoryHead{}
	var queries []int64
	var failed []string
	var words [][5]int64
	err := each(rows, nil, func() error {
		var h TrajectoryHead
		var w [5]int64
		var at, query int64
		var checks string
		err := rows.Scan(&h.Seq, &h.Run, &h.Attempt, &h.ID, &h.Group, &h.Rollout, &h.Step, &h.Reward, &h.Advantage,
			&h.Success, &h.FormatError, &h.Overlong, &h.Turns, &h.Tokens, &h.ToolCalls, &h.Injected, &at,
			&w[0], &w[1], &w[2], &w[3], &w[4], &checks, &query)
		h.At = fromMillis(at)
		heads, queries, failed, words = append(heads, h), append(queries, query), append(failed, checks), append(words, w)
		return err
	})
	if err != nil {
		return nil, err
	}
	texts := map[int64][2]string{}
	for i := range heads {
		if err := s.fillHead(ctx, tx, &heads[i], words[i], failed[i]); err != nil {
			return nil, err
		}
		q, ok := texts[queries[i]]
		if !ok {
			if err := tx.QueryRowContext(ctx, "SELECT hash, text FROM queries WHERE id = ?", queries[i]).Scan(&q[0], &q[1]); err != nil {
				return nil, err
			}
			texts[queries[i]] = q
		}
		heads[i].QueryHash, heads[i].QueryText = q[0], q[1]
	}
	return heads, nil
}

// fillHead replaces the numbers of words by their texts.
func (s *Store) fillHead(ctx context.Context, q queryer, h *TrajectoryHead, words [5]int64, failed string) error {
	for i, into := range [...]*string{&h.Phase, &h.Policy, &h.Mode, &h.Level, &h.End} {
		text, err := s.words.text(ctx, q, words[i])
		if err != nil {
			return err
		}
		*into = text
	}
	for _, number := range strings.FieldsFunc(failed, func(r rune) bool { return r == ',' }) {
		id, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return err
		}
		text, err := s.words.text(ctx, q, id)
		if err != nil {
			return err
		}
		h.Failed = append(h.Failed, text)
	}
	return nil
}

// Trajectory returns one trajectory of a run, and the event's line as the
// trainer wrote it, byte by byte. It returns ErrNotFound when the run has none
// of that id.
func (s *Store) Trajectory(ctx context.Context, run ablation.RunID, id string) (trainer.Trajectory, []byte, error) {
	var n int
	var packed []byte
	err := s.read.QueryRowContext(ctx, `
		SELECT b.n, b.body
		FROM trajectories t JOIN bodies b ON b.seq = t.seq
		WHERE t.run = ? AND t.tid = ?`, run, id).Scan(&n, &packed)
	if errors.Is(err, sql.ErrNoRows) {
		return trainer.Trajectory{}, nil, fmt.Errorf("trajectory %q of run %d: %w", id, run, ablation.ErrNotFound)
	}
	if err != nil {
		return trainer.Trajectory{}, nil, s.wrap("read trajectory", err)
	}
	raw, err := s.codec.unpack(packed, make([]byte, 0, n))
	if err != nil {
		return trainer.Trajectory{}, nil, s.wrap("read trajectory", err)
	}
	e, _, err := trainer.Decode(raw)
	if err == nil && e.Trajectory == nil {
		err = errDamaged
	}
	if err != nil {
		return trainer.Trajectory{}, raw, s.wrap("read trajectory", err)
	}
	return *e.Trajectory, raw, nil
}
