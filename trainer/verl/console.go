package verl

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"alidade/trainer"
	"alidade/trainer/native"
)

var (
	ansi = regexp.MustCompile(`\x1b\[[0-9;?]*[ -/]*[@-~]`)
	// rayPrefix is what Ray puts before the lines of its workers.
	rayPrefix = regexp.MustCompile(`^\((?:[A-Za-z_][\w.:<>-]*|pid=\d+)(?: pid=\d+)?(?:, ip=[^)]*)?\) ?`)
	repeated  = regexp.MustCompile(`\s*\[repeated \d+x across cluster\][^\n]*$`)
	stepMark  = regexp.MustCompile(`(?:^|[\s(])step:(\d+)(?: - |\s*$)`)
	numpyText = regexp.MustCompile(`^(?:np|numpy)\.(?:float|int|uint|bool)[\w]*\((.*)\)$`)
	totalMark = regexp.MustCompile(`Total training steps: (\d+)`)
)

// PlainLine takes off what a terminal and Ray put around a worker's line.
func PlainLine(line string) string {
	line = ansi.ReplaceAllString(line, "")
	line = line[strings.LastIndexByte(line, '\r')+1:]
	line = rayPrefix.ReplaceAllString(line, "")
	return repeated.ReplaceAllString(line, "")
}

// ParseConsole reads a line of metrics as verl prints one for each step:
// "step:34 - actor/entropy:0.41 - …". Values may be nan, inf or numpy's own
// way of writing numbers. bad counts parts without a number.
func ParseConsole(line string) (step int64, values map[string]float64, bad int, ok bool) {
	line = PlainLine(line)
	at := stepMark.FindStringSubmatchIndex(line)
	if at == nil {
		return 0, nil, 0, false
	}
	step, err := strconv.ParseInt(line[at[2]:at[3]], 10, 64)
	if err != nil {
		return 0, nil, 0, false
	}
	values = map[string]float64{}
	for _, part := range strings.Split(line[at[3]:], " - ") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		colon := strings.LastIndexByte(part, ':')
		if colon <= 0 {
			bad++
			continue
		}
		v, err := ParseNumber(part[colon+1:])
		if err != nil {
			bad++
			continue
		}
		values[part[:colon]] = v
	}
	return step, values, bad, true
}

// ParseNumber reads a number as Python prints it, numpy's and torch's included.
func ParseNumber(s string) (float64, error) {
	s = strings.TrimSpace(s)
	if m := numpyText.FindStringSubmatch(s); m != nil {
		s = m[1]
	}
	switch s {
	case "True":
		return 1, nil
	case "False":
		return 0, nil
	}
	return strconv.ParseFloat(s, 64)
}

// Lines that say that something is wrong while the run goes on.
var (
	decodeErrors = [][]byte{[]byte("Failed to decode tool call")}
	toolErrors   = [][]byte{[]byte("Error when executing tool"), []byte("Error executing tool")}
	badGradient  = []byte("grad_norm is not finite")
)

// Names of what is counted from the console, beside verl's own.
const (
	decodeErrorsName = "console/tool_decode_errors"
	toolErrorsName   = "console/tool_errors"
	badGradientName  = "console/grad_norm_not_finite"
)

// manyErrors is the number of failed tool calls in a step that is worth a
// person's look: training goes on with what the error text says.
const manyErrors = 50

// ConsoleSource reads what a trainer on verl prints: its metric lines, how
// many steps there will be, and failures that do not end it.
func ConsoleSource(paths ...string) native.Source {
	c := &console{}
	for _, p := range paths {
		c.tails = append(c.tails, &native.Tail{Path: p})
	}
	return c
}

type console struct {
	tails []*native.Tail
	step  int64

	decode, tools, gradient int // since the last metric line
	alerted                 bool
}

func (c *console) Name() string { return "console" }

func (c *console) Poll(last bool, emit func(native.Reading)) error {
	// Failures are told on the second stream, metrics on the first: what went
	// wrong in a step must be known when its line is read.
	for _, t := range slices.Backward(c.tails) {
		if err := t.Lines(last, func(line []byte) { c.line(line, emit) }); err != nil {
			return err
		}
	}
	if last { // no line of metrics comes after these
		c.alert(c.decode+c.tools, emit)
	}
	return nil
}

// longestLine bounds what is taken for a line of metrics.
const longestLine = 1 << 20

func (c *console) line(line []byte, emit func(native.Reading)) {
	if len(line) > longestLine {
		emit(native.Reading{Bad: 1})
		return
	}
	c.count(line)
	if bytes.Contains(line, []byte("Total training steps: ")) {
		if m := totalMark.FindSubmatch(line); m != nil {
			if n, err := strconv.ParseInt(string(m[1]), 10, 64); err == nil {
				emit(native.Reading{Total: n})
			}
		}
	}
	if !bytes.Contains(line, []byte("step:")) {
		return
	}
	step, values, bad, ok := ParseConsole(string(line))
	if !ok {
		return
	}
	c.step = step
	values[decodeErrorsName], values[toolErrorsName], values[badGradientName] = float64(c.decode), float64(c.tools), float64(c.gradient)
	failed := c.decode + c.tools
	c.decode, c.tools, c.gradient = 0, 0, 0
	emit(native.Reading{Step: step, Values: values})
	if bad > 0 {
		emit(native.Reading{Bad: bad})
	}
	c.alert(failed, emit)
	c.alerted = false
}

func (c *console) count(line []byte) {
	switch {
	case containsAny(line, decodeErrors):
		c.decode++
	case containsAny(line, toolErrors):
		c.tools++
	case bytes.Contains(line, badGradient):
		c.gradient++
	}
}

func containsAny(line []byte, marks [][]byte) bool {
	for _, m := range marks {
		if bytes.Contains(line, m) {
			return true
		}
	}
	return false
}

// alert tells, once a step, that n tool calls went wrong in it.
func (c *console) alert(n int, emit func(native.Reading)) {
	if n >= manyErrors && !c.alerted {
		c.alerted = true
		emit(native.Reading{Step: c.step, Alert: &trainer.Alert{Level: "warn", Code: "tools", Step: c.step,
			Text: strconv.Itoa(n) + " tool calls could not be decoded or failed in this step: the policy is trained on what the error texts say"}})
	}
}
