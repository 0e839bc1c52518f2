"""One point of a sweep: what is asked, its key, and its answer as checked text."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from manypass import results, schedules, verbs
from manypass.problem import Problem
from manypass.rules import Rule

FORMAT = "manypass point 1"
INDIFFERENT = ("threads", "memory")  # settings of a method that do not change its numbers
Answer = dict[str, Any]


@dataclass(frozen=True)
class Point:
    """A call of `solve` (with times) or of `steady_state` (without), not yet made."""

    problem: Problem
    method: Any
    times: tuple[float, ...] | None = None
    window: float = 0.0
    two_time: bool = False

    @cached_property
    def asked(self) -> dict[str, Any]:
        """Everything that the numbers depend on, as plain strings and numbers."""
        method = results.method_entry(self.resolved)
        settings = {k: v for k, v in method.items() if k not in INDIFFERENT}
        ask: dict[str, Any] = {"problem": self.problem.to_dict(), "method": settings}
        if self.times is None:
            return ask | {"window": self.window}
        return ask | {"times": list(self.times), "two_time": self.two_time}

    @property
    def resolved(self) -> Any:
        """The method, "auto" replaced by what it stands for."""
        verb = "steady_state" if self.times is None else "solve"
        return verbs.resolve(self.problem, self.method, verb)

    @cached_property
    def key(self) -> str:
        """Name under which the point is kept: a digest of what is asked."""
        problem = self.problem
        given: dict[str, Any] = {"rate": problem.rate, "decay": problem.decay, "rule": problem.rule}
        for name, value in given.items():
            if type(value) is Rule if name == "rule" else schedules.own(value):
                raise ValueError(
                    f"`{name}` {value!r} is a function of your own, which a file cannot "
                    "recognise: sweep without a folder to keep points in"
                )
        return hashlib.sha256(plain(self.asked).encode()).hexdigest()[:32]

    def compute(self, threads: int | None = None) -> xr.Dataset:
        """Make the call, on so many threads where the method leaves that open."""
        method = self.resolved
        if threads and getattr(method, "threads", 0) is None:
            method = dataclasses.replace(method, threads=threads)
        if self.times is None:
            return verbs.steady_state(self.problem, method, window=self.window)
        return verbs.solve(self.problem, np.array(self.times), method, two_time=self.two_time)

    def answer(self, threads: int | None = None) -> str:
        """Compute and return the answer as text; a refusal is an answer too."""
        try:
            with warnings.catch_warnings(record=True) as told:  # kept: workers have no terminal
                warnings.simplefilter("always", UserWarning)
                found = self.compute(threads)
        except ValueError as error:
            return seal({"asked": self.asked, "error": " ".join(str(error).split())})
        values = {
            str(name): [list(value.dims), value.values.tolist()]
            for name, value in found.variables.items()
        }
        notes = [str(w.message) for w in told if issubclass(w.category, UserWarning)]
        attrs = dict(found.attrs) | ({"warning": " ".join(notes)} if notes else {})
        return seal({"asked": self.asked, "values": values, "attrs": attrs})


def seal(answer: Answer) -> str:
    """Three lines: the format, the answer as JSON, and the digest of that."""
    body = plain(answer)
    return f"{FORMAT}\n{body}\n{_digest(body)}\n"


def unseal(text: str) -> Answer:
    """Read an answer; raise a ValueError that says what is wrong with the text."""
    head, _, rest = text.partition("\n")
    body, _, digest = rest.partition("\n")
    if head != FORMAT:
        raise ValueError("foreign: not a point of a sweep")
    if digest.strip() != _digest(body):
        raise ValueError("damaged: its digest does not fit")
    answer: Answer = json.loads(body)
    return answer


def opened(answer: Answer) -> xr.Dataset:
    """Restore the dataset that was computed; a refusal is raised again."""
    if "error" in answer:
        raise ValueError(answer["error"])
    values = {
        name: xr.Variable(dims, data, {"long_name": results.long_name(name)})
        for name, (dims, data) in answer["values"].items()
    }
    coords = {k: values.pop(k) for k in list(values) if k in results.COORDINATES}
    return xr.Dataset(values, coords, answer["attrs"])


def plain(entries: Any) -> str:
    """One line of JSON, the same for the same entries."""
    return json.dumps(entries, sort_keys=True, separators=(",", ":"))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
