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

// diagnose names the cause of a failure, best evidence first: the kernel's
// out-of-memory killer, what its log shows, what the trainer said itself, the
// signal, the exit code.
func diagnose(e evidence) verdict {
	how := exitWords(e)
	if e.exit != nil && e.exit.Error != "" {
		return failed("not-started", e.exit.Error, nil)
	}
	if e.exit != nil && e.exit.Signal == syscall.SIGKILL.String() && e.exit.OOMKills > 0 {
		return failed("oom-killer", "the machine's memory was not enough: the kernel's out-of-memory killer ended it"+how,
			[]string{fmt.Sprintf("the killer struck %d times while it ran; its largest process used %d MiB", e.exit.OOMKills, e.exit.MaxRSSKiB>>10)})
	}
	kind := e.run.Arm.Recipe.Trainer.Kind
	if kind == kindEndpoint && e.done != nil && e.done.Reason != "" { // its log quotes what another machine said of itself
		return failed("trainer", "the trainer said: "+e.done.Reason+how, lastLines(e.stderr, mostEvidence))
	}
	for _, text := range [][]byte{e.stderr, e.stdout} {
		if sig, line := firstSignature(text, kind); sig != nil {
			return failed(sig.code, sig.words+how+": "+line, around(text, line))
		}
	}
	if len(e.kernel) > 0 {
		return failed("driver", signatureOf("driver").words+how+": "+e.kernel[0], e.kernel)
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
		words, code := signalWords(e.exit.Signal)
		return failed(code, words+progress(e), lines)
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

func progress(e evidence) string {
	if e.run.TotalSteps == 0 {
		return ""
	}
	return fmt.Sprintf(", at step %d of %d", e.run.Step, e.run.TotalSteps)
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
