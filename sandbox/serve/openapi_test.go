package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"alidade/sandbox/travel"
)

// document is the description as a client reads it.
func (c *client) document() map[string]any {
	c.t.Helper()
	var doc map[string]any
	c.want(200, "GET", "/env/openapi.json", nil, &doc)
	return doc
}

// at walks into decoded JSON.
func at(doc any, path ...string) any {
	for _, key := range path {
		m, ok := doc.(map[string]any)
		if !ok {
			return nil
		}
		doc = m[key]
	}
	return doc
}

func TestDocumentListsEveryRoute(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	doc := c.document()
	if doc["openapi"] != "3.1.0" {
		t.Errorf("openapi = %v", doc["openapi"])
	}
	described := 0
	for _, methods := range doc["paths"].(map[string]any) {
		described += len(methods.(map[string]any))
	}
	if described != len(c.s.table) {
		t.Errorf("%d operations described, the table has %d", described, len(c.s.table))
	}
	ids := map[any]bool{}
	for _, r := range c.s.table {
		op := at(doc, "paths", r.path, strings.ToLower(r.method))
		if op == nil {
			t.Errorf("%s %s is not described", r.method, r.path)
			continue
		}
		if id := at(op, "operationId"); ids[id] {
			t.Errorf("operation id %v is used twice", id)
		} else {
			ids[id] = true
		}
		status, body, _ := c.send(r.method, strings.Replace(r.path, "{id}", "none", 1), "")
		if at(op, "responses", fmt.Sprint(status)) == nil {
			t.Errorf("%s %s answers %d, which is not described: %s", r.method, r.path, status, body)
		}
	}
	for _, ref := range refs(doc) {
		if at(doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...) == nil {
			t.Errorf("%s leads nowhere", ref)
		}
	}
	names := at(doc, "components", "schemas", "Operation", "properties", "op", "enum").([]any)
	for _, op := range append(c.s.operations(), "batch") {
		if !slices.Contains(names, any(op)) {
			t.Errorf("operation %s is missing in %v", op, names)
		}
	}
	if len(names) != len(c.s.operations())+1 {
		t.Errorf("operations %v, the table has %v", names, c.s.operations())
	}
}

func refs(doc any) (list []string) {
	switch x := doc.(type) {
	case map[string]any:
		for key, value := range x {
			if ref, ok := value.(string); ok && key == "$ref" {
				list = append(list, ref)
			}
			list = append(list, refs(value)...)
		}
	case []any:
		for _, value := range x {
			list = append(list, refs(value)...)
		}
	}
	return list
}

