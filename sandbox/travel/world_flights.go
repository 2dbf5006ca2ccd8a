package travel

import (
	"hash"
	"slices"
	"strconv"
)

// flightTable keeps the flights in columns, 28 bytes a row: the public table
// has 3.8 million of them. Texts are numbers into a table of symbols; route
// and date stand once a group. The columns may lie in a mapped file.
type flightTable struct {
	symbols  []string
	symbolID map[string]uint32
	miles    []float64 // distinct distances

	// By row: group by group, file order within.
	number            []uint32 // digits of "F1234567", or symbol | oddNumber
	price             []int32
	dep, arr, elapsed []uint32 // symbols
	mile              []uint32 // index into miles
	groupOf           []uint32

	// By group, in the order of first appearance.
	org, dest, date []uint32 // symbols
	start           []uint32 // first row; one more entry ends the last group

	slots    []uint32 // open hash table of groups by route and date: group + 1, 0 = free
	byNumber []uint32 // rows, ordered by number, file order within
}

type routeDate struct{ org, dest, date uint32 } // symbols

const oddNumber = 1 << 31

// flightBuilder collects rows in file order.
type flightBuilder struct {
	t       flightTable
	byRoute map[routeDate]uint32
	mileID  map[float64]uint32
	counts  []uint32 // by group
}

func newFlightBuilder(size int) *flightBuilder {
	b := &flightBuilder{byRoute: map[routeDate]uint32{}, mileID: map[float64]uint32{}}
	b.t.symbolID = map[string]uint32{}
	for _, column := range []*[]uint32{&b.t.number, &b.t.dep, &b.t.arr, &b.t.elapsed, &b.t.mile, &b.t.groupOf} {
		*column = make([]uint32, 0, size)
	}
	b.t.price = make([]int32, 0, size)
	return b
}

func (b *flightBuilder) symbol(s string) uint32 {
	id, ok := b.t.symbolID[s]
	if !ok {
		id = uint32(len(b.t.symbols))
		s = string(append([]byte(nil), s...)) // the caller's text may be part of a whole file
		b.t.symbols = append(b.t.symbols, s)
		b.t.symbolID[s] = id
	}
	return id
}

func (b *flightBuilder) add(f *Flight) {
	t := &b.t
	key := routeDate{b.symbol(f.Org), b.symbol(f.Dest), b.symbol(f.Date)}
	g, ok := b.byRoute[key]
	if !ok {
		g = uint32(len(b.counts))
		b.byRoute[key] = g
		t.org, t.dest, t.date = append(t.org, key.org), append(t.dest, key.dest), append(t.date, key.date)
		b.counts = append(b.counts, 0)
	}
	b.counts[g]++
	number, plain := plainNumber(f.Number)
	if !plain {
		number = b.symbol(f.Number) | oddNumber
	}
	m, ok := b.mileID[f.Distance]
	if !ok {
		m = uint32(len(t.miles))
		b.mileID[f.Distance] = m
		t.miles = append(t.miles, f.Distance)
	}
	t.number, t.price = append(t.number, number), append(t.price, int32(f.Price))
	t.dep, t.arr, t.elapsed = append(t.dep, b.symbol(f.Dep)), append(t.arr, b.symbol(f.Arr)), append(t.elapsed, b.symbol(f.Elapsed))
	t.mile, t.groupOf = append(t.mile, m), append(t.groupOf, g)
}

