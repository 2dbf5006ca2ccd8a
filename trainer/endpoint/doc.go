// Package endpoint is the trainer without training for language models: any
// server that speaks OpenAI's chat completions plays the travel sandbox, and
// what comes out is a run like any other, with points, an evaluation query by
// query, and every trajectory.
//
// A run is a set of episodes, queries times samples. Main runs them all, so
// many at once, and can be killed at any time: finished episodes are read
// back from the event logs of the run's attempts, and the answers of
// unfinished ones from a journal, so that nothing is asked, or paid, twice.
//
// What the model does wrong is its failure: words out of form, a context that
// is full, no plan. What the server does wrong never is: such a call is tried
// again, and an episode that cannot be finished is invalid. Invalid episodes
// are counted and reported, have no trajectory and no score, and are asked
// again when the run is resumed.
package endpoint
