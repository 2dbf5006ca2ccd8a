package travel

import (
	"alidade/sandbox"
	"alidade/trainer"
)

const (
	ToolFlight        = "SearchFlight"
	ToolDistance      = "GoogleDistanceMatrix"
	ToolAccommodation = "SearchAccommodation"
	ToolRestaurant    = "SearchRestaurant"
	ToolAttraction    = "SearchAttraction"
	ToolCity          = "SearchCity"
)

type ToolParam struct {
	Name, Help string
	Enum       []string
}
type ToolSpec struct {
	Name, Help string
	Params     []ToolParam
}

func ToolSpecs() []ToolSpec { return nil }

type Result struct {
	Text    string
	Columns []string
	Rows    [][]string
	Err     string
}

func (w *World) Call(tool string, args map[string]any) Result { return Result{} }

func ParsePlan(answer string) (Plan, error) { return Plan{}, nil }

func Score(kind string, stages []float64, progress float64, j Judgement, formatError bool) (float64, []trainer.Component) {
	return 0, nil
}

type Failures = sandbox.Failures

type EpisodeConfig struct {
	Failures Failures
	ID       uint64 // the episode's number for failure injection
	MaxTurns int
	Profile  Profile
}
type Episode struct{}

func NewEpisode(w *World, q Query, c EpisodeConfig) *Episode              { return &Episode{} }
func (e *Episode) Call(tool string, args map[string]any) trainer.Observed { return trainer.Observed{} }
func (e *Episode) Finish(p Plan, end string, formatError string)          {}
func (e *Episode) Judgement() Judgement                                   { return Judgement{} }
func (e *Episode) Trajectory() trainer.Trajectory                         { return trainer.Trajectory{} }
