"""Sweeps on real processes and a real Dask scheduler: kills, interrupts, and the same numbers."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil
import pytest
import xarray as xr

import manypass as mp
from manypass.commands import ended_in_order
from manypass.sweeps import clusters
from manypass.sweeps.points import unseal
from manypass.sweeps.run import DIED

PROBLEM = mp.Problem(mp.Teacher(alpha=1.0), mp.Adaline(), rate=1.0, decay=0.5)
SLOW = mp.Simulation(n=300, samples=40, settle=5)  # a tenth of a second or more
RATES = [round(0.1 + 0.05 * i, 2) for i in range(16)]
PLAN = f"""
rule = "adaline"
decay = 0.5
data = {{ alpha = 1.0 }}
method = {{ name = "simulation", n = 300, samples = 40, settle = 5 }}
[sweep]
rate = {RATES}
"""


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def kept(folder):
    return sorted((Path(folder) / "points").glob("*.point"))


# SLOW takes its time, but does not wait until nothing moves.
pytestmark = pytest.mark.filterwarnings("ignore:.*`settle` = 5 is too short")


@pytest.fixture(scope="module")
def whole():
    return mp.sweep(mp.Grid(PROBLEM, rate=RATES), SLOW, workers=1)


@pytest.fixture
def started(tmp_path):
    """A sweep from the command line in its own process group, some points on its way."""
    (tmp_path / "plan.toml").write_text(PLAN)
    command = [sys.executable, "-m", "manypass", "sweep", "plan.toml", "--out", "run"]
    process = subprocess.Popen(
        [*command, "--workers", "2"], cwd=tmp_path, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    yield process, tmp_path / "run"
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def test_kill_9_of_the_parent_loses_only_what_was_in_flight(started, whole):
    process, out = started
    wait_for(lambda: len(kept(out)) >= 4)
    children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(children, timeout=20)
    assert not alive  # no orphan goes on computing
    files = kept(out)
    assert 4 <= len(files) < len(RATES)
    for file in files:
        assert "values" in unseal(file.read_text())  # whole, every one
    ages = {file: file.stat().st_mtime_ns for file in files}
    again = mp.sweep(mp.Grid(PROBLEM, rate=RATES), SLOW, out=out, workers=2)
    assert all(file.stat().st_mtime_ns == age for file, age in ages.items())
    assert "skipped" not in again.attrs
    xr.testing.assert_identical(again, whole)


@pytest.mark.parametrize(
    ("kill", "sent", "code"),
    [
        (os.killpg, signal.SIGINT, 130),  # as a terminal does: to parent and workers
        (os.kill, signal.SIGTERM, 143),
    ],
)
def test_ctrl_c_and_sigterm_say_how_to_go_on(started, kill, sent, code):
    process, out = started
    wait_for(lambda: len(kept(out)) >= 2)
    kill(process.pid, sent)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == code
    assert errors.count("\n") == 1
    assert "points are finished and kept in run: sweep again to go on" in errors
    number = int(errors.split("interrupted: ")[1].split(" of ")[0])
    assert number == len(kept(out))


def in_background(**arguments):
    found = []

    def run():
        found.append(mp.sweep(mp.Grid(PROBLEM, rate=RATES), SLOW, **arguments))

    thread = threading.Thread(target=run)
    thread.start()
    return thread, found


def test_a_killed_worker_is_replaced(tmp_path, whole):
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
    xr.testing.assert_identical(found[0], whole)


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

    grid = mp.Grid(PROBLEM, rate=[0.5, 1.0], deadly=[False, True])
    found = mp.sweep(grid, Deadly(), workers=2, out=tmp_path)
    assert np.isfinite(found.Eg[:, 0]).all()
    assert (found.error[:, 1] == DIED).all()
    assert len(kept(tmp_path)) == 2  # a death is tried again next time
    lost = mp.sweep(mp.Grid(PROBLEM, rate=[0.5]), Deadly(), times=[1.0], workers=1)
    assert lost.error.item() == "RuntimeError: nothing to solve"


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    """A Dask scheduler and two workers, each a process of its own."""
    folder = tmp_path_factory.mktemp("dask")
    dask, file = [sys.executable, "-m", "dask"], str(folder / "scheduler.json")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    common = ["--scheduler-file", file, "--no-dashboard"]
    local = ["--host", "127.0.0.1"]
    made = [subprocess.Popen([*dask, "scheduler", *common, *local, "--port", "0"], **quiet)]
    wait_for(lambda: os.path.exists(file))
    for i in range(2):
        worker = [*dask, "worker", *common, "--nthreads", "1", "--no-nanny", "--name", f"w{i}"]
        made.append(subprocess.Popen(worker, **quiet))
    import json

    yield json.loads(Path(file).read_text())["address"], made[1:]
    for process in made:
        process.kill()
        process.wait()


def test_dask_gives_the_same_numbers_and_survives_the_death_of_a_worker(scheduler, tmp_path, whole):
    address, workers = scheduler
    (tmp_path / "plan.toml").write_text(PLAN)
    from manypass.cli import main

    main(["sweep", str(tmp_path / "plan.toml"), "--out", str(tmp_path), "--cluster", address])
    same = mp.load(tmp_path / "sweep.nc")
    xr.testing.assert_identical(same.drop_attrs(), whole.drop_attrs())

    with clusters.running(address) as client:
        client.wait_for_workers(2)
        thread, found = in_background(out=tmp_path / "again", client=client)
        wait_for(lambda: len(kept(tmp_path / "again")) >= 3)
        workers[0].kill()
        thread.join(timeout=90)
    xr.testing.assert_identical(found[0], whole)


def test_a_queue_starts_workers(tmp_path, monkeypatch):
    """dask-jobqueue with an sbatch that runs the job at once, as a queue would later."""
    submit = '#!/bin/sh\ncp "$1" job.sh; sh job.sh > log 2>&1 &\necho "Submitted batch job $!"\n'
    for name, text in (("sbatch", submit), ("scancel", '#!/bin/sh\nkill "$@"\n')):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    settings = {"queue": "short", "interface": "lo"}
    with clusters.slurm(1, settings) as client:
        found = mp.sweep(mp.Grid(PROBLEM, rate=[0.5, 1.0]), client=client)
    assert "#SBATCH -p short" in (tmp_path / "job.sh").read_text()
    assert found.Eg[1].item() == mp.steady_state(PROBLEM).Eg.item()


def test_a_queue_that_does_not_start_jobs_is_told_of(monkeypatch, capsys):
    class Queue:
        def __init__(self):
            self.pauses = []

        def wait_for_workers(self, number, timeout):
            self.pauses.append(timeout)
            if len(self.pauses) < 4:
                raise TimeoutError

    client = Queue()
    clusters.wait_in_queue(client, 3)
    assert client.pauses == [30, 60, 120, 240]
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 3
    assert all("none of the Slurm jobs (3) has started" in line for line in told)


def test_a_thread_that_gets_no_signals_may_sweep_too():
    def swept():
        with ended_in_order():
            return "swept"

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(swept).result() == "swept"


def test_a_cluster_that_is_not_there():
    with (
        pytest.raises(ValueError, match=r"`cluster` 'tcp://127.0.0.1:9' does not answer"),
        clusters.running("tcp://127.0.0.1:9", timeout=1),
    ):
        pass


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--cluster", "nonsense"], "--cluster must be an address such as tcp://host:8786"),
        (["--slurm", "0"], "--slurm must be a whole number from 1"),
        (["--slurm", "1"], "--slurm needs the command sbatch"),
        (["--workers", "0"], "--workers must be a whole number from 1"),
    ],
)
def test_bad_places(tmp_path, capsys, monkeypatch, flags, message):
    from manypass.cli import main

    monkeypatch.setenv("PATH", str(tmp_path))  # no Slurm there
    (tmp_path / "plan.toml").write_text(PLAN)
    with pytest.raises(SystemExit) as stop:
        main(["sweep", str(tmp_path / "plan.toml"), "--out", str(tmp_path / "out"), *flags])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


BAD_PLANS = [
    ("rate = ", "is not a TOML file"),
    ("rate = 1", "has no table [sweep]"),
    ("data = {alpha = 1}\n[sweep]\nrate = 5", "`rate` must be a list or { from"),
    ("data = {alpha = 1}\n[sweep]\nrate = {from = 0, to = 1, count = 3, scale = 'log'}", "above 0"),
    ("data = {alpha = 1}\n[sweep]\nrate = {from = 1, to = 2, count = 2.5}", "a whole count"),
    ("data = {alpha = 1}\n[sweep]\nrate = {from = 1, to = 2, count = 2, step = 1}", "has from, to"),
    ("rate = 1\n[sweep]\ndecay = [1, 2]", "`alpha` is missing"),
    ("data = {alpha = 1}\n[sweep]\nrate = []", "`rate` must have at least one value, got []"),
    ("data = {alpha = 1}\n[sweep]\nrate = {from = 1, to = 2, count = 100000000}", "up to 1000000"),
    ("rate = 1\ndata = {alpha = 1}\n[sweep]\ncolour = [1]", "`colour` cannot be swept"),
    ("rate = 1\ndata = {alpha = 1}\nmethod = 'magic'\n[sweep]\ndecay = [1]", "`method` must be"),
    (
        "rate = 1\ndata = {alpha = 1}\nmethod = {name = 'exact', n = 3}\n[sweep]\ndecay = [1]",
        "`n` is no setting of method exact",
    ),
    (
        "rate = 1\ndata = {alpha = 1}\n[[sweep.together]]\ndecay = [1, 2]\nnoise = [1]",
        "as long as each other",
    ),
]


@pytest.mark.parametrize(("text", "message"), BAD_PLANS)
def test_bad_plans(tmp_path, capsys, text, message):
    from manypass.cli import main

    (tmp_path / "plan.toml").write_text(text)
    with pytest.raises(SystemExit) as stop:
        main(["sweep", str(tmp_path / "plan.toml"), "--out", str(tmp_path / "out")])
    assert stop.value.code == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert errors.count("\n") == 1


def test_a_plan_with_ranges_rules_methods_and_fields_together(tmp_path, capsys):
    from manypass.cli import main

    (tmp_path / "plan.toml").write_text(
        """
        data = { alpha = 1.0 }
        times = "0:2:3"
        [sweep]
        rate = { from = 0.25, to = 1.0, count = 3, scale = "log" }
        rule = ["adaline", { name = "adatron", kappa = 1.0 }]
        method = ["exact", { name = "simulation", n = 50, samples = 4 }]
        [[sweep.together]]
        decay = [0.1, 0.2]
        noise = [0.0, 0.5]
        """
    )
    main(["sweep", str(tmp_path / "plan.toml"), "--out", str(tmp_path / "out"), "--workers", "2"])
    found = mp.load(tmp_path / "out" / "sweep.nc")
    assert found.sizes == {"rate": 3, "rule": 2, "method": 2, "decay": 2, "t": 3}
    assert found.rate.values.tolist() == [0.25, 0.5, 1.0]
    assert found.noise.values.tolist() == [0.0, 0.5]
    assert found.noise.dims == ("decay",)
    problem = mp.Problem(mp.Teacher(alpha=1.0, noise=0.5), mp.Adaline(), rate=0.5, decay=0.2)
    assert found.Q[1, 0, 0, 1].values.tolist() == mp.solve(problem, [0, 1, 2]).Q.values.tolist()
    printed = capsys.readouterr().out
    assert "6 of 24 points have no answer:" in printed
    assert "Exact() serves the linear rules" in printed
