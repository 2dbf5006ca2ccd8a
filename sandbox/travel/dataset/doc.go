// Package dataset writes and reads sets of travel queries and expert traces:
// TravelPlanner's and Agent-STAR's JSONL, Parquet for verl and TRL, chat
// messages for supervised fine-tuning, and the card that says what is in a set.
//
// Start with [Write] and [Read], which pick the form; [NewCard] describes a set.
package dataset
