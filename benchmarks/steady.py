"""Steady states of nonlinear rules: time, errors, and a sweep over the rate."""

import time

import numpy as np

import manypass as mp

ADATRON = mp.Problem(mp.Teacher(alpha=1.0), mp.Adatron(kappa=1.0), rate=1.0, decay=0.3)
PERCEPTRON = mp.Problem(mp.Teacher(alpha=1.5), mp.Perceptron(), rate=1.0, decay=0.5)


def timed(problem, method):
    """Return wall and processor time, and the result."""
    wall, used = time.perf_counter(), time.process_time()
    found = mp.steady_state(problem, method)
    return time.perf_counter() - wall, time.process_time() - used, found


def main():
    mp.steady_state(PERCEPTRON, mp.DMFT(samples=1024))  # compile
    for name, problem in (
        ("Adatron, alpha = kappa = v = 1, lambda = 0.3", ADATRON),
        ("Adatron, alpha = kappa = v = 1, lambda = 0.1", ADATRON.replace(decay=0.1)),
        ("Perceptron, alpha = 1.5, v = 1, lambda = 0.5", PERCEPTRON),
    ):
        wall, used, found = timed(problem, mp.DMFT())
        print(f"steady state, {name}   {wall:6.2f} s ({used:.2f} s of all cores)")
        names = ("R", "Q", "F2", "Et")
        print(
            "  ",
            "  ".join(f"{n} {float(found[n]):.4f}({float(found[n + '_se']):.4f})" for n in names),
        )
    rates, start = np.linspace(0.2, 4.0, 20), time.perf_counter()
    for rate in rates:
        mp.steady_state(ADATRON.replace(rate=float(rate)), mp.DMFT())
    spent = time.perf_counter() - start
    print(f"twenty rates to one per cent, Adatron, v = 0.2 ... 4  {spent:6.2f} s")
    start = time.perf_counter()
    limit, error = mp.DMFT().critical_rate(ADATRON)
    spent = time.perf_counter() - start
    print(f"critical rate of Adatron, {limit:.3f}({error:.3f})                  {spent:6.2f} s")


if __name__ == "__main__":
    main()
