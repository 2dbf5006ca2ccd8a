package web

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"alidade/ablation"
	"alidade/store"
	"alidade/trainer"
)

// hostile are texts that a trainer, a file or a person may bring in.
var hostile = []string{
	`<script>window.hit=1</script>`, `"><img src=x onerror="window.hit=1">`, `'><svg onload=window.hit=1>`,
	`</script><script>window.hit=1</script>`, `</title><script>window.hit=1</script>`, `javascript:window.hit=1`,
	`<a href="javascript:window.hit=1">x</a>`, `{{constructor.constructor('window.hit=1')()}}`, `<iframe srcdoc="<script>parent.hit=1</script>">`,
	`<img src="http://beacon.test/x.png">`, `<link rel=stylesheet href=http://beacon.test/x.css>`, "]]><script>window.hit=1</script>", `<!--><script>window.hit=1</script>-->`,
	`<style>@import 'http://beacon.test'</style>`, "\u202egpj.exe", "\x1b]8;;http://beacon.test\x07link\x1b]8;;\x07", `&lt;script&gt;window.hit=1&lt;/script&gt;`,
	`<math><mtext><script>window.hit=1</script></mtext></math>`, `<details open ontoggle=window.hit=1>`, "<scr\x00ipt>window.hit=1</scr\x00ipt>",
}

// TestHostileRuns puts such texts into every place of these pages that takes
// text from outside, opens the pages in a browser, and looks whether anything
// ran or left the machine (S6, S7).
func TestHostileRuns(t *testing.T) {
	s := openStore(t)
	ctx := context.Background()
	all := strings.Join(hostile, "\n")
	st := rewardsStudy()
	st.Question, st.Notes = strings.Join(hostile, " "), all
	st.Base.Trainer.Kind, st.Base.Trainer.Command = "command", append([]string{"sh"}, hostile...)
	rec, runs := launchStudy(t, s, st)
	w := s.RunWriter()
	started := time.Now().Add(-time.Minute)
	r := runs[0]
	if _, err := w.Move(ctx, r.ID, ablation.EvLaunch, func(r *ablation.Run) { r.Attempt, r.StartedAt, r.Device = 1, started, hostile[1] }); err != nil {
		t.Fatal(err)
	}
	if err := w.StartAttempt(ctx, ablation.Attempt{Run: r.ID, Number: 1, StartedAt: started, Device: hostile[1]}); err != nil {
		t.Fatal(err)
	}
	at := started.UnixMilli()
	values := map[string]float64{"eval/success": .3, "train/success": .2}
	for _, h := range hostile {
		values["x/"+strings.ToValidUTF8(h, "")] = 1
	}
	events := []trainer.Event{
		{V: 1, Kind: trainer.KindHello, T: at, Hello: &trainer.Hello{Trainer: all, TotalSteps: 10, Info: map[string]string{"kernel": hostile[0]}}},
		{V: 1, Kind: trainer.KindPhase, T: at, Phase: &trainer.Phase{Name: hostile[0]}},
		{V: 1, Kind: trainer.KindPhase, T: at, Phase: &trainer.Phase{Name: "rl", Main: true, Total: 10}},
		points(at, 1, values), points(at, 2, values),
		{V: 1, Kind: trainer.KindCheckpoint, T: at, Checkpoint: &trainer.Checkpoint{Step: 1, Path: hostile[1], SHA256: strings.Repeat("<", 64)}},
	}
	for _, h := range hostile {
		events = append(events, trainer.Event{V: 1, Kind: trainer.KindAlert, T: at, Alert: &trainer.Alert{Level: "bad", Code: h, Text: h, Step: 1}})
	}
	if _, err := w.Append(ctx, store.Batch{Run: r.ID, Attempt: 1, Offset: 100, Events: events}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Move(ctx, r.ID, ablation.EvFailed, func(r *ablation.Run) { r.Cause, r.EndedAt = all, time.Now() }); err != nil {
		t.Fatal(err)
	}
	srv, fake := newTestSite(t, s, func(c *Config) {
		c.Hub = NewHub(HubConfig{})
		c.Devices = func() []Device {
			return []Device{{ID: hostile[0], Name: hostile[1], Holder: hostile[2], Note: hostile[3]}}
		}
	})
	fake.log = all
	checkHostilePages(t, srv.URL, []string{"/", "/?runs=finished", "/studies", fmt.Sprintf("/studies/%d?open=all", rec.ID), fmt.Sprintf("/runs/%d?open=all", r.ID), "/studies?show=<script>window.hit=1</script>", "/<script>window.hit=1</script>"})
}

var dataBlock = regexp.MustCompile(`(?s)<script id="[a-z-]+" type="application/json">.*?</script>`)

func checkHostilePages(t *testing.T, base string, paths []string) {
	for _, path := range paths {
		_, body, _ := get(t, base+strings.ReplaceAll(path, "<", "%3C"))
		shown := dataBlock.ReplaceAllString(body, "") // names in data blocks are keys, shown under a tidied label
		if strings.ContainsAny(shown, "\u202e\x1b\x00") {
			t.Errorf("GET %s: a hidden character stands in the page as it came", path)
		}
		for _, bad := range []string{"<script>window", "<img src", "<svg onload", "<iframe", `href="javascript`, "<details open ontoggle"} {
			if strings.Contains(body, bad) {
				t.Errorf("GET %s: %s stands in the page as it came", path, bad)
			}
		}
	}
	ctx := browser(t)
	var mu sync.Mutex
	var said []string
	console := chromedp.Console(ctx)
	go func() {
		for m := range console {
			mu.Lock()
			said = append(said, fmt.Sprint(m))
			mu.Unlock()
		}
	}()
	for _, path := range paths {
		err := chromedp.Do(ctx, chromedp.EmulateViewport(1440, 6000), chromedp.Navigate(base+path), chromedp.WaitVisible(chromedp.CSS("body[data-ready]")), chromedp.Sleep(700*time.Millisecond))
		if err != nil {
			t.Fatalf("open %s: %v", path, err)
		}
		found, err := chromedp.Run(ctx, chromedp.Evaluate[string](`JSON.stringify({
			hit: window.hit ?? null,
			outside: performance.getEntriesByType('resource').map(e => e.name).filter(n => new URL(n).host !== location.host),
			links: [...document.querySelectorAll('a')].map(a => a.href).filter(h => h && !h.startsWith(location.origin)),
		})`))
		if err != nil || found != `{"hit":null,"outside":[],"links":[]}` {
			t.Errorf("%s: %s, %v", path, found, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for _, m := range said {
		if strings.Contains(m, "Content Security Policy") {
			t.Errorf("the policy had to stop something: %s", m)
		}
	}
}
