// Package cpu is the embedded trainer: it really trains small policies, on
// one CPU core and in minutes. [Main] reads spec.json and appends to
// events.jsonl, like any other trainer.
//
// A run has four stages: data (world, queries, expert traces), sft, rl (GRPO)
// and, if asked for, the control (SFT continued for the RL phase's compute).
// All but rl make artifacts that are addressed by what they depend on and
// shared by every run that asks for the same. Each random number is drawn from
// a stream named by its purpose and position, and budgets are steps, so a
// recipe and a seed always give the same numbers, with or without a resume.
//
// The numeric engine is in the sub-package nn, the environment in
// sandbox/travel/compact.
package cpu
