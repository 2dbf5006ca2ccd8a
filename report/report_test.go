package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"alidade/ablation"
)

var (
	update = flag.Bool("update", false, "rewrite the golden files")
	show   = flag.String("show", "", "folder to write the sample reports to, for looking at them")
)

func mustBuild(t testing.TB, in Input) Report {
	t.Helper()
	r, err := Build(in)
	if err != nil {
		t.Fatalf("Build: %v", err)
	}
	return r
}

func TestGoldenReport(t *testing.T) {
	r := mustBuild(t, rewardStudy().input())
	markdown, err := Markdown(r)
	if err != nil {
		t.Fatal(err)
	}
	table, err := CSV(r)
	if err != nil {
		t.Fatal(err)
	}
	value, err := JSON(r)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "rewards.md", markdown)
	golden(t, "rewards.csv", table)
	golden(t, "rewards.json", value)
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("read golden file: %v (run with -update to make it)", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from its golden file at %s", name, firstDifference(got, want))
	}
}

func firstDifference(got, want []byte) string {
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return "got:\n" + g[i] + "\nwant:\n" + w[i]
		}
	}
	return "the end"
}

// The same input gives the same bytes, whatever the order of maps.
func TestSameInputSameBytes(t *testing.T) {
	in := scaleStudy().input()
	first := files(t, in)
	for range 3 {
		if again := files(t, in); !reflect.DeepEqual(first, again) {
			t.Fatal("two builds of the same input differ")
		}
	}
}

// files renders everything but the PNGs, which take their time.
func files(t *testing.T, in Input) map[string]string {
	t.Helper()
	r := mustBuild(t, in)
	out := map[string]string{}
	keep := func(name string, data []byte, err error) {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[name] = string(data)
	}
	html, err := HTML(t.Context(), r)
	keep("report.html", html, err)
	markdown, err := Markdown(r)
	keep("report.md", markdown, err)
	table, err := CSV(r)
	keep("results.csv", table, err)
	value, err := JSON(r)
	keep("report.json", value, err)
	for _, f := range r.Figures {
		svg, err := FigureFile(r, f.Name, "svg")
		keep(f.Name+".svg", svg, err)
	}
	return out
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	r := mustBuild(t, rewardStudy().input())
	if err := Write(dir, r); err != nil {
		t.Fatal(err)
	}
	names := []string{"report.html", "report.md", "results.csv", "report.json"}
	for _, f := range r.Figures {
		names = append(names, "figures/"+f.Name+".svg", "figures/"+f.Name+".png")
	}
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() < 500 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*", ".report-*")); len(left) > 0 {
		t.Errorf("temporary files are left: %v", left)
	}
	if err := Write(filepath.Join(dir, "report.md"), r); err == nil {
		t.Error("writing below a file gave no error")
	}
}

