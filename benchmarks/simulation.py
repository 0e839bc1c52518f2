"""The simulator's learning step against other ways to take it, and against the memory.

All are timed in one run, each the best of several, on the same training set (alpha = 1.2).
"""

import time

import numpy as np
from numba import njit

import manypass as mp
from manypass.simulation import kernels, network
from manypass.simulation.examples import Examples

PROBLEM = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.0, decay=0.8)


def best(rounds, **works):
    """Shortest time of each piece of work in ns per step, taken in turns: the same weather."""
    shortest = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, (work, count) in works.items():
            start = time.perf_counter()
            work()
            shortest[name] = min(shortest[name], (time.perf_counter() - start) / count * 1e9)
    return shortest


@njit(**kernels.FAST)
def read_rows(X, sequence):
    """Read the same rows in the same order and do next to nothing with them: the bound."""
    total = X[0, 0] * 0
    for mu in sequence:
        row = X[mu]
        for j in range(row.size):
            total += row[j]
    return total


def numpy_steps(X, targets, J, sequence, rate, decay):
    n = J.size
    for mu in sequence:
        xi = X[mu]
        J += rate / n * ((targets[mu] - J @ xi) * xi - decay * J)


def measure(n, dtype):
    examples = Examples.draw(PROBLEM.data, n, np.random.default_rng(0), np.dtype(dtype))
    force = kernels.compiled_force(PROBLEM.rule)
    rng = np.random.default_rng(1)
    net = network.Learner(PROBLEM, examples, force, rng, rng)
    count = max(2000, 20_000_000 // n)
    sequence, offsets = net.plan(count)
    few = sequence[: max(100, 200_000 // n)]
    X, targets = examples.X, examples.targets
    passes = max(1, 4_000_000 // X.size)  # enough that scikit-learn's checks do not count
    return best(
        15,
        manypass=(lambda: net.learn(sequence, offsets, net.nothing), count),
        bound=(lambda: read_rows(X, sequence), count),
        numpy=(lambda: numpy_steps(X, targets, np.zeros(n), few, 1.0, 0.8), few.size),
        sklearn=(lambda: sklearn_steps(X, targets, passes), len(X) * passes),
    )


def sklearn_steps(X, targets, passes):
    from sklearn.linear_model import SGDRegressor

    model = SGDRegressor(
        penalty="l2",
        alpha=0.8,
        fit_intercept=False,
        learning_rate="constant",
        eta0=1.0 / X.shape[1],
        max_iter=passes,
        tol=None,
    )
    model.fit(X, targets)


def main():
    print(f"{'ns per step':<18}{'manypass':>9}{'read only':>11}{'numpy':>9}{'sklearn':>9}", end="")
    print(f"{'sklearn/manypass':>18}{'read/manypass':>15}")
    for dtype in ("float64", "float32"):
        for n in (500, 1000, 10_000):
            ns = measure(n, dtype)
            print(f"{dtype} N = {n:<6}", end="")
            print(f"{ns['manypass']:>9.0f}{ns['bound']:>11.0f}", end="")
            print(f"{ns['numpy']:>9.0f}{ns['sklearn']:>9.0f}", end="")
            print(f"{ns['sklearn'] / ns['manypass']:>17.1f}x", end="")
            print(f"{100 * ns['bound'] / ns['manypass']:>13.0f} %")

    print("\nwhole ensembles, 100 samples up to t = 5, 11 times")
    for n in (125, 250, 500, 1000):
        start = time.perf_counter()
        mp.solve(PROBLEM, np.linspace(0, 5, 11), mp.Simulation(n=n, samples=100))
        print(f"  N = {n:>5}  {time.perf_counter() - start:8.2f} s")


main()
