// Package gpu knows the devices of this machine and who holds them. Make a
// [Pool] with [New], keep its readings fresh with [Pool.Run], and take
// devices with [Pool.Acquire]: all that a run asked for, or none.
//
// Devices are CPU slots (always there, their number is an option), the GPUs
// that NVIDIA's library or nvidia-smi lists, or a simulated topology such as "sim:8xA100-80G"
// that is marked as simulated wherever it shows. A GPU is free only when that
// is certain: no lease, a fresh reading, and no process holding a context.
//
// The package starts no trainer and stores nothing.
package gpu
