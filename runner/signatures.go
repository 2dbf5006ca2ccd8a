package runner

import (
	"bytes"
	"syscall"
)

// A class says what may be done after a failure.
type class int

const (
	never  class = iota // the configuration or the program is at fault: the same would happen again
	again               // the machine or its neighbours were: from the last checkpoint, a limited number of times
	change              // only after a change: less memory, another setting
	fix                 // the data or the environment is at fault: that comes first
)

// advice tells a person what comes next.
func (c class) advice() string {
	return [...]string{
		"not tried again by itself: the same would happen",
		"",
		"not tried again by itself: it needs a change first",
		"not tried again by itself: the data or the environment needs a repair first",
	}[c]
}

// A signature is what a known failure writes, and what may be done about it.
type signature struct {
	code  string
	class class
	tries int      // class again: new attempts within a day
	marks []string // any of them, as written
	words string   // what it means
	help  string   // what to do
	weak  bool     // training goes on after it: it is the cause only when nothing else is
}

// signatures of failures. The mark that comes first in the log decides: what
// follows is usually fallout of it. Wrappers that say nothing by themselves,
// such as Hydra's "Error executing job with overrides", are left out.
var signatures = []signature{
	{code: "config", class: never, words: "the trainer refused its configuration", help: "correct the key that the line names",
		marks: []string{"Could not override", "is not in struct", "ConfigAttributeError", "ConfigKeyError", "MissingMandatoryValue", "are not used by the HfArgumentParser", "Invalid loss_agg_mode", "Please set at least one of", "validation gen temperature should be"}},
	{code: "batch-sizes", class: never, words: "the batch sizes do not fit together", help: "make the batch sizes divide each other and the number of devices",
		marks: []string{"real_train_batch_size", "ppo_mini_batch_size (", "must be divisible by"}}, // trainers print their configuration, with the bare key
	{code: "reward-function", class: never, words: "the reward function is not there", help: "check the reward's path and the data's source name",
		marks: []string{"Reward function is not implemented for data_source"}},
	{code: "logger", class: never, words: "the trainer's own logger could not sign in", help: "set it offline or leave it out",
		marks: []string{"wandb.errors.UsageError", "api_key not configured"}},
	{code: "module", class: never, words: "a Python package is missing", help: "install it in the trainer's environment",
		marks: []string{"ModuleNotFoundError", "ImportError: "}},
	{code: "disk-full", class: fix, words: "the disk is full", help: "free some space; the last checkpoint may be incomplete",
		marks: []string{"No space left on device", "no space left on device", "Disk quota exceeded"}},
	{code: "cuda-oom", class: change, words: "the GPU's memory was not enough", help: "smaller micro-batches or token budget, less memory for the inference engine, or offloading",
		marks: []string{"CUDA out of memory", "CUDA Error: out of memory", "torch.OutOfMemoryError"}},
	{code: "kv-cache", class: change, words: "the inference engine had no memory for its cache", help: "more memory for the engine, a shorter context, or more GPUs for one model",
		marks: []string{"No available memory for the cache blocks", "larger than the maximum number of tokens that can be stored in KV cache"}},
	{code: "ray-oom", class: change, words: "the machine ran low on memory", help: "fewer workers, or less offloading to the CPU",
		marks: []string{"ray.exceptions.OutOfMemoryError", "was killed due to the node running low on memory"}},
	{code: "host-oom", class: change, words: "the machine's memory was not enough", help: "fewer workers, or less offloading to the CPU",
		marks: []string{"std::bad_alloc", "\nMemoryError", "ArrayMemoryError", "(MemoryError)", "Cannot allocate memory", "runtime: out of memory", "exitcode : -9", "exitcode  : -9"}},
	{code: "devices", class: change, words: "it did not find the devices it wanted", help: "ask for as many devices as the recipe's parallelism uses",
		marks: []string{"is less than total desired GPUs", "no CUDA-capable device is detected", "No CUDA GPUs are available", "no available node types"}},
	{code: "data", class: fix, words: "the data left nothing to train on", help: "look at the filters, the prompt length and the difficulty of the data",
		marks: []string{"Train dataloader is empty!", "Generated too many. Please check your data.", "is longer than max_prompt_length", "RuntimeError: Prompt length ", "is larger than max_length"}},
	{code: "rollout", class: fix, words: "an episode could not be completed", help: "look at the environment: one task stops the run",
		marks: []string{"Rollout failed permanently after", "cannot complete"}},
	{code: "tools", class: fix, weak: true, words: "the tools failed", help: "look at the environment's server",
		marks: []string{"Error when executing tool", "Error executing tool", "Failed to decode tool call"}},
	{code: "nccl", class: again, tries: 1, words: "communication between GPUs failed", help: "if it comes again it is a deadlock or a slow rank; a longer time-out does not help",
		marks: []string{"Watchdog caught collective operation timeout", "DistBackendError", "ncclSystemError", "ncclRemoteError", "ncclInternalError", "ncclUnhandledCudaError"}},
	{code: "worker-died", class: again, tries: 2, words: "a worker process died", help: "look for a killed process in the kernel's log if it comes again",
		marks: []string{"RayActorError", "ActorDiedError", "A worker died or was killed", "exit code None"}},
	{code: "engine-died", class: again, tries: 2, words: "the inference engine died", help: "if it comes again at the same step: a shorter prompt, or another version of the engine",
		marks: []string{"EngineDeadError", "EngineCore encountered a fatal error", "died unexpectedly"}},
	{code: "slow-start", class: again, tries: 2, words: "a part of the trainer did not start in time", help: "longer start-up time-outs",
		marks: []string{"Failed to get register_center_actor", "within 300 seconds"}},
	{code: "server-gone", class: again, tries: 2, words: "a server that the trainer needs was not there", help: "look at that server's log",
		marks: []string{"The vLLM server can't be reached", "alidade environment: "}},
	{code: "killed", class: change, words: "the training process was killed", help: "mostly the kernel's out-of-memory killer: fewer workers, or less offloading to the CPU",
		marks: []string{"ended with exit code 137"}}, // 128 + SIGKILL of a process that the trainer itself drives
	{code: "native", class: again, tries: 1, words: "the training process crashed in native code", help: "if it comes again at the same step: another version of the engine, or a shorter prompt",
		marks: []string{"ended with exit code 139", "ended with exit code 134"}},
	{code: "driver", class: again, tries: 1, words: "the GPU or its driver failed", help: "look at the device: it is put away if the fault is fatal",
		marks: []string{"NVRM: Xid", "GPU is lost", "CUDA error: an illegal memory access", "uncorrectable ECC error", "CUDA error: unspecified launch failure"}},
}

