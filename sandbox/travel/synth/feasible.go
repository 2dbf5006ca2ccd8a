package synth

import (
	"fmt"
	"math"

	"alidade/sandbox/travel"
)

// Feasibility is what Agent-STAR's feasibility program says of a query.
type Feasibility struct {
	OK        bool
	Reason    string  // why not
	Transport float64 // $, the program's estimates
	Hotels    float64
	Meals     float64
}

// Feasible applies the published feasibility rule, quirks included: without a
// wish for transport it takes the first city that can be driven to, even where
// the trip would fly; of several wanted cuisines any row with one of them
// counts; the budget must reach 70 % of the estimate, though the program's
// message says 80. It does not prove that a passing plan exists, and it
// refuses some queries that have one: [World.Solve] certifies.
func (w *World) Feasible(q travel.Query) (f Feasibility) {
	t, ok := trips[q.Days]
	if !ok || len(q.Dates) == 0 {
		return Feasibility{Reason: fmt.Sprintf("%d days with %d dates", q.Days, len(q.Dates))}
	}
	fee, ok := w.feasibleFee(q)
	if !ok {
		f.Reason = "no flight found for the destination"
		if q.Wish.Transportation == "no flight" {
			f.Reason = "no driving route found for the destination"
		}
		return f
	}
	f.Transport = fee * float64(t.legs)
	var bed, meal stats
	for _, c := range w.candidates(q) {
		for _, h := range w.Hotels(c) {
			if h.MaxPeople >= q.People && typeFits(h, q.Wish) && ruleFits(h, q.Wish) {
				bed.add(h.Price)
			}
		}
		for _, r := range w.Restaurants(c) {
			if len(q.Wish.Cuisine) == 0 || containsAny(r.Cuisines, q.Wish.Cuisine) {
				meal.add(float64(r.Cost))
			}
		}
	}
	group := float64(q.People)
	if bed.n < t.nights {
		f.Reason = fmt.Sprintf("%d accommodations fit, %d are needed", bed.n, t.nights)
		return f
	}
	f.Hotels = bed.mean() * float64(t.nights) * math.Ceil(group/2)
	if meal.n == 0 || len(q.Wish.Cuisine) > 0 && meal.n < t.meals {
		f.Reason = fmt.Sprintf("%d restaurants fit, %d are needed", meal.n, t.meals)
		return f
	}
	f.Meals = meal.mean() * float64(t.meals) * group * 0.6
	if need := 0.7 * (f.Transport + f.Hotels + f.Meals); q.Budget < need {
		f.Reason = fmt.Sprintf("the budget is %.0f $, 70 %% of the estimate is %.0f $", q.Budget, need)
		return f
	}
	f.OK = true
	return f
}

// feasibleFee is the program's price of one leg.
func (w *World) feasibleFee(q travel.Query) (float64, bool) {
	if q.Wish.Transportation != "no self-driving" {
		for _, c := range w.candidates(q) {
			if d, ok := w.drivable[[2]string{q.Org, c}]; ok {
				cost, _ := travel.DriveCost(d, 1)
				return cost * math.Ceil(float64(q.People)/5), true
			}
		}
		if q.Wish.Transportation == "no flight" {
			return 0, false
		}
	}
	for _, c := range w.candidates(q) {
		out, back := w.Prices(q.Org, c, q.Dates[0]), w.Prices(c, q.Org, q.Dates[len(q.Dates)-1])
		if len(out) > 2 && len(back) > 2 {
			return (mean(out) + mean(back)) / 2 * float64(q.People), true
		}
	}
	return 0, false
}

func mean(prices []int32) float64 {
	sum := 0.0
	for _, p := range prices {
		sum += float64(p)
	}
	return sum / float64(len(prices))
}
