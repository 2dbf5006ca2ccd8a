package dataset

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"alidade/sandbox/travel"
	"alidade/sandbox/travel/synth"
)

// traceLine is one conversation for supervised fine-tuning: messages, which
// trainers read, and what one may want to filter by.
type traceLine struct {
	Messages  []travel.Message `json:"messages"`
	TaskID    string           `json:"task_id"`
	Level     string           `json:"level"`
	Style     string           `json:"style"`
	Success   bool             `json:"success"`
	Reward    float64          `json:"reward"`
	ToolCalls int              `json:"tool_calls"`
	Tokens    int              `json:"tokens"` // estimated unless counted
	Quality   synth.Quality    `json:"quality"`
}

func lineOf(t *synth.Trace) traceLine {
	return traceLine{Messages: t.Messages, TaskID: t.Query.Hash(), Level: t.Query.Level, Style: t.Trajectory.Labels["style"],
		Success: t.Trajectory.Success, Reward: t.Trajectory.Reward, ToolCalls: t.Trajectory.ToolCalls, Tokens: t.Trajectory.Tokens, Quality: t.Quality}
}

type traceRow struct {
	Messages  []message `parquet:"messages,list"`
	TaskID    string    `parquet:"task_id"`
	Level     string    `parquet:"level"`
	Style     string    `parquet:"style"`
	Success   bool      `parquet:"success"`
	Reward    float64   `parquet:"reward"`
	ToolCalls int64     `parquet:"tool_calls"`
	Tokens    int64     `parquet:"tokens"`
	Quality   float64   `parquet:"quality"`
}

// WriteTraces writes expert traces as chat messages for supervised
// fine-tuning: JSONL, or Parquet when the file's name says so.
func WriteTraces(path string, traces []synth.Trace) error {
	return WriteFile(path, func(w io.Writer) error {
		if strings.EqualFold(filepath.Ext(path), ".parquet") {
			return writeTraceRows(w, traces)
		}
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		for i := range traces {
			if err := enc.Encode(lineOf(&traces[i])); err != nil {
				return fmt.Errorf("write trace %d: %w", i+1, err)
			}
		}
		return nil
	})
}

func writeTraceRows(w io.Writer, traces []synth.Trace) error {
	rows := make([]traceRow, len(traces))
	for i := range traces {
		l := lineOf(&traces[i])
		messages := make([]message, len(l.Messages))
		for k, m := range l.Messages {
			messages[k] = message(m)
		}
		rows[i] = traceRow{messages, l.TaskID, l.Level, l.Style, l.Success, l.Reward, int64(l.ToolCalls), int64(l.Tokens), l.Quality.Score}
	}
	return writeParquet(w, rows)
}
