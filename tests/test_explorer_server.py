"""The explorer's server without a browser: what it answers, refuses, shares and drops."""

import asyncio
import contextlib
import http.client
import json
import math
import os
import re
import signal
import socket
import subprocess
import sys
import time
import tomllib
from dataclasses import replace
from types import SimpleNamespace

import light_worker
import numpy as np
import psutil
import pytest
import xarray as xr
from every_rule import RULES
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_sweeps import wait_for

import manypass as mp
from manypass.explorer import pool as pools
from manypass.explorer import runs, worker
from manypass.explorer.answers import ANSWERS, curves, steady
from manypass.explorer.code import python, toml
from manypass.explorer.guard import refusal
from manypass.explorer.launch import PORT, listen
from manypass.explorer.runs import RUNS
from manypass.explorer.server import LARGEST, application
from manypass.explorer.view import View

PROBLEM = {"data": {"alpha": 1.2}, "rule": "adaline", "rate": 1.9, "decay": 0.8}
LONG = {"problem": PROBLEM, "n": 2000, "samples": 500, "end": 50.0}
SHORT = {"problem": PROBLEM, "n": 20, "samples": 3, "end": 1.0}


HOST = "127.0.0.1:8642"


@pytest.fixture(scope="module")
def app():
    both = pools.Pool(), pools.Pool()
    served = application(8642, *both)

    async def close():
        for pool in both:
            pool.close()

    with asyncio.Runner() as runner:
        yield lambda *request: runner.run(served(*request))
        runner.run(close())


def ask(app, path, body, rest=(), **headers):
    """Send one request, in JSON unless it is bytes, without a network; None is a GET.

    `rest` are parts that come after the body; those that are read are taken out of it.
    """
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {"Host": HOST, "Content-Type": "application/json", **headers}
    scope = {
        "type": "http",
        "method": "GET" if body is None else "POST",
        "path": path,
        "query_string": b"",
        "headers": [(k.lower().encode(), v.encode()) for k, v in sent.items()],
    }
    messages = []

    incoming = [
        {"type": "http.request", "body": b"" if body is None else raw, "more_body": bool(rest)}
    ]

    async def receive():
        if not incoming and rest:
            return {"type": "http.request", "body": rest.pop(), "more_body": bool(rest)}
        return incoming.pop() if incoming else await asyncio.Event().wait()  # it does not leave

    async def send(message):
        messages.append(message)

    app(scope, receive, send)
    text = b"".join(message.get("body", b"") for message in messages[1:])
    return messages[0]["status"], json.loads(text) if text[:1] == b"{" else text, messages[0]


def test_quick_answers_are_those_of_solve(app):
    status, answer, _ = ask(app, "/answer", {"view": {"problem": PROBLEM}, "want": "curves"})
    assert status == 200
    problem = mp.Problem.from_dict(PROBLEM)
    expected = mp.solve(problem, np.linspace(0, 1, 241) ** 2 * 8)
    for name in ("t", "R", "Q", "F2", "Eg"):
        np.testing.assert_allclose(answer["curves"][name], expected[name], rtol=1e-11, atol=1e-14)
    assert answer["critical_rate"] == mp.critical_rate(problem)


@pytest.mark.parametrize(("order", "end"), [("fixed", 100.0), ("reshuffled", 1000.0)])
def test_curves_over_more_epochs_than_can_be_waited_for_are_refused_at_once(app, order, end):
    view = {"problem": {**PROBLEM, "data": {"alpha": 0.1}, "sequence": order}, "end": end}
    status, answer, _ = ask(app, "/answer", {"view": view, "want": "curves"})
    assert (status, answer["runs"], "curves" in answer) == (200, [], False)
    assert f"`end` = {end:g} is {end * 10:.0f} epochs, and the page follows" in answer["note"]
    asked = {"view": view, "kind": "curves", "format": "csv"}
    assert "the page follows" in ask(app, "/data", asked)[1]["error"]
    few = {**view, "end": 0.4}
    assert "curves" in ask(app, "/answer", {"view": few, "want": "curves"})[1]


