package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"

	"alidade/ablation"
)

const (
	// chunkPoints is how many points a full chunk has: enough that its blob
	// fills its pages.
	chunkPoints = 1024
	// tailPoints is how many points of a run the tail holds before full chunks
	// are looked for.
	tailPoints = 32 << 10
	// briefPoints is the least size of a chunk that is worth a brief.
	briefPoints = 512
)

// resting is the queue of the job that moves points from the tail to chunks.
type resting struct {
	wake   chan struct{}
	moving sync.Mutex // held while points are moved

	mu      sync.Mutex
	wanted  map[ablation.RunID]bool // true: all of the run's tail, not only full chunks
	in      map[ablation.RunID]int  // points in the tail
	trigger map[ablation.RunID]int  // when to look again, if not at tailPoints
}

func newResting() *resting {
	return &resting{
		wake: make(chan struct{}, 1), wanted: map[ablation.RunID]bool{},
		in: map[ablation.RunID]int{}, trigger: map[ablation.RunID]int{},
	}
}

// grewTail says that n points of a run were appended.
func (s *Store) grewTail(run ablation.RunID, n int) {
	s.rest.mu.Lock()
	defer s.rest.mu.Unlock()
	s.rest.in[run] += n
	if s.rest.in[run] >= max(tailPoints, s.rest.trigger[run]) {
		s.rest.want(run, false)
	}
}

// settleTail asks that all of a run's tail be moved: nothing more will come.
func (s *Store) settleTail(run ablation.RunID) {
	s.rest.mu.Lock()
	defer s.rest.mu.Unlock()
	s.rest.want(run, true)
}

// want queues a run. The caller holds mu.
func (q *resting) want(run ablation.RunID, all bool) {
	q.wanted[run] = q.wanted[run] || all
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// next takes a run from the queue.
func (q *resting) next() (run ablation.RunID, all, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for run, all = range q.wanted {
		delete(q.wanted, run)
		return run, all, true
	}
	return 0, false, false
}

// left notes what a run's tail holds after a move of n points.
func (q *resting) left(run ablation.RunID, moved, left int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.in[run] = max(0, q.in[run]-moved)
	q.trigger[run] = 2 * left
	if q.in[run] == 0 {
		delete(q.in, run)
		delete(q.trigger, run)
	}
}

// compactLoop moves points to rest until the store closes.
func (s *Store) compactLoop() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := s.findTails(ctx); err != nil {
		s.log.Error("points not yet at rest could not be listed", "err", err)
	}
	for {
		select {
		case <-s.closing:
			return
		case <-s.rest.wake:
		}
		for {
			run, all, ok := s.rest.next()
			if !ok {
				break
			}
			if err := s.compactRun(ctx, run, all); err != nil {
				s.log.Error("points could not be moved to rest", "run", run, "err", err)
			}
			select {
			case <-s.closing:
				return
			default:
			}
		}
	}
}

// findTails queues what an earlier process left in the tail.
func (s *Store) findTails(ctx context.Context) error {
	rows, err := s.read.QueryContext(ctx, `
		SELECT t.run, sum(t.n), r.state
		FROM tail t JOIN runs r ON r.id = t.run
		GROUP BY t.run`)
	return each(rows, err, func() error {
		var run ablation.RunID
		var n int
		var state ablation.State
		if err := rows.Scan(&run, &n, &state); err != nil {
			return err
		}
		s.grewTail(run, n)
		if state.Terminal() {
			s.settleTail(run)
		}
		return nil
	})
}

// tailPart is what the tail holds of one attempt and segment.
type tailPart struct {
	firstID          int64
	attempt, segment int
	bodies           [][]byte
	series           map[int64]*column
	taken            map[int64]int // points of each series that go to chunks
}

