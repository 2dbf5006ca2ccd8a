package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"alidade/ablation"
	"alidade/stats"
)

// SeriesQuery picks series.
type SeriesQuery struct {
	Runs      []ablation.RunID
	Metrics   []string
	From, To  int64 // steps, both included; 0, 0 = all
	MaxPoints int   // 0 = all; otherwise min/max-preserving thinning
	Attempt   int   // 0 = merged: each attempt replaces earlier ones from its first step on
}

// Metrics returns the names of the metrics that runs have, sorted.
func (s *Store) Metrics(ctx context.Context, runs []ablation.RunID) ([]string, error) {
	rows, err := s.read.QueryContext(ctx, `
		SELECT text FROM names
		WHERE id IN (SELECT DISTINCT name FROM series WHERE run IN (SELECT value FROM json_each(?)))
		ORDER BY text`, jsonList(runs))
	names := []string{}
	err = each(rows, err, func() error {
		var name string
		err := rows.Scan(&name)
		names = append(names, name)
		return err
	})
	return names, s.wrap("list metrics", err)
}

// Last returns the last point of each metric that each run has.
func (s *Store) Last(ctx context.Context, runs []ablation.RunID, metrics []string) (map[ablation.RunID]map[string]ablation.Point, error) {
	rows, err := s.read.QueryContext(ctx, `
		SELECT s.run, n.text, s.last, s.last_wall, s.last_value
		FROM json_each(?) r CROSS JOIN names n CROSS JOIN series s ON s.run = r.value AND s.name = n.id
		WHERE n.text IN (SELECT value FROM json_each(?))
		ORDER BY s.run, s.name, s.attempt, s.segment`, jsonList(runs), jsonList(metrics))
	last := map[ablation.RunID]map[string]ablation.Point{}
	err = each(rows, err, func() error {
		var run ablation.RunID
		var name string
		var step, wall int64
		var value sql.NullFloat64
		if err := rows.Scan(&run, &name, &step, &wall, &value); err != nil {
			return err
		}
		if last[run] == nil {
			last[run] = map[string]ablation.Point{}
		}
		last[run][name] = ablation.Point{Step: step, Wall: fromMillis(wall), Value: orNaN(value)} // a later attempt's replaces it
		return nil
	})
	return last, s.wrap("read last points", err)
}

// orNaN reads a value: SQLite keeps NaN as NULL.
func orNaN(v sql.NullFloat64) float64 {
	if !v.Valid {
		return math.NaN()
	}
	return v.Float64
}

// Series returns the series that q picks, those without points left out: by
// run and metric in q's order. Steps rise; each occurs once, with the value
// written last. All are of one moment.
func (s *Store) Series(ctx context.Context, q SeriesQuery) ([]ablation.Series, error) {
	out := []ablation.Series{}
	err := s.view(ctx, "read series", func(tx *sql.Tx) error {
		r := &seriesReader{s: s, ctx: ctx, tx: tx, q: q}
		if err := r.findNames(); err != nil || len(r.names) == 0 {
			return err
		}
		for _, run := range q.Runs {
			series, err := r.run(run)
			if err != nil {
				return fmt.Errorf("run %d: %w", run, err)
			}
			out = append(out, series...)
		}
		return nil
	})
	return out, err
}

// seriesReader answers one query.
type seriesReader struct {
	s   *Store
	ctx context.Context
	tx  *sql.Tx
	q   SeriesQuery

	names   []int64 // of q.Metrics that exist, in its order
	metric  map[int64]string
	list    string // names, for json_each
	scratch column
	blob    []byte
	free    []column // of series that were read, for the next ones
}

// generation is one attempt's one segment of a series.
type generation struct {
	attempt, segment int
	n                int
	first            int64
	cut              int64 // the first step that a later generation has
	ordered          bool
	points           column
}

func (r *seriesReader) findNames() error {
	r.metric = map[int64]string{}
	for _, m := range r.q.Metrics {
		var id int64
		err := r.tx.QueryRowContext(r.ctx, "SELECT id FROM names WHERE text = ?", m).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return err
		}
		if _, twice := r.metric[id]; !twice {
			r.names = append(r.names, id)
			r.metric[id] = m
		}
	}
	r.list = jsonList(r.names)
	return nil
}

// run reads all metrics of one run.
func (r *seriesReader) run(run ablation.RunID) ([]ablation.Series, error) {
	all, err := r.generations(run)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	if err := r.chunks(run, all); err != nil {
		return nil, err
	}
	if err := r.tail(run, all); err != nil {
		return nil, err
	}
	var out []ablation.Series
	for _, name := range r.names {
		if gens := all[name]; len(gens) > 0 {
			if series := r.finish(run, name, gens); series.Total > 0 {
				out = append(out, series)
			}
		}
	}
	return out, nil
}

// generations reads which attempts and segments there are of each metric.
func (r *seriesReader) generations(run ablation.RunID) (map[int64][]*generation, error) {
	rows, err := r.tx.QueryContext(r.ctx, `
		SELECT name, attempt, segment, n, first, ordered
		FROM series
		WHERE run = ? AND name IN (SELECT value FROM json_each(?)) AND (?3 = 0 OR attempt = ?3)
		ORDER BY name, attempt, segment`, run, r.list, r.q.Attempt)
	all := map[int64][]*generation{}
	err = each(rows, err, func() error {
		g := &generation{cut: math.MaxInt64, points: r.column()}
		var name int64
		if err := rows.Scan(&name, &g.attempt, &g.segment, &g.n, &g.first, &g.ordered); err != nil {
			return err
		}
		for _, earlier := range all[name] {
			earlier.cut = min(earlier.cut, g.first)
		}
		all[name] = append(all[name], g)
		return nil
	})
	return all, err
}

