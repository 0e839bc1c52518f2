"""The problems whose simulated curves are kept in tables: every rule, task, sequence and corner."""

from __future__ import annotations

from typing import Any

import numpy as np

import manypass as mp


def _sign(x, target):  # type: ignore[no-untyped-def]
    return 1.0 * (target > x) - 1.0 * (target < x)  # np.sign is not to be had on a card


def _no_slope(x, target):  # type: ignore[no-untyped-def]
    return 0.0 * x * target


def _arctan(x, target):  # type: ignore[no-untyped-def]
    return np.arctan(target - x)


def _arctan_slope(x, target):  # type: ignore[no-untyped-def]
    return -1.0 / (1.0 + (target - x) ** 2)


OWN = {"sign": (_sign, _no_slope), "arctan": (_arctan, _arctan_slope)}  # users' own rules


def rule(name: str, **parameters: float) -> mp.Rule:
    """Return a rule by its name, one of manypass's or of `OWN`."""
    if name in OWN:
        return mp.Rule(*OWN[name])
    kinds: dict[str, Any] = {
        kind.__name__.lower(): kind
        for kind in (mp.Hebbian, mp.Adaline, mp.Adatron, mp.Perceptron, mp.Logistic, mp.Huber)
    } | {"committee": mp.Committee}
    return kinds[name](**parameters)  # type: ignore[no-any-return]


def case(
    alpha: float, rule: str, rate: Any, decay: Any, times: list[float], **more: Any
) -> dict[str, Any]:
    """One entry: the teacher's alpha, task and noise, the rule and its parameters, and the rest."""
    return {"alpha": alpha, "rule": rule, "rate": rate, "decay": decay, "times": times} | more


def problem(entry: dict[str, Any]) -> mp.Problem:
    """Return the problem of an entry."""
    what = {k: entry[k] for k in ("alpha", "task", "noise", "inputs") if k in entry}
    data = mp.Teacher(**what | entry.get("teacher", {}))
    how = {k: entry[k] for k in ("rate", "decay", "temperature", "sequence") if k in entry}
    how |= {"start": mp.Start(*entry["start"])} if "start" in entry else {}
    own = {k: entry[k] for k in ("kappa", "width") if k in entry} | entry.get("student", {})
    return mp.Problem(data, rule(entry["rule"], **own), **how)


REGRESSION: dict[str, Any] = {"task": "regression"}
EARLY, LATE = [0.25, 0.5, 1.0, 2.0, 4.0], [1.0, 4.0, 8.0, 16.0, 30.0, 60.0]
TWENTY = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0]

