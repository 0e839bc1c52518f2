"""`advise`: rate, decay, stopping time and averaging window that a data set asks for."""

from __future__ import annotations

import json
import math
import warnings
from typing import Any

import numpy as np
import xarray as xr

from manypass import checks, orders, results
from manypass.data import preparing, scheduled, units
from manypass.data.averaging import Averages
from manypass.data.dataset import Dataset
from manypass.data.measuring import Measure
from manypass.data.search import Choice, Search, error_of, only
from manypass.data.solution import calm, data_of
from manypass.ensemble import shown
from manypass.problem import Problem, checked
from manypass.rules import Adaline
from manypass.schedules import Schedule, at, scaled

TOLERANCE = 1e-5  # of a step, for the errors that are reported
HELD_OUT = 0.25  # share of the training set, unless told
OBJECTIVES = ("F2_test", "Eg")
ERRORS = ("F2", "F2_test", "Et", "Eg")
RUNS = 64  # of SGD with reshuffled epochs for each row, or as many (but FEWEST) as
WORK = 1e10  # multiplications allow, some seconds
STEP = 100  # multiplications that a step takes as long as at least
FEWEST = 8
FEW = 10  # examples to train or to test on that tell nothing
LONG_NAMES = {
    "rate": "learning rate v",
    "decay": "weight decay",
    "passes": "passes over the training set",
    "window": "passes at the end over which weights are averaged, 0: none",
    "eta0": "scikit-learn: eta0",
    "alpha": "scikit-learn: alpha",
    "average": "scikit-learn: average, the example from which on",
    "lr": "PyTorch: lr, with nn.MSELoss()",
    "weight_decay": "PyTorch: weight_decay",
}


LITTLE = 0.97  # of the error without learning: more than that is as good as none


def advise(
    problem: Problem,
    passes: int = 20,
    *,
    batch_size: int | None = None,
    objective: str = "F2_test",
    holdout: float | None = None,
    seed: int | None = 0,
    schedules: bool = False,
    progress: bool = False,
) -> xr.Dataset:
    """Return the settings of SGD that make ⟨(ỹ − x)²⟩ on the test set smallest, and what they give.

    Everything is chosen by the exact moments (`data.moments`), for which examples are drawn with
    replacement. What the same settings give with
    reshuffled epochs (``shuffle=True``), as most people train, is then measured in a few runs.

    Parameters
    ----------
    problem : Problem
        On-line Adaline on a `Dataset`; its rate, decay and temperature are where to start from.
    passes : int
        The most passes over the training set (epochs) that training may take.
    batch_size : int, optional
        Examples per step, of which it takes the mean force; the problem's own unless given.
    objective : {"F2_test", "Eg"}
        What is minimised on the test set: the mean squared error, or for classes the error rate,
        which takes activations as Gaussian. The settings that are best for the one are not quite
        so for the other. For regression Eg is half of F2_test.
    holdout : float, optional
        Without a test set this share of the training set is held out as one; 0.25 unless given.
    seed : int
        Of the choice of held-out examples and of the runs.
    schedules : bool
        Compare rates that change with time too: rows "constant", "inverse", "cosine", ...
        (`data.scheduled`), each at its best over all passes, with the best decay.
    progress : bool
        Show on stderr how many kinds of schedules have been compared, and rows measured.

    Returns
    -------
    xarray.Dataset
        One row for each `advice`: "start", the problem itself, for all passes; with the best
        rate, the best number of passes, the best window of averaging, the best decay, each alone;
        with all of them; and batch learning (v → 0, until nothing moves), with the problem's and
        with the best decay. Columns are the settings, F2, F2_test, Et, Eg, the same with every
        example once per epoch (`F2_shuffled`, ..., means over `runs` with `*_se`; batches then
        cut an epoch evenly), and the settings in
        the units of scikit-learn (`eta0`, `alpha`, `average`; one example per step) and of
        PyTorch (`lr`, `weight_decay`); see `data.units`. The objective and the critical rate,
        that of the examples which are trained on, are attributes. `schedule` is a rate as text,
        `scikit_learn` and `pytorch`, with ``MSELoss()``, are what to type. `passes` and `window`
        count passes, not units of time.

    Notes
    -----
    Settings that were chosen by their test error flatter it; a third set of examples would tell by
    how much. For more than 100 directions the search (not the reported errors) takes the diagonal
    approximation. The settings are not chosen anew for reshuffled epochs: their errors are lower,
    by at most 3 % of F2 and F2_test on digits, breast cancer and diabetes up to 0.6 of the critical
    rate, by some 10 % of error rates, and by much more where p is not large against N.

    Examples
    --------
    >>> import numpy as np
    >>> import manypass as mp
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((120, 6))
    >>> data = mp.Dataset(X, X[:, 0] + 0.5 * rng.standard_normal(120))
    >>> found = mp.advise(mp.Problem(data, mp.Adaline(), rate=0.5), passes=10)
    >>> gain = found.F2_test.sel(advice="all") / found.F2_test.sel(advice="start")
    >>> bool(gain < 0.95)
    True
    """
    data = advisable(problem)
    passes = checks.count("passes", passes, 1, 10**6)
    checks.choice("objective", objective, OBJECTIVES)
    seed = checks.seed("seed", seed)
    kept = trained_on(problem, holdout, seed)
    size = kept.batch_size if batch_size is None else batch_size
    size = checks.count("batch_size", size, 1, data_of(kept).p)  # not what is held out
    warn_of_few(data_of(kept))
    if told := preparing.uneven(data):
        warnings.warn(
            f"good rates are those of the largest numbers{told}", stacklevel=checks.outside()
        )
    with calm(data):
        search = Search(kept.replace(batch_size=size), passes, objective)
        found = report(
            search,
            seed,
            checks.flag("schedules", schedules),
            checks.flag("progress", progress),
        )
    warn_of_nothing(search, found)
    found.attrs |= {"objective": objective}
    found.attrs |= results.attributes(problem.replace(batch_size=size))  # of all the data
    if not data.p_test:
        share = HELD_OUT if holdout is None else checks.number("holdout", holdout, 0.01, 0.9)
        found.attrs |= {"holdout": share, "seed": seed}
    return found


