package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"alidade/ablation"
	"alidade/server"
	"alidade/store"
)

func (p *process) dataFile(t *testing.T) string {
	t.Helper()
	for i, a := range p.cmd.Args {
		if a == "--data" {
			return filepath.Join(p.cmd.Args[i+1], "alidade.db")
		}
	}
	t.Fatal("server without --data")
	return ""
}

func seriesOf(run ablation.RunID, name string) store.SeriesQuery {
	return store.SeriesQuery{Runs: []ablation.RunID{run}, Metrics: []string{name}}
}

func jsonFloat(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// TestOpenRefuses: each way a server cannot start names what is in the way.
func TestOpenRefuses(t *testing.T) {
	data := t.TempDir()
	p := serve(t, data)
	_, port, _ := strings.Cut(strings.TrimPrefix(p.here.URL, "http://"), ":")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		cfg  server.Config
		want string
	}{
		{"second server", server.Config{Data: data, Addr: "127.0.0.1:0"}, fmt.Sprint(p.cmd.Process.Pid)},
		{"port in use", server.Config{Data: t.TempDir(), Addr: "127.0.0.1:" + port}, "--addr"},
		{"not an address", server.Config{Data: t.TempDir(), Addr: "7717"}, "host:port"},
		{"exposed", server.Config{Data: t.TempDir(), Addr: "0.0.0.0:0"}, "--exposed"},
		{"exposed without a token", server.Config{Data: t.TempDir(), Addr: "0.0.0.0:0", NoAuth: true, Exposed: true}, "without a token"},
		{"a file as data folder", server.Config{Data: file, Addr: "127.0.0.1:0"}, "--data"},
		{"unknown devices", server.Config{Data: t.TempDir(), Addr: "127.0.0.1:0", Devices: "sim:many"}, "sim:"},
	} {
		c.cfg.Exe = binary(t)
		s, err := server.Open(t.Context(), c.cfg)
		if err == nil {
			t.Errorf("%s: opened", c.name)
			_ = s.Close(t.Context()) // the test has failed already
			continue
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want it to name %q", c.name, err, c.want)
		}
	}
}
