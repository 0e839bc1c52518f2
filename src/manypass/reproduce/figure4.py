"""Fig. 4: what averaging the weights over a monitoring time does to the generalization error."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from manypass.exact.method import Exact
from manypass.exact.steady import critical_rate
from manypass.problem import Problem, Teacher
from manypass.reproduce.agreement import Panel, Symbol, compare, networks, samples_of
from manypass.reproduce.parts import Part, Parts, Scale, steady_curve
from manypass.reproduce.style import axes, bars, line
from manypass.rules import Adaline
from manypass.simulation.method import Simulation

PROBLEM = Problem(Teacher(alpha=2.0), Adaline(), rate=1.0, decay=0.2)
WINDOWS = {
    0.0: ("o", "#000000"),
    2.0: ("s", "#0072b2"),
    5.0: ("D", "#009e73"),
    10.0: ("^", "#d55e00"),
    20.0: ("v", "#cc79a7"),
}
LINES = ", ".join(f"{window:g}" for window in WINDOWS)
SHAPES = {"o": "circles", "s": "squares", "D": "diamonds", "^": "triangles up"}
SHAPES["v"] = "triangles down"
RATES = np.array([0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2])
SETTLE = 100.0  # the slowest relaxation is v(λ + 0.086): 17 time units at v = 0.2


def parts(scale: Scale) -> list[Part]:
    """For each τ: theory up to v_c, and simulations of the paper's size and of half of it."""
    rates = critical_rate(PROBLEM) * (1 - np.geomspace(0.999, 1e-6, scale(200, 60)))
    seen = RATES[2::4] if scale.quick else RATES
    found = []
    for window in WINDOWS:
        theory = {"rates": np.union1d(rates, RATES), "method": Exact(), "window": window}
        found.append(Part(f"theory-{window:g}", steady_curve, PROBLEM, theory, 0.5))
        settle = SETTLE / 4 if scale.quick else SETTLE
        sizes = [("", 1000, 10, 7.0), ("half-", 500, 40, 7.0)]
        if scale.quick:
            sizes = sizes[:1] if window in (0, 5, 20) else []
        for name, n, samples, seconds in sizes:
            seed = scale.seed + n + int(window)
            method = Simulation(n=n, samples=scale(samples, 3), seed=seed, settle=settle)
            arguments = {"rates": seen, "method": method, "window": window}
            part = Part(f"{name}simulation-{window:g}", steady_curve, PROBLEM, arguments, seconds)
            found.append(part)
    return found


def caption(parts: Parts) -> str:
    """Say what is drawn."""
    seen = simulated(parts)
    *first, last = [f"{window:g} ({SHAPES[WINDOWS[window][0]]})" for window in seen]
    return (
        "Steady-state generalization error E_g of weights averaged over monitoring times τ, for "
        f"Adaline at α = 2 and λ = 0.2. Symbols: simulations of "
        f"{networks(parts[f'simulation-{seen[0]:g}'])} and τ = {', '.join(first)} and {last}. "
        f"Lines: theory{'' if len(seen) == len(WINDOWS) else f' for τ = {LINES}'}. All lines start "
        "from batch learning at v = 0 and end at the same critical rate v_c (vertical)."
    )


def simulated(parts: Parts) -> list[float]:
    """Return the τ that have symbols."""
    return [window for window in WINDOWS if f"simulation-{window:g}" in parts]


def draw(parts: Parts) -> dict[str, Figure]:
    """One panel, one line for each τ."""
    figure, (ax,) = axes(1, 2.7)
    for window, (marker, colour) in WINDOWS.items():
        line(ax, parts[f"theory-{window:g}"], "Eg", color=colour)
        look = {"color": colour, "marker": marker, "label": rf"$\tau={window:g}$"}
        if f"simulation-{window:g}" in parts:
            bars(ax, parts[f"simulation-{window:g}"], "Eg", **look)
    ax.axvline(critical_rate(PROBLEM), color="0.5", lw=0.6)
    ax.set(xlabel=r"$v$", ylabel=r"$E_g$", xlim=(0, 2.45), ylim=(0.17, 0.51))
    ax.legend(loc="upper left")
    return {"figure4": figure}


def panels(parts: Parts) -> list[Panel]:
    """z-scores of all symbols; the error bars of ten networks are themselves uncertain."""
    symbols: list[Symbol] = []
    for window in simulated(parts):
        theory, large = parts[f"theory-{window:g}"], parts[f"simulation-{window:g}"]
        half = parts.get(f"half-simulation-{window:g}")
        symbols += compare(["Eg"], theory, large, half, f", τ = {window:g}")
    return [Panel("Fig. 4", symbols, samples_of(large))]
