"""Sweeps on a real Dask scheduler and a queue: the same numbers, deaths, and who is not there."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
import xarray as xr
from slow_sweeps import HASTE, PLAN, PROBLEM, kept, wait_for, whole

import manypass as mp
from manypass.cli import main
from manypass.sweeps import clusters

pytestmark = pytest.mark.filterwarnings(HASTE)


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
    yield json.loads(Path(file).read_text())["address"], made[1:]
    for process in made:
        process.kill()
        process.wait()


@pytest.mark.endurance
def test_dask_gives_the_same_numbers_and_survives_the_death_of_a_worker(scheduler, tmp_path):
    address, workers = scheduler
    (tmp_path / "plan.toml").write_text(PLAN)
    with clusters.running(address) as client:
        client.wait_for_workers(2)
        assert sum(client.ncores().values()) == 2
    command = ["sweep", str(tmp_path / "plan.toml"), "--out", str(tmp_path), "--cluster", address]
    with ThreadPoolExecutor(1) as pool:
        swept = pool.submit(main, command)
        wait_for(lambda: len(kept(tmp_path)) >= 3)
        workers[0].kill()
        swept.result(timeout=90)
    same = mp.load(tmp_path / "sweep.nc")
    xr.testing.assert_identical(same.drop_attrs(), whole().drop_attrs())


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


def test_a_cluster_that_is_not_there():
    with (
        pytest.raises(ValueError, match=r"`cluster` 'tcp://127.0.0.1:9' does not answer"),
        clusters.running("tcp://127.0.0.1:9", timeout=1),
    ):
        pass


def test_a_client_that_does_not_answer_is_told():
    """A closed one has nobody to ask."""
    closed = SimpleNamespace(get_executor=None, ncores=lambda: None.ncores)
    problem = mp.Problem(mp.Teacher(1.2), mp.Adaline(), rate=1.0, decay=0.1)
    with pytest.raises(ValueError, match=r"`client` does not answer .* give one that is open"):
        mp.sweep(mp.Grid(problem, rate=[0.1]), client=closed)


@pytest.mark.parametrize("name", ["client", "executor"])
def test_a_client_whose_answers_are_awaited_is_refused(name):
    """Its futures are no concurrent ones, and within its loop a sweep would wait for ever."""
    grid = mp.Grid(mp.Problem(mp.Teacher(1.2), mp.Adaline(), rate=1.0, decay=0.1), rate=[0.1])
    client = SimpleNamespace(asynchronous=True, submit=None, get_executor=None)
    told = f"`{name}` is an asynchronous Dask client, .* without asynchronous=True"
    with pytest.raises(ValueError, match=told):
        mp.sweep(grid, **{name: client})
    made = SimpleNamespace(submit=None, _client=client)  # by its get_executor()
    if name == "executor":
        with pytest.raises(ValueError, match=told):
            mp.sweep(grid, executor=made)


def test_an_executor_that_gives_other_futures_is_told():
    grid = mp.Grid(mp.Problem(mp.Teacher(1.2), mp.Adaline(), rate=1.0, decay=0.1), rate=[0.1])
    odd = SimpleNamespace(submit=lambda *_: 3)
    with pytest.raises(ValueError, match=r"`executor` must give a .*Future .* got 3: give a"):
        mp.sweep(grid, executor=odd)


def test_a_dask_client_as_the_executor_is_served():
    distributed = pytest.importorskip("distributed")
    grid = mp.Grid(PROBLEM, rate=[0.1, 0.2])
    settings = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.Client(processes=False, set_as_default=False, **settings) as client:
        found = mp.sweep(grid, "exact", executor=client)
    assert (found.error == "").all()
