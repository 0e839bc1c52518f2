"""Absurd values of every argument: one line that names the argument, no other kind of error."""

import datetime
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import manypass as mp
from manypass import schedules

PROBLEM = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.0, decay=0.1)
UNITS = mp.Start(R=[[0.1, 0], [0, 0.1]], Q=[[0.25, 0], [0, 0.25]])
LAYERED = mp.Problem(mp.Teacher(2.0, hidden=2), mp.Committee(2), rate=1.0, start=UNITS)
with ThreadPoolExecutor(1) as executor:
    SWEPT = mp.sweep(mp.Grid(PROBLEM, rate=[0.5, 1.0], decay=[0.1, 0.2]), executor=executor)
X = np.random.default_rng(0).standard_normal((60, 3))
OWN = PROBLEM.replace(data=mp.Dataset(X, X[:, 0] + X[:, 1] ** 2 - 1), decay=0.0)


class Hostile:
    def __repr__(self):
        raise RuntimeError("no text")

    def __array__(self, *_, **__):
        raise RuntimeError("no numbers")


# None and a number are what some of them may be
ABSURD = {
    "text": "a\nb",
    "nan": np.nan,
    "complex": 1j,
    "negative": -1e300,
    "bytes": b"x",
    "object": object(),
    "class": dict,
    "dict": {"a\n": 1},
    "set": {1, 2},
    "ragged": [[1], [1, 2]],
    "nested": [[[1.0]]],
    "array": np.full((3, 40), np.nan),
    "strings": np.array(["a", "b"]),
    "date": datetime.date(2000, 1, 1),
    "span": np.timedelta64(1, "s"),
    "frame": pd.DataFrame({"a": [1], "b": ["x"]}),
    "digits": ["1e5", "2"],
    "moment": np.datetime64("2000-01-01", "ns"),
    "truths": [True, False],
    "masked": np.ma.array([1.0, 2.0], mask=[0, 1]),
    "huge": 10**400,
    "unwritable": 10**5000,
    "variables": xr.Dataset({"a": 1.0}),
    "hostile": Hostile(),
    "generator": (i for i in range(0)),
    "failing": lambda *values: 1 / 0,
}
TAKES = {  # a name, the call with one argument, the argument
    **{
        f"Problem({name})": (lambda v, name=name: PROBLEM.replace(**{name: v}), name)
        for name in (
            *("data", "rule", "rate", "decay", "temperature", "mode", "sequence", "batch_share"),
            *("batch_size", "momentum", "start"),
        )
    },
    **{
        f"Teacher({name})": (lambda v, name=name: mp.Teacher(**{"alpha": 1.0, name: v}), name)
        for name in ("alpha", "task", "noise", "inputs", "hidden", "activation")
    },
    "Teacher(second)": (lambda v: mp.Teacher(1.0, hidden=2, second=v), "second"),
    "Teacher(overlaps)": (lambda v: mp.Teacher(1.0, hidden=2, overlaps=v), "overlaps"),
    **{
        f"Committee({name})": (lambda v, name=name: mp.Committee(**{name: v}), name)
        for name in ("hidden", "activation", "second", "second_rate")
    },
    **{
        f"Start({name})": (lambda v, name=name: mp.Start(**{name: v}), name)
        for name in ("R", "Q", "weights")
    },
    **{
        f"PowerLaw({name})": (lambda v, n=name: mp.PowerLaw(**{"exponent": 1.0, n: v}), name)
        for name in ("exponent", "teacher", "cutoff")
    },
    **{
        f"Blocks({name})": (lambda v, n=name: mp.Blocks(**{"values": [1, 2], n: v}), name)
        for name in ("values", "weights", "power")
    },
    **{
        f"Eigenvalues({name})": (lambda v, n=name: mp.Eigenvalues(**{"mu": [1, 2], n: v}), name)
        for name in ("mu", "power")
    },
    "Steps(pieces)": (schedules.Steps, "pieces"),
    **{
        f"{kind.__name__}({name})": (lambda v, k=kind, g=given, n=name: k(**g | {n: v}), name)
        for kind, given in (
            (schedules.InverseTime, {"value": 1.0, "tau": 1.0, "power": 1.0}),
            (schedules.Exponential, {"value": 1.0, "tau": 1.0}),
            (schedules.Cosine, {"high": 1.0, "low": 0.1, "until": 1.0}),
            (schedules.Warmup, {"until": 1.0, "then": 1.0}),
        )
        for name in given
    },
    "Rule(force)": (mp.Rule, "force"),
    "Rule(slope)": (lambda v: mp.Rule(lambda x, y: y - x, v), "slope"),
    **{
        f"Dataset({name})": (
            lambda v, n=name: mp.Dataset(**{"X": X, "y": X[:, 0] ** 3, n: v}),
            name,
        )
        for name in ("X", "y", "task", "standardize", "intercept", "drop_constant")
    },
    "specialization(alpha)": (lambda v: mp.specialization(LAYERED, [1.0], alpha=v), "alpha"),
    "effective_data(problem)": (lambda v: mp.effective_data(v, [1, 2]), "problem"),
    "effective_data(passes)": (lambda v: mp.effective_data(PROBLEM, v), "passes"),
    "effective_data(tuned)": (lambda v: mp.effective_data(PROBLEM, [1], tuned=v), "tuned"),
    "specialization(problem)": (lambda v: mp.specialization(v, [1.0, 2.0]), "problem"),
    "problem_of(result)": (mp.problem_of, "result"),
    "Start.of(result)": (mp.Start.of, "result"),
    "inputs_of(X)": (lambda v: mp.inputs_of(v, [1.0, 2.0]), "X"),
    "inputs_of(y)": (lambda v: mp.inputs_of(X, v), "y"),
    "best(progress)": (lambda v: mp.best(PROBLEM, "rate", progress=v), "progress"),
    "sweep(progress)": (lambda v: mp.sweep(mp.Grid(PROBLEM, n=[1]), progress=v), "progress"),
    "moments(power)": (PROBLEM.data.moments, "power"),
    "problem_of(data)": (lambda v: mp.problem_of(mp.solve(PROBLEM, [1.0]), v), "data"),
    "specialization(draws)": (lambda v: mp.specialization(LAYERED, [1.0], draws=v), "draws"),
    "plot.activations(bins)": (
        lambda v: mp.plot.activations(mp.activations(PROBLEM, 1.0, samples=9), bins=v),
        "bins",
    ),
    "plot.heatmap(y)": (lambda v: mp.plot.heatmap(SWEPT, y=v), "y"),
    "save(path)": (lambda v: mp.save(mp.solve(PROBLEM, [1.0]), v), "path"),
    "best(over)": (lambda v: mp.best(PROBLEM, v), "over"),
    **{
        f"best({name})": (lambda v, n=name: mp.best(PROBLEM, "schedule", **{"at": 2.0, n: v}), name)
        for name in ("at", "objective", "method", "window")
    },
    **{
        f"advise({name})": (lambda v, n=name: mp.advise(OWN, **{"passes": 2, n: v}), name)
        for name in ("passes", "objective", "holdout", "seed", "schedules")
    },
    **{
        f"{kind.__name__}({name})": (lambda v, kind=kind, n=name: kind(**{n: v}), name)
        for kind, names in (
            (mp.DMFT, ("dt", "samples", "seed", "rtol", "memory", "threads")),
            (mp.Exact, ("eigenvalues", "samples", "accuracy", "seed", "diagonal", "device")),
            (
                mp.Simulation,
                (
                    *("n", "samples", "seed", "sequence", "precision", "settle", "response"),
                    *("stimulus", "threads", "device"),
                ),
            ),
        )
        for name in names
    },
    "solve(times)": (lambda v: mp.solve(PROBLEM, v), "times"),
    "solve(method)": (lambda v: mp.solve(PROBLEM, [1.0], v), "method"),
    "solve(two_time)": (lambda v: mp.solve(PROBLEM, [1.0], two_time=v), "two_time"),
    "steady_state(window)": (lambda v: mp.steady_state(PROBLEM, window=v), "window"),
    "critical_rate(device)": (lambda v: mp.critical_rate(PROBLEM, device=v), "device"),
    "critical_rate(eigenvalues)": (
        lambda v: mp.critical_rate(PROBLEM, eigenvalues=v),
        "eigenvalues",
    ),
}


