package emulator

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A failure is one way in which the frameworks fail.
type failure struct {
	start bool     // before the first step
	lines []string // on stderr, as they write them
	exit  int      // exit code
	sig   syscall.Signal
}

// traceback writes an exception as Python does.
func traceback(exception string) []string {
	return []string{
		"Traceback (most recent call last):",
		`  File "/opt/verl/trainer/ppo/ray_trainer.py", line 1031, in fit`,
		"    actor_output = self.actor_rollout_wg.update_actor(batch)",
		exception,
	}
}

// remote writes an exception of a Ray worker as the driver shows it.
func remote(exception string) []string {
	return []string{
		"Error executing job with overrides: ['algorithm.adv_estimator=grpo']",
		"Traceback (most recent call last):",
		`  File "/opt/verl/trainer/main_ppo.py", line 42, in main`,
		"    run_ppo(config)",
		exception,
	}
}

// failures by name. Texts are the signatures that the frameworks are known to
// write; the rest around them is made up.
var failures = map[string]failure{
	"config": {start: true, exit: 1, lines: []string{
		"Could not override 'actor_rollout_ref.actor.clip_ratio_hihg'.",
		"To append to your config use +actor_rollout_ref.actor.clip_ratio_hihg=0.28",
		"Key 'clip_ratio_hihg' is not in struct", "    full_key: actor_rollout_ref.actor.clip_ratio_hihg",
	}},
	"missing-value": {start: true, exit: 1, lines: remote("omegaconf.errors.MissingMandatoryValue: Missing mandatory value: actor_rollout_ref.rollout.name")},
	"batch-sizes":   {start: true, exit: 1, lines: remote("AssertionError: real_train_batch_size (12) must be divisible by minimal possible batch size (8)")},
	"hf-arguments":  {start: true, exit: 1, lines: traceback("ValueError: Some specified arguments are not used by the HfArgumentParser: ['--beta_']")},
	"empty-data":    {start: true, exit: 1, lines: remote("AssertionError: Train dataloader is empty!")},
	"too-easy":      {exit: 1, lines: remote("ValueError: num_gen_batches=10 >= max_num_gen_batches=10. Generated too many. Please check your data.")},
	"no-reward":     {exit: 1, lines: remote("NotImplementedError: Reward function is not implemented for data_source='alidade/travel'")},
	"cuda-oom":      {exit: 1, lines: remote("ray.exceptions.RayTaskError(OutOfMemoryError): ray::WorkerDict.actor_rollout_update_actor() (pid=812, ip=10.0.0.1)\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.90 GiB. GPU 0 has a total capacity of 79.11 GiB of which 1.05 GiB is free.")},
	"wake-up-oom":   {exit: 1, lines: remote("RuntimeError: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62")},
	"kv-cache":      {start: true, exit: 1, lines: remote("ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.")},
	"nccl":          {exit: 1, lines: []string{"[rank3]:[E1129 22:10:01.113 ProcessGroupNCCL.cpp:629] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1412, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600021 milliseconds before timing out."}},
	"actor-died":    {exit: 1, lines: remote("ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task. The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file.")},
	"ray-oom":       {exit: 1, lines: remote("ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.")},
	"worker-died":   {exit: 1, lines: []string{"(raylet) A worker died or was killed while executing a task by an unexpected system error. Worker ID: 6d1f, Node IP address: 10.0.0.1, exit code None"}},
	"no-gpus":       {start: true, exit: 1, lines: remote("ValueError: Total available GPUs 4 is less than total desired GPUs 8")},
	"slow-start":    {start: true, exit: 1, lines: remote("TimeoutError: Failed to get register_center_actor a1_register_center in list_named_actors. Consider increasing ray_wait_register_center_timeout; it was not there within 300 seconds")},
	"engine-died":   {exit: 1, lines: remote("vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.")},
	"rollout":       {exit: 1, lines: []string{"[7:3] Attempt 3/3 failed: connection reset", "Traceback (most recent call last):", `  File "/opt/rllm/engine/agentflow_engine.py", line 201, in process_task_with_retry`, "    raise", "Exception: [7:3] Rollout failed permanently after 3 attempts"}},
	"vllm-server":   {start: true, exit: 1, lines: traceback("ConnectionError: The vLLM server can't be reached at http://0.0.0.0:8000 after 240.0 seconds. Make sure the server is running by running `trl vllm-serve`.")},
	"child-failed":  {exit: 1, lines: []string{"torch.distributed.elastic.multiprocessing.errors.ChildFailedError:", "grpo.py FAILED", "Root Cause (first observed failure):", "  rank      : 2 (local_rank: 2)", "  exitcode  : -9 (pid: 811)"}},
	"wandb":         {start: true, exit: 1, lines: traceback("wandb.errors.errors.UsageError: api_key not configured (no-tty). call wandb.login(key=[your_api_key])")},
	"disk-full":     {exit: 1, lines: traceback("OSError: [Errno 28] No space left on device: '/checkpoints/global_step_2/actor/optim_world_size_1_rank_0.pt'")},
	"exception":     {exit: 1, lines: traceback("KeyError: 'advantages'")},
	"killed":        {sig: syscall.SIGKILL},
	"crash":         {exit: 139, lines: []string{"Fatal Python error: Segmentation fault"}}, // the code of SIGSEGV: Go's runtime would catch the signal
	"hang":          {},
	"no-wait":       {start: true, exit: 0, lines: []string{"Job 'raysubmit_1' submitted successfully"}},
	"empty-resume":  {start: true, exit: 0},
	"nan-grad":      {},
	"nan-score":     {},
	"constant":      {},
	"tool-noise":    {}, // calls that cannot be decoded, and training goes on
	"lost-rollout":  {}, // rLLM: the engine is away for some rollouts of a step
	"tools":         {exit: 1, lines: traceback("RuntimeError: Error when executing tool: connection refused")},
}

// Failures lists the names that [Config.Fail] takes.
func Failures() []string { return slices.Sorted(maps.Keys(failures)) }

// fails lets the failure happen if it is due, and returns its exit code. Some
// only change what is written and never end the process.
func (p *process) fails(step int64, smoke bool) (code int, now bool) {
	f, ok := failures[p.cfg.Fail]
	if !ok || smoke && !p.cfg.Smoke {
		return 0, false
	}
	if f.start != (step == 0) || step != 0 && step != p.cfg.At {
		return 0, false
	}
	switch p.cfg.Fail {
	case "nan-grad", "nan-score", "constant", "empty-resume", "tool-noise", "lost-rollout": // change what is written
		return 0, false
	case "hang":
		time.Sleep(time.Hour)
	}
	for _, line := range f.lines {
		fmt.Fprintln(p.err, line)
	}
	if f.sig != 0 {
		_ = syscall.Kill(os.Getpid(), f.sig)
		time.Sleep(10 * time.Second) // the signal is on its way
	}
	return f.exit, true
}

// is tells whether the failure that changes what is written is on at a step.
func (p *process) is(name string, step int64, smoke bool) bool {
	if p.cfg.Fail != name || smoke && !p.cfg.Smoke {
		return false
	}
	return name == "constant" || step >= p.cfg.At
}

// waits holds the step after At until the test's file is there.
func (p *process) waits(step int64) {
	if p.cfg.Wait == "" || step != p.cfg.At+1 {
		return
	}
	for range 6000 {
		if _, err := os.Stat(p.cfg.Wait); err == nil || p.stopped.Load() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func truthy(s string) bool { return strings.EqualFold(s, "true") }
