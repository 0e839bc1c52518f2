"""Overlaps of hidden units as curves: units are colours, teachers are dashes and markers."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c510a", "#555555")
DASHES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 4)))
MARKERS = "os^Dvp"
FADED = (1.0, 0.55, 0.35, 0.25)  # of several theories
LENGTHS: dict[str, Any] = {"lw": 0.8, "ls": (0, (2, 1))}  # of Q: thin and short
BETWEEN = "0.6"  # of two units


def draw(ax: Axes, result: xr.Dataset, name: str, simulated: bool, number: int) -> None:
    """Draw R_km, Q_kl or a_k, each line once, and say by its label what colours and dashes are."""
    values, error = result[name], result.get(f"{name}_se")
    inner = values.shape[1:]
    for place in np.ndindex(*inner):
        if name == "Q" and place[0] > place[-1]:
            continue
        style = look(name, place, simulated)
        if not simulated:
            style["alpha"] = FADED[min(number, len(FADED) - 1)]
        t, curve = result.t.values, values.values[(slice(None), *place)]
        spread = None if error is None else bars(curve, error.values[(slice(None), *place)])
        if simulated or t.size == 1:
            ax.errorbar(t, curve, spread, zorder=3, capsize=1.5, **style)
        else:
            ax.plot(t, curve, **style)
            if spread is not None and (spread > 0).any():
                colour = style["color"]
                ax.fill_between(t, curve - spread, curve + spread, color=colour, alpha=0.15, lw=0)
    keys(ax, name, inner)


def bars(values: Any, errors: Any) -> Any:
    """Return the errors of values to be drawn: what has diverged has none, inf − inf is none.

    Examples
    --------
    >>> bars(np.array([1.0, np.inf]), np.array([0.1, np.inf]))
    array([0.1, nan])
    """
    return np.where(np.isfinite(values) & np.isfinite(errors), errors, np.nan)


def look(name: str, place: tuple[int, ...], simulated: bool) -> dict[str, Any]:
    """Colour, dash or marker of one curve."""
    unit, other = place[0], place[-1]
    colour = COLOURS[unit % len(COLOURS)]
    if name == "Q" and unit != other:
        colour = BETWEEN
    if simulated:
        marker = MARKERS[other % len(MARKERS)] if name == "R" else ("x" if name == "Q" else "+")
        return {"color": colour, "marker": marker, "ls": "", "ms": 3.5, "mfc": "white", "lw": 0.8}
    if name == "Q":
        return {"color": colour, **LENGTHS}
    dash = DASHES[other % len(DASHES)] if name == "R" else (0, (1, 1))
    return {"color": colour, "ls": dash, "lw": 1.3}


def mark(other: int) -> dict[str, Any]:
    """Return the marker of one of the teacher's units."""
    return {"marker": MARKERS[other % len(MARKERS)], "ms": 3.5, "mfc": "white"}


def keys(ax: Axes, name: str, inner: tuple[int, ...]) -> None:
    """Add keys that are not there yet: a colour for each unit, a dash for each of the teacher's."""
    wanted: list[tuple[str, dict[str, Any]]] = [
        (f"unit {k + 1}", {"color": COLOURS[k % len(COLOURS)], "ls": "-"}) for k in range(inner[0])
    ]
    if name == "R":
        wanted += [
            (f"teacher {m + 1}", {"color": "0.2", "ls": DASHES[m % len(DASHES)]} | mark(m))
            for m in range(inner[1])
        ]
    elif name == "Q":
        wanted.append((r"$Q_{kk}$", {"color": "0.2", **LENGTHS}))
        wanted += [(r"$Q_{k\neq l}$", {"color": BETWEEN, **LENGTHS})] * (inner[0] > 1)
    else:
        wanted.append(("second layer", {"color": "0.2", "ls": (0, (1, 1))}))
    known = ax.get_legend_handles_labels()[1]
    for label, style in wanted:
        if label not in known:
            ax.plot([], [], label=label, **{"lw": 1.3, **style})
