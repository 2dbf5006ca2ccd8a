package serve

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Document describes the server as OpenAPI 3.1, made from its own table of
// routes and the types of their requests and answers.
func (s *Server) Document() ([]byte, error) {
	schemas := schemas{}
	paths := map[string]map[string]any{}
	for i := range s.table {
		r := &s.table[i]
		if paths[r.path] == nil {
			paths[r.path] = map[string]any{}
		}
		paths[r.path][strings.ToLower(r.method)] = r.describe(schemas)
	}
	schemas.add(typeOf[ErrorResult]())
	schemas.add(typeOf[Operation]())
	schemas.add(typeOf[Reply]())
	return json.MarshalIndent(map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{"title": "Alidade environments", "version": "1",
			"description": "Episodes of the travel sandbox for trainers. Injected failures and mistakes of the policy are answers with status 200 and an error_kind."},
		"paths":    paths,
		"security": []any{map[string]any{"token": []string{}}},
		"components": map[string]any{
			"schemas":         schemas,
			"securitySchemes": map[string]any{"token": map[string]any{"type": "http", "scheme": "bearer"}},
		},
	}, "", "  ")
}

func (s *Server) serveDocument(w http.ResponseWriter, _ *http.Request) {
	doc, err := s.Document()
	if err != nil {
		s.fail(w, err)
		return
	}
	s.send(w, http.StatusOK, json.RawMessage(doc))
}

// describe is the route as an OpenAPI operation.
func (r *route) describe(known schemas) map[string]any {
	op := map[string]any{"summary": r.summary, "operationId": r.name()}
	var params []any
	if strings.Contains(r.path, "{id}") {
		params = append(params, map[string]any{"name": "id", "in": "path", "required": true, "schema": map[string]any{"type": "string"}})
	}
	if r.body {
		op["requestBody"] = map[string]any{"required": true, "content": content(known.of(r.req))}
	} else {
		for f := range fields(r.req) {
			params = append(params, map[string]any{"name": f.name, "in": "query", "required": f.needed, "schema": known.field(f)})
		}
	}
	if params != nil {
		op["parameters"] = params
	}
	success := map[string]any{"description": http.StatusText(r.status)}
	if r.res != nil {
		success["content"] = content(known.of(r.res))
	} else if r.status == http.StatusOK {
		success["content"] = content(map[string]any{"type": "object"})
	}
	answers := map[string]any{strconv.Itoa(r.status): success}
	for _, status := range r.errors() {
		answers[strconv.Itoa(status)] = map[string]any{"description": http.StatusText(status), "content": content(known.of(typeOf[ErrorResult]()))}
	}
	op["responses"] = answers
	if r.open {
		op["security"] = []any{}
	}
	return op
}

func (r *route) name() string {
	if r.op != "" {
		return r.op
	}
	return strings.NewReplacer("/", "_", ".", "_").Replace(strings.TrimPrefix(strings.TrimPrefix(r.path, "/env"), "/"))
}

// errors lists what a route may answer instead.
func (r *route) errors() []int {
	if r.open {
		return []int{http.StatusServiceUnavailable}
	}
	list := []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests}
	if r.body {
		list = append(list, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity)
	} else if r.req.NumField() > 0 {
		list = append(list, http.StatusUnprocessableEntity)
	}
	if strings.Contains(r.path, "{id}") && r.method != http.MethodDelete {
		list = append(list, http.StatusNotFound)
	}
	if r.status == http.StatusSwitchingProtocols {
		list = append(list, http.StatusBadRequest)
	}
	switch r.op {
	case "create":
		list = append(list, http.StatusServiceUnavailable)
	case "call", "score":
		list = append(list, http.StatusConflict)
	}
	slices.Sort(list)
	return list
}

func content(schema any) map[string]any {
	return map[string]any{"application/json": map[string]any{"schema": schema}}
}

// schemas are the named types met so far.
type schemas map[string]map[string]any

func (s schemas) add(t reflect.Type) { s.of(t) }

var rawJSON = typeOf[json.RawMessage]()

// of is the JSON schema of a type; structs are put under their name.
func (s schemas) of(t reflect.Type) map[string]any {
	if t == rawJSON {
		return map[string]any{}
	}
	switch t.Kind() {
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float64, reflect.Float32:
		return map[string]any{"type": "number"}
	case reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Pointer:
		inner := s.of(t.Elem())
		if kind, ok := inner["type"].(string); ok {
			inner["type"] = []any{kind, "null"}
			return inner
		}
		return map[string]any{"anyOf": []any{inner, map[string]any{"type": "null"}}}
	case reflect.Struct:
		s.object(t)
		return map[string]any{"$ref": "#/components/schemas/" + t.Name()}
	}
	return map[string]any{} // any value
}

func (s schemas) object(t reflect.Type) {
	if s[t.Name()] != nil {
		return
	}
	properties := map[string]any{}
	object := map[string]any{"type": "object", "properties": properties}
	s[t.Name()] = object // before its fields: types may contain themselves
	needed := []string{}
	for f := range fields(t) {
		properties[f.name] = s.field(f)
		if f.needed {
			needed = append(needed, f.name)
		}
	}
	if len(needed) > 0 {
		object["required"] = needed
	}
	if strings.HasSuffix(t.Name(), "Request") || t == typeOf[Operation]() {
		object["additionalProperties"] = false
	}
}

// field is one field of a struct as JSON has it.
type field struct {
	reflect.StructField
	name   string
	needed bool
}

func fields(t reflect.Type) func(yield func(field) bool) {
	return func(yield func(field) bool) {
		for i := range t.NumField() {
			f := t.Field(i)
			name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.IsExported() && name != "" && name != "-" && !yield(field{f, name, rest == ""}) {
				return
			}
		}
	}
}

func (s schemas) field(f field) map[string]any {
	schema := s.of(f.Type)
	if enum := f.Tag.Get("enum"); enum != "" {
		schema["enum"] = strings.Split(enum, ",")
	}
	if help := f.Tag.Get("help"); help != "" {
		schema["description"] = help
	}
	return schema
}
