package travel

import (
	"slices"
	"strings"
	"testing"
)

// failed lists the checks that a profile finds broken; a shut gate is not one.
func failed(j Judgement) []string {
	var keys []string
	for _, v := range j.Verdicts {
		if v.Outcome == OutcomeFail || v.Outcome == OutcomeRaises {
			keys = append(keys, v.Check)
		}
	}
	return keys
}

func TestSmallPlansPass(t *testing.T) {
	w := smallWorld()
	for _, pr := range Profiles() {
		j := Judge(w, smallQuery(), NewPlan(smallPlan()), pr)
		if !j.Success || *j.Cost != 520 {
			t.Errorf("%s: success %v, cost %v, want true, 520\n%s", pr, j.Success, *j.Cost, j.Explain())
		}
		j = Judge(w, longQuery(), NewPlan(longPlan()), pr)
		if want := 40 + 2 + 50 + 20 + 30 + 10 + 15 + 22 + 11 + 13 + 14 + 240 + 180.0; !j.Success || *j.Cost != want {
			t.Errorf("%s: success %v, cost %v, want true, %v\n%s", pr, j.Success, *j.Cost, want, j.Explain())
		}
	}
}

// TestStrictRules breaks one rule at a time and wants exactly that check to
// fail, with the day, the field, the value and a word of the rule in the reason.
func TestStrictRules(t *testing.T) {
	w := smallWorld()
	for _, test := range []struct {
		name   string
		long   bool
		change func(*Query, []Day)
		check  Check
		day    int
		field  Field
		reason string // part of it
	}{
		{"wrong state", true, func(q *Query, d []Day) { q.Dest = "North" }, CheckRoute, 1, FieldCity, "visits cities of North"},
		{"wrong destination of a short trip", false, func(q *Query, d []Day) { q.Dest = "Cedar" }, CheckRoute, 1, FieldCity, "is not Cedar"},
		{"restaurant twice", false, func(q *Query, d []Day) { d[2].Breakfast = "Salt, Birch" }, CheckRestaurants, 3, FieldBreakfast, "already eaten at on day 1"},
		{"restaurant twice, spelt apart", false, func(q *Query, d []Day) { d[2].Breakfast = "Salt , Birch (South)" }, CheckRestaurants, 3, FieldBreakfast, "already eaten at on day 1"},
		{"attraction twice", false, func(q *Query, d []Day) { d[2].Attraction = "Old Mill, Birch;" }, CheckAttractions, 3, FieldAttraction, "already visited on day 2"},
		{"attraction twice, not terminated", false, func(q *Query, d []Day) { d[2].Attraction = "Old Mill, Birch" }, CheckAttractions, 3, FieldAttraction, "already visited on day 2"},
		{"too few nights", false, func(q *Query, d []Day) {
			d[0].Accommodation, d[1].Accommodation = "Oak Inn Annex, Birch", "Oak Inn Annex, Birch"
		}, CheckNights, 1, FieldAccommodation, "at least 3 nights"},
		{"too few nights under a name that occurs twice", false, func(q *Query, d []Day) { d[1].Accommodation = "Twin House, Birch" }, CheckNights, 2, FieldAccommodation, "at least 2 nights"},
		{"driving and flying", false, func(q *Query, d []Day) { d[2].Transportation = "Self-driving, from Birch to Alder" }, CheckTransportation, 3, FieldTransportation, "cannot be combined"},
		{"driving and taxi", true, func(q *Query, d []Day) { d[2].Transportation = "Taxi, from Birch to Cedar" }, CheckTransportation, 3, FieldTransportation, "cannot be combined"},
		{"meal of another city on a full day", false, func(q *Query, d []Day) { d[1].Lunch = "Rye, Cedar" }, CheckCity, 2, FieldLunch, "not in a city of that day"},
		{"city that only contains the day's", false, func(q *Query, d []Day) { d[1].Lunch = "Salt, Birchfield" }, CheckCity, 2, FieldLunch, "not in a city of that day"},
		{"attraction of another city, not terminated", false, func(q *Query, d []Day) { d[1].Attraction = "Old Mill, Birch;Lake, Cedar" }, CheckCity, 2, FieldAttraction, "not in a city of that day"},
		{"bed where the day begins", true, func(q *Query, d []Day) { d[2].Accommodation, d[3].Accommodation = "Oak Inn, Birch", "Elm Lodge, Cedar" }, CheckCity, 3, FieldAccommodation, "not where the day ends"},
		{"bed on the last day", false, func(q *Query, d []Day) { d[2].Accommodation = "Oak Inn, Birch" }, CheckCity, 3, FieldAccommodation, "not where the day ends"},
		{"ride the other way", false, func(q *Query, d []Day) {
			d[0].Transportation = "Self-driving, from Birch to Alder"
			d[2].Transportation = "Self-driving, from Birch to Alder"
		}, CheckCity, 1, FieldTransportation, "does not connect"},
		{"invented restaurant", false, func(q *Query, d []Day) { d[1].Lunch = "Nowhere, Birch" }, CheckSandbox, 2, FieldLunch, "no restaurant"},
		{"part of a name", false, func(q *Query, d []Day) { d[1].Lunch = "Pea, Birch" }, CheckSandbox, 2, FieldLunch, "no restaurant"},
		{"invented attraction, not terminated", false, func(q *Query, d []Day) { d[1].Attraction = "Old Mill, Birch;Big Hole, Birch" }, CheckSandbox, 2, FieldAttraction, "no attraction"},
		{"invented bed", false, func(q *Query, d []Day) { d[0].Accommodation, d[1].Accommodation = "Ritz, Birch", "Ritz, Birch" }, CheckSandbox, 1, FieldAccommodation, "no accommodation"},
		{"flight of another date", false, func(q *Query, d []Day) {
			q.Dates = []string{"2022-03-08", "2022-03-09", "2022-03-03"}
		}, CheckSandbox, 1, FieldTransportation, "on 2022-03-08"},
		{"flight of another route", false, func(q *Query, d []Day) { d[0].Transportation = "Flight Number: F0000003, from Alder to Birch" }, CheckSandbox, 1, FieldTransportation, "no flight"},
		{"train", false, func(q *Query, d []Day) { d[0].Transportation = "Train, from Alder to Birch" }, CheckSandbox, 1, FieldTransportation, "names none of flight"},
		{"two modes in one text", false, func(q *Query, d []Day) { d[0].Transportation = "Taxi or flight, from Alder to Birch" }, CheckSandbox, 1, FieldTransportation, "more than one"},
		{"flight without a number", false, func(q *Query, d []Day) { d[0].Transportation = "Flight, from Alder to Birch" }, CheckSandbox, 1, FieldTransportation, "without a readable"},
		{"wrong number of cities", false, func(q *Query, d []Day) { q.Cities = 2 }, CheckComplete, 0, noField, "asks for 2"},
		{"no breakfast on a full day", false, func(q *Query, d []Day) { d[1].Breakfast = "-" }, CheckComplete, 2, FieldBreakfast, "needed on a full day"},
		{"no attraction on a full day", false, func(q *Query, d []Day) { d[1].Attraction = "" }, CheckComplete, 2, FieldAttraction, "needed on a full day"},
		{"no bed", false, func(q *Query, d []Day) { d[0].Accommodation = "-" }, CheckComplete, 1, FieldAccommodation, "needed on every night"},
		{"no way home", false, func(q *Query, d []Day) { d[2].Transportation = "-" }, CheckComplete, 3, FieldTransportation, "needed on a day with a move"},
		{"too dear", false, func(q *Query, d []Day) { q.Budget = 519 }, CheckBudget, 0, noField, "$1 over the budget of $519"},
		{"house rule", false, func(q *Query, d []Day) { q.Wish.HouseRule = "pets" }, CheckRoomRule, 1, FieldAccommodation, "want pets to be allowed"},
		{"room type", false, func(q *Query, d []Day) { q.Wish.RoomType = "entire room" }, CheckRoomType, 1, FieldAccommodation, "want: entire room"},
		{"cuisine", false, func(q *Query, d []Day) { q.Wish.Cuisine = []string{"Italian", "French"} }, CheckCuisine, 0, noField, "offers French"},
		{"cuisine only at home", false, func(q *Query, d []Day) { q.Wish.Cuisine = []string{"French"}; d[0].Breakfast = "Home, Alder" }, CheckCuisine, 0, noField, "outside the departure city"},
		{"flight unwanted", false, func(q *Query, d []Day) { q.Wish.Transportation = "no flight" }, CheckMode, 1, FieldTransportation, "want no flight"},
		{"driving unwanted, in lower case", true, func(q *Query, d []Day) {
			q.Wish.Transportation = "no self-driving"
			for i := range d {
				d[i].Transportation = strings.ToLower(d[i].Transportation[:1]) + d[i].Transportation[1:]
			}
		}, CheckMode, 1, FieldTransportation, "want no self-driving"},
	} {
		t.Run(test.name, func(t *testing.T) {
			q, days := smallQuery(), smallPlan()
			if test.long {
				q, days = longQuery(), longPlan()
			}
			test.change(&q, days)
			j := Judge(w, q, NewPlan(days), Strict)
			if got := failed(j); !slices.Equal(got, []string{test.check.Key()}) {
				t.Fatalf("failed %v, want %v\n%s", got, test.check.Key(), j.Explain())
			}
			v := j.Verdicts[test.check]
			if v.Day != test.day || v.Field != test.field.String() || !strings.Contains(v.Reason, test.reason) {
				t.Errorf("verdict %d %q %q, want %d %q …%s…", v.Day, v.Field, v.Reason, test.day, test.field.String(), test.reason)
			}
			if v.Value != "" && test.field != noField && !strings.Contains(v.Reason, quote(v.Value)) {
				t.Errorf("reason %q does not name the value %q", v.Reason, v.Value)
			}
			if j.Success {
				t.Error("success in spite of a broken rule")
			}
		})
	}
}