// others are causes that no log line names, with their classes.
var others = map[string]signature{
	"oom-killer":  {class: change},
	"preempted":   {class: again, tries: 100},
	"node-failed": {class: again, tries: 3},
	"time-limit":  {class: again, tries: 1000},
	"nan":         {class: change},
}

// ownSignatures are those of this program as a trainer: it has no CUDA, no
// Python and no workers. What such words mean in the log of a run that asks a
// server they mean for the server, not for the run.
var ownSignatures = []signature{
	{code: "disk-full", class: fix, words: "the disk is full", help: "free some space; the last checkpoint may be incomplete",
		marks: []string{"no space left on device", "disk quota exceeded"}},
	{code: "host-oom", class: change, words: "the machine's memory was not enough", help: "a smaller policy or batch, or fewer runs at once",
		marks: []string{"runtime: out of memory", "runtime: cannot allocate memory"}},
}

// signaturesOf are those that a trainer kind can write.
func signaturesOf(kind string) []signature {
	switch kind {
	case "cpu", "solver", kindEndpoint:
		return ownSignatures
	}
	return signatures
}

// signatureOf finds what is known of a cause's code.
func signatureOf(code string) signature {
	for _, s := range signatures {
		if s.code == code {
			return s
		}
	}
	return others[code]
}

// firstSignature finds the known mark of a trainer kind that comes first, and
// its line. A weak one counts only where there is no other.
func firstSignature(text []byte, kind string) (*signature, string) {
	var found *signature
	at := len(text)
	all := signaturesOf(kind)
	for i := range all {
		for _, mark := range all[i].marks {
			j := bytes.Index(text, []byte(mark))
			if j < 0 || found != nil && all[i].weak && !found.weak {
				continue
			}
			if j < at || found != nil && found.weak && !all[i].weak {
				found, at = &all[i], j
			}
		}
	}
	if found == nil {
		return nil, ""
	}
	from := bytes.LastIndexByte(text[:at], '\n') + 1
	line, _, _ := bytes.Cut(text[from:], []byte("\n"))
	return found, clean(line)
}

// signalWords says what a signal usually means, and its code.
func signalWords(signal string) (words, code string) {
	switch signal {
	case syscall.SIGKILL.String():
		return "it was killed from outside (SIGKILL)", "signal"
	case syscall.SIGTERM.String(), syscall.SIGINT.String(), syscall.SIGHUP.String():
		return "it was ended from outside (signal: " + signal + ")", "signal"
	case syscall.SIGSEGV.String(), syscall.SIGBUS.String(), syscall.SIGILL.String(), syscall.SIGFPE.String(), syscall.SIGABRT.String():
		return "it crashed in native code (signal: " + signal + ")", "native"
	}
	return "it was ended by a signal (" + signal + ")", "signal"
}
