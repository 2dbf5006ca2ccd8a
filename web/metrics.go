package web

import (
	"math"
	"strings"

	"alidade/ablation"
	"alidade/trainer"
)

// metricInfo says how a metric is written: its words, unit and scale.
type metricInfo struct {
	Label   string `json:"label"`
	Unit    string `json:"unit,omitempty"`
	Percent bool   `json:"percent,omitempty"` // a fraction, shown × 100
	Zero    bool   `json:"zero,omitempty"`    // the axis starts at 0
	Line    bool   `json:"line,omitempty"`    // a constant to draw as a line: a baseline
	Lower   bool   `json:"lower,omitempty"`   // smaller is better
	Digits  int    `json:"digits"`
}

// metricTable holds the metrics that trainers log under agreed names. What is
// not in it is shown under its own name.
var metricTable = map[string]metricInfo{
	"reward/mean":               {Label: "Reward", Unit: "a rollout", Digits: 2},
	"reward/cs_micro":           {Label: "Reward from commonsense, micro", Digits: 3},
	"reward/cs_macro":           {Label: "Reward from commonsense, macro", Digits: 3},
	"reward/hard_micro":         {Label: "Reward from hard constraints, micro", Digits: 3},
	"reward/hard_macro":         {Label: "Reward from hard constraints, macro", Digits: 3},
	"reward/success":            {Label: "Reward from success", Digits: 3},
	"reward/format_error":       {Label: "Reward lost to format errors", Digits: 3},
	"train/success":             {Label: "Success in training", Percent: true, Zero: true, Digits: 1},
	"policy/entropy":            {Label: "Entropy", Unit: "nats a token", Zero: true, Digits: 3},
	"policy/clip_low":           {Label: "Clipped from below", Percent: true, Zero: true, Digits: 2},
	"policy/clip_high":          {Label: "Clipped from above", Percent: true, Zero: true, Digits: 2},
	"policy/grad_norm":          {Label: "Gradient norm", Zero: true, Digits: 3},
	"policy/clip_dual":          {Label: "Bounded by the dual clip", Percent: true, Zero: true, Digits: 2},
	"policy/ratio_min":          {Label: "Ratio, smallest", Digits: 3},
	"policy/ratio_p01":          {Label: "Ratio, 1st percentile", Digits: 3},
	"policy/ratio_p10":          {Label: "Ratio, 10th percentile", Digits: 3},
	"policy/ratio_p50":          {Label: "Ratio, median", Digits: 4},
	"policy/ratio_p90":          {Label: "Ratio, 90th percentile", Digits: 3},
	"policy/ratio_p99":          {Label: "Ratio, 99th percentile", Digits: 3},
	"policy/ratio_max":          {Label: "Ratio, largest", Digits: 3},
	"policy/ess":                {Label: "Effective sample size", Percent: true, Digits: 2},
	"policy/kl":                 {Label: "KL to the SFT checkpoint", Unit: "nats a token", Digits: 4},
	"policy/entropy_coeff":      {Label: "Entropy coefficient", Zero: true, Digits: 5},
	"policy/loss":               {Label: "Policy loss", Digits: 4},
	"policy/lr":                 {Label: "Learning rate", Zero: true, Digits: 6},
	"rollout/tokens":            {Label: "Length", Unit: "tokens a rollout", Digits: 0},
	"rollout/generated":         {Label: "Generated", Unit: "tokens a rollout", Digits: 0},
	"rollout/tool_calls":        {Label: "Tool calls", Unit: "a rollout", Digits: 1},
	"rollout/injected":          {Label: "Injected failures", Unit: "a rollout", Zero: true, Digits: 2},
	"rollout/format_error":      {Label: "Format errors", Percent: true, Zero: true, Digits: 1},
	"rollout/overlong":          {Label: "Over-long rollouts", Percent: true, Zero: true, Digits: 1},
	"group/zero_variance":       {Label: "Groups without variance", Percent: true, Zero: true, Digits: 1},
	"speed/tokens_per_s":        {Label: "Speed", Unit: "tokens/s", Zero: true, Digits: 0},
	"speed/sample_tokens_per_s": {Label: "Sampling speed", Unit: "tokens/s", Zero: true, Digits: 0},
	"speed/train_tokens_per_s":  {Label: "Training speed", Unit: "tokens/s", Zero: true, Digits: 0},
	"time/step_s":               {Label: "Time a step", Unit: "s", Zero: true, Digits: 2, Lower: true},
	"pretrain/loss":             {Label: "Pre-training loss", Unit: "nats a token", Digits: 3, Lower: true},
	"pretrain/tokens_per_s":     {Label: "Pre-training speed", Unit: "tokens/s", Zero: true, Digits: 0},
	"sft/loss":                  {Label: "SFT loss", Unit: "nats a token", Digits: 3, Lower: true},
	"sft/lr":                    {Label: "SFT learning rate", Zero: true, Digits: 6},
	"sft/tokens_per_s":          {Label: "SFT speed", Unit: "tokens/s", Zero: true, Digits: 0},
	"eval/success":              {Label: "Success", Percent: true, Zero: true, Digits: 1},
	"eval/success_greedy":       {Label: "Success, greedy", Percent: true, Zero: true, Digits: 1},
	"eval/format_error":         {Label: "Format errors in evaluation", Percent: true, Zero: true, Digits: 1},
	"eval/overlong":             {Label: "Over-long in evaluation", Percent: true, Zero: true, Digits: 1},
	"eval/delivery":             {Label: "Plans delivered", Percent: true, Zero: true, Digits: 1},
	"eval/cs_micro":             {Label: "Commonsense, micro", Percent: true, Zero: true, Digits: 1},
	"eval/cs_macro":             {Label: "Commonsense, macro", Percent: true, Zero: true, Digits: 1},
	"eval/hard_micro":           {Label: "Hard constraints, micro", Percent: true, Zero: true, Digits: 1},
	"eval/hard_macro":           {Label: "Hard constraints, macro", Percent: true, Zero: true, Digits: 1},
	"eval/success_easy":         {Label: "Success, easy", Percent: true, Zero: true, Digits: 1},
	"eval/success_medium":       {Label: "Success, medium", Percent: true, Zero: true, Digits: 1},
	"eval/success_hard":         {Label: "Success, hard", Percent: true, Zero: true, Digits: 1},
	"eval/success_official":     {Label: "Success, official checks", Percent: true, Zero: true, Digits: 1},
	"eval/success_star":         {Label: "Success, star checks", Percent: true, Zero: true, Digits: 1},
	"ood/accuracy":              {Label: "Out of domain", Percent: true, Zero: true, Digits: 1},
	"ood/called":                {Label: "Out of domain: right look-up", Percent: true, Zero: true, Digits: 1},
	"ood/unseen_called":         {Label: "Out of domain: unseen tool called", Percent: true, Zero: true, Digits: 1},
	"eval/tool_calls":           {Label: "Tool calls in evaluation", Unit: "a rollout", Digits: 1},
	"eval/reward":               {Label: "Reward in evaluation", Unit: "a rollout", Digits: 2},
	"eval/success_strict":       {Label: "Success, strict checks", Percent: true, Zero: true, Digits: 1},
	"eval/tool_errors":          {Label: "Failed calls in evaluation", Unit: "a rollout", Zero: true, Digits: 2, Lower: true},
	"eval/turns":                {Label: "Turns in evaluation", Unit: "a rollout", Digits: 1},
	"rollout/tool_errors":       {Label: "Failed calls", Unit: "a rollout", Zero: true, Digits: 2, Lower: true},
	"rollout/turns":             {Label: "Turns", Unit: "a rollout", Digits: 1},
	"rollout/invalid":           {Label: "Rollouts lost by the environment", Percent: true, Zero: true, Digits: 1, Lower: true},
	"rollout/delivery":          {Label: "Plans delivered in training", Percent: true, Zero: true, Digits: 1},
	"rollout/injected_share":    {Label: "Injected failures", Unit: "of the calls", Percent: true, Zero: true, Digits: 1},
	"rollout/tool_failure":      {Label: "Failures that were not injected", Unit: "of the calls", Percent: true, Zero: true, Digits: 1, Lower: true},
	"rollout/length_clipped":    {Label: "Responses at the limit", Percent: true, Zero: true, Digits: 1, Lower: true},
	"rollout/generated_min":     {Label: "Generated, shortest", Unit: "tokens a rollout", Digits: 0},
	"rollout/generated_max":     {Label: "Generated, longest", Unit: "tokens a rollout", Digits: 0},
	"rollout/prompt_tokens":     {Label: "Prompt", Unit: "tokens", Digits: 0},
	"reward/std":                {Label: "Spread of the reward", Unit: "SD", Zero: true, Digits: 3},
	"reward/min":                {Label: "Lowest reward", Digits: 2},
	"reward/max":                {Label: "Highest reward", Digits: 2},
	"policy/kl_loss":            {Label: "KL in the loss", Digits: 4},
	"memory/peak_gib":           {Label: "Memory, peak", Unit: "GiB a device", Zero: true, Digits: 1},
	"memory/reserved_gib":       {Label: "Memory, reserved", Unit: "GiB a device", Zero: true, Digits: 1},
	"memory/allocated_gb":       {Label: "Memory, allocated", Unit: "GB a device", Zero: true, Digits: 1},
	"memory/reserved_gb":        {Label: "Memory, reserved", Unit: "GB a device", Zero: true, Digits: 1},
	"memory/host_gb":            {Label: "Memory of the host", Unit: "GB", Zero: true, Digits: 1},
	"speed/tokens_per_s_gpu":    {Label: "Speed of a device", Unit: "tokens/s", Zero: true, Digits: 0},
	"speed/mfu":                 {Label: "Share of the device's arithmetic", Percent: true, Zero: true, Digits: 1},
	"mismatch/pearson":          {Label: "Engine against trainer, correlation", Digits: 4},
	"mismatch/probs_mean":       {Label: "Engine against trainer, mean gap", Unit: "of a token's probability", Zero: true, Digits: 4, Lower: true},
	"mismatch/probs_max":        {Label: "Engine against trainer, largest gap", Unit: "of a token's probability", Zero: true, Digits: 3, Lower: true},
	"time/rollout_s":            {Label: "Time of rollouts", Unit: "s a step", Zero: true, Digits: 1, Lower: true},
	"time/update_s":             {Label: "Time of updates", Unit: "s a step", Zero: true, Digits: 1, Lower: true},
	"time/reward_s":             {Label: "Time of rewards", Unit: "s a step", Zero: true, Digits: 1, Lower: true},
	"time/tool_calls_s":         {Label: "Time of tool calls", Unit: "s a step", Zero: true, Digits: 1, Lower: true},
	"eval/tokens":               {Label: "Length in evaluation", Unit: "tokens a rollout", Digits: 0},
	"baseline/random_legal":     {Label: "Random legal", Percent: true, Zero: true, Line: true, Digits: 1},
	"baseline/expert":           {Label: "Expert", Percent: true, Zero: true, Line: true, Digits: 1},
	"baseline/sft":              {Label: "SFT only", Percent: true, Zero: true, Line: true, Digits: 1},
	"baseline/sft_continued":    {Label: "SFT continued", Percent: true, Zero: true, Line: true, Digits: 1},
}

