package web

import (
	"context"
	"html"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"alidade/ablation"
	"alidade/ablation/studyfile"
)

// installed is a machine with TRL, without verl, and with small devices.
type installed struct{}

func (installed) Found(context.Context) []TrainerFound {
	return []TrainerFound{{Kind: "trl", What: "TRL", Ready: true, Found: "trl 1.16.0"}, {Kind: "verl", What: "verl", Found: "not installed", How: "pip install verl"}}
}

func (installed) Preflight(_ context.Context, r ablation.Recipe) Preflight {
	p := Preflight{
		Phases:    []MemoryPhase{{Name: "rollout", Parts: []MemoryPart{{"cache", 10}}}, {Name: "update", Parts: []MemoryPart{{"weights", 30}, {"logits", 60}}}},
		DeviceGiB: 80, Assumed: []string{"AdamW"},
		Findings: []Finding{{Level: "note", Text: "resolved"}, {Level: "warn", Key: "algorithm.group_size", Value: "8", Text: "is small"}},
	}
	if r.Reward.Kind == "SUM" {
		p.Findings = append(p.Findings, Finding{Level: "refuse", Key: "trainer.devices", Value: "1", Text: "the update needs about 90 GiB", Fix: "more devices"})
	}
	return p
}

func languageStudy(kind string) ablation.Study {
	base, _ := ablation.PresetNamed("quick")
	base.Trainer.Kind, base.Native.Model = kind, "Qwen/Qwen2.5-7B"
	base.Environment.World, base.Environment.Cities, base.Environment.Days = "small", 40, 3
	return ablation.Study{Name: "lm", Base: base, Design: ablation.DesignGrid, Seeds: []uint64{1, 2, 3}, Metric: "eval/success",
		Factors: []ablation.Factor{{Key: "reward.kind", Name: "reward", Levels: []any{"SUM", "MACRO"}}}}
}

// What stands in the way of a launch is on the page before it, with what to
// change, the arms it concerns and the memory drawn against the device.
func TestPreflightOnThePage(t *testing.T) {
	srv, _ := newTestSite(t, openStore(t), func(c *Config) { c.Trainers = installed{} })
	text, err := studyfile.Encode(languageStudy("trl"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.PostForm(srv.URL+"/studies/new", url.Values{"do": {"yaml"}, "yaml": {string(text)}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	page := html.UnescapeString(string(body))
	for _, want := range []string{
		"Devices a run 1: the run would be refused", "The update needs about 90 GiB. Instead: more devices. In 1 arm of 2.",
		"Group size G 8", "device 80 GiB", `aria-label="update: 90 GiB: weights 30.0, logits 60.0"`,
		"Not installed here: verl. Pip install verl.", `<option value="trl" selected>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%d: the page lacks %q", resp.StatusCode, want)
		}
	}
	for _, not := range []string{`<option value="verl"`, "resolved"} {
		if strings.Contains(page, not) {
			t.Errorf("the page has %q", not)
		}
	}
}

// A study that came from elsewhere keeps its trainer, installed or not.
func TestChosenTrainerStaysInTheForm(t *testing.T) {
	s, err := newSite(Config{Store: openStore(t), NoAuth: true, Trainers: installed{}})
	if err != nil {
		t.Fatal(err)
	}
	form := formOf(draftOf(languageStudy("verl")), history{}, nil)
	offer(form.Groups, s.missingKinds(t.Context()))
	for _, g := range form.Groups {
		for _, f := range g.Fields {
			if f.Key == "trainer.kind" && (f.Value != "verl" || !strings.Contains(f.Note, "verl")) {
				t.Errorf("trainer.kind: %+v", f)
			}
		}
	}
}
