package web

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"alidade/ablation"
)

// browser starts a headless browser that can reach this machine alone. Tests
// without one are skipped, except in CI.
func browser(t *testing.T) context.Context {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium-headless-shell", "chromium", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("no browser on PATH: install chromium-headless-shell")
		}
		t.Skip("no browser on PATH")
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"),
		chromedp.WindowSize(1440, 900))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 4*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// setTheme keeps a theme as the pages do: in the cookie that the server reads.
func setTheme(theme string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void]("document.cookie = 'theme=" + theme + ";path=/'")
}

// TestScreenshots takes pictures of every page in both themes and widths into
// the folder that ALIDADE_SHOTS names.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("ALIDADE_SHOTS")
	if dir == "" {
		t.Skip("ALIDADE_SHOTS is not set")
	}
	ctx := browser(t)
	base, pages := os.Getenv("ALIDADE_SITE"), map[string]string{} // of a running server, with ALIDADE_PAGES "name=path name=path"
	for _, p := range strings.Fields(os.Getenv("ALIDADE_PAGES")) {
		name, path, _ := strings.Cut(p, "=")
		pages[name] = path
	}
	if base == "" {
		if base, pages = filledSite(t); os.Getenv("ALIDADE_QUEUE") != "" {
			base, pages = queueSite(t)
		}
	}
	only := os.Getenv("ALIDADE_SHOT")
	console := chromedp.Console(ctx)
	go func() {
		for m := range console {
			t.Logf("console: %v", m)
		}
	}()
	for name, path := range pages {
		if only != "" && !strings.Contains(","+only+",", ","+name+",") {
			continue
		}
		for _, width := range []int64{1440, 390} {
			for _, theme := range []string{"light", "dark"} {
				if os.Getenv("ALIDADE_FEW") != "" && (width == 390) != (theme == "dark") {
					continue
				}
				err := chromedp.Do(ctx,
					chromedp.EmulateViewport(width, 900),
					chromedp.Navigate(base+"/healthz"),
					setTheme(theme),
					chromedp.Navigate(base+path),
					chromedp.WaitVisible(chromedp.CSS("body[data-ready]")),
					chromedp.Sleep(900*time.Millisecond))
				if err != nil {
					t.Fatalf("open %s: %v", path, err)
				}
				png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
				if err != nil {
					t.Fatalf("picture of %s: %v", path, err)
				}
				file := filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", name, width, theme))
				if err := os.WriteFile(file, png, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// filledSite serves the store of the page tests, and names its pages.
func filledSite(t *testing.T) (base string, pages map[string]string) {
	s := openStore(t)
	going, crossed := fillStudies(t, s, time.Now())
	if os.Getenv("ALIDADE_BIG") != "" { // 496 runs of 8 arms, and 40 arms
		st := crossedStudy()
		st.Seeds = nil
		for seed := range uint64(62) {
			st.Seeds = append(st.Seeds, seed+1)
		}
		_, runs := launchStudy(t, s, st)
		for _, r := range runs {
			drive(t, s, r, curve{steps: 100, started: time.Now().Add(-time.Hour), end: ablation.EvStopped})
		}
		st = rewardsStudy(1, 2)
		st.Factors = append(st.Factors, ablation.Factor{Key: "environment.tool_failure_rate", Levels: []any{0.0, .01, .02, .05, .1}}, ablation.Factor{Key: "algorithm.group_size", Name: "group size", Levels: []any{int64(8), int64(16)}})
		_, runs = launchStudy(t, s, st)
		for _, r := range runs {
			drive(t, s, r, curve{steps: 100, started: time.Now().Add(-time.Hour), end: ablation.EvStopped})
		}
	}
	hub := NewHub(HubConfig{})
	go hub.Run(t.Context())
	srv, _ := newTestSite(t, s, func(c *Config) { c.Hub = hub })
	return srv.URL, map[string]string{
		"home": "/", "studies": "/studies", "study": fmt.Sprintf("/studies/%d", going.ID), "study-crossed": fmt.Sprintf("/studies/%d", crossed.ID),
		"run": "/runs/27", "run-failed": "/runs/14", "missing": "/studies/99", "big": "/studies/3", "big-runs": "/studies/3?show=runs&runs=arm:sum", "forty": "/studies/4", "study-all": fmt.Sprintf("/studies/%d?open=all", going.ID), "study-runs": fmt.Sprintf("/studies/%d?show=runs&x=elapsed", going.ID),
	}
}
