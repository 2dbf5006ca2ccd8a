// Package runner owns the life of runs. Make a [Runner] with [New], start it
// with [Runner.Run] and queue work with [Runner.Launch]; everything else is
// asking it to stop, resume or show something.
//
// The runs table is the queue and the attempts' folders are the truth, so a
// server may die at any moment: trainers go on beside their shims, and the
// next Run adopts them. Each live run has one goroutine that goes from launch
// through following the events file to the verdict on how it ended; that
// goroutine alone appends to the run's data.
//
// A run succeeded only if its done event was read and it had reached its last
// step. What cannot be known is lost, never failed, and nothing is queued
// again unless a person asks for it.
//
// The package knows no HTTP: the server gives it a Publish function and gives
// it to the pages.
package runner