// infoOf says how to write a metric.
func infoOf(name string) metricInfo {
	if m, ok := metricTable[name]; ok {
		return m
	}
	for _, prefix := range []string{"check/", "eval/check/"} {
		if key, ok := strings.CutPrefix(name, prefix); ok {
			if label := trainer.CheckName(key); label != "" {
				return metricInfo{Label: label, Percent: true, Zero: true, Digits: 1}
			}
		}
	}
	return metricInfo{Label: visible(name), Digits: 3}
}

// unitText is the unit for a column head or a subtitle.
func (m metricInfo) unitText() string {
	if m.Percent {
		return "%"
	}
	return m.Unit
}

// format writes a value of the metric without its unit.
func (m metricInfo) format(v float64) string {
	if m.Percent && !math.IsInf(v, 0) {
		v *= 100
	}
	return fixed(v, m.Digits)
}

// scale is what the shown value is multiplied by.
func (m metricInfo) scale() float64 {
	if m.Percent {
		return 100
	}
	return 1
}

// headlineMetrics picks the metrics beside the primary one in a study's table
// and live panel, as far as they exist.
func headlineMetrics(names []string, primary string, want ...string) []string {
	have := map[string]bool{}
	for _, n := range names {
		have[n] = true
	}
	var out []string
	for _, n := range want {
		if have[n] && n != primary {
			out = append(out, n)
		}
	}
	return out
}

// stateWord is a run's state as an icon and a word.
func stateWord(r ablation.Run) (kind, word string) {
	switch r.State {
	case ablation.Queued:
		return "queue", "queued"
	case ablation.Starting:
		return "run", "starting"
	case ablation.Running:
		if r.Phase != "" && r.Phase != "rl" {
			return "run", "running, " + phaseWord(r.Phase)
		}
		return "run", "running"
	case ablation.Stopping:
		return "stop", "stopping"
	case ablation.Succeeded:
		return "ok", "finished"
	case ablation.Failed:
		return "bad", "failed"
	case ablation.Stopped:
		return "stop", "stopped"
	case ablation.Lost:
		return "lost", "lost"
	}
	return "info", string(r.State)
}

// phaseWord writes a phase as people say it.
func phaseWord(p string) string {
	switch p {
	case "sft":
		return "SFT"
	case "rl":
		return "RL"
	case "eval":
		return "evaluation"
	}
	return p
}
