package emulator

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// emulate runs the emulator with a configuration and returns what it printed.
func emulate(t *testing.T, c Config, env map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	src, e := json.Marshal(c)
	if e != nil {
		t.Fatal(e)
	}
	p := &process{out: &out, err: &err, env: func(name string) string {
		if name == "ALIDADE_EMULATE" {
			return string(src)
		}
		return env[name]
	}}
	if e := p.configure(filepath.Join(t.TempDir(), "python3")); e != nil {
		return 2, "", e.Error()
	}
	return p.run(args), out.String(), err.String()
}

func TestItSaysWhatItIs(t *testing.T) {
	code, out, _ := emulate(t, Config{Versions: map[string]string{"verl": "0.8.0", "verl.fork": "arpo", "other": "1"}}, nil, "-c", `m.version("verl")`)
	var v map[string]string
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != 0 || v["verl"] != "0.8.0" || v["verl.fork"] != "arpo" || v["other"] != "" || !strings.Contains(v["emulated"], "nothing is trained") {
		t.Errorf("probe: %d %s %v", code, out, err)
	}
	if !strings.Contains(usage, "trains nothing") {
		t.Error("the help does not say that it is a test tool")
	}
}

func TestConfiguration(t *testing.T) {
	if code, _, text := emulate(t, Config{Fail: "no such thing"}, nil, "-c", "x"); code != 2 || !strings.Contains(text, "cuda-oom") {
		t.Errorf("an unknown failure: %d %s", code, text)
	}
	if code, _, _ := emulate(t, Config{}, nil, "other.py"); code != 2 {
		t.Errorf("an unknown script: %d", code)
	}
}

// TestFailuresAtTheStart writes each signature that needs no step.
func TestFailuresAtTheStart(t *testing.T) {
	for name, f := range failures {
		if !f.start || f.sig != 0 || name == "empty-resume" {
			continue
		}
		code, _, text := emulate(t, Config{Fail: name}, nil, "-u", "-m", "verl.trainer.main_ppo", "trainer.total_training_steps=3")
		if code != f.exit || len(f.lines) > 0 && !strings.Contains(text, f.lines[0]) {
			t.Errorf("%s: code %d, %q", name, code, text)
		}
	}
}

// TestCompose prints what was asked for, as Hydra would.
func TestCompose(t *testing.T) {
	code, out, _ := emulate(t, Config{}, nil, "-u", "-m", "verl.trainer.main_ppo", "a.b.c=1", "++a.b.d='x y'", "trainer.logger=[console,'file']", "a.on=True", "hydra.run.dir=/x", "--cfg", "job")
	want := `a:
  b:
    c: 1
    d: x y
  on: true
actor_rollout_ref:
  rollout:
    name: ???
trainer:
  logger:
  - console
  - file
`
	if code != 0 || out != want {
		t.Errorf("code %d:\n%s\nwant:\n%s", code, out, want)
	}
}

func TestConsoleLine(t *testing.T) {
	values := map[string]float64{"a/b": 0.41, "c": math.NaN(), "d": 3, "e": math.Inf(1)}
	if got, want := consoleLine(34, values, false), "step:34 - a/b:0.41 - c:nan - d:3.0 - e:inf"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := consoleLine(34, values, true), "step:34 - a/b:np.float64(0.41) - c:nan - d:np.float64(3.0) - e:inf"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestMetricsFile: old versions buffer and write NaN bare, new ones write each
// line at once and null; both lose what was there before.
func TestMetricsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.jsonl")
	for _, buffered := range []bool{true, false} {
		if err := os.WriteFile(path, []byte("old\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := openMetrics(path, buffered)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.step(1, map[string]float64{"x": math.NaN(), "y": math.Inf(-1)}); err != nil {
			t.Fatal(err)
		}
		early, err := os.ReadFile(path)
		if err != nil || (len(early) == 0) != buffered {
			t.Errorf("buffered %v: %q before it is closed: %v", buffered, early, err)
		}
		if err := m.close(); err != nil {
			t.Fatal(err)
		}
		want := `{"step": 1, "data": {"x": null, "y": null}}` + "\n"
		if buffered {
			want = `{"step": 1, "data": {"x": NaN, "y": -Infinity}}` + "\n"
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("buffered %v: %q, want %q: %v", buffered, got, want, err)
		}
	}
	if _, err := openMetrics(filepath.Join(t.TempDir(), "no", "folder", "m.jsonl"), false); err == nil {
		t.Error("its folder was made, which verl does not do")
	}
}

// TestEventFile checks the frame of each record by its own checksums.
func TestEventFile(t *testing.T) {
	dir := t.TempDir()
	e, err := openEvents(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.step(7, map[string]float64{"actor/entropy": 0.5}); err != nil {
		t.Fatal(err)
	}
	if err := e.close(); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "events.out.tfevents.*"))
	if err != nil || len(names) != 1 {
		t.Fatalf("files %v: %v", names, err)
	}
	src, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	masked := func(b []byte) uint32 {
		c := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
		return (c>>15 | c<<17) + 0xa282ead8
	}
	in, records := bytes.NewReader(src), [][]byte{}
	for {
		head := make([]byte, 12)
		if _, err := io.ReadFull(in, head); err != nil {
			break
		}
		body := make([]byte, binary.LittleEndian.Uint64(head)+4)
		if _, err := io.ReadFull(in, body); err != nil {
			t.Fatal(err)
		}
		n := len(body) - 4
		if masked(head[:8]) != binary.LittleEndian.Uint32(head[8:]) || masked(body[:n]) != binary.LittleEndian.Uint32(body[n:]) {
			t.Fatal("a checksum does not hold")
		}
		records = append(records, body[:n])
	}
	if len(records) != 2 || !bytes.Contains(records[0], []byte("brain.Event:2")) || !bytes.Contains(records[1], []byte("actor/entropy")) {
		t.Errorf("%d records: %q", len(records), records)
	}
}

// TestCheckpoint names the latest one only when it is whole.
func TestCheckpoint(t *testing.T) {
	dir := t.TempDir()
	at, err := checkpoint(dir, 60, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"data.pt", "actor/model_world_size_2_rank_1.pt", "actor/optim_world_size_2_rank_0.pt", "actor/fsdp_config.json", "actor/huggingface/config.json"} {
		if _, err := os.Stat(filepath.Join(at, name)); err != nil {
			t.Error(err)
		}
	}
	if src, err := os.ReadFile(filepath.Join(dir, "latest_checkpointed_iteration.txt")); err != nil || string(src) != "60" {
		t.Errorf("latest is %q: %v", src, err)
	}
}
