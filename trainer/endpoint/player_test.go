package endpoint

import (
	"errors"
	"net/http"
	"testing"

	"alidade/ablation"
	"alidade/sandbox/travel"
	"alidade/trainer/endpoint/endpointtest"
)

// TestPlayer plays episodes that others have opened, in both forms, against
// addresses that it is told one by one.
func TestPlayer(t *testing.T) {
	for _, form := range []string{"react", "tools"} {
		t.Run(form, func(t *testing.T) {
			r, _ := ablation.PresetNamed("endpoint")
			r.Environment.Cities, r.Environment.Days, r.Evaluation.Queries, r.Environment.Form = 20, 3, 6, form
			world, queries, err := Queries(t.Context(), r, "")
			if err != nil {
				t.Fatal(err)
			}
			f := endpointtest.New(t, world, queries, "vllm", form == "react")
			p := NewPlayer(r, ablation.Endpoint{Temperature: -1, TimeoutS: 5})
			defer p.Close()
			passed := 0
			for i, q := range queries {
				e := travel.NewEpisode(world.World, q, travel.EpisodeConfig{ID: uint64(i), MaxTurns: r.Environment.MaxTurns})
				got, err := p.Play(t.Context(), f.URL+"/sessions/u:0/v1", "m", e)
				if err != nil {
					t.Fatal(err)
				}
				if got.Labels["model"] != "m" || got.Generated == 0 || len(got.Turns) == 0 {
					t.Errorf("query %d: model %q, %d tokens, %d turns", i, got.Labels["model"], got.Generated, len(got.Turns))
				}
				if got.Success {
					passed++
				}
			}
			if want := endpointtest.Solved(len(queries)); passed != want {
				t.Errorf("%d of %d queries passed, want %d", passed, len(queries), want)
			}
		})
	}
}

// TestPlayerAway tells a server that is not there from one that refuses.
func TestPlayerAway(t *testing.T) {
	r, _ := ablation.PresetNamed("endpoint")
	r.Environment.Cities, r.Environment.Days, r.Evaluation.Queries = 20, 3, 1
	world, queries, err := Queries(t.Context(), r, "")
	if err != nil {
		t.Fatal(err)
	}
	p := NewPlayer(r, ablation.Endpoint{Temperature: -1, TimeoutS: 5})
	play := func(status int) error {
		f := endpointtest.New(t, world, queries, "vllm", true)
		f.Trouble = func(_ int, _ *http.Request, w http.ResponseWriter, _ string, _ int) bool {
			http.Error(w, "no", status)
			return true
		}
		_, err := p.Play(t.Context(), f.URL+"/v1", "m", travel.NewEpisode(world.World, queries[0], travel.EpisodeConfig{}))
		return err
	}
	if err := play(http.StatusServiceUnavailable); !errors.Is(err, ErrAway) {
		t.Errorf("503: %v, want it to be away", err)
	}
	if err := play(http.StatusNotFound); err == nil || errors.Is(err, ErrAway) {
		t.Errorf("404: %v, want an error that is not an absence", err)
	}
}
