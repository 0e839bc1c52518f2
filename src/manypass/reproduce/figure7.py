"""Fig. 7: what repeated data are worth, and how errors fall with steps and with data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from manypass import results, worth
from manypass.checks import Array
from manypass.plot import SYMBOLS
from manypass.problem import Problem, Teacher
from manypass.reproduce.agreement import Panel, Symbol, compare, samples_of, size_of
from manypass.reproduce.parts import Part, Parts, Scale
from manypass.reproduce.style import axes, bars, line
from manypass.rules import Adaline
from manypass.simulation.method import Simulation
from manypass.verbs import solve

PASSES = np.array([1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256])
SEEN = np.array([1.0, 2, 4, 8, 16, 32, 64])
LAWS = {
    "isotropic": ("no correlations", "^", "#009e73"),
    "powerlaw:1.2:1.4:0.01": ("μ ~ $k^{-1.2}$, P ~ $k^{-1.4}$", "o", "#0072b2"),
    "powerlaw:2:1.5:0.01": ("μ ~ $k^{-2}$, P ~ $k^{-1.5}$", "s", "#d55e00"),
}
DATA = {0.25: ("o", "#56b4e9"), 1.0: ("s", "#0072b2"), 4.0: ("D", "#332288")}
MANY = np.array([0.125, 0.25, 0.5, 1.0, 2.0, 4.0])  # α of the plateaus
FEW = {0.05: ("o", "#cc79a7"), 0.2: ("s", "#d55e00")}
A, B = 3.0, 2.0  # exponents of (c) and (d)
STEEP = f"powerlaw:{A:g}:{B:g}:0.002"
SHARES = np.geomspace(0.01, 0.32, 6)
SCALING = (0.08, 0.32)  # α between which exponents are fitted, and for (c) in t


def repeated(law: str, alpha: float) -> Problem:
    """Return reshuffled epochs of (a) and (b)."""
    data = Teacher(alpha, task="regression", noise=0.1, inputs=law)
    return Problem(data, Adaline(), rate=0.2, sequence="reshuffled")


def steep(alpha: float, **changes: Any) -> Problem:
    """Return the problems of (c) and (d)."""
    noise = changes.pop("noise", 0.03)
    data = Teacher(alpha, task="regression", noise=noise, inputs=STEEP)
    return Problem(data, Adaline(), **{"rate": 0.1} | changes)


def parts(scale: Scale) -> list[Part]:
    """Theory and simulations of every panel."""
    found, law = [], "powerlaw:1.2:1.4:0.01"
    passes, seen = (PASSES[::2], SEEN[:5]) if scale.quick else (PASSES, SEEN)
    for alpha in DATA:
        this = repeated(law, alpha)
        found.append(Part(f"theory-{alpha}", worth.effective_data, this, {"passes": passes}, 1.5))
        for name, n, samples in (("simulation", 400, 100), ("half-simulation", 200, 200)):
            method = Simulation(n=n, samples=scale(samples), seed=scale.seed + n)
            arguments: dict[str, Any] = {"passes": seen, "method": method}
            found.append(Part(f"{name}-{alpha}", simulated, this, arguments, 2.0))
    many = MANY[::2] if scale.quick else MANY
    for name in LAWS:
        this = repeated(name, 1.0)
        found.append(Part(f"theory-plateau-{name}", plateaus, this, {"alphas": many}, 4.0))
    times = np.geomspace(0.003, 100, 91)
    for alpha in (*FEW, math.inf):
        late = times[times <= (3 if math.isinf(alpha) else 100)]
        method = Simulation(n=2000, samples=scale(20), seed=scale.seed)
        arguments = {"times": late[late > 0.01][:: 16 if scale.quick else 8], "method": method}
        found.append(Part(f"theory-steep-{alpha}", solve, steep(alpha), {"times": times}, 0.5))
        found.append(Part(f"simulation-steep-{alpha}", solve, steep(alpha), arguments, 3.0))
    shares = SHARES[1::2] if scale.quick else SHARES
    found.append(Part("theory-data", against_data, steep(1.0), {"alphas": shares}, 2.0))
    return [part for part in found if not (scale.quick and part.name.startswith("half"))]


def simulated(problem: Problem, passes: Array, method: Simulation) -> xr.Dataset:
    """Measure E_g after passes, and look up the fresh examples that it is worth in theory."""
    alpha = problem.teacher.alpha
    found = solve(problem, alpha * passes, method)[["Eg", "Eg_se"]]
    fresh = problem.replace(alpha=math.inf, sequence="replacement")
    D, low, high = (
        worth.worth(fresh, found.Eg.values + i * found.Eg_se.values, alpha) for i in (0, 1, -1)
    )
    values = {"effective_data": ("t", D), "effective_data_se": ("t", (high - low) / 2)}
    return found.assign(values).rename(t="passes").assign_coords(passes=passes)


def plateaus(problem: Problem, alphas: Sequence[float] | Array) -> xr.Dataset:
    """Compute what the second pass, and as many as help, are worth, against α."""
    found = [worth.effective_data(problem.replace(alpha=float(a)), PASSES[2::2]) for a in alphas]
    values = {
        "second": [float(f.effective_data[0]) / 2 for f in found],
        "plateau": [float(f.effective_data.max()) for f in found],
        "R_star": [float(f.R_star) for f in found],
    }
    named = {name: ("alpha", np.array(value)) for name, value in values.items()}
    return xr.Dataset(named, {"alpha": np.asarray(alphas)}, results.attributes(problem))


def against_data(problem: Problem, alphas: Sequence[float] | Array) -> xr.Dataset:
    """E_g of one pass over p = αN examples, and the least of gradient flow on them, ε = 1."""
    t, one, best = np.geomspace(1e-3, 1e4, 400), [], []
    for alpha in map(float, alphas):
        one.append(float(solve(problem.replace(alpha=math.inf), [alpha]).Eg[0]))
        flow = problem.replace(alpha=alpha, mode="batch", rate=1.0, noise=1.0)
        best.append(float(solve(flow, t).Eg.min()))
    named = {"one_pass": ("alpha", np.array(one)), "best": ("alpha", np.array(best))}
    return xr.Dataset(named, {"alpha": np.asarray(alphas)}, results.attributes(problem))


def caption(parts: Parts) -> str:
    """Say what is drawn."""
    first, second = parts["simulation-1.0"], parts["simulation-steep-inf"]
    return (
        "What repeated data are worth, for Adaline regression in reshuffled epochs, v = 0.2, "
        "λ = 0, ε = 0.1. (a) Fresh examples, in units of the training set, that give the error of "
        "k passes, for inputs with eigenvalues ∝ k^−1.2 and α = 0.25, 1 and 4 examples per weight. "
        "Lines: theory; dotted: the fit 1 + R*(1 − e^{−(k−1)/R*}); dashed: every pass counts in "
        f"full. Symbols: errors of {samples_of(first)} networks with N = {size_of(first)}. (b) "
        "The most that passes are worth, against the size of the training set, for three laws of "
        f"the inputs. (c) Error against steps, drawn with replacement, eigenvalues ∝ k^−{A:g} and "
        f"the teacher's power ∝ k^−{B:g}, v = 0.1, ε = 0.03: fresh examples (black) and repeated "
        f"ones; symbols: {samples_of(second)} networks with N = {size_of(second)}. Dashed: "
        "t^{(1−b)/a}. (d) Error against data: one pass (circles), and gradient flow stopped at its "
        "best, ε = 1 (squares); dashed: the powers (1 − b)/a and (1 − b)/b."
    )


def draw(parts: Parts) -> dict[str, Figure]:
    """Four panels, two columns wide."""
    figure, panels = axes(4, 2.5, columns=2)
    _worth(panels[0], parts)
    _plateaus(panels[1], parts)
    _steps(panels[2], parts)
    _data(panels[3], parts)
    for ax in panels:
        ax.set_xscale("log")
        ax.set_yscale("log")
        for axis in (ax.xaxis, ax.yaxis):
            low, high = axis.get_view_interval()
            axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 300 * low else (1,)))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter("")
    return {"figure7": figure}


def _worth(ax: Axes, parts: Parts) -> None:
    for alpha, (marker, colour) in DATA.items():
        found, runs = parts[f"theory-{alpha}"], parts[f"simulation-{alpha}"]
        line(ax, found, "effective_data", color=colour)
        line(ax, found, "fit", color=colour, ls=":", lw=0.8)
        label = rf"$\alpha={alpha:g}$, $R^*={float(found.R_star):.1f}$"
        bars(ax, runs, "effective_data", color=colour, marker=marker, mfc="white", label=label)
    ax.plot([1, 20], [1, 20], color="0.5", ls="--", lw=0.8, zorder=0)
    ax.annotate("all passes count", (6.2, 11), color="0.4", fontsize=7.5, ha="right")
    ax.set(xlabel="passes $k$", ylabel="effective data / data", xlim=(0.9, 290), ylim=(0.9, 20))
    ax.set_xscale("log")
    ax.legend(loc="lower right")


def _plateaus(ax: Axes, parts: Parts) -> None:
    for law, (label, marker, colour) in LAWS.items():
        found = parts[f"theory-plateau-{law}"]
        ax.plot(found.alpha, found.plateau, color=colour, marker=marker, ms=3.5, label=label)
    ax.set(xlabel=r"$\alpha$, examples per weight", ylabel="largest effective data / data")
    ax.set(xlim=(0.11, 4.6), ylim=(1.5, 200))
    ax.legend(loc="upper left")


def _steps(ax: Axes, parts: Parts) -> None:
    looks = {math.inf: ("D", "black"), **FEW}
    for alpha, (marker, colour) in looks.items():
        theory, runs = parts[f"theory-steep-{alpha}"], parts[f"simulation-steep-{alpha}"]
        name = "fresh examples" if math.isinf(alpha) else rf"$\alpha={alpha:g}$"
        line(ax, theory, "Eg", color=colour)
        bars(ax, runs, "Eg", color=colour, marker=marker, mfc="white", label=name)
        if math.isfinite(alpha):
            ax.axvline(alpha, color=colour, lw=0.6, ls=":", zorder=0)
    fresh = float(parts["theory-steep-inf"].Eg.interp(t=0.3))
    _guide(ax, (0.05, 30), (1 - B) / A, 0.8 * fresh, 0.3, r"$t^{(1-b)/a}$")
    ax.set(xlabel="$t$, steps per weight", ylabel=SYMBOLS["Eg"], xlim=(0.01, 110))
    ax.set_ylim(0.02, 0.6)
    ax.legend(loc="lower left")


def _data(ax: Axes, parts: Parts) -> None:
    found = parts["theory-data"]
    last = float(found.alpha[-1])
    for name, marker, colour, power, label, said, shift in (
        ("one_pass", "o", "black", (1 - B) / A, "one pass", r"$\alpha^{(1-b)/a}$", 1.15),
        ("best", "s", "#009e73", (1 - B) / B, "best of many passes", r"$\alpha^{(1-b)/b}$", 0.87),
    ):
        ax.plot(found.alpha, found[name], color=colour, marker=marker, ms=3.5, label=label)
        _guide(ax, (0.05, 0.36), power, shift * float(found[name][-1]), last, said, shift > 1)
    ax.set(xlabel=r"$\alpha$, examples per weight", ylabel=SYMBOLS["Eg"], xlim=(0.008, 0.45))
    ax.set_ylim(0.04, 0.6)
    ax.legend(loc="lower left")


def _guide(
    ax: Axes,
    span: tuple[float, float],
    power: float,
    value: float,
    at: float,
    label: str,
    above: bool = False,
) -> None:
    """Draw a power law through a value, with its name below its middle, or above."""
    x = np.array(span)
    ax.plot(x, value * (x / at) ** power, color="0.5", ls="--", lw=0.8, zorder=0)
    middle = math.sqrt(span[0] * span[1])
    place = (middle, value * (middle / at) ** power)
    look: dict[str, Any] = {"textcoords": "offset points", "color": "0.4", "fontsize": 8}
    if above:
        ax.annotate(label, place, (4, 3), ha="left", va="bottom", **look)
    else:
        ax.annotate(label, place, (-4, -3), ha="right", va="top", **look)


def panels(parts: Parts) -> list[Panel]:
    """z-scores of every symbol, and what has been claimed elsewhere, in numbers."""
    symbols: list[Symbol] = []
    for alpha in DATA:
        theory, large = parts[f"theory-{alpha}"], parts[f"simulation-{alpha}"]
        half = parts.get(f"half-simulation-{alpha}")
        symbols += compare(["Eg"], theory, large, half, f", α = {alpha:g}")
    first = Panel("Fig. 7(a)", symbols, samples_of(large), [_fits(parts), *_reuse(parts)])
    symbols = []
    for alpha in (*FEW, math.inf):
        theory, large = parts[f"theory-steep-{alpha}"], parts[f"simulation-steep-{alpha}"]
        symbols += compare(["Eg"], theory, large, None, f", α = {alpha:g}")
    return [first, Panel("Fig. 7(c)", symbols, samples_of(large), _exponents(parts))]


def _fits(parts: Parts) -> str:
    each = []
    for alpha in DATA:
        found = parts[f"theory-{alpha}"]
        off = float(np.abs(found.fit / found.effective_data - 1).max())
        each.append(f"R* = {float(found.R_star):.1f} at α = {alpha:g} (within {off:.0%})")
    return (
        "The form 1 + R*(1 − e^{−(k−1)/R*}), fitted to language models with R* = 15 (arXiv "
        f"2305.16264), has here {', '.join(each)}."
    )


def _reuse(parts: Parts) -> list[str]:
    """Compare with arXiv 2511.13421: the worth of K passes is K first, and then a plateau."""
    out = []
    for law, (name, _, _) in LAWS.items():
        found = parts[f"theory-plateau-{law}"]
        early = f"{float(found.second.min()):.2f} to {float(found.second.max()):.2f}"
        slopes = np.diff(np.log(found.plateau)) / np.diff(np.log(found.alpha))
        kind = "agrees" if slopes.min() > 0 else "does not hold at this constant rate throughout"
        values = ", ".join(f"{float(x):.3g}" for x in found.plateau)
        alphas = ", ".join(f"{float(x):g}" for x in found.alpha)
        out.append(
            f"That K passes are worth K at first, and then a plateau that grows with the data "
            f"(arXiv 2511.13421), {kind} for {name.replace('$', '')}: two passes are worth "
            f"{early} of two, and the plateaus at α = {alphas} are {values}, growing as α to the "
            f"power {', '.join(f'{x:.2f}' for x in slopes)} from one to the next."
        )
    out.append(
        "Where plateaus fall with α, fresh examples at this rate are held up by its noise no less "
        "than repeated ones: both are compared at one constant rate, not each at its best."
    )
    return out


def _exponents(parts: Parts) -> list[str]:
    """Compare with arXiv 2506.08415: L^{(1−b)/a}, N^{(1−b)/a} of one pass, N^{(1−b)/b} at best."""
    fresh, found = parts["theory-steep-inf"].Eg, parts["theory-data"]
    steps = slope(fresh.t.values, fresh.values, (0.3, 3.0))
    rows = [f"E_g of fresh examples against steps {steps:.3f} ({(1 - B) / A:.3f})"]
    for alpha in FEW:
        Eg = parts[f"theory-steep-{alpha}"].Eg
        rows.append(
            f"of α = {alpha:g} from one to four passes "
            f"{slope(Eg.t.values, Eg.values, (alpha, 4 * alpha)):.3f}"
        )
    for name, what, power in (
        ("one_pass", "of one pass against data", (1 - B) / A),
        ("best", "of the best of many passes against data", (1 - B) / B),
    ):
        fitted = slope(found.alpha.values, found[name].values, SCALING)
        rows.append(f"{what} {fitted:.3f} ({power:.3f})")
    return [
        f"Exponents, and in brackets those of arXiv 2506.08415 for a = {A:g}, b = {B:g}: "
        f"{'; '.join(rows)}. Fitted where 1/cut-off, the number of directions, is far away."
    ]


def slope(x: Array, y: Array, span: tuple[float, float]) -> float:
    """Power of y against x within a span."""
    inside = (x >= span[0] * (1 - 1e-9)) & (x <= span[1] * (1 + 1e-9))
    return float(np.polyfit(np.log(x[inside]), np.log(y[inside]), 1)[0])
