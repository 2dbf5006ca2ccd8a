package emulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Config says what is emulated. It is read from emulate.json beside the
// program, and over it from the variable ALIDADE_EMULATE.
type Config struct {
	Versions map[string]string `json:"versions"` // what a probe finds: "verl": "0.8.0"
	Fail     string            `json:"fail"`     // one of Failures; "" = nothing goes wrong
	At       int64             `json:"at"`       // step at which it goes wrong; 0 = 2
	StepMS   int               `json:"step_ms"`  // time a step takes
	Smoke    bool              `json:"smoke"`    // failures strike smoke runs too
	Wait     string            `json:"wait"`     // file that must be there before the step after At begins
}

const usage = `This is Alidade's trainer emulator, a test tool that poses as a Python
interpreter with verl, rLLM or TRL. It trains nothing and learns nothing:
nothing that it writes is a result.

usage: python3 -c PROBE | -u -m verl.trainer.main_ppo key=value… | -u train.py
       rllm/backend=verl key=value… | -u grpo.py job.json

It is told what to do by emulate.json beside it, or by ALIDADE_EMULATE:
  {"versions": {"verl": "0.8.0"}, "fail": "cuda-oom", "at": 2, "step_ms": 20}

failures: %s
`

// Main runs the emulator on the process's arguments and returns its exit code.
func Main(args []string) int {
	p := &process{out: os.Stdout, err: os.Stderr, env: os.Getenv}
	rest := args[1:]
	if len(rest) == 0 || slices.Contains([]string{"--help", "-h"}, rest[0]) {
		fmt.Fprintf(p.out, usage, strings.Join(Failures(), ", "))
		return 0
	}
	if err := p.configure(args[0]); err != nil {
		fmt.Fprintln(p.err, "trainer emulator:", err)
		return 2
	}
	return p.run(rest)
}

// process is one run of the interpreter.
type process struct {
	cfg Config
	out io.Writer
	err io.Writer
	env func(string) string

	stopped atomic.Bool // a signal asked a framework that listens to end
}

func (p *process) configure(self string) error {
	p.cfg = Config{At: 2, StepMS: 5}
	path := filepath.Join(filepath.Dir(self), "emulate.json")
	src, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, text := range []string{string(src), p.env("ALIDADE_EMULATE")} {
		if strings.TrimSpace(text) == "" {
			continue
		}
		if err := json.Unmarshal([]byte(text), &p.cfg); err != nil {
			return fmt.Errorf("emulate.json: %w", err)
		}
	}
	if p.cfg.Fail != "" && !slices.Contains(Failures(), p.cfg.Fail) {
		return fmt.Errorf("fail is %q; allowed: %s", p.cfg.Fail, strings.Join(Failures(), ", "))
	}
	return nil
}

// run looks at what the interpreter was asked for.
func (p *process) run(args []string) int {
	for len(args) > 0 && (args[0] == "-u" || args[0] == "-B" || args[0] == "-I" || args[0] == "-E") {
		args = args[1:]
	}
	switch {
	case len(args) >= 2 && args[0] == "-c":
		return p.probe(strings.Join(args[1:], " ")) // some name packages behind the code
	case len(args) >= 2 && args[0] == "-m" && (args[1] == "verl.trainer.main_ppo" || args[1] == "recipe.dapo.main_dapo"):
		return p.verl(args[1], args[2:])
	case len(args) >= 1 && filepath.Base(args[0]) == "train.py" && len(args) > 1 && args[1] == "rllm/backend=verl":
		return p.rllm(args[1:])
	case len(args) == 2 && filepath.Base(args[0]) == "grpo.py":
		return p.trl(args[1])
	}
	fmt.Fprintf(p.err, "trainer emulator: nothing is emulated for %q\n", args)
	return 2
}

// probe answers a question for versions: of every name that stands in the
// code, as JSON.
func (p *process) probe(code string) int {
	out := map[string]string{"python": "3.11.9", "emulated": "trainer emulator: nothing is trained"}
	for name, version := range p.cfg.Versions {
		if strings.Contains(code, name) || strings.Contains(name, ".") {
			out[name] = version
		}
	}
	src, err := json.Marshal(out)
	if err != nil {
		return 1
	}
	fmt.Fprintln(p.out, string(src))
	return 0
}

// settings reads Hydra's overrides: the last of a key counts.
func settings(args []string) map[string]string {
	m := map[string]string{}
	for _, a := range args {
		key, value, ok := strings.Cut(a, "=")
		if !ok || strings.HasPrefix(a, "--") {
			continue
		}
		if len(value) >= 2 && (value[0] == '\'' || value[0] == '"') && value[len(value)-1] == value[0] {
			value = value[1 : len(value)-1]
		}
		m[strings.TrimLeft(key, "+~")] = value
	}
	return m
}

func (p *process) printf(format string, args ...any) { fmt.Fprintf(p.out, format, args...) }

func (p *process) sleep() { time.Sleep(time.Duration(p.cfg.StepMS) * time.Millisecond) }
