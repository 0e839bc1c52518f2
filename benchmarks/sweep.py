"""A sweep of 10,000 exact steady states with storage, and what storing and spreading costs."""

import tempfile
import time

import numpy as np

import manypass as mp

PROBLEM = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.9, decay=0.8)


def timed(call):
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def main():
    rates = np.linspace(0.02, 2.0, 100)
    grid = mp.Grid(PROBLEM, rate=rates, decay=np.geomspace(0.02, 2, 100))
    few = 500
    mp.steady_state(PROBLEM)
    alone, _ = timed(
        lambda: [mp.steady_state(PROBLEM.replace(rate=v)) for v in np.linspace(0.1, 2, few)]
    )
    with tempfile.TemporaryDirectory() as folder:
        spent, found = timed(lambda: mp.sweep(grid, out=folder))
        again, _ = timed(lambda: mp.sweep(grid, out=folder))
        opened, _ = timed(lambda: mp.load(f"{folder}/sweep.nc"))
    assert not (found.error != "").any()
    size = found.error.size
    print(f"{size} exact steady states, each kept: {spent:6.1f} s, ", end="")
    print(f"{spent / (alone / few * size):.2f} of a loop in one process that keeps nothing")
    print(f"the same again, nothing to compute:    {again:6.2f} s")
    print(f"opened as one file:                    {opened:6.2f} s")


if __name__ == "__main__":
    main()
