package llamafactory

import (
	"bytes"
	"encoding/json"

	"alidade/trainer/native"
)

// LogSource follows LLaMA-Factory's trainer_log.jsonl.
func LogSource(path string) native.Source { return &logSource{tail: native.Tail{Path: path}} }

type logSource struct {
	tail  native.Tail
	total int64
}

func (l *logSource) Name() string { return "trainer log" }

func (l *logSource) Poll(last bool, emit func(native.Reading)) error {
	return l.tail.Lines(last, func(line []byte) {
		if len(bytes.TrimSpace(line)) == 0 {
			return
		}
		step, total, values, err := ParseLog(line)
		if err != nil {
			emit(native.Reading{Bad: 1})
			return
		}
		if total > 0 && total != l.total {
			l.total = total
			emit(native.Reading{Total: total})
		}
		if len(values) > 0 {
			emit(native.Reading{Step: step, Values: values})
		}
	})
}

// counted are the keys of a log line that say where it stands.
var counted = map[string]bool{"current_steps": true, "total_steps": true, "percentage": true}

// ParseLog reads one line of trainer_log.jsonl.
func ParseLog(line []byte) (step, total int64, values map[string]float64, err error) {
	var raw map[string]any
	if err := json.Unmarshal(line, &raw); err != nil {
		return 0, 0, nil, err
	}
	values = map[string]float64{}
	for key, v := range raw {
		f, ok := v.(float64)
		if !ok {
			continue // times are texts
		}
		switch key {
		case "current_steps":
			step = int64(f)
		case "total_steps":
			total = int64(f)
		}
		if !counted[key] {
			values[key] = f
		}
	}
	return step, total, values, nil
}
