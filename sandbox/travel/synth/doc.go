// Package synth makes what the travel sandbox is trained and tested on:
// generated worlds with the measured shape of the public data, flights for
// the public tables (which come without them here), queries at a chosen mix
// of difficulties, the solver that certifies each query solvable, and expert
// trajectories made from the solver's plans.
//
// Start with [Generate] or [AddFlights] for the tables, [NewWorld] for the
// index that sampling needs, [World.Queries] for certified queries and
// [World.Expert] for a trajectory.
//
// Everything is drawn from a seed: same seed, same world, queries and traces.
package synth

import "math/rand/v2"

// rng returns the generator for one purpose, so that adding a purpose does
// not shift the draws of the others.
func rng(seed uint64, purpose string) *rand.Rand {
	h := uint64(14695981039346656037)
	for i := range len(purpose) {
		h = (h ^ uint64(purpose[i])) * 1099511628211
	}
	return rand.New(rand.NewPCG(seed, h))
}

// pick returns a uniform element.
func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }
