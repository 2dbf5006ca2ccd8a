package runner

import (
	"strings"
	"testing"
	"time"

	"alidade/ablation"
	"alidade/runner/shim"
	"alidade/trainer"
)

// One line as each known failure writes it, with what must follow.
func TestSignatures(t *testing.T) {
	tests := []struct {
		log   string
		code  string
		class class
	}{
		{"Could not override 'actor_rollout_ref.actor.lrr'.", "config", never},
		{"omegaconf.errors.MissingMandatoryValue: Missing mandatory value: data.train_files", "config", never},
		{"AssertionError: real_train_batch_size (12) must be divisible by minimal possible batch size (8)", "batch-sizes", never},
		{"ValueError: Some specified arguments are not used by the HfArgumentParser: ['--gamma']", "config", never},
		{"AssertionError: Train dataloader is empty!", "data", fix},
		{"ValueError: Generated too many. Please check your data.", "data", fix},
		{"NotImplementedError: Reward function is not implemented for data_source='travel'", "reward-function", never},
		{"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "cuda-oom", change},
		{"RuntimeError: CUDA Error: out of memory at cumem_allocator.cpp:62", "cuda-oom", change},
		{"ValueError: No available memory for the cache blocks.", "kv-cache", change},
		{"[rank1]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9)", "nccl", again},
		{"torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp", "nccl", again},
		{"ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.", "worker-died", again},
		{"ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.", "ray-oom", change},
		{"A worker died or was killed while executing a task by an unexpected system error.", "worker-died", again},
		{"ValueError: Total available GPUs 4 is less than total desired GPUs 8", "devices", change},
		{"vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.", "engine-died", again},
		{"Rollout failed permanently after 3 attempts", "rollout", fix},
		{"ConnectionError: The vLLM server can't be reached at http://x:8000 after 240", "server-gone", again},
		{"torch.distributed.elastic: failed (exitcode: -9) exitcode  : -9 (pid: 12)", "host-oom", change},
		{"wandb.errors.UsageError: api_key not configured (no-tty)", "logger", never},
		{"OSError: [Errno 28] No space left on device", "disk-full", fix},
		{"NVRM: Xid (PCI:0000:3b:00): 79", "driver", again},
		{"Error executing job with overrides: ['a=b']\nall is well", "", never}, // a wrapper that says nothing
	}
	for _, tt := range tests {
		sig, line := firstSignature([]byte("loading\n"+tt.log+"\nmore\n"), kindCommand)
		if tt.code == "" {
			if sig != nil {
				t.Errorf("%q is taken for %s", tt.log, sig.code)
			}
			continue
		}
		if sig == nil || sig.code != tt.code || sig.class != tt.class {
			t.Errorf("%q: %+v, want %s of class %d", tt.log, sig, tt.code, tt.class)
			continue
		}
		if !strings.Contains(tt.log, line) || sig.help == "" {
			t.Errorf("%s: line %q, help %q", tt.code, line, sig.help)
		}
	}
}

func TestDecide(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	ended := func(code string, ago ...time.Duration) []ablation.Attempt {
		var out []ablation.Attempt
		for i, d := range ago {
			out = append(out, ablation.Attempt{Number: i + 1, Code: code, EndedAt: now.Add(-d)})
		}
		return out
	}
	tests := []struct {
		name  string
		code  string
		all   []ablation.Attempt
		saved bool
		again bool
		wait  time.Duration
		words string
	}{
		{name: "configuration", code: "config", all: ended("config", 0), saved: true, words: "the same would happen"},
		{name: "out of memory", code: "cuda-oom", all: ended("cuda-oom", 0), saved: true, words: "needs a change"},
		{name: "the kernel's killer", code: "oom-killer", all: ended("oom-killer", 0), saved: true, words: "needs a change"},
		{name: "bad data", code: "data", all: ended("data", 0), saved: true, words: "needs a repair"},
		{name: "own exception", code: "exception", all: ended("exception", 0), saved: true, words: "the same would happen"},
		{name: "killed by a person", code: "signal", all: ended("signal", 0), saved: true, words: "the same would happen"},
		{name: "lost worker", code: "worker-died", all: ended("worker-died", 0), saved: true, again: true, wait: 10 * time.Second, words: "1 of 2"},
		{name: "lost worker, no checkpoint", code: "worker-died", all: ended("worker-died", 0), words: "no new checkpoint"},
		{name: "second time", code: "worker-died", all: ended("worker-died", time.Hour, 0), saved: true, again: true, wait: 20 * time.Second, words: "2 of 2"},
		{name: "third time", code: "worker-died", all: ended("worker-died", 2*time.Hour, time.Hour, 0), saved: true, words: "3 attempts within a day"},
		{name: "third time, two days apart", code: "worker-died", all: ended("worker-died", 50*time.Hour, 48*time.Hour, 0), saved: true, again: true, wait: 10 * time.Second, words: "1 of 2"},
		{name: "NCCL twice", code: "nccl", all: ended("nccl", time.Hour, 0), saved: true, words: "2 attempts"},
		{name: "preempted without a checkpoint", code: "preempted", all: ended("preempted", 0), again: true, words: "tried again"},
		{name: "time limit without progress", code: "time-limit", all: ended("time-limit", 0), words: "no new checkpoint"},
		{name: "time limit", code: "time-limit", all: ended("time-limit", 0), saved: true, again: true, words: "tried again"},
	}
	for _, tt := range tests {
		d := decide(tt.code, tt.all, tt.saved, now)
		if d.again != tt.again || d.wait != tt.wait || !strings.Contains(d.words, tt.words) {
			t.Errorf("%s: %+v, want again %v, wait %s, %q", tt.name, d, tt.again, tt.wait, tt.words)
		}
	}
}

// Words of another machine in a run's log are not its own end.
func TestSignaturesKnowTheTrainer(t *testing.T) {
	server := "level=ERROR msg=\"run ended\" err=\"the server answered 500: CUDA out of memory. No space left on device; ModuleNotFoundError: flash_attn\"\n"
	for _, tt := range []struct {
		kind, stderr, said string
		code, words        string
	}{
		{"endpoint", server, "the server answered 500: CUDA out of memory", "trainer", "the trainer said: the server answered 500"},
		{"endpoint", server, "", "exit", "exit code 1"},
		{"endpoint", "write events.jsonl: no space left on device\n", "", "disk-full", "the disk is full"},
		{"cpu", "write policy.safetensors: no space left on device\n", "sft: no space left on device", "disk-full", "the disk is full"},
		{"cpu", "fatal error: runtime: out of memory\n", "", "host-oom", "memory was not enough"},
		{"cpu", "a trajectory says: CUDA out of memory\n", "", "exit", "exit code 1"},
		{"command", server, "", "cuda-oom", "the GPU's memory"},
		{"trl", server, "", "cuda-oom", "the GPU's memory"},
	} {
		run := ablation.Run{State: ablation.Running, Step: 3, TotalSteps: 9}
		run.Arm.Recipe.Trainer.Kind = tt.kind
		e := evidence{run: run, exit: &shim.Exit{ExitCode: 1}, stderr: []byte(tt.stderr)}
		if tt.said != "" {
			e.done = &trainer.Done{Step: 3, Reason: tt.said}
		}
		if v := judge(e); v.code != tt.code || !strings.Contains(v.cause, tt.words) {
			t.Errorf("%s, %.60q, said %q: %s, %q; want %s, …%s…", tt.kind, tt.stderr, tt.said, v.code, v.cause, tt.code, tt.words)
		}
	}
}

// The lines that prove a cause come from where they are: stdout, the kernel.
func TestEvidence(t *testing.T) {
	run := ablation.Run{State: ablation.Running, Step: 3, TotalSteps: 9}
	one := &shim.Exit{ExitCode: 1}
	v := judge(evidence{run: run, exit: one, stdout: []byte("step 3\nncclRemoteError: peer gone\n")})
	if v.code != "nccl" || len(v.evidence) != 2 || v.evidence[1] != "ncclRemoteError: peer gone" {
		t.Errorf("from stdout: %+v", v)
	}
	v = judge(evidence{run: run, exit: one, stderr: []byte("bus error\n"), kernel: []string{"NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."}})
	if v.code != "driver" || !strings.Contains(v.cause, "fallen off the bus") || len(v.evidence) != 1 {
		t.Errorf("from the kernel: %+v", v)
	}
	v = judge(evidence{run: run, exit: one, cluster: &Ending{Code: "node-failed", Text: "its node n3 failed (NODE_FAIL)"}})
	if v.state != ablation.Failed || v.code != "node-failed" || !v.cluster {
		t.Errorf("from the cluster: %+v", v)
	}
	stopping := run
	stopping.State = ablation.Stopping
	v = judge(evidence{run: stopping, exit: &shim.Exit{}, stopping: true, because: "the tools fail"})
	if v.state != ablation.Stopped || v.cause != "stopped by Alidade: the tools fail" {
		t.Errorf("ended by a detector: %+v", v)
	}
}
