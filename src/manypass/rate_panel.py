"""The rate against time, as a small panel under learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from manypass import schedules
from manypass.maps import NAMES
from manypass.results import told
from manypass.schedules import Schedule

COLOURS = {"rate": "0.2", "decay": "#8c510a"}
POINTS = 401
SHARE = 0.3  # of the height of the curves, that of the panel


def moves(result: xr.Dataset) -> bool:
    """Whether the rate or the decay of a result changes with time, as far as it is known."""
    return any(isinstance(_given(result, name, {}), Schedule) for name in COLOURS)


def draw(ax: Axes, results: Sequence[xr.Dataset], lines: Sequence[str]) -> Axes:
    """Draw v(t), and λ(t) where one moves, under `ax`, on its time axis; each in its line style."""
    decays = any(isinstance(_given(result, "decay"), Schedule) for result in results)
    names = ("rate", "decay") if decays else ("rate",)
    panel = _under(ax)
    drawn = set[tuple[str, Any]]()
    end = max(float(result.t.values[-1]) for result in results)
    for result, line in zip(results, lines, strict=True):
        for name in names:
            value = _given(result, name)
            if (name, value) in drawn:
                continue
            drawn.add((name, value))
            t = schedules.moments(value, end, POINTS)
            label = NAMES[name] if decays and NAMES[name] not in _labels(panel) else "_"
            panel.plot(t, schedules.at(value, t), line, color=COLOURS[name], lw=1.2, label=label)
    most = max(np.max(np.asarray(each.get_ydata())) for each in panel.lines)
    panel.set_ylim(0, (1.45 if decays else 1.1) * most)  # room for the key
    if decays:
        panel.legend(frameon=False, fontsize="x-small", ncols=2, borderaxespad=0.1)
    panel.set(xlabel=r"$t$", ylabel="" if decays else r"$v(t)$")
    return panel


def _given(result: xr.Dataset, name: str, odd: Any = None) -> Any:
    """Return the rate or the decay of a result: the swept one, or that of its problem."""
    held = told(result, "problem").get(name)
    value = result.coords[name].item() if name in result.coords else held
    try:
        return schedules.read(name, value)
    except ValueError as error:
        if odd is not None:
            return odd
        raise ValueError(f"`rate` cannot be drawn: {error}") from None


def _under(ax: Axes) -> Axes:
    """Return the panel under axes, which give it the lower part of their place."""
    place, figure = ax.get_subplotspec(), ax.get_figure(root=False)
    assert figure is not None
    for other in figure.axes:
        theirs = other.get_subplotspec()
        apart = not (place and theirs) or theirs.get_gridspec() is not place.get_gridspec()
        if other.get_label() == "rate" and not apart:
            return other
    box = ax.get_position()
    shape: dict[str, Any] = {"height_ratios": [1, SHARE], "hspace": 0.06}
    grid: Any = (
        place.subgridspec(2, 1, **shape)
        if place is not None
        else figure.add_gridspec(
            2, 1, left=box.x0, right=box.x1, bottom=box.y0, top=box.y1, **shape
        )
    )
    ax.set_subplotspec(grid[0])
    panel: Axes = figure.add_subplot(grid[1], sharex=ax, label="rate")
    panel.yaxis.set_major_locator(MaxNLocator(2, min_n_ticks=2))
    ax.tick_params(labelbottom=False)
    ax.set_xlabel("")
    return panel


def _labels(panel: Axes) -> list[str]:
    return panel.get_legend_handles_labels()[1]
