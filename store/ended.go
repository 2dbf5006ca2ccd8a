package store

import (
	"context"
	"database/sql"

	"alidade/ablation"
)

// Ended returns the runs that ended last, newest first and at most limit of
// them, and how many have ended in all: for pages that must not read the rest.
func (s *Store) Ended(ctx context.Context, limit int) (runs []ablation.Run, total int, err error) {
	const ended = " FROM runs WHERE state IN ('succeeded', 'failed', 'stopped')"
	runs = []ablation.Run{}
	err = s.view(ctx, "list ended runs", func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, "SELECT count(*)"+ended).Scan(&total); err != nil {
			return err
		}
		rows, err := tx.QueryContext(ctx, "SELECT "+runColumns+ended+" ORDER BY ended_at DESC, id DESC LIMIT ?", limit)
		err = each(rows, err, func() error {
			r, err := scanRun(rows)
			runs = append(runs, r)
			return err
		})
		for i := range runs {
			if err == nil {
				err = s.arms.fill(ctx, tx, &runs[i])
			}
		}
		return err
	})
	return runs, total, err
}
