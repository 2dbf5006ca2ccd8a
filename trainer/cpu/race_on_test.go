//go:build race

package cpu

// raceOn is set when the race detector is: it slows plain arithmetic down
// tenfold, so single-threaded number crunching is tested without it, in the
// same make test.
const raceOn = true
