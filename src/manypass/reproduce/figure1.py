"""Fig. 1: one example in the network that learns it, and in one that does not."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from manypass import results
from manypass.problem import Problem, Teacher
from manypass.reproduce.agreement import Panel, Symbol, ratio
from manypass.reproduce.parts import Part, Parts, Scale
from manypass.reproduce.style import axes
from manypass.rules import Adatron
from manypass.simulation.cavity import cavity_experiment

PROBLEM = Problem(Teacher(alpha=0.3), Adatron(kappa=0.8), rate=0.1, decay=0.1)
CIRCLES = np.linspace(0.1, 3, 30)
SIZES = (250, 1000)


def parts(scale: Scale) -> list[Part]:
    """One experiment to draw, and more of two sizes that tell the scatter of its circles."""
    every = np.linspace(0, 3, 151 if scale.quick else 301)
    shown = {"times": every, "n": 1000, "seed": scale.seed, "stimuli": scale(100, 3)}
    found = [Part("experiment-simulation", cavity_experiment, PROBLEM, shown, 4.0)]
    for n in SIZES:
        many = {"count": scale(32, 4), "stimuli": scale(10, 2), "n": n, "seed": scale.seed + 1}
        found.append(Part(f"others-{n}-simulation", experiments, PROBLEM, many, 6.0 * n / 1000))
    return found


def experiments(problem: Problem, count: int, stimuli: int, n: int, seed: int) -> xr.Dataset:
    """Deviation of predicted from measured h in further experiments: its mean and its scatter."""
    seeds = np.random.SeedSequence(seed).generate_state(count, np.uint64) >> np.uint64(1)
    runs = [cavity_experiment(problem, CIRCLES, n=n, seed=int(s), stimuli=stimuli) for s in seeds]
    off = np.array([run.h_predicted.values - run.h.values for run in runs])
    boost = np.array([run.x.values - run.h.values for run in runs])
    return xr.Dataset(
        {
            "bias": ("t", off.mean(axis=0)),
            "scatter": ("t", off.std(axis=0, ddof=1)),
            "rms": float(np.sqrt(np.mean(off**2))),
            "boost": float(np.sqrt(np.mean(boost**2))),
        },
        {"t": CIRCLES},
        results.attributes(problem) | {"n": n, "experiments": count},
    )


def caption(parts: Parts) -> str:
    """Say what is drawn."""
    n = parts["experiment-simulation"].attrs["n"]
    return (
        f"Activations of one random example in a network with N = {n}, α = 0.3, κ = 0.8, v = 0.1 "
        "and λ = 0.1 using the Adatron rule. Solid: x(t) in the network that learns it, with its "
        "giant boosts at the learning instants (dashed verticals). Dotted: h(t) in a second "
        "network that skips the example. Filled circles: h predicted from x by the cavity theory, "
        "with the response measured in the first network."
    )


def draw(parts: Parts) -> dict[str, Figure]:
    """One panel."""
    seen = parts["experiment-simulation"]
    figure, (ax,) = axes(1, 2.5)
    for instant in seen.instant.values:
        ax.axvline(instant, color="0.7", ls="--", lw=0.6, zorder=0)
    ax.plot(seen.t, seen.x, "-", color="black", lw=1.0, label=r"$x(t)$")
    ax.plot(seen.t, seen.h, ":", color="#0072b2", lw=1.2, label=r"$h(t)$")
    circles = seen.sel(t=CIRCLES, method="nearest")
    ax.plot(
        circles.t, circles.h_predicted, "o", color="#d55e00", ms=2.8, label=r"$h(t)$ from $x(t)$"
    )
    ax.set(xlabel=r"$t$", ylabel="activation", xlim=(0, 3))
    ax.legend(loc="best")
    return {"figure1": figure}


def panels(parts: Parts) -> list[Panel]:
    """Each circle's z is its deviation over the scatter of such deviations at that time."""
    small, large = (parts[f"others-{n}-simulation"] for n in SIZES)
    seen = parts["experiment-simulation"].sel(t=CIRCLES, method="nearest")
    off = (seen.h_predicted - seen.h).values
    z = ratio(off, large.scatter.values)
    symbols = [
        Symbol("h predicted", f"t = {t:.3g}", *numbers)
        for t, *numbers in zip(
            CIRCLES, seen.h.values, seen.h_predicted.values, large.scatter.values, z, strict=True
        )
    ]
    count = large.attrs["experiments"]
    bias = np.abs(ratio(large.bias.values, large.scatter.values)).max() * np.sqrt(count)
    remarks = [
        f"{count} further networks of N = {SIZES[1]}: predicted and measured h differ by "
        f"{large.rms.item():.4f} (root mean square), where the example's own boosts are "
        f"{large.boost.item():.2f}; on average over networks the largest difference is "
        f"{bias:.1f} standard errors.",
        f"At N = {SIZES[0]} they differ by {small.rms.item():.4f}, "
        f"{(small.rms / large.rms).item():.1f} times as much: fluctuations of one network shrink "
        "as 1/√N, which would give "
        f"{np.sqrt(SIZES[1] / SIZES[0]):.1f}.",
    ]
    return [Panel("Fig. 1", symbols, count, remarks)]
