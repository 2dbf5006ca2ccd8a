"""GFLOP/s of numpy's float32 matrix product, for the shapes of BenchmarkGEMM.

Run on a quiet machine, one thread:  OPENBLAS_NUM_THREADS=1 python3 gemm.py
"""
import os
import time

for name in ("OPENBLAS", "MKL", "OMP"):
    os.environ.setdefault(name + "_NUM_THREADS", "1")
import numpy as np

SHAPES = [(64, 128, 512), (512, 64, 64), (512, 64, 256), (512, 256, 64), (512, 96, 384), (512, 128, 512), (2048, 64, 256), (4096, 128, 512)]


def rate(fn, flop, seconds=0.3):
    """Best of many calls, so that other load on the machine counts little."""
    fn()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        fn()
        best = min(best, time.perf_counter() - start)
    return flop / best / 1e9


print("numpy", np.__version__)
for m, k, n in SHAPES:
    x, w, dy = (np.random.rand(*s).astype(np.float32) for s in ((m, k), (k, n), (m, n)))
    y, dw = np.empty((m, n), np.float32), np.empty((k, n), np.float32)
    flop = 2 * m * k * n
    print(f"{m}x{k}x{n}: forward {rate(lambda: np.dot(x, w, out=y), flop):6.1f}  weight {rate(lambda: np.dot(x.T, dy, out=dw), flop):6.1f}  GFLOP/s")
