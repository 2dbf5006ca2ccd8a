package web

import (
	"net/http"
	"syscall"
	"testing"
	"time"
)

// BenchmarkBigPages is what a page costs the server with 10,000 queued runs.
func BenchmarkBigPages(b *testing.B) {
	s := openStore(b)
	st := rewardsStudy()
	st.Seeds = nil
	for seed := range uint64(2500) {
		st.Seeds = append(st.Seeds, seed+1)
	}
	launchStudy(b, s, st)
	srv, _ := newTestSite(b, s, func(c *Config) { c.Queue = &fakeQueue{store: s} })
	for _, path := range []string{"/runs", "/studies/1", "/", "/studies"} {
		b.Run(path, func(b *testing.B) {
			used := cpuTime(b)
			for b.Loop() {
				if status, _, _ := get(b, srv.URL+path); status != http.StatusOK {
					b.Fatalf("GET %s = %d", path, status)
				}
			}
			b.ReportMetric(float64((cpuTime(b)-used).Microseconds())/1000/float64(b.N), "cpu-ms/page")
		})
	}
}

// cpuTime is what this process has used: on a busy machine it says more than
// the clock.
func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
