"""How long the mean-field theory of committees takes, and how much memory, against K."""

import resource
import time

import numpy as np

import manypass as mp

AIMS = {2: 30, 4: 120}  # seconds on two cores


def problem(K):
    start = mp.Start(R=0.3 * np.eye(K), Q=0.25 * np.eye(K))
    data = mp.Teacher(3.0, "regression", 0.1, hidden=K)
    return mp.Problem(data, mp.Committee(K), rate=1.0, start=start)


def timed(work):
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def main():
    for K in (1, 2, 3, 4):
        mp.solve(problem(K), [0.01], mp.DMFT(samples=16_000))  # compile
        wall, cpu = timed(lambda K=K: mp.solve(problem(K), [5, 10, 20], mp.DMFT(threads=2)))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        aim = f"   (aim: {AIMS[K]} s)" if K in AIMS else ""
        print(
            f"mean field, K = M = {K}, t = 20 within 1 %: {wall:6.1f} s ({cpu:.1f} s of all "
            f"cores), {peak:.2f} GB at most so far{aim}"
        )
    for K in (1, 2, 4):
        method = mp.Simulation(n=500, samples=20, threads=1)
        mp.solve(problem(K), [0.01], method)
        wall, _ = timed(lambda K=K, m=method: mp.solve(problem(K), [10], m))
        print(f"simulation, N = 500, K = {K}: {1e9 * wall / (20 * 500 * 10):8.0f} ns a step")


main()