CASES: dict[str, dict[str, Any]] = {
    # exact theory
    "adaline-figure2": case(1.2, "adaline", 1.9, 0.8, EARLY),
    "adaline-few": case(0.5, "adaline", 0.5, 0.4, TWENTY, noise=0.3),
    "adaline-fewer": case(0.3, "adaline", 1.0, 0.2, EARLY, **REGRESSION, noise=0.5),
    "adaline-many": case(2.0, "adaline", 0.3, 0.05, TWENTY, **REGRESSION),
    "adaline-heat": case(1.2, "adaline", 1.0, 0.8, EARLY, temperature=0.1),
    "adaline-heat-regression": case(
        0.8, "adaline", 1.5, 0.1, TWENTY, **REGRESSION, noise=0.2, temperature=0.05
    ),
    "adaline-hot": case(2.0, "adaline", 0.5, 0.2, TWENTY, temperature=0.5),
    "adaline-fast": case(3.0, "adaline", 2.2, 0.5, EARLY),
    "adaline-no-decay": case(1.5, "adaline", 0.1, 0.0, LATE, **REGRESSION, noise=0.1),
    "adaline-six-passes": case(
        0.6, "adaline", 1.4, 0.2, [0.3, 0.6, 1.2, 2.4, 3.6], **REGRESSION, noise=0.5
    ),
    "adaline-late": case(1.0, "adaline", 1.0, 0.05, LATE),
    "hebbian": case(1.0, "hebbian", 1.0, 0.5, EARLY),
    "hebbian-heat": case(0.5, "hebbian", 1.0, 0.3, EARLY, **REGRESSION, noise=0.5, temperature=0.2),
    # mean field, continuous forces
    "adatron-late": case(1.0, "adatron", 1.0, 0.1, LATE, kappa=1.0),
    "adatron-settled": case(1.0, "adatron", 1.0, 0.3, LATE, kappa=1.0),
    "adatron-fast": case(1.5, "adatron", 1.4, 0.3, [0.5, 1.0, 2.0, 4.0, 8.0], kappa=1.0),
    "adatron-slow": case(0.3, "adatron", 0.1, 0.1, TWENTY, kappa=0.8),
    "adatron-noisy": case(0.5, "adatron", 2.0, 0.5, EARLY, kappa=1.0, noise=0.5),
    "adatron-heat": case(3.0, "adatron", 0.5, 0.2, TWENTY, kappa=0.5, temperature=0.1),
    "adatron-small-decay": case(0.6, "adatron", 0.7, 0.02, LATE, kappa=1.0, noise=0.5),
    "logistic": case(1.0, "logistic", 2.0, 0.1, TWENTY),
    "logistic-noisy": case(0.5, "logistic", 5.0, 0.02, TWENTY, noise=0.3),
    "logistic-heat": case(3.0, "logistic", 1.0, 0.05, TWENTY, temperature=0.05),
    "logistic-late": case(1.2, "logistic", 3.0, 0.05, LATE),
    "huber-late": case(1.0, "huber", 1.0, 0.05, LATE, **REGRESSION, noise=1.0, width=1.0),
    "huber-narrow": case(0.6, "huber", 1.4, 0.2, EARLY, **REGRESSION, noise=0.5, width=0.5),
    "huber-heat": case(
        2.0, "huber", 0.5, 0.1, TWENTY, **REGRESSION, noise=0.3, temperature=0.05, width=1.0
    ),
    "arctan": case(1.0, "arctan", 1.0, 0.1, TWENTY),
    # forces that jump
    "perceptron": case(1.5, "perceptron", 1.0, 0.5, EARLY, kappa=0.0),
    "perceptron-margin": case(1.5, "perceptron", 2.0, 0.5, EARLY, kappa=0.5),
    "perceptron-few": case(0.5, "perceptron", 1.0, 0.5, EARLY, kappa=0.0, noise=0.3),
    "perceptron-slow": case(1.0, "perceptron", 0.3, 0.1, TWENTY, kappa=0.2),
    "perceptron-fast": case(3.0, "perceptron", 3.0, 0.3, TWENTY, kappa=0.0, noise=0.3),
    "perceptron-fewer": case(0.3, "perceptron", 0.1, 0.2, TWENTY, kappa=0.5),
    "perceptron-small-decay": case(2.0, "perceptron", 1.0, 0.05, TWENTY, kappa=0.2, noise=0.3),
    "perceptron-fast-few": case(0.3, "perceptron", 3.0, 0.5, EARLY, kappa=0.0),
    "perceptron-late": case(1.0, "perceptron", 1.0, 0.1, LATE, kappa=0.5),
    "sign": case(1.0, "sign", 0.5, 0.2, TWENTY, **REGRESSION, noise=0.3),
    "sign-fast": case(0.6, "sign", 1.0, 0.5, EARLY, **REGRESSION),
}

# The same in passes over the data, at half and whole passes, in both orders.
PASSES = [0.5, 1.0, 1.5, 2.0, 3.0, 4.5, 6.0]
IN_PASSES: dict[str, dict[str, Any]] = {
    "adaline-regression": case(0.6, "adaline", 1.4, 0.2, PASSES, **REGRESSION, noise=0.5),
    "adaline": case(1.2, "adaline", 1.0, 0.8, PASSES),
    "adaline-no-decay": case(2.0, "adaline", 0.3, 0.0, PASSES, **REGRESSION, noise=0.3),
    "adaline-heat": case(0.5, "adaline", 1.0, 0.4, PASSES, temperature=0.1),
    "adatron": case(1.0, "adatron", 1.0, 0.1, PASSES, kappa=1.0),
    "adatron-noisy": case(2.0, "adatron", 1.4, 0.3, PASSES, kappa=1.0, noise=0.5),
    "adatron-no-decay": case(0.5, "adatron", 0.3, 0.0, PASSES, kappa=1.0),
    "perceptron": case(1.5, "perceptron", 1.0, 0.3, PASSES, kappa=0.2),
    "perceptron-noisy": case(0.6, "perceptron", 2.0, 0.5, PASSES, kappa=0.5, noise=0.3),
    "logistic": case(1.2, "logistic", 3.0, 0.05, PASSES),
    "logistic-no-decay": case(0.5, "logistic", 1.0, 0.0, PASSES, noise=0.3),
    "huber": case(0.8, "huber", 1.2, 0.1, PASSES, **REGRESSION, noise=0.5, width=0.5),
    "huber-heat": case(
        2.0, "huber", 0.4, 0.0, PASSES, **REGRESSION, noise=0.2, temperature=0.05, width=1.0
    ),
}
for _order in ("reshuffled", "fixed"):
    for _name, _entry in IN_PASSES.items():
        _times = [_entry["alpha"] * passes for passes in _entry["times"]]
        CASES[f"{_order}-{_name}"] = _entry | {"times": _times, "sequence": _order}

