package runner

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"alidade/ablation"
)

func TestPublicAddresses(t *testing.T) {
	for address, want := range map[string]bool{
		"93.184.216.34": true, "2606:2800:220:1::1": true,
		"127.0.0.1": false, "::1": false, "169.254.169.254": false, "fe80::1": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false,
		"fd00::1": false, "0.0.0.0": false, "::": false, "100.64.0.1": false, "224.0.0.1": false, "255.255.255.255": false, "198.18.0.1": false,
		"::ffff:127.0.0.1": false, "::ffff:169.254.169.254": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false, "::ffff:93.184.216.34": true,
	} {
		if got := public(netip.MustParseAddr(address)); got != want {
			t.Errorf("public(%s) = %v, want %v", address, got, want)
		}
	}
}

// However the address is written, what is connected to decides.
func TestWebhookRefusesPrivateAddresses(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0x7f000001", "127.1"} {
		h := newHook(WebhookSettings{URL: "http://" + host + ":" + port + "/"}, slog.New(slog.DiscardHandler))
		err := h.post(t.Context(), hookMessage{Level: "bad"})
		if err == nil || asked > 0 {
			t.Errorf("%s was reached (%v)", host, err)
		}
		if host == "127.0.0.1" && !errors.Is(err, errForbidden) {
			t.Errorf("%s: %v, want errForbidden", host, err)
		}
	}
}

func TestWebhook(t *testing.T) {
	type got struct {
		path string
		hookMessage
	}
	messages := make(chan got, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m hookMessage
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		messages <- got{r.URL.Path, m}
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	h := newHook(WebhookSettings{URL: server.URL + "/secret-path", AllowPrivate: true}, slog.New(slog.DiscardHandler))
	if err := h.post(t.Context(), hookMessage{Run: 3, Level: "bad", Code: "nan", Text: "policy/loss is NaN"}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("post = %v, want an error about the answer that does not show the address", err)
	}
	if m := <-messages; m.path != "/secret-path" || m.Run != 3 || m.Code != "nan" {
		t.Errorf("received %+v", m)
	}
	if len(messages) != 0 {
		t.Error("the redirect was followed")
	}
	h.send(hookMessage{Level: "info", Code: "retry"})
	if len(h.waiting) != 0 {
		t.Error("an alert of level info is sent")
	}
	server.Close()
	if err := h.post(t.Context(), hookMessage{}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("post to a dead server = %v, must not show the address", err)
	}
}

func TestSettings(t *testing.T) {
	dir := t.TempDir()
	if s, err := ReadSettings(dir); err != nil || s.Webhook.URL != "" {
		t.Errorf("without a file: %+v, %v", s, err)
	}
	write := func(text string, mode os.FileMode) error {
		path := filepath.Join(dir, SettingsFile)
		_ = os.Remove(path)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := ReadSettings(dir)
		return err
	}
	good := `{"price_per_gpu_hour": 2.5, "webhook": {"url": "https://hooks.example.org/x"}, "slurm": {"partition": "gpu", "time_limit": "1-00:00:00", "flags": ["--constraint=h100"]}}`
	if err := write(good, 0o600); err != nil {
		t.Error(err)
	}
	for text, field := range map[string]string{
		`{"price_per_gpu_hour": -1}`:                                                          "price_per_gpu_hour",
		`{"webhook": {"url": "http://hooks.example.org/x"}}`:                                  "webhook.url",
		`{"webhook": {"url": "https://a:b@example.org/"}}`:                                    "webhook.url",
		`{"webhook": {"url": "https://evil.example/", "allow_hosts": ["hooks.example.org"]}}`: "webhook.url",
		`{"slurm": {"partition": "gpu; rm -rf /"}}`:                                           "slurm.partition",
		`{"slurm": {"flags": ["--wrap=sh"]}}`:                                                 "slurm.flags",
		`{"slurm": {"flags": ["-p gpu"]}}`:                                                    "slurm.flags",
		`{"slurm": {"time_limit": "soon"}}`:                                                   "slurm.time_limit",
		`{"slurm": {"gpus": "all"}}`:                                                          "slurm.gpus",
		`{"slurms": {}}`:                                                                      "slurms",
	} {
		err := write(text, 0o600)
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v, want an error about %s", text, err, field)
		}
		if field != "slurms" && !errors.Is(err, ablation.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", text, err)
		}
	}
	if err := write(good, 0o666); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that others may write: %v", err)
	}
}
