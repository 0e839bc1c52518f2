"""The paper's figures, computed at the paper's own parameters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from manypass import plot, results
from manypass.exact.method import Exact
from manypass.problem import Problem, Teacher
from manypass.rules import Adaline
from manypass.simulation.method import Simulation
from manypass.verbs import solve


def figure_2(folder: Path) -> list[Path]:
    """Adaline, α = 1.2, v = 1.9, λ = 0.8: theory, and simulations of 100 networks, N = 500."""
    problem = Problem(Teacher(alpha=1.2), Adaline(), rate=1.9, decay=0.8)
    theory = solve(problem, np.linspace(0, 6, 301))
    sampled = solve(problem, 6 * np.linspace(0, 1, 31) ** 2, Exact(samples=500_000, seed=0))
    data = solve(problem, np.linspace(0, 6, 25), Simulation(n=500, samples=100, seed=0))
    names = (
        "figure2.png",
        "figure2.pdf",
        "figure2-theory.nc",
        "figure2-training-error.nc",
        "figure2-simulation.nc",
    )
    paths = [folder / name for name in names]
    figure, (left, right) = plot.new_figure(2)
    plot.curves(theory, data, variables=plot.ORDER_PARAMETERS, ax=left)
    plot.curves(theory, variables=["Eg"], ax=right)
    plot.curves(sampled, variables=["Et"], ax=right)
    plot.curves(data, variables=plot.ERRORS, ax=right)
    for path in paths[:2]:
        plot.save_figure(figure, path)
    for result, path in zip((theory, sampled, data), paths[2:], strict=True):
        results.save(result, path)
    return paths


FIGURES: dict[int, Callable[[Path], list[Path]]] = {2: figure_2}


def reproduce(figures: list[int], folder: Path) -> list[Path]:
    """Compute the asked figures, all by default, into a folder; return the files written."""
    for number in figures:
        if number not in FIGURES:
            raise ValueError(
                f"`figures` must be among {', '.join(map(str, FIGURES))}, got {number}"
            )
    folder.mkdir(parents=True, exist_ok=True)
    return [path for number in figures or FIGURES for path in FIGURES[number](folder)]
