package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

// Operation is one request in a batch or a WebSocket message.
type Operation struct {
	ID        json.RawMessage `json:"id,omitempty" help:"any JSON value; the reply carries it"`
	Op        string          `json:"op" enum:"create,call,score,trajectory,delete,tasks,tools,stats,batch" help:"batch on a WebSocket only"`
	EpisodeID string          `json:"episode_id,omitempty"`
	Body      json.RawMessage `json:"body,omitempty" help:"what would be posted over HTTP"`
}

// Reply answers an operation.
type Reply struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Status int             `json:"status" help:"as over HTTP"`
	Result any             `json:"result,omitempty"`
	Error  *ErrorInfo      `json:"error,omitempty"`
}

// BatchRequest is a list of operations.
type BatchRequest struct {
	Operations []Operation `json:"operations"`
}

// BatchResult has a reply for each operation, in their order.
type BatchResult struct {
	Results []Reply `json:"results"`
}

const maxID = 256 // bytes of an operation's id

// operate runs one operation.
func (s *Server) operate(ctx context.Context, o *Operation) Reply {
	res, status, err := s.dispatch(ctx, o)
	if err != nil {
		p := s.note(err)
		return Reply{ID: o.ID, Status: p.Status, Error: p.info()}
	}
	return Reply{ID: o.ID, Status: status, Result: res}
}

func (s *Server) dispatch(ctx context.Context, o *Operation) (res any, status int, err error) {
	if len(o.ID) > maxID {
		o.ID = nil
		return nil, 0, refuse("id", "", fmt.Sprintf("at most %d bytes", maxID))
	}
	r := s.operation(o.Op)
	if r == nil {
		return nil, 0, refuse("op", o.Op, strings.Join(s.operations(), ", "))
	}
	if o.EpisodeID == "" && strings.Contains(r.path, "{id}") {
		return nil, 0, refuse("episode_id", "", "the id of a live episode")
	}
	res, err = r.run(ctx, o.EpisodeID, o.Body)
	return res, r.status, err
}

func (s *Server) operation(name string) *route {
	for i := range s.table {
		if r := &s.table[i]; r.op == name && name != "" {
			return r
		}
	}
	return nil
}

func (s *Server) operations() []string {
	var names []string
	for i := range s.table {
		if s.table[i].op != "" {
			names = append(names, s.table[i].op)
		}
	}
	return names
}

// batch runs operations. Those of one episode keep their order, as a
// replayed conversation needs; the rest run beside each other.
func (s *Server) batch(ctx context.Context, _ string, q BatchRequest) (BatchResult, error) {
	if n := len(q.Operations); n > s.config.MaxBatch {
		return BatchResult{}, &Problem{Status: http.StatusRequestEntityTooLarge, Text: "too many operations",
			Fields: problemOf(refuse("operations", strconv.Itoa(n), fmt.Sprintf("at most %d", s.config.MaxBatch))).Fields}
	}
	results := make([]Reply, len(q.Operations))
	lines := byEpisode(q.Operations)
	work := make(chan []int, len(lines))
	for _, l := range lines {
		work <- l
	}
	close(work)
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	if s.config.Wait {
		workers = len(lines) // most of the time they wait for injected latency
	}
	for range min(workers, len(lines)) {
		wg.Go(func() {
			for line := range work {
				for _, i := range line {
					results[i] = s.operate(ctx, &q.Operations[i])
				}
			}
		})
	}
	wg.Wait()
	return BatchResult{results}, nil
}

// byEpisode groups the indexes of operations that must keep their order.
func byEpisode(list []Operation) [][]int {
	lines := make([][]int, 0, len(list))
	at := map[string]int{}
	for i := range list {
		id := list[i].EpisodeID
		if n, ok := at[id]; ok && id != "" {
			lines[n] = append(lines[n], i)
			continue
		}
		at[id] = len(lines)
		lines = append(lines, []int{i})
	}
	return lines
}
