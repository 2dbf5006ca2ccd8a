package store

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"alidade/ablation"
	"alidade/trainer"
)

// exitRecord is exit.json, written by the process beside the trainer.
type exitRecord struct {
	ExitCode *int      `json:"exit_code"`
	Signal   string    `json:"signal"`
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended"`
}

// attemptFromSpec is what an attempt's spec and its shim's record tell.
func attemptFromSpec(dir string) ablation.Attempt {
	a := ablation.Attempt{State: ablation.Starting}
	var spec struct {
		ResumeStep int64    `json:"resume_step"`
		Devices    []string `json:"devices"`
	}
	if readJSON(filepath.Join(dir, "spec.json"), &spec) == nil {
		a.FirstStep, a.Device = spec.ResumeStep, strings.Join(spec.Devices, ",")
	}
	var shim struct {
		PID     int       `json:"pid"`
		Started time.Time `json:"started"`
	}
	if readJSON(filepath.Join(dir, "shim.json"), &shim) == nil {
		a.PID, a.StartedAt = shim.PID, shim.Started
	}
	return a
}

// judge says how an attempt ended, by its done event and its exit record.
func judge(a *ablation.Attempt, done *trainer.Done, exitPath string) {
	var exit exitRecord
	ended := readJSON(exitPath, &exit) == nil
	if ended {
		a.ExitCode, a.Signal, a.EndedAt = exit.ExitCode, exit.Signal, exit.Ended
		if a.StartedAt.IsZero() {
			a.StartedAt = exit.Started
		}
	}
	switch {
	case done != nil && done.OK:
		a.State = ablation.Succeeded
	case done != nil && done.Reason == "stopped":
		a.State = ablation.Stopped
	case done != nil:
		a.State, a.Cause = ablation.Failed, done.Reason
	case ended && exit.Signal != "":
		a.State, a.Cause = ablation.Failed, "ended by signal "+exit.Signal
	case ended && exit.ExitCode != nil:
		a.State, a.Cause = ablation.Failed, fmt.Sprintf("ended with exit code %d before its last step", *exit.ExitCode)
	default:
		a.State, a.Cause = ablation.Lost, "no exit record was found when the database was rebuilt"
	}
}
