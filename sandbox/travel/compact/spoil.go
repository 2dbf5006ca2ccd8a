package compact

import "alidade/sandbox"

// spoil is what an injected failure leaves of a result: truncated keeps the
// first rows, stale gives some rows another day's price level, corrupted wipes
// out some rows' keys. The sandbox's judge knows nothing of it. Every row ends
// in its key and its id; lists of cities have neither. salt draws which rows.
func spoil(result []Token, kind string, rows int, salt uint64) []Token {
	if kind != sandbox.Truncated && kind != sandbox.Stale && kind != sandbox.Corrupted {
		return result
	}
	var out []Token
	n := 0
	must := salt % uint64(max(rows, 1)) // one row at least
	for _, t := range result {
		out = append(out, t)
		if in(t, tokCity, CityTokens) { // a list of cities
			if n++; kind == sandbox.Truncated && n == rows {
				return append(out, TokRows)
			}
			continue
		}
		if !IsID(t) {
			continue
		}
		h := sandbox.Mix(salt, uint64(n))
		hit := uint64(n) == must || h%2 == 1
		n++
		key := &out[len(out)-2]
		switch {
		case kind == sandbox.Truncated && n == rows:
			return append(out, TokRows)
		case kind == sandbox.Stale && hit:
			*key = otherLevel(*key, h)
		case kind == sandbox.Corrupted && hit:
			*key = TokNone
		}
	}
	return out
}

// otherLevel moves a price level to another one of its kind; what has no price
// stays.
func otherLevel(t Token, h uint64) Token {
	for _, first := range []Token{tokFareOut, tokFareBack, tokHotel,
		tokHotelMore, tokHotelMore + PriceLevels, tokFareMore, tokFareMore + PriceLevels} {
		if in(t, first, PriceLevels) {
			return first + Token((uint64(t-first)+1+h>>8%(PriceLevels-1))%PriceLevels)
		}
	}
	return t
}
