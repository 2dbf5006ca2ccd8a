package travel

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// distanceRow is a row of the distance table with its numbers read once.
type distanceRow struct {
	Distance
	empty bool    // duration or distance is missing
	days  bool    // it takes a day or longer
	km    float64 // valid if fault is ""
	fault string  // the exception that reading the distance raises in the public program
}

func readDistance(d Distance) distanceRow {
	r := distanceRow{Distance: d, empty: d.Duration == "" || d.Distance == "", days: strings.Contains(d.Duration, "day")}
	if r.empty {
		return r
	}
	text := strings.Trim(strings.NewReplacer("km", "", ",", "").Replace(d.Distance), " \t")
	km, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(km) || math.IsInf(km, 0) {
		r.fault = "SyntaxError"
		return r
	}
	r.km = km
	return r
}

// driveFee is the fee of one car, ok is false when one cannot drive.
func (r *distanceRow) driveFee() (fee float64, ok bool) {
	return math.Floor(r.km * 0.05), !r.empty && !r.days && r.fault == ""
}

// taxiFee is the fee of one taxi, ok is false when there is none.
func (r *distanceRow) taxiFee() (fee float64, ok bool) {
	return math.Floor(r.km), !r.empty && !r.days && r.fault == ""
}

// DriveCost is what self-driving costs in $: floor(0.05 $ × km) a car, five
// people a car. ok is false when the row is incomplete or takes a day or more.
func DriveCost(d Distance, people int) (cost float64, ok bool) {
	r := readDistance(d)
	fee, ok := r.driveFee()
	return fee * cars(people), ok
}

// TaxiCost is what going by taxi costs in $: floor(1 $ × km) a taxi, four
// people a taxi. ok is false when the row is incomplete or takes a day or more.
func TaxiCost(d Distance, people int) (cost float64, ok bool) {
	r := readDistance(d)
	fee, ok := r.taxiFee()
	return fee * taxis(people), ok
}

func cars(people int) float64 { return math.Ceil(float64(people) / 5) }

func taxis(people int) float64 { return math.Ceil(float64(people) / 4) }

// units is how many rooms or flats a group needs.
func (h *Hotel) units(people int) float64 {
	if h.MaxPeople <= 0 {
		return float64(people)
	}
	return math.Ceil(float64(people) / float64(h.MaxPeople))
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func sortedRoutes(m map[route]distanceRow) []route {
	keys := make([]route, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b route) int {
		if c := strings.Compare(a.org, b.org); c != 0 {
			return c
		}
		return strings.Compare(a.dest, b.dest)
	})
	return keys
}
