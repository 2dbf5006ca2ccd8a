package trainer

// A Check names one constraint: its evaluator key, what people call it, and
// its family.
type Check struct {
	Key    string // "is_valid_restaurants"
	Name   string // "Diverse restaurants"
	Family string // commonsense, hard
}

// checks are the travel benchmark's constraints in the evaluator's order. The
// names are the same on pages, in reports and in verdicts.
var checks = []Check{
	{"is_reasonable_visiting_city", "Reasonable city route", "commonsense"},
	{"is_valid_restaurants", "Diverse restaurants", "commonsense"},
	{"is_valid_attractions", "Diverse attractions", "commonsense"},
	{"is_valid_accommodation", "Minimum nights", "commonsense"},
	{"is_valid_transportation", "Consistent transport", "commonsense"},
	{"is_valid_information_in_current_city", "Within the current city", "commonsense"},
	{"is_valid_information_in_sandbox", "Within the sandbox", "commonsense"},
	{"is_not_absent", "Complete information", "commonsense"},
	{"valid_cost", "Budget", "hard"},
	{"valid_room_rule", "Room rule", "hard"},
	{"valid_room_type", "Room type", "hard"},
	{"valid_cuisine", "Cuisine", "hard"},
	{"valid_transportation", "Transport asked for", "hard"},
}

// Checks returns the travel benchmark's constraints in the evaluator's order.
func Checks() []Check { return append([]Check(nil), checks...) }

// CheckName is a constraint's name, or "" for a key that is none of Checks.
func CheckName(key string) string {
	for _, c := range checks {
		if c.Key == key {
			return c.Name
		}
	}
	return ""
}
