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
)


def timed(problem, times, method, rounds=1, **options):
    """Return the shortest time of some rounds, and the result."""
    best = np.inf
    for _ in range(rounds):
        start = time.perf_counter()
        found = mp.solve(problem, times, method, **options)
        best = min(best, time.perf_counter() - start)
    return best, found


def simulation_for(problem, times, name, error):
    """Time that simulations, extrapolated to N → ∞ from two sizes, would take for this error."""
    spent, large = timed(problem, times, mp.Simulation(n=500, samples=40), rounds=2)
    more, small = timed(problem, times, mp.Simulation(n=250, samples=40), rounds=2)
    found = np.hypot(2 * large[f"{name}_se"], small[f"{name}_se"])
    return (spent + more) * (float(found.max()) / error) ** 2


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
    other = simulation_for(ADALINE, times, "F2", errors["F2"])
    print(f"  by simulation, the same error of F2: {other:.0f} s, ratio {other / spent:.0f}")

    times = np.linspace(0, 8, 17)
    spent, found = timed(ADATRON, times, mp.DMFT(dt=0.14, samples=160_000), rounds=2)
    errors = {name: float(found[f"{name}_se"].max()) for name in CURVES}
    print(f"Adatron, kappa = 1, the same, to t = 8                  {spent:6.2f} s")
    print("  standard error ", "  ".join(f"{k} {v:.5f}" for k, v in errors.items()))
    for name in ("Q", "F2"):
        other = simulation_for(ADATRON, times, name, errors[name])
        print(
            f"  by simulation, the same error of {name}: {other:.0f} s, ratio {other / spent:.0f}"
        )

    spent, found = timed(ADATRON, times, mp.DMFT())
    print(f"  to one per cent, rtol = 0.01 {spent:6.2f} s, {found.attrs['samples']} examples")

    late = mp.Problem(mp.Teacher(alpha=1.0), mp.Adatron(kappa=1.0), rate=1.0, decay=0.1)
    print("Adatron, alpha = kappa = v = 1, lambda = 0.1, to one per cent, and by simulation")
    for end in (1, 3, 10, 30, 60, 100):
        times = np.linspace(0, end, 11)
        spent, found = timed(late, times, mp.DMFT())
        ratios = [
            simulation_for(late, times, name, float(found[f"{name}_se"].max())) / spent
            for name in ("R", "Q", "F2")
        ]
        print(f"  t = {end:>3} {spent:6.2f} s, ratios", "  ".join(f"{r:.1f}" for r in ratios))

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