// table sorts the rows by group and indexes the numbers.
func (b *flightBuilder) table() flightTable {
	t := b.t
	b.byRoute, b.mileID = nil, nil
	n := len(t.number)
	t.start = make([]uint32, len(b.counts)+1)
	for g, count := range b.counts {
		t.start[g+1] = t.start[g] + count
	}
	next := slices.Clone(t.start)
	moved := make([]uint32, n) // file position → row
	order := make([]uint64, n) // number and file position, to sort by both
	for i, g := range t.groupOf {
		moved[i] = next[g]
		next[g]++
		order[i] = uint64(t.number[i])<<32 | uint64(i)
	}
	for _, column := range []*[]uint32{&t.number, &t.dep, &t.arr, &t.elapsed, &t.mile, &t.groupOf} {
		*column = permute(*column, moved)
	}
	t.price = permute(t.price, moved)
	slices.Sort(order)
	t.byNumber = make([]uint32, n)
	for i, o := range order {
		t.byNumber[i] = moved[uint32(o)]
	}
	t.hashRoutes()
	return t
}

func permute[T any](column []T, to []uint32) []T {
	out := make([]T, len(column))
	for i, x := range column {
		out[to[i]] = x
	}
	return out
}

// hashRoutes fills the hash table of groups, at most half full.
func (t *flightTable) hashRoutes() {
	size := 2
	for size < 2*len(t.org) {
		size *= 2
	}
	t.slots = make([]uint32, size)
	for g := range t.org {
		i := t.slot(routeDate{t.org[g], t.dest[g], t.date[g]})
		for t.slots[i] != 0 {
			i = (i + 1) & (size - 1)
		}
		t.slots[i] = uint32(g) + 1
	}
}

func (t *flightTable) slot(k routeDate) int {
	h := uint64(k.org)*0x9e3779b97f4a7c15 + uint64(k.dest)*0xbf58476d1ce4e5b9 + uint64(k.date)*0x94d049bb133111eb
	h ^= h >> 29
	h *= 0xbf58476d1ce4e5b9
	return int(h>>32) & (len(t.slots) - 1)
}

// plainNumber reads "F" and exactly seven digits.
func plainNumber(s string) (uint32, bool) {
	if len(s) != 8 || s[0] != 'F' {
		return 0, false
	}
	var n uint32
	for i := 1; i < 8; i++ {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + uint32(s[i]-'0')
	}
	return n, true
}

func (t *flightTable) numberText(n uint32) string {
	if n&oddNumber != 0 {
		return t.symbols[n&^oddNumber]
	}
	s := strconv.Itoa(int(n) + 10_000_000)
	return "F" + s[1:]
}

func (t *flightTable) numberOf(s string) (uint32, bool) {
	if n, ok := plainNumber(s); ok {
		return n, true
	}
	id, ok := t.symbolID[s]
	return id | oddNumber, ok
}

