"""Fig. 6, which the paper could not draw: the three orders of the examples, epoch by epoch."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from manypass.cavity.method import DMFT
from manypass.plot import SYMBOLS
from manypass.problem import SEQUENCES, Problem, Teacher
from manypass.reproduce.agreement import Panel, Symbol, compare, networks, samples_of
from manypass.reproduce.parts import Part, Parts, Scale
from manypass.reproduce.style import axes, bars, line
from manypass.rules import Adaline, Adatron
from manypass.simulation.method import Simulation
from manypass.verbs import solve

RULES = {
    "adaline": Problem(
        Teacher(alpha=0.6, task="regression", noise=0.5), Adaline(), rate=1.4, decay=0.2
    ),
    "adatron": Problem(Teacher(alpha=1.0), Adatron(kappa=1.0), rate=1.0, decay=0.1),
}
PASSES = 6
PER_PASS = 8  # points of a line in every epoch; symbols are at half and whole epochs
ERRORS = ("Et", "Eg")
LOOKS = {
    "replacement": ("-", "o", "#0072b2"),
    "reshuffled": ("--", "s", "#d55e00"),
    "fixed": (":", "^", "#009e73"),
}


def parts(scale: Scale) -> list[Part]:
    """Theory and simulations of every rule and order."""
    found = []
    accuracy: dict[str, Any] = (
        {"dt": 0.5, "samples": 12_800} if scale.quick else {"dt": 0.125, "samples": 16_000}
    )
    for rule, problem in RULES.items():
        last = PASSES // 2 if scale.quick and rule != "adaline" else PASSES
        passes = np.arange(last * PER_PASS + 1) / PER_PASS * problem.data.alpha
        seen = passes[:: PER_PASS if scale.quick else PER_PASS // 2]
        for order in SEQUENCES:
            this = problem.replace(sequence=order)
            arguments: dict[str, Any] = {"times": passes}  # closed, if that is all that is asked
            if rule != "adaline":
                arguments["method"] = DMFT(**accuracy, seed=scale.seed)
            seconds = 1.0 if rule == "adaline" else 6.0
            found.append(Part(f"theory-{rule}-{order}", solve, this, arguments, seconds))
            for name, n, samples in (("simulation", 500, 100), ("half-simulation", 250, 400)):
                seed = scale.seed + n + samples
                method = Simulation(n=n, samples=scale(samples), seed=seed)
                arguments = {"times": seen, "method": method}
                found.append(Part(f"{name}-{rule}-{order}", solve, this, arguments, 2.0))
    return [part for part in found if not (scale.quick and part.name.startswith("half"))]


def caption(parts: Parts) -> str:
    """Say what is drawn."""
    return (
        "The order of the examples: drawn with replacement (solid, circles), every example once "
        "per epoch in a new order each time (dashed, squares), and in one order for ever (dotted, "
        "triangles). (a) Training and (b) generalization error of Adaline regression against the "
        "passes over the training set, at α = 0.6, ε = 0.5, v = 1.4, λ = 0.2; (c), (d) the same of "
        "the Adatron rule, κ = 1, at α = 1, v = 1, λ = 0.1. Lines: theory, N → ∞, closed for "
        "Adaline and by the mean-field solver for Adatron. Symbols: simulations of "
        f"{networks(parts['simulation-adaline-fixed'])}."
    )


def draw(parts: Parts) -> dict[str, Figure]:
    """Two rows of two panels: a rule each, training error left, generalization error right."""
    figure, panels = axes(4, 2.2, columns=2)
    for i, (rule, name) in enumerate((rule, name) for rule in RULES for name in ERRORS):
        ax, alpha = panels[i], RULES[rule].data.alpha
        for order, (style, marker, colour) in LOOKS.items():
            theory, data = (parts[f"{kind}-{rule}-{order}"] for kind in ("theory", "simulation"))
            theory, data = (each.assign_coords(t=each.t / alpha) for each in (theory, data))
            line(ax, theory, name, ls=style, color=colour)
            bars(ax, data, name, color=colour, marker=marker, mfc="white", label=order)
        ax.set(xlabel="passes", ylabel=SYMBOLS[name], xlim=(0, PASSES + 0.1))
        ax.set_ylim(*{"Eg": (0.22, 0.5), "Et": (0, 0.3 if rule == "adaline" else 0.2)}[name])
        if not i:
            ax.legend(loc="upper right")
    return {"figure6": figure}


def panels(parts: Parts) -> list[Panel]:
    """z-scores of every symbol, at half and whole epochs."""
    found = []
    for letters, rule in (("a, b", "adaline"), ("c, d", "adatron")):
        symbols: list[Symbol] = []
        for order in SEQUENCES:
            theory, large = (parts[f"{kind}-{rule}-{order}"] for kind in ("theory", "simulation"))
            half = parts.get(f"half-simulation-{rule}-{order}")
            symbols += compare(("F2", *ERRORS), theory, large, half, f", {order}")
        found.append(Panel(f"Fig. 6({letters})", symbols, samples_of(large)))
    return found