@pytest.mark.parametrize(
    ("view", "named"),
    [
        ({"problem": {**PROBLEM, "rate": -1}}, "`rate` must be"),
        ({"problem": {**PROBLEM, "rate": None}}, "`rate` must be"),
        ({"problem": {**PROBLEM, "rate": "one"}}, "`rate` must be"),
        ({"problem": {**PROBLEM, "data": {"alpha": 1e9}}}, "`alpha` must be"),
        ({"problem": {**PROBLEM, "rule": {"name": "rule", "force": "f"}}}, "user's own force"),
        ({"problem": {**PROBLEM, "rule": "__import__('os')"}}, "`rule` must be one of"),
        ({"problem": {**PROBLEM, "rule": {"name": "adatron", "force": "f"}}}, "has no `force`"),
        ({"problem": {**PROBLEM, "colour": 1}}, "`colour` is not a field"),
        ({"problem": []}, "`problem` must be a table with `data`, got []"),
        ({"problem": None}, "`problem` must be a table with `data`, got None"),
        ({}, "`problem` is missing"),
        ([], "`view` must be"),
        ({"problem": PROBLEM, "end": 1e6}, "`end` must be"),
        ({"problem": PROBLEM, "end": math.nan}, "`end` must be"),
        ({"problem": PROBLEM, "window": -1}, "`window` must be"),
        ({"problem": PROBLEM, "n": 10**6}, "`n` must be"),
        ({"problem": PROBLEM, "n": 1.5}, "`n` must be"),
        ({"problem": PROBLEM, "samples": 10**6}, "`samples` must be"),
        ({"problem": PROBLEM, "times": [1]}, "`times` is not a field"),
        ({"problem": {**PROBLEM, "data": {"alpha": "inf"}}}, "`alpha` must be finite"),
        ({"problem": {**PROBLEM, "data": {"alpha": 1, "hidden": 2}}}, "take a Committee"),
        ({"problem": {**PROBLEM, "rule": "committee"}}, "a Committee needs a `start`"),
        (
            {
                "problem": {
                    "data": {"alpha": 1, "task": "regression", "hidden": 4},
                    "rule": {"name": "committee", "hidden": 2},
                    "rate": 1,
                    "start": {"R": [[0.1] * 4] * 2, "Q": [[1, 0], [0, 1]]},
                }
            },
            "`hidden` must be at most 3 on the page, got 4",
        ),
    ],
)
def test_bad_views_are_refused_by_name(app, view, named):
    for path, rest in (("/answer", {"want": "curves"}), ("/run", {"kind": "simulation"})):
        status, answer, _ = ask(app, path, {"view": view, **rest})
        assert status == 422
        assert named in answer["error"]


def committee(K=2, M=2, alpha="inf", activation="erf", R=((0.12, 0.02), (0.0, 0.1)), **more):
    return {
        "data": {"alpha": alpha, "task": "regression", "hidden": M},
        "rule": {"name": "committee", "hidden": K, "activation": activation},
        "rate": 1.5,
        "start": {"R": R, "Q": (0.25 * np.eye(K)).tolist()},
        **more,
    }


def test_one_pass_of_two_layers_is_answered_at_once_with_the_end_of_its_plateau(app):
    view = {"problem": committee(), "end": 40.0}
    status, answer, _ = ask(app, "/answer", {"view": view, "want": "curves"})
    assert (status, answer["exact"], answer["runs"], answer["warning"]) == (200, True, [], "")
    seen = View.from_dict(view)
    found = mp.solve(seen.problem, seen.times)
    drawn = answer["curves"]
    for name, value in (("R21", found.R[:, 1, 0]), ("Q12", found.Q[:, 0, 1]), ("Et", found.Et)):
        np.testing.assert_allclose(drawn[name], value, rtol=1e-9, atol=1e-12)
    assert "Q21" not in drawn
    expected = mp.specialization(seen.problem, seen.times)
    np.testing.assert_allclose(drawn["S"], expected.specialization[0], rtol=1e-9)
    assert drawn["plateau"] == pytest.approx(float(expected.time[0]))
    short = ask(app, "/answer", {"view": {**view, "end": 10.0}, "want": "curves"})[1]
    assert short["curves"]["plateau"] is None
    one = committee(1, 2, R=[[0.1, 0.0]])
    alone = ask(app, "/answer", {"view": {"problem": one}, "want": "curves"})[1]
    assert "S" not in alone["curves"]
    for want in ("steady", "worth"):
        status, answer, _ = ask(app, "/answer", {"view": view, "want": want})
        assert status == 200
        assert answer["note"]


