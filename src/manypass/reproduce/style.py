"""How the figures look: one journal column wide, panels below each other."""

from __future__ import annotations

from typing import Any

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

WIDTH = 3.4  # inches, one column
LOOK: dict[Any, Any] = {
    "font.size": 8,
    "axes.labelsize": 9,
    "axes.linewidth": 0.6,
    "xtick.direction": "in",
    "ytick.direction": "in",
    "xtick.top": True,
    "ytick.right": True,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "legend.handlelength": 1.8,
    "legend.labelspacing": 0.3,
    "mathtext.fontset": "stix",
    "font.family": "STIXGeneral",
    "lines.linewidth": 1.1,
}


def axes(panels: int, height: float = 2.2, columns: int = 1) -> tuple[Figure, list[Axes]]:
    """Return a figure of panels, marked (a), (b), ... if there is more than one."""
    rows = -(-panels // columns)
    figure = Figure((WIDTH * columns, height * rows), layout="constrained")
    made = list(figure.subplots(rows, columns, squeeze=False).flat)
    for letter, ax in zip("abcdef", made, strict=False):
        if panels > 1:
            ax.set_title(f"({letter})", loc="left", fontsize=9, pad=3)
    return figure, made


def bars(ax: Axes, data: xr.Dataset, name: str, **style: Any) -> None:
    """Draw simulated symbols with error bars against the one dimension of the data."""
    dim = next(iter(data[name].dims))
    look: dict[str, Any] = {
        "ls": "",
        "ms": 3.2,
        "elinewidth": 0.7,
        "capsize": 1.3,
        "mew": 0.7,
        "zorder": 3,
    }
    ax.errorbar(data[dim], data[name], data[f"{name}_se"], **look | style)


def line(ax: Axes, data: xr.Dataset, name: str, **style: Any) -> None:
    """Draw theory against its one dimension, with a band of its error if it has one."""
    dim = next(iter(data[name].dims))
    drawn = ax.plot(data[dim], data[name], **{"lw": 1.1} | style)
    if f"{name}_se" in data:
        low, high = data[name] - data[f"{name}_se"], data[name] + data[f"{name}_se"]
        ax.fill_between(data[dim], low, high, color=drawn[0].get_color(), alpha=0.25, lw=0)
