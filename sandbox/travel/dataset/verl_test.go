package dataset_test

import (
	"bytes"
	"os"
	"testing"

	"alidade/sandbox/travel/dataset"

	"github.com/parquet-go/parquet-go"
)

func TestWriteVerlTasks(t *testing.T) {
	var b bytes.Buffer
	tasks := []dataset.VerlTask{
		{TaskID: "0", Split: "train", Level: "easy", Hash: "h0", Agent: "tool_agent", Prompt: []dataset.PromptMessage{{Role: "system", Content: "Plan."}, {Role: "user", Content: "Reise nach Zürich"}}},
		{TaskID: "1", Split: "train", Level: "hard", Hash: "h1", Agent: "tool_agent", Prompt: []dataset.PromptMessage{{Role: "user", Content: "x"}}},
	}
	if err := dataset.WriteVerlTasks(&b, tasks); err != nil {
		t.Fatal(err)
	}
	if path := os.Getenv("ALIDADE_KEEP_PARQUET"); path != "" { // to look at it with another reader
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	type message struct {
		Role    string `parquet:"role"`
		Content string `parquet:"content"`
	}
	type create struct {
		TaskID string `parquet:"task_id"`
		Split  string `parquet:"split"`
	}
	type tool struct {
		Create create `parquet:"create_kwargs"`
	}
	type row struct {
		DataSource  string    `parquet:"data_source"`
		Prompt      []message `parquet:"prompt,list"`
		AgentName   string    `parquet:"agent_name"`
		RewardModel struct {
			Truth string `parquet:"ground_truth"`
		} `parquet:"reward_model"`
		Extra struct {
			TaskID string `parquet:"task_id"`
			Split  string `parquet:"split"`
			Index  int64  `parquet:"index"`
			Tools  struct {
				Flight tool `parquet:"SearchFlight"`
				City   tool `parquet:"SearchCity"`
			} `parquet:"tools_kwargs"`
		} `parquet:"extra_info"`
	}
	rows, err := parquet.Read[row](bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 2 || len(rows[0].Prompt) != 2 || rows[0].Prompt[1].Content != "Reise nach Zürich" || rows[1].Extra.Index != 1 {
		t.Fatalf("rows %+v", rows)
	}
	for i, r := range rows {
		for _, x := range []tool{r.Extra.Tools.Flight, r.Extra.Tools.City} {
			if x.Create.TaskID != tasks[i].TaskID || x.Create.Split != "train" {
				t.Errorf("row %d: a tool finds task %+v", i, x)
			}
		}
		if r.DataSource != dataset.DataSource || r.AgentName != "tool_agent" || r.RewardModel.Truth != tasks[i].Hash || r.Extra.TaskID != tasks[i].TaskID {
			t.Errorf("row %d: %+v", i, r)
		}
	}
}