@pytest.mark.filterwarnings("ignore:`y` has 0 and 1 alone")
@pytest.mark.parametrize("taken", TAKES)
def test_absurd_values_are_one_line_that_names_the_argument(taken):
    call, name = TAKES[taken]
    wrong = {}
    for kind, value in ABSURD.items():
        try:
            wrong[kind] = call(value)
        except (ValueError, TypeError) as told:
            named = f"`{name}" in str(told)
            if not named or "\n" in str(told) or len(str(told)) >= 600:
                wrong[kind] = str(told)
    assert not wrong


@pytest.mark.parametrize("name", ["rate", "n"])
@pytest.mark.parametrize("values", [b"x", bytearray(b"x"), {0.5: 1.0}, "0.5", 0.5, None])
def test_what_is_swept_is_a_list(name, values):
    with pytest.raises(ValueError, match=f"^`{name}` must have a list of values, got "):
        mp.Grid(PROBLEM, {name: values})


def test_what_cannot_be_written_is_named_by_its_kind():
    with pytest.raises(ValueError, match=r"`alpha` must be .*, got a int that cannot be written"):
        mp.Teacher(alpha=10**5000)


@pytest.mark.parametrize("value", [None, 0, 1, "no", [], np.array([]), pd.NA, dict, Hostile()])
def test_progress_is_a_truth_or_a_function(value):
    with pytest.raises(ValueError, match=r"^`progress` must be True, False or a function, got "):
        mp.solve(PROBLEM, [1.0], progress=value)


@pytest.mark.parametrize("value", [lambda: 0, lambda a, b: 0, lambda *, a: 0])
def test_progress_is_a_function_of_one_result(value):
    with pytest.raises(ValueError, match=r"^`progress` must be a function of the result so far"):
        mp.solve(PROBLEM, [1.0], progress=value)


def test_the_density_of_a_spectrum_is_nought_beyond_its_edges():
    assert mp.spectrum.density(2.0, [-1e308, 0.0, 1e308]).tolist() == [0, 0, 0]
    for odd in (np.nan, [np.inf], "x"):
        with pytest.raises(ValueError, match=r"^`h` must be "):
            mp.spectrum.density(2.0, odd)


@pytest.mark.parametrize("out", ["a\0b", "z" * 5000, 0, b"x"])
def test_a_folder_that_cannot_be_is_one_line(out):
    with pytest.raises(ValueError, match=r"^`out`") as told:
        mp.sweep(mp.Grid(PROBLEM, rate=[1.0]), out=out)
    assert len(str(told.value)) < 600
