package slurm

// AlwaysArrays makes a job array even of a single run.
func (l *Launcher) AlwaysArrays() { l.arrays.always = true }
