"""SGD on given data: time against N and p, and against getting the same curves by running SGD.

Both are timed in one run. To learn a curve within a given error by running SGD takes
(scatter of one run / error)² runs. The error asked for here, of both, is 0.1 % of F2.
"""

import time

import numpy as np

import manypass as mp

ERROR = 1e-3


def examples(n, p, seed=0):
    """Correlated features and norms with a heavy tail, as real data have them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((p, n)) * np.arange(1, n + 1) ** -0.5
    X *= rng.lognormal(0, 0.3, (p, 1)) * np.sqrt(n / np.sum(1 / np.arange(1, n + 1)))
    y = X @ rng.standard_normal(n) / np.sqrt(n) + 0.5 * rng.standard_normal(p)
    return mp.Dataset(X, y, X[: p // 4], y[: p // 4])


def seconds(work):
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found


def compare(n, p):
    data = examples(n, p)
    problem = mp.Problem(data, mp.Adaline(), rate=1.0, decay=0.05)
    rotated, _ = seconds(lambda: data.principal)
    critical, limit = seconds(lambda: mp.critical_rate(problem))
    problem = problem.replace(rate=0.3 * limit)
    times = np.linspace(0, 3 * p / n, 31)[1:]  # three passes
    exact, theory = seconds(lambda: mp.solve(problem, times, mp.Exact(accuracy=ERROR)))
    steady, _ = seconds(lambda: mp.steady_state(problem))
    few = 16
    mp.solve(problem, times[:1], mp.Simulation(samples=1))  # compile
    simulated, runs = seconds(lambda: mp.solve(problem, times, mp.Simulation(samples=few)))
    scatter = float((runs.F2_se / theory.F2).max()) * few**0.5
    needed = simulated / few * (scatter / ERROR) ** 2
    print(
        f"  {n:>5} {p:>7} {rotated:>9.2f} {critical:>9.2f} {exact:>9.2f} {steady:>9.2f}"
        f" {simulated / few:>11.3f} {100 * scatter:>9.1f} {needed / (exact + rotated):>9.0f}"
    )


def main():
    print("seconds for the basis of H, v_c, 30 times of three passes, the steady state; SGD")
    print(
        f"  {'N':>5} {'p':>7} {'basis':>9} {'v_c':>9} {'curves':>9} {'steady':>9}"
        f" {'one run':>11} {'scatter %':>9} {'ratio':>9}"
    )
    mp.critical_rate(mp.Problem(examples(10, 50), mp.Adaline(), rate=1.0))  # import
    for n, p in ((10, 1000), (30, 1000), (100, 1000), (300, 1000), (100, 10_000), (300, 10_000)):
        compare(n, p)
    print("ratio: runs of SGD that give F2 within 0.1 %, against basis and curves")


main()
