"""Make the reference tables on a card: python tests/references/make.py [NAME ...] [--out DIR].

Each table holds simulated means and standard errors at three sizes, and the fit a + b/N whose a is
the value for N → ∞, with its standard error and χ² (one degree of freedom). Networks are added
until the error of a is below 0.1 % of the largest value of each curve.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import problems

import manypass as mp

SIZES, ROUND = (500, 1000, 2000), 8192  # weights, and networks a round
GOAL = 7e-4  # relative error aimed at
NAMES = ("R", "Q", "F2", "Et", "C")
LAYERED = ("R", "Q", "a", "F2", "Et", "Eg")  # of a committee


def rounds(
    problem: mp.Problem, entry: dict[str, Any], n: int, number: int, size: int
) -> dict[str, Any]:
    """One round of networks of one size."""
    method = mp.Simulation(
        n=n,
        samples=size,
        seed=zlib.crc32(f"{entry} {n} {number}".encode()),
        device="cuda",
    )
    found = mp.solve(problem, entry["times"], method, two_time=not problem.layered)
    return {k: v.values for k, v in found.items()}


def pooled(found: list[dict[str, Any]], name: str) -> tuple[Any, Any]:
    """Mean and standard error of rounds of equal size."""
    means = np.array([f[name] for f in found])
    errors = np.array([f[f"{name}_se"] for f in found])
    return means.mean(axis=0), np.sqrt((errors**2).sum(axis=0)) / len(found)


def fitted(sizes: list[int], means: Any, errors: Any) -> tuple[Any, Any, Any]:
    """a of a + b/N by weighted least squares, its standard error, and χ²."""
    x = 1 / np.array(sizes, float).reshape(-1, *[1] * (means.ndim - 1))
    w = 1 / np.maximum(errors, 1e-12) ** 2
    s, sx, sxx = (np.sum(w * x**k, axis=0) for k in range(3))
    sy, sxy = np.sum(w * means, axis=0), np.sum(w * x * means, axis=0)
    det = s * sxx - sx**2
    a, b = (sxx * sy - sx * sxy) / det, (s * sxy - sx * sy) / det
    return a, np.sqrt(sxx / det), np.sum(w * (means - a - b * x) ** 2, axis=0)


def plain(values: Any, digits: int) -> Any:
    """Nested lists of numbers with so many digits."""
    if np.ndim(values):
        return [plain(v, digits) for v in values]
    return float(f"{float(values):.{digits}g}")


def table(name: str, seconds: float, size: int) -> dict[str, Any]:
    """Simulate until the errors are small enough."""
    entry = problems.EVERY[name]
    problem, sizes, begin = problems.problem(entry), list(SIZES), time.time()
    found: dict[int, list[dict[str, Any]]] = {n: [] for n in sizes}
    mp.solve(problem, [0.0], mp.Simulation(n=500, samples=1, device="cuda"))  # compile
    while True:
        for n in sizes:
            found[n].append(rounds(problem, entry, n, len(found[n]), size))
        out: dict[str, Any] = {}
        worst = 0.0
        for quantity in LAYERED if problem.layered else NAMES:
            means, errors = map(
                np.array, zip(*(pooled(found[n], quantity) for n in sizes), strict=True)
            )
            a, error, chi2 = fitted(sizes, means, errors)
            worst = max(worst, float((error / np.abs(a).max()).max()))
            out[quantity] = {
                "mean": plain(means, 7),
                "se": plain(errors, 3),
                "limit": plain(a, 7),
                "limit_se": plain(error, 3),
                "chi2": plain(chi2, 3),
            }
        count, spent = len(found[sizes[0]]), time.time() - begin
        if worst <= GOAL or spent * (1 + 1 / count) > seconds:
            break
    out["networks"] = {n: size * count for n in sizes}
    print(f"{name}: {count} rounds, {spent:.1f} s, largest relative error {worst:.2g}", flush=True)
    return {
        "name": name,
        **entry,
        "version": mp.__version__,
        "sizes": sizes,
        "seed": "crc32 of entry, size and round",
    } | out


def main() -> None:
    """Make all tables, or those named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", default=str(Path(__file__).parent))
    parser.add_argument("--seconds", type=float, default=25.0, help="the longest for one table")
    parser.add_argument("--round", type=int, default=ROUND, help="networks a round")
    given = parser.parse_args()
    for name in given.names or problems.EVERY:
        path = Path(given.out) / f"{name}.json"
        path.write_text(
            json.dumps(table(name, given.seconds, given.round)) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
