package server_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"alidade/store"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// TestScreenshots writes pictures of every page, in both themes and widths,
// from a data folder that holds a finished study (ALIDADE_DATA, or one made
// here). It runs only when ALIDADE_SCREENSHOTS names the folder to write to.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("ALIDADE_SCREENSHOTS")
	if dir == "" {
		t.Skip("ALIDADE_SCREENSHOTS names no folder")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	data := os.Getenv("ALIDADE_DATA")
	p := (*process)(nil)
	if data == "" {
		data = t.TempDir()
		p = serve(t, data)
		p.wait(t, p.launch(t, tiny("screens", 20, rewardFactor, "[1, 2]")), 5*time.Minute)
	} else {
		p = serve(t, data)
	}
	pages := pagesOf(t, data)
	ctx := browser(t)
	if err := chromedp.Do(ctx, chromedp.Navigate(p.here.URL+"/?token="+p.token), chromedp.WaitReady(chromedp.CSS("main"))); err != nil {
		t.Fatal(err)
	}
	only := os.Getenv("ALIDADE_PAGES")
	for _, name := range order(pages) {
		if only != "" && !strings.Contains(","+only+",", ","+name+",") {
			continue
		}
		for _, width := range []int64{1440, 390} {
			for _, theme := range []string{"light", "dark"} {
				file := filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", name, width, theme))
				if err := shoot(ctx, p.here.URL+pages[name], width, theme, file); err != nil {
					t.Fatalf("%s: %v", file, err)
				}
			}
		}
	}
}

func order(m map[string]string) []string {
	var out []string
	for _, n := range []string{"home", "studies", "new-study", "study", "run", "trajectories", "trajectory", "group", "report", "reports", "datasets", "devices", "runs", "settings"} {
		if m[n] != "" {
			out = append(out, n)
		}
	}
	return out
}

// pagesOf picks the newest study and one telling trajectory of it.
func pagesOf(t *testing.T, data string) map[string]string {
	t.Helper()
	s := openStore(t, data)
	defer s.Close()
	studies, err := s.Studies(t.Context())
	if err != nil || len(studies) == 0 {
		t.Fatalf("no study in %s: %v", data, err)
	}
	id := studies[0].ID
	runs, err := s.Runs(t.Context(), store.RunFilter{Study: id})
	if err != nil || len(runs) == 0 {
		t.Fatalf("no run: %v", err)
	}
	pages := map[string]string{
		"home": "/", "studies": "/studies", "new-study": "/studies/new?template=star-table-1-quick", "study": fmt.Sprintf("/studies/%d", id), "run": fmt.Sprintf("/runs/%d", runs[0].ID),
		"trajectories": fmt.Sprintf("/trajectories?study=%d", id), "report": fmt.Sprintf("/studies/%d/report", id), "reports": "/reports",
		"datasets": "/datasets", "devices": "/devices", "runs": "/runs", "settings": "/settings",
	}
	no := false
	heads, _, err := s.Trajectories(t.Context(), store.TrajectoryFilter{Study: id, Phase: "rl", Success: &no, Sort: "-step", Limit: 200})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range heads {
		if len(h.Failed) > 0 && len(h.Failed) < 5 && h.ToolCalls > 3 && h.Advantage != nil && *h.Advantage != 0 {
			pages["trajectory"] = fmt.Sprintf("/runs/%d/trajectories/%s", h.Run, h.ID)
			pages["group"] = fmt.Sprintf("/runs/%d/groups/%s", h.Run, h.Group)
			break
		}
	}
	return pages
}

func shoot(ctx context.Context, url string, width int64, theme, file string) error {
	scheme := func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
		return chromedp.Void{}, err
	}
	err := chromedp.Do(ctx,
		chromedp.EmulateViewport(width, 900),
		scheme,
		chromedp.Navigate(url),
		chromedp.WaitReady(chromedp.CSS("main")),
		chromedp.Sleep(1500*time.Millisecond), // charts draw after their data has come
	)
	if err != nil {
		return err
	}
	shot, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		return err
	}
	small, err := shrink(shot, width)
	if err != nil {
		return err
	}
	return os.WriteFile(file, small, 0o644)
}

// shrink cuts a very long page and keeps the picture's 256 commonest colours:
// a page has few, and the repository keeps the pictures.
func shrink(src []byte, width int64) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(src))
	if err != nil {
		return nil, err
	}
	b := full.Bounds()
	most := 2200
	if width < 600 {
		most = 2600
	}
	b.Max.Y = min(b.Max.Y, b.Min.Y+most)
	count := map[color.RGBA]int{}
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			count[color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(count), func(p, q color.RGBA) int {
		return cmp.Or(count[q]-count[p], int(p.R)-int(q.R), int(p.G)-int(q.G), int(p.B)-int(q.B))
	})
	var palette color.Palette
	for _, c := range colours[:min(len(colours), 256)] {
		palette = append(palette, c)
	}
	out := image.NewPaletted(b, palette)
	nearest := map[color.RGBA]uint8{}
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			c := color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)
			i, ok := nearest[c]
			if !ok {
				i = uint8(palette.Index(c))
				nearest[c] = i
			}
			out.SetColorIndex(x, y, i)
		}
	}
	var buf bytes.Buffer
	enc := png.Encoder{CompressionLevel: png.BestCompression}
	err = enc.Encode(&buf, out)
	return buf.Bytes(), err
}
