// Package travel is the trip-planning sandbox: a world of flights, roads,
// accommodations, restaurants and attractions, six tools that search it, and
// a judge of plans with the benchmark's 8 commonsense and 5 hard constraints.
//
// Start with [LoadWorld] (or [NewWorld] on generated [Tables]) and
// [LoadQueries]. A program that plays calls [NewEpisode], then Call or Search
// for each tool, Finish with a [Plan], Reward, and takes the Trajectory; a
// language model is driven through the same episode by [React]. To judge a
// plan alone call [Judge], to judge files [ScoreFiles].
//
// There are three profiles. [Official] and [Star] give the verdicts of the two
// public evaluators bit for bit, slips and crashes included, so that numbers
// can be compared with published ones. [Strict] means what the rules mean and
// pays the reward. docs/sandbox.md says check by check where and why it
// departs from the others.
//
// A World and everything its methods return is read-only and safe for
// concurrent use. Judging never fails and never panics: whatever is wrong with
// a plan, of whatever JSON type, is in the verdicts. Worlds, queries and
// reference solutions are made by the sub-package synth; the token form for
// small models is in compact.
package travel
