// Package nn is the numeric engine of the embedded trainer: small decoder-only
// transformers (0.05M to 2M parameters) trained and sampled on one CPU core.
//
// Start with [NewModel] (a [Config] from [Ladder]), then
//
//   - [NewTrainer] for learning: [TrainerOf.Accumulate] runs forward, hands the
//     caller the log-probability and entropy of every target token, takes back
//     d(loss)/d(log-probability), and runs backward; [TrainerOf.Step] is AdamW.
//     Cross-entropy and every policy-gradient loss fit this one shape.
//   - [NewDecoder] for sampling: a KV cache with forked prefixes, several tokens
//     appended at once, and batched decoding of many sequences.
//   - [SaveCheckpoint] and [LoadCheckpoint] for safetensors files.
//
// All parameters live in one flat slab. Work is single-threaded by design: the
// same kernel, seed and calls give bit-identical results, and neither the
// sampled tokens nor the scores of a sequence depend on which other sequences
// share its batch. With one kernel the decoder's log-probabilities equal the
// trainer's bit for bit, so the first on-policy ratio is exactly 1.
//
// Arithmetic is written once over float32 and float64. Only float32 has
// assembly kernels ([Kernels] lists them); float64 is for checking gradients.
//
// The package knows nothing of environments, rewards or advantages.
package nn
