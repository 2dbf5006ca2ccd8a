package serve

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"alidade/sandbox/travel"
)

const stepsPerEpisode = 20

// player plays episodes one after the other: each step is one tool call.
type player struct {
	id    string
	index int
}

// step makes one call, beginning a new episode when the last is long enough.
func (p *player) step(c *client, ask func(op, episode, body string) (int, error), number int) error {
	if p.id == "" || p.index == stepsPerEpisode {
		if p.id != "" {
			if _, err := ask("delete", p.id, ""); err != nil {
				return err
			}
		}
		e, err := c.s.create(c.t.Context(), "", CreateRequest{TaskID: "0", Split: "train", RolloutIndex: number})
		if err != nil {
			return err
		}
		p.id, p.index = e.EpisodeID, 0
	}
	tool, args := travel.ToolRestaurant, cityArgs(theFixture(c.t).queries[0].Dest)
	if p.index%3 == 1 {
		tool = travel.ToolAccommodation
	} else if p.index%3 == 2 {
		tool, args = travel.ToolDistance, fmt.Sprintf(`{"departure":%q,"destination":%q,"mode":"driving"}`, theFixture(c.t).queries[0].Org, theFixture(c.t).queries[0].Dest)
	}
	status, err := ask("call", p.id, callBody(p.index, tool, args))
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("call = %d", status)
	}
	p.index++
	return err
}

func (c *client) askHTTP(op, episode, body string) (int, error) {
	if op == "delete" {
		status, _, _ := c.send("DELETE", "/env/episodes/"+episode, "")
		return status, nil
	}
	status, _, _ := c.send("POST", "/env/episodes/"+episode+"/"+op, body)
	return status, nil
}

// spread shares b.N steps among clients and reports steps/s and latencies.
// Between two steps a client thinks, as a model does, for think on average.
func spread(b *testing.B, clients int, think time.Duration, step func(client int) error) {
	var left atomic.Int64
	left.Store(int64(b.N))
	took := make([][]time.Duration, clients)
	var wg sync.WaitGroup
	for i := range clients { // connections are made before the clock runs
		wg.Go(func() {
			if err := step(i); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	b.ResetTimer()
	for i := range clients {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if think > 0 {
					time.Sleep(time.Duration(rand.Int64N(int64(2 * think))))
				}
				began := time.Now()
				if err := step(i); err != nil {
					b.Error(err)
					return
				}
				took[i] = append(took[i], time.Since(began))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	if len(all) == 0 {
		return
	}
	b.ReportMetric(float64(len(all))/b.Elapsed().Seconds(), "steps/s")
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
}

func BenchmarkHTTP(b *testing.B) {
	for _, x := range []struct {
		episodes int
		think    time.Duration
	}{{1, 0}, {16, 0}, {1000, 0}, {1000, time.Second}} {
		b.Run(fmt.Sprintf("episodes=%d/think=%v", x.episodes, x.think), func(b *testing.B) {
			c := start(b, nil)
			players := make([]player, x.episodes)
			spread(b, x.episodes, x.think, func(i int) error { return players[i].step(c, c.askHTTP, i) })
		})
	}
}

func BenchmarkWebSocket(b *testing.B) {
	for _, x := range []struct {
		episodes, lines int
		think           time.Duration
	}{{1, 1, 0}, {16, 1, 0}, {1000, 1, 0}, {1000, 8, 0}, {1000, 8, time.Second}} {
		b.Run(fmt.Sprintf("episodes=%d/connections=%d/think=%v", x.episodes, x.lines, x.think), func(b *testing.B) {
			c := start(b, nil)
			lines := make([]*line, x.lines)
			for i := range lines {
				lines[i] = c.dial()
			}
			players := make([]player, x.episodes)
			spread(b, x.episodes, x.think, func(i int) error {
				l := lines[i%len(lines)]
				return players[i].step(c, func(op, episode, body string) (int, error) {
					r, err := l.ask(op, episode, body)
					return r.Status, err
				}, i)
			})
		})
	}
}

// BenchmarkBatch sends a step of each of 256 episodes in one request.
func BenchmarkBatch(b *testing.B) {
	c := start(b, nil)
	const n = 256
	ids := make([]string, n)
	for i := range ids {
		ids[i] = c.create(CreateRequest{TaskID: "0"}).EpisodeID
	}
	city := cityArgs(theFixture(b).queries[0].Dest)
	steps := 0
	for b.Loop() {
		ops := make([]Operation, n)
		for i := range ops {
			ops[i] = Operation{Op: "call", EpisodeID: ids[i], Body: []byte(callBody(0, travel.ToolRestaurant, city))}
		}
		c.want(200, "POST", "/env/batch", BatchRequest{ops}, nil)
		steps += n
	}
	b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "steps/s")
}

// BenchmarkScore judges a plan in all three profiles, over the wire.
func BenchmarkScore(b *testing.B) {
	c := start(b, nil)
	f := theFixture(b)
	for b.Loop() {
		e := c.create(CreateRequest{TaskID: "0"})
		c.score(e.EpisodeID, ScoreRequest{FinalText: f.plans[0]})
		c.want(200, "DELETE", "/env/episodes/"+e.EpisodeID, nil, nil)
	}
}
