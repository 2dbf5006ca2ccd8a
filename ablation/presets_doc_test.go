package ablation_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"alidade/ablation"
)

var update = flag.Bool("update", false, "write docs/presets.md")

// TestPresetsPage writes the page of presets from the presets, so that what it
// says of a recipe is what a run gets.
func TestPresetsPage(t *testing.T) {
	path := filepath.Join("..", "docs", "presets.md")
	got := presetsPage()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s is not what the presets say; run go test ./ablation -run PresetsPage -update", path)
	}
}

func presetsPage() []byte {
	var b bytes.Buffer
	fmt.Fprintln(&b, "# Presets\n\nRecipes to start from, by `preset:` in a study file or on the New study page. Any key may be changed; a run shows what it differs in.\nThis page is made from the presets themselves.\n\n| preset | trainer | model | what it is |\n|---|---|---|---|")
	for _, p := range ablation.Presets() {
		model := p.Recipe.Model.Size
		if p.Recipe.IsNative() {
			model = p.Recipe.Native.Model
		}
		if k := p.Recipe.Trainer.Kind; k == "solver" || k == "endpoint" || k == "command" {
			model = "–"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", p.Name, strings.TrimSpace(p.Recipe.Trainer.Kind+" "+p.Recipe.Native.Version), model, p.Help)
	}
	fmt.Fprintln(&b, "\nThe last recipes follow publications. None of them is a reproduction: the published runs had other data, other hardware and often other code.\nWhat is published, what was concluded or chosen here, and what nobody says stands below, recipe by recipe.")
	for _, p := range ablation.Presets() {
		if len(p.Published)+len(p.Inferred)+len(p.Unknown) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n`%s`: %s.\n", p.Title, p.Name, p.Help)
		section(&b, "Published", p.Published)
		section(&b, "Concluded or chosen here", p.Inferred)
		section(&b, "Unknown", p.Unknown)
		a, e := p.Recipe.Algorithm, p.Recipe.Environment
		if p.Recipe.Trainer.Kind == "llamafactory" {
			s := p.Recipe.SFT
			fmt.Fprintf(&b, "\n%d traces, %g epochs, learning rate %g, batch %d, %d devices.\n", s.Traces, s.Epochs, s.LR, s.Batch, p.Recipe.Trainer.Devices)
			continue
		}
		fmt.Fprintf(&b, "\n%s, reward %s, %d prompts of %d rollouts a step, %d updates, learning rate %g, clip %g and %g, %s, over-long: %s; %d steps, %d turns, %d tokens, %d devices.\n",
			a.Kind, p.Recipe.Reward.Kind, a.PromptsPerStep, a.GroupSize, a.Minibatches, a.LR, a.ClipLow, a.ClipHigh, a.LossAgg, a.Overlong, p.Recipe.Budget.Steps, e.MaxTurns, e.MaxTokens, p.Recipe.Trainer.Devices)
	}
	return b.Bytes()
}

func section(b *bytes.Buffer, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n**%s**\n\n", title)
	for _, l := range lines {
		fmt.Fprintf(b, "- %s\n", l)
	}
}

// TestPublishedRecipesSaySo: a preset of a publication names its source, and
// says what is not from there.
func TestPublishedRecipesSaySo(t *testing.T) {
	for _, p := range ablation.Presets() {
		if !p.Recipe.IsNative() {
			continue
		}
		if len(p.Inferred) == 0 || p.Recipe.Native.Model != "tiny" && (len(p.Published) < 2 || len(p.Unknown) == 0) {
			t.Errorf("%s: %d published, %d inferred, %d unknown", p.Name, len(p.Published), len(p.Inferred), len(p.Unknown))
		}
		if p.Recipe.Trainer.Kind == "verl" && p.Recipe.Native.Version == "" {
			t.Errorf("%s is not locked to a version", p.Name)
		}
		if p.Recipe.Preset != p.Name {
			t.Errorf("%s calls itself %s", p.Name, p.Recipe.Preset)
		}
	}
}
