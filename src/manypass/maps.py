"""Pictures of sweeps: maps of two fields with the critical rate, and families of lines."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import xarray as xr
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter

from manypass import checks, orders, results, verbs

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#000000")
NAMES = {"rate": "$v$", "decay": r"$\lambda$", "alpha": r"$\alpha$", "noise": r"$\epsilon$"}
NAMES |= {"temperature": "$T$", "window": r"$\tau$", "kappa": r"$\kappa$", "t": "$t$"}
NAMES |= {"batch_share": r"$\beta$"}
NAMES |= {"batch_size": "$b$"}
NAMES |= {n: n for n in ("width", "rule", "task", "mode", "sequence", "momentum", "start")}


def heatmap(
    result: xr.Dataset,
    variable: str = "Eg",
    *,
    x: str | None = None,
    y: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw one result of a sweep as a map of two fields; on a (v, λ) map also the line v_c.

    The line needs the problem's data: those of a `Dataset` must be in memory or in their file.

    Parameters
    ----------
    result : xarray.Dataset
        What `sweep` returned, reduced to two dimensions by `isel` or `sel`.
    variable : str
        What to show.
    x, y : str, optional
        Fields on the axes; by default the first and the second dimension, or what is left.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import manypass as mp
    >>> problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.0, decay=0.1)
    >>> grid = mp.Grid(problem, rate=[0.5, 1.0, 1.5], decay=[0.1, 0.2])
    >>> mp.plot.heatmap(mp.sweep(grid, workers=1, progress=False)).get_xlabel()
    '$v$'
    """
    values = _values(result, variable, 2, named=(x, y))
    x, y = _chosen(values, x=x, y=y)
    ax = _axes(ax)
    shown = values.transpose(y, x)
    image = ax.pcolormesh(_edges(values[x]), _edges(values[y]), shown)
    bar = ax.figure.colorbar(image, ax=ax)
    bar.set_label(_symbol(variable))
    _axis(ax, "x", values[x])
    _axis(ax, "y", values[y])
    if {x, y} == {"rate", "decay"} and not any(_in_words(values[n]) for n in (x, y)):
        _critical_line(ax, result, x, values)
    return ax


def lines(
    result: xr.Dataset,
    variable: str = "Eg",
    *,
    x: str | None = None,
    by: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw one result of a sweep against one field, a line for each value of another.

    Parameters
    ----------
    result : xarray.Dataset
        What `sweep` returned, reduced to one or two dimensions.
    variable : str
        What to show, with its error bars if it has any.
    x, by : str, optional
        The field on the axis, by default the first dimension, and the field that tells the lines
        apart; one of two says the other.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import manypass as mp
    >>> problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.0, decay=0.1)
    >>> grid = mp.Grid(problem, rate=[0.5, 1.0, 1.5], decay=[0.1, 0.2])
    >>> ax = mp.plot.lines(mp.sweep(grid, workers=1, progress=False), x="rate")
    >>> len(ax.containers)  # a line for each decay
    2
    """
    values = _values(result, variable, 1, 2, named=(x, by))
    if by is not None and values.ndim == 1:
        raise ValueError(f"`by` must be left out of one dimension, got {checks.shown(by)}")
    x, *others = _chosen(values, x=x, by=by)
    ax = _axes(ax)
    steps = values[others[0]].values if others else [None]
    error = result.get(f"{variable}_se")
    if error is not None:
        error = error.squeeze([dim for dim in error.dims if dim not in values.dims])
    for i, step in enumerate(steps):
        one = {} if step is None else {others[0]: i}
        colour = colormaps["viridis"](0.9 * i / max(len(steps) - 1, 1))
        label = None if step is None else f"{_symbol(others[0])} = {value_label(step)}"
        bars = None if error is None else error.isel(one)
        place = _ticks(values[x])
        style: dict[str, Any] = (
            {"fmt": "o", "ms": 4} if _in_words(values[x]) else {}
        )  # nothing is between words
        style |= {"color": colour, "label": label, "lw": 1.2, "capsize": 1.5}
        ax.errorbar(place, values.isel(one), bars, **style)
    _axis(ax, "x", values[x])
    ax.set_ylabel(_symbol(variable))
    if others:
        longest = max(map(len, ax.get_legend_handles_labels()[1]))
        legend_above(ax, 2 if longest > 18 else 3)
    return ax


def worth(*found: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Draw what repeated data are worth against the number of passes, and the fits, dashed.

    Parameters
    ----------
    *found : xarray.Dataset
        What `effective_data` returned.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import manypass as mp
    >>> data = mp.Teacher(alpha=1.0, task="regression", noise=0.1)
    >>> problem = mp.Problem(data, mp.Adaline(), rate=0.5, decay=0.01)
    >>> mp.plot.worth(mp.effective_data(problem, [1, 2, 4])).get_xlabel()
    'passes'
    """
    if len(found) == 1 and isinstance(found[0], list | tuple):
        found = (*found[0],)  # a list of them does as well
    wanted = {"effective_data", "fit"}
    if not found or not all(wanted <= set(getattr(one, "data_vars", ())) for one in found):
        raise ValueError("`found` must be whole datasets from effective_data()")
    if not all(one.passes.ndim == 1 and one.passes.size for one in found):
        raise ValueError(
            "`found` must have at least one number of passes, in a list: sel(passes=[4])"
        )
    from manypass.plot import axes_of

    ax = axes_of(ax)
    every = np.concatenate([one.passes.values for one in found])
    ends = np.array([every.min(), every.max()])
    ax.plot(ends, ends, color="0.7", lw=0.8, label="fresh data")
    for one, colour in zip(found, COLOURS * len(found), strict=False):
        data = results.problem_of(one).data
        order = results.problem_of(one).sequence
        label = rf"$\alpha={data.alpha:g}$" + ("" if order == "replacement" else f", {order}")
        known = np.isfinite(one.effective_data.values)
        k, D = one.passes.values[known], one.effective_data.values[known]
        ax.plot(k, D, "o-", color=colour, lw=1.1, ms=3.5, mfc="white", label=label)
        ax.plot(k, one.fit.values[known], "--", color=colour, lw=0.8)
    for which in ("x", "y"):
        ax.set(**{f"{which}scale": "log"})
        _number_log(getattr(ax, f"{which}axis"), *getattr(ax, f"get_{which}lim")())
    ax.set_xlabel("passes")
    ax.set_ylabel("worth in fresh data")
    legend_above(ax, 3)
    return ax


