package store

import (
	"database/sql"
	"errors"
)

// statements are those that run for every batch or trajectory, prepared once.
type statements struct {
	insertTail, upsertSeries                                *sql.Stmt
	findTrajectory, insertTrajectory, insertBody, indexText *sql.Stmt
	insertQuery, findQuery                                  *sql.Stmt
}

func (st *statements) prepare(db *sql.DB) error {
	var failed error
	prepare := func(query string) *sql.Stmt {
		stmt, err := db.Prepare(query)
		failed = errors.Join(failed, err)
		return stmt
	}
	st.insertTail = prepare(`INSERT INTO tail (run, attempt, segment, n, body) VALUES (?, ?, ?, ?, ?)`)
	st.upsertSeries = prepare(`
		INSERT INTO series (run, name, attempt, segment, n, first, last, last_wall, last_value, ordered)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (run, name, attempt, segment) DO UPDATE
		SET n = n + excluded.n,
		    ordered = ordered AND excluded.ordered AND excluded.first > last,
		    first = min(first, excluded.first),
		    last_wall = CASE WHEN excluded.last >= last THEN excluded.last_wall ELSE last_wall END,
		    last_value = CASE WHEN excluded.last >= last THEN excluded.last_value ELSE last_value END,
		    last = max(last, excluded.last)`)
	st.findTrajectory = prepare(`SELECT seq FROM trajectories WHERE run = ? AND tid = ?`)
	st.insertTrajectory = prepare(`
		INSERT INTO trajectories (run, attempt, study, arm, step, phase, policy, mode, level, ending, rollout, reward, advantage,
		  success, format_error, overlong, turns, tokens, tool_calls, injected, at, query, failed, tools, grp, tid)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	st.insertBody = prepare(`INSERT INTO bodies (seq, n, body) VALUES (?, ?, ?)`)
	st.indexText = prepare(`INSERT INTO trajectory_text (rowid, query, tools, answer) VALUES (?, ?, ?, ?)`)
	st.insertQuery = prepare(`INSERT OR IGNORE INTO queries (hash, text) VALUES (?, ?)`)
	st.findQuery = prepare(`SELECT id FROM queries WHERE hash = ? AND text = ?`)
	return failed
}

func (st *statements) close() {
	for _, stmt := range []*sql.Stmt{st.insertTail, st.upsertSeries, st.findTrajectory, st.insertTrajectory, st.insertBody, st.indexText, st.insertQuery, st.findQuery} {
		if stmt != nil {
			_ = stmt.Close()
		}
	}
}
