package trainer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"alidade/ablation"
)

// errUnknown is a line whose kind this version does not know.
var errUnknown = errors.New("unknown kind of event")

// Decode reads one line without its newline. A line of a kind that this
// version does not know gives an event with that Kind and no body, and known
// is false. A malformed line gives an error; [CauseOf] says why.
func Decode(line []byte) (e Event, known bool, err error) {
	e, err = decode(line)
	if errors.Is(err, errUnknown) {
		return e, false, nil
	}
	return e, err == nil, err
}

// CauseOf returns the cause of an error from [Decode].
func CauseOf(err error) Cause {
	var v *valueError
	if errors.As(err, &v) {
		return v.cause
	}
	return CauseSyntax
}

func decode(line []byte) (Event, error) {
	top, err := lint(line)
	if err != nil {
		return Event{}, err
	}
	get := func(key string, into any) error {
		at, ok := top[key]
		if !ok {
			return fault(CauseField, "field %q is missing", key)
		}
		return unmarshal(line[at.from:at.to], key, into)
	}
	var e Event
	if err := errors.Join(get("v", &e.V), get("kind", &e.Kind)); err != nil {
		return Event{}, err
	}
	if e.V != Version {
		return Event{}, fault(CauseVersion, "protocol version %d; allowed: %d", e.V, Version)
	}
	body := e.body()
	if body == nil {
		return e, errUnknown
	}
	if err := get("t", &e.T); err != nil {
		return Event{}, err
	}
	if e.T <= 0 || e.T > maxInteger {
		return Event{}, fault(CauseField, "t is %d; allowed: unix milliseconds", e.T)
	}
	if err := get(string(e.Kind), body); err != nil {
		return Event{}, err
	}
	if err := e.validate(); err != nil {
		return Event{}, err
	}
	if e.Kind == KindTrajectory {
		e.Raw = bytes.Clone(line)
	}
	return e, nil
}

// body makes the field that e.Kind names and returns it, or nil when a trainer
// may not write that kind.
func (e *Event) body() any {
	switch e.Kind {
	case KindHello:
		e.Hello = new(Hello)
		return e.Hello
	case KindPhase:
		e.Phase = new(Phase)
		return e.Phase
	case KindPoints:
		e.Points = new(Points)
		return e.Points
	case KindTrajectory:
		e.Trajectory = new(Trajectory)
		return e.Trajectory
	case KindEvaluation:
		e.Evaluation = new(ablation.EvalResult)
		return e.Evaluation
	case KindCheckpoint:
		e.Checkpoint = new(Checkpoint)
		return e.Checkpoint
	case KindArtifact:
		e.Artifact = new(ablation.Artifact)
		return e.Artifact
	case KindAlert:
		e.Alert = new(Alert)
		return e.Alert
	case KindDone:
		e.Done = new(Done)
		return e.Done
	}
	return nil
}

// unmarshal decodes one field and gives encoding/json's errors their cause.
func unmarshal(b []byte, field string, into any) error {
	if string(b) == "null" {
		return fault(CauseField, "field %q is null", field)
	}
	err := json.Unmarshal(b, into)
	if err == nil {
		return nil
	}
	var value *valueError
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &value):
		return fault(value.cause, "%s: %s", field, value.text)
	case errors.As(err, &wrong):
		name := field
		if wrong.Field != "" {
			name += "." + wrong.Field
		}
		if strings.HasPrefix(wrong.Value, "number ") && strings.HasPrefix(wrong.Type.Kind().String(), "float") {
			return fault(CauseNumber, "%s is %s, outside float64", name, wrong.Value)
		}
		return fault(CauseType, "%s is a JSON %s; allowed: %s", name, wrong.Value, plainType(wrong.Type.Kind().String()))
	}
	return fault(CauseType, "%s: %v", field, err)
}

// plainType names a Go kind in JSON's words.
func plainType(kind string) string {
	switch {
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		return "a whole number"
	case strings.HasPrefix(kind, "float"):
		return "a number"
	case kind == "bool":
		return "true or false"
	case kind == "slice", kind == "array":
		return "an array"
	case kind == "map", kind == "struct":
		return "an object"
	}
	return "a " + kind
}

// maxInteger is the largest whole number that JavaScript reads exactly; steps
// and times stay below it.
const maxInteger = 1<<53 - 1

// validate checks what the types cannot.
func (e *Event) validate() error {
	switch e.Kind {
	case KindHello:
		return errors.Join(named("hello.trainer", e.Hello.Trainer), inRange("hello.total_steps", e.Hello.TotalSteps))
	case KindPhase:
		return errors.Join(named("phase.name", e.Phase.Name), inRange("phase.step", e.Phase.Step), inRange("phase.total", e.Phase.Total))
	case KindPoints:
		return e.Points.validate()
	case KindTrajectory:
		return errors.Join(named("trajectory.id", e.Trajectory.ID), inRange("trajectory.step", e.Trajectory.Step))
	case KindEvaluation:
		return validateEvaluation(e.Evaluation)
	case KindCheckpoint:
		return errors.Join(filled("checkpoint.path", e.Checkpoint.Path), inRange("checkpoint.step", e.Checkpoint.Step))
	case KindArtifact:
		return errors.Join(named("artifact.kind", e.Artifact.Kind), named("artifact.hash", e.Artifact.Hash), inRange("artifact.step", e.Artifact.Step))
	case KindAlert:
		return e.Alert.validate()
	case KindDone:
		return inRange("done.step", e.Done.Step)
	}
	return nil
}

