package web

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"alidade/ablation"
	"alidade/templates"
	"alidade/trainer"
)

// sampleRun is a run of a reward study as the runner would have queued it.
func sampleRun(id ablation.RunID) ablation.Run {
	recipe, _ := ablation.PresetNamed("quick")
	recipe.Environment.MaxTurns, recipe.Environment.MaxTokens = 60, 30000
	return ablation.Run{
		ID: id, Study: 1, Seed: 3, State: ablation.Running, Attempt: 1, Step: 40, TotalSteps: 60,
		Arm: ablation.Arm{Label: "SUM × 5 % failures", Recipe: recipe, Levels: map[string]any{"reward.kind": "SUM"}},
	}
}

// A stay, a table and a sight in the sample world.
var (
	sampleStays = map[string][][]string{
		"Boise": {
			{"Riverside Loft", "96", "Entire home/apt", "No smoking", "1", "2", "4.6"},
			{"Foothill Cabin", "142", "Entire home/apt", "No pets", "2", "4", "4.8"},
			{"Depot Bench Room", "58", "Private room", "No visitors", "1", "2", "3.9"},
			{"North End House", "188", "Entire home/apt", "No parties", "1", "5", "4.2"},
			{"Greenbelt Studio", "110", "Entire home/apt", "No smoking & No pets", "1", "2", "4.4"},
			{"Hyde Park Bunk", "37", "Shared room", "No children under 10", "1", "1", "3.2"},
			{"Warm Springs Suite", "205", "Entire home/apt", "No visitors", "3", "3", "4.9"},
		},
		"Twin Falls": {
			{"Canyon Rim Flat", "84", "Entire home/apt", "No pets", "3", "2", "4.1"},
			{"Shoshone Guest Room", "49", "Private room", "No smoking", "1", "2", "4.0"},
			{"Perrine House", "131", "Entire home/apt", "No parties", "1", "6", "4.7"},
		},
	}
	sampleTables = map[string][][]string{
		"Boise": {
			{"Basque Corner", "31", "Mediterranean, BBQ", "4.5"}, {"Tamarack Grill", "27", "American", "4.1"},
			{"Pho Nineteen", "18", "Chinese, Fast Food", "4.3"}, {"Casa Lupita", "22", "Mexican", "4.4"},
			{"Bread & Basalt", "14", "French, Cafe", "4.2"}, {"Sagebrush Diner", "16", "American, Fast Food", "3.8"},
			{"Trattoria Olmo", "38", "Italian", "4.6"}, {"Spice Caravan", "25", "Indian", "4.4"},
		},
		"Twin Falls": {
			{"Snake River Smoke", "29", "BBQ, American", "4.2"}, {"El Molino", "20", "Mexican", "4.0"},
			{"Rim View Bakery", "12", "Cafe, Desserts", "4.5"}, {"Thali House", "24", "Indian", "4.3"},
		},
	}
	sampleSights = map[string][][]string{
		"Boise":      {{"Table Rock", "Reserve St", "208-555-0119"}, {"Botanical Garden", "Old Penitentiary Rd", "208-555-0142"}, {"Rose Garden", "Julia Davis Dr", "208-555-0107"}},
		"Twin Falls": {{"Shoshone Falls", "Falls Ave", "208-555-0177"}, {"Perrine Bridge", "US 93", "208-555-0155"}},
	}
	sampleFlights = [][]string{
		{"F4410731", "168", "07:20", "08:45", "1 hours 25 minutes", "405"},
		{"F4410802", "149", "11:05", "12:34", "1 hours 29 minutes", "405"},
		{"F4411290", "131", "18:50", "20:17", "1 hours 27 minutes", "405"},
		{"F4411333", "202", "21:15", "22:41", "1 hours 26 minutes", "405"},
	}
	stayColumns   = []string{"name", "price", "room type", "house rules", "minimum nights", "maximum occupancy", "rating"}
	tableColumns  = []string{"name", "average cost", "cuisines", "rating"}
	sightColumns  = []string{"name", "address", "phone"}
	flightColumns = []string{"flight number", "price", "departure", "arrival", "elapsed", "distance"}
)

