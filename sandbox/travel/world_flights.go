package travel

import (
	"hash"
	"slices"
	"strconv"
)

// flightTable keeps the flights in 32 bytes a row: the public table has 3.8
// million of them. Texts are numbers into a table of symbols; route and date
// stand once a group.
type flightTable struct {
	symbols  []string
	symbolID map[string]uint32
	rows     []flightRow   // group by group, file order within
	groups   []flightGroup // in the order of first appearance
	byRoute  map[routeDate]uint32
	byNumber []uint32 // indices into rows, ordered by number, file order within
}

type flightRow struct {
	number            uint32 // digits of "F1234567", or symbol | oddNumber
	price             int32
	dep, arr, elapsed uint32 // symbols
	group             uint32
	distance          float64
}

type flightGroup struct {
	routeDate
	start, end uint32
}

type routeDate struct{ org, dest, date uint32 } // symbols

const oddNumber = 1 << 31

// flightBuilder collects rows in file order.
type flightBuilder struct {
	t      flightTable
	counts []uint32 // by group
}

func newFlightBuilder(size int) *flightBuilder {
	return &flightBuilder{t: flightTable{
		symbolID: map[string]uint32{},
		rows:     make([]flightRow, 0, size),
		byRoute:  map[routeDate]uint32{},
	}}
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
	key := routeDate{b.symbol(f.Org), b.symbol(f.Dest), b.symbol(f.Date)}
	g, ok := b.t.byRoute[key]
	if !ok {
		g = uint32(len(b.t.groups))
		b.t.byRoute[key] = g
		b.t.groups = append(b.t.groups, flightGroup{routeDate: key})
		b.counts = append(b.counts, 0)
	}
	b.counts[g]++
	number, plain := plainNumber(f.Number)
	if !plain {
		number = b.symbol(f.Number) | oddNumber
	}
	b.t.rows = append(b.t.rows, flightRow{
		number: number, price: int32(f.Price), group: g, distance: f.Distance,
		dep: b.symbol(f.Dep), arr: b.symbol(f.Arr), elapsed: b.symbol(f.Elapsed),
	})
}

// table sorts the rows by group and indexes the numbers.
func (b *flightBuilder) table() flightTable {
	t := b.t
	next := make([]uint32, len(b.counts))
	var sum uint32
	for g, n := range b.counts {
		next[g] = sum
		t.groups[g].start, t.groups[g].end = sum, sum+n
		sum += n
	}
	rows := make([]flightRow, len(t.rows))
	order := make([]uint64, len(t.rows)) // number and file position, to sort by both
	moved := make([]uint32, len(t.rows)) // file position → position by group
	for i, r := range t.rows {
		moved[i] = next[r.group]
		rows[next[r.group]] = r
		next[r.group]++
		order[i] = uint64(r.number)<<32 | uint64(i)
	}
	slices.Sort(order)
	t.byNumber = make([]uint32, len(order))
	for i, o := range order {
		t.byNumber[i] = moved[uint32(o)]
	}
	t.rows = rows
	return t
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

// numbered returns the rows of a number in file order, as indices.
func (t *flightTable) numbered(number string) []uint32 {
	n, ok := t.numberOf(number)
	if !ok {
		return nil
	}
	lo, hi := 0, len(t.byNumber)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if t.rows[t.byNumber[mid]].number < n {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	end := lo
	for end < len(t.byNumber) && t.rows[t.byNumber[end]].number == n {
		end++
	}
	return t.byNumber[lo:end]
}

func (t *flightTable) flight(i uint32) Flight {
	r := &t.rows[i]
	g := &t.groups[r.group]
	return Flight{
		Number: t.numberText(r.number), Price: int(r.price),
		Dep: t.symbols[r.dep], Arr: t.symbols[r.arr], Elapsed: t.symbols[r.elapsed],
		Date: t.symbols[g.date], Org: t.symbols[g.org], Dest: t.symbols[g.dest], Distance: r.distance,
	}
}

// cells fills a row of the flight tool's table.
func (t *flightTable) cells(i uint32, row []string) {
	r := &t.rows[i]
	row[0], row[1] = t.numberText(r.number), strconv.Itoa(int(r.price))
	row[2], row[3], row[4] = t.symbols[r.dep], t.symbols[r.arr], t.symbols[r.elapsed]
	row[5] = decimal(r.distance)
}

// group returns the span of rows of a route on a date.
func (t *flightTable) group(org, dest, date string) (start, end uint32) {
	o, ok1 := t.symbolID[org]
	d, ok2 := t.symbolID[dest]
	day, ok3 := t.symbolID[date]
	if !ok1 || !ok2 || !ok3 {
		return 0, 0
	}
	g, ok := t.byRoute[routeDate{o, d, day}]
	if !ok {
		return 0, 0
	}
	return t.groups[g].start, t.groups[g].end
}

// onRoute finds the first flight of a number that flies from org to dest,
// on date if it is not empty.
func (t *flightTable) onRoute(number, org, dest, date string) *flightRow {
	for _, i := range t.numbered(number) {
		g := &t.groups[t.rows[i].group]
		if t.symbols[g.org] == org && t.symbols[g.dest] == dest && (date == "" || t.symbols[g.date] == date) {
			return &t.rows[i]
		}
	}
	return nil
}

func (t *flightTable) hash(h hash.Hash) {
	for _, g := range t.groups {
		hashText(h, t.symbols[g.org], t.symbols[g.dest], t.symbols[g.date])
		for i := g.start; i < g.end; i++ {
			r := &t.rows[i]
			hashText(h, t.numberText(r.number), t.symbols[r.dep], t.symbols[r.arr], t.symbols[r.elapsed])
			hashNumber(h, float64(r.price), r.distance)
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
	for i := range w.flights.rows {
		if !yield(w.flights.flight(uint32(i))) {
			return
		}
	}
}

// NumFlights returns the number of flights.
func (w *World) NumFlights() int { return len(w.flights.rows) }
