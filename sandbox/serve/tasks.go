package serve

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"alidade/ablation"
	"alidade/sandbox/travel"
)

// Task is a query that episodes can be made for.
type Task struct {
	ID    string
	Query travel.Query
}

// Tasks are the tasks by split: train, eval, …
type Tasks map[string][]Task

// TasksOf numbers queries: the first is "0".
func TasksOf(queries []travel.Query) []Task {
	list := make([]Task, len(queries))
	for i, q := range queries {
		list[i] = Task{strconv.Itoa(i), q}
	}
	return list
}

// LoadTasks reads a JSONL file of queries in the benchmark's form. The id of
// a task is the line's query_id or idx, else its line number.
func LoadTasks(path string) ([]Task, error) {
	lines, err := travel.LoadQueryLines(path)
	if err != nil {
		return nil, err
	}
	list := make([]Task, len(lines))
	for i, l := range lines {
		list[i] = Task{l.ID, l.Query}
	}
	return list, nil
}

// task is a Task with what is the same for all its episodes.
type task struct {
	Task
	split string
	key   uint64 // of split and id, for seeded draws
	hash  string
}

// catalogue finds tasks.
type catalogue struct {
	splits []string // sorted
	bySpl  map[string]map[string]*task
	lists  map[string][]*task
	total  int
}

func newCatalogue(tasks Tasks) (*catalogue, error) {
	c := &catalogue{splits: slices.Sorted(maps.Keys(tasks)), bySpl: map[string]map[string]*task{}, lists: map[string][]*task{}}
	for _, split := range c.splits {
		byID := make(map[string]*task, len(tasks[split]))
		for _, t := range tasks[split] {
			if t.ID == "" {
				return nil, fmt.Errorf("split %q has a task without an id", split)
			}
			if byID[t.ID] != nil {
				return nil, fmt.Errorf("split %q has task %q twice", split, t.ID)
			}
			byID[t.ID] = &task{Task: t, split: split, key: taskKey(split, t.ID), hash: t.Query.Hash()}
			c.lists[split] = append(c.lists[split], byID[t.ID])
		}
		c.bySpl[split] = byID
		c.total += len(byID)
	}
	if c.total == 0 {
		return nil, fmt.Errorf("there are no tasks, at least one is needed")
	}
	return c, nil
}

// taskKey is FNV-1a, which is the same in every process.
func taskKey(parts ...string) uint64 {
	h := uint64(14695981039346656037)
	for _, p := range parts {
		for i := range len(p) {
			h = (h ^ uint64(p[i])) * 1099511628211
		}
		h = (h ^ 0xff) * 1099511628211
	}
	return h
}

// find returns the task of a split; without a split the id must stand in one
// split only.
func (c *catalogue) find(split, id string) (*task, error) {
	if split != "" {
		byID, ok := c.bySpl[split]
		if !ok {
			return nil, refuse("split", split, strings.Join(c.splits, ", "))
		}
		if t := byID[id]; t != nil {
			return t, nil
		}
		return nil, refuse("task_id", id, fmt.Sprintf("one of the %d tasks of split %s, see GET /env/tasks", len(byID), split))
	}
	var found []*task
	for _, s := range c.splits {
		if t := c.bySpl[s][id]; t != nil {
			found = append(found, t)
		}
	}
	switch len(found) {
	case 0:
		return nil, refuse("task_id", id, fmt.Sprintf("one of the %d tasks, see GET /env/tasks", c.total))
	case 1:
		return found[0], nil
	}
	names := make([]string, len(found))
	for i, t := range found {
		names[i] = t.split
	}
	return nil, refuse("split", "", "task "+id+" stands in several splits, name one: "+strings.Join(names, ", "))
}

// TasksRequest pages through the tasks.
type TasksRequest struct {
	Split  string `json:"split,omitempty" help:"tasks of this split only"`
	Offset int    `json:"offset,omitempty" help:"tasks to skip"`
	Limit  int    `json:"limit,omitempty" help:"tasks to return, 1 to 1000; 100 unless set"`
}

// TasksResult is one page of tasks.
type TasksResult struct {
	Splits map[string]int `json:"splits" help:"number of tasks by split"`
	Total  int            `json:"total" help:"tasks that the request selects"`
	Tasks  []TaskInfo     `json:"tasks"`
}

// TaskInfo describes a task.
type TaskInfo struct {
	TaskID string   `json:"task_id"`
	Split  string   `json:"split"`
	Hash   string   `json:"hash" help:"16 hex digits over what is asked for, whatever the wording"`
	Level  string   `json:"level"`
	Text   string   `json:"text" help:"the request as the policy reads it"`
	Org    string   `json:"org"`
	Dest   string   `json:"dest"`
	Days   int      `json:"days"`
	Dates  []string `json:"dates"`
	People int      `json:"people"`
	Budget float64  `json:"budget" help:"$"`
}

func (s *Server) tasks(_ context.Context, _ string, q TasksRequest) (TasksResult, error) {
	var bad []ablation.FieldError
	if q.Limit == 0 {
		q.Limit = 100
	}
	if q.Limit < 1 || q.Limit > 1000 {
		bad = append(bad, fieldError("limit", strconv.Itoa(q.Limit), "1 to 1000"))
	}
	if q.Offset < 0 {
		bad = append(bad, fieldError("offset", strconv.Itoa(q.Offset), "0 or more"))
	}
	splits := s.catalogue.splits
	if q.Split != "" {
		if _, ok := s.catalogue.bySpl[q.Split]; !ok {
			bad = append(bad, fieldError("split", q.Split, strings.Join(splits, ", ")))
		}
		splits = []string{q.Split}
	}
	if len(bad) > 0 {
		return TasksResult{}, &ablation.Invalid{Fields: bad}
	}
	r := TasksResult{Splits: map[string]int{}, Tasks: []TaskInfo{}}
	for _, name := range s.catalogue.splits {
		r.Splits[name] = len(s.catalogue.lists[name])
	}
	for _, name := range splits {
		list := s.catalogue.lists[name]
		for _, t := range list[min(max(q.Offset-r.Total, 0), len(list)):] {
			if len(r.Tasks) == q.Limit {
				break
			}
			r.Tasks = append(r.Tasks, t.info())
		}
		r.Total += len(list)
	}
	return r, nil
}

func (t *task) info() TaskInfo {
	q := &t.Query
	return TaskInfo{TaskID: t.ID, Split: t.split, Hash: t.hash, Level: q.Level, Text: q.Text, Org: q.Org, Dest: q.Dest,
		Days: q.Days, Dates: append([]string{}, q.Dates...), People: q.People, Budget: q.Budget}
}
