"""Fig. 2: learning curves of Adaline."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from manypass.exact.method import Exact
from manypass.plot import COLOURS, ERRORS, MARKERS, ORDER_PARAMETERS, SYMBOLS
from manypass.problem import Problem, Teacher
from manypass.reproduce.agreement import Panel, compare, networks, samples_of
from manypass.reproduce.parts import Part, Parts, Scale
from manypass.reproduce.style import axes, bars, line
from manypass.rules import Adaline
from manypass.simulation.method import Simulation
from manypass.verbs import solve

PROBLEM = Problem(Teacher(alpha=1.2), Adaline(), rate=1.9, decay=0.8)
SEEN = np.linspace(0, 6, 16)
EARLY = np.array([0.03, 0.08, 0.15, 0.25, 0.6])
SIZES = {125: 4000, 250: 2000, 500: 1000}  # networks that measure what the size does to F2
LATE = 4.0  # when


def parts(scale: Scale) -> list[Part]:
    """Theory; simulations of the paper's size and of half of it; F2 at three sizes."""

    def simulated(name: str, n: int, samples: int, times: object, seconds: float) -> Part:
        method = Simulation(n=n, samples=scale(samples), seed=scale.seed + n + samples)
        return Part(name, solve, PROBLEM, {"times": times, "method": method}, seconds)

    seen = SEEN[::3] if scale.quick else SEEN
    monte_carlo = {
        "times": np.union1d(seen, EARLY[::3] if scale.quick else EARLY),
        "method": Exact(samples=scale(500_000), seed=scale.seed),
    }
    return [
        Part("theory", solve, PROBLEM, {"times": np.linspace(0, 6, 601)}, 0.1),
        Part("theory-sampled", solve, PROBLEM, monte_carlo, 8.0),
        simulated("simulation", 500, 100, seen, 2.0),
        *([] if scale.quick else [simulated("half-simulation", 250, 400, seen, 2.0)]),
        *(
            simulated(f"size-{n}-simulation", n, s // 2 if scale.quick else s, [LATE], 5.0)
            for n, s in SIZES.items()
        ),
    ]


def caption(parts: Parts) -> str:
    """Say what is drawn."""
    return (
        "Evolution of (a) the teacher-student correlation R(t), the student autocorrelation C(t,t) "
        "and the force fluctuation ⟨F²(t)⟩, (b) the training error E_t and the generalization "
        "error E_g for Adaline learning at α = 1.2, v = 1.9 and λ = 0.8. Lines: the cavity method, "
        f"E_t from {samples_of(parts['theory-sampled']):,} Monte Carlo samples. Symbols: "
        f"simulations of {networks(parts['simulation'])}."
    )


def draw(parts: Parts) -> dict[str, Figure]:
    """Order parameters above, errors below; and F2 against 1/N."""
    figure, panels = axes(2)
    for ax, names in zip(panels, (ORDER_PARAMETERS, ERRORS), strict=True):
        for name in names:
            theory = parts["theory-sampled" if name == "Et" else "theory"]
            line(ax, theory, name, color=COLOURS[name])
            look = {"color": COLOURS[name], "marker": MARKERS[name], "label": SYMBOLS[name]}
            bars(ax, parts["simulation"], name, mfc="white", **look)
        ax.set(xlabel=r"$t$", xlim=(0, 6.15))
        ax.legend(loc="upper right")
    panels[0].set_ylim(0, 1.25)
    return {"figure2": figure, "figure2-size": draw_size(parts)}


def size_effect(parts: Parts) -> tuple[xr.Dataset, float, float]:
    """F2/F2(∞) − 1 at each N, and the slope a of a/N with its standard error."""
    n = np.array(list(SIZES))
    exact = parts["theory"].F2.sel(t=LATE).item()
    found = [parts[f"size-{k}-simulation"].isel(t=0) for k in n]
    off = np.array([f.F2.item() / exact - 1 for f in found])
    error = np.array([f.F2_se.item() / exact for f in found])
    weight = 1 / (n * error) ** 2
    slope = float(np.sum(off / (n * error**2)) / weight.sum())
    data = xr.Dataset({"off": ("n", off), "off_se": ("n", error)}, {"n": n})
    return data, slope, float(weight.sum() ** -0.5)


def draw_size(parts: Parts) -> Figure:
    """Relative excess of F2 against 1/N, which vanishes for large N."""
    data, slope, _ = size_effect(parts)
    figure, (ax,) = axes(1, 2.0)
    inverse = 1000 / data.n
    ax.plot([0, 1000 / min(SIZES)], [0, 0.1 * slope * 1000 / min(SIZES)], color="black")
    ax.errorbar(inverse, 100 * data.off, 100 * data.off_se, fmt="^", mfc="white", color="#009e73")
    ax.set(xlabel=r"$1000/N$", ylabel=r"excess of $\langle F^2\rangle$ (%)", xlim=(0, None))
    ax.axhline(0, color="0.7", lw=0.6, zorder=0)
    return figure


def panels(parts: Parts) -> list[Panel]:
    """z-scores of both panels, and how F2 depends on N."""
    sampled = parts["theory-sampled"]
    large, half = parts["simulation"], parts.get("half-simulation")
    data, slope, error = size_effect(parts)
    z = (data.off - slope / data.n) / data.off_se
    table = ", ".join(
        f"N = {n}: {100 * off:.2f}({100 * se:.2f}) %"
        for n, off, se in zip(data.n.values, data.off.values, data.off_se.values, strict=True)
    )
    remark = (
        f"⟨F²⟩ of finite networks is higher. Its excess at t = {LATE:g}, from separate runs, is "
        f"{table}; a fit by a/N gives a = {slope:.1f}({error:.1f}), and no size is off it by more "
        f"than {float(np.abs(z).max()):.1f} standard errors: the excess shrinks as 1/N and is "
        f"{slope / 5:.1f} % at the paper's N = 500."
    )
    return [
        Panel(
            "Fig. 2(a)",
            list(compare(ORDER_PARAMETERS, sampled, large, half)),
            samples_of(large),
            [remark],
        ),
        Panel("Fig. 2(b)", list(compare(ERRORS, sampled, large, half)), samples_of(large)),
    ]
