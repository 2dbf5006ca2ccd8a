package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"alidade/sandbox/travel"
	"alidade/sandbox/travel/dataset"
)

// alidade runs the program and returns what it wrote.
func alidade(t *testing.T, args ...string) (out, log string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c := command()
	c.SetArgs(args)
	c.SetOut(&stdout)
	c.SetErr(&stderr)
	err = c.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func must(t *testing.T, args ...string) (out, log string) {
	t.Helper()
	out, log, err := alidade(t, args...)
	if err != nil {
		t.Fatalf("alidade %s: %v\n%s%s", strings.Join(args, " "), err, out, log)
	}
	return out, log
}

// TestTravelFromWorldToVerdicts goes the whole way through files.
func TestTravelFromWorldToVerdicts(t *testing.T) {
	t.Setenv("ALIDADE_CACHE", t.TempDir())
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	out, _ := must(t, "travel", "world", "--cities", "24", "--out", in("db"))
	if !strings.Contains(out, "cities         24 in 4 states") || !strings.Contains(out, "and kept as") {
		t.Errorf("world says\n%s", out)
	}
	if out, _ = must(t, "travel", "world", "--cities", "24"); !strings.Contains(out, "mapped in") {
		t.Errorf("the second time it says\n%s", out)
	}
	world := []string{"--db", in("db")}
	_, log := must(t, append([]string{"travel", "synth", "--n", "12", "--seed", "3", "--plans", "--reference-information", "--out", in("q.jsonl"),
		"--card", in("card.json"), "--traces", in("traces.jsonl"), "--samples", "2", "--top-share", "0.5", "--style", "reactive", "--failure-rate", "0.1"}, world...)...)
	if !strings.Contains(log, "12 queries in") || !strings.Contains(log, "12 traces of 24") {
		t.Errorf("synth says %s", log)
	}
	lines, err := dataset.Read(in("q.jsonl"))
	if err != nil || len(lines) != 12 || !lines[0].Plan.Delivered() {
		t.Fatalf("%d queries, %v", len(lines), err)
	}
	card, err := os.ReadFile(in("card.md"))
	if err != nil || !strings.Contains(string(card), "12 travel queries in a real world of 24 cities") {
		t.Errorf("card %s, %v", card, err)
	}
	out, _ = must(t, append([]string{"travel", "solve", "--queries", in("q.jsonl"), "--out", in("plans.jsonl")}, world...)...)
	if !strings.Contains(out, "12 of 12 solved") {
		t.Errorf("solve says\n%s", out)
	}
	must(t, "travel", "score", "--db", in("db"), "--queries", in("q.jsonl"), "--plans", in("plans.jsonl"), "--profile", "official", "--out", in("v.jsonl"), "--metrics", in("m.json"))
	verdicts, err := os.ReadFile(in("v.jsonl"))
	if err != nil || bytes.Count(verdicts, []byte(`"final_pass":true`)) != 12 {
		t.Errorf("verdicts %s, %v", verdicts, err)
	}
	must(t, "travel", "convert", "--in", in("q.jsonl"), "--out", in("q.parquet"), "--form", "trl", "--split", "train")
	if again, err := dataset.Read(in("q.parquet")); err != nil || len(again) != 12 || again[3].Query.Hash() != lines[3].Query.Hash() {
		t.Errorf("through Parquet: %d, %v", len(again), err)
	}
	must(t, append([]string{"travel", "synth", "--n", "5", "--seed", "3", "--exclude", in("q.jsonl"), "--out", in("more.jsonl"), "--form", "star", "--sampler", "travelplanner", "--certify=false"}, world...)...)
	more, err := dataset.Read(in("more.jsonl"))
	if err != nil || len(more) != 5 || more[0].Model != "template" {
		t.Errorf("more: %+v, %v", more, err)
	}
}

func TestTravelErrorsNameTheFlag(t *testing.T) {
	t.Setenv("ALIDADE_CACHE", "off")
	for _, c := range []struct{ args, want string }{
		{"world --db nowhere", "--db: tables:"},
		{"world --cities 2", "--cities: cities 2: want a number from 4 to 312"},
		{"world --size huge", `--size is "huge", must be nano, small, medium or full`},
		{"world --flights july", `--flights is "july"`},
		{"world --reference x", "--states is empty"},
		{"world --db a --reference b", "--db and --reference are both set"},
		{"synth --mix 1:2", "--mix: mix"},
		{"synth --n 0", "--n is 0, must be at least 1"},
		{"synth --days 4", "--days is 4"},
		{"synth --budget-factor -1", "--budget-factor is -1"},
		{"synth --sampler best", `--sampler is "best"`},
		{"synth --split dev", `--split is "dev", must be one of train, validation, test`},
		{"synth --split a --splits a", "--splits are"},
		{"synth --exclude none.jsonl", "--exclude:"},
		{"synth --style wild", "style"},
		{"synth --certify=false --traces t", "--certify is false"},
		{"synth --translate http://x", "--models is empty"},
		{"synth --cities 12 --n 1 --form csv", "--out: form is \"csv\""},
		{"solve --queries none.jsonl --cities 12", "--queries:"},
		{"play --index 0 --cities 12", "--index is 0"},
		{"play --queries none.jsonl --cities 12", "--queries:"},
		{"score --db d --queries q --plans p --out o --profile soft", `--profile is "soft"`},
		{"convert --in none.jsonl", "--in:"},
		{"serve --queries none.jsonl", "--queries:"},
		{"serve --queries q --reward BEST", `--reward: reward kind is "BEST"`},
		{"serve --queries q --reward CURRICULUM --stages 2", "--stages:"},
		{"serve --queries q --reward WEIGHTED --weights joy=1", "--weights:"},
		{"serve --queries q --failure-rate 2", "--failure-rate"},
		{"serve --queries q --tool-failure-rate SearchFlight", "--tool-failure-rate is"},
		{"serve --queries q --profile soft", `--profile is "soft"`},
		{"serve --queries q --token-file none", "--token-file:"},
	} {
		_, _, err := alidade(t, append([]string{"travel"}, strings.Fields(c.args)...)...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("alidade travel %s: %v, want …%s…", c.args, err, c.want)
		}
	}
}

func TestTravelSynthTranslates(t *testing.T) {
	t.Setenv("TRAVEL_TEST_KEY", "secret")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Messages []travel.Message }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("request %v, %v", r.Header, err)
		}
		parts := strings.Split(body.Messages[len(body.Messages)-1].Content, "\n")
		_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": map[string]any{"content": "Dear planner! " + parts[len(parts)-1]}}}})
	}))
	defer srv.Close()
	path := filepath.Join(t.TempDir(), "q.jsonl")
	must(t, "travel", "synth", "--cities", "20", "--n", "6", "--cache", "off", "--form", "star", "--translate", srv.URL, "--models", "m", "--key-env", "TRAVEL_TEST_KEY", "--out", path)
	lines, err := dataset.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		if l.Model != "m" || !strings.HasPrefix(l.Query.Text, "Dear planner! ") {
			t.Errorf("query %+v", l)
		}
	}
}

