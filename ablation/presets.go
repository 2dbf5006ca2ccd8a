package ablation

// A Preset is a named, complete recipe to start from.
type Preset struct {
	Name   string
	Title  string
	Help   string
	Recipe Recipe

	// Of a recipe that somebody published: what is theirs, with its source;
	// what is concluded or chosen here; and what nobody says.
	Published, Inferred, Unknown []string
}

// Presets lists the recipes a study can start from, the default first.
func Presets() []Preset {
	quick := quickRecipe()

	proxy := quick
	proxy.Preset = "proxy"
	proxy.Budget.Steps = 800
	proxy.Budget.CheckpointEvery = 100
	proxy.Evaluation.Every = 50
	proxy.Evaluation.Queries = 512
	proxy.Evaluation.Samples = 4

	solver := quick
	solver.Preset = "solver"
	solver.Trainer.Kind = "solver"
	solver.Environment.World = "small"
	solver.Environment.Cities = 40
	solver.Environment.Days = 0
	solver.Environment.BudgetFactor = 1
	solver.Environment.MaxTurns = 60
	solver.Environment.MaxTokens = 32768
	solver.Data.Prompts = 100
	solver.Budget.Steps = 0

	command := quick
	command.Preset = "command"
	command.Trainer.Kind = "command"
	command.Trainer.Command = []string{"python3", "train.py", "--spec", "{spec}"}

	return append([]Preset{
		{Name: "quick", Title: "Quick, CPU", Help: "a 0.15 M proxy policy on the nano world; a run takes about a minute on one core", Recipe: quick},
		{Name: "proxy", Title: "Proxy, CPU", Help: "the same policy trained four times as long and judged on twice the queries", Recipe: proxy},
		{Name: "solver", Title: "Solver", Help: "no policy: the exact solver answers synthesised or given queries, and the checks judge its plans", Recipe: solver},
		{Name: "endpoint", Title: "Endpoint", Help: "no training: a language model behind any OpenAI-compatible server plays the sandbox, and the checks judge its plans", Recipe: endpointRecipe(solver)},
		{Name: "command", Title: "Your script", Help: "any program that reads spec.json and appends events", Recipe: command},
	}, nativePresets()...)
}

// PresetNamed returns a preset's recipe.
func PresetNamed(name string) (Recipe, bool) {
	for _, p := range Presets() {
		if p.Name == name {
			return p.Recipe, true
		}
	}
	return Recipe{}, false
}

// PresetNames lists the presets' names.
func PresetNames() []string {
	var names []string
	for _, p := range Presets() {
		names = append(names, p.Name)
	}
	return names
}

// quickRecipe holds the settings found for the embedded trainer at the
// smallest useful budget; docs/embedded-trainer.md has the measurements.
func quickRecipe() Recipe {
	return Recipe{
		Preset:  "quick",
		Trainer: Trainer{Kind: "cpu", Devices: 1, Kernel: "auto"},
		Model:   Model{Size: "small", Base: "shipped"},
		Data:    Data{Prompts: 1000, Mix: "4:3:3", Seed: 1, Plans: "solver"},
		SFT:     SFT{Traces: 500, Epochs: 8, LR: 1.5e-3, Batch: 16, Noise: 0.25, FilterSuccess: false, FilterFormat: true, Control: true},
		Reward:  Reward{Kind: "MACRO", Stages: []float64{0.4, 0.4, 0.2}, Profile: "strict", FormatError: "zero"},
		Algorithm: Algorithm{
			Kind: "grpo", GroupSize: 8, PromptsPerStep: 16, LR: 3e-4, ClipLow: 0.2, ClipHigh: 0.28, Minibatches: 2,
			StdNorm: true, LossAgg: "token-mean", Temperature: 1, GradClip: 1, Overlong: "mask",
		},
		Environment: Environment{Kind: "travel", World: "nano", Cities: 40, Days: 3, BudgetFactor: 0.7, MaxTurns: 12, MaxTokens: 180},
		Budget:      Budget{Steps: 200, CheckpointEvery: 50},
		Evaluation:  Evaluation{Every: 25, Queries: 256, Samples: 2, Temperature: 1},
	}
}
