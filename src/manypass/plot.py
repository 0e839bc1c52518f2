"""Pictures of results: theory as lines, simulation as markers with error bars."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from manypass import checks, files, rate_panel, verbs
from manypass.layers import drawing
from manypass.maps import NAMES, legend_above, value_label
from manypass.maps import heatmap as heatmap
from manypass.maps import lines as lines
from manypass.maps import worth as worth
from manypass.results import real, told

__all__ = ["activations", "curves", "heatmap", "lines", "overview", "save_figure", "worth"]

UNITS = ("unit", "unit2", "teacher")
SYMBOLS = {
    "R": r"$R(t)$",
    "Q": r"$C(t,t)$",
    "F2": r"$\langle F^2(t)\rangle$",
    "F2_test": r"$\langle F^2(t)\rangle$, test",
    "Et": r"$E_t$",
    "Eg": r"$E_g$",
    "a": r"$a(t)$",
}
ORDER_PARAMETERS = ("R", "Q", "F2")
ERRORS = ("Et", "Eg")
LAYERED = ("R", "Et", "Eg")  # of a committee, unless told
SQUARES = ("F2", "F2_test")
COLOURS = dict(
    zip(
        SYMBOLS,
        ("#0072b2", "#d55e00", "#009e73", "#e69f00", "#cc79a7", "#000000", "#555555"),
        strict=True,
    )
)
MARKERS = dict(zip(SYMBOLS, "os^pvDP", strict=True))
LINES = ("-", "--", ":", "-.")
PICTURES = {".png": "Software", ".pdf": "CreationDate", ".svg": "Date"}  # and what varies in them
METHODS = {"Exact": "exact theory", "DMFT": "mean-field theory", "MeanForce": "mean force"}
METHODS |= {"Simulation": "simulation", "auto": "theory"}


def __dir__() -> list[str]:
    return __all__


def curves(
    *results: xr.Dataset,
    variables: Sequence[str] | None = None,
    rate: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw learning curves of one or more results into one picture.

    Parameters
    ----------
    *results : xarray.Dataset
        What `solve` returned, or one point of a `sweep` with times; or a list of these. Each
        theory has its own line style, simulations are markers; of several, the legend tells which
        is which. If all are about a `Dataset`, a second horizontal axis counts passes over it.
    variables : sequence of str, optional
        Some of R, Q, F2, F2_test, Et, Eg, and a; by default all that the results hold. Of a
        `Committee` R, Et and Eg are the default. Its units are colours, those of the teacher
        dashes, or markers; Q is thin, grey between two units; further theories are paler.
    rate : bool
        Also draw v(t), and λ(t) where one moves, in a small panel under the curves.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import manypass as mp
    >>> problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.9, decay=0.8)
    >>> ax = mp.plot.curves(mp.solve(problem, range(1, 9)), variables=["Eg"])
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('$t$', '$E_g$')
    """
    results = _checked(results)
    shows_rate = checks.flag("rate", rate)
    held = [n for n in SYMBOLS if any(n in result for result in results)]
    variables = [variables] if isinstance(variables, str) else variables
    names = [*variables] if np.iterable(variables) else []
    if variables is not None and not (
        names and all(isinstance(n, str) and n in held for n in names)
    ):
        odd = next((n for n in names if not (isinstance(n, str) and n in held)), variables)
        raise ValueError(f"`variables` must be among {', '.join(held)}, got {checks.shown(odd)}")
    ax = new_figure(1, shows_rate)[1][0] if ax is None else axes_of(ax)
    theories, drawn = 0, set[str]()
    kinds: list[dict[str, Any]] = []
    for result in results:
        simulated = _method(result) == "Simulation"
        chosen = variables or (LAYERED if "unit" in result.dims else SYMBOLS)
        shown = [n for n in SYMBOLS if n in result and n in chosen]
        style = LINES[theories % len(LINES)]
        for name in shown:
            if result[name].ndim > 1:
                drawing.draw(ax, result, name, simulated, theories)
            else:
                _draw(ax, result, name, simulated, style)
        kinds.append({"marker": "o", "ls": ""} if simulated else {"ls": style})
        theories += not simulated
        drawn.update(shown)
    if len(results) > 1:
        for look, label in zip(kinds, _names(results), strict=True):
            ax.plot([], [], color="0.35", lw=1.2, ms=3.5, mfc="white", label=label, **look)
    ax.set_xlabel(r"$t$")
    ax.set_ylabel(_quantity(drawn))
    ax.set_xlim(left=0)
    _passes(ax, results)
    _legend(ax)
    if shows_rate:
        rate_panel.draw(ax, results, [look["ls"] or "-" for look in kinds])
    return ax


