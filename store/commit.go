package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"alidade/ablation"
	"alidade/trainer"
)

type appendRequest struct {
	batch  Batch
	result chan appendResult // one place, so that nobody waits to answer
}

type appendResult struct {
	commit Commit
	err    error
}

// mostGrouped is how many events a group takes before it is committed early.
const mostGrouped = 20_000

// commitLoop commits appended batches in groups, the transactions' starts at
// least CommitEvery apart: a lone batch is stored at once, many together share
// one wait for the disk.
func (s *Store) commitLoop() {
	var last time.Time
	for {
		var first *appendRequest
		select {
		case first = <-s.appends:
		case <-s.closing:
			return
		}
		group := s.collect(first, last.Add(s.o.CommitEvery))
		last = time.Now()
		s.commitGroup(group)
	}
}

// collect gathers batches until the moment given, or until there are many.
func (s *Store) collect(first *appendRequest, until time.Time) []*appendRequest {
	group := []*appendRequest{first}
	events := len(first.batch.Events)
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	for due := false; events < mostGrouped; {
		if due { // take who waits already, and no more
			select {
			case req := <-s.appends:
				group = append(group, req)
				events += len(req.batch.Events)
				continue
			default:
				return group
			}
		}
		select {
		case req := <-s.appends:
			group = append(group, req)
			events += len(req.batch.Events)
		case <-timer.C:
			due = true
		case <-s.closing:
			return group
		}
	}
	return group
}

// commitGroup stores a group in one transaction, each batch in a savepoint of
// its own, and answers all after the commit.
func (s *Store) commitGroup(group []*appendRequest) {
	results := make([]appendResult, len(group))
	tails := make(map[ablation.RunID]int, len(group))
	err := s.transact(context.Background(), "commit", func(tx *sql.Tx) error {
		stored := 0
		for i, req := range group {
			var fatal error
			if results[i], fatal = s.applySavepoint(tx, req.batch); fatal != nil {
				return fatal
			}
			if results[i].err == nil {
				stored++
				tails[req.batch.Run] += countPoints(req.batch.Events)
			}
		}
		if stored == 0 {
			return errRollback
		}
		return nil
	})
	for i, req := range group {
		if err != nil && results[i].err == nil {
			results[i] = appendResult{err: err}
		}
		req.result <- results[i]
	}
	if err == nil {
		for run, n := range tails {
			s.grewTail(run, n)
		}
	}
}

// applySavepoint stores one batch, or leaves no trace of it. A fatal error has
// ended the whole transaction.
func (s *Store) applySavepoint(tx *sql.Tx, b Batch) (res appendResult, fatal error) {
	if _, err := tx.Exec("SAVEPOINT batch"); err != nil {
		return res, err
	}
	names, words := s.names.mark(), s.words.mark()
	if res.commit, res.err = s.apply(context.Background(), tx, b); res.err != nil {
		s.names.forget(names)
		s.words.forget(words)
		if _, err := tx.Exec("ROLLBACK TO batch"); err != nil {
			return res, fmt.Errorf("%w (undo: %w)", res.err, err)
		}
	}
	_, fatal = tx.Exec("RELEASE batch")
	return res, fatal
}

func countPoints(events []trainer.Event) int {
	n := 0
	for _, e := range events {
		if e.Kind == trainer.KindPoints && e.Points != nil {
			n += len(e.Points.Values)
		}
	}
	return n
}
