package store

import (
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"strings"

	"alidade/trainer"
)

// trajectory stores a trajectory: its head in columns, its line as written,
// its text in the index. One of the same id, from an earlier attempt, makes
// way.
func (a *applier) trajectory(e *trainer.Event) (TrajectoryHead, error) {
	t := e.Trajectory
	head := headOf(t)
	head.Run, head.Attempt, head.At = a.b.Run, a.b.Attempt, fromMillis(e.T)
	if err := a.removeTrajectory(t.ID); err != nil {
		return head, err
	}
	tools := toolsOf(t)
	seq, err := a.insertHead(t, head, tools)
	if err != nil {
		return head, err
	}
	head.Seq = seq
	return head, a.insertBody(seq, e, tools)
}

// headOf is what the list shows of a trajectory.
func headOf(t *trainer.Trajectory) TrajectoryHead {
	h := TrajectoryHead{
		ID: t.ID, Phase: t.Phase, Policy: t.Policy, Mode: t.Mode, Group: t.Group, Rollout: t.Rollout, Step: t.Step,
		QueryHash: t.Query.Hash, QueryText: t.Query.Text, Level: t.Query.Level, End: t.End,
		Reward: t.Reward, Success: t.Success, FormatError: t.FormatError != "", Overlong: t.Overlong,
		Turns: len(t.Turns), Tokens: t.Tokens, ToolCalls: t.ToolCalls, Injected: t.Injected,
	}
	if t.Advantage != nil {
		v := t.Advantage.Value
		h.Advantage = &v
	}
	for _, v := range t.Verdicts {
		if v.Outcome == "fail" || v.Outcome == "raises" {
			h.Failed = append(h.Failed, v.Check)
		}
	}
	return h
}

// toolsOf lists the tools that a trajectory called, sorted.
func toolsOf(t *trainer.Trajectory) []string {
	called := map[string]bool{}
	for name, n := range t.Tools {
		called[name] = n > 0
	}
	for _, turn := range t.Turns {
		if turn.Call != nil {
			called[turn.Call.Tool] = true
		}
	}
	var tools []string
	for name, yes := range called {
		if yes {
			tools = append(tools, name)
		}
	}
	slices.Sort(tools)
	return tools
}

func (a *applier) removeTrajectory(id string) error {
	var seq int64
	err := a.tx.StmtContext(a.ctx, a.s.st.findTrajectory).QueryRowContext(a.ctx, a.b.Run, id).Scan(&seq)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, query := range []string{
		"DELETE FROM trajectories WHERE seq = ?",
		"DELETE FROM bodies WHERE seq = ?",
		"DELETE FROM trajectory_text WHERE rowid = ?",
	} {
		if err := a.exec(query, seq); err != nil {
			return err
		}
	}
	return nil
}

func (a *applier) insertHead(t *trainer.Trajectory, h TrajectoryHead, tools []string) (int64, error) {
	var words [5]int64
	for i, text := range [...]string{h.Phase, h.Policy, h.Mode, h.Level, h.End} {
		id, err := a.s.words.id(a.tx, text)
		if err != nil {
			return 0, err
		}
		words[i] = id
	}
	failed, err := a.wordList(h.Failed)
	if err != nil {
		return 0, err
	}
	called, err := a.wordList(tools)
	if err != nil {
		return 0, err
	}
	query, err := a.query(t.Query)
	if err != nil {
		return 0, err
	}
	done, err := a.tx.StmtContext(a.ctx, a.s.st.insertTrajectory).ExecContext(a.ctx,
		h.Run, h.Attempt, a.run.Study, a.run.Arm.Index, h.Step, words[0], words[1], words[2], words[3], words[4],
		h.Rollout, h.Reward, h.Advantage, h.Success, h.FormatError, h.Overlong, h.Turns, h.Tokens, h.ToolCalls, h.Injected,
		millis(h.At), query, failed, called, h.Group, h.ID)
	if err != nil {
		return 0, err
	}
	return done.LastInsertId()
}

// wordList writes texts as the numbers of words between commas: ",3,7,".
func (a *applier) wordList(texts []string) (string, error) {
	if len(texts) == 0 {
		return "", nil
	}
	var b strings.Builder
	b.WriteByte(',')
	for _, text := range texts {
		id, err := a.s.words.id(a.tx, text)
		if err != nil {
			return "", err
		}
		b.WriteString(strconv.FormatInt(id, 10))
		b.WriteByte(',')
	}
	return b.String(), nil
}

func (a *applier) query(q trainer.Query) (int64, error) {
	if _, err := a.tx.StmtContext(a.ctx, a.s.st.insertQuery).ExecContext(a.ctx, q.Hash, q.Text); err != nil {
		return 0, err
	}
	var id int64
	err := a.tx.StmtContext(a.ctx, a.s.st.findQuery).QueryRowContext(a.ctx, q.Hash, q.Text).Scan(&id)
	return id, err
}

func (a *applier) insertBody(seq int64, e *trainer.Event, tools []string) error {
	raw := e.Raw
	if raw == nil { // made in this process, not read
		stamped := *e
		stamped.T = max(e.T, 1)
		line, err := trainer.Encode(stamped)
		if err != nil {
			return err
		}
		raw = line[:len(line)-1]
	}
	if _, err := a.tx.StmtContext(a.ctx, a.s.st.insertBody).ExecContext(a.ctx, seq, len(raw), a.s.codec.pack(raw)); err != nil {
		return err
	}
	_, err := a.tx.StmtContext(a.ctx, a.s.st.indexText).ExecContext(a.ctx, seq, e.Trajectory.Query.Text, strings.Join(tools, " "), e.Trajectory.Answer)
	return err
}
