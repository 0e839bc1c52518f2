"""How things look in a notebook: a problem as a table, progress as a bar."""

from __future__ import annotations

import html
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manypass.problem import Problem

MEANINGS = {
    "data": "examples",
    "rule": "rule",
    "rate": "learning rate <i>v</i>",
    "decay": "weight decay <i>λ</i>",
    "temperature": "temperature <i>T</i>",
    "mode": "mode",
    "sequence": "order of the examples",
    "batch_share": "share of the data in a step <i>β</i>",
    "batch_size": "examples in a step <i>b</i>",
    "momentum": "momentum",
    "start": "start <i>J</i>(0)",
}
ALWAYS = ("data", "rule", "rate", "decay", "sequence")  # shown even where they are the default


def draws_bars() -> bool:
    """Whether a bar would be seen as one: on a terminal, or in a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def span(seconds: float) -> str:
    """Write a time that something may take.

    Examples
    --------
    >>> span(7.2), span(200)
    ('7 s', '3 minutes')
    """
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} minutes"


def bar(**options: Any) -> Any:
    """Return a bar of tqdm, on stderr; in a notebook a widget, where ipywidgets is installed."""
    if "ipykernel" in sys.modules and find_spec("ipywidgets"):
        from tqdm.notebook import tqdm
    else:
        from tqdm import tqdm
    return tqdm(**options)


def table(problem: Problem) -> str:
    """Return the fields of a problem as HTML, those that are as usual left out."""
    from dataclasses import fields

    from manypass import schedules

    rows = []
    for field in fields(problem):
        value = getattr(problem, field.name)
        if value == field.default and field.name not in ALWAYS:
            continue
        shown = f"{value:.6g}" if isinstance(value, float) else str(schedules.plain(value))
        meaning = MEANINGS.get(field.name, html.escape(field.name))
        rows.append(
            f'<tr><th style="text-align:left">{meaning}</th>'
            f'<td style="text-align:left"><code>{field.name}</code></td>'
            f'<td style="text-align:left">{html.escape(shown)}</td></tr>'
        )
    return f"<table><caption>manypass.Problem</caption><tbody>{''.join(rows)}</tbody></table>"
