package runner

import (
	"bytes"
	"fmt"
	"strings"
	"syscall"
)

// evidenceBytes is how much of stderr's end is searched for the cause.
const evidenceBytes = 512 << 10

// mostEvidence bounds the lines kept as proof.
const mostEvidence = 8

// A signature is what a known failure writes.
type signature struct {
	code  string
	marks []string // any of them, as written
	words string
}

// signatures of failures. The mark that comes first in the log decides: what
// follows is usually fallout of it.
var signatures = []signature{
	{"config", []string{"Could not override", "is not in struct", "ConfigAttributeError", "ConfigKeyError", "MissingMandatoryValue", "are not used by the HfArgumentParser", "Invalid loss_agg_mode"}, "the trainer refused its configuration"},
	{"disk-full", []string{"No space left on device", "no space left on device", "Disk quota exceeded"}, "the disk is full"},
	{"cuda-oom", []string{"CUDA out of memory", "CUDA Error: out of memory", "torch.OutOfMemoryError"}, "the GPU's memory was not enough"},
	{"kv-cache", []string{"No available memory for the cache blocks", "larger than the maximum number of tokens that can be stored in KV cache"}, "the inference engine had no memory for its cache"},
	{"ray-oom", []string{"ray.exceptions.OutOfMemoryError", "was killed due to the node running low on memory"}, "the machine ran low on memory"},
	{"host-oom", []string{"std::bad_alloc", "MemoryError", "Cannot allocate memory", "runtime: out of memory"}, "the machine's memory was not enough"},
	{"nccl", []string{"Watchdog caught collective operation timeout", "DistBackendError", "ncclSystemError", "ncclRemoteError"}, "communication between GPUs failed"},
	{"worker-died", []string{"RayActorError", "ActorDiedError", "A worker died or was killed"}, "a worker process died"},
	{"engine-died", []string{"EngineDeadError", "EngineCore encountered a fatal error", "AsyncEngineDeadError"}, "the inference engine died"},
	{"devices", []string{"is less than total desired GPUs", "no CUDA-capable device is detected", "No CUDA GPUs are available"}, "it did not find the devices it wanted"},
	{"data", []string{"Train dataloader is empty!", "Generated too many. Please check your data."}, "the data left nothing to train on"},
	{"driver", []string{"NVRM: Xid", "GPU is lost", "CUDA error: an illegal memory access", "uncorrectable ECC error"}, "the GPU or its driver failed"},
	{"module", []string{"ModuleNotFoundError", "ImportError: "}, "a Python package is missing"},
}

// diagnose names the cause of a failure, best evidence first: what the trainer
// said itself, what its log shows, the signal, the exit code.
func diagnose(e evidence) verdict {
	how := exitWords(e)
	if e.exit != nil && e.exit.Error != "" {
		return failed("not-started", e.exit.Error, nil)
	}
	if e.exit != nil && e.exit.Signal == syscall.SIGKILL.String() && e.exit.OOMKills > 0 {
		return failed("oom-killer", "the machine's memory was not enough: the kernel's out-of-memory killer ended it"+how,
			[]string{fmt.Sprintf("the killer struck %d times while it ran; its largest process used %d MiB", e.exit.OOMKills, e.exit.MaxRSSKiB>>10)})
	}
	if sig, line := firstSignature(e.stderr); sig != nil {
		return failed(sig.code, sig.words+how+": "+line, around(e.stderr, line))
	}
	if e.done != nil && e.done.Reason != "" {
		return failed("trainer", "the trainer said: "+e.done.Reason+how, lastLines(e.stderr, mostEvidence))
	}
	if line := traceback(e.stderr); line != "" {
		return failed("exception", line+how, around(e.stderr, line))
	}
	if e.nan != "" {
		return failed("nan", e.nan+how, lastLines(e.stderr, mostEvidence))
	}
	lines := lastLines(e.stderr, mostEvidence)
	cause := "it ended" + how + " and never said that it was done" + progress(e)
	if e.exit != nil && e.exit.Signal != "" {
		return failed("signal", signalWords(e.exit.Signal)+progress(e), lines)
	}
	if len(lines) > 0 {
		cause += ": " + lines[len(lines)-1]
	}
	return failed("exit", cause, lines)
}

func exitWords(e evidence) string {
	switch {
	case e.exit == nil:
		return ""
	case e.exit.Signal != "":
		return fmt.Sprintf(" (signal: %s)", e.exit.Signal)
	}
	return fmt.Sprintf(" (exit code %d)", e.exit.ExitCode)
}

// signalWords says what a signal usually means.
func signalWords(signal string) string {
	switch signal {
	case syscall.SIGKILL.String():
		return "it was killed from outside (SIGKILL)"
	case syscall.SIGTERM.String(), syscall.SIGINT.String(), syscall.SIGHUP.String():
		return "it was ended from outside (signal: " + signal + ")"
	case syscall.SIGSEGV.String(), syscall.SIGBUS.String(), syscall.SIGILL.String(), syscall.SIGFPE.String(), syscall.SIGABRT.String():
		return "it crashed in native code (signal: " + signal + ")"
	}
	return "it was ended by a signal (" + signal + ")"
}

func progress(e evidence) string {
	if e.run.TotalSteps == 0 {
		return ""
	}
	return fmt.Sprintf(", at step %d of %d", e.run.Step, e.run.TotalSteps)
}

// firstSignature finds the known mark that comes first, and its line.
func firstSignature(text []byte) (*signature, string) {
	var found *signature
	at := len(text)
	for i := range signatures {
		for _, mark := range signatures[i].marks {
			if j := bytes.Index(text, []byte(mark)); j >= 0 && j < at {
				found, at = &signatures[i], j
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

// traceback returns the exception of the first Python traceback, or the first
// line of a Go panic; "" when there is neither.
func traceback(text []byte) string {
	inside := false
	for line := range bytes.Lines(text) {
		switch {
		case bytes.HasPrefix(line, []byte("Traceback (most recent call last):")):
			inside = true
		case bytes.HasPrefix(line, []byte("panic: ")), bytes.HasPrefix(line, []byte("fatal error: ")):
			return clean(line)
		case inside && len(bytes.TrimSpace(line)) > 0 && line[0] != ' ' && line[0] != '\t':
			return clean(line)
		}
	}
	return ""
}

// around returns the first line that reads as given, with some before it.
func around(text []byte, want string) []string {
	var lines []string
	for line := range bytes.Lines(text) {
		if s := clean(line); s != "" {
			lines = append(lines, s)
			if s == want {
				break
			}
		}
	}
	return lines[max(0, len(lines)-mostEvidence):]
}

// lastLines returns the last n lines that are not blank.
func lastLines(text []byte, n int) []string {
	var lines []string
	for line := range bytes.Lines(text) {
		if s := clean(line); s != "" {
			lines = append(lines, s)
		}
	}
	return lines[max(0, len(lines)-n):]
}

// clean makes a log line fit to show: what a carriage return overwrote is
// left out, it is valid UTF-8 and not endless.
func clean(line []byte) string {
	line = bytes.TrimRight(line, "\r\n \t")
	line = line[bytes.LastIndexByte(line, '\r')+1:]
	if len(line) > 500 {
		line = line[:500]
	}
	return strings.ToValidUTF8(string(line), "\uFFFD")
}

func withLines(text string, lines []string) string {
	if len(lines) == 0 {
		return text
	}
	return text + "\n" + strings.Join(lines, "\n")
}