// column returns an empty column, with the memory of an earlier one if there
// is one.
func (r *seriesReader) column() column {
	if len(r.free) == 0 {
		return column{}
	}
	c := r.free[len(r.free)-1]
	r.free = r.free[:len(r.free)-1]
	c.reset()
	return c
}

// briefly reports whether the briefs of chunks show a series well enough:
// there are many more points than asked for, and nothing cuts into them.
func (r *seriesReader) briefly(gens []*generation) bool {
	return r.q.MaxPoints > 0 && r.q.From == 0 && r.q.To == 0 &&
		len(gens) == 1 && gens[0].ordered && gens[0].n >= chunkPoints/4*r.q.MaxPoints
}

// chunks reads the points at rest: of series that are shown briefly the briefs,
// where there are any.
func (r *seriesReader) chunks(run ablation.RunID, all map[int64][]*generation) error {
	short := []int64{}
	for name, gens := range all {
		if r.briefly(gens) {
			short = append(short, name)
		}
	}
	columns := "NULL, body"
	if len(short) > 0 {
		columns = `CASE WHEN length(brief) > 0 AND name IN (SELECT value FROM json_each(?1)) THEN brief END,
		       CASE WHEN length(brief) = 0 OR name NOT IN (SELECT value FROM json_each(?1)) THEN body END`
	}
	from, to := r.limits()
	rows, err := r.tx.QueryContext(r.ctx, `
		SELECT name, attempt, segment, n, first, `+columns+`
		FROM chunks
		WHERE run = ?2 AND name IN (SELECT value FROM json_each(?3)) AND last >= ?4 AND first <= ?5
		ORDER BY id`, jsonList(short), run, r.list, from, to)
	return each(rows, err, func() error {
		var name, first int64
		var attempt, segment, n int
		var brief, body sql.RawBytes
		if err := rows.Scan(&name, &attempt, &segment, &n, &first, &brief, &body); err != nil {
			return err
		}
		g := find(all[name], attempt, segment)
		if g == nil || first >= g.cut {
			return nil
		}
		if len(brief) > 0 {
			return readColumn(brief[1:], int(brief[0]), &g.points)
		}
		if r.blob, err = r.s.codec.unpack(body, r.blob[:0]); err != nil {
			return err
		}
		return readColumn(r.blob, n, &g.points)
	})
}

// limits are the steps asked for.
func (r *seriesReader) limits() (from, to int64) {
	if r.q.From == 0 && r.q.To == 0 {
		return math.MinInt64, math.MaxInt64
	}
	return r.q.From, r.q.To
}

// tail reads the points that are not at rest yet.
func (r *seriesReader) tail(run ablation.RunID, all map[int64][]*generation) error {
	rows, err := r.tx.QueryContext(r.ctx, `
		SELECT attempt, segment, body
		FROM tail
		WHERE run = ?
		ORDER BY id`, run)
	return each(rows, err, func() error {
		var attempt, segment int
		var body sql.RawBytes
		if err := rows.Scan(&attempt, &segment, &body); err != nil {
			return err
		}
		into := map[int64]*generation{}
		for name, gens := range all {
			if g := find(gens, attempt, segment); g != nil {
				into[name] = g
			}
		}
		return readTail(body, func(name, step, wall int64, value float64) {
			if g := into[name]; g != nil {
				g.points.add(step, wall, value)
			}
		})
	})
}

func find(gens []*generation, attempt, segment int) *generation {
	for _, g := range gens {
		if g.attempt == attempt && g.segment == segment {
			return g
		}
	}
	return nil
}

// finish merges the generations and thins the result.
func (r *seriesReader) finish(run ablation.RunID, name int64, gens []*generation) ablation.Series {
	from, to := r.limits()
	r.scratch.reset()
	var merged column
	for _, g := range gens {
		if !g.ordered {
			g.points = inOrder(g.points)
		}
		steps := g.points.steps
		i := sort.Search(len(steps), func(i int) bool { return steps[i] >= from })
		j := sort.Search(len(steps), func(i int) bool { return steps[i] >= g.cut || steps[i] > to })
		if merged = g.points.slice(i, max(i, j)); len(gens) > 1 {
			r.scratch.append(merged)
			merged = r.scratch
		}
		r.free = append(r.free, g.points) // its points are copied below
	}
	total := merged.len()
	if r.briefly(gens) {
		total = gens[0].n
	}
	keep := stats.Thin(merged.values, r.q.MaxPoints)
	points := make([]ablation.Point, len(keep))
	for k, i := range keep {
		points[k] = ablation.Point{Step: merged.steps[i], Wall: fromMillis(merged.walls[i]), Value: merged.values[i]}
	}
	return ablation.Series{Run: run, Metric: r.metric[name], Points: points, Total: total, Thinned: len(points) < total}
}

// inOrder sorts points by step; of points with the same step the one written
// last stays.
func inOrder(c column) column {
	order := make([]int, c.len())
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case c.steps[a] < c.steps[b]:
			return -1
		case c.steps[a] > c.steps[b]:
			return 1
		}
		return 0
	})
	var out column
	for k, i := range order {
		if k+1 < len(order) && c.steps[order[k+1]] == c.steps[i] {
			continue
		}
		out.append(c.slice(i, i+1))
	}
	return out
}