def test_units_that_start_alike_are_told_so(app):
    view = {"problem": committee(R=[[0.1, 0.0], [0.1, 0.0]])}
    answer = ask(app, "/answer", {"view": view, "want": "curves"})[1]
    assert "units 1 and 2 alike" in answer["warning"]


def test_two_layers_run_with_words_on_the_way_and_their_code_gives_the_same(tmp_path):
    view = View.from_dict({"problem": committee(alpha=2.0), "end": 0.5, "n": 30, "samples": 3})
    assert curves(view)["runs"] == ["curves"]
    told = []
    last, found = RUNS["curves"](view, told.append)
    assert told[0]["word"] == "first population"
    assert told[-1]["word"].endswith("aim 5%")
    np.testing.assert_array_equal(last["curves"]["R12"], found.R[:, 0, 1])
    assert last["curves"]["R12_se"][-1] > 0
    assert len(last["curves"]["S"]) == 81
    last, found = RUNS["simulation"](view, told.append)
    np.testing.assert_array_equal(last["simulation"]["Q22"], found.Q[:, 1, 1])
    fresh = View.from_dict({"problem": committee(), "end": 2.0})
    for each in (view, fresh):
        code = python(each).replace("curves.png", str(tmp_path / "curves.png"))
        space = {}
        exec(code, space)
        assert space["problem"] == each.problem
        assert mp.Problem.from_dict(tomllib.loads(toml(each.problem))) == each.problem
    assert (tmp_path / "curves.png").stat().st_size > 10_000


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_one_pass_of_sampled_units_is_a_run(activation):
    view = View.from_dict({"problem": committee(activation=activation, rate=0.5), "end": 4.0})
    assert curves(view)["runs"] == ["curves"]
    last, found = RUNS["curves"](view, lambda message: None)
    assert last["curves"]["Eg"][-1] < 0.5 * last["curves"]["Eg"][0]
    assert found.Eg_se.max() < 0.05


@pytest.mark.parametrize("rule", ["perceptron", "adatron"])
@pytest.mark.parametrize("moving", ["rate", "decay"])
def test_a_schedule_has_no_steady_states_to_run_through(rule, moving):
    problem = mp.Problem(mp.Teacher(1.2), rule, rate=1.0, decay=0.1)
    view = View(problem.replace(**{moving: "cosine:1:0.1:8"})).relevant("sweep")
    with pytest.raises(ValueError, match="There is no steady state of a schedule: cosine:1:"):
        RUNS["sweep"](view, lambda message: None)


@pytest.mark.parametrize("key", ["path", "test", "hash", "target"])
def test_a_request_may_name_no_file(app, tmp_path, key):
    """Whether a file is there must not be told either."""
    (tmp_path / "secret.csv").write_text("salary,name\n1,2\n3,4\n")
    answers = set()
    for name in ("secret.csv", "none.csv"):
        data = {"path": str(tmp_path / name), "target": "guess", "hash": "0"}
        data = {"alpha": 1.0, key: data.get(key, data["path"])} if key != "path" else data
        for path, rest in (
            ("/answer", {"want": "curves"}),
            ("/run", {"kind": "simulation"}),
            ("/data", {"kind": "curves", "format": "csv"}),
        ):
            body = {"view": {"problem": {**PROBLEM, "data": data}}, **rest}
            status, answer, _ = ask(app, path, body)
            assert status == 422
            answers.add(answer["error"])
    assert answers == {
        f"`{key}` is not a field of data on the page: it has alpha, task, noise, inputs, hidden",
    }


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[" * 5000, 400),
        (b"\xff", 400),
        ([], 400),
        ({"view": {"problem": PROBLEM}}, 400),
        ({"view": {"problem": PROBLEM}, "want": "curves", "more": 1}, 400),
        ({"view": {"problem": PROBLEM}, "want": "everything"}, 422),
        ({"view": {"problem": PROBLEM}, "want": ["curves"]}, 422),
        (b" " * (LARGEST + 1), 413),
    ],
)
def test_malformed_and_oversized_requests(app, body, status):
    found, answer, _ = ask(app, "/answer", body)
    assert found == status
    assert answer["error"]


