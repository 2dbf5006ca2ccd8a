package store

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
)

// interner gives texts that repeat a small number, in a table of its own. Ids
// given in a transaction count only once settle says that it was committed.
type interner struct {
	table string

	mu    sync.RWMutex
	ids   map[string]int64
	texts map[int64]string

	fresh []string // given in the open transaction; the writer's alone
	given map[string]int64
}

// id returns the number of text, given if need be. Only a writer calls it.
func (in *interner) id(tx *sql.Tx, text string) (int64, error) {
	in.mu.RLock()
	id, ok := in.ids[text]
	in.mu.RUnlock()
	if ok {
		return id, nil
	}
	if id, ok := in.given[text]; ok {
		return id, nil
	}
	if _, err := tx.Exec("INSERT OR IGNORE INTO "+in.table+" (text) VALUES (?)", text); err != nil {
		return 0, err
	}
	if err := tx.QueryRow("SELECT id FROM "+in.table+" WHERE text = ?", text).Scan(&id); err != nil {
		return 0, err
	}
	if in.given == nil {
		in.given = map[string]int64{}
	}
	in.given[text] = id
	in.fresh = append(in.fresh, text)
	return id, nil
}

// mark returns a point to forget back to.
func (in *interner) mark() int { return len(in.fresh) }

// forget drops what was given since mark: its savepoint was rolled back.
func (in *interner) forget(mark int) {
	for _, text := range in.fresh[mark:] {
		delete(in.given, text)
	}
	in.fresh = in.fresh[:mark]
}

// settle ends a transaction.
func (in *interner) settle(committed bool) {
	if len(in.fresh) == 0 {
		return
	}
	if committed {
		in.mu.Lock()
		for text, id := range in.given {
			in.keep(id, text)
		}
		in.mu.Unlock()
	}
	in.given, in.fresh = nil, in.fresh[:0]
}

func (in *interner) keep(id int64, text string) {
	if in.ids == nil {
		in.ids, in.texts = map[string]int64{}, map[int64]string{}
	}
	in.ids[text], in.texts[id] = id, text
}

// text returns the text with this number, read through q when it is not known.
func (in *interner) text(ctx context.Context, q queryer, id int64) (string, error) {
	in.mu.RLock()
	text, ok := in.texts[id]
	in.mu.RUnlock()
	if ok {
		return text, nil
	}
	if err := q.QueryRowContext(ctx, "SELECT text FROM "+in.table+" WHERE id = ?", id).Scan(&text); err != nil {
		return "", fmt.Errorf("%s %d: %w", in.table, id, err)
	}
	in.mu.Lock()
	in.keep(id, text)
	in.mu.Unlock()
	return text, nil
}

// queryer is what reading needs of a database or a transaction.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}