def advisable(problem: Problem) -> Dataset:
    """Return the data of a problem that can be advised on."""
    data = data_of(checked(problem))
    if not isinstance(problem.rule, Adaline) or problem.mode != "online":
        raise ValueError(
            f"`problem` must be on-line Adaline to be advised on, got {problem.rule!r} in "
            f"{problem.mode} mode"
        )
    orders.require(problem, "advise")
    return data


def warn_of_few(data: Dataset) -> None:
    """Say that too few examples to train or to test on tell nothing."""
    if min(data.p, data.p_test) < FEW:
        warnings.warn(
            f"`data` has {data.p} examples to train on and {data.p_test} to test on: with fewer "
            f"than {FEW} of either, which settings are best is left to chance",
            stacklevel=checks.outside(),
        )


def warn_of_nothing(search: Search, found: xr.Dataset) -> None:
    """Say that what is best is hardly better than to learn nothing at all."""
    y = search.data.y_test
    name = "Eg" if search.by_rate else "F2_test"
    nothing = min(np.mean(y > 0), np.mean(y < 0)) if search.by_rate else np.mean(y**2)
    best = float(found[name].sel(advice="all"))
    if best > LITTLE * nothing:
        without = "always the same class" if search.by_rate else "weights of 0"
        warnings.warn(
            f"the best that was found has {name} = {best:.3g}, {without} {nothing:.3g}: what is "
            f"learned of `data` hardly tells of its test set, and any small rate is as good",
            stacklevel=checks.outside(),
        )


def trained_on(problem: Problem, holdout: float | None, seed: int) -> Problem:
    """Return the problem with a test set: its own, or a share held out of its training set."""
    data, given = advisable(problem), HELD_OUT if holdout is None else holdout
    share = checks.number("holdout", given, 0.01, 0.9)
    if holdout is not None and data.p_test:
        raise ValueError(
            f"`holdout` = {share:g} is for data without a `test` set, and these have one, of "
            f"{data.p_test} examples: leave one of them out"
        )
    return problem if data.p_test else problem.replace(data=data.held_out(share, seed))


