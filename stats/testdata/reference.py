"""Makes reference.json: the numbers of package stats, computed independently.

Run with Python 3 and scipy: python3 reference.py > reference.json
"""

import json
from types import SimpleNamespace

import numpy as np
from scipy import stats

rng = np.random.default_rng(20261122)


def t_case(x, level):
    m, se = float(np.mean(x)), float(stats.sem(x))
    low, high = stats.t.interval(level, len(x) - 1, loc=m, scale=se)
    return {
        "x": list(map(float, x)), "level": level, "mean": m, "sd": float(np.std(x, ddof=1)), "se": se,
        "low": float(low), "high": float(high), "p": float(stats.ttest_1samp(x, 0).pvalue),
        "iqm": float(stats.trim_mean(x, 0.25)), "q": [float(v) for v in np.quantile(x, [0, 0.025, 0.3, 0.5, 0.975, 1])],
    }


def wilson_case(k, n, level):
    r = stats.binomtest(k, n).proportion_ci(level, method="wilson")
    return {"passed": k, "n": n, "level": level, "low": float(r.low), "high": float(r.high)}


def bca_case(x, level, draws):
    idx = rng.integers(0, len(x), size=(draws, len(x)))
    dist = np.asarray(x)[idx].mean(axis=1)
    out = {"x": list(map(float, x)), "level": level, "replicates": list(map(float, dist))}
    for method in ("BCa", "percentile"):
        r = stats.bootstrap((np.asarray(x),), np.mean, n_resamples=0, confidence_level=level, method=method,
                            bootstrap_result=SimpleNamespace(bootstrap_distribution=dist), vectorized=True)
        out[method] = [float(r.confidence_interval.low), float(r.confidence_interval.high)]
    return out


def paired_case(n):
    a = rng.normal(0.3, 0.2, n)
    b = a * 0.5 + rng.normal(0.1, 0.1, n)
    r = stats.ttest_rel(a, b)
    ci = r.confidence_interval(0.95)
    return {"a": list(map(float, a)), "b": list(map(float, b)), "mean": float(np.mean(a - b)), "p": float(r.pvalue), "low": float(ci.low), "high": float(ci.high)}


def holm(p):
    # by definition: reject while p(i) <= alpha/(m-i); the adjusted p is the least alpha that rejects
    order = np.argsort(p, kind="stable")
    out, worst = [0.0] * len(p), 0.0
    for rank, i in enumerate(order):
        worst = max(worst, min(1.0, (len(p) - rank) * p[i]))
        out[i] = worst
    return {"p": list(map(float, p)), "adjusted": out}


def cluster_case():
    sums = [float(v) for v in rng.integers(0, 5, 60)]
    counts = [4.0] * 60
    x = np.array(sums) / 4
    r = stats.bootstrap((x,), np.mean, n_resamples=200000, confidence_level=0.95, method="BCa", random_state=1)
    return {"sums": sums, "counts": counts, "mean": float(np.mean(x)), "low": float(r.confidence_interval.low), "high": float(r.confidence_interval.high)}


print(json.dumps({
    "t": [t_case(rng.normal(0.3, 0.05, n), lv) for n in (2, 3, 5, 10, 17) for lv in (0.9, 0.95)],
    "wilson": [wilson_case(k, n, lv) for k, n in ((0, 10), (1, 10), (5, 10), (10, 10), (83, 256), (349, 1000)) for lv in (0.9, 0.95)],
    "bca": [bca_case(rng.gamma(1.0, 1.0, 12), 0.95, 499), bca_case(rng.binomial(1, 0.1, 40).astype(float), 0.95, 799), bca_case(rng.normal(size=9), 0.8, 301)],
    "paired": [paired_case(n) for n in (3, 5, 120)],
    "holm": [holm([0.01, 0.04, 0.03, 0.005]), holm([0.5]), holm([0.2, 0.2, 0.9, 0.0001, 0.04])],
    "cluster": [cluster_case()],
}, indent=1))
