"""Fig. 3: steady-state errors of Adaline against the learning rate, up to divergence."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.interpolate import PchipInterpolator

from manypass.checks import Array
from manypass.exact.mean_force import MeanForce
from manypass.exact.method import Exact
from manypass.exact.steady import critical_rate
from manypass.problem import Problem, Teacher
from manypass.reproduce.agreement import Panel, Symbol, compare, networks, samples_of
from manypass.reproduce.parts import Part, Parts, Scale, late_curve, steady_curve
from manypass.reproduce.style import axes, bars, line
from manypass.rules import Adaline
from manypass.simulation.method import Simulation

DECAYS = {0.4: ("-", "o", "#0072b2"), 0.8: ("--", "s", "#d55e00")}
RATES = {
    0.4: np.array([0.6, 1.0, 1.4, 1.7, 1.9, 2.1, 2.25]),
    0.8: np.array([0.6, 1.0, 1.4, 1.8, 2.1, 2.4, 2.6]),
}
UNTIL = 20.0  # by then the exact E_g is within 0.00002 of its steady state at all these rates


def problem(decay: float) -> Problem:
    """One of the two lines."""
    return Problem(Teacher(alpha=0.5), Adaline(), rate=1.0, decay=decay)


def parts(scale: Scale) -> list[Part]:
    """For each λ: E_g at many rates, E_t sampled at some, and simulations of two sizes."""
    found = []
    for decay in DECAYS:
        this, seen = problem(decay), RATES[decay][:: 2 if scale.quick else 1]
        limit = critical_rate(this)
        close = 1 - np.geomspace(0.999, 1e-6, scale(200, 60))  # ever denser towards v_c
        sampled = Exact(accuracy=4e-3 if scale.quick else 8e-4, seed=scale.seed)
        for name, call, arguments, seconds in (
            ("theory", steady_curve, {"rates": limit * close, "method": Exact()}, 0.3),
            ("theory-sampled", steady_curve, {"rates": seen, "method": sampled}, 4.0),
            ("simulation", late_curve, runs(seen, 1000, 100, scale), 8.0),
            ("half-simulation", late_curve, runs(seen, 500, 200, scale), 5.0),
        ):
            if not (scale.quick and name.startswith("half")):
                found.append(Part(f"{name}-{decay}", call, this, arguments, seconds))
    rates = np.linspace(0.01, 3.1, scale(100, 40))
    arguments = {"rates": rates, "method": MeanForce()}
    return [*found, Part("theory-mean-force", steady_curve, problem(0.8), arguments, 0.3)]


def runs(rates: Array, n: int, samples: int, scale: Scale) -> dict[str, object]:
    """Return the arguments of simulations at all rates."""
    method = Simulation(n=n, samples=scale(samples), seed=scale.seed + n)
    return {"rates": rates, "times": UNTIL, "method": method}


def training_error(parts: Parts, decay: float) -> xr.Dataset:
    """E_t between its samples, smooth in √(1 − v/v_c): from batch learning to a guess at v_c."""
    sampled, this = parts[f"theory-sampled-{decay}"], problem(decay)
    limit = critical_rate(this)
    batch = steady_curve(this.replace(mode="batch"), [1.0], Exact()).Et.item()
    rates = np.concatenate([[0.0], sampled.rate.values, [limit]])[::-1]
    errors = np.concatenate([[batch], sampled.Et.values, [0.5]])[::-1]
    fine = np.linspace(0, 1, 400)
    curve = PchipInterpolator(np.sqrt(1 - rates / limit), errors)(fine)
    return xr.Dataset({"Et": ("rate", curve)}, {"rate": limit * (1 - fine**2)})


def caption(parts: Parts) -> str:
    """Say what is drawn."""
    return (
        "Dependence of (a) the training error E_t and (b) the generalization error E_g on the "
        "learning rate v for Adaline at α = 0.5. Solid and dashed: steady states by the cavity "
        "method for λ = 0.4 and 0.8. Symbols: simulations of "
        f"{networks(parts['simulation-0.4'])} at t = {UNTIL:g}. Dotted: the mean-force "
        "approximation for λ = 0.8. Vertical lines: the critical rates v_c, beyond which learning "
        "diverges and the errors are those of a guess."
    )


def draw(parts: Parts) -> dict[str, Figure]:
    """Training error above, generalization error below."""
    figure, (above, below) = axes(2)
    for decay, (style, marker, colour) in DECAYS.items():
        look = {"color": colour, "label": rf"$\lambda={decay}$"}
        line(above, training_error(parts, decay), "Et", ls=style, **look)
        line(below, parts[f"theory-{decay}"], "Eg", ls=style, **look)
        for ax, name in ((above, "Et"), (below, "Eg")):
            data = parts[f"simulation-{decay}"]
            bars(ax, data, name, color=colour, marker=marker, mfc="white")
            limit = critical_rate(problem(decay))
            ax.axvline(limit, color=colour, lw=0.6, ls=style, alpha=0.6)
    for ax, name, label in ((above, "Et", r"$E_t$"), (below, "Eg", r"$E_g$")):
        mean_force = r"mean force, $\lambda=0.8$"
        line(ax, parts["theory-mean-force"], name, ls=":", color="black", label=mean_force)
        ax.set(xlabel=r"$v$", ylabel=label, xlim=(0, 3.05))
        ax.legend(loc="upper left")
    above.set_ylim(0, 0.52)
    below.set_ylim(0.31, 0.51)
    return {"figure3": figure}


def panels(parts: Parts) -> list[Panel]:
    """z-scores against the steady state."""
    found = []
    for title, name in (("Fig. 3(a)", "Et"), ("Fig. 3(b)", "Eg")):
        symbols: list[Symbol] = []
        for decay in DECAYS:
            steady, large = parts[f"theory-sampled-{decay}"], parts[f"simulation-{decay}"]
            half = parts.get(f"half-simulation-{decay}")
            symbols += compare([name], steady, large, half, f", λ = {decay}")
        found.append(Panel(title, symbols, samples_of(large)))
    return found