def report(search: Search, seed: int, schedules: bool, progress: bool = False) -> xr.Dataset:
    """Choose, and tabulate what the choices give."""
    v, decay, last = search.problem.rate, search.problem.decay, search.stops[-1]
    first = search.run(v, decay)
    start = only(first, last, last)
    best_rate = search.along(
        lambda z: (search.rate(z), decay), lambda c: c.start == c.passes == last
    )
    best_decay = search.along(lambda z: (v, search.decay(z)), lambda c: c.start == c.passes == last)
    rows = {  # where all diverge, the first of them: the start
        "start": start,
        "rate": min(start, best_rate, key=error_of),
        "passes": min((c for c in first if c.start == c.passes), key=error_of),
        "window": min((c for c in first if c.passes == last), key=error_of),
        "decay": min(start, best_decay, only(search.run(v, 0.0), last, last), key=error_of),
        "all": search.together(),
    }
    # The search is rougher than what is reported: what it finds may be worse than the start.
    runs, best = runs_of(search), dict[str, tuple[dict[str, Any], Choice]]()
    for name, choice in rows.items():
        others = list(best.values()) if name == "all" else list(best.values())[:1]
        best[name] = min(
            [(entry(search, choice), choice), *others], key=lambda pair: search.reported(pair[0])
        )
    if schedules:
        for name, choice in scheduled.compared(search, best["all"][1], progress).items():
            best[name] = entry(search, choice), choice
    measured = ((n, row | shuffled(search, c, runs, seed)) for n, (row, c) in best.items())
    tables = dict(shown(measured, len(best), progress, "runs with shuffled epochs", "row"))
    tables["batch"] = batch_entry(search, decay)
    tables["batch, best decay"] = batch_entry(search, search.batch_decay())
    names = [n for n in (*LONG_NAMES, "Q", *ERRORS) if n in tables["start"]]
    names += [n for n in tables["start"] if "_shuffled" in n]
    words = ("schedule", "scikit_learn", "pytorch")
    found = xr.Dataset(
        {
            name: (
                "advice",
                [row.get(name, math.nan) for row in tables.values()],
                {"long_name": LONG_NAMES.get(name) or results.long_name(name)},
            )
            for name in names
        }
        | {name: ("advice", [str(row.get(name, "")) for row in tables.values()]) for name in words},
        {"advice": list(tables)},
    )
    found.attrs = {"critical_rate": search.limit, "batch_size": search.batch, "runs": runs}
    return found


def entry(search: Search, choice: Choice) -> dict[str, Any]:
    """One row: settings, and what they give with the full covariance."""
    end, start = search.steps(choice.passes), search.steps(choice.start)
    window, n, decay = end - start, search.data.n, choice.decay
    moving = isinstance(choice.rate, Schedule)
    first = float(at(choice.rate, 0.0)) or float(at(choice.rate, math.inf))  # after a warm-up
    row: dict[str, Any] = {
        "rate": first,
        "decay": decay,
        "passes": choice.passes,
        "window": choice.passes - choice.start,
        "schedule": str(choice.rate) if moving else "",
    }
    said = units.typed(choice.rate, decay, n, search.batch, choice.passes, end, window)
    if said["scikit_learn"]:
        row |= units.scikit_learn(first, decay, n, end, window)
    row |= units.pytorch(first, decay, n) | said
    if moving:
        return row | scheduled.expected(search, choice, TOLERANCE)
    moments = search.moments(search.problem.replace(rate=choice.rate, decay=decay))
    stops = [search.steps(s) for s in search.stops if s <= choice.passes]
    averages = Averages(moments, stops, TOLERANCE, lambda Sigma: Sigma)
    m, Sigma = averages.mean(start, end) if window else moments.mean(end), None
    if not averages.diverged:
        half = averages.halves(start, end) if window else averages.at(end) / 2
        Sigma = half + half.T
    return row | Measure(moments, search.data.task)(m, Sigma, moments.null_variance(end))


