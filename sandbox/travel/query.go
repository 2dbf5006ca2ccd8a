package travel

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Hash identifies what is asked for: 16 hex digits over the structured
// fields, whatever the wording and the difficulty label.
func (q Query) Hash() string {
	var b strings.Builder
	put := func(s string) { b.WriteString(strconv.Itoa(len(s))); b.WriteByte(':'); b.WriteString(s) }
	put(q.Org)
	put(q.Dest)
	put(strconv.Itoa(q.Days))
	put(strconv.Itoa(q.Cities))
	put(strings.Join(q.Dates, " "))
	put(strconv.Itoa(q.People))
	put(q.Wish.HouseRule)
	put(strings.Join(q.Wish.Cuisine, "\x00"))
	put(q.Wish.RoomType)
	put(q.Wish.Transportation)
	put(strconv.FormatFloat(q.Budget, 'g', -1, 64))
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:8])
}

// HardChecks is the number of hard constraints that apply: the budget and one a wish.
func (q *Query) HardChecks() int {
	n := 1
	for _, asked := range [...]bool{q.Wish.HouseRule != "", len(q.Wish.Cuisine) > 0, q.Wish.RoomType != "", q.Wish.Transportation != ""} {
		if asked {
			n++
		}
	}
	return n
}

// Wishes are the constraints in words, by their names in the benchmark.
func (q *Query) Wishes() map[string]string {
	m := map[string]string{"budget": dollars(q.Budget)}
	for name, wish := range map[string]string{
		"house rule": q.Wish.HouseRule, "cuisine": strings.Join(q.Wish.Cuisine, ", "),
		"room type": q.Wish.RoomType, "transportation": q.Wish.Transportation,
	} {
		if wish != "" {
			m[name] = wish
		}
	}
	return m
}

// QueryLine is one line of a query file.
type QueryLine struct {
	ID    string // query_id or idx; the line number if there is neither
	Query Query
	Plan  Plan // the annotated plan; undelivered if there is none

	Reference any    // reference information, written only; see [World.Reference]
	Model     string // who wrote the text, if the file says so
}

// LoadQueries reads a JSONL file of queries in the benchmark's form. Lists
// and dictionaries may also stand as the text of a Python literal, as in the
// published CSV. The annotated plans come in the same order; a query without
// one has an undelivered plan.
func LoadQueries(path string) ([]Query, []Plan, error) {
	lines, err := LoadQueryLines(path)
	if err != nil {
		return nil, nil, err
	}
	queries, plans := make([]Query, len(lines)), make([]Plan, len(lines))
	for i, l := range lines {
		queries[i], plans[i] = l.Query, l.Plan
	}
	return queries, plans, nil
}

// LoadQueryLines is LoadQueries with the ids.
func LoadQueryLines(path string) ([]QueryLine, error) {
	var lines []QueryLine
	err := eachLine(path, func(n int, src []byte) error {
		v, err := ParseValue(src)
		if err != nil {
			return err
		}
		l, err := readQuery(v)
		if err != nil {
			return err
		}
		if l.ID == "" {
			l.ID = strconv.Itoa(n)
		}
		lines = append(lines, l)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load queries: %w", err)
	}
	return lines, nil
}

const maxLineBytes = 16 << 20

// eachLine calls fn for every line that is not blank, counted from 1, and
// names file and line in its error.
func eachLine(path string, fn func(n int, line []byte) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<16)
	for n := 1; ; n++ {
		line, err := readLine(r)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
		if body := bytes.TrimSpace(line); len(body) > 0 {
			if err := fn(n, body); err != nil {
				return fmt.Errorf("%s:%d: %w", path, n, err)
			}
		}
		if err != nil {
			return nil
		}
	}
}

