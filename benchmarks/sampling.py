"""Sampling the training error of the paper's Fig. 2, against a straightforward numpy version."""

import math
import time
import tracemalloc

import numpy as np
from scipy.special import erfc

import manypass as mp
from manypass.cavity.sampling import Memory, adaline_moments

PROBLEM = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.9, decay=0.8)


def numpy_sample(grid, found, t0, rng):
    """One example as the paper says it: bilinear lookups, one triangular solve."""
    y = rng.standard_normal()
    target = np.sign(y)
    times = np.append(np.sort(rng.uniform(0, t0, rng.poisson(t0 / 1.2))), t0)
    near = np.searchsorted(grid, times)
    R, C, G = found.R.values[near], *(found[k].values[np.ix_(near, near)] for k in "CG")
    vG = 1.9 * np.tril(G, -1)
    a = np.linalg.solve((np.eye(times.size) + vG).T, np.eye(times.size)[-1])
    mean = a @ (R * y + vG.sum(axis=1) * target)
    variance = a @ (C - np.outer(R, R)) @ a
    return 0.5 * erfc(target * mean / math.sqrt(2 * variance))


def seconds(problem, t0, samples):
    start = time.perf_counter()
    found = adaline_moments(problem, Memory(problem, t0), t0, samples, None, 0)
    return time.perf_counter() - start, found


def main():
    seconds(PROBLEM, 5.0, 10_000)  # compile
    spent, found = seconds(PROBLEM, 5.0, 500_000)
    print(f"500,000 samples at t = 5   {spent:7.2f} s", end="   ")
    print(f"Et = {found['Et']:.5f} +- {found['Et_se']:.5f}")

    grid = np.linspace(0, 5, 501)
    exact, rng = mp.solve(PROBLEM, grid, two_time=True), np.random.default_rng(0)
    start = time.perf_counter()
    values = [numpy_sample(grid, exact, 5.0, rng) for _ in range(5000)]
    each = (time.perf_counter() - start) / 5000
    print(f"numpy, one by one          {1e3 * each:7.3f} ms a sample, Et = {np.mean(values):.4f}")
    print(f"ratio                      {each * 500_000 / spent:7.0f}")

    print("\ntime against the number of samples (linear), and memory (constant)")
    for samples in (100_000, 1_000_000, 4_000_000):
        print(f"  {samples:>9} samples   {seconds(PROBLEM, 5.0, samples)[0]:7.2f} s")
    for samples in (50_000, 200_000):
        tracemalloc.start()
        seconds(PROBLEM, 5.0, samples)
        print(f"  {samples:>9} samples   {tracemalloc.get_traced_memory()[1] / 1e6:7.1f} MB")
        tracemalloc.stop()
    print(
        "time against t/alpha, 100,000 samples (quadratic, until the example's memory is reached)"
    )
    for t0 in (1.25, 2.5, 5.0, 10.0, 20.0, 1000.0):
        memory = Memory(PROBLEM, t0)
        spent, _ = seconds(PROBLEM, t0, 100_000)
        print(f"  t/alpha = {t0 / 1.2:7.1f}   memory {min(memory.span, t0):5.1f}   {spent:7.2f} s")


main()
