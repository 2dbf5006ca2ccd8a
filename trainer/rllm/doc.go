// Package rllm is the adapter of rLLM 0.3.
//
// rLLM's own loggers are a console table that is not meant for programs and
// files that come late. Its "ui" logger, though, pushes everything over HTTP:
// metrics, episodes, groups, a heartbeat. [Server] answers those calls, on
// loopback in the process that drives the run, and is a [native.Source] of
// what they say. rLLM drops what it cannot push within seconds, so nothing
// here waits for a disk, and the trainer's files are read beside it.
//
// rLLM also lets others run the episode: it opens an OpenAI-compatible address
// for each rollout and asks a flow for the reward. The generated flow asks
// [Server] in turn, which plays the travel sandbox with the same loop that
// evaluates any endpoint. So training, evaluation and replay share one loop,
// and the record of an episode is ours, whole. Uni-Agent on verl 0.9 works
// alike; [UniAgentRunner] is its flow.
package rllm
