"""Fig. 8, which the paper could not draw: recycled examples and the plateau of a committee."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from manypass.cavity.method import DMFT
from manypass.layers.plateau import HALF, apart
from manypass.layers.rule import Committee
from manypass.plot import SYMBOLS
from manypass.problem import Problem, Teacher
from manypass.reproduce.agreement import Panel, Symbol, compare, networks, samples_of
from manypass.reproduce.parts import Part, Parts, Scale
from manypass.reproduce.style import axes, bars, line
from manypass.simulation.method import Simulation
from manypass.start import Start
from manypass.verbs import solve

EYE = np.eye(2)
PROBLEM = Problem(
    Teacher(math.inf, "regression", hidden=2),
    Committee(2),
    rate=1.5,
    start=Start(R=[[0.2, 0.05], [0.05, 0.15]], Q=0.25 * EYE),
)
ALPHAS = (1.5, 3.0, 6.0)
UNTIL = 40.0
LOOKS = {1.5: ("o", "#d55e00"), 3.0: ("s", "#0072b2"), 6.0: ("^", "#009e73"), math.inf: ("", "0.2")}
OVERLAPS = {"R11": "-", "R12": "--"}


def parts(scale: Scale) -> list[Part]:
    """One pass, and for every α theory and simulations of two sizes."""
    times = np.linspace(0, UNTIL, 41 if scale.quick else 161)
    found = [Part("theory-one-pass", solve, PROBLEM, {"times": times}, 1.0)]
    theory = DMFT(samples=16_000 if scale.quick else 64_000, seed=scale.seed)
    seen = np.array([1.0, 3.0, 5.0, 10.0, 20.0, 30.0, 40.0])
    for alpha in ALPHAS:
        this = PROBLEM.replace(alpha=alpha)
        asked: dict[str, Any] = {"times": times, "method": theory}
        found.append(Part(f"theory-{alpha:g}", solve, this, asked, 3.0 if scale.quick else 30.0))
        for name, n, samples in (("simulation", 500, 100), ("half-simulation", 250, 400)):
            if scale.quick and name != "simulation":
                continue
            method = Simulation(n=n, samples=scale(samples), seed=scale.seed + n)
            arguments = {"times": seen, "method": method}
            found.append(Part(f"{name}-{alpha:g}", solve, this, arguments, scale(20, 1)))
    return found


def caption(parts: Parts) -> str:
    """Say what is drawn."""
    return (
        "Two layers, K = M = 2, erf, v = 1.5: (a) generalization and (b) training error, (c) "
        "overlaps of the first unit with its own (solid) and the other (dashed) unit of the "
        "teacher, (d) how different the units are, S, for p = αN examples that are recycled "
        "(colours) and for fresh ones for ever (grey, the one-pass theory of Saad and Solla). "
        "Recycling lengthens the plateau, which ends when S rises above ½ (dotted): with few "
        "examples the training error vanishes while the units are still alike. Lines: theory, "
        "N → ∞. Symbols: "
        f"simulations of {networks(parts[f'simulation-{ALPHAS[0]:g}'])}."
    )


def special(found: xr.Dataset) -> Any:
    """S of a result."""
    return apart(found.R.values, found.Q.values, EYE)


def flat(found: xr.Dataset) -> xr.Dataset:
    """Return errors and the overlaps of the first unit as curves in t alone."""
    out = found[["Eg", "Et", *(n for n in ("Eg_se", "Et_se") if n in found)]]
    for k, name in enumerate(OVERLAPS):
        for tail in ("", "_se"):
            if f"R{tail}" in found:
                out[f"{name}{tail}"] = found[f"R{tail}"][:, 0, k]
    return out.drop_vars(["unit", "teacher"], errors="ignore")


def _theories(parts: Parts) -> dict[float, xr.Dataset]:
    found = {alpha: parts[f"theory-{alpha:g}"] for alpha in ALPHAS}
    return found | {math.inf: parts["theory-one-pass"]}


def draw(parts: Parts) -> dict[str, Figure]:
    """Errors above, overlaps and specialization below."""
    figure, (first, second, third, fourth) = axes(4, 2.2, columns=2)
    for alpha, result in _theories(parts).items():
        marker, colour = LOOKS[alpha]
        theory = flat(result)
        data = flat(parts[f"simulation-{alpha:g}"]) if marker else None
        label = rf"$\alpha={alpha:g}$" if marker else r"$\alpha=\infty$"
        for ax, name, style in (
            (first, "Eg", "-"),
            (second, "Et", "-"),
            *((third, n, ls) for n, ls in OVERLAPS.items()),
        ):
            line(ax, theory, name, ls=style, color=colour, label="" if data is not None else label)
            if data is not None:
                mine = label if style == "-" else ""
                bars(ax, data, name, color=colour, marker=marker, mfc="white", label=mine)
        fourth.plot(result.t, special(result), color=colour)
        if data is not None:
            runs = parts[f"simulation-{alpha:g}"]
            fourth.plot(runs.t, special(runs), marker, color=colour, ms=3.2, mfc="white", mew=0.7)
    fourth.axhline(HALF, color="0.7", lw=0.7, ls=":")
    labels = (SYMBOLS["Eg"], SYMBOLS["Et"], r"$R_{11}$, $R_{12}$", r"$S$")
    for ax, label in zip((first, second, third, fourth), labels, strict=True):
        ax.set(xlabel=r"$t$", ylabel=label, xlim=(0, UNTIL * 1.02))
    for ax in (first, second):
        ax.set_yscale("log")
    third.set_ylim(0, 1)
    fourth.set_ylim(0, 1)
    first.legend(loc="lower left")
    return {"figure8": figure}


def panels(parts: Parts) -> list[Panel]:
    """z-scores of every symbol."""
    symbols: list[Symbol] = []
    for alpha in ALPHAS:
        names = ("Eg", "Et", *OVERLAPS)
        theory, large = (flat(parts[f"{kind}-{alpha:g}"]) for kind in ("theory", "simulation"))
        half = parts.get(f"half-simulation-{alpha:g}")
        small = None if half is None else flat(half)
        symbols += compare(names, theory, large, small, f", α = {alpha:g}")
    return [Panel("Fig. 8(a–c)", symbols, samples_of(parts[f"simulation-{ALPHAS[0]:g}"]))]
