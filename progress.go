package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"alidade/ablation"
)

// follow shows the runs' progress until all have ended: bars that redraw
// themselves on a terminal, a line for each change of state otherwise.
func follow(ctx context.Context, out io.Writer, api *client, id ablation.StudyID) ([]ablation.Run, error) {
	p := &progress{out: out, start: time.Now(), tty: isTerminal(out), states: map[ablation.RunID]ablation.State{}}
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		runs, err := api.runs(ctx, id)
		if err != nil {
			if ctx.Err() != nil {
				err = context.Canceled
			}
			return nil, err
		}
		p.show(runs)
		if ended(runs) {
			return runs, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Canceled
		case <-tick.C:
		}
	}
}

func ended(runs []ablation.Run) bool {
	for _, r := range runs {
		if !r.State.Terminal() && r.State != ablation.Lost {
			return false
		}
	}
	return true
}

type progress struct {
	out    io.Writer
	start  time.Time
	tty    bool
	lines  int // drawn last time
	states map[ablation.RunID]ablation.State
	said   time.Time
}

func (p *progress) show(runs []ablation.Run) {
	if p.tty {
		p.redraw(runs)
		return
	}
	for _, r := range runs {
		if p.states[r.ID] != r.State {
			p.states[r.ID] = r.State
			fmt.Fprintf(p.out, "%s  run %d  %s  seed %d  %s\n", clock(time.Since(p.start)), r.ID, r.Arm.Label, r.Seed, r.State)
		}
	}
	if time.Since(p.said) >= 15*time.Second {
		p.said = time.Now()
		fmt.Fprintf(p.out, "%s  %s\n", clock(time.Since(p.start)), p.summary(runs))
	}
}

const barWidth = 28

func (p *progress) redraw(runs []ablation.Run) {
	var b strings.Builder
	if p.lines > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", p.lines)
	}
	const most = 24 // runs shown; the rest is in the summary
	for i, r := range runs {
		if i == most {
			break
		}
		share := fraction(r)
		full := int(share * barWidth)
		fmt.Fprintf(&b, "\x1b[2K  %4d  %-22.22s seed %-3d %s%s %-9s %s\n", r.ID, r.Arm.Label, r.Seed,
			strings.Repeat("━", full), strings.Repeat("·", barWidth-full), r.State, step(r))
	}
	fmt.Fprintf(&b, "\x1b[2K  %s\n", p.summary(runs))
	p.lines = min(len(runs), most) + 1
	io.WriteString(p.out, b.String())
}

// summary is one line on the whole study, with the time left once known.
func (p *progress) summary(runs []ablation.Run) string {
	done, total := 0.0, float64(len(runs))
	finished := 0
	for _, r := range runs {
		done += fraction(r)
		if r.State.Terminal() {
			finished++
		}
	}
	s := fmt.Sprintf("%d of %d runs ended, %.0f %% of the steps, %s", finished, len(runs), 100*done/total, clock(time.Since(p.start)))
	if share := done / total; share > 0.03 && share < 1 {
		left := time.Duration(float64(time.Since(p.start)) * (1 - share) / share)
		s += ", about " + clock(left) + " left"
	}
	return s
}

// fraction is how much of a run is done, by its steps.
func fraction(r ablation.Run) float64 {
	if r.State.Terminal() {
		return 1
	}
	if r.TotalSteps == 0 {
		return 0
	}
	return float64(r.Step) / float64(r.TotalSteps)
}

func step(r ablation.Run) string {
	switch {
	case r.State == ablation.Queued:
		return ""
	case r.Phase != "" && r.TotalSteps > 0:
		return fmt.Sprintf("%s, step %d of %d", r.Phase, r.Step, r.TotalSteps)
	}
	return r.Phase
}

func clock(d time.Duration) string {
	s := int(d.Round(time.Second).Seconds())
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s%3600/60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