@pytest.mark.parametrize(("kind", "status"), [("application/json", 413), ("text/plain", 415)])
def test_a_long_request_is_read_to_its_end_so_that_its_answer_is_heard(app, kind, status):
    rest = [b" " * 2**16] * 460  # 30 MB
    found, answer, _ = ask(app, "/answer", b" ", rest, **{"Content-Type": kind})
    assert (found, rest) == (status, [])
    assert answer["error"]


def test_an_endless_request_is_not(app):
    rest = [b" " * 2**20] * 1000
    assert ask(app, "/answer", b" ", rest)[0] == 413
    assert len(rest) > 800


def test_other_types_and_methods(app):
    body = {"view": {"problem": PROBLEM}, "want": "curves"}
    assert ask(app, "/answer", body, **{"Content-Type": "text/plain"})[0] == 415
    assert ask(app, "/answer", None)[0] == 405
    assert ask(app, "/static/../server.py", None)[0] == 404
    assert ask(app, "/nothing", None)[0] == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:8642"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
    ],
)
def test_other_origins_are_refused(app, headers):
    body = {"view": {"problem": PROBLEM}, "want": "curves"}
    status, answer, _ = ask(app, "/answer", body, **headers)
    assert status == 403
    assert "got" in answer["error"]
    assert ask(app, "/static/main.js", None, **headers)[0] == 403


def test_own_pages_and_links_are_served(app):
    own = {"Origin": f"http://{HOST}", "Sec-Fetch-Site": "same-origin"}
    body = {"view": {"problem": PROBLEM}, "want": "steady"}
    assert ask(app, "/answer", body, **own)[0] == 200
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert ask(app, "/", None, **link)[0] == 200
    assert refusal({"host": "localhost:80"}, "GET", "/", 80) is None
    headers = dict(ask(app, "/", None)[2]["headers"])
    assert b"default-src 'none'" in headers[b"content-security-policy"]
    assert b"http" not in headers[b"content-security-policy"]
    assert b"HttpOnly" in headers[b"set-cookie"]


async def last_message(ticket):
    last = None
    while (message := await asyncio.wait_for(ticket.messages.get(), 60)) is not None:
        last = message
    return last


def with_light_workers(scenario, monkeypatch):
    """Run a scenario with a pool whose workers obey the same protocol, but start in no time."""

    async def run():
        pool = pools.Pool()
        try:
            await scenario(pool)
        finally:
            pool.close()

    monkeypatch.setattr(pools, "main", light_worker.main)
    asyncio.run(run())


def test_one_browser_cannot_starve_another(monkeypatch):
    async def scenario(pool):
        greedy = [pool.submit("greedy", "endless", light_worker.View(i)) for i in range(pools.MOST)]
        with pytest.raises(pools.BusyError, match="too many runs"):
            pool.submit("greedy", "endless", light_worker.View(99))
        assert (await last_message(pool.submit("modest", "brief", light_worker.View(0))))["done"]
        assert len(pool.hands) == pools.WORKERS
        assert sum(hand.ticket in greedy for hand in pool.hands) == pools.RUNNING
        for ticket in greedy:
            pool.cancel(ticket)
        assert (await last_message(pool.submit("greedy", "brief", light_worker.View(1))))["done"]

    with_light_workers(scenario, monkeypatch)


def test_a_run_that_nobody_wants_is_dropped_and_its_worker_lives_on(monkeypatch):
    monkeypatch.setattr(pools, "GRACE", 60)  # a worker that is not dropped in peace is seen below

    async def scenario(pool):
        ticket = pool.submit("a", "endless", light_worker.View(0))
        assert await asyncio.wait_for(ticket.messages.get(), 60) == {"told": 0}
        hand = pool.hands[0]
        process = hand.process.pid
        pool.cancel(ticket)
        while hand.ticket is ticket:
            await asyncio.sleep(0.01)
        assert (await last_message(pool.submit("a", "brief", light_worker.View(1))))["done"]
        assert process in [hand.process.pid for hand in pool.hands]
        assert pool.result("endless", light_worker.View(0)) is None
        assert pool.result("brief", light_worker.View(1)) == 1
        again = pool.submit("b", "brief", light_worker.View(1))
        assert again.messages.get_nowait()["done"]  # from what was computed before

    with_light_workers(scenario, monkeypatch)