func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLineBytes {
			return nil, fmt.Errorf("line longer than %d bytes", maxLineBytes)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// readQuery reads the benchmark's fields.
func readQuery(v Value) (l QueryLine, err error) {
	if v.Kind != Object {
		return l, fmt.Errorf("a query is %s, must be an object", v.Kind)
	}
	r := queryReader{v: v}
	q := &l.Query
	q.Org, q.Dest = r.text("org"), r.text("dest")
	q.Days, q.People = r.whole("days", 1, 100), r.whole("people_number", 1, 1000)
	if n := v.Get("visiting_city_number"); n.Kind != Absent && n.Kind != Null {
		q.Cities = r.whole("visiting_city_number", 0, 100)
	}
	q.Dates = r.texts("date", r.literal("date"))
	q.Budget = r.number("budget")
	q.Text, q.Level = r.optional("query"), r.optional("level")
	q.Wish = r.wish()
	for _, key := range []string{"query_id", "idx", "id"} {
		if id := v.Get(key); l.ID == "" && (id.Kind == String || id.Kind == Number) {
			l.ID = id.show()
		}
	}
	l.Plan = annotated(r.literal("annotated_plan"))
	l.Model = r.optional("generated_model")
	return l, r.err
}

// annotated drops the empty days that pad a published plan, and the query
// that stands before the days in one of the published forms.
func annotated(v Value) Plan {
	if v.Kind != List {
		return Plan{}
	}
	if len(v.Items) == 2 && v.Items[1].Kind == List {
		v = v.Items[1]
	}
	n := len(v.Items)
	for n > 0 && v.Items[n-1].Kind == Object && len(v.Items[n-1].Items) == 0 {
		n--
	}
	v.Items = v.Items[:n]
	return PlanOf(v)
}

// queryReader reads fields and keeps the first error.
type queryReader struct {
	v   Value
	err error
}

func (r *queryReader) wrong(key string, v Value, must string) {
	if r.err == nil {
		r.err = fmt.Errorf("%s is %s, must be %s", key, clip(v.describe()), must)
	}
}

func (v *Value) describe() string {
	if v.Kind == Absent {
		return "missing"
	}
	b, _ := v.MarshalJSON()
	return string(b)
}

func (r *queryReader) text(key string) string {
	v := r.v.Get(key)
	if v.Kind != String || v.Str == "" {
		r.wrong(key, v, "a text")
	}
	return v.Str
}

func (r *queryReader) optional(key string) string {
	v := r.v.Get(key)
	if v.Kind != String && v.Kind != Absent && v.Kind != Null {
		r.wrong(key, v, "a text")
	}
	return v.Str
}

func (r *queryReader) number(key string) float64 {
	v := r.v.Get(key)
	if v.Kind != Number {
		r.wrong(key, v, "a number")
	}
	return v.Num
}

func (r *queryReader) whole(key string, least, most int) int {
	v := r.v.Get(key)
	if v.Kind != Number || v.Num != float64(int(v.Num)) || int(v.Num) < least || int(v.Num) > most {
		r.wrong(key, v, fmt.Sprintf("a whole number from %d to %d", least, most))
		return least
	}
	return int(v.Num)
}

// literal returns a value, read from its Python text if it stands as one.
func (r *queryReader) literal(key string) Value {
	v := r.v.Get(key)
	if v.Kind != String {
		return v
	}
	parsed, err := ParseLiteral(v.Str)
	if err != nil {
		r.wrong(key, v, "a list or object, or the text of a Python literal")
		return Value{}
	}
	return parsed
}

func (r *queryReader) texts(key string, v Value) []string {
	if v.Kind == Null || v.Kind == Absent {
		return nil
	}
	if v.Kind != List {
		r.wrong(key, v, "a list of texts")
		return nil
	}
	list := make([]string, 0, len(v.Items))
	for _, item := range v.Items {
		if item.Kind != String {
			r.wrong(key, item, "a text in a list")
		}
		list = append(list, item.Str)
	}
	return list
}

func (r *queryReader) wish() (c Constraints) {
	v := r.literal("local_constraint")
	if v.Kind == Null || v.Kind == Absent {
		return c
	}
	if v.Kind != Object {
		r.wrong("local_constraint", v, "an object")
		return c
	}
	inner := queryReader{v: v}
	c.HouseRule, c.RoomType, c.Transportation = inner.optional("house rule"), inner.optional("room type"), inner.optional("transportation")
	c.Cuisine = inner.texts("cuisine", v.Get("cuisine"))
	if inner.err != nil && r.err == nil {
		r.err = fmt.Errorf("local_constraint: %w", inner.err)
	}
	return c
}
