"""Dask clusters: one that runs already, or jobs of a Slurm queue."""

from __future__ import annotations

import inspect
import re
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from manypass import checks

DEFAULTS: dict[str, Any] = {
    "cores": 1,
    "processes": 1,
    "memory": "2GB",
    "scheduler_options": {"dashboard_address": ":0"},  # any port: sweeps may run side by side
}
ADDRESS = re.compile(r"[a-z]+://.+:\d+")
PAUSE = 30.0  # seconds until the first word that jobs still wait
NEEDED = "needs Dask: pip install 'manypass[cluster]'"


@contextmanager
def running(address: str, timeout: float = 10.0) -> Iterator[Any]:
    """Connect to the scheduler at an address such as tcp://host:8786."""
    try:
        from distributed import Client
    except ImportError:
        raise ValueError(f"`cluster` {NEEDED}") from None
    if not ADDRESS.fullmatch(address):  # a Client of a malformed one does not end cleanly
        raise ValueError(
            f"`cluster` must be an address such as tcp://host:8786, got {checks.shown(address)}"
        )
    try:
        client = Client(address, timeout=timeout, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ValueError(f"`cluster` {address!r} does not answer: {error}") from None
    try:
        if not client.ncores():
            client.wait_for_workers(1, timeout=timeout)
        yield client
    except TimeoutError:
        raise ValueError(f"`cluster` {address!r} has no workers") from None
    finally:
        client.close()


@contextmanager
def slurm(jobs: int, settings: dict[str, Any]) -> Iterator[Any]:
    """Start so many Slurm jobs, each a Dask worker with the settings of dask-jobqueue."""
    checks.count("slurm", jobs, 1, 10_000)
    if shutil.which("sbatch") is None:  # dask-jobqueue would wait forever for its workers
        raise ValueError("`slurm` needs the command sbatch: start the sweep on a node of Slurm's")
    try:
        from dask_jobqueue.slurm import SLURMCluster
        from distributed import Client
    except ImportError:
        raise ValueError(f"`slurm` {NEEDED}") from None
    owners = (*SLURMCluster.__mro__[:-1], *SLURMCluster.job_cls.__mro__[:-1])
    known = {name for owner in owners for name in inspect.signature(owner.__init__).parameters}
    odd = next((key for key in settings if key not in known), None)
    if odd is not None:
        raise ValueError(
            f"{odd!r} in the table [slurm] of the plan is no setting of dask-jobqueue's "
            f"SLURMCluster, which has queue, account, walltime, cores, processes, memory, ..."
        )
    try:
        queue = SLURMCluster(**DEFAULTS | settings)
    except Exception as error:  # of dask-jobqueue, or of what it hands a setting to
        raise ValueError(
            f"dask-jobqueue does not take the table [slurm] of the plan, "
            f"{checks.shown(settings, 200)}: {' '.join(str(error).split())}"
        ) from None
    with queue as cluster, Client(cluster, set_as_default=False) as client:
        cluster.scale(jobs=jobs)
        wait_in_queue(client, jobs)
        yield client


def wait_in_queue(client: Any, jobs: int) -> None:
    """Wait for the first job, as long as the queue takes, and say so, ever more rarely."""
    start, pause = time.monotonic(), PAUSE
    while True:
        try:
            client.wait_for_workers(1, timeout=pause)
            return
        except TimeoutError:
            waited = time.monotonic() - start
            print(
                f"manypass: none of the Slurm jobs ({jobs}) has started in {waited:.0f} s: "
                f"squeue --me says why, Ctrl-C gives up",
                file=sys.stderr,
                flush=True,
            )
            pause *= 2