def runs_of(search: Search) -> int:
    """How many runs of SGD a row is worth."""
    one = search.stops[-1] * search.data.p * max(search.data.n, STEP)
    return max(FEWEST, min(RUNS, int(WORK / one)))


def shuffled(search: Search, choice: Choice, runs: int, seed: int) -> dict[str, float]:
    """Return what the settings give if every example comes once per epoch: measured."""
    from manypass.simulation.trained import trained  # compiles: only when needed

    share = 1 / round(search.data.p / search.batch) if search.batch > 1 else 0.0
    problem = search.problem.replace(
        rate=scaled(choice.rate, 1 / search.batch),  # of a share v is per example
        decay=choice.decay,
        sequence="reshuffled",
        batch_share=share,
        batch_size=1,
    )
    found = trained(problem, search.data, choice.passes, choice.start, runs, seed)
    return {
        f"{name}_shuffled{end}": found[f"{name}{end}"] for end in ("", "_se") for name in ERRORS
    }


def batch_entry(search: Search, decay: float) -> dict[str, float]:
    """Batch learning: the weights (H + λ)⁻¹g, without noise."""
    moments = search.moments(search.problem.replace(decay=decay, temperature=0.0), diagonal=True)
    m = search.examples.g / (decay + search.examples.h)
    return {"decay": decay} | Measure(moments, search.data.task)(m, moments.zero, 0.0)


def text(found: xr.Dataset) -> str:
    """Return advice as a table for the terminal, and the best of it as it would be typed."""
    names = ["rate", "decay", "passes", "window", *ERRORS]
    lines = [f"{'':>18}" + "".join(f"{name:>11}" for name in names)]
    for label in found.advice.values:
        row = found.sel(advice=label)
        cells = (float(row[name]) for name in names)
        lines.append(
            f"{label!s:>18}" + "".join(f"{c:>11.5g}" if c == c else " " * 11 for c in cells)
        )
    best = found.sel(advice="all")
    where, rest = "the test set", ""
    if "holdout" in found.attrs:
        where = f"{found.attrs['holdout']:.0%} of the data, held out"
        rest = f", that of the {1 - found.attrs['holdout']:.0%} trained on"
    what, runs = found.attrs["objective"], found.attrs["runs"]
    classes = json.loads(found.attrs["problem"])["data"]["task"] == "classification"
    words = "the mean squared error"
    if what == "Eg":
        words = "the error rate" if classes else f"half {words}"
    mean, error = (float(best[f"{what}_shuffled{end}"]) for end in ("", "_se"))
    told = f"{mean:.5g} +- {error:.2g}"
    lines += [
        "",
        f"chosen for the smallest {what}, {words} on {where}",
        f"critical rate v_c = {found.attrs['critical_rate']:.5g}{rest}",
        f"examples are drawn with replacement; with shuffle=True {what} of `all` is {told} "
        f"in {runs} runs",
    ]
    if scheduled.FIRST in found.advice:
        lines += ["", *scheduled.comparison(found, what)]
    for label in ["all", *(n for n in found.advice.values if found.schedule.sel(advice=n).item())]:
        lines += ["", *_typed(found.sel(advice=label), int(found.attrs["batch_size"]))]
    return "\n".join(lines)


def _typed(row: xr.Dataset, size: int) -> list[str]:
    """One way to train, as it would be typed."""
    lines, window = [f"{row.advice.item()}:"], int(row.window)
    if row.scikit_learn.item():
        lines.append(f"scikit-learn: {row.scikit_learn.item()}")
    batches = f"batch size {size}"
    if size > 1:  # a smaller batch at the end would take a step as long as the others
        batches = f"DataLoader(batch_size={size}, shuffle=True, drop_last=True)"
    over = f", weights averaged over the last {window}" if window else ""
    lines.append(
        f"PyTorch: {row.pytorch.item()} with MSELoss(), {batches}, {int(row.passes)} epochs{over}"
    )
    return lines