// sampleTrajectory is rollout n of one prompt: a five-day trip whose verdicts
// depend on n, with one injected failure in every third.
func sampleTrajectory(step int64, prompt, n int) trainer.Trajectory {
	rng := rand.New(rand.NewPCG(uint64(step*1000)+uint64(prompt), uint64(n)))
	group := fmt.Sprintf("rl-%d-%d", step, prompt)
	t := trainer.Trajectory{
		ID: fmt.Sprintf("%s-%d", group, n), Phase: "rl", Policy: "policy", Step: step, Group: group, Rollout: n, Mode: "sampled",
		Query: trainer.Query{
			Hash: fmt.Sprintf("%016x", 0x9e3779b97f4a7c15*uint64(prompt+1)), Level: "hard", Org: "Salt Lake City", Dest: "Idaho", Days: 5, People: 2,
			Text:        "Two of us start from Salt Lake City on 4 April 2022 and want five days in two cities of Idaho. A whole home, Mexican and Indian food, and no driving ourselves, please; we have $1,900.",
			Dates:       []string{"2022-04-04", "2022-04-05", "2022-04-06", "2022-04-07", "2022-04-08"},
			Constraints: map[string]string{"cuisine": "Mexican and Indian food", "room type": "whole home", "transportation": "no self-driving"},
		},
		Profile: "strict", Budget: 1900, RewardKind: "SUM", End: "answer",
	}
	say := func(think, tool string, args []trainer.Arg, o *trainer.Observed) int {
		turn := trainer.Turn{Think: think, Tokens: 38 + rng.IntN(60), Observe: o}
		if tool != "" {
			turn.Call = &trainer.Call{Tool: tool, Args: args}
		}
		for i := range turn.Tokens {
			turn.Entropy = append(turn.Entropy, float32(1.9*math.Exp(-float64(i)/7)*rng.Float64()+.25*rng.Float64()))
		}
		if o != nil {
			o.Tokens = 20 + len(o.Rows)*38 + len(o.Text)/4
			t.ToolCalls++
		}
		t.Turns = append(t.Turns, turn)
		return len(t.Turns)
	}
	table := func(columns []string, rows [][]string) *trainer.Observed {
		return &trainer.Observed{Text: fmt.Sprintf("%d results found.", len(rows)), Columns: columns, Rows: rows}
	}
	city := func(c string) []trainer.Arg { return []trainer.Arg{{Name: "city", Value: c}} }
	say("Five days, two cities in Idaho. First see which cities the state has.", "SearchCity", []trainer.Arg{{Name: "state", Value: "Idaho"}}, &trainer.Observed{Text: "Boise, Twin Falls, Idaho Falls, Pocatello, Sun Valley"})
	out := say("Boise has the most flights. Look for one on the first morning.", "SearchFlight", []trainer.Arg{{Name: "departure", Value: "Salt Lake City"}, {Name: "destination", Value: "Boise"}, {Name: "date", Value: "2022-04-04"}}, table(flightColumns, sampleFlights))
	stay1 := say("", "SearchAccommodation", city("Boise"), table(stayColumns, sampleStays["Boise"]))
	eat1 := say("Two cuisines are asked for; both should be here.", "SearchRestaurant", city("Boise"), table(tableColumns, sampleTables["Boise"]))
	see1 := say("", "SearchAttraction", city("Boise"), table(sightColumns, sampleSights["Boise"]))
	if n%3 == 1 {
		say("Now the second city.", "SearchAccommodation", city("Twin Falls"), &trainer.Observed{Text: "Error: the tool SearchAccommodation is not available at the moment.", Injected: "unavailable"})
		t.Injected++
	}
	stay2 := say("A whole home in Twin Falls for one night.", "SearchAccommodation", city("Twin Falls"), table(stayColumns, sampleStays["Twin Falls"]))
	eat2 := say("", "SearchRestaurant", city("Twin Falls"), table(tableColumns, sampleTables["Twin Falls"]))
	see2 := say("", "SearchAttraction", city("Twin Falls"), table(sightColumns, sampleSights["Twin Falls"]))
	taxi := say("No self-driving, so a taxi between the two.", "GoogleDistanceMatrix", []trainer.Arg{{Name: "departure", Value: "Boise"}, {Name: "destination", Value: "Twin Falls"}, {Name: "mode", Value: "taxi"}}, &trainer.Observed{Text: "taxi, from Boise to Twin Falls, duration: 1 hour 58 mins, distance: 206 km, cost: $206"})
	if n%4 == 2 {
		say("Is there a flight back from Twin Falls?", "SearchFlight", []trainer.Arg{{Name: "departure", Value: "Twin Falls"}, {Name: "destination", Value: "Salt Lake City"}, {Name: "date", Value: "2022-04-08"}}, &trainer.Observed{Text: "There is no flight from Twin Falls to Salt Lake City on 2022-04-08. Rethink the search and try again.", Error: "no_hits"})
		t.ToolErrors++
	}
	back := say("Back from Boise is too far; a taxi home costs less.", "GoogleDistanceMatrix", []trainer.Arg{{Name: "departure", Value: "Twin Falls"}, {Name: "destination", Value: "Salt Lake City"}, {Name: "mode", Value: "taxi"}}, &trainer.Observed{Text: "taxi, from Twin Falls to Salt Lake City, duration: 3 hours 12 mins, distance: 352 km, cost: $352"})
	say("Flight 298, taxis 206 and 352, homes 288 and 84, meals about 500: within 1,900.", "", nil, nil)
	t.Answer = "[{\"days\": 1, \"current_city\": \"from Salt Lake City to Boise\", …}]"
	t.Plan = samplePlan(n, out, stay1, eat1, see1, stay2, eat2, see2, taxi, back)
	judgeSample(&t, n)
	for i := range t.Turns {
		t.Generated += t.Turns[i].Tokens
		t.Tokens += t.Turns[i].Tokens
		if o := t.Turns[i].Observe; o != nil {
			t.Tokens += o.Tokens
		}
	}
	t.Tools = map[string]int{"SearchFlight": 1, "SearchAccommodation": 2, "SearchRestaurant": 2}
	return t
}

