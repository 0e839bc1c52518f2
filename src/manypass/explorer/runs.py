"""Work for other processes: runs that tell what they have so far, and answers that come at once."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from manypass import verbs
from manypass.cavity.activations import activations as seen_activations
from manypass.cavity.method import DMFT
from manypass.cavity.plan import COARSE
from manypass.cavity.settling import NotSettledError, fastest
from manypass.exact.method import Exact
from manypass.explorer.answers import (
    ANSWERS,
    NUMBERS,
    RATES,
    against_rate,
    plain,
    rates,
    sampled_rates,
)
from manypass.explorer.view import FEW, MEMORY, SAMPLES, SEEN, View
from manypass.simulation.method import Simulation

Tell = Callable[[dict[str, Any]], None]
Run = Callable[[View, Tell], tuple[dict[str, Any], xr.Dataset]]
Job = Callable[[View, Tell], tuple[dict[str, Any], xr.Dataset | None]]
PAUSE = 0.1  # seconds between two words of a simulation
MANY = 100  # time steps from which on the first quarter is computed first
ROUGH = 0.1  # accuracy of that quarter
SWEPT, SWEPT_SAMPLES = 15, 4096  # rates of a sweep, and examples for each
BINS = 40


def curves(view: View, tell: Tell) -> tuple[dict[str, Any], xr.Dataset]:
    """DMFT: whole curves from the first population on, their error falling with each.

    The work grows as the square of the time, so that the first quarter of a long run, computed
    roughly before the whole, costs little and shows something early.
    """
    repeated = math.isfinite(view.problem.data.alpha)  # fresh examples have no past
    if repeated and view.end * fastest(view.problem) / COARSE > MANY:
        quarter, rough = view.times[: FEW // 2 + 1], DMFT(rtol=ROUGH, memory=MEMORY)  # squares
        verbs.solve(view.problem, quarter, rough, progress=better(tell, view.rtol))
    found = verbs.solve(view.problem, view.times, view.theory, progress=better(tell, view.rtol))
    return {"curves": plain(found)}, found


def better(tell: Tell, aim: float, names: Sequence[str] = ()) -> Callable[[xr.Dataset], None]:
    """Return a watch that tells curves, or some of them, whenever their error has fallen."""
    least = math.inf

    def watch(so_far: xr.Dataset) -> None:
        nonlocal least
        reached = math.hypot(*json.loads(so_far.attrs["errors"]).values())
        alone = bool(np.isnan(so_far.Q_se.values[-1]).any())  # one population: no error is known
        if math.isinf(least) if alone else reached < least:
            least = least if alone else reached
            word = "first population" if alone else f"error {reached:.1%}, aim {aim:.0%}"
            shown = so_far[list(names)] if names else so_far
            tell({"curves": plain(shown), "word": f"E_t: {word}" if names else word})

    return watch


def training(view: View, tell: Tell) -> tuple[dict[str, Any], xr.Dataset]:
    """E_t of on-line Adaline classification, first at a few times."""
    sampler = view.sampler
    if sampler is None:
        raise ValueError("this training error does not need sampling, or cannot be sampled")
    names = ["Et", "Et_se"]
    if isinstance(sampler, Exact):
        few = verbs.solve(view.problem, view.sampled_times[::4], sampler)
        tell({"curves": plain(few[names]), "word": "sampling E_t"})
    watch = better(tell, view.rtol, names) if isinstance(sampler, DMFT) else False
    found = verbs.solve(view.problem, view.sampled_times, sampler, progress=watch)
    return {"curves": plain(found[names])}, found


def steady(view: View, tell: Tell) -> tuple[dict[str, Any], xr.Dataset]:
    """E_t for t → ∞ against the rate, sampled: far points first, then those between."""
    v, sampler = sampled_rates(view), Exact(samples=SAMPLES)
    parts = []
    far_first = sorted(range(v.size), key=lambda i: (i % 4 > 0, -i))
    for i in far_first:
        try:
            found = against_rate(
                lambda p: verbs.steady_state(p, sampler), view.problem, v[i : i + 1]
            )
        except ValueError:  # so slow that an example is learned too often to be sampled
            continue
        parts.append(found)
        joined = _joined(parts)
        word = f"sampling E_t against v, {len(parts)} of {v.size}"
        tell({"steady": plain(joined[["Et", "Et_se"]]), "word": word})
    if not parts:
        raise ValueError("the steady training error cannot be sampled at any of these rates")
    joined = _joined(parts)
    return {"steady": plain(joined[["Et", "Et_se"]])}, joined


def sweep(view: View, tell: Tell) -> tuple[dict[str, Any], xr.Dataset]:
    """DMFT: E_g and E_t for t → ∞ against the rate, up to where learning diverges."""
    parts: list[xr.Dataset] = []
    method, v = DMFT(samples=SWEPT_SAMPLES, memory=MEMORY), rates(view)[:: RATES // SWEPT]
    for rate in v:
        try:
            parts.append(
                against_rate(
                    lambda p: verbs.steady_state(p, method), view.problem, np.array([rate])
                )
            )
        except NotSettledError as error:  # near the end of all steady states, or without decay
            last = error
            continue
        joined = _joined(parts)
        tell({"steady": plain(joined), "word": f"steady states, {len(parts)} of {v.size} rates"})
    if not parts:
        raise last
    return {"steady": plain(joined)}, joined


def activations(view: View, tell: Tell) -> tuple[dict[str, Any], xr.Dataset]:
    """Histograms of x, and of h where theory knows it, at the last time."""
    problem, source = view.problem, view.source
    if isinstance(source, Simulation):
        view.check_simulation()
    found = seen_activations(problem, view.end, samples=SEEN, source=source)
    if not found.x.any():
        raise ValueError("nothing is learned, x = 0 for every example: no distribution")
    return {"activations": _histograms(found), "word": ""}, found


def simulation(view: View, tell: Tell) -> tuple[dict[str, Any], xr.Dataset]:
    """Finite networks, one after the other."""
    view.check_simulation()
    count, last = 0, -math.inf

    def watch(so_far: xr.Dataset) -> None:
        nonlocal count, last
        count += 1
        if time.monotonic() - last > PAUSE or count == view.samples:
            last = time.monotonic()
            tell({"simulation": plain(so_far), "word": f"{count} of {view.samples} networks"})

    found = verbs.solve(view.problem, view.symbols, view.simulation, progress=watch)
    return {"simulation": plain(found), "word": f"{view.samples} networks"}, found


def _answer(of: Callable[[View], dict[str, Any]]) -> Job:
    return lambda view, tell: ({"answer": of(view)}, None)


def _numbers(of: Callable[[View], xr.Dataset]) -> Job:
    return lambda view, tell: ({}, of(view))


def _joined(parts: list[xr.Dataset]) -> xr.Dataset:
    return xr.concat(parts, "rate", data_vars="all", coords="minimal", compat="override").sortby(
        "rate"
    )


def _histograms(found: xr.Dataset) -> list[dict[str, Any]]:
    """Densities given the class; other targets together."""
    targets = found.target.values
    low, high = np.quantile(found.x.values, (0.0005, 0.9995))
    edges = np.linspace(low, high, BINS + 1)
    classes = np.unique(targets) if np.unique(targets).size <= 2 else [None]
    out = []
    for name in [n for n in ("x", "h") if n in found]:
        for aim in classes:
            values = found[name].values[slice(None) if aim is None else targets == aim]
            heights = np.histogram(values, edges)[0] / (values.size * (edges[1] - edges[0]))
            out.append(
                {
                    "name": name,
                    "target": None if aim is None else float(aim),
                    "at": ((edges[1:] + edges[:-1]) / 2).tolist(),
                    "density": heights.tolist(),
                }
            )
    return out


RUNS: dict[str, Run] = {
    "curves": curves,
    "training": training,
    "steady": steady,
    "sweep": sweep,
    "activations": activations,
    "simulation": simulation,
}
JOBS: dict[str, Job] = {
    **RUNS,
    **{f"answer {want}": _answer(of) for want, of in ANSWERS.items()},
    **{f"data {kind}": _numbers(of) for kind, of in NUMBERS.items()},
}