def _number_log(axis: Any, low: float, high: float) -> None:
    """Write numbers at 1, 2, 5, 10 ... if the axis is short: powers of ten would overlap."""
    if high < 300 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_formatter(NullFormatter())


def legend_above(ax: Axes, columns: int, order: Any = None, pad: float = 4.0) -> None:
    """Put the legend so many points above the axes: curves may be anywhere inside."""
    handles, labels = ax.get_legend_handles_labels()
    order = range(len(labels)) if order is None else order
    made = ax.legend(
        [handles[i] for i in order],
        [labels[i] for i in order],
        loc="lower center",
        bbox_to_anchor=(0.5, 1),
        ncols=columns,
        frameon=False,
        fontsize="x-small",
        columnspacing=1.2,
    )
    made.borderaxespad = pad / float(made.get_texts()[0].get_fontsize())


def _values(result: Any, variable: str, *sizes: int, named: tuple[Any, ...] = ()) -> xr.DataArray:
    """Return a variable without dimensions of one value, unless they are named or needed."""
    if not isinstance(result, xr.Dataset) or not _swept(result):
        raise ValueError("`result` must be a dataset from sweep()")
    held = [str(n) for n in result.data_vars if n != "error" and not str(n).endswith("_se")]
    if not all(result.sizes.values()):
        raise ValueError("`result` has no points: nothing of the sweep is where it was chosen")
    if not held or ("error" in result and (result["error"] != "").all()):
        reasons = result["error"].values.flat if "error" in result else ()
        reason = next((str(e) for e in reasons if e), "it is empty")
        raise ValueError(f"`result` has no point with an answer: {reason}")
    if not isinstance(variable, str) or variable not in held:
        more = f"; of best(...) it is 'best_{variable}'" if f"best_{variable}" in held else ""
        raise ValueError(f"`variable` must be among {', '.join(held)}, got {variable!r}{more}")
    if result[variable].dtype.kind not in "biuf":
        raise ValueError(f"`variable` must hold numbers, {variable} holds texts")
    values = results.real(result, variable)
    asked = [name for name in named if isinstance(name, str)]
    single = [dim for dim, size in values.sizes.items() if size == 1 and dim not in asked]
    values = values.squeeze(single[max(min(sizes) - values.ndim + len(single), 0) :])
    if values.ndim not in sizes:
        dims = ", ".join(f"{dim} ({size})" for dim, size in values.sizes.items())
        raise ValueError(
            f"`result` must have {' or '.join(map(str, sizes))} dimensions, got {dims or 'none'}: "
            "choose by result.sel(...) or result.isel(...)"
        )
    return values


def _swept(result: xr.Dataset) -> bool:
    """Whether a result is of a sweep, whatever of it was left out or lost by arithmetic."""
    fields = [dim for dim in result.dims if dim in result.coords and dim not in results.COORDINATES]
    return "error" in result or "grid" in result.attrs or bool(fields)