func samplePlan(n, out, stay1, eat1, see1, stay2, eat2, see2, taxi, back int) []trainer.Day {
	lunch4 := "El Molino, Twin Falls"
	if n%2 == 1 {
		lunch4 = "Casa Lupita, Boise"
	}
	day := func(i int, city string, fields, costs map[string]any) trainer.Day {
		d := trainer.Day{Day: i, City: city, Costs: map[string]float64{}, Found: map[string]int{}}
		set := map[string]*string{"transportation": &d.Transportation, "breakfast": &d.Breakfast, "lunch": &d.Lunch, "dinner": &d.Dinner, "attraction": &d.Attraction, "accommodation": &d.Accommodation}
		for _, p := range set {
			*p = "-"
		}
		for f, v := range fields {
			pair := v.([2]any)
			*set[f] = pair[0].(string)
			d.Found[f] = pair[1].(int)
		}
		for f, c := range costs {
			d.Costs[f] = float64(c.(int))
			d.Cost += float64(c.(int))
		}
		return d
	}
	at := func(s string, turn int) [2]any { return [2]any{s, turn} }
	return []trainer.Day{
		day(1, "from Salt Lake City to Boise", map[string]any{
			"transportation": at("Flight Number: F4410802, from Salt Lake City to Boise, Departure Time: 11:05, Arrival Time: 12:34", out),
			"dinner":         at("Casa Lupita, Boise", eat1), "accommodation": at("Riverside Loft, Boise", stay1),
		}, map[string]any{"transportation": 298, "dinner": 44, "accommodation": 96}),
		day(2, "Boise", map[string]any{
			"breakfast": at("Bread & Basalt, Boise", eat1), "lunch": at("Spice Caravan, Boise", eat1), "dinner": at("Tamarack Grill, Boise", eat1),
			"attraction": at("Table Rock, Boise;Botanical Garden, Boise;", see1), "accommodation": at("Riverside Loft, Boise", stay1),
		}, map[string]any{"breakfast": 28, "lunch": 50, "dinner": 54, "accommodation": 96}),
		day(3, "from Boise to Twin Falls", map[string]any{
			"transportation": at("Taxi, from Boise to Twin Falls, duration: 1 hour 58 mins, distance: 206 km, cost: 206", taxi),
			"breakfast":      at("Sagebrush Diner, Boise", eat1), "lunch": at("Snake River Smoke, Twin Falls", eat2), "dinner": at("Thali House, Twin Falls", eat2),
			"accommodation": at("Canyon Rim Flat, Twin Falls", stay2),
		}, map[string]any{"transportation": 206, "breakfast": 32, "lunch": 58, "dinner": 48, "accommodation": 84}),
		day(4, "Twin Falls", map[string]any{
			"breakfast": at("Rim View Bakery, Twin Falls", eat2), "lunch": at(lunch4, eat2), "dinner": at("Snake River Smoke, Twin Falls", eat2),
			"attraction": at("Shoshone Falls, Twin Falls;", see2), "accommodation": at("Canyon Rim Flat, Twin Falls", stay2),
		}, map[string]any{"breakfast": 24, "lunch": 40, "dinner": 58, "accommodation": 84}),
		day(5, "from Twin Falls to Salt Lake City", map[string]any{
			"transportation": at("Taxi, from Twin Falls to Salt Lake City, duration: 3 hours 12 mins, distance: 352 km, cost: 352", back),
			"attraction":     at("Perrine Bridge, Twin Falls", see2),
		}, map[string]any{"transportation": 352}),
	}
}

