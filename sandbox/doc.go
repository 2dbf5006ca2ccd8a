// Package sandbox holds what every environment of Alidade shares: seeded
// failure injection and the budgets of an episode. The environments
// themselves are sub-packages; start with [alidade/sandbox/travel].
package sandbox