def activations(*results: xr.Dataset, ax: Axes | None = None, bins: int = 70) -> Axes:
    """Draw the distributions of activations given the target: learned (x) and cavity (h) ones.

    Parameters
    ----------
    *results : xarray.Dataset
        What `manypass.activations` returned. Theory is lines, solid for x and dashed for h;
        simulations are markers. Two classes are drawn apart; other targets together.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.
    bins : int
        Number of bins.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import manypass as mp
    >>> problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.0, decay=0.1)
    >>> seen = mp.activations(problem, 2.0, samples=2000, seed=0)
    >>> mp.plot.activations(seen).get_xlabel()
    'activation'
    """
    if not results or not all(
        isinstance(r, xr.Dataset) and "x" in r and "target" in r for r in results
    ):
        raise ValueError("`results` must be datasets from activations()")
    bins = checks.count("bins", bins, 2, 10**5)
    if not all(np.isfinite(real(result, "x")).all() for result in results):
        raise ValueError("`results` has diverged: there is no distribution to draw")
    everything = np.concatenate([np.atleast_1d(result.x.values) for result in results])
    if np.unique(everything).size < 2:
        raise ValueError(
            f"`results` must hold examples with different x, to draw a distribution of, got "
            f"{everything.size} with {np.unique(everything).size}"
        )
    ax = axes_of(ax)
    low, high = np.quantile(everything, (0.0005, 0.9995))
    edges = np.linspace(low, high, bins + 1)
    centres = (edges[1:] + edges[:-1]) / 2
    for result in results:
        simulated, target = result.attrs.get("source") == "simulation", result.target.values
        classes = np.unique(target) if np.unique(target).size <= 2 else [None]
        for aim, colour in zip(classes, ("#d55e00", "#0072b2"), strict=False):
            chosen = slice(None) if aim is None else target == aim
            given = "" if aim is None else rf" \mid \tilde y={aim:+.0f}"
            for name, line in (("x", "-"), ("h", "--")):
                if name not in result:
                    continue
                values = result[name].values[chosen]
                density = np.histogram(values, edges)[0] / (values.size * (edges[1] - edges[0]))
                style = (
                    {"marker": "o", "ls": "", "ms": 2.5, "mfc": "white"}
                    if simulated
                    else {"ls": line}
                )
                label = rf"$P({name}{given})$" + (", simulated" if simulated else "")
                ax.plot(centres, density, color=colour, lw=1.2, label=label, **style)
    ax.set_xlabel("activation")
    ax.set_ylabel("density")
    ax.set_ylim(bottom=0)
    legend_above(ax, 2)
    return ax


def overview(*results: xr.Dataset, rate: bool | None = None) -> Figure:
    """Two panels as in the paper's Fig. 2: order parameters, or squared errors of data; errors.

    Under both the `rate` against time; by default where it moves.

    Examples
    --------
    >>> import manypass as mp
    >>> problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.0, decay=0.1)
    >>> len(mp.plot.overview(mp.solve(problem, [1, 2, 4, 8])).axes)
    2
    """
    results = _checked(results)
    moving = any(map(rate_panel.moves, results))
    shows_rate = moving if rate is None else checks.flag("rate", rate)
    figure, axes = new_figure(2, shows_rate)
    given = all(_time_per_pass(result) for result in results)
    for ax, variables in zip(axes, (SQUARES if given else ORDER_PARAMETERS, ERRORS), strict=True):
        held = [n for n in variables if any(n in r for r in results)]
        if held != [*ERRORS] and all("unit" in r.dims for r in results):
            held = ["R", "Q"]
        if not held:
            needed = ", ".join(variables)
            raise ValueError(f"`results` have none of {needed}, which a panel of overview shows")
        curves(*results, variables=held, rate=shows_rate, ax=ax)
    return figure


