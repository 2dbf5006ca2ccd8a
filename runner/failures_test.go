package runner

import "testing"

// hydra wraps what a framework raises, as it reaches the driver's stderr.
func hydra(exception string) string {
	return "Error executing job with overrides: ['trainer.n_gpus_per_node=8']\nTraceback (most recent call last):\n  File \"/opt/verl/trainer/main_ppo.py\", line 42, in main\n    run_ppo(config)\n" + exception + "\n"
}

// TestKnownFailures has one log of every kind of failure that the frameworks
// are known to end with, as long and as untidy as they write it.
func TestKnownFailures(t *testing.T) {
	decode := "(AgentLoopWorker pid=411) ERROR:2026-01-01 10:00:00,000:Failed to decode tool call: Expecting ',' delimiter: line 1 column 40 (char 39)\n"
	tool := "(AgentLoopWorker pid=411) WARNING Error when executing tool: HTTPConnectionPool(host='127.0.0.1'): Read timed out\n"
	for _, tc := range []struct {
		name, log string
		code      string
		class     class
	}{
		// The configuration.
		{"unknown key", "Could not override 'actor_rollout_ref.actor.clip_ratio_hi'.\nTo append to your config use +actor_rollout_ref.actor.clip_ratio_hi=0.3\nKey 'clip_ratio_hi' is not in struct\n", "config", never},
		{"attribute", hydra("omegaconf.errors.ConfigAttributeError: Key 'reward' is not in struct\n    full_key: reward"), "config", never},
		{"key error", hydra("omegaconf.errors.ConfigKeyError: Missing key multi_turn"), "config", never},
		{"mandatory", hydra("omegaconf.errors.MissingMandatoryValue: Missing mandatory value: actor_rollout_ref.rollout.name"), "config", never},
		{"batch sizes", hydra("AssertionError: real_train_batch_size (93) must be divisible by minimal possible batch size (8)"), "batch-sizes", never},
		{"mini-batch", hydra("ValueError: train_batch_size (16) must be >= actor.ppo_mini_batch_size (32)"), "batch-sizes", never},
		{"aggregation", hydra("ValueError: Invalid loss_agg_mode: token-sum"), "config", never},
		{"micro-batch", hydra("ValueError: [actor_rollout_ref.actor] Please set at least one of 'actor_rollout_ref.actor.micro_batch_size' or 'actor_rollout_ref.actor.micro_batch_size_per_gpu'."), "config", never},
		{"validation temperature", hydra("AssertionError: validation gen temperature should be greater than 0 when enabling do_sample"), "config", never},
		{"TRL arguments", "ValueError: Some specified arguments are not used by the HfArgumentParser: ['--gamma', '0.9']\n", "config", never},
		{"LLaMA-Factory keys", "ValueError: Some keys are not used by the HfArgumentParser: ['learnin_rate']\n", "config", never},
		{"unknown logger", hydra("AssertionError: file is not supported"), "", never},
		{"W&B", "wandb.errors.errors.UsageError: api_key not configured (no-tty). call wandb.login(key=[your_api_key])\n", "logger", never},

		// Data and reward.
		{"empty loader", hydra("AssertionError: Train dataloader is empty!"), "data", fix},
		{"prompt too long", hydra("RuntimeError: Prompt length 5120 is longer than 4096."), "data", fix},
		{"sequence too long", hydra("NotImplementedError: sequence_length=5120 is larger than max_length=4096"), "data", fix},
		{"DAPO ran out", hydra("ValueError: num_gen_batches=10 >= max_num_gen_batches=10. Generated too many. Please check your data."), "data", fix},
		{"reward function", hydra("ray.exceptions.RayTaskError(NotImplementedError): ray::TaskRunner.run()\nNotImplementedError: Reward function is not implemented for data_source='alidade/travel'"), "reward-function", never},

		// Memory.
		{"CUDA memory", "(WorkerDict pid=7) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.27 GiB. GPU 3 has a total capacity of 79.15 GiB\n" + hydra("ray.exceptions.RayTaskError(OutOfMemoryError): ray::WorkerDict.actor_rollout_update_actor()"), "cuda-oom", change},
		{"wake-up", "RuntimeError: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62\n", "cuda-oom", change},
		{"no cache", "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n", "kv-cache", change},
		{"cache too small", "ValueError: The model's max seq len (32768) is larger than the maximum number of tokens that can be stored in KV cache (20480).\n", "kv-cache", change},
		{"Ray's memory monitor", "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\nMemory on the node was 950.1GB / 1000.0GB\n", "ray-oom", change},
		{"accelerate's parent", "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\ntrain.py FAILED\nRoot Cause (first observed failure):\n  rank      : 2 (local_rank: 2)\n  exitcode  : -9 (pid: 8123)\n", "host-oom", change},

		// Machines, workers, engines.
		{"NCCL", "[rank3]:[E101 10:00:00.000 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=512, OpType=ALLREDUCE) ran for 600010 milliseconds before timing out.\n", "nccl", again},
		{"NCCL in a call", "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2026, remote process exited or there was a network error\nncclRemoteError: A call failed possibly due to a network error\n", "nccl", again},
		{"actor died", "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n\tclass_name: create_colocated_worker_cls.<locals>.WorkerDict\nThe actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file.\n", "worker-died", again},
		{"worker died", "(raylet) A worker died or was killed while executing a task by an unexpected system error. To troubleshoot the problem, check the logs for the dead worker.\n", "worker-died", again},
		{"exit code none", "(raylet) Worker exit type: SYSTEM_ERROR, exit code None\n", "worker-died", again},
		{"too few GPUs", hydra("ValueError: Total available GPUs 4 is less than total desired GPUs 8"), "devices", change},
		{"autoscaler", "(autoscaler +1m2s) Error: No available node types can fulfill resource request {'GPU': 1.0}\n(autoscaler +1m2s) no available node types can fulfill the request\n", "devices", change},
		{"slow start", hydra("Failed to get register_center_actor abc_register_center in the list of all actors within 300 seconds"), "slow-start", again},
		{"engine", "(vLLMHttpServer pid=9) vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.\n", "engine-died", again},
		{"engine core", "ERROR 01-01 10:00:00 [core.py:710] EngineCore encountered a fatal error.\n", "engine-died", again},
		{"engine process", "ERROR [core_client.py:562] Engine core proc EngineCore_0 died unexpectedly, shutting down client.\n", "engine-died", again},
		{"async engine", "vllm.engine.async_llm_engine.AsyncEngineDeadError: Background loop has errored already.\n", "engine-died", again},
		{"TRL's server", "ConnectionError: The vLLM server can't be reached at http://localhost:8000 after 240.0 seconds.\n", "server-gone", again},
		{"environment server", hydra("RuntimeError: alidade environment: POST /env/episodes: <urlopen error [Errno 111] Connection refused>"), "server-gone", again},
		{"disk", "RuntimeError: [enforce fail at inline_container.cc:858] . PytorchStreamWriter failed writing file data/12: file write failed\nOSError: [Errno 28] No space left on device\n", "disk-full", fix},

		// Episodes.
		{"rLLM's task", "Rollout failed permanently after 3 attempts: 12:3\n", "rollout", fix},
		{"rLLM's old task", "Exception: Trajectory 7 cannot complete. Please check the environment\n", "rollout", fix},
		{"tools alone", decode + tool + "RuntimeError: all prompts failed\n", "tools", fix},

		// What comes first is not always the cause.
		{"decode errors before the cause", decode + decode + tool + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n", "cuda-oom", change},
		{"a skipped update before the cause", "(WorkerDict pid=7) WARN: rank 0 grad_norm is not finite: nan\nray.exceptions.ActorDiedError: The actor died\n", "worker-died", again},
		{"first of two", "torch.OutOfMemoryError: CUDA out of memory.\nray.exceptions.ActorDiedError: The actor died\n", "cuda-oom", change},
		{"a warning alone", "(WorkerDict pid=7) WARN: rank 0 grad_norm is not finite: nan\n", "", never},
		{"the wrapper alone", "Error executing job with overrides: ['a=b']\n", "", never},
		{"the configuration as printed", "{'actor': {'ppo_mini_batch_size': 32, 'loss_agg_mode': 'token-mean'}, 'trainer': {'n_gpus_per_node': 8}}\n", "", never},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sig, line := firstSignature([]byte("INFO starting\n"+tc.log), "verl")
			switch {
			case tc.code == "" && sig != nil:
				t.Errorf("taken for %s by %q", sig.code, line)
			case tc.code != "" && sig == nil:
				t.Error("not known")
			case tc.code != "" && (sig.code != tc.code || sig.class != tc.class):
				t.Errorf("%s of class %d by %q, want %s of class %d", sig.code, sig.class, line, tc.code, tc.class)
			}
		})
	}
}