// What the server really sends and takes is what the description says.
func TestAnswersFitTheDocument(t *testing.T) {
	t.Parallel()
	c := start(t, func(c *Config) { c.Failures.Rate = 0.5 })
	doc := c.document()
	f := theFixture(t)
	id := ""
	check := func(method, path, template, body string) map[string]any {
		status, answer, _ := c.send(method, path, body)
		op := at(doc, "paths", template, strings.ToLower(method))
		schema := at(op, "responses", fmt.Sprint(status), "content", "application/json", "schema")
		if schema == nil {
			t.Fatalf("%s %s = %d %s, which is not described", method, template, status, answer)
		}
		var value map[string]any
		if err := json.Unmarshal(answer, &value); err != nil {
			t.Fatal(err)
		}
		fits(t, doc, schema, value, fmt.Sprintf("%s %s %d", method, template, status))
		if body != "" && status < 300 {
			var sent any
			_ = json.Unmarshal([]byte(body), &sent)
			fits(t, doc, at(op, "requestBody", "content", "application/json", "schema"), sent, method+" "+template+" request")
		}
		return value
	}
	id = check("POST", "/env/episodes", "/env/episodes", `{"task_id":"0","split":"train","seed":1,"group_id":"g","rollout_index":2,"form":"react"}`)["episode_id"].(string)
	episode, template := "/env/episodes/"+id, "/env/episodes/{id}"
	for k := range 6 {
		check("POST", episode+"/call", template+"/call", callBody(k, travel.ToolRestaurant, cityArgs(f.queries[0].Dest)))
	}
	check("POST", episode+"/call", template+"/call", callBody(99, travel.ToolRestaurant, `{}`))
	check("GET", episode+"/trajectory", template+"/trajectory", "")
	body, _ := json.Marshal(ScoreRequest{FinalText: "<think>x</think><answer>" + f.plans[0] + "</answer>"})
	check("POST", episode+"/score", template+"/score", string(body))
	check("POST", episode+"/score", template+"/score", `{"final_text":"other"}`)
	check("GET", episode+"/trajectory", template+"/trajectory", "")
	check("POST", "/env/batch", "/env/batch", `{"operations":[{"id":"a","op":"stats"},{"op":"tasks","body":{"limit":2}},{"op":"call"}]}`)
	check("DELETE", episode, template, "")
	for _, path := range []string{"/env/tasks", "/env/tools", "/env/stats", "/healthz"} {
		check("GET", path, path, "")
	}
	status, _, _ := c.send("POST", "/env/episodes", `{"task_id":"0","split":"train","colour":"red"}`)
	if status != http.StatusUnprocessableEntity {
		t.Errorf("an unknown key = %d, want 422 as additionalProperties says", status)
	}
}

// fits is as much of JSON Schema as the description uses.
func fits(t *testing.T, doc, schema, value any, where string) {
	t.Helper()
	s, ok := schema.(map[string]any)
	if !ok {
		t.Errorf("%s: no schema", where)
		return
	}
	if ref, ok := s["$ref"].(string); ok {
		fits(t, doc, at(doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...), value, where)
		return
	}
	if any, ok := s["anyOf"].([]any); ok {
		if value != nil {
			fits(t, doc, any[0], value, where)
		}
		return
	}
	if !kindFits(s["type"], value) {
		t.Errorf("%s is %T %v, want %v", where, value, value, s["type"])
		return
	}
	if enum, ok := s["enum"].([]any); ok && !slices.Contains(enum, value) {
		t.Errorf("%s is %v, want one of %v", where, value, enum)
	}
	switch x := value.(type) {
	case []any:
		for i, item := range x {
			fits(t, doc, s["items"], item, fmt.Sprintf("%s[%d]", where, i))
		}
	case map[string]any:
		fitsObject(t, doc, s, x, where)
	}
}

func fitsObject(t *testing.T, doc any, s map[string]any, value map[string]any, where string) {
	t.Helper()
	needed, _ := s["required"].([]any)
	for _, name := range needed {
		if _, ok := value[name.(string)]; !ok {
			t.Errorf("%s has no %v", where, name)
		}
	}
	properties, structured := s["properties"].(map[string]any)
	for name, item := range value {
		switch {
		case structured && properties[name] == nil:
			t.Errorf("%s has %s, which is not described", where, name)
		case structured:
			fits(t, doc, properties[name], item, where+"."+name)
		case s["additionalProperties"] != nil:
			fits(t, doc, s["additionalProperties"], item, where+"."+name)
		}
	}
}

// kindFits tells whether a value is of a schema's type or of one of its types.
func kindFits(kind, value any) bool {
	if list, ok := kind.([]any); ok {
		return slices.ContainsFunc(list, func(k any) bool { return kindFits(k, value) })
	}
	switch x := value.(type) {
	case nil:
		return kind == nil || kind == "null"
	case string:
		return kind == nil || kind == "string"
	case bool:
		return kind == nil || kind == "boolean"
	case float64:
		return kind == nil || kind == "number" || kind == "integer" && x == float64(int64(x))
	case []any:
		return kind == nil || kind == "array"
	case map[string]any:
		return kind == nil || kind == "object"
	}
	return false
}
