package travel

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"alidade/sandbox"
	"alidade/trainer"
)

// timeoutMS is how long a tool that times out lets the policy wait.
const timeoutMS = 30_000

// inject draws the call's failure and applies it to what the tool said. A
// failure that finds nothing to spoil, such as truncated rows of a search
// without hits, does not happen.
func (e *Episode) inject(call *trainer.Call, obs *trainer.Observed, run func() Result) {
	kind, salt := e.c.Failures.Draw(call.Tool, e.c.ID, e.calls)
	switch kind {
	case sandbox.Unavailable:
		obs.Text, obs.Injected = "Error: Current tool "+call.Tool+" is not available.", kind
		return
	case sandbox.Timeout:
		obs.Text, obs.Injected, obs.LatencyMS = "Error: Current tool "+call.Tool+" timed out.", kind, timeoutMS
		return
	}
	r := run()
	switch kind {
	case sandbox.Latency:
		obs.Injected, obs.LatencyMS = kind, e.c.Failures.Delay(salt)
	case sandbox.Truncated, sandbox.Stale, sandbox.Corrupted:
		if rows, ok := spoil(kind, salt, call.Tool, r.Rows); ok {
			r.Rows, r.Text = rows, render(call.Tool, asked(call), rows, len(r.Rows))
			obs.Injected = kind
		}
	}
	obs.Text, obs.Columns, obs.Rows, obs.Error = r.Text, r.Columns, r.Rows, r.Err
}

// asked says what a search was for, as the head of its text does.
func asked(c *trainer.Call) string {
	if c.Tool == ToolFlight {
		return "from " + argOf(c, "departure") + " to " + argOf(c, "destination") + " on " + argOf(c, "date")
	}
	return "in " + argOf(c, toolParams(c.Tool)[0])
}

// spoil returns other rows in place of a tool's rows, which it leaves alone.
// ok is false when there is nothing to spoil.
func spoil(kind string, salt uint64, tool string, rows [][]string) (spoilt [][]string, ok bool) {
	n := len(rows)
	if n == 0 || kind == sandbox.Truncated && n == 1 {
		return rows, false
	}
	if kind == sandbox.Truncated { // the head still tells how many there are
		return rows[:1+salt%uint64(n/2)], true
	}
	must := int(salt % uint64(n)) // one row at least
	changed := false
	for i, row := range rows {
		h := sandbox.Mix(salt, uint64(i))
		switch {
		case i != must && h%2 == 0:
			spoilt = append(spoilt, row)
		case kind == sandbox.Stale:
			row, keep := stale(h>>8, tool, row)
			if keep || n == 1 {
				spoilt = append(spoilt, row)
			}
			changed = changed || !keep || !slices.Equal(row, rows[i])
		default:
			spoilt = append(spoilt, corrupt(h>>8, row))
			changed = true
		}
	}
	return spoilt, changed && len(spoilt) > 0
}

// priceColumn is the column of a tool's price, -1 for none.
func priceColumn(tool string) int {
	switch tool {
	case ToolFlight, ToolAccommodation, ToolRestaurant:
		return 1
	case ToolDistance:
		return 5
	}
	return -1
}

// stale makes a row one of another day: its price differs by 10 to 40 %.
// Rows without a price are not there yet.
func stale(h uint64, tool string, row []string) (old []string, keep bool) {
	c := priceColumn(tool)
	if c < 0 {
		return row, false
	}
	price, err := strconv.ParseFloat(row[c], 64)
	if err != nil {
		return row, true
	}
	factor := 1.1 + 0.3*float64(h%1000)/1000
	if h>>32%2 == 0 {
		factor = 2 - factor
	}
	now := math.Round(price * factor)
	if now == price {
		now++
	}
	old = slices.Clone(row)
	old[c] = strconv.FormatFloat(now, 'f', -1, 64)
	if strings.Contains(row[c], ".") {
		old[c] = decimal(now)
	}
	return old, true
}

// corrupt damages one cell of a row: emptied, NaN, cut short or shifted.
func corrupt(h uint64, row []string) []string {
	row = slices.Clone(row)
	c := int(h>>16) % len(row)
	cell := []rune(row[c])
	switch half := len(cell) / 2; h % 4 {
	case 0:
		row[c] = ""
	case 1:
		row[c] = "NaN"
	case 2:
		row[c] = string(cell[:half])
	default:
		row[c] = string(cell[half:]) + "\ufffd" + string(cell[:half])
	}
	return row
}
