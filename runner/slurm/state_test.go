package slurm

import (
	"errors"
	"math"
	"strings"
	"testing"

	"alidade/runner"
)

// Texts as Slurm's programs print them.
func TestParse(t *testing.T) {
	jobs := parseQueue("12|RUNNING|None|gpu0\n13|PENDING|Resources|\n14|CANCELLED by 1000|None|gpu1\n3_[2-9%2]|PENDING|JobArrayTaskLimit|\nslurm_load_jobs error\n15|COMPLETING|None|gpu0\n")
	if len(jobs) != 5 || jobs["14"].state != "CANCELLED" || !jobs["14"].ended() || jobs["13"].reason != "Resources" || !jobs["13"].waits() || jobs["12"].node != "gpu0" {
		t.Errorf("queue = %+v", jobs)
	}
	if j := jobs["15"]; j.ended() || j.waits() {
		t.Errorf("COMPLETING is %+v, want neither waiting nor ended", j)
	}
	j, ok := parseShow("JobId=7 JobName=a b UserId=root(0) JobState=TIMEOUT Reason=TimeLimit Dependency=(null) ExitCode=0:0 NodeList=gpu1 BatchHost=gpu1\n")
	if !ok || j.state != "TIMEOUT" || j.reason != "TimeLimit" || j.node != "gpu1" || !j.ended() {
		t.Errorf("show = %+v, %v", j, ok)
	}
	if _, ok := parseShow("slurm_load_jobs error: Invalid job id specified"); ok {
		t.Error("an error was read as a job")
	}
	j, ok = parseAccounts("CANCELLED by 0|None|gpu0\n")
	if !ok || j.state != "CANCELLED" || j.node != "gpu0" {
		t.Errorf("accounts = %+v, %v", j, ok)
	}
	if _, ok := parseAccounts(""); ok {
		t.Error("nothing was read as a job")
	}
}

func TestTimes(t *testing.T) {
	for text, want := range map[string]float64{"": 0, "90": 90, "90:30": 90.5, "1:30:00": 90, "2-12": 3600, "2-12:30": 3630, "1-00:00:30": 1440.5} {
		if got := minutes(text); math.Abs(got-want) > 1e-9 {
			t.Errorf("minutes(%q) = %g, want %g", text, got, want)
		}
	}
}

// Nothing of a run reaches a shell: paths are quoted, values are options of
// their own.
func TestOptionsAndScript(t *testing.T) {
	l := &Launcher{cfg: Config{Exe: "/opt/it's here/alidade", Settings: runner.SlurmSettings{Partition: "gpu", TimeLimit: "1-0", Flags: []string{"--constraint=a;b"}}}}
	script := l.script("/data/$(x)/1")
	if !strings.Contains(script, `'/opt/it'\''s here/alidade'`) || !strings.Contains(script, "'/data/$(x)/1'") {
		t.Errorf("script = %s", script)
	}
	options := l.options(runner.Launch{Dir: "/data/1", Name: "alidade-r1a1", Threads: 3})
	joined := strings.Join(options, "\x00") + "\x00"
	for _, want := range []string{"--partition=gpu", "--time=1-0", "--constraint=a;b", "--cpus-per-task=3", "--no-requeue", "--export=ALIDADE_JOB=1", "--signal=B:USR2@180"} {
		if !strings.Contains(joined, want+"\x00") {
			t.Errorf("options lack %s: %q", want, options)
		}
	}
	if strings.Contains(joined, "gres") {
		t.Errorf("a CPU run asks for GPUs: %q", options)
	}
}

// What Slurm says is kept, and said in words where they are known.
func TestReasons(t *testing.T) {
	for reason, want := range map[string]string{
		"Priority":                             "other jobs come first (Priority)",
		"ReqNodeNotAvail, UnavailableNodes:n1": "its nodes are down, drained or reserved (ReqNodeNotAvail, UnavailableNodes:n1)",
		"PartitionTimeLimit":                   "it will not start: its time limit is above the partition's: set slurm.time_limit (PartitionTimeLimit)",
		"QOSMaxGRESPerUser":                    "a limit of its QOS is reached (QOSMaxGRESPerUser)",
		"AssocGrpGRES":                         "a limit of its account is reached (AssocGrpGRES)",
		"DependencyNeverSatisfied":             "it will not start: what it depends on has failed (DependencyNeverSatisfied)",
		"SomethingNew":                         "SomethingNew",
		"":                                     "it does not say for what",
	} {
		if got := inWords(reason); got != want {
			t.Errorf("inWords(%q) = %q, want %q", reason, got, want)
		}
	}
}

// How large an array may be, and which refusals mean the array and not the
// runs: after a lost answer nothing is submitted again.
func TestArrayLimits(t *testing.T) {
	if n := maxArraySize("Configuration data as of 2026\nMaxArraySize            = 1001\nMaxJobCount = 10000\n"); n != 1001 {
		t.Errorf("MaxArraySize = %d, want 1001", n)
	}
	if n := maxArraySize("MaxJobCount = 10000\n"); n != 0 {
		t.Errorf("without the line: %d, want 0", n)
	}
	for text, want := range map[string]bool{
		"sbatch: error: Batch job submission failed: Invalid job array specification":                                    true,
		"sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size)": true,
		"sbatch: error: Batch job submission failed: Socket timed out on send/recv operation":                            false,
		"sbatch: no answer: ":                           false,
		"sbatch: error: invalid partition specified: x": false,
	} {
		if refusesArrays(errors.New(text)) != want {
			t.Errorf("refusesArrays(%q) = %v", text, !want)
		}
	}
}