func (p *Points) validate() error {
	if err := inRange("points.step", p.Step); err != nil {
		return err
	}
	for name := range p.Values {
		if err := named("points.values", name); err != nil {
			return fault(CauseKey, "metric name %s; allowed: 1 to %d bytes without control characters", clip([]byte(name)), maxName)
		}
	}
	return nil
}

func (a *Alert) validate() error {
	switch a.Level {
	case "info", "warn", "bad":
	default:
		return fault(CauseField, "alert.level is %q; allowed: info, warn, bad", a.Level)
	}
	return errors.Join(named("alert.code", a.Code), filled("alert.text", a.Text), inRange("alert.step", a.Step))
}

func validateEvaluation(v *ablation.EvalResult) error {
	err := errors.Join(named("evaluation.panel", v.Panel), named("evaluation.policy", v.Policy), named("evaluation.mode", v.Mode), inRange("evaluation.step", v.Step))
	if err != nil {
		return err
	}
	if v.Samples < 1 {
		return fault(CauseField, "evaluation.samples is %d; allowed: at least 1", v.Samples)
	}
	for i, q := range v.Queries {
		if q.Passed < 0 || q.Passed > v.Samples {
			return fault(CauseField, "evaluation.queries[%d].passed is %d; allowed: 0 to %d (samples)", i, q.Passed, v.Samples)
		}
	}
	return nil
}

// named checks a name or an id: short, not empty, no control characters.
func named(field, s string) error {
	if err := filled(field, s); err != nil {
		return err
	}
	if len(s) > maxName || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fault(CauseField, "%s is %s; allowed: at most %d bytes without control characters", field, clip([]byte(s)), maxName)
	}
	return nil
}

func filled(field, s string) error {
	if s == "" {
		return fault(CauseField, "%s is missing", field)
	}
	return nil
}

func inRange(field string, n int64) error {
	if n < 0 || n > maxInteger {
		return fault(CauseField, "%s is %d; allowed: 0 to %d", field, n, int64(maxInteger))
	}
	return nil
}

// Encode writes e as one line with its newline, the version filled in. It
// fails when the body is not the one that the kind names, or breaks a rule
// that a reader enforces.
func Encode(e Event) ([]byte, error) {
	e.V = Version
	if !e.hasBody() {
		return nil, fmt.Errorf("encode event of kind %q: its body is missing, or the kind is not one a trainer writes", e.Kind)
	}
	if e.T <= 0 || e.T > maxInteger {
		return nil, fmt.Errorf("encode %s event: t is %d; allowed: unix milliseconds", e.Kind, e.T)
	}
	if err := e.validate(); err != nil {
		return nil, fmt.Errorf("encode %s event: %w", e.Kind, err)
	}
	if e.Kind == KindPoints {
		return e.appendPoints(make([]byte, 0, 128+48*len(e.Points.Values))), nil
	}
	line, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode %s event: %w", e.Kind, err)
	}
	return append(line, '\n'), nil
}

// appendPoints writes a points event as json.Marshal does, in a fraction of
// the time: it is what a trainer does at every step.
func (e *Event) appendPoints(b []byte) []byte {
	names := make([]string, 0, len(e.Points.Values))
	for name := range e.Points.Values {
		names = append(names, name)
	}
	slices.Sort(names)
	b = append(b, `{"v":1,"kind":"points","t":`...)
	b = strconv.AppendInt(b, e.T, 10)
	b = append(b, `,"points":{"step":`...)
	b = strconv.AppendInt(b, e.Points.Step, 10)
	b = append(b, `,"values":{`...)
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, name)
		b = append(b, ':')
		b = e.Points.Values[name].append(b)
	}
	return append(b, "}}}\n"...)
}

// appendString writes a JSON string.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, err := json.Marshal(s)
			if err != nil { // no string fails
				return append(b, `""`...)
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// hasBody reports whether the field that e.Kind names is set.
func (e *Event) hasBody() bool {
	switch e.Kind {
	case KindHello:
		return e.Hello != nil
	case KindPhase:
		return e.Phase != nil
	case KindPoints:
		return e.Points != nil
	case KindTrajectory:
		return e.Trajectory != nil
	case KindEvaluation:
		return e.Evaluation != nil
	case KindCheckpoint:
		return e.Checkpoint != nil
	case KindArtifact:
		return e.Artifact != nil
	case KindAlert:
		return e.Alert != nil
	case KindDone:
		return e.Done != nil
	}
	return false
}