def new_figure(panels: int, taller: bool = False) -> tuple[Figure, list[Axes]]:
    """Return a figure of journal-column panels side by side, outside pyplot's global state."""
    panels = checks.count("panels", panels, 1, 64)
    figure = Picture(figsize=(3.6 * panels, 3.6 if taller else 2.9), layout="constrained")
    made = figure.subplots(1, panels, subplot_kw={"axes_class": Panel})
    return figure, list(np.atleast_1d(made))


class Picture(Figure):
    """A figure that a notebook shows although pyplot does not know it."""

    def _repr_png_(self) -> bytes:
        picture = io.BytesIO()
        self.savefig(picture, format="png", dpi=200)
        return picture.getvalue()


class Panel(Axes):
    """Axes of such a figure: as the last line of a cell they show it."""

    def _repr_png_(self) -> bytes:
        figure = self.get_figure(root=True)
        assert isinstance(figure, Picture)
        return figure._repr_png_()


def axes_of(ax: Any) -> Axes:
    """Return the axes that were given, or new ones."""
    if ax is None:
        return new_figure(1)[1][0]
    if not isinstance(ax, Axes):
        raise ValueError(f"`ax` must be matplotlib Axes, got {checks.shown(ax)}")
    return ax


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure as .png, .pdf or .svg.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import manypass as mp
    >>> problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.9, decay=0.8)
    >>> ax = mp.plot.curves(mp.solve(problem, [1, 2, 4]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mp.plot.save_figure(ax.figure, Path(folder) / "x.pdf")
    ...     (Path(folder) / "x.pdf").stat().st_size > 1000
    True
    """
    if not isinstance(figure, Figure):
        raise ValueError(f"`figure` must be a matplotlib Figure, got {figure!r:.60}")
    suffix = files.suffix(path, (*PICTURES,))
    metadata: dict[str, Any] = {PICTURES[suffix]: None}  # the same picture is the same file
    picture = io.BytesIO()
    # Text stays text in journals' tools
    settings: Any = {"pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "manypass"}
    with mpl.rc_context(settings):
        figure.savefig(picture, format=suffix[1:], dpi=200, metadata=metadata)
    files.write(path, picture.getvalue())


def _checked(results: Sequence[Any]) -> tuple[xr.Dataset, ...]:
    """Return results as curves in t alone; a swept field must be chosen, or have one value."""
    if len(results) == 1 and isinstance(results[0], list | tuple):
        results = results[0]  # a list of them does as well
    if not results:
        raise ValueError("`results` must hold at least one dataset from solve()")
    out = []
    for result in results:
        if isinstance(result, xr.Dataset) and "t" in result.coords and "t" not in result.dims:
            result = result.expand_dims("t")  # one time is a point
        if not isinstance(result, xr.Dataset) or "t" not in result.dims:
            raise ValueError(
                f"`results` must be datasets from solve(), with curves in `t`, got "
                f"{checks.shown(result)}"
            )
        if any(len({*UNITS} & {*result[n].dims}) == 1 for n in ("R", "Q") if n in result):
            raise ValueError(
                "`results` of a Committee must hold all of its units and its teacher's: draw a "
                "part by result.R.sel(unit=0).plot.line(x='t')"
            )
        free = [dim for dim in result.dims if dim not in ("t", *UNITS)]
        one = result.squeeze([dim for dim in free if result.sizes[dim] == 1])
        curved = [real(one, name) for name in SYMBOLS if name in one]
        more = [str(dim) for curve in curved for dim in curve.dims if dim not in ("t", *UNITS)]
        if more or not curved:
            got = f"one on {', '.join(dict.fromkeys(more))} too" if more else "one without any"
            raise ValueError(
                f"`results` must be curves in `t`, got {got}: choose by result.sel(...)"
            )
        if not one.sizes["t"]:
            raise ValueError("`results` must be curves in `t`, got one at no time at all")
        order = ("t", "unit", "teacher", "unit2")
        out.append(one.sortby("t").transpose(*order, ..., missing_dims="ignore"))
    return tuple(out)


def _draw(ax: Axes, result: xr.Dataset, name: str, simulated: bool, line: str) -> None:
    t, values = result.t.values, result[name].values
    known = SYMBOLS[name] in ax.get_legend_handles_labels()[1]
    style: dict[str, Any] = {"color": COLOURS[name], "label": "_" if known else SYMBOLS[name]}
    error = drawing.bars(values, result[f"{name}_se"].values) if f"{name}_se" in result else None
    if simulated:
        style |= {"fmt": MARKERS[name], "ms": 3.5, "mfc": "white", "lw": 0.8, "capsize": 1.5}
        ax.errorbar(t, values, error, zorder=3, **style)
    else:
        if t.size == 1:  # no line
            ax.errorbar(t, values, error, fmt="_", ms=9, lw=0.8, **style)
            return
        ax.plot(t, values, line, lw=1.2, **style)
        if error is not None:
            low, high = values - error, values + error
            ax.fill_between(t, low, high, color=COLOURS[name], alpha=0.2, lw=0)


def _method(result: xr.Dataset) -> str:
    if "method" in result.coords:  # a swept one, by its name or as it is written
        name = str(result.coords["method"].item()).partition("(")[0]
    else:
        entry = told(result, "method")
        name = entry if isinstance(entry, str) else str(entry.get("name", ""))
    return verbs.METHODS.get(name, name)


def _quantity(names: set[str]) -> str:
    """Say what the vertical axis shows."""
    if len(names) == 1:
        return SYMBOLS[next(iter(names))]
    kinds = {"order parameter": ORDER_PARAMETERS, "mean squared error": SQUARES, "error": ERRORS}
    fitting = [kind for kind, members in kinds.items() if names <= {*members}]
    return fitting[0] if fitting else "order parameters and errors"


def _names(results: Sequence[xr.Dataset]) -> list[str]:
    """Say what tells the results apart: fields of their problems, and their methods."""
    found: list[dict[str, Any]] = []
    for result in results:
        problem = told(result, "problem")
        data, rule = problem.pop("data", {}), problem.pop("rule", {})
        swept = {str(k): v.item() for k, v in result.coords.items() if v.ndim == 0}
        found.append({**data, **problem, **rule, "rule": rule.get("name"), **swept})
    keys = dict.fromkeys(key for fields in found for key in fields if key in NAMES)
    varied = [key for key in keys if len({str(fields.get(key)) for fields in found}) > 1]
    methods = [METHODS.get(_method(result), _method(result)) for result in results]
    return [
        ", ".join(
            [f"{NAMES[key]} = {value_label(fields[key])}" for key in varied if key in fields]
            + [method] * (len({*methods}) > 1 or not varied)
        )
        for fields, method in zip(found, methods, strict=True)
    ]


def _time_per_pass(result: xr.Dataset) -> float | None:
    """p/N of a result about a data set, which says how long a pass takes."""
    data = told(result, "problem").get("data", {})
    return data["examples"] / data["features"] if "examples" in data else None


def _passes(ax: Axes, results: Sequence[xr.Dataset]) -> None:
    """Add an axis in passes over the data, if there are data and all agree on it."""
    lengths = {_time_per_pass(result) for result in results}
    length = lengths.pop()
    if lengths or length is None or ax.child_axes:
        return
    above = ax.secondary_xaxis(
        "top",
        functions=(
            lambda t: np.asarray(t, float) / length,
            lambda n: np.asarray(n, float) * length,
        ),
    )
    above.set_xlabel("passes over the data")


def _legend(ax: Axes) -> None:
    """Say what is drawn, then in which way; above the axis of passes, if there is one."""
    labels = ax.get_legend_handles_labels()[1]
    if labels:
        order = sorted(range(len(labels)), key=lambda i: labels[i] not in SYMBOLS.values())
        keys = [label for label in labels if label not in SYMBOLS.values()]
        columns = 2 if max(map(len, keys), default=0) > 18 else 3
        legend_above(ax, columns, order, pad=38.0 if ax.child_axes else 4.0)
