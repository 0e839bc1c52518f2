"""Fig. 5, which the paper could not draw: its Figs. 2 and 3 for a nonlinear rule, Adatron."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from manypass import results
from manypass.cavity.activations import activations
from manypass.cavity.method import DMFT
from manypass.plot import COLOURS, ERRORS, MARKERS, ORDER_PARAMETERS, SYMBOLS
from manypass.problem import Problem, Teacher
from manypass.reproduce.agreement import Panel, Symbol, compare, samples_of, size_of
from manypass.reproduce.parts import Part, Parts, Scale, late_curve
from manypass.reproduce.style import axes, bars, line
from manypass.rules import Adatron
from manypass.simulation.method import Simulation
from manypass.verbs import solve

CURVES = Problem(Teacher(alpha=1.2), Adatron(kappa=1.0), rate=1.9, decay=0.8)
TIMES = np.linspace(0, 6, 121)
SEEN = TIMES[::10]
RATES = np.array([0.5, 1.0, 2.0, 3.0])
LATE = np.array([10.0, 6.0, 4.0, 3.5])  # nothing moves any more
DECAYS = {0.4: ("-", "o", "#0072b2"), 0.8: ("--", "s", "#d55e00")}
EDGES = np.linspace(-1.5, 2.7, 29)


def parts(scale: Scale) -> list[Part]:
    """Mean-field theory and simulations of every panel."""

    def simulated(n: int, samples: int) -> Simulation:
        return Simulation(n=n, samples=scale(samples), seed=scale.seed + n + samples)

    accuracy: dict[str, Any] = (
        {"dt": 1.0, "samples": 4000} if scale.quick else {"dt": 0.1, "samples": 16_000}
    )
    times = TIMES[::10] if scale.quick else TIMES
    field = DMFT(**accuracy, seed=scale.seed)
    chosen = [0, 2] if scale.quick else slice(None)
    rates, late = RATES[chosen], LATE[chosen]
    population = DMFT(dt=0.1, seed=scale.seed)
    found = [
        Part("theory", solve, CURVES, {"times": times, "method": field}, 5.0),
        Part(
            "theory-stability",
            stability,
            CURVES,
            {"source": population, "size": 3000, "runs": scale(24, 6)},
            3.0,
        ),
        Part("simulation", solve, CURVES, {"times": SEEN, "method": simulated(500, 100)}, 2.0),
        Part("half-simulation", solve, CURVES, {"times": SEEN, "method": simulated(250, 400)}, 2.0),
        Part("simulation-stability", stability, CURVES, {"source": simulated(1000, 100)}, 3.0),
        Part("half-simulation-stability", stability, CURVES, {"source": simulated(500, 200)}, 2.0),
    ]
    for decay in DECAYS:
        this = Problem(Teacher(alpha=0.5), Adatron(kappa=1.0), rate=1.0, decay=decay)
        for name, method, seconds in (
            ("theory", DMFT(dt=1.0, samples=scale(8_000, 6_400), seed=scale.seed), 7.0),
            ("simulation", simulated(1000, 100), 6.0),
            ("half-simulation", simulated(500, 200), 4.0),
        ):
            arguments = {"rates": rates, "times": late, "method": method}
            found.append(Part(f"{name}-{decay}", late_curve, this, arguments, seconds))
    left_out = ("half", "theory-0.4", "simulation-0.4") if scale.quick else ()
    return [part for part in found if not part.name.startswith(left_out)]


def stability(problem: Problem, source: Any, size: int = 0, runs: int = 0) -> xr.Dataset:
    """Density of ỹx at t = 6, its mean and standard error over networks or populations."""
    if isinstance(source, Simulation):
        runs, size = source.samples, round(problem.data.alpha * source.n)
        seen = activations(problem, 6.0, samples=size * runs, source=source)
        found = np.split((seen.target * seen.x).values, runs)
    else:
        made = [replace(source, seed=source.seed + i) for i in range(runs)]
        each = [activations(problem, 6.0, samples=size, source=m) for m in made]
        found = [(seen.target * seen.x).values for seen in each]
    density = np.array([np.histogram(f, EDGES)[0] / size for f in found]) / np.diff(EDGES)
    error = density.std(axis=0, ddof=1) / np.sqrt(runs)
    values = {"P": ("x", density.mean(axis=0)), "P_se": ("x", error)}
    made_by = {"method": json.dumps(results.method_entry(source)), "runs": runs}
    centres = (EDGES[1:] + EDGES[:-1]) / 2
    return xr.Dataset(values, {"x": centres}, results.attributes(problem) | made_by)


def caption(parts: Parts) -> str:
    """Say what is drawn."""
    decays = shown(parts)
    curves, late = parts["simulation"], parts[f"simulation-{decays[0]}"]
    styles = {0.4: "solid, circles", 0.8: "dashed, squares"}
    first, *rest = [f"{decay} ({styles[decay]}" for decay in decays]
    lines = " and ".join([f"{first}: E_t filled, E_g open)", *(f"{other})" for other in rest)])
    return (
        "The Adatron rule with κ = 1, for which there is no closed theory. Lines, with a band of "
        "one standard error: the mean-field solver, N → ∞. Symbols: simulations of "
        f"{samples_of(curves)} networks, N = {size_of(curves)} in (a), (b) and {size_of(late)} in "
        "(c). (a) R(t), C(t,t) and ⟨F²(t)⟩ and (b) errors at α = 1.2, v = 1.9, λ = 0.8. (c) Late "
        f"errors against the learning rate at α = 0.5 for λ = {lines}. (d) Distribution of the "
        "stability ỹx of the training examples of (a) at t = 6, and of networks with N = "
        f"{size_of(parts['simulation-stability'])}; dashed: κ."
    )


def draw(parts: Parts) -> dict[str, Figure]:
    """Four panels, two columns wide."""
    figure, (first, second, third, fourth) = axes(4, 2.3, columns=2)
    for ax, names in ((first, ORDER_PARAMETERS), (second, ERRORS)):
        for name in names:
            look = {"color": COLOURS[name], "marker": MARKERS[name], "label": SYMBOLS[name]}
            line(ax, parts["theory"], name, color=COLOURS[name])
            bars(ax, parts["simulation"], name, mfc="white", **look)
        ax.set(xlabel=r"$t$", xlim=(0, 6.15), ylim=(0, 1.12 if "R" in names else None))
        ax.legend(loc="upper right")
    for decay in shown(parts):
        style, marker, colour = DECAYS[decay]
        for name, face in (("Et", colour), ("Eg", "white")):
            line(third, parts[f"theory-{decay}"], name, ls=style, color=colour)
            look = {"color": colour, "marker": marker, "mfc": face}
            label = rf"{SYMBOLS[name]}, $\lambda={decay}$"
            bars(third, parts[f"simulation-{decay}"], name, label=label, **look)
    third.set(xlabel=r"$v$", xlim=(0, 3.2), ylim=(0, 0.5))
    third.legend(loc="upper left", ncols=2)
    line(fourth, parts["theory-stability"], "P", color="black", label="mean field")
    look = {"color": "#d55e00", "marker": "o", "mfc": "white", "label": "simulated"}
    bars(fourth, parts["simulation-stability"], "P", **look)
    fourth.set(xlabel=r"$\tilde y x$", ylabel="density", xlim=(-1.5, 2.7), ylim=(0, None))
    fourth.axvline(1.0, color="0.7", lw=0.6, ls="--", zorder=0)
    fourth.legend(loc="upper left")
    return {"figure5": figure}


def shown(parts: Parts) -> list[float]:
    """Return the decays that panel (c) has been computed for."""
    return [decay for decay in DECAYS if f"theory-{decay}" in parts]


def panels(parts: Parts) -> list[Panel]:
    """z-scores of every symbol; theory and simulation both have error bars."""
    theory = parts["theory"]
    large, half = parts["simulation"], parts.get("half-simulation")
    found = [
        Panel(title, list(compare(names, theory, large, half)), samples_of(large))
        for title, names in (("Fig. 5(a)", ORDER_PARAMETERS), ("Fig. 5(b)", ERRORS))
    ]
    symbols: list[Symbol] = []
    for decay in shown(parts):
        mean, large = parts[f"theory-{decay}"], parts[f"simulation-{decay}"]
        half = parts.get(f"half-simulation-{decay}")
        symbols += compare(ERRORS, mean, large, half, f", λ = {decay}")
    found.append(Panel("Fig. 5(c)", symbols, samples_of(large)))
    mean, large = parts["theory-stability"], parts["simulation-stability"]
    bins = compare(["P"], mean, large, parts.get("half-simulation-stability"))
    return [*found, Panel("Fig. 5(d)", list(bins), mean.attrs["runs"])]
