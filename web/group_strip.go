package web

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"alidade/ablation"
	"alidade/store"
	"alidade/templates"
	"alidade/trainer"
)

// groupStripOf draws the stored groups of a step, rewards as dots, and finds
// the groups before and after the current one.
func groupStripOf(run ablation.RunID, current *trainer.Trajectory, heads []store.TrajectoryHead) (strip *templates.GroupStrip, prev, next *templates.InspectLink) {
	names, rewards := groupRewards(heads)
	at := slices.Index(names, current.Group)
	if at < 0 || len(names) < 2 {
		return nil, nil, nil
	}
	if at > 0 {
		prev = &templates.InspectLink{Text: "‹ " + shortGroup(names[at-1]), Href: groupPath(run, names[at-1]), Key: "["}
	}
	if at+1 < len(names) {
		next = &templates.InspectLink{Text: shortGroup(names[at+1]) + " ›", Href: groupPath(run, names[at+1]), Key: "]"}
	}
	strip = &templates.GroupStrip{
		Title: fmt.Sprintf("%s: %s stored", capital(stepWord(current.Phase, current.Step)), plural(len(names), "group", "groups")),
	}
	low, high := 0.0, rewardRange(current.RewardKind)
	for _, rs := range rewards {
		for _, r := range rs {
			low, high = min(low, r), max(high, r)
		}
	}
	strip.Note = fmt.Sprintf("reward, %s to %s; one dot a rollout, larger where several coincide; hollow and “=” where a group has no spread", fixed(low, 0), fixed(high, 0))
	strip.Wide = drawGroups(run, names, rewards, at, 1376, low, high)
	strip.Narrow = drawGroups(run, names, rewards, at, 358, low, high)
	return strip, prev, next
}

// groupRewards gathers rewards by group, groups in the order of their prompt.
func groupRewards(heads []store.TrajectoryHead) (names []string, rewards map[string][]float64) {
	rewards = map[string][]float64{}
	for _, h := range heads {
		if h.Group == "" {
			continue
		}
		if _, seen := rewards[h.Group]; !seen {
			names = append(names, h.Group)
		}
		rewards[h.Group] = append(rewards[h.Group], h.Reward)
	}
	slices.SortFunc(names, func(a, b string) int {
		na, errA := strconv.Atoi(shortGroup(a))
		nb, errB := strconv.Atoi(shortGroup(b))
		if errA == nil && errB == nil && na != nb {
			return na - nb
		}
		return cmp.Compare(a, b)
	})
	return names, rewards
}

func drawGroups(run ablation.RunID, names []string, rewards map[string][]float64, at int, width, low, high float64) templates.GroupStripDrawing {
	const top, base = 6.0, 56.0
	room := int(width / 24)
	from := 0
	if len(names) > room { // a window around the current group
		from = min(max(at-room/2, 0), len(names)-room)
		names = names[from : from+room]
	}
	d := templates.GroupStripDrawing{ViewBox: fmt.Sprintf("0 0 %s 80", unit(width))}
	y := func(r float64) float64 { return base - (r-low)/max(high-low, 1e-9)*(base-top) }
	for _, share := range []float64{0, .5, 1} {
		d.Grid += fmt.Sprintf("M0 %sH%s", unit(y(low+share*(high-low))), unit(width))
	}
	pitch := min(width/float64(len(names)), 56)
	for i, name := range names {
		x := (float64(i) + .5) * pitch
		item := templates.GroupStripItem{
			Href: groupPath(run, name), Label: shortGroup(name), X: unit(x), HitX: unit(x - pitch/2), HitW: unit(pitch),
			Current: from+i == at,
		}
		counts, lo, hi := map[float64]int{}, rewards[name][0], rewards[name][0]
		for _, r := range rewards[name] {
			counts[r]++
			lo, hi = min(lo, r), max(hi, r)
		}
		item.Hollow = lo == hi && len(rewards[name]) > 1
		if item.Hollow {
			item.Label += " ="
		}
		item.Title = fmt.Sprintf("prompt %s: %s, reward %s to %s", shortGroup(name), plural(len(rewards[name]), "rollout", "rollouts"), fixed(lo, 3), fixed(hi, 3))
		item.Stem = fmt.Sprintf("M%s %sV%s", unit(x), unit(y(lo)), unit(y(hi)))
		for _, r := range sortedRewards(counts) {
			item.Dots = append(item.Dots, templates.Dot{X: unit(x), Y: unit(y(r)), R: unit(1.8 + min(float64(counts[r]-1)*.35, 1.6))})
		}
		d.Groups = append(d.Groups, item)
	}
	return d
}

func sortedRewards(counts map[float64]int) []float64 {
	rs := make([]float64, 0, len(counts))
	for r := range counts {
		rs = append(rs, r)
	}
	slices.Sort(rs)
	return rs
}