// TestLoopholes holds plans that one of the public evaluators lets through,
// or stops at, against what strict says.
func TestLoopholes(t *testing.T) {
	w := smallWorld()
	set := func(day int, f Field, v Value) func(*Query, *Plan) {
		return func(_ *Query, p *Plan) { p.Days[day].Fields[f] = v }
	}
	both := func(a, b func(*Query, *Plan)) func(*Query, *Plan) {
		return func(q *Query, p *Plan) { a(q, p); b(q, p) }
	}
	for _, test := range []struct {
		name                   string
		change                 func(*Query, *Plan)
		official, star, strict string // checks that fail, "" = passes, else a list
	}{
		{"invented attraction without a semicolon", set(1, FieldAttraction, Text("Made Up Tower, Birch")), "", "", "is_valid_information_in_sandbox"},
		{"restaurant of another city", set(1, FieldLunch, Text("Rye, Cedar")), "", "is_valid_information_in_current_city", "is_valid_information_in_current_city"},
		{"both flights a train", both(set(0, FieldTransportation, Text("Train, from Alder to Dogwood, Birch")), set(2, FieldTransportation, Text("Train, from Birch to Alder"))),
			"", "is_valid_information_in_sandbox", "is_valid_information_in_current_city is_valid_information_in_sandbox"},
		{"both flights without a number", both(set(0, FieldTransportation, Text("Flight, from Alder to Birch")), set(2, FieldTransportation, Text("Flight, from Birch to Alder"))),
			"", "is_valid_information_in_sandbox", "is_valid_information_in_sandbox"},
		{"driving there and flying back", set(0, FieldTransportation, Text("Driving, from Alder to Birch")), "", "is_valid_transportation", "is_valid_transportation"},
		{"breakfast null", set(1, FieldBreakfast, Value{Kind: Null}), "", "", "is_not_absent"},
		{"way home null", set(2, FieldTransportation, Value{Kind: Null}), "", "is_valid_information_in_current_city", "is_not_absent"},
		{"restaurant without a name", set(1, FieldLunch, Text(", Birch")), "", "", "is_valid_information_in_sandbox"},
		{"ambiguous name skips minimum nights", both(set(0, FieldAccommodation, Text("Twin, Birch")), set(1, FieldAccommodation, Text("Oak Inn, Birch"))), "", "", "is_valid_information_in_sandbox"},
		{"one letter of a hotel", both(set(0, FieldAccommodation, Text("O, Birch")), set(1, FieldAccommodation, Text("O, Birch"))), "", "", "is_valid_information_in_sandbox"},
		{"price behind the name", set(1, FieldLunch, Text("Fig, Birch; Cost: 20")), "is_valid_information_in_sandbox", "is_valid_information_in_sandbox",
			"is_valid_information_in_current_city is_valid_information_in_sandbox"},
		{"state behind the city", set(1, FieldLunch, Text("Fig, Birch(South)")), "", "is_valid_information_in_sandbox", ""},
		{"state behind a blank", set(1, FieldCity, Text("Birch (South)")), "is_reasonable_visiting_city is_not_absent",
			"is_reasonable_visiting_city is_valid_information_in_current_city is_not_absent", ""},
		{"same restaurant, spelt apart", set(2, FieldBreakfast, Text("Salt , Birch")), "", "", "is_valid_restaurants"},
		{"flight number in lower case", set(0, FieldTransportation, Text("flight number: F0000001, from Alder to Birch")), "is_valid_information_in_sandbox",
			"is_valid_information_in_sandbox", "is_valid_information_in_sandbox"},
		{"return flight on day 1", set(0, FieldTransportation, Text("Flight Number: F0000002, from Birch to Alder")), "", "",
			"is_valid_information_in_current_city is_valid_information_in_sandbox"},
		{"flight of another day", set(2, FieldTransportation, Text("Flight Number: F0000001, from Birch to Alder")), "is_valid_information_in_sandbox", "is_valid_information_in_sandbox", "is_valid_information_in_sandbox"},
		{"flight priced by its number alone", func(q *Query, p *Plan) { q.Dates = []string{"2022-03-02", "2022-03-02", "2022-03-03"} }, "", "", ""},
		{"another destination", func(q *Query, p *Plan) { q.Dest = "Cedar" }, "", "", "is_reasonable_visiting_city"},
		{"unwanted driving in lower case", func(q *Query, p *Plan) {
			q.Wish.Transportation = "no self-driving"
			p.Days[0].Fields[FieldTransportation] = Text("self-driving, from Alder to Birch")
			p.Days[2].Fields[FieldTransportation] = Text("self-driving, from Birch to Alder")
		}, "", "valid_transportation", "valid_transportation"},
		{"cuisine met after a meal at home", func(q *Query, p *Plan) {
			q.Wish.Cuisine = []string{"Italian"}
			p.Days[0].Fields[FieldBreakfast] = Text("Home, Alder")
		}, "valid_cuisine", "", ""},
		{"a wish said twice", func(q *Query, p *Plan) { q.Wish.Cuisine = []string{"Italian", "Italian"} }, "valid_cuisine", "", ""},
		{"an extra day", func(q *Query, p *Plan) { p.Days = append(p.Days, p.Days[1]) }, "", "", ""},
		{"home a day early", func(q *Query, p *Plan) {
			p.Days[1] = p.Days[2]
			p.Days[1].Fields[FieldAccommodation] = Text("-")
			p.Days[2] = RawDay{Kind: Object, Fields: [nFields]Value{FieldCity: Text("Alder"), FieldTransportation: Text("-"), FieldBreakfast: Text("-"),
				FieldLunch: Text("-"), FieldDinner: Text("-"), FieldAttraction: Text("-"), FieldAccommodation: Text("-")}}
			p.Days[1].Fields[FieldTransportation] = Text("Flight Number: F0000002, from Birch to Alder")
			q.Dates[1] = "2022-03-03"
		}, "is_reasonable_visiting_city is_not_absent", "is_reasonable_visiting_city is_not_absent", "is_reasonable_visiting_city is_not_absent"},
		{"attraction as a list", set(1, FieldAttraction, Value{Kind: List, Items: []Value{Text("Old Mill, Birch")}}),
			"is_valid_attractions is_valid_information_in_current_city is_valid_information_in_sandbox",
			"is_valid_attractions is_valid_information_in_current_city is_valid_information_in_sandbox",
			"is_valid_attractions is_valid_information_in_current_city is_valid_information_in_sandbox is_not_absent"},
	} {
		t.Run(test.name, func(t *testing.T) {
			q, p := smallQuery(), NewPlan(smallPlan())
			q.Dates = slices.Clone(q.Dates)
			test.change(&q, &p)
			for pr, want := range map[Profile]string{Official: test.official, Star: test.star, Strict: test.strict} {
				j := Judge(w, q, p, pr)
				if got := strings.Join(failed(j), " "); got != want {
					t.Errorf("%s fails %q, want %q\n%s", pr, got, want, j.Explain())
				}
				if j.Success != (want == "") {
					t.Errorf("%s success = %v", pr, j.Success)
				}
			}
		})
	}
}

