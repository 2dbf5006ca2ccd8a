package web

import (
	"math"
	"strconv"
	"strings"
)

// The texts of the inspector: numbers as look.md writes them. Thin spaces
// stand before % and $, "−" is the minus sign and "–" means missing.

const (
	thin  = "\u202f"
	minus = "−"
)

// digits writes a whole number with thousands separated by commas.
func digits(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = minus, s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// fixed writes x with the given decimals and a true minus sign.
func fixed(x float64, decimals int) string {
	switch {
	case math.IsNaN(x):
		return "NaN"
	case math.IsInf(x, 1):
		return "+Inf"
	case math.IsInf(x, -1):
		return minus + "Inf"
	}
	s := strconv.FormatFloat(x, 'f', decimals, 64)
	if strings.HasPrefix(s, "-") {
		if strings.Trim(s, "-0.") == "" {
			return s[1:] // −0.00 is 0.00
		}
		return minus + s[1:]
	}
	return s
}

// signed is fixed with a plus sign before what is above zero.
func signed(x float64, decimals int) string {
	s := fixed(x, decimals)
	if x > 0 && strings.Trim(s, "0.") != "" && !strings.HasPrefix(s, "+") {
		return "+" + s
	}
	return s
}

// dollars writes an amount of money in whole dollars.
func dollars(x float64) string { return digits(int64(math.Round(x))) + thin + "$" }

// plural writes a count with its noun: "1 rollout", "8 rollouts".
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return digits(int64(n)) + " " + many
}

// ordinal writes 1st, 2nd, 3rd, 4th …
func ordinal(n int) string {
	suffix := "th"
	switch {
	case n%100 >= 11 && n%100 <= 13:
	case n%10 == 1:
		suffix = "st"
	case n%10 == 2:
		suffix = "nd"
	case n%10 == 3:
		suffix = "rd"
	}
	return strconv.Itoa(n) + suffix
}

// listed joins names as a sentence does: "a", "a and b", "a, b and c".
func listed(names []string) string {
	switch len(names) {
	case 0:
		return ""
	case 1:
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// unit writes a length in SVG user units, at most two decimals.
func unit(x float64) string {
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(x, 'f', 2, 64), "0"), ".")
}

// clip cuts s to at most n runes and says whether it did.
func clip(s string, n int) (string, bool) {
	if len(s) <= n {
		return s, false
	}
	count := 0
	for i := range s {
		if count == n {
			return s[:i], true
		}
		count++
	}
	return s, false
}
