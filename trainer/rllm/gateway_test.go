package rllm

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// gatewayEnv names rLLM's own gateway, the command of the Python package
// rllm-model-gateway.
const gatewayEnv = "ALIDADE_RLLM_GATEWAY"

// TestRealGateway plays episodes through rLLM's own gateway, which records
// what it trains on, and counts its records.
func TestRealGateway(t *testing.T) {
	command := os.Getenv(gatewayEnv)
	if command == "" {
		t.Skip(gatewayEnv + " does not name the command rllm-model-gateway (pip install rllm-model-gateway)")
	}
	for _, form := range []string{"react", "tools"} {
		t.Run(form, func(t *testing.T) {
			g := newGateway(t, form, nil)
			url := startGateway(t, command, g.model.URL)
			for i, session := range []string{"p1:0", "p1:1", "p2:0"} {
				post(t, url+"/sessions", fmt.Sprintf(`{"session_id":%q}`, session), nil)
				body := strings.Replace(g.ask(strconv.Itoa(i), "train", session, ""), g.model.URL+"/sessions/"+session, url+"/sessions/"+session+"/v1", 1)
				out := g.ok(PlayPath, body)
				if want := float64(min(i, 1)); out["reward"] != want { // the agent fails query 0
					t.Errorf("%s: reward %v, want %v", session, out["reward"], want)
				}
				var traces []map[string]any
				get(t, url+"/sessions/"+session+"/traces", &traces)
				if turns := len(g.last().Turns); len(traces) != turns || turns < 3 {
					t.Errorf("%s: the gateway has %d records of %d turns", session, len(traces), turns)
				}
			}
		})
	}
}

func startGateway(t *testing.T, command, model string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), command, "--host", "127.0.0.1", "--port", port, "--worker", model+"/v1", "--store", "memory")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // the context has ended it
	url := "http://127.0.0.1:" + port
	for range 300 {
		if res, err := http.Get(url + "/health"); err == nil {
			_ = res.Body.Close()
			return url
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the gateway does not answer")
	return ""
}

func post(t *testing.T, url, body string, out any) {
	t.Helper()
	res, err := http.Post(url, "application/json", strings.NewReader(body))
	answered(t, res, err, out)
}

func get(t *testing.T, url string, out any) {
	t.Helper()
	res, err := http.Get(url)
	answered(t, res, err, out)
}

func answered(t *testing.T, res *http.Response, err error, out any) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("answered %s", res.Status)
	}
	if out != nil {
		if err := json.NewDecoder(res.Body).Decode(out); err != nil {
			t.Fatal(err)
		}
	}
}