// compactRun moves a run's points from the tail to chunks: the full chunks of
// the segment being written, and all of earlier ones; with all, everything.
// Only this job deletes from the tail, and batches that arrive meanwhile have
// larger ids, so that reading and compressing need no lock.
func (s *Store) compactRun(ctx context.Context, run ablation.RunID, all bool) error {
	s.rest.moving.Lock()
	defer s.rest.moving.Unlock()
	parts, lastID, err := s.readParts(ctx, run)
	if err != nil || len(parts) == 0 {
		return err
	}
	moved, left := 0, 0
	for i, p := range parts {
		p.taken = map[int64]int{}
		for name, c := range p.series {
			n := c.len()
			if !all && i == len(parts)-1 {
				n -= n % chunkPoints
			}
			p.taken[name] = n
			moved += n
			left += c.len() - n
		}
	}
	if moved > 0 {
		err = s.transact(ctx, fmt.Sprintf("move points of run %d to rest", run), func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, "DELETE FROM tail WHERE run = ? AND id <= ?", run, lastID); err != nil {
				return err
			}
			for _, p := range parts {
				if err := s.storePart(ctx, tx, run, p); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err == nil {
		s.rest.left(run, moved, left)
	}
	return err
}

func (s *Store) readParts(ctx context.Context, run ablation.RunID) (parts []*tailPart, lastID int64, err error) {
	rows, err := s.read.QueryContext(ctx, `
		SELECT id, attempt, segment, body
		FROM tail
		WHERE run = ?
		ORDER BY id`, run)
	err = each(rows, err, func() error {
		var id int64
		var attempt, segment int
		var body []byte
		if err := rows.Scan(&id, &attempt, &segment, &body); err != nil {
			return err
		}
		i := slices.IndexFunc(parts, func(p *tailPart) bool { return p.attempt == attempt && p.segment == segment })
		if i < 0 {
			i = len(parts)
			parts = append(parts, &tailPart{firstID: id, attempt: attempt, segment: segment, series: map[int64]*column{}})
		}
		lastID = id
		return parts[i].add(body)
	})
	return parts, lastID, err
}

func (p *tailPart) add(body []byte) error {
	p.bodies = append(p.bodies, body)
	return readTail(body, func(name, step, wall int64, value float64) {
		c := p.series[name]
		if c == nil {
			c = new(column)
			p.series[name] = c
		}
		c.add(step, wall, value)
	})
}

// storePart writes a part's chunks, and puts what stays back into the tail, in
// its old place.
func (s *Store) storePart(ctx context.Context, tx *sql.Tx, run ablation.RunID, p *tailPart) error {
	names := make([]int64, 0, len(p.series))
	for name := range p.series {
		names = append(names, name)
	}
	slices.Sort(names)
	insert, err := tx.PrepareContext(ctx, `
		INSERT INTO chunks (run, name, attempt, segment, first, last, n, brief, body)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	defer insert.Close()
	for _, name := range names {
		for from := 0; from < p.taken[name]; from += chunkPoints {
			c := p.series[name].slice(from, min(from+chunkPoints, p.taken[name]))
			_, err := insert.ExecContext(ctx, run, name, p.attempt, p.segment, slices.Min(c.steps), slices.Max(c.steps), c.len(), packBrief(c), s.codec.pack(appendColumn(nil, c)))
			if err != nil {
				return err
			}
		}
	}
	n, body := p.remainder()
	if n == 0 {
		return nil
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO tail (id, run, attempt, segment, n, body) VALUES (?, ?, ?, ?, ?, ?)", p.firstID, run, p.attempt, p.segment, n, body)
	return err
}

// remainder is the part's tail without the points that were taken.
func (p *tailPart) remainder() (n int, body []byte) {
	type value struct {
		name int64
		v    float64
	}
	seen := map[int64]int{}
	var step, wall int64
	var values []value
	flush := func() {
		if len(values) == 0 {
			return
		}
		body = appendTailHead(body, step, wall, len(values))
		for _, x := range values {
			body = appendTailValue(body, x.name, x.v)
		}
		n += len(values)
		values = values[:0]
	}
	for _, b := range p.bodies {
		_ = readTail(b, func(name, s, w int64, v float64) { // read once without error
			seen[name]++
			if seen[name] <= p.taken[name] {
				return
			}
			if s != step || w != wall {
				flush()
				step, wall = s, w
			}
			values = append(values, value{name, v})
		})
	}
	flush()
	return n, body
}

// packBrief is a chunk's brief as stored.
func packBrief(c column) []byte {
	out := []byte{}
	if c.len() < briefPoints {
		return out
	}
	b := brief(c)
	if b.len() == 0 {
		return out
	}
	return appendColumn(append(out, byte(b.len())), b)
}