def test_a_run_is_not_dropped_inside_a_compiler(monkeypatch):
    """Its locks belong to the whole process: the worker's next run would wait for them for ever."""
    compiler = {"__name__": "numba.core", "os": os, "time": time, "DROP": worker.DROP}
    code = (
        "def compiled(reached):\n os.kill(os.getpid(), DROP)\n time.sleep(0.1)\n reached.append(1)"
    )
    exec(code, compiler)
    reached, sent = [], []

    def job(view, tell):
        compiler["compiled"](reached)
        while True:  # left soon after the compiler
            time.sleep(0.001)

    monkeypatch.setitem(runs.JOBS, "compile", job)
    monkeypatch.setitem(runs.JOBS, "brief", lambda view, tell: ({}, time.sleep(0.1)))
    hand = worker.Worker(SimpleNamespace(send=sent.append))
    numbers = (worker.DROP, worker.AGAIN)
    before = [signal.signal(number, hand.drop) for number in numbers]
    try:
        assert hand.work("compile", None) == ("end", {"dropped": True}, None)
        assert reached == [1]
        signal.setitimer(signal.ITIMER_REAL, 0.02)  # of a run that has ended: not for the next one
        assert hand.work("brief", None)[1]["done"]
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def test_workers_that_hang_or_die_are_replaced_and_long_runs_end(monkeypatch):
    async def scenario(pool):
        ticket = pool.submit("a", "deaf", light_worker.View(0))
        await asyncio.wait_for(ticket.messages.get(), 60)
        deaf = pool.hands[0]
        pool.cancel(ticket)
        while deaf in pool.hands:
            await asyncio.sleep(0.01)
        ticket = pool.submit("a", "endless", light_worker.View(0))
        await asyncio.wait_for(ticket.messages.get(), 60)
        next(hand for hand in pool.hands if hand.ticket is ticket).process.kill()
        assert "has ended" in (await last_message(ticket))["error"]
        monkeypatch.setattr(pools, "LONGEST", 0.3)  # from when a worker has it
        ticket = pool.submit("a", "endless", light_worker.View(0))
        assert "may take 0.3 seconds" in (await last_message(ticket))["error"]
        failed = await last_message(pool.submit("a", "mistaken", light_worker.View(0)))
        assert failed == {"error": "ZeroDivisionError: division by zero"}

    monkeypatch.setattr(pools, "GRACE", 0.5)
    with_light_workers(scenario, monkeypatch)


def test_files_hold_the_numbers_of_solve(app, tmp_path):
    view = {"problem": {**PROBLEM, "rule": "hebbian"}, "end": 4.0}
    body = {"view": view, "kind": "curves", "format": "nc"}
    (tmp_path / "x.nc").write_bytes(ask(app, "/data", body)[1])
    found, made = mp.load(tmp_path / "x.nc"), View.from_dict(view)
    xr.testing.assert_allclose(found, mp.solve(made.problem, made.times), rtol=1e-11)
    assert mp.problem_of(found) == made.problem
    body["kind"] = "steady"
    (tmp_path / "x.nc").write_bytes(ask(app, "/data", body)[1])
    found = mp.load(tmp_path / "x.nc").isel(rate=3)
    expected = mp.steady_state(made.problem.replace(rate=float(found.rate)))
    assert float(found.Eg) == pytest.approx(float(expected.Eg), rel=1e-11)
    status, answer, _ = ask(
        app, "/data", {**body, "view": {**SHORT, "n": 30}, "kind": "simulation"}
    )
    assert status == 409
    assert "the run 'simulation' of this view is not finished" in answer["error"]


