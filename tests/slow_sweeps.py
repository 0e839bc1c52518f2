"""A sweep that takes its time: long enough to be interrupted, in whatever way."""

import functools
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import manypass as mp

PROBLEM = mp.Problem(mp.Teacher(alpha=1.0), mp.Adaline(), rate=1.0, decay=0.5)
SLOW = mp.Simulation(n=300, samples=40, settle=5)  # a tenth of a second or more
RATES = [round(0.1 + 0.05 * i, 2) for i in range(12)]
PLAN = f"""
rule = "adaline"
decay = 0.5
data = {{ alpha = 1.0 }}
method = {{ name = "simulation", n = 300, samples = 40, settle = 5 }}
[sweep]
rate = {RATES}
"""
HASTE = "ignore:.*`settle` = 5 is too short"  # SLOW does not wait until nothing moves


@functools.cache
def whole():
    """All of it, computed in this process."""
    with ThreadPoolExecutor(1) as executor:
        return mp.sweep(mp.Grid(PROBLEM, rate=RATES), SLOW, executor=executor)


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def kept(folder):
    return sorted((Path(folder) / "points").glob("*.point"))