# Rates and decays that move, from J = 0 and from elsewhere.
MOVING = {
    "inverse": "inverse:1.5:2",
    "cosine": "cosine:1.6:0.1:8",
    "steps": "steps:0:1.4:2:0.3:5:0.8",
    "warmup": "warmup:1:exponential:1.5:4",
}
THROUGH = [0.5, 1.5, 3.0, 6.0, 10.0]
KINDS: dict[str, dict[str, Any]] = {
    "adaline": case(1.2, "adaline", 0.0, 0.2, THROUGH, **REGRESSION, noise=0.5),
    "adatron": case(1.0, "adatron", 0.0, 0.1, THROUGH, kappa=1.0),
    "logistic": case(0.7, "logistic", 0.0, 0.05, THROUGH, noise=0.3),
}
for _kind, _entry in KINDS.items():
    for _name, _rate in MOVING.items():
        CASES[f"{_kind}-{_name}"] = _entry | {"rate": _rate}
        CASES[f"{_kind}-{_name}-start"] = _entry | {"rate": _rate, "start": [-0.3, 1.0]}
    CASES[f"{_kind}-moving-decay"] = _entry | {"rate": 1.0, "decay": "inverse:1:1"}
    CASES[f"{_kind}-moving-reshuffled"] = _entry | {
        "rate": MOVING["cosine"],
        "sequence": "reshuffled",
        "start": [0.3, 0.5],
    }
CASES["adaline-moving-hot"] = KINDS["adaline"] | {
    "rate": MOVING["steps"],
    "temperature": 0.1,
    "start": [0.5, 0.5],
}
CASES["perceptron-moving"] = case(1.5, "perceptron", MOVING["inverse"], 0.1, THROUGH, kappa=0.2)

# Correlated inputs, vμ_max/N at most 0.02 at N = 500; rates some 0.3 and 0.7 of the critical one.
TWO_BLOCKS = {"values": [0.3, 2.5], "weights": [3.0, 1.0]}
for _name, _cutoff, _entry in (
    ("adaline", 0.05, case(0.6, "adaline", 0.6, 0.1, TWENTY, noise=0.3)),
    ("adaline-fast", 0.1, case(1.5, "adaline", 1.5, 0.05, TWENTY, **REGRESSION, noise=0.5)),
    ("adaline-sharp", 0.02, case(1.2, "adaline", 0.55, 0.05, LATE, **REGRESSION, temperature=0.05)),
    ("adatron", 0.05, case(1.5, "adatron", 0.65, 0.1, TWENTY, kappa=1.0)),
    ("logistic", 0.1, case(0.6, "logistic", 1.5, 0.05, TWENTY, noise=0.3)),
    ("perceptron", 0.05, case(0.6, "perceptron", 0.65, 0.2, TWENTY, kappa=0.2, noise=0.3)),
):
    CASES[f"powerlaw-{_name}"] = _entry | {"inputs": f"powerlaw:1.2:1.4:{_cutoff}"}
for _name, _entry in {
    "adaline": case(0.5, "adaline", 0.65, 0.1, TWENTY, **REGRESSION, noise=0.5),
    "adaline-fast": case(2.0, "adaline", 1.6, 0.2, TWENTY),
    "adaline-heat": case(0.8, "adaline", 0.65, 0.05, TWENTY, noise=0.3, temperature=0.1),
    "adatron-fast": case(0.6, "adatron", 1.5, 0.2, TWENTY, kappa=1.0, noise=0.5),
    "logistic-heat": case(2.0, "logistic", 3.0, 0.05, TWENTY, temperature=0.05),
    "perceptron-fast": case(1.5, "perceptron", 1.5, 0.2, TWENTY, kappa=0.5),
}.items():
    CASES[f"blocks-{_name}"] = _entry | {"inputs": TWO_BLOCKS}