def test_a_schedule_and_a_start_have_curves_but_no_steady_state():
    problem = {**PROBLEM, "rate": "steps:0:1.5:2:0.3", "start": {"R": 0.5, "Q": 1.0}}
    view = View.from_dict({"problem": problem})
    found = curves(view)
    assert found["exact"]
    assert found["curves"]["R"] == mp.solve(view.problem, view.times).R.values.tolist()
    drawn = dict(zip(found["rate"]["t"], found["rate"]["v"], strict=True))
    assert (drawn[0.0], drawn[np.nextafter(2, 0)], drawn[2.0], drawn[8.0]) == (1.5, 1.5, 0.3, 0.3)
    assert found["critical_rate"] == mp.critical_rate(view.problem.replace(rate=1.0))
    assert "relaxation" not in found
    assert steady(view)["note"] == "There is no steady state of a schedule: steps:0:1.5:2:0.3."
    assert isinstance(view.sampler, mp.DMFT)  # Exact() samples at a constant rate only
    assert isinstance(view.source, mp.DMFT)
    started = View.from_dict({"problem": {**PROBLEM, "start": {"R": 0.5, "Q": 1.0}}})
    plain = View.from_dict({"problem": PROBLEM})
    assert steady(started) == steady(plain)  # decay forgets the start
    assert started.relevant("steady") == plain.relevant("steady")
    assert curves(started)["relaxation"] == curves(plain)["relaxation"]
    forever = {**PROBLEM, "decay": 0.0, "start": {"R": 0.5, "Q": 1.0}}
    assert "note" not in steady(View.from_dict({"problem": forever}))
    few = {**forever, "data": {"alpha": 0.5}}  # what no example shows stays
    assert "`start`" in steady(View.from_dict({"problem": few}))["note"]


@pytest.mark.parametrize(("rule", "pixels"), [("adaline", 1.1), ("hebbian", 2.5)])
@pytest.mark.parametrize(("rate", "end"), [(1.9, 8.0), (3.0, 8.0), (1.9, 100.0)])
def test_curves_are_round_at_their_peaks(rule, pixels, rate, end):
    """Straight lines between the points stay close to the curve, in pixels of a picture."""
    problem = {**PROBLEM, "rule": rule, "rate": rate, "data": {"alpha": 1.2, "task": "regression"}}
    view = View.from_dict({"problem": problem, "end": end})
    fine = np.geomspace(1e-4 * end, end, 400)
    drawn, curve = mp.solve(view.problem, view.times), mp.solve(view.problem, fine)
    for name in ("R", "Q", "F2"):
        off = np.interp(fine, view.times, drawn[name]) - curve[name].values
        assert 260 * np.abs(off).max() / curve[name].values.max() < pixels


class Anything:
    def __getitem__(self, key):
        return self


@pytest.mark.parametrize("rule", RULES[:-1], ids=lambda rule: rule.name)
@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize(
    "more",
    [
        {"rate": 0.7, "temperature": 0.05},
        {"rate": "warmup:1:cosine:1:0.1:2", "momentum": 0.5, "start": mp.Start(0.5, 1.0)},
    ],
    ids=["constant", "scheduled"],
)
def test_code_gives_the_same_problem_and_times(rule, task, more):
    problem = mp.Problem(mp.Teacher(1.5, task, 0.1), rule, decay=0.2, **more)
    view = View(problem, end=3.0)
    assert mp.Problem.from_dict(tomllib.loads(toml(problem))) == problem
    asked = []

    class Recorder:
        plot = type("plot", (), {"overview": staticmethod(lambda *r: Recorder)})
        savefig = staticmethod(lambda path: None)

        def __getattr__(self, name):
            return getattr(mp, name)

        def solve(self, problem, times, method="auto"):
            asked.append((problem, np.asarray(times), method))
            return Anything()

    script = python(view, simulated=True).replace("import manypass as mp", "")
    exec(script, {"mp": Recorder()})
    assert all(found[0] == problem for found in asked)
    times = [found[1] for found in asked]
    known = view.theory.refusal(problem) is None
    expected = [view.times] if known else []
    expected += [view.sampled_times] if view.sampler else []
    for found, given_times in zip(times, [*expected, view.symbols], strict=True):
        np.testing.assert_array_equal(found, given_times)
    assert asked[-1][2] == view.simulation
    if known:
        assert asked[0][2] == ("auto" if view.linear else view.theory)


LAW, BLOCKS = "powerlaw:1.2:1.4:0.05", {"values": [1, 8], "weights": [0.75, 0.25]}


