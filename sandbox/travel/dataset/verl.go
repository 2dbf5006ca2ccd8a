package dataset

import "io"

// VerlTask is one row for verl whose prompt is written already, with what the
// tools and the reward need to find the task in the environment server.
type VerlTask struct {
	TaskID string
	Split  string
	Level  string
	Hash   string // of the query
	Agent  string // name of verl's agent loop
	Prompt []PromptMessage
}

// PromptMessage is one chat message of a prompt.
type PromptMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type taskRow struct {
	DataSource  string      `parquet:"data_source"`
	Prompt      []message   `parquet:"prompt,list"`
	Ability     string      `parquet:"ability"`
	AgentName   string      `parquet:"agent_name"`
	RewardModel rewardModel `parquet:"reward_model"`
	Extra       taskExtra   `parquet:"extra_info"`
}

type taskExtra struct {
	Split    string    `parquet:"split"`
	Index    int64     `parquet:"index"`
	TaskID   string    `parquet:"task_id"` // in its split
	Hash     string    `parquet:"query_hash"`
	Level    string    `parquet:"level"`
	NeedArgs bool      `parquet:"need_tools_kwargs"`
	Tools    taskTools `parquet:"tools_kwargs"`
}

type taskTools struct {
	Flight        taskTool `parquet:"SearchFlight"`
	Distance      taskTool `parquet:"GoogleDistanceMatrix"`
	Accommodation taskTool `parquet:"SearchAccommodation"`
	Restaurant    taskTool `parquet:"SearchRestaurant"`
	Attraction    taskTool `parquet:"SearchAttraction"`
	City          taskTool `parquet:"SearchCity"`
}

type taskTool struct {
	Create taskCreate `parquet:"create_kwargs"`
}

type taskCreate struct {
	TaskID string `parquet:"task_id"`
	Split  string `parquet:"split"`
}

// WriteVerlTasks writes Parquet for verl's agents from prompts that are made
// already. The ground truth is the hash of the query: the environment server
// judges, not the trainer.
func WriteVerlTasks(w io.Writer, tasks []VerlTask) error {
	rows := make([]taskRow, len(tasks))
	for i := range tasks {
		t := &tasks[i]
		prompt := make([]message, len(t.Prompt))
		for k, m := range t.Prompt {
			prompt[k] = message(m)
		}
		id := taskTool{taskCreate{t.TaskID, t.Split}}
		rows[i] = taskRow{
			DataSource: DataSource, Prompt: prompt, Ability: "travel-planning", AgentName: t.Agent, RewardModel: rewardModel{"rule", t.Hash},
			Extra: taskExtra{Split: t.Split, Index: int64(i), TaskID: t.TaskID, Hash: t.Hash, Level: t.Level, NeedArgs: true, Tools: taskTools{id, id, id, id, id, id}},
		}
	}
	return writeParquet(w, rows)
}
