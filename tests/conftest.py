"""Property tests draw the same examples every time: a test run depends on the code alone."""

import os
import re
import signal
import subprocess
import sys

# Two runners share the cores: products on several threads would wait for each other, many times.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy reads it when it is first imported

import pytest
from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")
# Under nohup, or behind &, programs would inherit that these are ignored; tests send them.
for name, usual in (("SIGINT", signal.default_int_handler), ("SIGHUP", signal.SIG_DFL)):
    number = getattr(signal, name, None)
    if number is not None and signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, usual)
collect_ignore = ["simulated_card.py", "references/make.py"]  # programs of their own


def pytest_collection_modifyitems(items):
    """Tests of the explorer come first: so one runner has them all, and there is one explorer."""
    items.sort(key=lambda item: "explorer" not in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def explorer():
    """Address of an explorer that runs as a user would run it."""
    import manypass as mp

    # What each of its workers would compile is compiled once, and kept on disk.
    problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.0, decay=0.8)
    for method in (mp.Exact(samples=64), mp.Simulation(n=20, samples=1)):
        mp.solve(problem, [0.1], method)
    mp.activations(problem, 0.1, samples=64)
    start = mp.Start(R=[[0.1, 0.0], [0.0, 0.1]], Q=[[0.25, 0.0], [0.0, 0.25]])
    data = mp.Teacher(2.0, "regression", hidden=2)
    problem = mp.Problem(data, mp.Committee(2), rate=1.0, start=start)
    for method in (mp.DMFT(samples=4_000), mp.Simulation(n=20, samples=1)):
        mp.solve(problem, [0.1], method)
    mp.solve(problem.replace(alpha=float("inf")), [0.1])
    command = [sys.executable, "-m", "manypass", "explore", "--port", "0", "--no-browser"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        yield re.search(r"http://127\.0\.0\.1:\d+", running.stdout.readline())[0]
        running.send_signal(signal.SIGINT)  # also with runs under way it ends at once, in silence
        try:
            rest, _ = running.communicate(timeout=20)
        finally:
            running.kill()
    assert (rest.strip(), running.returncode) == ("", 0)