@pytest.mark.parametrize("inputs", [LAW, BLOCKS], ids=["powerlaw", "blocks"])
@pytest.mark.parametrize("order", ["replacement", "reshuffled"])
def test_inputs_have_curves_a_spectrum_and_a_worth(inputs, order):
    data = {"alpha": 0.8, "task": "regression", "noise": 0.1, "inputs": inputs}
    problem = {"data": data, "rule": "adaline", "rate": 0.5, "decay": 0.01, "sequence": order}
    view = View.from_dict({"problem": problem})
    found = curves(view)
    right = mp.solve(view.problem, view.times)
    np.testing.assert_allclose(found["curves"]["Eg"], right.Eg, rtol=1e-9)
    assert np.mean(found["inputs"]["mu"]) == pytest.approx(1)
    assert np.mean(found["inputs"]["P"]) == pytest.approx(1)
    worth = ANSWERS["worth"](view)
    expected = mp.effective_data(view.problem, [1, 2]).effective_data.values
    np.testing.assert_allclose(worth["effective_data"][:2], expected, rtol=1e-9)
    assert ("relaxation" in found) == (order == "replacement")
    if order == "replacement":
        rate, density = (np.array(found["relaxation"][k]) for k in ("rate", "density"))
        assert np.trapezoid(density, rate) == pytest.approx(0.8, abs=0.01)  # α: the rest is at 0
    note = ANSWERS["worth"](replace(view, problem=view.problem.replace(start=mp.Start(0.1, 1))))
    assert "from J = 0" in note["note"]
    json.dumps([found, worth, steady(view)], allow_nan=False)
    scope = {}
    script = python(view).split("theory =")[0]
    exec(script, scope)
    assert scope["problem"] == view.problem


def test_a_request_may_list_few_eigenvalues(app):
    data = {"alpha": 1.0, "inputs": {"mu": [1.0] * 9}}
    view = {"problem": {**PROBLEM, "data": data}}
    status, answer, _ = ask(app, "/answer", {"view": view, "want": "curves"})
    assert status == 422
    assert answer["error"] == "`mu` of `inputs` must be a list of up to 8"


@settings(max_examples=25)
@given(
    rule=st.sampled_from(["adaline", "hebbian"]),
    task=st.sampled_from(["classification", "regression"]),
    mode=st.sampled_from(["online", "batch"]),
    alpha=st.floats(0.05, 20),
    rate=st.floats(0.01, 20),
    decay=st.floats(0, 3),
    noise=st.floats(0, 3),
    temperature=st.floats(0, 2),
    schedule=st.sampled_from([None, "cosine:{}:0:2", "warmup:1:inverse:{}:2", "steps:0:{}:3:0.1"]),
    start=st.sampled_from([None, {"R": 0.5, "Q": 1.0}]),
)
def test_every_slider_position_has_an_answer(
    rule, task, mode, alpha, rate, decay, noise, temperature, schedule, start
):
    data = {"alpha": alpha, "task": task, "noise": noise}
    if schedule and rule == "adaline":  # of Hebbian learning it takes a second
        rate = schedule.format(rate)
    problem = {"data": data, "rule": rule, "rate": rate, "mode": mode, "temperature": temperature}
    problem["start"] = start
    view = View.from_dict({"problem": {**problem, "decay": decay if decay > 1e-12 else 0.0}})
    for answer in (curves(view), steady(view)):
        json.dumps(answer, allow_nan=False)


def test_linear_runs_tell_on_the_way():
    view = View.from_dict({"problem": PROBLEM, "end": 1.0, "n": 20, "samples": 3})
    told = []
    last, found = RUNS["training"](view, told.append)
    assert len(told[0]["curves"]["Et"]) < len(last["curves"]["Et"])
    expected = mp.solve(view.problem, view.sampled_times, mp.Exact(samples=8192))
    xr.testing.assert_allclose(found, expected, rtol=1e-11)
    last, found = RUNS["activations"](view, told.append)
    areas = [sum(part["density"]) * (part["at"][1] - part["at"][0]) for part in last["activations"]]
    np.testing.assert_allclose(areas, 1, atol=0.02)
    huge = View.from_dict({"problem": {**PROBLEM, "data": {"alpha": 1e3}}, "n": 2000})
    with pytest.raises(ValueError, match="`n` = 2000 at `alpha` = 1000"):
        RUNS["simulation"](huge, told.append)


HALF_HEAD = b"POST /answer HTTP/1.1\r\nHost: 127.0.0.1"
IMPATIENT = (
    "from manypass.explorer import launch, patience; patience.PATIENCE = 1.0; "
    "launch.explore(0, browser=False)"
)


def half_body(port):
    head = f"POST /answer HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 100\r\n"
    return f'{head}Content-Type: application/json\r\n\r\n{{"view"'.encode()


