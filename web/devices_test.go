package web

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"alidade/store"
)

// gpuDevices are a machine with everything that can be the matter with a GPU.
func gpuDevices() []Device {
	gpu := func(id string, change func(*Device)) Device {
		d := Device{ID: id, Kind: "gpu", Name: "A100-SXM4-80GB", MemoryMiB: 80 << 10, UsedMiB: 400, Util: 0, PowerW: 61, TempC: 31, Free: true}
		change(&d)
		return d
	}
	return append([]Device{
		gpu("gpu0", func(d *Device) {
			d.Free, d.Run, d.Util, d.UsedMiB, d.PowerW, d.TempC = false, 29, .93, 61<<10, 388, 71
			d.Processes = []Process{{PID: 4129, Name: "python3", UsedMiB: 61 << 10}}
		}),
		gpu("gpu1", func(d *Device) {
			d.Free, d.Holder, d.UsedMiB = false, "python3 (process 812)", 12<<10
			d.Processes = []Process{{PID: 812, Name: "python3", UsedMiB: 12 << 10}, {Name: ""}}
		}),
		gpu("gpu2", func(d *Device) {
			d.Free, d.Quarantined, d.ECC, d.Note = false, true, 3, "XID 79: the GPU has fallen off the bus"
		}),
		gpu("gpu3", func(d *Device) { d.Simulated = true }),
		gpu("gpu4", func(d *Device) { d.Free, d.StaleSince, d.Note = false, time.Now().Add(-time.Minute), "no reading" }),
	}, testDevices...)
}

func devicesSite(t testing.TB, s *store.Store) (string, *fakeQueue) {
	t.Helper()
	q := &fakeQueue{store: s}
	load := 0.0
	history := NewDeviceHistory(func() []Device {
		list := gpuDevices()
		load += .03
		list[0].Util, list[0].PowerW = min(1, load), 100+300*min(1, load)
		return list
	})
	for range 60 {
		history.take()
	}
	srv, _ := newTestSite(t, s, func(c *Config) { c.Queue, c.Devices, c.History = q, gpuDevices, history })
	return srv.URL, q
}

func TestDevicesPage(t *testing.T) {
	s := openStore(t)
	fillStudies(t, s, time.Now())
	url, q := devicesSite(t, s)
	status, body, _ := get(t, url+"/devices")
	if status != 200 {
		t.Fatalf("GET /devices = %d", status)
	}
	for _, want := range []string{
		"7 devices, 1 free", "1 device is simulated", "put away", "XID 79", "3 memory errors", "another program", "process 812", "no reading since",
		"busy of gpu0 over the last 4 min: now 100 %", "power of gpu0", "temperature of gpu0", `href="/runs/29"`, "waits for 4 GPUs of 80 GiB: 2 free", "a process that cannot be seen here",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q on the devices page", want)
		}
	}
	act(t, url+"/api/v1/devices/gpu3/quarantine", "")
	act(t, url+"/api/v1/devices/gpu2/unquarantine", "")
	if want := []string{"quarantine gpu3: put away by hand", "use gpu2 again"}; !slices.Equal(q.asked, want) {
		t.Errorf("asked %q, want %q", q.asked, want)
	}
	if status, _ := act(t, url+"/api/v1/devices/gpu9/quarantine", ""); status != 404 {
		t.Errorf("quarantine of a device that is not there = %d, want 404", status)
	}
}

func TestDeviceHistoryForgets(t *testing.T) {
	list := gpuDevices()
	h := NewDeviceHistory(func() []Device { return list })
	for range historyPoints + 20 {
		h.take()
	}
	if n := len(h.of("gpu0").util); n != historyPoints {
		t.Errorf("%d readings kept, want %d", n, historyPoints)
	}
	list = list[1:]
	h.take()
	if n := len(h.of("gpu0").util); n != 0 {
		t.Errorf("%d readings of a device that is gone", n)
	}
}

func TestDevicesPageInBrowser(t *testing.T) {
	ctx := browser(t)
	s := openStore(t)
	fillStudies(t, s, time.Now())
	url, q := devicesSite(t, s)
	err := chromedp.Do(ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(url+"/devices"), chromedp.WaitVisible(chromedp.CSS("body[data-ready]")),
		chromedp.Click(chromedp.CSS(`[aria-label="Put gpu3 away"]`)), chromedp.WaitVisible(chromedp.CSS(".toast button")),
		chromedp.Click(chromedp.CSS(".toast button")), chromedp.Sleep(300*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"quarantine gpu3: put away by hand", "use gpu3 again"}; !slices.Equal(q.asked, want) {
		t.Errorf("asked %q, want %q", q.asked, want)
	}
}

func TestSeedsAndCompletion(t *testing.T) {
	url, q, _ := queuedSite(t)
	for _, tt := range []struct {
		path, body string
		status     int
		added      []uint64
	}{
		{"/api/v1/studies/2/seeds/2", "", 201, []uint64{3, 4}},
		{"/api/v1/studies/2/seeds", "", 201, []uint64{3}},
		{"/api/v1/studies/2/seeds", `{"seeds": [11, 12]}`, 201, []uint64{11, 12}},
		{"/api/v1/studies/2/seeds", `{"n": 65}`, 422, nil},
		{"/api/v1/studies/2/seeds", `{"seed": 1}`, 422, nil},
		{"/api/v1/studies/99/seeds/1", "", 404, nil},
	} {
		q.added = nil
		if status, text := act(t, url+tt.path, tt.body); status != tt.status || !slices.Equal(q.added, tt.added) {
			t.Errorf("POST %s %s = %d, seeds %v; want %d, %v (%s)", tt.path, tt.body, status, q.added, tt.status, tt.added, text)
		}
	}
	act(t, url+"/api/v1/studies/1/complete", "")
	if want := []string{"complete study 1"}; !slices.Equal(q.asked, want) {
		t.Errorf("asked %q, want %q", q.asked, want)
	}
	_, body, _ := get(t, url+"/studies/2")
	for _, want := range []string{"Add 1 seed (4 runs)", "Add 4 seeds (16 runs)"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q on the study's page", want)
		}
	}
	if _, body, _ := get(t, url+"/studies/1"); !strings.Contains(body, "Complete the design (1 run)") {
		t.Error("a study with a failed run does not offer to complete its design")
	}
}

func TestAddSeedsInBrowser(t *testing.T) {
	ctx := browser(t)
	url, q, _ := queuedSite(t)
	err := chromedp.Do(ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(url+"/studies/2"), chromedp.WaitVisible(chromedp.CSS("body[data-ready]")),
		chromedp.Click(chromedp.CSS(`summary[aria-label="More actions"]`)), chromedp.Click(chromedp.CSS(`form[action="/studies/2/seeds/1"] button`)),
		chromedp.WaitVisible(chromedp.CSS(".toast")))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := chromedp.Run(ctx, chromedp.Text(chromedp.CSS(".toast"))); err != nil || !strings.Contains(text, "4 runs queued: each arm with 1 further seed") {
		t.Errorf("toast = %q, %v", text, err)
	}
	if want := []uint64{3}; !slices.Equal(q.added, want) {
		t.Errorf("added seeds %v, want %v", q.added, want)
	}
}
