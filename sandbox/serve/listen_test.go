package serve

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"alidade/sandbox/travel"
)

// startUnix serves the fixture on a Unix socket until stop is called.
func startUnix(t *testing.T, path string, change func(*Config)) (c *client, stop func() error) {
	t.Helper()
	s, err := New(theFixture(t).config(change))
	if err != nil {
		t.Fatal(err)
	}
	l, err := Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	stop = func() error {
		cancel()
		select {
		case err := <-ended:
			ended <- nil
			return err
		case <-time.After(30 * time.Second):
			t.Error("Serve does not return")
			return nil
		}
	}
	t.Cleanup(func() { _ = stop() })
	network, addr := l.Addr().Network(), l.Addr().String()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{t: t, s: s, base: "http://localhost", http: &http.Client{Transport: transport}}, stop
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "env.sock")
	c, stop := startUnix(t, "unix:"+path, nil)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v, mode %v, want 0600", err, info.Mode())
	}
	id := c.create(CreateRequest{TaskID: "0"}).EpisodeID
	c.call(id, 0, travel.ToolCity, `{"state":"X"}`)
	res, err := c.http.Get(c.base + "/env/stats")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 401 {
		t.Errorf("without the token = %d, want 401", res.StatusCode)
	}
	if _, err := Listen(t.Context(), path); err == nil || !strings.Contains(err.Error(), "another server answers") {
		t.Errorf("second listener: %v", err)
	}
	if err := stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func TestListenReplacesOnlyDeadSockets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	dead := filepath.Join(dir, "dead.sock")
	l, err := net.Listen("unix", dead)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	if l, err = Listen(t.Context(), dead); err != nil {
		t.Errorf("a dead socket is not replaced: %v", err)
	} else {
		l.Close()
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(t.Context(), file); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("a file in place of a socket: %v", err)
	}
	if _, err := Listen(t.Context(), "/"+strings.Repeat("x", 120)); err == nil || !strings.Contains(err.Error(), "107 bytes") {
		t.Errorf("a long path: %v", err)
	}
}

func TestServeNeedsAToken(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		addr   string
		noAuth bool
		want   string
	}{
		{"127.0.0.1:0", false, "token is empty"},
		{"0.0.0.0:0", true, "must be on loopback"},
	} {
		s, err := New(theFixture(t).config(func(c *Config) { c.Token, c.NoAuth = "", x.noAuth }))
		if err != nil {
			t.Fatal(err)
		}
		l, err := Listen(t.Context(), x.addr)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Serve(t.Context(), l); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("Serve on %s = %v, want %q", x.addr, err, x.want)
		}
	}
}

// A request under way when the server is told to stop is answered.
func TestShutdownAnswersWhatIsAtWork(t *testing.T) {
	t.Parallel()
	c, stop := startUnix(t, filepath.Join(t.TempDir(), "s"), func(c *Config) {
		c.Wait = true
		c.Failures = travel.Failures{Rate: 1, Kind: "latency", LatencyMS: 500}
	})
	id := c.create(CreateRequest{TaskID: "0"}).EpisodeID
	answered := make(chan CallResult, 1)
	go func() { answered <- c.call(id, 0, travel.ToolCity, `{"state":"X"}`) }()
	for deadline := time.Now().Add(20 * time.Second); c.s.count.calls.Load() == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the call never came")
		}
		time.Sleep(time.Millisecond)
	}
	if err := stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	select {
	case r := <-answered:
		if r.LatencyMS <= 0 {
			t.Errorf("call = %+v, want latency", r)
		}
	case <-time.After(20 * time.Second):
		t.Error("the call was dropped")
	}
}
