package synth_test

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"alidade/sandbox/travel"
	"alidade/sandbox/travel/synth"
)

// TestPlayRealTables plays queries on the public tables in the terminal, by a
// script that reads nothing but what the terminal shows, to plans that pass
// strict.
func TestPlayRealTables(t *testing.T) {
	w := real(t)
	for _, days := range []int{3, 5, 7} {
		qs, _, _, err := w.Queries(t.Context(), synth.Options{N: 6, Mix: [3]int{1, 1, 1}, Days: days, Seed: 4, Certify: true})
		if err != nil {
			t.Fatal(err)
		}
		passed := 0
		for i, q := range qs {
			verdict, calls, log := playTerminal(t, w, q)
			if strings.Contains(verdict, "strict   passes") {
				passed++
				t.Logf("%d days, %s: %s after %d commands", days, q.Level, verdict, calls)
			} else {
				t.Logf("%d days, query %d (%s): %s\n%s", days, i+1, q.Level, verdict, log)
			}
		}
		if passed < len(qs)-1 {
			t.Errorf("%d days: %d of %d queries were played to a plan that passes strict", days, passed, len(qs))
		}
	}
}

// terminal is one session seen from the keyboard.
type terminal struct {
	t     *testing.T
	in    io.Writer
	out   *bufio.Reader
	calls int
}

// read returns what the terminal shows up to the next prompt.
func (x *terminal) read() string {
	var b strings.Builder
	for !strings.HasSuffix(b.String(), "\n> ") {
		c, err := x.out.ReadByte()
		if err != nil {
			x.t.Fatalf("terminal: %v after %q", err, b.String())
		}
		b.WriteByte(c)
	}
	return strings.TrimSuffix(b.String(), "\n> ")
}

func (x *terminal) do(format string, args ...any) string {
	x.calls++
	if _, err := fmt.Fprintf(x.in, format+"\n", args...); err != nil {
		x.t.Fatal(err)
	}
	return x.read()
}

func playTerminal(t *testing.T, w *synth.World, q travel.Query) (verdict string, calls int, log string) {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := travel.Play(t.Context(), inR, outW, w.World, q)
		_ = outW.Close()
		done <- err
	}()
	x := &terminal{t: t, in: inW, out: bufio.NewReader(outR)}
	p := person{terminal: x, request: x.read(), rows: map[string][][]string{}}
	plan := p.plan()
	for _, line := range plan {
		x.do("%s", line)
	}
	shown := x.do("judge")
	x.calls++
	go func() { _, _ = io.Copy(io.Discard, outR) }()
	if _, err := fmt.Fprintln(inW, "quit"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(shown, "\n") {
		if strings.HasPrefix(line, "strict") {
			verdict = line
		}
	}
	return verdict, x.calls, strings.Join(plan, "\n") + "\n" + shown
}

// person plans a trip from what the terminal says.
type person struct {
	*terminal
	request string
	rows    map[string][][]string // by command

	org, dest string
	days      int
	dates     []string
	people    int
	budget    float64
	wish      map[string]string
}

var (
	requestLine = regexp.MustCompile(`(?m)^from (.+) to (.+), (\d) days \(([0-9, -]+)\), \d (?:city|cities) to visit, (\d+) (?:person|people), budget \$([0-9,]+)$`)
	wishLine    = regexp.MustCompile(`(?m)^(house rule|cuisine|room type|transportation): (.+)$`)
	flightLine  = regexp.MustCompile(`(?m)^\d+\. \[(F\d+)\] \$(\d+)\.`)
	roadLine    = regexp.MustCompile(`cost: \$(\d+)`)
	hotelLine   = regexp.MustCompile(`(?m)^\d+\. \[(.+)\] \$([0-9.]+) a night\. Room type: (.+)\. House rules: (.+)\. Minimum nights: ([0-9.]+)\. Maximum occupancy: (\d+)\.`)
	foodLine    = regexp.MustCompile(`(?m)^\d+\. \[(.+)\] Average cost: \$(\d+)\. Cuisines: (.+)\. Rating:`)
	sightLine   = regexp.MustCompile(`(?m)^\d+\. \[(.+?)\]\(.*\) Address:`)
	cityLine    = regexp.MustCompile(`(?m)^SearchCity in .+ found\.\n(.+)$`)
)