func TestStrictWrongKinds(t *testing.T) {
	w, q := smallWorld(), smallQuery()
	for _, src := range []string{`null`, `[]`, `{}`, `""`, `0`, `false`} {
		p, err := ParseValue([]byte(src))
		if err != nil {
			t.Fatal(err)
		}
		if j := Judge(w, q, PlanOf(p), Strict); j.Delivered || j.Success || j.CSMicro != 0 || j.Verdicts[0].Outcome != OutcomeFail {
			t.Errorf("%s: delivered %v, scores %v", src, j.Delivered, j.CSMicro)
		}
	}
	for _, src := range []string{`"a plan"`, `5`, `true`, `{"day1": {}}`, `[null]`, `[[]]`, `["x"]`, `[1,2,3]`, `[{}]`, `[{},{},{}]`, `[{"current_city": 5}]`, `[{"current_city": []}]`} {
		p, err := ParseValue([]byte(src))
		if err != nil {
			t.Fatal(err)
		}
		j := Judge(w, q, PlanOf(p), Strict)
		if !j.Delivered || j.Success || j.GateOpen || j.Raised != "" || len(j.Verdicts) != int(nChecks) {
			t.Errorf("%s: %+v", src, j)
		}
		for _, v := range j.Verdicts {
			if v.Outcome == OutcomeFail && v.Reason == "" || v.Outcome == OutcomeRaises {
				t.Errorf("%s: %s %s without a reason", src, v.Check, v.Outcome)
			}
		}
	}
}

// TestStrictAnnotated judges the 45 human plans. Strict takes all but one:
// plan 42 visits attractions of San Angelo and Houston on full days in San Antonio.
func TestStrictAnnotated(t *testing.T) {
	s := loadTrain(t)
	counts := map[Profile]int{}
	for _, l := range s.lines {
		for _, pr := range Profiles() {
			j := Judge(s.w, l.Query, l.Plan, pr)
			counts[pr] += int(number(j.Success))
			if pr != Strict || j.Success {
				continue
			}
			if got := failed(j); l.ID != "42" || !slices.Equal(got, []string{CheckCity.Key()}) {
				t.Errorf("plan %s fails %v\n%s", l.ID, got, j.Explain())
			}
			if v := j.Verdicts[CheckCity]; v.Day != 4 || v.Field != "attraction" || v.Value != "San Angelo Museum of Fine Arts, San Angelo(Texas)" {
				t.Errorf("plan 42: day %d %s %q: %s", v.Day, v.Field, v.Value, v.Reason)
			}
		}
	}
	if counts[Official] != 45 || counts[Star] != 15 || counts[Strict] != 44 {
		t.Errorf("passes %v, want official 45, star 15, strict 44", counts)
	}
}
