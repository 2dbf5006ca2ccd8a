package web

import (
	"fmt"
	"math"
	"time"
)

// hourMinutes writes a duration as people plan with it: "40 s", "12 min",
// "1 h 41".
func hourMinutes(d time.Duration) string {
	switch {
	case d < 0:
		return "–"
	case d < 90*time.Second:
		return fmt.Sprintf("%d s", int(math.Round(d.Seconds())))
	case d < 90*time.Minute:
		return fmt.Sprintf("%d min", int(math.Round(d.Minutes())))
	case d < 48*time.Hour:
		m := int(math.Round(d.Minutes()))
		return fmt.Sprintf("%d h %02d", m/60, m%60)
	}
	return fmt.Sprintf("%d days", int(math.Round(d.Hours()/24)))
}

// clockTime writes when something happens, relative to now: "14:02", "02:40
// tomorrow", "Tue 1 Dec 00:40".
func clockTime(t, now time.Time) (clock, day string) {
	t = t.In(now.Location())
	y1, m1, d1 := t.Date()
	y2, m2, d2 := now.Date()
	days := int(math.Round(time.Date(y1, m1, d1, 0, 0, 0, 0, time.UTC).Sub(time.Date(y2, m2, d2, 0, 0, 0, 0, time.UTC)).Hours() / 24))
	switch days {
	case 0:
		return t.Format("15:04"), ""
	case 1:
		return t.Format("15:04"), "tomorrow"
	case -1:
		return t.Format("15:04"), "yesterday"
	}
	return t.Format("15:04"), t.Format("Mon 2 Jan")
}

// ago writes how long since t: "now", "12 min ago", "26 Nov".
func ago(t, now time.Time) string {
	if t.IsZero() {
		return "–"
	}
	d := now.Sub(t)
	switch {
	case d < 45*time.Second:
		return "now"
	case d < 90*time.Minute:
		return fmt.Sprintf("%d min ago", int(math.Round(d.Minutes())))
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h ago", int(math.Round(d.Hours())))
	}
	t = t.In(now.Location())
	if t.Year() != now.Year() {
		return t.Format("2 Jan 2006")
	}
	return t.Format("2 Jan")
}

// bytesText writes a size.
func bytesText(n int64) string {
	f := float64(n)
	for _, u := range []string{"B", "KB", "MB", "GB"} {
		if f < 1000 {
			if u == "B" || f >= 100 {
				return fmt.Sprintf("%.0f %s", f, u)
			}
			return fmt.Sprintf("%.1f %s", f, u)
		}
		f /= 1000
	}
	return fmt.Sprintf("%.1f TB", f)
}

// hoursText writes device hours.
func hoursText(h float64) string {
	switch {
	case h < 0.01:
		return "0.00"
	case h < 10:
		return fixed(h, 2)
	case h < 100:
		return fixed(h, 1)
	}
	return digits(int64(math.Round(h)))
}

// studyNumber is how a study is called: "S-14".
func studyNumber[T ~int64](id T) string { return fmt.Sprintf("S-%d", id) }
