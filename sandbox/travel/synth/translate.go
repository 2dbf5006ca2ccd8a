package synth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"alidade/sandbox"
	"alidade/sandbox/travel"
)

// Translator has a language model write the text of queries, through an
// endpoint that speaks OpenAI's chat completions. A text that leaves out any
// part of the query is asked for again, with the names of the missing parts;
// when all tries are used up the template text stands in.
type Translator struct {
	Endpoint string        // up to and without /chat/completions, such as http://127.0.0.1:8000/v1
	Models   []string      // one is drawn for each query
	Key      string        // bearer token; "" = none. Take it from the environment, it is never written anywhere
	Tries    int           // 0 = 10
	Timeout  time.Duration // of one try; 0 = 60 s
	Seed     uint64
	Client   *http.Client // nil = one of its own

	wait func(context.Context, time.Duration) error // tests replace it
}

// Translation is what came of one query.
type Translation struct {
	Text  string
	Model string // "" when the template text stands in
	Tries int
	Why   string // what was wrong with the last try
}

// The published sampling settings.
const (
	translateTemperature = 0.7
	translateTopP        = 0.95
	translateTokens      = 512
)

// Translate writes the text of a query. The error is of ctx alone: a model
// that cannot be had or does not write what it should gives the template text.
func (t *Translator) Translate(ctx context.Context, q travel.Query) (Translation, error) {
	r := rng(t.Seed^hashSeed(q.Hash()), "translate")
	fallback := Translation{Text: Text(r, q), Why: "no model"}
	tries := t.Tries
	if tries <= 0 {
		tries = 10
	}
	if len(t.Models) == 0 || t.Endpoint == "" {
		return fallback, nil
	}
	model := pick(r, t.Models)
	messages := translatePrompt(r, q)
	for try := 1; try <= tries; try++ {
		fallback.Tries = try
		text, err := t.ask(ctx, model, messages)
		if ctx.Err() != nil {
			return Translation{}, ctx.Err()
		}
		var refused *refusal
		switch {
		case errors.As(err, &refused) && !refused.again():
			fallback.Why = err.Error()
			return fallback, nil
		case err != nil:
			fallback.Why = err.Error()
			if try < tries {
				if err := t.pause(ctx, time.Duration(min(1<<try, 30))*250*time.Millisecond); err != nil {
					return Translation{}, err
				}
			}
			continue
		}
		text = tidy(text)
		missing := States(text, q)
		if len(missing) == 0 {
			return Translation{Text: text, Model: model, Tries: try}, nil
		}
		fallback.Why = "the text leaves out " + strings.Join(missing, ", ")
		messages = append(translatePrompt(r, q), travel.Message{Role: "assistant", Content: text},
			travel.Message{Role: "user", Content: "This leaves out: " + strings.Join(missing, ", ") + ". Write it again with everything in it."})
	}
	return fallback, nil
}

func (t *Translator) pause(ctx context.Context, d time.Duration) error {
	if t.wait != nil {
		return t.wait(ctx, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// hashSeed turns a query's hash into a seed.
func hashSeed(hash string) uint64 {
	h := uint64(0)
	for i := range len(hash) {
		h = sandbox.Mix(h, uint64(hash[i]))
	}
	return h
}

// refusal is an answer of the endpoint that is not 200.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return fmt.Sprintf("endpoint answers %d: %s", r.status, r.text) }

// again tells whether another try makes sense.
func (r *refusal) again() bool {
	return r.status == http.StatusTooManyRequests || r.status == http.StatusRequestTimeout || r.status >= 500
}

const maxReplyBytes = 1 << 20

// ask makes one request.
func (t *Translator) ask(ctx context.Context, model string, messages []travel.Message) (string, error) {
	body, err := json.Marshal(map[string]any{"model": model, "messages": messages, "temperature": translateTemperature, "top_p": translateTopP, "max_tokens": translateTokens})
	if err != nil {
		return "", err
	}
	timeout := t.Timeout
	if timeout <= 0 {
		timeout = time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(t.Endpoint, "/")+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	if t.Key != "" {
		req.Header.Set("Authorization", "Bearer "+t.Key)
	}
	client := t.Client
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	src, err := io.ReadAll(io.LimitReader(resp.Body, maxReplyBytes))
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", &refusal{resp.StatusCode, strings.TrimSpace(string(src[:min(len(src), 200)]))}
	}
	var reply struct {
		Choices []struct {
			Message travel.Message `json:"message"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(src, &reply); err != nil {
		return "", fmt.Errorf("endpoint's answer: %w", err)
	}
	if len(reply.Choices) == 0 {
		return "", errors.New("endpoint's answer has no choices")
	}
	return reply.Choices[0].Message.Content, nil
}

// tidy takes the request out of what a model puts around it.
func tidy(s string) string {
	if i := strings.LastIndex(s, "</think>"); i >= 0 {
		s = s[i+len("</think>"):]
	}
	s = strings.TrimSpace(s)
	if len(s) > 1 && s[0] == '"' && s[len(s)-1] == '"' {
		s = strings.TrimSpace(s[1 : len(s)-1])
	}
	return strings.Join(strings.Fields(s), " ")
}

// translatePrompt shows the record and two template texts of it as examples
// of what has to be said.
func translatePrompt(r *rand.Rand, q travel.Query) []travel.Message {
	record, _ := json.Marshal(travel.QueryLine{Query: withoutText(q)}) // texts and numbers cannot fail
	return []travel.Message{
		{Role: "system", Content: "You write the request that a person sends to a travel planner, from a record of what they want. " +
			"Say everything in the record that is not null, in natural words, in one paragraph: where from and where to, the number of days and both dates, how many people, the number of cities, every wish, and the budget in dollars. Add nothing. Answer with the request alone."},
		{Role: "user", Content: string(record) + "\n\nTwo ways to say it, for the content only:\n" + Text(r, q) + "\n" + Text(r, q)},
	}
}

func withoutText(q travel.Query) travel.Query {
	q.Text = ""
	return q
}
