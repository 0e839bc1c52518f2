"""The mean-field solver: errors against the exact theory, and what a simulation needs for them."""

import time
import tracemalloc

import numpy as np

import manypass as mp

ADALINE = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.0, decay=0.8)
ADATRON = ADALINE.replace(rule=mp.Adatron(kappa=1.0))
CURVES = ("R", "Q", "F2", "Eg", "Et")
JUMPS = (  # kappa, alpha, rate, decay, noise
    (0.0, 1.5, 1.0, 0.5, 0.0),
    (0.2, 1.0, 3.0, 0.3, 0.0),
    (0.5, 3.0, 0.1, 0.1, 0.3),
    (0.0, 0.3, 0.3, 0.2, 0.0),
    (0.5, 0.3, 3.0, 0.2, 0.0),
)


def timed(problem, times, method, rounds=1, **options):
    """Return the shortest time of some rounds, and the result."""
    best = np.inf
    for _ in range(rounds):
        start = time.perf_counter()
        found = mp.solve(problem, times, method, **options)
        best = min(best, time.perf_counter() - start)
    return best, found


def typical(errors):
    """Return the root mean square of standard errors at all times but t = 0."""
    return float(np.sqrt((errors[1:] ** 2).mean()))


def simulations(problem, times, samples=160):
    """Time of simulations of two sizes, and the error of N → ∞ from them, by curve."""
    spent, large = timed(problem, times, mp.Simulation(n=500, samples=samples), rounds=2)
    more, small = timed(problem, times, mp.Simulation(n=250, samples=samples), rounds=2)
    errors = {n: np.hypot(2 * large[f"{n}_se"], small[f"{n}_se"]) for n in CURVES}
    return spent + more, {name: typical(error) for name, error in errors.items()}


def ratios(simulated, spent, found, names):
    """How much longer simulations take for the same errors."""
    time_of, errors = simulated
    return {n: time_of / spent * (errors[n] / typical(found[f"{n}_se"])) ** 2 for n in names}


def main():
    for problem in (ADALINE, ADATRON):
        mp.solve(problem, [1.0], mp.DMFT(dt=0.1, samples=4_000), two_time=True)  # compile
        mp.solve(problem, [1.0], mp.Simulation(n=100, samples=2))

    times = np.linspace(0, 4, 11)
    method = mp.DMFT(dt=0.2, samples=480_000)
    spent, found = timed(ADALINE, times, method, rounds=3, two_time=True)
    exact = mp.solve(ADALINE, times, mp.Exact(), two_time=True)
    names = ("R", "Q", "F2", "Eg", "C", "G")
    errors = {name: float(np.abs(found[name] - exact[name]).max()) for name in names}
    print(f"Adaline, alpha = 1.2, v = 1, lambda = 0.8, to t = 4     {spent:6.2f} s")
    print("  largest error  ", "  ".join(f"{k} {v:.5f}" for k, v in errors.items()))
    shown(ratios(simulations(ADALINE, times), spent, found, CURVES))

    times = np.linspace(0, 8, 17)
    spent, found = timed(ADATRON, times, mp.DMFT(dt=0.13, samples=180_000), rounds=2)
    errors = {name: float(found[f"{name}_se"].max()) for name in CURVES}
    print(f"Adatron, kappa = 1, the same, to t = 8                  {spent:6.2f} s")
    print("  standard error ", "  ".join(f"{k} {v:.5f}" for k, v in errors.items()))
    shown(ratios(simulations(ADATRON, times), spent, found, CURVES))

    spent, found = timed(ADATRON, times, mp.DMFT())
    print(f"  to one per cent, rtol = 0.01 {spent:6.2f} s, {found.attrs['samples']} examples")

    late = mp.Problem(mp.Teacher(alpha=1.0), mp.Adatron(kappa=1.0), rate=1.0, decay=0.1)
    print("Adatron, alpha = kappa = v = 1, lambda = 0.1")
    for end in (1, 3, 10, 30, 60, 100):
        times = np.linspace(0, end, 11)
        simulated = simulations(late, times)
        for rtol in (0.01, 0.001):
            spent, found = timed(late, times, mp.DMFT(rtol=rtol))
            how = f"rtol = {rtol:<5g} {spent:6.2f} s, {found.attrs['samples']} examples"
            print(f"  t = {end:>3}, {how}")
            shown(ratios(simulated, spent, found, CURVES))

    print("Perceptron, to one per cent")
    for kappa, alpha, rate, decay, noise in JUMPS:
        data = mp.Teacher(alpha=alpha, noise=noise)
        problem = mp.Problem(data, mp.Perceptron(kappa=kappa), rate=rate, decay=decay)
        spent, found = timed(problem, np.linspace(0, 20, 11), mp.DMFT())
        print(f"  kappa {kappa}, alpha {alpha}, v {rate}, noise {noise}, to t = 20 {spent:6.2f} s")

    print("time and memory against t (dt = 0.25, 16,000 examples, one thread)")
    for end in (4, 8, 16, 32, 64, 128):
        print(f"  t = {end:>3} {cost(end, 16_000)}")
    print("and against the number of examples (t = 8)")
    for samples in (16_000, 64_000, 256_000):
        print(f"  {samples:>7} {cost(8, samples)}")


def shown(found):
    print("    simulations take", "  ".join(f"{k} × {v:.1f}" for k, v in found.items()))


def cost(end, samples):
    method = mp.DMFT(dt=0.25, samples=samples, threads=1)
    spent, _ = timed(ADATRON, [float(end)], method)
    tracemalloc.start()
    mp.solve(ADATRON, [float(end)], method)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return f"{spent:7.2f} s {peak / 1e6:7.1f} MB"


if __name__ == "__main__":
    main()
