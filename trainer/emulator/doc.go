// Package emulator poses as the Python interpreter of a machine that has verl,
// rLLM or TRL on it, so that the whole road of a run can be tested where none
// of them is: it answers the adapters' probes, and writes what the frameworks
// write – consoles with Ray's prefixes, log files, dumps, checkpoints – and,
// on demand, how they fail.
//
// It is a test tool. It trains nothing: rewards come from episodes that it
// really plays against the run's environment, by a fixed policy that does not
// learn; every other figure is made up. What it says of itself is marked as
// emulated, and no package but tests and its own command imports it.
//
// A test puts the command (trainer/emulator/python) into a folder under the
// name python3, beside a file emulate.json with a [Config], and names that
// path as the run's interpreter.
package emulator
