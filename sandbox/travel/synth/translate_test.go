package synth

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"alidade/sandbox/travel"
)

func translated(t *testing.T, replies ...any) (Translation, []string) {
	t.Helper()
	var prompts []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Model    string
			Messages []travel.Message
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer secret" || body.Model != "m" {
			t.Errorf("request %s %v %+v, %v", r.URL.Path, r.Header, body, err)
		}
		prompts = append(prompts, body.Messages[len(body.Messages)-1].Content)
		reply := replies[0]
		if len(replies) > 1 {
			replies = replies[1:]
		}
		if status, ok := reply.(int); ok {
			http.Error(w, "no", status)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": map[string]any{"role": "assistant", "content": reply}}}})
	}))
	defer srv.Close()
	tr := Translator{Endpoint: srv.URL + "/v1/", Models: []string{"m"}, Key: "secret", Tries: 4, wait: func(context.Context, time.Duration) error { return nil }}
	got, err := tr.Translate(t.Context(), translateQuery())
	if err != nil {
		t.Fatal(err)
	}
	return got, prompts
}

func translateQuery() travel.Query {
	return travel.Query{Org: "Reno", Dest: "Tampa", Days: 3, Cities: 1, Dates: []string{"2022-03-01", "2022-03-02", "2022-03-03"}, People: 2,
		Wish: travel.Constraints{Cuisine: []string{"French"}}, Budget: 1500, Level: "medium"}
}

const goodRequest = "Two of us want a 3-day trip from Reno to Tampa, 1 to 3 March 2022, we are 2 people, with French food, for $1,500."

func TestTranslate(t *testing.T) {
	got, _ := translated(t, "<think>hm</think>\n \""+goodRequest+"\"\n")
	if got.Text != goodRequest || got.Model != "m" || got.Tries != 1 {
		t.Errorf("translation %+v", got)
	}
}

func TestTranslateAsksForWhatIsMissing(t *testing.T) {
	got, prompts := translated(t, strings.Replace(goodRequest, "French food", "food", 1), goodRequest)
	if got.Text != goodRequest || got.Tries != 2 || !strings.Contains(prompts[1], "leaves out: cuisine French") {
		t.Errorf("translation %+v after %q", got, prompts)
	}
}

func TestTranslateRetriesThenFallsBack(t *testing.T) {
	got, prompts := translated(t, 503)
	if got.Model != "" || len(prompts) != 4 || !strings.Contains(got.Why, "503") || len(States(got.Text, translateQuery())) != 0 {
		t.Errorf("translation %+v after %d tries", got, len(prompts))
	}
	got, prompts = translated(t, 401)
	if got.Model != "" || len(prompts) != 1 || !strings.Contains(got.Why, "401") {
		t.Errorf("a refused key was tried again: %+v after %d tries", got, len(prompts))
	}
	if got, _ = translated(t, 429, goodRequest); got.Model != "m" {
		t.Errorf("too many requests: %+v", got)
	}
	if got, _ = translated(t, "I cannot do that."); got.Model != "" || !strings.Contains(got.Why, "leaves out org") {
		t.Errorf("translation %+v", got)
	}
}

func TestTranslateStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tr := Translator{Endpoint: "http://127.0.0.1:1", Models: []string{"m"}}
	if _, err := tr.Translate(ctx, translateQuery()); err == nil {
		t.Error("no error")
	}
	if got, err := (&Translator{}).Translate(t.Context(), translateQuery()); err != nil || got.Text == "" || got.Model != "" {
		t.Errorf("without a model: %+v, %v", got, err)
	}
}

func TestSplits(t *testing.T) {
	s, err := ParseSplits("train:8, validation:1,test:1")
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for i := range 10_000 {
		q := translateQuery()
		q.Budget = float64(i)
		name := s.Of(q.Hash())
		if name != s.Of(q.Hash()) {
			t.Fatal("a query moved")
		}
		count[name]++
	}
	if count["train"] < 7800 || count["train"] > 8200 || count["validation"] < 850 || count["test"] < 850 {
		t.Errorf("shares %v", count)
	}
	if _, err := s.Keep("dev"); err == nil {
		t.Error("an unknown split was taken")
	}
	for _, bad := range []string{"", "train", "a:0", "a:1,a:2", "a:x"} {
		if _, err := ParseSplits(bad); err == nil {
			t.Errorf("ParseSplits(%q) took it", bad)
		}
	}
}
