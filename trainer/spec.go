package trainer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"alidade/ablation"
)

// ReadSpec reads and checks spec.json. What is wrong with its fields is an
// *ablation.Invalid that names each one, its value and what is allowed.
func ReadSpec(path string) (Spec, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return Spec{}, fmt.Errorf("read spec: %w", err)
	}
	s, err := decodeSpec(src)
	if err != nil {
		return Spec{}, fmt.Errorf("read spec %s: %w", path, err)
	}
	return s, nil
}

func decodeSpec(src []byte) (Spec, error) {
	top, err := lint(src)
	if err != nil {
		return Spec{}, err
	}
	var s Spec
	if bad := unknownKeys(src, reflect.TypeFor[Spec](), ""); len(bad) > 0 {
		return Spec{}, &ablation.Invalid{Fields: bad}
	}
	if err := json.Unmarshal(src, &s); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return Spec{}, &ablation.Invalid{Fields: []ablation.FieldError{{
				Field: wrong.Field, Value: wrong.Value, Problem: "wrong type", Allowed: plainType(wrong.Type.Kind().String()),
			}}}
		}
		return Spec{}, err
	}
	var missing []ablation.FieldError
	for _, key := range []string{"version", "run", "attempt", "seed", "recipe", "dir", "events", "threads"} {
		if _, ok := top[key]; !ok {
			missing = append(missing, ablation.FieldError{Field: key, Problem: "missing", Allowed: "see docs/trainer-protocol.md"})
		}
	}
	if len(missing) > 0 {
		return Spec{}, &ablation.Invalid{Fields: missing}
	}
	return s, s.Validate()
}

// Validate checks the spec and its recipe. It returns *ablation.Invalid.
func (s Spec) Validate() error {
	var bad []ablation.FieldError
	add := func(ok bool, field string, value any, allowed string) {
		if !ok {
			bad = append(bad, ablation.FieldError{Field: field, Value: fmt.Sprint(value), Problem: "not valid", Allowed: allowed})
		}
	}
	add(s.Version == Version, "version", s.Version, fmt.Sprint(Version))
	add(s.Run >= 1, "run", s.Run, "at least 1")
	add(s.Attempt >= 1, "attempt", s.Attempt, "at least 1")
	add(s.Threads >= 1, "threads", s.Threads, "at least 1")
	add(filepath.IsAbs(s.Dir), "dir", s.Dir, "an absolute path")
	add(filepath.IsAbs(s.Events), "events", s.Events, "an absolute path")
	add(s.Artifacts == "" || filepath.IsAbs(s.Artifacts), "artifacts", s.Artifacts, "an absolute path")
	add(s.ResumeFrom == "" || filepath.IsAbs(s.ResumeFrom), "resume_from", s.ResumeFrom, "an absolute path, or empty")
	add(s.ResumeStep >= 0, "resume_step", s.ResumeStep, "at least 0")
	var recipe *ablation.Invalid
	if err := s.Recipe.Validate(); errors.As(err, &recipe) {
		for _, f := range recipe.Fields {
			f.Field = "recipe." + f.Field
			bad = append(bad, f)
		}
	} else if err != nil {
		bad = append(bad, ablation.FieldError{Field: "recipe", Problem: err.Error()})
	}
	if len(bad) > 0 {
		return &ablation.Invalid{Fields: bad}
	}
	return nil
}

// WriteSpec checks s and writes it to path: whole or not at all.
func WriteSpec(path string, s Spec) error {
	if err := s.Validate(); err != nil {
		return fmt.Errorf("write spec: %w", err)
	}
	src, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("write spec: %w", err)
	}
	if err := writeWhole(path, append(src, '\n')); err != nil {
		return fmt.Errorf("write spec: %w", err)
	}
	return nil
}

// writeWhole replaces the file at path through a temporary one.
func writeWhole(path string, b []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // fails after the rename, as it should
	_, err = tmp.Write(b)
	err = errors.Join(err, tmp.Chmod(0o644), tmp.Sync(), tmp.Close())
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// unknownKeys lists the keys of the JSON object src, and of the objects in it,
// that the struct t does not have.
func unknownKeys(src []byte, t reflect.Type, prefix string) []ablation.FieldError {
	var object map[string]json.RawMessage
	if t.Kind() != reflect.Struct || json.Unmarshal(src, &object) != nil {
		return nil // a wrong type is reported by the decoder
	}
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		fields[name] = t.Field(i).Type
	}
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	var bad []ablation.FieldError
	for key, value := range object {
		if ft, ok := fields[key]; ok {
			bad = append(bad, unknownKeys(value, ft, prefix+key+".")...)
			continue
		}
		bad = append(bad, ablation.FieldError{
			Field: prefix + key, Value: string(bytes.TrimSpace(value)), Problem: "unknown key",
			Allowed: strings.Join(names, ", "), Suggestion: ablation.Nearest(key, names),
		})
	}
	slices.SortFunc(bad, func(a, b ablation.FieldError) int { return strings.Compare(a.Field, b.Field) })
	return bad
}
