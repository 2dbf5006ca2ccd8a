package travel

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"unsafe"
)

// A cache file holds a world ready for use. It begins with a prelude of fixed
// size, then a JSON header, then sections that each start at a multiple of 64
// bytes: the flight table's columns as they lie in memory, and the other
// tables in a plain encoding. The file is mapped, so that processes share its
// pages; nothing in it is trusted before its checksums have been compared.

const (
	cacheMagic   = "ALWORLD\x01"
	cacheEndian  = 0x01020304 // as the writing machine lays it out
	preludeBytes = 24         // magic, byte order, header length, header checksum, zero
	cacheAlign   = 64
)

var errCacheFormat = errors.New("not a world cache of this version")

type cacheHeader struct {
	Origin   Origin    `json:"origin"`
	World    string    `json:"world"` // the world's hash
	CRC      uint32    `json:"crc"`   // Castagnoli, over all behind the header
	Size     int64     `json:"size"`  // of all behind the header
	Sections []section `json:"sections"`
}

type section struct {
	Name   string `json:"name"`
	Offset int64  `json:"offset"` // from the first section
	Bytes  int64  `json:"bytes"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// columnsOf names the flight table's columns of 4 bytes.
func (t *flightTable) columnsOf() []struct {
	name   string
	column *[]uint32
} {
	return []struct {
		name   string
		column *[]uint32
	}{
		{"number", &t.number}, {"dep", &t.dep}, {"arr", &t.arr}, {"elapsed", &t.elapsed}, {"mile", &t.mile}, {"group", &t.groupOf},
		{"org", &t.org}, {"dest", &t.dest}, {"date", &t.date}, {"start", &t.start}, {"slots", &t.slots}, {"by_number", &t.byNumber},
	}
}

// bytesOf views a column as bytes.
func bytesOf[T uint32 | int32 | float64](column []T) []byte {
	if len(column) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&column[0])), len(column)*int(unsafe.Sizeof(column[0])))
}

// columnOf views bytes as a column. The caller has checked length and alignment.
func columnOf[T uint32 | int32 | float64](b []byte) []T {
	var x T
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(x)))
}

// writeCache writes a world's tables and flights.
func writeCache(out io.Writer, o Origin, hash string, t Tables, f *flightTable) error {
	var parts [][]byte
	h := cacheHeader{Origin: o, World: hash}
	put := func(name string, b []byte) {
		h.Sections = append(h.Sections, section{name, h.Size, int64(len(b))})
		parts = append(parts, b, make([]byte, (cacheAlign-len(b)%cacheAlign)%cacheAlign))
		h.Size += int64(len(b) + len(parts[len(parts)-1]))
	}
	put("tables", encodeTables(t, f.symbols))
	put("price", bytesOf(f.price))
	put("miles", bytesOf(f.miles))
	for _, c := range f.columnsOf() {
		put(c.name, bytesOf(*c.column))
	}
	for _, p := range parts {
		h.CRC = crc32.Update(h.CRC, castagnoli, p)
	}
	head, err := json.Marshal(h)
	if err != nil {
		return err
	}
	for (preludeBytes+len(head))%cacheAlign != 0 {
		head = append(head, ' ')
	}
	prelude := []byte(cacheMagic)
	prelude = binary.NativeEndian.AppendUint32(prelude, cacheEndian)
	prelude = binary.NativeEndian.AppendUint32(prelude, uint32(len(head)))
	prelude = binary.NativeEndian.AppendUint32(prelude, crc32.Checksum(head, castagnoli))
	prelude = binary.NativeEndian.AppendUint32(prelude, 0)
	for _, p := range append([][]byte{prelude, head}, parts...) {
		if _, err := out.Write(p); err != nil {
			return err
		}
	}
	return nil
}

// readHeader reads the header of a cache file and returns what is behind it.
func readHeader(src []byte) (h cacheHeader, body []byte, err error) {
	if len(src) < preludeBytes || string(src[:len(cacheMagic)]) != cacheMagic || binary.NativeEndian.Uint32(src[8:]) != cacheEndian {
		return h, nil, errCacheFormat
	}
	n := int64(binary.NativeEndian.Uint32(src[12:]))
	if int64(len(src)) < preludeBytes+n {
		return h, nil, fmt.Errorf("the file ends within its header")
	}
	head := src[preludeBytes : preludeBytes+n]
	if crc32.Checksum(head, castagnoli) != binary.NativeEndian.Uint32(src[16:]) {
		return h, nil, errors.New("the header's checksum is wrong")
	}
	if err := json.Unmarshal(head, &h); err != nil {
		return h, nil, fmt.Errorf("header: %w", err)
	}
	body = src[preludeBytes+n:]
	if int64(len(body)) != h.Size {
		return h, nil, fmt.Errorf("the file has %d bytes behind its header, must have %d", len(body), h.Size)
	}
	return h, body, nil
}

// readBody makes the world of a cache file. Its columns stay where they are.
func readBody(h cacheHeader, body []byte) (*World, error) {
	if crc32.Checksum(body, castagnoli) != h.CRC {
		return nil, errors.New("the checksum is wrong")
	}
	parts := map[string][]byte{}
	for _, s := range h.Sections {
		if s.Offset < 0 || s.Bytes < 0 || s.Offset%cacheAlign != 0 || s.Offset+s.Bytes > int64(len(body)) {
			return nil, fmt.Errorf("section %s is outside the file", s.Name)
		}
		parts[s.Name] = body[s.Offset : s.Offset+s.Bytes]
	}
	var f flightTable
	t, symbols, err := decodeTables(parts["tables"])
	if err != nil {
		return nil, fmt.Errorf("tables: %w", err)
	}
	f.symbols, f.symbolID = symbols, make(map[string]uint32, len(symbols))
	for i, s := range symbols {
		f.symbolID[s] = uint32(i)
	}
	f.price, f.miles = columnOf[int32](parts["price"]), columnOf[float64](parts["miles"])
	for _, c := range f.columnsOf() {
		*c.column = columnOf[uint32](parts[c.name])
	}
	w := newWorld(t, f)
	w.hashOnce.Do(func() { w.hash = h.World })
	return w, nil
}

// encoder writes tables: numbers as varints or 8 bytes, texts with their length.
type encoder struct{ b []byte }

func (e *encoder) uint(n int)      { e.b = binary.AppendUvarint(e.b, uint64(n)) }
func (e *encoder) int(n int)       { e.b = binary.AppendVarint(e.b, int64(n)) }
func (e *encoder) float(x float64) { e.b = binary.LittleEndian.AppendUint64(e.b, math.Float64bits(x)) }
func (e *encoder) texts(s ...string) { // each with its length
	for _, s := range s {
		e.uint(len(s))
		e.b = append(e.b, s...)
	}
}

func encodeTables(t Tables, symbols []string) []byte {
	var e encoder
	for _, n := range []int{len(t.Cities), len(t.Hotels), len(t.Restaurants), len(t.Attractions), len(t.Distances), len(symbols)} {
		e.uint(n)
	}
	for _, c := range t.Cities {
		e.texts(c.Name, c.State)
	}
	for _, h := range t.Hotels {
		e.texts(h.Name, h.RoomType, h.Rules, h.City)
		e.float(h.Price)
		e.float(h.MinNights)
		e.int(h.MaxPeople)
		e.float(h.Rating)
	}
	for _, r := range t.Restaurants {
		e.texts(r.Name, r.Cuisines, r.City)
		e.int(r.Cost)
		e.float(r.Rating)
	}
	for _, a := range t.Attractions {
		e.texts(a.Name, a.Address, a.Phone, a.Website, a.City)
		e.float(a.Lat)
		e.float(a.Lon)
	}
	for _, d := range t.Distances {
		e.texts(d.Org, d.Dest, d.Duration, d.Distance)
	}
	e.texts(symbols...)
	return e.b
}

// decoder reads what encoder wrote. All texts share one copy of the section.
type decoder struct {
	b    []byte
	s    string
	at   int
	fail bool
}

func (d *decoder) uint() int {
	n, used := binary.Uvarint(d.b[d.at:])
	if used <= 0 || n > uint64(len(d.b)) {
		d.fail, d.at = true, len(d.b)
		return 0
	}
	d.at += used
	return int(n)
}

func (d *decoder) int() int {
	n, used := binary.Varint(d.b[d.at:])
	if used <= 0 {
		d.fail, d.at = true, len(d.b)
		return 0
	}
	d.at += used
	return int(n)
}

func (d *decoder) float() float64 {
	if d.at+8 > len(d.b) {
		d.fail, d.at = true, len(d.b)
		return 0
	}
	d.at += 8
	return math.Float64frombits(binary.LittleEndian.Uint64(d.b[d.at-8:]))
}

func (d *decoder) text() string {
	n := d.uint()
	if n > len(d.b)-d.at {
		d.fail, d.at = true, len(d.b)
		return ""
	}
	d.at += n
	return d.s[d.at-n : d.at]
}

func decodeTables(b []byte) (t Tables, symbols []string, err error) {
	d := decoder{b: b, s: string(b)}
	var n [6]int
	for i := range n {
		n[i] = d.uint()
	}
	t.Cities, t.Hotels, t.Restaurants = make([]City, n[0]), make([]Hotel, n[1]), make([]Restaurant, n[2])
	t.Attractions, t.Distances, symbols = make([]Attraction, n[3]), make([]Distance, n[4]), make([]string, n[5])
	for i := range t.Cities {
		t.Cities[i] = City{Name: d.text(), State: d.text()}
	}
	for i := range t.Hotels {
		t.Hotels[i] = Hotel{Name: d.text(), RoomType: d.text(), Rules: d.text(), City: d.text(), Price: d.float(), MinNights: d.float(), MaxPeople: d.int(), Rating: d.float()}
	}
	for i := range t.Restaurants {
		t.Restaurants[i] = Restaurant{Name: d.text(), Cuisines: d.text(), City: d.text(), Cost: d.int(), Rating: d.float()}
	}
	for i := range t.Attractions {
		t.Attractions[i] = Attraction{Name: d.text(), Address: d.text(), Phone: d.text(), Website: d.text(), City: d.text(), Lat: d.float(), Lon: d.float()}
	}
	for i := range t.Distances {
		t.Distances[i] = Distance{Org: d.text(), Dest: d.text(), Duration: d.text(), Distance: d.text()}
	}
	for i := range symbols {
		symbols[i] = d.text()
	}
	if d.fail || d.at != len(b) {
		return Tables{}, nil, errors.New("the encoding is damaged")
	}
	return t, symbols, nil
}
