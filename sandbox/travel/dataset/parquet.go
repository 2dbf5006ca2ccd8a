package dataset

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"alidade/sandbox/travel"

	"github.com/parquet-go/parquet-go"
)

// DataSource is the data_source of rows for verl, by which a reward function
// is found.
const DataSource = "alidade/travel"

type message struct {
	Role    string `parquet:"role"`
	Content string `parquet:"content"`
}

// verlRow is a row as verl reads it: the prompt as chat messages, the ground
// truth for the reward function, and what tools need to find the task.
type verlRow struct {
	DataSource  string      `parquet:"data_source"`
	Prompt      []message   `parquet:"prompt,list"`
	Ability     string      `parquet:"ability"`
	AgentName   string      `parquet:"agent_name"`
	RewardModel rewardModel `parquet:"reward_model"`
	Extra       verlExtra   `parquet:"extra_info"`
}

type rewardModel struct {
	Style       string `parquet:"style"`
	GroundTruth string `parquet:"ground_truth"` // the query's record as JSON
}

type verlExtra struct {
	Split    string     `parquet:"split"`
	Index    int64      `parquet:"index"`
	TaskID   string     `parquet:"task_id"` // hash of the query
	Level    string     `parquet:"level"`
	Days     int64      `parquet:"days"`
	NeedArgs bool       `parquet:"need_tools_kwargs"`
	Tools    toolsExtra `parquet:"tools_kwargs"`
}

type toolsExtra struct {
	Flight        toolExtra `parquet:"SearchFlight"`
	Distance      toolExtra `parquet:"GoogleDistanceMatrix"`
	Accommodation toolExtra `parquet:"SearchAccommodation"`
	Restaurant    toolExtra `parquet:"SearchRestaurant"`
	Attraction    toolExtra `parquet:"SearchAttraction"`
	City          toolExtra `parquet:"SearchCity"`
}

type toolExtra struct {
	Create createExtra `parquet:"create_kwargs"`
}

type createExtra struct {
	TaskID string `parquet:"task_id"`
}

// trlRow is a row as TRL's trainers read it: a conversational prompt and
// columns that reach the environment's reset and the reward function.
type trlRow struct {
	Prompt []message `parquet:"prompt,list"`
	TaskID string    `parquet:"task_id"`
	Query  string    `parquet:"query"` // the query's record as JSON
	Level  string    `parquet:"level"`
	Days   int64     `parquet:"days"`
	Budget float64   `parquet:"budget"`
	Split  string    `parquet:"split"`
}

// Rows says how rows for trainers are made.
type Rows struct {
	Split string // name of the set, "train"
	Tools bool   // the system prompt for native tool calls instead of the text form
}

func (o Rows) prompt(q *travel.Query) []message {
	system := travel.SystemPrompt()
	if o.Tools {
		system = travel.SystemPromptTools()
	}
	return []message{{"system", system}, {"user", q.Text}}
}

// WriteVerl writes Parquet for verl.
func WriteVerl(w io.Writer, lines []travel.QueryLine, o Rows) error {
	return writeRows(w, lines, func(i int, l *travel.QueryLine, record string) verlRow {
		q := &l.Query
		id := toolExtra{createExtra{q.Hash()}}
		return verlRow{
			DataSource: DataSource, Prompt: o.prompt(q), Ability: "travel-planning", AgentName: "tool_agent",
			RewardModel: rewardModel{"rule", record},
			Extra: verlExtra{Split: o.Split, Index: int64(i), TaskID: q.Hash(), Level: q.Level, Days: int64(q.Days), NeedArgs: true,
				Tools: toolsExtra{id, id, id, id, id, id}},
		}
	})
}

// WriteTRL writes Parquet for TRL.
func WriteTRL(w io.Writer, lines []travel.QueryLine, o Rows) error {
	return writeRows(w, lines, func(_ int, l *travel.QueryLine, record string) trlRow {
		q := &l.Query
		return trlRow{Prompt: o.prompt(q), TaskID: q.Hash(), Query: record, Level: q.Level, Days: int64(q.Days), Budget: q.Budget, Split: o.Split}
	})
}

func writeRows[T any](w io.Writer, lines []travel.QueryLine, row func(i int, l *travel.QueryLine, record string) T) error {
	rows := make([]T, len(lines))
	for i := range lines {
		l := travel.QueryLine{ID: lines[i].ID, Query: lines[i].Query, Model: lines[i].Model} // the plan is not for trainers
		record, err := json.Marshal(l)
		if err != nil {
			return err
		}
		rows[i] = row(i, &l, string(record))
	}
	return writeParquet(w, rows)
}

func writeParquet[T any](w io.Writer, rows []T) error {
	out := parquet.NewGenericWriter[T](w, parquet.Compression(&parquet.Zstd))
	if _, err := out.Write(rows); err != nil {
		return fmt.Errorf("write parquet: %w", err)
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("write parquet: %w", err)
	}
	return nil
}

var errNoQueries = errors.New("the file has neither verl's column reward_model.ground_truth nor TRL's column query")

// readParquet reads the queries of a file that WriteVerl or WriteTRL wrote.
func readParquet(path string) (lines []travel.QueryLine, err error) {
	defer func() {
		if p := recover(); p != nil { // the library panics on some damaged files
			lines, err = nil, fmt.Errorf("%s: damaged: %v", path, p)
		}
	}()
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	file, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var records []string
	switch {
	case hasColumn(file, "reward_model", "ground_truth"):
		type row struct {
			RewardModel rewardModel `parquet:"reward_model"`
		}
		rows, err := parquet.Read[row](f, info.Size())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, r := range rows {
			records = append(records, r.RewardModel.GroundTruth)
		}
	case hasColumn(file, "query"):
		type row struct {
			Query string `parquet:"query"`
		}
		rows, err := parquet.Read[row](f, info.Size())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, r := range rows {
			records = append(records, r.Query)
		}
	default:
		return nil, fmt.Errorf("%s: %w", path, errNoQueries)
	}
	for i, r := range records {
		var l travel.QueryLine
		if err := json.Unmarshal([]byte(r), &l); err != nil {
			return nil, fmt.Errorf("%s: row %d: %w", path, i, err)
		}
		lines = append(lines, l)
	}
	return lines, nil
}

func hasColumn(f *parquet.File, path ...string) bool {
	_, ok := f.Schema().Lookup(path...)
	return ok
}