func TestSamplesForTheEye(t *testing.T) {
	if *show == "" {
		t.Skip("needs -show DIR")
	}
	for _, m := range []maker{rewardStudy(), scaleStudy(), failureStudy(), dataStudy()} {
		if err := Write(filepath.Join(*show, m.study.Name), mustBuild(t, m.input())); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHeadlineSaysWhatIsClear(t *testing.T) {
	r := mustBuild(t, rewardStudy().input())
	for _, want := range []string{"MACRO lifts sampled success from", "over the SFT checkpoint", "With 2 seeds an arm, seed noise cannot be judged"} {
		if !strings.Contains(r.Headline, want) {
			t.Errorf("headline lacks %q: %s", want, r.Headline)
		}
	}
	flat := rewardStudy()
	flat.gain = func(ablation.Arm) float64 { return 0.2 }
	r = mustBuild(t, flat.input())
	if !strings.Contains(r.Headline, "inside the noise") {
		t.Errorf("equal arms: headline = %s, want it to say that differences are inside the noise", r.Headline)
	}
	still := rewardStudy()
	still.gain = func(ablation.Arm) float64 { return sftRate }
	r = mustBuild(t, still.input())
	if !strings.Contains(r.Headline, "No arm lifts sampled success clear of its SFT checkpoint") {
		t.Errorf("no lift: headline = %s", r.Headline)
	}
}

// The arm with the best mean may be undecided where others are clear: the
// headline must not deny those.
func TestHeadlineNamesTheArmsThatAreClear(t *testing.T) {
	m := rewardStudy()
	best := 1
	m.gain = func(a ablation.Arm) float64 {
		if a.Index == best {
			return 0.62
		}
		return 0.5
	}
	m.change = func(_ int, r *RunData) {
		if r.Run.Arm.Index == best { // its SFT checkpoints were as good
			r.Evaluations[2] = m.evaluate(r.Run.ID, ablation.Planned{Arm: r.Run.Arm, Seed: r.Run.Seed}, policySFT, modeSampled, 0, 0.61)
		}
	}
	r := mustBuild(t, m.input())
	if !strings.Contains(r.Headline, "is undecided") || !strings.Contains(r.Headline, "clear of theirs: ") || strings.Contains(r.Headline, "No arm") {
		t.Errorf("headline = %s", r.Headline)
	}
}

func TestPartialReport(t *testing.T) {
	m := rewardStudy()
	m.change = func(i int, r *RunData) {
		if i >= 3 {
			r.Run.State = ablation.Running
		}
	}
	r := mustBuild(t, m.input())
	if !strings.Contains(r.Partial, "3 of 8 runs have finished, 5 are still to come") {
		t.Errorf("Partial = %q", r.Partial)
	}
	empty := mustBuild(t, Input{Study: ablation.StudyRecord{ID: 1, Study: ablation.Study{Name: "empty"}}})
	if empty.Partial == "" || !strings.Contains(empty.Headline, "nothing to compare") {
		t.Errorf("empty study: %q, %q", empty.Partial, empty.Headline)
	}
	if _, err := HTML(t.Context(), empty); err != nil {
		t.Errorf("HTML of an empty study: %v", err)
	}
}

func TestGuardNamesTheDifference(t *testing.T) {
	m := rewardStudy()
	m.change = func(i int, r *RunData) {
		if r.Run.Arm.Label == "SUM" {
			r.Hello.Info["code_hash"] = "0000000000000000"
			for k := range r.Evaluations {
				r.Evaluations[k].Hash = "another"
			}
		}
	}
	g := mustBuild(t, m.input()).Comparable
	if g.OK || len(g.Problems) != 2 {
		t.Errorf("guard = %+v, want two problems (panel and code)", g)
	}
	if !mustBuild(t, rewardStudy().input()).Comparable.OK {
		t.Error("a clean study is not comparable")
	}
}

// What stands in a text cell cannot run as a formula, and what identifies a
// machine or was planted as a secret is in no export.
func TestExportsAreSafe(t *testing.T) {
	m := rewardStudy()
	m.study.Name = "=HYPERLINK(0)"
	m.study.Base.Trainer.Env = map[string]string{"TOKEN": "canary-4711"}
	in := m.input2(t)
	for name, text := range files(t, in) {
		for _, bad := range []string{"canary-4711", "secret-host"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s holds %q", name, bad)
			}
		}
		if name == "results.csv" && (strings.Contains(text, "\n=") || !strings.Contains(text, "'=HYPERLINK")) {
			t.Errorf("results.csv holds an active formula")
		}
		if name == "report.html" && (strings.Contains(text, "<b>, $500") || strings.Contains(text, "http://") && !strings.Contains(text, "http://www.w3.org")) {
			t.Errorf("report.html holds markup from data or a remote address")
		}
	}
}

// input2 expands with a safe name and renames after, since a study file would
// refuse such a name.
func (m maker) input2(t *testing.T) Input {
	name := m.study.Name
	m.study.Name = "rewards"
	in := m.input()
	in.Study.Study.Name = name
	return in
}

func TestSafeCell(t *testing.T) {
	for in, want := range map[string]string{"=1+1": "'=1+1", "-3.5": "-3.5", "+4": "+4", "-rm": "'-rm", "@x": "'@x", "\tx": "'\tx", "plain": "plain", "": "", "−2": "−2"} {
		if got := safeCell(in); got != want {
			t.Errorf("safeCell(%q) = %q, want %q", in, got, want)
		}
	}
}

// Reports of the demo's size and of 500 runs, from data to value.
func BenchmarkBuild(b *testing.B) {
	big := rewardStudy()
	big.queries = 256
	big.study.Factors = []ablation.Factor{{Key: "algorithm.lr", Levels: nil}}
	for i := range 100 {
		big.study.Factors[0].Levels = append(big.study.Factors[0].Levels, 1e-4*float64(i+1))
	}
	big.study.Seeds = []uint64{1, 2, 3, 4, 5}
	big.gain = func(a ablation.Arm) float64 { return 0.1 + 0.002*float64(a.Index) }
	for name, m := range map[string]maker{"8 runs": rewardStudy(), "500 runs": big} {
		in := m.input()
		in.Options.Resamples = 2000
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Build(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
