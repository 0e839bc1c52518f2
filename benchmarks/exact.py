"""The exact theory against simulation: how long the curves of Fig. 2 take, in one run.

Both are timed here and now, so that the ratio means something on any machine.
"""

import statistics
import sys
import time
from pathlib import Path

import numpy as np

import manypass as mp

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from reference_simulation import estimate

PROBLEM = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.9, decay=0.8)
TIMES = np.linspace(0, 6, 201)[1:]


def seconds(work, repeat):
    work()  # warm up
    durations = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        durations.append(time.perf_counter() - start)
    return statistics.median(durations)


def solve_seconds(problem, times, **options):
    return seconds(lambda: mp.solve(problem, times, mp.Exact(), **options), 5)


def main():
    one = seconds(lambda: mp.solve(PROBLEM, TIMES, mp.Exact()), 50)
    two = seconds(lambda: mp.solve(PROBLEM, TIMES, mp.Exact(), two_time=True), 20)
    steady = seconds(lambda: mp.steady_state(PROBLEM, mp.Exact()), 50)
    print(f"Exact, 200 times                {1e3 * one:10.2f} ms   (aim: under 5)")
    print(f"Exact, 200 x 200 two-time       {1e3 * two:10.2f} ms   (aim: under 50)")
    print(f"Exact, steady state             {1e3 * steady:10.2f} ms")

    print("\nhow Exact grows (aim: no faster than its output)")
    for count in (200, 2_000, 20_000):
        spent = solve_seconds(PROBLEM, np.linspace(0, 6, count))
        print(f"  {count:>5} times                 {1e3 * spent:10.2f} ms")
    for count in (200, 800, 2400):
        spent = solve_seconds(PROBLEM, np.linspace(0, 6, count), two_time=True)
        print(f"  {count:>4} x {count:<4} two-time         {1e3 * spent:10.2f} ms")
    for alpha, decay in ((1.2, 0.8), (1.001, 0.0), (1.0, 0.0)):
        spent = solve_seconds(PROBLEM.replace(alpha=alpha, decay=decay, rate=1.0), TIMES)
        print(f"  alpha = {alpha:<5} decay = {decay:<3}     {1e3 * spent:10.2f} ms")

    start = time.perf_counter()
    data = estimate(PROBLEM, TIMES, n=500, samples=100, seed=0, chunk=20)
    simulated = time.perf_counter() - start
    theory = mp.solve(PROBLEM, TIMES)
    off = {k: float(np.max(np.abs(data[k][0] / theory[k].values - 1))) for k in ("R", "Q", "F2")}
    print(f"\nreference simulation, N = 500, 100 samples {simulated:8.1f} s")
    print("  it is off by up to " + ", ".join(f"{100 * v:.1f} % in {k}" for k, v in off.items()))
    print(f"ratio simulation / exact        {simulated / one:10.0f}")


main()
