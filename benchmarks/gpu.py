"""Learning on a card: ns a step against N and networks, beside CPU cores and scikit-learn.

Needs a card; without one it says so. All are timed in one run (alpha = 1.2, Adaline).
"""

import sys
import time

import numpy as np

import manypass as mp
from manypass import card

PROBLEM = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.0, decay=0.8)
ENSEMBLES = (
    (500, 4096),
    (500, 8192),
    (500, 16_384),
    (1000, 2048),
    (1000, 4096),
    (2000, 1024),
    (2000, 2048),
    (4000, 512),
    (10_000, 66),
    (10_000, 132),
    (10_000, 264),
)


def timed(work, rounds=5):
    """Shortest time of some work on the card, in s."""
    from numba import cuda

    work()
    cuda.synchronize()
    shortest = float("inf")
    for _ in range(rounds):
        start, end = cuda.event(), cuda.event()
        start.record()
        work()
        end.record()
        end.synchronize()
        shortest = min(shortest, cuda.event_elapsed_time(start, end) / 1e3)
    return shortest


def copy_speed():
    """Bytes read and written per s by a plain copy."""
    from numba import cuda

    a, b = (cuda.device_array(1 << 30, np.float32) for _ in range(2))
    return 8 * (1 << 30) / timed(lambda: b.copy_to_device(a))


def step(n, count, rule=None):
    """Return ns per learning step of one network, `count` of them side by side."""
    from manypass.simulation.cuda.networks import Networks

    method = mp.Simulation(n=n, samples=count, device="cuda")
    problem = PROBLEM if rule is None else PROBLEM.replace(rule=rule)
    net, steps = Networks(method, problem, 0, count, (None, None)), 4096
    return timed(lambda: net.advance((net.step + steps) / n)) / steps / count * 1e9


def on_cores(n, threads):
    """Return ns per step of the CPU simulator, learning only, so many threads."""
    from manypass.ensemble import in_order
    from manypass.simulation import kernels, network
    from manypass.simulation.examples import Examples

    force, rng = kernels.compiled_force(PROBLEM.rule), np.random.default_rng(0)
    nets = []
    for _ in range(threads):
        examples = Examples.draw(PROBLEM.data, n, rng, np.dtype("float32"))
        nets.append(network.Learner(PROBLEM, examples, force, rng, rng))
    plans = [net.plan(max(4000, 20_000_000 // n)) for net in nets]
    shortest = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        list(in_order(lambda i: nets[i].learn(*plans[i], nets[i].nothing), range(threads), threads))
        shortest = min(shortest, time.perf_counter() - start)
    return shortest / len(plans[0][0]) / threads * 1e9


def scikit_learn(n):
    """Return ns per step of SGDRegressor."""
    from sklearn.linear_model import SGDRegressor

    rng = np.random.default_rng(0)
    X = rng.standard_normal((round(1.2 * n), n))
    passes = max(1, 4_000_000 // X.size)
    model = SGDRegressor(
        alpha=0.8,
        fit_intercept=False,
        learning_rate="constant",
        eta0=1 / n,
        max_iter=passes,
        tol=None,
    )
    start = time.perf_counter()
    model.fit(X, np.sign(X[:, 0]))
    return (time.perf_counter() - start) / (passes * len(X)) * 1e9


def main():
    reason = card.kernels_missing()
    if reason:
        print(f"no benchmark on a card: {reason}")
        return
    speed = copy_speed()
    print(f"a plain copy moves {speed / 1e12:.2f} TB/s")
    print(f"{'N':>6}{'networks':>10}{'ns a step':>11}{'TB/s':>7}{'of a copy':>11}")
    for n, count in ENSEMBLES:
        ns = step(n, count)
        tera = 4 * n / ns / 1e3
        print(f"{n:>6}{count:>10}{ns:>11.3f}{tera:>7.2f}{100 * tera * 1e12 / speed:>9.0f} %")
    for rule in (mp.Adatron(), mp.Perceptron(), mp.Logistic(), mp.Huber()):
        print(f"  {rule.name}, N = 1000, 4096 networks: {step(1000, 4096, rule):.3f} ns a step")
    print(f"{'N':>6}{'two cores':>11}{'one core':>10}{'scikit-learn':>14}  ns a step")
    for n in (500, 1000, 2000, 10_000):
        try:
            other = f"{scikit_learn(n):14.0f}"
        except ImportError:
            other = f"{'-':>14}"
        print(f"{n:>6}{on_cores(n, 2):>11.1f}{on_cores(n, 1):>10.1f}{other}")
    method = mp.Simulation(n=1000, samples=10_000, device="cuda")
    for _ in range(2):
        start = time.perf_counter()
        mp.solve(PROBLEM, [4], method)
        print(f"10,000 networks, N = 1000, t = 4: {time.perf_counter() - start:.2f} s with data")
    exact()


def exact(n=1000, p=100_000):
    """Time the theory of given data on a card."""
    reason = card.arrays_missing()
    if reason:
        print(f"no benchmark of Exact on a card: {reason}")
        return
    rng = np.random.default_rng(0)
    X = rng.standard_normal((p, n))
    data = mp.Dataset(X, X @ rng.standard_normal(n) / np.sqrt(n), task="regression")
    problem = mp.Problem(data, mp.Adaline(), rate=0.5, decay=0.05)
    start = time.perf_counter()
    mp.solve(problem, np.linspace(0, 5, 21), mp.Exact(accuracy=1e-3, device="cuda"))
    middle = time.perf_counter()
    limit = mp.critical_rate(problem, device="cuda")
    end = time.perf_counter()
    print(f"Exact, N = {n}, p = {p}: curves {middle - start:.1f} s, ", end="")
    print(f"v_c = {limit:.4f} {end - middle:.1f} s")


if __name__ == "__main__":
    sys.exit(main())
