"""Compiled functions: kept on disk where that is possible, called from threads in silence."""

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import manypass as mp
from manypass import compiling
from manypass.simulation import kernels

SOLVE = """
import manypass as mp
problem = mp.Problem(mp.Teacher(alpha=1.0), mp.Adatron(kappa=1.0), rate=1.0, decay=0.1)
def solve():
    return float(mp.solve(problem, [0.5], mp.DMFT(dt=0.2, samples=2_000)).R[0])
"""
COLORAMA = """
import sys, threading
__version__, calls = "0.4.6", []
class Wrapped:
    def __init__(self, stream): self.stream = stream
    def __getattr__(self, name): return getattr(self.stream, name)
def init():
    global before
    calls.append(threading.current_thread())
    before, sys.stdout = sys.stdout, Wrapped(sys.stdout)
def reinit(): pass
def deinit(): sys.stdout = before
class Fore: BLUE = YELLOW = WHITE = GREEN = RED = BLACK = MAGENTA = CYAN = ""
class Style: BRIGHT = RESET_ALL = ""
"""
READ_ONLY = """
import os, sys
from numba.core import caching
def ensure_cache_path(self):
    path = self.get_cache_path()
    if not path.startswith(sys.argv[1]):
        raise OSError(30, "Read-only file system", path)
    os.makedirs(path, exist_ok=True)
caching._CacheLocator.ensure_cache_path = ensure_cache_path
"""


def run(code, *arguments, **environment):
    """Run Python code in a process of its own; return what it printed."""
    place = str(Path(mp.__file__).parents[1])
    before = [environment.pop("first", None), place, os.environ.get("PYTHONPATH")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, before))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        env={k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.endurance
def test_no_thread_makes_numba_wrap_stdout(tmp_path):
    (tmp_path / "colorama.py").write_text(COLORAMA)
    code = f"""{SOLVE}
import sys, colorama
solve()  # compiles: under numba's lock, one wrapping after another
plain = sys.stdout
colorama.calls.clear()
solve()
print(sys.stdout is plain, len(colorama.calls))"""
    assert run(code, first=str(tmp_path)).split() == ["True", "0"]


@pytest.mark.parametrize("writable", [pytest.param(True, marks=pytest.mark.endurance), False])
def test_package_and_home_may_be_read_only(tmp_path, writable):
    """Compiled functions go to a temporary folder; if that cannot be either, nowhere."""
    code = f"{READ_ONLY}from manypass.cavity.tables import weights; print(weights(1.0)[1])"
    found = run(code, str(tmp_path) if writable else "/nowhere", TMPDIR=str(tmp_path))
    assert float(found) == 1.0
    kept = list(tmp_path.rglob("*.nbc"))
    assert bool(kept) == writable
    assert all(path.stat().st_mode & 0o077 == 0 for path in tmp_path.glob("manypass-*"))


def test_a_full_disk_keeps_nothing_and_goes_on(monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(compiling.Files, "_open_for_write", full)
    assert compiling.njit(cache=True)(lambda x: x + 1)(1.0) == 2.0


APPLIED = """
from manypass.compiling import njit
@njit(cache=True)
def double(x): return 2 * x
@njit(cache=True)
def apply(function, x): return function(x)
"""


def test_what_is_compiled_for_a_function_is_kept_if_that_function_is(tmp_path, monkeypatch):
    """A module imported anew stands for another process."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "applied.py").write_text(APPLIED)

    def applied():
        sys.modules.pop("applied", None)
        importlib.invalidate_caches()
        return importlib.import_module("applied")

    def hits(apply):
        return sum(apply.stats.cache_hits.values())

    for known in (0, 1):
        made = applied()
        assert made.apply(made.double, 1.0) == 2.0
        assert hits(made.apply) == known
    assert made.apply(compiling.njit()(lambda x: 3 * x), 1.0) == 3.0
    assert hits(made.apply) == 1
    assert len(list(tmp_path.rglob("*apply*.nbc"))) == 1  # what a user passes is not kept
    index = made.apply._cache._cache_file
    with monkeypatch.context() as patch:  # two that add a version at once: the later index stays
        patch.setattr(index, "_load_index", dict)
        made.apply(made.double, np.float32(1))
    made = applied()
    assert made.apply(made.double, np.float32(0.3)) == np.float32(0.6)
    assert made.apply(made.double, 0.3) == 0.6
    assert hits(made.apply) == 1
    (tmp_path / "applied.py").write_text(APPLIED.replace("double", "twice"))
    made = applied()  # its index names a function that is no more
    assert made.apply(made.twice, 1.0) == 2.0
    assert hits(made.apply) == 0


@pytest.mark.parametrize("rule", [mp.Adaline(), mp.Adatron(1.0)], ids=str)
def test_forces_of_the_package_are_kept_and_those_of_users_are_not(rule):
    kept = kernels.compiled_force(rule)._cache
    assert isinstance(kept, compiling.Kept)
    own = mp.Rule(lambda x, y: y - x)
    assert not isinstance(kernels.compiled_force(own)._cache, compiling.Kept)
    slope = kernels._compiled("slope", own.slope_function, 0, ())
    assert not isinstance(slope._cache, compiling.Kept)


def test_all_compiled_functions_are_kept_in_one_way():
    for path in Path(mp.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "numba":
                assert not {"njit", "jit"} & {alias.name for alias in node.names}, path