func (p *person) ask(pattern *regexp.Regexp, format string, args ...any) [][]string {
	command := fmt.Sprintf(format, args...)
	if rows, ok := p.rows[command]; ok {
		return rows
	}
	rows := pattern.FindAllStringSubmatch(p.do("%s", command), -1)
	p.rows[command] = rows
	return rows
}

// leg is a way between two cities as the plan will name it.
type leg struct {
	cost float64
	text string
}

// stop is a stay of two nights in a city.
type stop struct {
	city  string
	hotel string
	cost  float64 // of the stay and the meals
	meals []string
	sight string
}

func (p *person) plan() []string {
	m := requestLine.FindStringSubmatch(p.request)
	if m == nil {
		p.t.Fatalf("the request is %q", p.request)
	}
	p.org, p.dest, p.dates = m[1], m[2], strings.Split(m[4], ", ")
	p.days, _ = strconv.Atoi(m[3])
	p.people, _ = strconv.Atoi(m[5])
	p.budget, _ = strconv.ParseFloat(strings.ReplaceAll(m[6], ",", ""), 64)
	p.wish = map[string]string{}
	for _, w := range wishLine.FindAllStringSubmatch(p.request, -1) {
		p.wish[w[1]] = w[2]
	}
	cities := []string{p.dest}
	if p.days > 3 {
		cities = strings.Split(p.ask(cityLine, "cities %s", p.dest)[0][1], ", ")
	}
	var stops []stop
	for _, c := range cities {
		if s, ok := p.stop(c); ok && c != p.org {
			stops = append(stops, s)
		}
	}
	slices.SortStableFunc(stops, func(a, b stop) int { return int(a.cost - b.cost) })
	best, lines := math.Inf(1), []string(nil)
	for _, drive := range []bool{true, false} {
		if drive && p.wish["transportation"] == "no self-driving" || !drive && p.wish["transportation"] == "no flight" {
			continue
		}
		p.route(stops[:min(len(stops), 10)], nil, nil, 0, drive, func(cost float64, route []stop, legs []leg) {
			if cost < best {
				best, lines = cost, p.write(route, legs)
			}
		})
	}
	return lines
}

// route tries the orders of cities.
func (p *person) route(stops, done []stop, legs []leg, cost float64, drive bool, found func(float64, []stop, []leg)) {
	at := p.org
	if len(done) > 0 {
		at = done[len(done)-1].city
	}
	if len(done) == (p.days-1)/2 {
		if l, ok := p.leg(at, p.org, p.dates[p.days-1], drive); ok {
			found(cost+l.cost, done, append(slices.Clone(legs), l))
		}
		return
	}
	for _, s := range stops {
		if slices.ContainsFunc(done, func(d stop) bool { return d.city == s.city }) {
			continue
		}
		if l, ok := p.leg(at, s.city, p.dates[2*len(done)], drive); ok {
			p.route(stops, append(slices.Clone(done), s), append(slices.Clone(legs), l), cost+l.cost+s.cost, drive, found)
		}
	}
}

