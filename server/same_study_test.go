package server_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"alidade/ablation"

	"github.com/google/go-cmp/cmp"
)

// plan is what a run is, apart from when it ran.
type plan struct {
	Arm  ablation.Arm
	Seed uint64
}

func plans(runs []ablation.Run) []plan {
	out := make([]plan, len(runs))
	for i, r := range runs {
		out[i] = plan{r.Arm, r.Seed}
	}
	return out
}

// TestSameStudyBothWays: the same file through the API and the command line
// gives the same runs, and a repeat of a recipe and seed the same numbers.
func TestSameStudyBothWays(t *testing.T) {
	data := t.TempDir()
	p := serve(t, data)
	file := filepath.Join(t.TempDir(), "study.yaml")
	source := tiny("both-ways", 6, rewardFactor, "[1]")
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	first := p.launch(t, source)
	out, err := exec.Command(binary(t), "run", file, "--data", data, "--wait", "--report", filepath.Join(data, "report")).CombinedOutput()
	if err != nil {
		t.Fatalf("alidade run: %v\n%s", err, out)
	}
	if !strings.Contains(string(out), "2 of 2 runs succeeded") {
		t.Errorf("alidade run said:\n%s", out)
	}
	for _, f := range []string{"report.html", "report.md", "results.csv", "report.json"} {
		if st, err := os.Stat(filepath.Join(data, "report", f)); err != nil || st.Size() < 500 {
			t.Errorf("report file %s: %v", f, err)
		}
	}
	a, b := p.wait(t, first, 3*60e9), p.wait(t, first+1, 60e9)
	if diff := cmp.Diff(plans(a), plans(b)); diff != "" {
		t.Errorf("API and command line gave other runs (-api +command):\n%s", diff)
	}
	for i := range a {
		if diff := cmp.Diff(metrics(t, p, a[i].ID), metrics(t, p, b[i].ID)); diff != "" {
			t.Errorf("run %d and its repeat %d differ:\n%s", a[i].ID, b[i].ID, diff)
		}
	}
	if cmp.Equal(metrics(t, p, a[0].ID), metrics(t, p, a[1].ID)) {
		t.Error("two different recipes gave the same numbers")
	}
}

// metrics are all series of a run but those that measure time.
func metrics(t *testing.T, p *process, run ablation.RunID) map[string]string {
	t.Helper()
	s := openStore(t, filepath.Dir(p.dataFile(t)))
	defer s.Close()
	names, err := s.Metrics(t.Context(), []ablation.RunID{run})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, n := range names {
		if strings.HasPrefix(n, "speed/") || strings.HasPrefix(n, "time/") || strings.HasSuffix(n, "_per_s") {
			continue
		}
		series, err := s.Series(t.Context(), seriesOf(run, n))
		if err != nil || len(series) != 1 {
			t.Fatalf("series %s of run %d: %d, %v", n, run, len(series), err)
		}
		type at struct {
			Step  int64
			Value string
		}
		var pts []at
		for _, x := range series[0].Points {
			pts = append(pts, at{x.Step, jsonFloat(x.Value)})
		}
		b, err := json.Marshal(pts)
		if err != nil {
			t.Fatal(err)
		}
		out[n] = string(b)
	}
	if len(out) < 20 {
		t.Fatalf("run %d has %d metrics", run, len(out))
	}
	return out
}

// TestBrokenStudiesThroughTheAPI: the API refuses with field, value and remedy.
func TestBrokenStudiesThroughTheAPI(t *testing.T) {
	p := serve(t, t.TempDir())
	for _, c := range []struct{ body, field string }{
		{"name: t\nseeds: [1]\nbase:\n  algorithm:\n    lr: fast\n", "base.algorithm.lr"},
		{"{", ""},
		{"", ""},
		{"name: t\nsedes: [1]\n", "sedes"},
	} {
		var doc struct {
			Error struct {
				Message string
				Fields  []ablation.FieldError
			}
		}
		if code := p.call(t, http.MethodPost, "/api/v1/studies", c.body+" ", &doc); code != http.StatusUnprocessableEntity {
			t.Errorf("launch of %q answered %d", c.body, code)
		}
		if len(doc.Error.Fields) == 0 || (c.field != "" && doc.Error.Fields[0].Field != c.field) || doc.Error.Fields[0].Allowed == "" {
			t.Errorf("launch of %q: %+v, want field %q and what is allowed", c.body, doc.Error, c.field)
		}
	}
	if code := p.call(t, http.MethodGet, "/api/v1/studies", "", nil); code != http.StatusOK {
		t.Errorf("after bad input the server answers %d", code)
	}
}