@pytest.mark.endurance
def test_half_a_request_is_hung_up_on_in_silence():
    command = [sys.executable, "-c", IMPATIENT]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, **streams, text=True) as server, contextlib.ExitStack() as kept:
        kept.callback(server.kill)
        port = int(re.search(r"127\.0\.0\.1:(\d+)", server.stdout.readline())[1])

        def half(text):
            made = kept.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            made.sendall(text)
            return made

        for _ in range(20):
            half(half_body(port)).close()  # leaves in the middle of its request
        held = [half(text) for text in (HALF_HEAD, half_body(port)) * 10]
        drop = half(half_body(port))
        begin = time.monotonic()
        with contextlib.suppress(OSError):  # a byte now and then does not buy more time
            while time.monotonic() - begin < 5:
                drop.sendall(b" ")
                time.sleep(0.2)
        assert time.monotonic() - begin < 5
        assert [one.recv(1) for one in held] == [b""] * 20
        whole = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        body = json.dumps({"view": {"problem": PROBLEM}, "want": "curves"})
        for _ in range(2):  # the connection is kept for a second request
            whole.request("POST", "/answer", body, {"Content-Type": "application/json"})
            assert whole.getresponse().read().startswith(b'{"code"')
            time.sleep(1.2)
        for text in (HALF_HEAD, half_body(port)):
            half(text)
        server.send_signal(signal.SIGINT)
        rest, _ = server.communicate(timeout=20)
        whole.close()
    assert (rest, server.returncode) == ("\n", 0)


@pytest.mark.endurance
def test_an_answer_that_nobody_waits_for_is_dropped_and_ctrl_c_waits_for_none():
    command = [sys.executable, "-m", "manypass", "explore", "--port", "0", "--no-browser"]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, **streams, text=True) as server, contextlib.ExitStack() as kept:
        kept.callback(server.kill)
        port = int(re.search(r"127\.0\.0\.1:(\d+)", server.stdout.readline())[1])

        def ask(**problem):
            made = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            body = json.dumps({"view": {"problem": {**PROBLEM, **problem}}, "want": "steady"})
            made.request("POST", "/answer", body, {"Content-Type": "application/json"})
            return made

        def busy(seconds=0.2):
            everyone = [psutil.Process(server.pid), *psutil.Process(server.pid).children()]
            before = [sum(process.cpu_times()[:2]) for process in everyone]
            time.sleep(seconds)
            return sum(sum(p.cpu_times()[:2]) for p in everyone) - sum(before) > seconds / 10

        with contextlib.closing(ask(rule="hebbian")) as quick:
            assert quick.getresponse().status == 200  # all have started
        wait_for(lambda: not busy())
        slow = ask(sequence="fixed")  # for many seconds
        wait_for(busy)
        slow.close()
        wait_for(lambda: not busy(), pools.GRACE)
        with contextlib.closing(ask(sequence="fixed")):
            wait_for(busy)
            server.send_signal(signal.SIGINT)
            server.send_signal(signal.SIGINT)
            rest, _ = server.communicate(timeout=10)
    assert (rest, server.returncode) == ("\n", 0)


def test_ports():
    with contextlib.ExitStack() as opened:
        taken = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
        with pytest.raises(ValueError, match="in use"):
            listen(taken.getsockname()[1])
        with pytest.raises(ValueError, match="`port` must be"):
            listen(70000)
        first, second = opened.enter_context(listen(None)), opened.enter_context(listen(None))
        assert PORT <= first.getsockname()[1] < second.getsockname()[1]
        assert first.getsockname()[0] == "127.0.0.1"
        command = [sys.executable, "-m", "manypass", "explore", "--no-browser", "--port"]
        port = str(taken.getsockname()[1])
        done = subprocess.run([*command, port], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert f"--port {port} is in use" in done.stderr


def test_a_drop_inside_a_destructor_is_not_told(monkeypatch, capsys):
    from manypass.explorer import worker

    class Closing:
        def __init__(self, error):
            self.error = error

        def __del__(self):
            raise self.error

    monkeypatch.setattr(sys, "unraisablehook", worker.mind_no_drop)
    Closing(worker.DroppedError())
    assert capsys.readouterr().err == ""
    Closing(RuntimeError("a mistake"))
    assert "a mistake" in capsys.readouterr().err