def committee(
    alpha: float,
    rate: Any,
    decay: float,
    times: list[float],
    units: tuple[int, int],
    start: float,
    activation: str = "erf",
    **more: Any,
) -> dict[str, Any]:
    """Two layers of K and M units; R = start where their numbers agree, Q = ¼ on the diagonal."""
    K, M = units
    R, Q = (start * np.eye(K, M)).tolist(), (0.25 * np.eye(K)).tolist()
    student = {"hidden": K, "activation": activation} | more.pop("student", {})
    teacher = {"hidden": M} | more.pop("teacher", {})
    layers = {"student": student, "teacher": teacher, "start": [R, Q]}
    return case(alpha, "committee", rate, decay, times, **REGRESSION | layers | more)


TWENTY_LATE = [1.0, 2.0, 5.0, 10.0, 20.0]
BOTH = {"second": [1.0, -1.0]}
COMMITTEES = {
    "erf": committee(4.0, 1.0, 0.0, TWENTY_LATE, (2, 2), 0.2),
    "erf-few": committee(1.5, 1.0, 0.02, TWENTY_LATE, (2, 2), 0.3, noise=0.2),
    "erf-many-units": committee(2.0, 1.0, 0.02, TWENTY_LATE, (3, 2), 0.2, noise=0.3),
    "erf-one-taught": committee(1.0, 1.0, 0.05, TWENTY_LATE, (2, 1), 0.2, noise=0.2),
    "relu": committee(3.0, 0.4, 0.0, TWENTY_LATE, (2, 2), 0.3, "relu", noise=0.1),
    "tanh-overlap": committee(
        1.5,
        0.7,
        0.02,
        TWENTY_LATE,
        (2, 2),
        0.3,
        "tanh",
        noise=0.2,
        teacher={"overlaps": [[1.0, 0.3], [0.3, 1.0]]},
    ),
    "second": committee(
        3.0,
        1.0,
        0.0,
        TWENTY_LATE,
        (2, 2),
        0.2,
        noise=0.1,
        student={"second": [0.5, 0.8], "second_rate": 0.5},
        teacher={"second": [1.0, 1.5]},
    ),
    "classes": committee(2.0, 0.5, 0.05, TWENTY_LATE, (2, 2), 0.2, task="classification"),
    "reshuffled": committee(
        2.0, 1.0, 0.0, [1.0, 2.0, 4.0, 8.0, 16.0], (2, 2), 0.2, noise=0.1, sequence="reshuffled"
    ),
    "relu-classes": committee(
        3.0,
        0.3,
        0.05,
        TWENTY_LATE,
        (2, 2),
        0.2,
        "relu",
        task="classification",
        noise=0.2,
        student=BOTH,
        teacher=BOTH,
    ),
    "four": committee(3.0, 1.0, 0.0, TWENTY_LATE, (4, 4), 0.35, noise=0.1),
    "fixed": committee(
        1.5, 0.8, 0.02, [0.75, 1.5, 3.0, 6.0, 12.0], (2, 2), 0.3, noise=0.2, sequence="fixed"
    ),
    "moving": committee(
        1.0, "cosine:1.5:0.1:15", 0.05, TWENTY_LATE, (2, 2), 0.3, noise=0.2, temperature=0.02
    ),
    "mismatched": committee(
        1.5, 0.5, 0.02, TWENTY_LATE, (2, 2), 0.2, "relu", noise=0.2, teacher={"activation": "tanh"}
    ),
    "relu-reshuffled": committee(
        1.5, 0.4, 0.02, [0.75, 1.5, 3.0, 6.0, 12.0], (3, 2), 0.3, "relu", sequence="reshuffled"
    ),
}
COMMITTEES = {f"committee-{_name}": _entry for _name, _entry in COMMITTEES.items()}
EVERY = CASES | COMMITTEES


def moves(entry: dict[str, Any]) -> bool:
    """Whether the rate or the decay of an entry moves, or it has a start."""
    return any(isinstance(entry[key], str) for key in ("rate", "decay")) or "start" in entry
