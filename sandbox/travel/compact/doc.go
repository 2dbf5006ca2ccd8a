// Package compact lets a very small policy travel: it holds the nano world
// (round trips in an invented country), its queries, a solver that certifies
// each of them, and token languages: one of 225 words for three days in one
// city, in which a whole episode takes about 115 tokens, and one of 352 words
// for five days in two cities of a state (205 tokens) or seven days in three
// (290 tokens). [World.ForDays] chooses.
//
// Nothing is judged here. A [Session] turns tokens into calls and a plan of
// [travel.Episode], whose strict profile judges them like any other plan.
// Start with [NewWorld] and [World.Queries], then
// [World.NewSession]. [World.Expert], [World.RandomLegal], [World.Stroll] and
// [World.Recall] write traces to learn from or to compare with.
//
// Which token names which city or row is drawn anew for every episode, so
// that a policy can only look things up, never remember them.
package compact
