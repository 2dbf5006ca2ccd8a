package runner

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"alidade/ablation"
)

var (
	slurmWord = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.,:/@+-]*$`)
	slurmTime = regexp.MustCompile(`^([0-9]+-)?[0-9]+(:[0-9]+){0,2}$`)
	slurmFlag = regexp.MustCompile(`^--[a-z][a-z-]*(=\S+)?$`)
)

// ownFlags are options of sbatch that the launcher sets itself.
var ownFlags = []string{"--array", "--begin", "--chdir", "--dependency", "--error", "--export", "--hold", "--input", "--job-name",
	"--no-requeue", "--open-mode", "--output", "--parsable", "--requeue", "--signal", "--test-only", "--wait", "--wrap"}

// Validate returns *ablation.Invalid, which names every field that is wrong.
func (s Settings) Validate() error {
	var bad []ablation.FieldError
	add := func(field, value, allowed string) {
		bad = append(bad, ablation.FieldError{Field: field, Value: value, Problem: "wrong value", Allowed: allowed, File: SettingsFile})
	}
	if s.PricePerGPUHour < 0 || s.PricePerGPUHour > 1e6 {
		add("price_per_gpu_hour", fmt.Sprint(s.PricePerGPUHour), "a number from 0 to 1000000")
	}
	s.Webhook.validate(add)
	s.Slurm.validate(add)
	if len(bad) > 0 {
		return &ablation.Invalid{Fields: bad}
	}
	return nil
}

func (w WebhookSettings) validate(add func(field, value, allowed string)) {
	if w.URL == "" {
		return
	}
	u, err := url.Parse(w.URL)
	switch {
	case err != nil || u.Hostname() == "" || u.User != nil:
		add("webhook.url", "(not shown)", "an address such as https://hooks.example.org/…, without a user name")
	case u.Scheme != "https" && (u.Scheme != "http" || !w.AllowPrivate):
		add("webhook.url", u.Scheme+"://"+u.Host+"/…", "https; http only with allow_private")
	case len(w.AllowHosts) > 0 && !slices.Contains(w.AllowHosts, strings.ToLower(u.Hostname())):
		add("webhook.url", u.Hostname(), "one of allow_hosts: "+strings.Join(w.AllowHosts, ", "))
	}
	for _, level := range w.Levels {
		if !slices.Contains([]string{"info", "warn", "bad"}, level) {
			add("webhook.levels", level, "info, warn, bad")
		}
	}
}

func (s SlurmSettings) validate(add func(field, value, allowed string)) {
	for _, f := range []struct{ name, value string }{
		{"partition", s.Partition}, {"account", s.Account}, {"qos", s.QOS}, {"gpu_type", s.GPUType},
	} {
		if f.value != "" && !slurmWord.MatchString(f.value) {
			add("slurm."+f.name, f.value, "a name of letters, digits and _.,:/@+-")
		}
	}
	if s.TimeLimit != "" && !slurmTime.MatchString(s.TimeLimit) {
		add("slurm.time_limit", s.TimeLimit, "minutes, or [days-]hours:minutes:seconds")
	}
	if !slices.Contains([]string{"", "gres", "gpus-per-node", "none"}, s.GPUs) {
		add("slurm.gpus", s.GPUs, "gres, gpus-per-node, none")
	}
	for _, f := range []struct {
		name  string
		value float64
		most  float64
	}{
		{"cpus_per_gpu", float64(s.CPUsPerGPU), 1024}, {"mem_per_gpu_gib", s.MemPerGPUGiB, 65536}, {"warn_seconds", float64(s.WarnSeconds), 86400},
		{"most_jobs", float64(s.MostJobs), 10000}, {"array", float64(s.Array), 10000}, {"poll_seconds", s.PollSeconds, 3600},
	} {
		if !(f.value >= 0 && f.value <= f.most) {
			add("slurm."+f.name, fmt.Sprint(f.value), fmt.Sprintf("a number from 0 to %g", f.most))
		}
	}
	for _, flag := range s.Flags {
		name, _, _ := strings.Cut(flag, "=")
		switch {
		case !slurmFlag.MatchString(flag):
			add("slurm.flags", flag, "--name or --name=value, one a string")
		case slices.Contains(ownFlags, name):
			add("slurm.flags", flag, "an option that Alidade does not set itself")
		}
	}
}