func (p *person) leg(from, to, date string, drive bool) (leg, bool) {
	if drive {
		rows := p.ask(roadLine, "road %s | %s", from, to)
		if len(rows) == 0 {
			return leg{}, false
		}
		cost, _ := strconv.ParseFloat(rows[0][1], 64)
		return leg{cost * math.Ceil(float64(p.people)/5), fmt.Sprintf("Self-driving, from %s to %s", from, to)}, true
	}
	best := leg{cost: math.Inf(1)}
	for _, row := range p.ask(flightLine, "flights %s | %s | %s", from, to, date) {
		if cost, _ := strconv.ParseFloat(row[2], 64); cost*float64(p.people) < best.cost {
			best = leg{cost * float64(p.people), fmt.Sprintf("Flight Number: %s, from %s to %s", row[1], from, to)}
		}
	}
	if rows := p.ask(roadLine, "road %s | %s | taxi", from, to); len(rows) > 0 {
		if cost, _ := strconv.ParseFloat(rows[0][1], 64); cost*math.Ceil(float64(p.people)/4) < best.cost {
			best = leg{cost * math.Ceil(float64(p.people)/4), fmt.Sprintf("Taxi, from %s to %s", from, to)}
		}
	}
	return best, !math.IsInf(best.cost, 1)
}

// stop is the cheapest fitting stay in a city, with meals that cover every
// wanted cuisine.
func (p *person) stop(city string) (stop, bool) {
	s := stop{city: city, cost: math.Inf(1)}
	for _, h := range p.ask(hotelLine, "hotels %s", city) {
		price, _ := strconv.ParseFloat(h[2], 64)
		nights, _ := strconv.ParseFloat(h[5], 64)
		takes, _ := strconv.ParseFloat(h[6], 64)
		if nights > 2 || !p.roomFits(h[3]) || p.wish["house rule"] != "" && strings.Contains(h[4], "No "+p.wish["house rule"]) {
			continue
		}
		if cost := 2 * price * math.Ceil(float64(p.people)/takes); cost < s.cost {
			s.cost, s.hotel = cost, h[1]+", "+city
		}
	}
	sights := p.ask(sightLine, "sights %s", city)
	food := slices.Clone(p.ask(foodLine, "food %s", city))
	if s.hotel == "" || len(sights) == 0 || len(food) < 3 {
		return s, false
	}
	s.sight = sights[0][1] + ", " + city
	price := func(row []string) int { n, _ := strconv.Atoi(row[2]); return n }
	slices.SortStableFunc(food, func(a, b []string) int { return price(a) - price(b) })
	take := func(fits func([]string) bool) {
		for _, row := range food {
			if name := row[1] + ", " + city; fits(row) && !slices.Contains(s.meals, name) {
				s.meals = append(s.meals, name)
				s.cost += float64(price(row) * p.people)
				return
			}
		}
	}
	var covered []string
	for c := range strings.SplitSeq(p.wish["cuisine"], ", ") {
		if c == "" || slices.Contains(covered, c) || len(s.meals) >= 4 {
			continue
		}
		take(func(row []string) bool { return slices.Contains(strings.Split(row[3], ", "), c) })
		covered = append(covered, c)
	}
	for n := len(s.meals); n < 3; n++ {
		take(func([]string) bool { return true })
	}
	return s, len(s.meals) >= 3
}

func (p *person) roomFits(room string) bool {
	switch p.wish["room type"] {
	case "shared room":
		return room == "Shared room"
	case "not shared room":
		return room != "Shared room"
	case "private room":
		return room == "Private room"
	case "entire room":
		return room == "Entire home/apt"
	}
	return true
}

// write turns a route into the commands that fill in the plan.
func (p *person) write(route []stop, legs []leg) []string {
	var lines []string
	set := func(day int, field, value string) {
		lines = append(lines, fmt.Sprintf("set %d %s %s", day, field, value))
	}
	at := p.org
	for k, s := range route {
		day := 2*k + 1
		set(day, "city", "from "+at+" to "+s.city)
		set(day, "transport", legs[k].text)
		set(day, "hotel", s.hotel)
		if len(s.meals) > 3 {
			set(day, "dinner", s.meals[3])
		}
		set(day+1, "city", s.city)
		for i, meal := range []string{"breakfast", "lunch", "dinner"} {
			set(day+1, meal, s.meals[i])
		}
		set(day+1, "attraction", s.sight+";")
		set(day+1, "hotel", s.hotel)
		at = s.city
	}
	set(p.days, "city", "from "+at+" to "+p.org)
	set(p.days, "transport", legs[len(route)].text)
	return lines
}
