package travel

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/sandbox"
	"alidade/trainer"
)

func failing(kind string, seed uint64, tools map[string]float64) *Episode {
	return NewEpisode(smallWorld(), smallQuery(), EpisodeConfig{ID: 3, Failures: Failures{Rate: 1, Seed: seed, Kind: kind, Tools: tools}})
}

var birch = map[string]any{"city": "Birch"}

func TestInjectedKinds(t *testing.T) {
	clean := smallWorld().Call(ToolRestaurant, birch)
	for _, kind := range sandbox.FailureKinds()[:6] {
		t.Run(kind, func(t *testing.T) {
			for seed := range uint64(50) {
				o := failing(kind, seed, nil).Call(ToolRestaurant, birch)
				if o.Injected != kind {
					t.Fatalf("injected %q", o.Injected)
				}
				check := map[string]func(trainer.Observed) bool{
					sandbox.Unavailable: func(o trainer.Observed) bool { return strings.Contains(o.Text, "not available") && o.Rows == nil },
					sandbox.Timeout: func(o trainer.Observed) bool {
						return strings.Contains(o.Text, "timed out") && o.Rows == nil && o.LatencyMS == timeoutMS
					},
					sandbox.Truncated: func(o trainer.Observed) bool {
						n := len(o.Rows)
						return n > 0 && n < len(clean.Rows) && reflect.DeepEqual(o.Rows, clean.Rows[:n]) && strings.Contains(o.Text, "6 restaurants found")
					},
					sandbox.Stale: func(o trainer.Observed) bool {
						return len(o.Rows) == len(clean.Rows) && !reflect.DeepEqual(o.Rows, clean.Rows) && o.Text != clean.Text && o.Rows[0][0] == "Salt"
					},
					sandbox.Corrupted: func(o trainer.Observed) bool {
						return len(o.Rows) == len(clean.Rows) && !reflect.DeepEqual(o.Rows, clean.Rows) && o.Text != clean.Text
					},
					sandbox.Latency: func(o trainer.Observed) bool { return o.Text == clean.Text && o.LatencyMS >= 0 },
				}[kind]
				if !check(o) {
					t.Fatalf("seed %d gave %q, %v, %v ms", seed, o.Text, o.Rows, o.LatencyMS)
				}
			}
		})
	}
	if again := smallWorld().Call(ToolRestaurant, birch); !reflect.DeepEqual(again, clean) {
		t.Error("a spoilt answer changed the world's own list")
	}
}

func TestNothingToSpoil(t *testing.T) {
	for _, kind := range []string{sandbox.Truncated, sandbox.Stale, sandbox.Corrupted} {
		e := failing(kind, 1, nil)
		if o := e.Call(ToolRestaurant, map[string]any{"city": "Nowhere"}); o.Injected != "" || o.Error != ErrNoHits {
			t.Errorf("%s of a search without hits: %+v", kind, o)
		}
		if o := e.Call("SearchMoon", nil); o.Injected != "" {
			t.Errorf("%s of an unknown tool: %+v", kind, o)
		}
	}
	if o := failing(sandbox.Truncated, 1, nil).Call(ToolCity, map[string]any{"state": "West"}); o.Injected != "" || len(o.Rows) != 1 {
		t.Errorf("one row truncated: %+v", o)
	}
}

// TestEveryToolCanBeSpoilt renders spoilt tables of all tools.
func TestEveryToolCanBeSpoilt(t *testing.T) {
	calls := map[string]map[string]any{
		ToolFlight:        {"departure": "Alder", "destination": "Birch", "date": "2022-03-01"},
		ToolDistance:      {"departure": "Alder", "destination": "Birch"},
		ToolAccommodation: birch, ToolRestaurant: birch, ToolAttraction: birch, ToolCity: {"state": "South"},
	}
	for tool, args := range calls {
		for _, kind := range sandbox.FailureKinds() {
			for seed := range uint64(40) {
				o := failing(kind, seed, nil).Call(tool, args)
				if o.Text == "" || len(o.Rows) > 0 && len(o.Rows[0]) != len(o.Columns) {
					t.Fatalf("%s %s seed %d: %+v", tool, kind, seed, o)
				}
			}
		}
	}
}

