package main

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// allowed lists, for each folder, the project packages it may import: data
// flows one way. "*" allows everything (the wiring).
var allowed = map[string][]string{
	".":                      {"*"},
	"server":                 {"*"},
	"ablation":               {},
	"ablation/studyfile":     {"ablation"},
	"ablation/published":     {"ablation"},
	"stats":                  {},
	"trainer":                {"ablation"},
	"trainer/cpu":            {"trainer", "trainer/cpu/nn", "sandbox", "sandbox/qa", "sandbox/travel", "sandbox/travel/compact", "sandbox/travel/synth", "ablation"},
	"trainer/cpu/nn":         {},
	"trainer/cpu/nn/asmgen":  {},
	"trainer/solver":         {"trainer", "sandbox", "sandbox/travel", "sandbox/travel/dataset", "sandbox/travel/synth", "ablation"}, // it keeps what it drew as a data set
	"trainer/endpoint":       {"trainer", "sandbox", "sandbox/travel", "sandbox/travel/synth", "ablation"},
	"trainer/native":         {"trainer", "sandbox", "sandbox/travel", "sandbox/travel/synth", "sandbox/travel/dataset", "sandbox/serve", "ablation"}, // the common life of foreign trainers
	"trainer/trl":            {"trainer", "trainer/native", "ablation"},
	"trainer/verl":           {"trainer", "trainer/native", "sandbox/travel/dataset", "ablation"},
	"trainer/rllm":           {"trainer", "trainer/native", "trainer/verl", "trainer/endpoint", "sandbox", "sandbox/travel", "ablation"}, // its gateway's episodes are played by the endpoint's loop
	"trainer/llamafactory":   {"trainer", "trainer/native", "ablation"},
	"trainer/preflight":      {"trainer", "trainer/native", "trainer/trl", "trainer/verl", "trainer/rllm", "trainer/llamafactory", "ablation"},
	"trainer/emulator":       {"trainer"}, // a test tool: it poses as the frameworks
	"sandbox":                {"ablation", "trainer"},
	"sandbox/qa":             {"sandbox", "sandbox/travel", "sandbox/travel/compact", "trainer"},
	"sandbox/travel":         {"sandbox", "trainer", "ablation"},
	"sandbox/serve":          {"sandbox", "sandbox/travel", "trainer", "ablation"},
	"sandbox/travel/synth":   {"sandbox", "sandbox/travel", "trainer", "ablation"},
	"sandbox/travel/dataset": {"sandbox", "sandbox/travel", "sandbox/travel/synth", "trainer", "ablation"},
	"sandbox/travel/compact": {"sandbox", "sandbox/travel", "trainer", "ablation"},
	"store":                  {"ablation", "trainer", "stats"},
	"gpu":                    {"ablation"},
	"runner":                 {"ablation", "trainer", "store", "gpu", "runner/shim"},
	"runner/local":           {"runner", "runner/shim", "ablation"},
	"runner/shim":            {"trainer", "gpu"}, // a job's GPUs are read beside its trainer
	"runner/slurm":           {"runner", "runner/shim", "gpu", "ablation"},
	"runner/launchertest":    {"runner", "runner/shim", "ablation"},
	"report":                 {"report/chart", "stats", "templates", "ablation", "ablation/published", "trainer"},
	"report/chart":           {"stats"},
	"report/stored":          {"report", "store", "ablation"},
	"templates":              {},
	"static":                 {},

	"trainer/emulator/python":       {"trainer/emulator"}, // its command; the product's binary has neither
	"trainer/endpoint/endpointtest": {"trainer", "sandbox/travel", "sandbox/travel/synth"},

	"web": {"report", "report/stored", "store", "templates", "static", "ablation", "ablation/studyfile", "ablation/published", "trainer", "stats",
		"sandbox/travel", "sandbox/travel/dataset"}, // queries are read, described, checked and exported, never made
}

// only says which packages alone may import a heavy library, and why.
var only = map[string][]string{
	"github.com/mattn/go-sqlite3":  {"store"},                // one writer to the database
	"github.com/gorilla/websocket": {"web", "sandbox/serve"}, // the live endpoint, the episodes
	"gonum.org/v1/plot":            {"report/chart"},         // one house style
	"github.com/spf13/cobra":       {"."},                    // the command line
	"github.com/NVIDIA/go-nvml":    {"gpu"},                  // no other call after a failed Init
	"github.com/openai/openai-go":  {"trainer/endpoint"},     // other people's servers

	"github.com/parquet-go/parquet-go": {"sandbox/travel/dataset"}, // one place for trainers' files
}

type listed struct {
	ImportPath string
	Imports    []string
}

func TestImportsFlowOneWay(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for dec.More() {
		var p listed
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		checkImports(t, p)
	}
}

func checkImports(t *testing.T, p listed) {
	folder := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, "alidade"), "/")
	if folder == "" {
		folder = "."
	}
	rule, known := allowed[folder]
	if !known {
		t.Errorf("package %s has no entry in the table of allowed imports", folder)
		return
	}
	for _, imp := range p.Imports {
		for lib, owners := range only {
			if (imp == lib || strings.HasPrefix(imp, lib+"/")) && !slices.Contains(owners, folder) {
				t.Errorf("%s imports %s, which only %s may", folder, imp, strings.Join(owners, ", "))
			}
		}
		rest, ours := strings.CutPrefix(imp, "alidade/")
		if rest == "trainer/emulator" && folder != "trainer/emulator/python" {
			t.Errorf("%s imports the trainer emulator, which is for tests alone", folder)
		}
		if ours && !slices.Contains(rule, "*") && !slices.Contains(rule, rest) {
			t.Errorf("%s imports %s; allowed: %s", folder, rest, strings.Join(rule, ", "))
		}
		if folder == "ablation" && strings.Contains(imp, ".") {
			t.Errorf("ablation imports %s; it uses the standard library only", imp)
		}
	}
}
