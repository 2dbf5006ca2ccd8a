package web

import (
	"reflect"
	"testing"

	"alidade/ablation"
)

// Every template goes into the form and comes out the same study.
func TestDraftKeepsStudies(t *testing.T) {
	for _, tpl := range ablation.Templates() {
		st, planned, bad := draftOf(tpl.Study).check()
		if len(bad) > 0 {
			t.Errorf("%s: %v", tpl.ID, bad)
		}
		if !reflect.DeepEqual(st, tpl.Study) {
			t.Errorf("%s: the form changed the study\n got %+v\nwant %+v", tpl.ID, st, tpl.Study)
		}
		if len(planned) == 0 {
			t.Errorf("%s: no runs", tpl.ID)
		}
	}
}

// Values that texts could bend come through as they were.
func TestDraftKeepsAwkwardValues(t *testing.T) {
	base, _ := ablation.PresetNamed("command")
	base.Trainer.Command = []string{"sh", "-c", "echo a\necho b", ""}
	base.Trainer.Env = map[string]string{"A": "x=y", "B B": " padded "}
	base.Algorithm.LR = 1.5e-7
	st := ablation.Study{
		Name: "awkward", Question: "Does\nit hold?", Base: base, Design: ablation.DesignList,
		Arms:  []map[string]any{{"reward.kind": "SUM", "data.queries_file": "a;b.jsonl"}, {"algorithm.norm_adv_by_std": false, "algorithm.lr": 0.25}},
		Seeds: []uint64{1, 18446744073709551615}, Metric: "eval/success", MinDifference: 0.123456789012345, Concurrency: 3, Notes: "one\ntwo",
		Priority: -4, Halving: &ablation.Halving{Metric: "eval/success", Rungs: []int64{20, 60}, Reduction: 3},
	}
	got, bad := draftOf(st).study()
	if len(bad) > 0 {
		t.Fatalf("problems: %v", bad)
	}
	if !reflect.DeepEqual(got, st) {
		t.Errorf("the form changed the study\n got %+v\nwant %+v", got, st)
	}
}

func TestDraftNamesWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*draft)
		field  string
	}{
		{"no name", func(d *draft) { d.Name = "" }, "name"},
		{"seed", func(d *draft) { d.Seeds = "1, two" }, "seeds"},
		{"seed twice", func(d *draft) { d.Seeds = "1-3, 2" }, "seeds"},
		{"out of range", func(d *draft) { d.Values["algorithm.clip_low"] = "7" }, "algorithm.clip_low"},
		{"not a number", func(d *draft) { d.Values["algorithm.group_size"] = "many" }, "algorithm.group_size"},
		{"rule between keys", func(d *draft) { d.Values["algorithm.clip_high"] = "0.1" }, "algorithm.clip_high"},
		{"level", func(d *draft) { d.Factors[0].Levels[1] = "MACROS" }, "factors[0].levels[1]"},
		{"level twice", func(d *draft) { d.Factors[0].Levels[1] = d.Factors[0].Levels[0] }, "factors[0].levels[1]"},
		{"difference", func(d *draft) { d.MinDifference = "much" }, "min_difference"},
		{"priority", func(d *draft) { d.Queue.Priority = "first" }, "priority"},
		{"rungs", func(d *draft) { d.Queue = queueDraft{Halving: "a", HalvingRungs: "20, x", HalvingBy: "3"} }, "halving.rungs"},
		{"halving without rungs", func(d *draft) { d.Queue = queueDraft{Halving: "a", HalvingBy: "3"} }, "halving.rungs"},
		{"reduction", func(d *draft) { d.Queue = queueDraft{Halving: "a", HalvingRungs: "20", HalvingBy: "1"} }, "halving.reduction"},
		{"concurrency", func(d *draft) { d.Concurrency = "1.5" }, "concurrency"},
		{"arm key", func(d *draft) { d.Design, d.Arms = "list", "reward.knd=SUM" }, "arms[0]"},
		{"preset", func(d *draft) { d.Preset = "huge" }, "preset"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tpl, _ := ablation.TemplateByID("star-table-1-quick")
			d := draftOf(tpl.Study)
			c.change(&d)
			_, planned, bad := d.check()
			if len(bad) == 0 || len(planned) > 0 {
				t.Fatalf("accepted: %d runs", len(planned))
			}
			for _, b := range bad {
				if b.Field == c.field && problemText(b) != "" {
					return
				}
			}
			t.Errorf("no problem at %s: %v", c.field, bad)
		})
	}
}

func TestDraftActs(t *testing.T) {
	tpl, _ := ablation.TemplateByID("star-table-1-quick")
	d := draftOf(tpl.Study)
	do := func(act string) {
		t.Helper()
		if err := d.apply(act, ""); err != nil {
			t.Fatal(err)
		}
	}
	do("factor-add:algorithm.group_size")
	do("factor-add:algorithm.group_size") // twice changes nothing
	do("factor-add:no.such")
	if len(d.Factors) != 2 || d.Factors[1].Levels[0] != "8" || len(d.Factors[1].Levels) != 2 {
		t.Fatalf("factors %+v", d.Factors)
	}
	d.Factors[1].Add = "4, 32"
	do("check")
	if got := d.Factors[1].Levels; !reflect.DeepEqual(got, []string{"8", "16", "4", "32"}) {
		t.Errorf("levels %v", got)
	}
	do("level-remove:1:1")
	do("level-remove:1:99")
	do("factor-up:1")
	do("factor-up:0")
	if d.Factors[0].Key != "algorithm.group_size" || len(d.Factors[0].Levels) != 3 {
		t.Errorf("factors %+v", d.Factors)
	}
	d.Values["algorithm.lr"] = "0.5"
	do("reset:algorithm.lr")
	quick, _ := ablation.PresetNamed("quick")
	if d.Values["algorithm.lr"] != valueText(quick.Algorithm.LR) {
		t.Errorf("lr %s after reset", d.Values["algorithm.lr"])
	}
	do("factor-remove:0")
	do("preset:proxy")
	proxy, _ := ablation.PresetNamed("proxy")
	if d.Preset != "proxy" || d.Values["budget.steps"] != valueText(int64(proxy.Budget.Steps)) || len(d.Factors) != 1 {
		t.Errorf("preset %s, steps %s, factors %d", d.Preset, d.Values["budget.steps"], len(d.Factors))
	}
	if err := d.apply("yaml", "name: x\nbase: {rewrd: SUM}\n"); err == nil {
		t.Error("a broken file was taken")
	}
}

func TestSeeds(t *testing.T) {
	for text, want := range map[string][]uint64{"1, 2,3": {1, 2, 3}, "1–3": {1, 2, 3}, "5-5 9": {5, 9}, "": nil, "[1, 2]": {1, 2}} {
		got, err := parseSeeds(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"a", "3-1", "1-99999999", "-1", "1.5"} {
		if _, err := parseSeeds(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