def _chosen(values: xr.DataArray, **given: Any) -> list[str]:
    """Return the dimensions in the order of the arguments; who is left out takes what is left."""
    names = [str(dim) for dim in values.dims]
    for argument, name in given.items():
        if name is not None and not (isinstance(name, str) and name in names):
            raise ValueError(
                f"`{argument}` must be among {', '.join(names)}, got {checks.shown(name)}"
            )
    asked = [name for name in given.values() if name is not None]
    if len(asked) != len({*asked}):
        arguments, both = " and ".join(f"`{a}`" for a in given), " and ".join(names)
        raise ValueError(f"{arguments} must be {both}, got {asked[0]!r} twice")
    left = iter([name for name in names if name not in asked])
    return [next(left) if name is None else name for name in [*given.values()][: len(names)]]


def _in_words(coordinate: xr.DataArray) -> bool:
    """Whether values have no place on a scale: texts, and numbers of which one is infinite."""
    return coordinate.dtype.kind not in "iuf" or not np.isfinite(coordinate.values).all()


def _ticks(coordinate: xr.DataArray) -> Any:
    """Return numbers as they are; words by their order."""
    return np.arange(coordinate.size) if _in_words(coordinate) else coordinate.values


def _edges(coordinate: xr.DataArray) -> Any:
    """Return where cells end: halfway between values, and as far beyond the first and the last."""
    values = np.asarray(_ticks(coordinate), float)
    if values.size == 1:
        return values + np.array([-0.5, 0.5]) * (abs(values[0]) or 1.0)
    inner = (values[1:] + values[:-1]) / 2
    return np.concatenate([[2 * values[0] - inner[0]], inner, [2 * values[-1] - inner[-1]]])


def _axis(ax: Axes, which: str, coordinate: xr.DataArray) -> None:
    """Label an axis; values that grow by a constant factor get a logarithmic scale."""
    ax.set(**{f"{which}label": _symbol(str(coordinate.name))})
    values = coordinate.values
    if _in_words(coordinate):
        texts = [value_label(value) for value in values]
        ax.set(**{f"{which}ticks": np.arange(values.size), f"{which}ticklabels": texts})
        if which == "x" and sum(map(len, texts)) > 30:
            ax.tick_params("x", labelrotation=25, labelsize="small")
            for text in ax.get_xticklabels():
                text.set(ha="right", rotation_mode="anchor")
    elif values.size > 2 and np.all(values > 0):
        ratios = values[1:] / values[:-1]
        if np.ptp(ratios) < 1e-6 * ratios[0] and ratios[0] > 1.05:
            ax.set(**{f"{which}scale": "log"})
            if values[-1] < 100 * values[0]:  # too short for powers of ten
                axis = getattr(ax, f"{which}axis")
                shown = values[np.unique(np.linspace(0, values.size - 1, 5).round().astype(int))]
                axis.set_major_locator(FixedLocator(shown.tolist()))
                axis.set_major_formatter(lambda value, _: f"{value:.3g}")
                axis.set_minor_formatter(NullFormatter())


def _critical_line(ax: Axes, result: xr.Dataset, x: str, values: xr.DataArray) -> None:
    """Draw v_c(λ), beyond which there is no steady state."""
    entry = results.told(result, "problem")
    if not entry:  # lost by arithmetic
        return
    if entry["rule"]["name"] != "adaline" or entry["mode"] != "online":
        return
    try:
        problem = results.problem_of(result)
    except ValueError as error:  # the data are gone, the map is still worth its place
        warnings.warn(f"no line v_c: {error}", stacklevel=3)
        return
    if orders.refusal(problem, "critical_rate"):
        return
    decays = values["decay"].values
    limits = [verbs.critical_rate(problem.replace(rate=1.0, decay=decay)) for decay in decays]
    if decays.size == 1:  # of its cell
        limits, decays = 2 * limits, _edges(values["decay"])
    bounds = ax.get_xlim(), ax.get_ylim()
    pair = (limits, decays) if x == "rate" else (decays, limits)
    ax.plot(*pair, color="#d55e00", lw=1.5, label=r"$v_c$")
    ax.set(xlim=bounds[0], ylim=bounds[1])
    ax.legend(fontsize="small")


def _symbol(name: str) -> str:
    from manypass.plot import SYMBOLS

    return NAMES.get(name) or SYMBOLS.get(name, name)


def value_label(value: Any) -> str:
    """Return a number with few digits, or a word."""
    if value is None:  # no start: J = 0
        return "0"
    if isinstance(value, dict):
        return ", ".join(f"{key} {value_label(item)}" for key, item in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _axes(ax: Any) -> Axes:
    from manypass.plot import axes_of

    return axes_of(ax)
