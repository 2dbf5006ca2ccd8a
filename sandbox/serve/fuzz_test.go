package serve

import (
	"encoding/json"
	"testing"
)

// Any bytes as a message get one JSON reply with a status, and no panic.
func FuzzReply(f *testing.F) {
	fix := theFixture(f)
	s, err := New(fix.config(func(c *Config) { c.MaxEpisodes = 4 }))
	if err != nil {
		f.Fatal(err)
	}
	e, err := s.create(f.Context(), "", CreateRequest{TaskID: "0", Split: "train"})
	if err != nil {
		f.Fatal(err)
	}
	for _, body := range []string{
		`{"name":"SearchCity","arguments":{"state":"X"},"index":0}`, `{"name":"SearchCity","arguments":"{\"state\":null}"}`,
		`{"name":"","arguments":[1,{}],"think":"\u0000"}`, `{"name":"SearchFlight","arguments":"x","index":9}`,
	} {
		f.Add("call", body)
	}
	f.Add("score", `{"final_text":"[{\"day\":[]}]","messages":[{"role":"assistant","content":[{"text":1}],"tool_calls":[{}]}]}`)
	f.Add("create", `{"task_id":"0","split":"train","seed":18446744073709551615}`)
	f.Add("batch", `{"operations":[{"op":"stats"},{"id":{},"op":"batch"}]}`)
	f.Add("tasks", `{"limit":-1}`)
	f.Fuzz(func(t *testing.T, op, body string) {
		id := e.EpisodeID
		if op == "score" || op == "delete" {
			fresh, err := s.create(t.Context(), "", CreateRequest{TaskID: "0", Split: "train"})
			if err == nil {
				id = fresh.EpisodeID
				defer func() { _, _ = s.remove(t.Context(), id, None{}) }()
			}
		}
		name, _ := json.Marshal(op)
		for _, message := range []string{body, `{"op":` + string(name) + `,"episode_id":"` + id + `","body":` + body + `}`} {
			b := s.reply(t.Context(), []byte(message))
			var r rawReply
			if err := json.Unmarshal(b.Bytes(), &r); err != nil || r.Status < 200 || r.Status == 500 {
				t.Fatalf("%s = %s (%v)", message, b.Bytes(), err)
			}
			keep(b)
		}
	})
}
