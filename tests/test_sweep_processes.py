"""Sweeps on real processes: kills, interrupts, and the same numbers."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psutil
import pytest
import xarray as xr
from slow_sweeps import HASTE, PLAN, PROBLEM, RATES, SLOW, kept, wait_for, whole

import manypass as mp
from manypass.commands import ended_in_order
from manypass.sweeps.points import unseal
from manypass.sweeps.run import DIED

pytestmark = pytest.mark.filterwarnings(HASTE)


@pytest.fixture
def started(tmp_path, request):
    """A sweep from the command line in its own process group, some points on its way."""
    workers = getattr(request, "param", "1")
    (tmp_path / "plan.toml").write_text(PLAN)
    command = [sys.executable, "-m", "manypass", "sweep", "plan.toml", "--out", "run"]
    process = subprocess.Popen(
        [*command, "--workers", workers], cwd=tmp_path, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    yield process, tmp_path / "run"
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.parametrize("started", ["2"], indirect=True)
@pytest.mark.endurance
def test_kill_9_of_the_parent_loses_only_what_was_in_flight(started):
    process, out = started
    wait_for(lambda: len(kept(out)) >= 4)
    children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(children, timeout=20)
    assert not alive  # no orphan goes on computing
    assert process.communicate(timeout=20)[1] == ""  # nor is what they left behind told to the user
    files = kept(out)
    assert 4 <= len(files) < len(RATES)
    for file in files:
        assert "values" in unseal(file.read_text())  # whole, every one
    ages = {file: file.stat().st_mtime_ns for file in files}
    again = mp.sweep(mp.Grid(PROBLEM, rate=RATES), SLOW, out=out, workers=1)
    assert all(file.stat().st_mtime_ns == age for file, age in ages.items())
    assert "skipped" not in again.attrs
    xr.testing.assert_identical(again, whole())


@pytest.mark.parametrize(
    ("kill", "sent", "code"),
    [
        (os.killpg, signal.SIGINT, 130),  # as a terminal does: to parent and workers
        pytest.param(os.kill, signal.SIGTERM, 143, marks=pytest.mark.endurance),
        pytest.param(os.kill, signal.SIGHUP, 129, marks=pytest.mark.endurance),
        pytest.param(os.killpg, signal.SIGHUP, 129, marks=pytest.mark.endurance),
    ],
)
def test_ctrl_c_sigterm_and_a_hang_up_say_how_to_go_on(started, kill, sent, code):
    process, out = started
    wait_for(lambda: len(kept(out)) >= 2)
    kill(process.pid, sent)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == code
    assert errors.count("\n") == 1
    assert "points are finished and kept in run: sweep again to go on" in errors
    number = int(errors.split("interrupted: ")[1].split(" of ")[0])
    assert number == len(kept(out))


@pytest.mark.endurance
def test_further_ctrl_cs_are_harmless(started):
    """At once, as `timeout -s INT` sends a second one, and of an impatient hand."""
    process, out = started
    wait_for(lambda: len(kept(out)) >= 2)
    children = psutil.Process(process.pid).children(recursive=True)
    for pause in (0.0, 0.02, 0.1, 0.3):
        time.sleep(pause)
        with contextlib.suppress(ProcessLookupError):  # it has ended: so much the better
            os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode in (130, -signal.SIGINT)  # both are 130 to a shell
    assert errors.count("\n") == 1
    assert f"interrupted: {len(kept(out))} of {len(RATES)} points are finished" in errors
    assert not psutil.wait_procs(children, timeout=5)[1]


def in_background(**arguments):
    found = []

    def run():
        found.append(mp.sweep(mp.Grid(PROBLEM, rate=RATES), SLOW, **arguments))

    thread = threading.Thread(target=run)
    thread.start()
    return thread, found


@pytest.mark.endurance
def test_a_killed_worker_is_replaced(tmp_path):
    before = {p.pid for p in psutil.Process().children(recursive=True)}
    thread, found = in_background(out=tmp_path, workers=2)
    wait_for(lambda: len(kept(tmp_path)) >= 3)

    def busy():
        mine = psutil.Process().children(recursive=True)
        return [p for p in mine if p.pid not in before and "popen_loky" in " ".join(p.cmdline())]

    wait_for(busy)
    busy()[0].kill()
    thread.join(timeout=90)
    assert found
    xr.testing.assert_identical(found[0], whole())


@pytest.mark.endurance
def test_a_point_that_kills_its_worker_is_the_only_one_without_an_answer(tmp_path):
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Deadly:
        deadly: bool = False

        def refusal(self, problem):
            return None

        def solve(self, problem, t, *, two_time, progress):
            raise RuntimeError("nothing to solve")

        def steady_state(self, problem, *, window):
            if self.deadly:
                os.kill(os.getpid(), signal.SIGKILL)
            return mp.steady_state(problem)

    grid = mp.Grid(PROBLEM, rate=[0.5, 1.0], deadly=[False, True], method=[Deadly()])
    found = mp.sweep(grid, workers=2, out=tmp_path).squeeze("method")
    assert np.isfinite(found.Eg[:, 0]).all()
    assert (found.error[:, 1] == DIED).all()
    assert len(kept(tmp_path)) == 2  # a death is tried again next time
    with pytest.warns(UserWarning, match="no point of the sweep has an answer"):
        lost = mp.sweep(mp.Grid(PROBLEM, rate=[0.5]), Deadly(), times=[1.0], workers=1)
    assert lost.error.item() == "RuntimeError: nothing to solve"


def test_a_hang_up_stays_ignored_under_nohup():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ended_in_order():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_thread_that_gets_no_signals_may_sweep_too():
    def swept():
        with ended_in_order():
            return "swept"

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(swept).result() == "swept"