// TestTravelServe starts the server on a free port and plays an episode.
func TestTravelServe(t *testing.T) {
	t.Setenv("ALIDADE_TOKEN", "secret")
	path := filepath.Join(t.TempDir(), "q.jsonl")
	must(t, "travel", "synth", "--cities", "20", "--n", "3", "--cache", "off", "--out", path)
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	c := command()
	c.SetArgs([]string{"travel", "serve", "--cities", "20", "--cache", "off", "--queries", "train=" + path, "--addr", "127.0.0.1:0"})
	c.SetOut(w)
	c.SetErr(io.Discard)
	done := make(chan error, 1)
	go func() { done <- c.ExecuteContext(ctx) }()
	first := make([]byte, 200)
	n, err := r.Read(first)
	if err != nil {
		t.Fatal(err)
	}
	addr := strings.TrimSpace(strings.TrimPrefix(string(first[:n]), "serving episodes on "))
	go func() { _, _ = io.Copy(io.Discard, r) }()
	post := func(route, body string) string {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+route, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer secret")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		src, _ := io.ReadAll(resp.Body)
		return string(src)
	}
	lines, err := dataset.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	made := post("/env/episodes", `{"task_id": "`+lines[1].ID+`"}`)
	if !strings.Contains(made, "SearchFlight") {
		t.Errorf("made %s", made)
	}
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("serve ends with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("serve goes on after its end")
	}
}

func TestTravelPlay(t *testing.T) {
	c := command()
	c.SetArgs([]string{"travel", "play", "--cities", "20", "--cache", "off"})
	c.SetIn(strings.NewReader("query\nplan\njudge\nquit\n"))
	var out bytes.Buffer
	c.SetOut(&out)
	if err := c.ExecuteContext(t.Context()); err != nil || !strings.Contains(out.String(), "Tools (arguments separated") || !strings.Contains(out.String(), "strict   fails") {
		t.Errorf("play: %v\n%s", err, out.String())
	}
}