func TestRatesByTool(t *testing.T) {
	e := failing("", 1, map[string]float64{ToolRestaurant: 0})
	if o := e.Call(ToolRestaurant, birch); o.Injected != "" {
		t.Errorf("restaurant failed at rate 0")
	}
	if o := e.Call(ToolAttraction, birch); o.Injected != sandbox.Unavailable {
		t.Errorf("attraction did not fail at rate 1")
	}
	only := NewEpisode(smallWorld(), smallQuery(), EpisodeConfig{Failures: Failures{Tools: map[string]float64{ToolCity: 1}}})
	if o := only.Call(ToolCity, map[string]any{"state": "South"}); o.Injected == "" {
		t.Errorf("a rate for one tool alone did nothing")
	}
}

func TestAccount(t *testing.T) {
	var slept time.Duration
	e := NewEpisode(smallWorld(), smallQuery(), EpisodeConfig{
		Failures: Failures{Seed: 1, Kind: sandbox.Latency, LatencyMS: 50, Tools: map[string]float64{ToolRestaurant: 1}},
		Sleep:    func(d time.Duration) { slept += d },
	})
	e.Call(ToolRestaurant, birch)
	e.Call(ToolRestaurant, birch)
	e.Call(ToolCity, map[string]any{"state": "Nowhere"})
	a := e.Account()
	if len(a) != 2 || a[0].Tool != ToolRestaurant || a[0].Calls != 2 || a[0].Injected[sandbox.Latency] != 2 || a[0].Errors != 0 || a[1].Errors != 1 || a[1].Injected != nil {
		t.Errorf("account %+v", a)
	}
	if a[0].LatencyMS != e.LatencyMS() || slept != time.Duration(a[0].LatencyMS*float64(time.Millisecond)) || slept == 0 {
		t.Errorf("latency %v, slept %v", a[0].LatencyMS, slept)
	}
	if kinds := e.InjectedKinds(); len(kinds) != 1 || kinds[sandbox.Latency] != 2 {
		t.Errorf("kinds %v", kinds)
	}
	e.Finish(Plan{}, EndTurns, "")
	if tr := e.Trajectory(); tr.ToolCalls != 3 || tr.Injected != 2 || tr.ToolErrors != 1 || tr.Turns[0].Observe.LatencyMS <= 0 {
		t.Errorf("trajectory %+v", tr)
	}
}

func TestReplayOfSpoiltAnswers(t *testing.T) {
	c := EpisodeConfig{ID: 5, Failures: Failures{Rate: 0.7, Seed: 9, Kind: sandbox.Mixed}}
	tr := playScript(t, c, ReactConfig{}, append(slices.Clone(smallScript), answerText(JSONPlan(smallPlan())))...)
	again, err := Replay(smallWorld(), smallQuery(), c, tr)
	if err != nil || !reflect.DeepEqual(again, tr) {
		t.Errorf("replay differs: %v", err)
	}
}

func TestConfigOfRecipe(t *testing.T) {
	r, _ := ablation.PresetNamed("solver")
	r.Environment.ToolFailureRate, r.Environment.FailureKind = 0.1, sandbox.Stale
	r.Environment.FailureRates = map[string]string{ToolFlight: "0.5"}
	r.Environment.Answer = "strict"
	r.Reward.Milestones = map[string]string{"hotels": "0.25"}
	if err := r.Validate(); err != nil {
		t.Fatal(err)
	}
	c, err := ConfigOf(r, 11)
	want := Failures{Rate: 0.1, Seed: 11, Kind: sandbox.Stale, Tools: map[string]float64{ToolFlight: 0.5}}
	if err != nil || !reflect.DeepEqual(c.Failures, want) || c.Profile != Strict || c.MaxTurns != 60 || c.Milestones["hotels"] != 0.25 {
		t.Errorf("config %+v, %v", c, err)
	}
	if rc := ReactOf(r); !rc.StrictPlan || rc.MaxContext != 32768 {
		t.Errorf("react %+v", rc)
	}
	r.Environment.FailureRates = map[string]string{"SearchMoon": "0.5"}
	if err := r.Validate(); err == nil || !strings.Contains(err.Error(), "environment.failure_rates.SearchMoon") {
		t.Errorf("Validate = %v", err)
	}
	if _, err := ConfigOf(r, 1); err == nil {
		t.Error("a rate for an unknown tool was taken")
	}
}