// judgeSample gives rollout n its verdicts and its reward: n of them pass
// everything less and less, the last one breaks the format.
func judgeSample(t *trainer.Trajectory, n int) {
	cost := 0.0
	for _, d := range t.Plan {
		cost += d.Cost
	}
	if n == 6 {
		cost += 620
		t.Plan[1].Costs["accommodation"] += 620
		t.Plan[1].Cost += 620
	}
	t.Cost = &cost
	fails := map[string]trainer.Verdict{}
	fail := func(check string, day int, field, value, reason string) {
		fails[check] = trainer.Verdict{Outcome: "fail", Day: day, Field: field, Value: value, Reason: reason}
	}
	if n != 0 {
		fail("is_valid_accommodation", 3, "accommodation", "Canyon Rim Flat", "Day 3: Canyon Rim Flat asks for at least 3 nights and is booked for 2.")
	}
	if n >= 2 {
		fail("is_valid_restaurants", 4, "dinner", "Snake River Smoke", "Day 4: Snake River Smoke was already lunch on day 3.")
	}
	if n%2 == 1 {
		fail("is_valid_information_in_current_city", 4, "lunch", "Casa Lupita, Boise", "Day 4: lunch is in Boise, but the day is spent in Twin Falls.")
	}
	if n == 6 {
		fail("valid_cost", 0, "", "", fmt.Sprintf("The plan costs $%.0f; the budget is $1,900.", cost))
	}
	closed := n == 5
	if closed {
		fail("is_not_absent", 4, "attraction", "-", "Day 4: a full day needs at least one sight.")
	}
	cs, hard, asked := 0, 0, 0
	for _, c := range checkList {
		v, failed := fails[c.Key]
		v.Check, v.Name, v.Family = c.Key, c.Name, c.Family
		switch {
		case failed:
		case c.Key == "valid_room_rule":
			v.Outcome = "n/a"
		case closed && c.Family == "hard":
			v.Outcome = "closed"
		default:
			v.Outcome = "pass"
		}
		if c.Family == "commonsense" && v.Outcome == "pass" {
			cs++
		}
		if c.Family == "hard" && v.Outcome != "n/a" {
			asked++
			if v.Outcome == "pass" {
				hard++
			}
		}
		t.Verdicts = append(t.Verdicts, v)
	}
	flag := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	t.Success = cs == 8 && hard == asked
	t.Scores = map[string]float64{
		"cs_micro": float64(cs) / 8, "cs_macro": flag(cs == 8), "hard_micro": float64(hard) / float64(asked),
		"hard_macro": flag(hard == asked), "success": flag(t.Success), "delivery": 1,
	}
	t.Passes = map[string]bool{"strict": t.Success, "star": t.Success, "official": t.Success || n == 1}
	for _, c := range []string{"cs_micro", "cs_macro", "hard_micro", "hard_macro", "success"} {
		t.Components = append(t.Components, trainer.Component{Name: c, Value: t.Scores[c]})
		t.Reward += t.Scores[c]
	}
	if n == 7 {
		t.FormatError = "turn 12: the answer tag is not closed"
		t.Components = append(t.Components, trainer.Component{Name: "format_error", Value: -t.Reward})
		t.Reward = 0
		t.Success = false
	}
}

// sampleGroup is the eight rollouts of one prompt with their advantages.
func sampleGroup(step int64, prompt int) []trainer.Trajectory {
	group := make([]trainer.Trajectory, 8)
	mean := 0.0
	for n := range group {
		group[n] = sampleTrajectory(step, prompt, n)
		mean += group[n].Reward / 8
	}
	variance := 0.0
	for _, t := range group {
		variance += (t.Reward - mean) * (t.Reward - mean) / 8
	}
	sd := math.Sqrt(variance)
	for n := range group {
		a := trainer.Advantage{Mean: mean, Std: sd, Norm: "group-std", InLoss: sd > 0, Zero: sd == 0}
		if sd > 0 {
			a.Value = (group[n].Reward - mean) / sd
		}
		group[n].Advantage = &a
	}
	return group
}

// templatesTrajectory renders the page of a rollout.
func templatesTrajectory(w io.Writer, v templates.TrajectoryView) error {
	return templates.TrajectoryPage(templates.PageView{Title: v.Title}, v).Render(context.Background(), w)
}
