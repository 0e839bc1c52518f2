"""How swept values are written: numbers as they are, everything else by its text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from manypass import inputs, rules, schedules
from manypass.start import Start

SCHEDULED = ("rate", "decay")


def canonical(name: str, value: Any) -> Any:
    """Return the one text of a schedule, the rule of a table; other values as they are."""
    if name == "rule" and isinstance(value, str | dict):
        rule = rules.from_dict(value)
        return value if isinstance(value, str) else rule  # a name is what `sel` is then given
    if name not in SCHEDULED or not (isinstance(value, str) or callable(value)):
        return value
    value = schedules.read(name, value)
    return value if schedules.own(value) else schedules.plain(value)


def label(name: str, value: Any) -> Any:
    """Numbers and words stay; schedules, starts, rules and methods are named."""
    if name == "start" and isinstance(value, Start | dict | None):
        entries = value if isinstance(value, dict) else (value or Start()).to_dict()
        text = {k: v if isinstance(v, list) else schedules.text(v) for k, v in entries.items()}
        return ", ".join(f"{key}={item}" for key, item in text.items())
    if isinstance(value, schedules.Schedule):
        return str(value)
    return value if isinstance(value, str | int | float) else repr(value)


def entry(name: str, value: Any) -> Any:
    """Return what stands in files for a value of a field of the problem.

    Examples
    --------
    >>> entry("rule", "adatron"), entry("rate", schedules.Cosine(1.5, 0.1, 8.0))
    ({'name': 'adatron', 'kappa': 1.0}, 'cosine:1.5:0.1:8')
    """
    if name == "rule":
        rule = value if isinstance(value, rules.Rule) else rules.from_dict(value)
        return rule.to_dict()
    if name == "start":
        return value.to_dict() if isinstance(value, Start) else value
    if name == "inputs":
        return inputs.read(value).plain()
    return label(name, value)


def coordinate(name: str, values: Iterable[Any]) -> list[Any]:
    """Return labels of one kind: where one is a text, numbers are texts too, as files need it.

    Examples
    --------
    >>> coordinate("rate", [schedules.Function(f) for f in (lambda t: 1.0, lambda t: 2.0)])
    ['function:<lambda>', 'function:<lambda>#2']
    """
    given = list(values)
    labels = [label(name, value) for value in given]
    if not any(isinstance(each, str) for each in labels):
        return labels
    texts = [each if isinstance(each, str) else schedules.text(each) for each in labels]
    alike: dict[str, list[Any]] = {}  # functions of one's own that have one name
    for i, value in enumerate(given):
        if isinstance(value, schedules.Schedule):
            same = alike.setdefault(texts[i], [])
            same += [] if value in same else [value]
            texts[i] += f"#{same.index(value) + 1}" if same[0] != value else ""
    return texts