// numbered returns the rows of a number in file order.
func (t *flightTable) numbered(number string) []uint32 {
	n, ok := t.numberOf(number)
	if !ok {
		return nil
	}
	lo, hi := 0, len(t.byNumber)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if t.number[t.byNumber[mid]] < n {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	end := lo
	for end < len(t.byNumber) && t.number[t.byNumber[end]] == n {
		end++
	}
	return t.byNumber[lo:end]
}

func (t *flightTable) flight(i uint32) Flight {
	g := t.groupOf[i]
	return Flight{
		Number: t.numberText(t.number[i]), Price: int(t.price[i]),
		Dep: t.symbols[t.dep[i]], Arr: t.symbols[t.arr[i]], Elapsed: t.symbols[t.elapsed[i]],
		Date: t.symbols[t.date[g]], Org: t.symbols[t.org[g]], Dest: t.symbols[t.dest[g]], Distance: t.miles[t.mile[i]],
	}
}

// cells fills a row of the flight tool's table.
func (t *flightTable) cells(i uint32, row []string) {
	row[0], row[1] = t.numberText(t.number[i]), strconv.Itoa(int(t.price[i]))
	row[2], row[3], row[4] = t.symbols[t.dep[i]], t.symbols[t.arr[i]], t.symbols[t.elapsed[i]]
	row[5] = decimal(t.miles[t.mile[i]])
}

// group returns the span of rows of a route on a date.
func (t *flightTable) group(org, dest, date string) (start, end uint32) {
	o, ok1 := t.symbolID[org]
	d, ok2 := t.symbolID[dest]
	day, ok3 := t.symbolID[date]
	if !ok1 || !ok2 || !ok3 || len(t.slots) == 0 {
		return 0, 0
	}
	for i := t.slot(routeDate{o, d, day}); t.slots[i] != 0; i = (i + 1) & (len(t.slots) - 1) {
		if g := t.slots[i] - 1; t.org[g] == o && t.dest[g] == d && t.date[g] == day {
			return t.start[g], t.start[g+1]
		}
	}
	return 0, 0
}

// onRoute finds the first flight of a number that flies from org to dest,
// on date if it is not empty. It returns the row + 1, 0 for none.
func (t *flightTable) onRoute(number, org, dest, date string) uint32 {
	for _, i := range t.numbered(number) {
		g := t.groupOf[i]
		if t.symbols[t.org[g]] == org && t.symbols[t.dest[g]] == dest && (date == "" || t.symbols[t.date[g]] == date) {
			return i + 1
		}
	}
	return 0
}

func (t *flightTable) hash(h hash.Hash) {
	for g := range t.org {
		hashText(h, t.symbols[t.org[g]], t.symbols[t.dest[g]], t.symbols[t.date[g]])
		for i := t.start[g]; i < t.start[g+1]; i++ {
			hashText(h, t.numberText(t.number[i]), t.symbols[t.dep[i]], t.symbols[t.arr[i]], t.symbols[t.elapsed[i]])
			hashNumber(h, float64(t.price[i]), t.miles[t.mile[i]])
		}
	}
}

// Flights lists the flights of a route on a date ("YYYY-MM-DD") in file order.
func (w *World) Flights(org, dest, date string) []Flight {
	start, end := w.flights.group(org, dest, date)
	if start == end {
		return nil
	}
	list := make([]Flight, 0, end-start)
	for i := start; i < end; i++ {
		list = append(list, w.flights.flight(i))
	}
	return list
}

// CountFlights is the number of flights of a route on a date.
func (w *World) CountFlights(org, dest, date string) int {
	start, end := w.flights.group(org, dest, date)
	return int(end - start)
}

// CheapestFlight returns the first of the cheapest flights of a route on a date.
func (w *World) CheapestFlight(org, dest, date string) (Flight, bool) {
	start, end := w.flights.group(org, dest, date)
	if start == end {
		return Flight{}, false
	}
	best := start
	for i := start + 1; i < end; i++ {
		if w.flights.price[i] < w.flights.price[best] {
			best = i
		}
	}
	return w.flights.flight(best), true
}

// Prices lists the prices of a route on a date, $ a person, in file order.
// The slice belongs to the world: read it only.
func (w *World) Prices(org, dest, date string) []int32 {
	start, end := w.flights.group(org, dest, date)
	return w.flights.price[start:end]
}

// EachRoute calls yield with the prices of every route on every date that has
// flights, until it returns false. The slice belongs to the world.
func (w *World) EachRoute(yield func(org, dest, date string, prices []int32) bool) {
	t := &w.flights
	for g := range t.org {
		if !yield(t.symbols[t.org[g]], t.symbols[t.dest[g]], t.symbols[t.date[g]], t.price[t.start[g]:t.start[g+1]]) {
			return
		}
	}
}

// FlightsByNumber lists all flights of a number, on any route and date, in file order.
func (w *World) FlightsByNumber(number string) []Flight {
	var list []Flight
	for _, i := range w.flights.numbered(number) {
		list = append(list, w.flights.flight(i))
	}
	return list
}

// EachFlight calls yield for every flight, route by route, until it returns false.
func (w *World) EachFlight(yield func(Flight) bool) {
	for i := range w.flights.number {
		if !yield(w.flights.flight(uint32(i))) {
			return
		}
	}
}

// NumFlights returns the number of flights.
func (w *World) NumFlights() int { return len(w.flights.number) }
