"""The package as a whole: its names, loaded on first use."""

import ast
import builtins
import doctest
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import manypass as mp


@pytest.mark.parametrize("name", mp.__all__)
def test_every_public_name_loads_and_is_documented(name):
    assert inspect.getdoc(getattr(mp, name))


@pytest.mark.parametrize("name", mp.__all__)
def test_examples_bring_what_they_need(name):
    """Pasted into an empty session they would run: no name comes from the module they stand in."""
    found = getattr(mp, name)
    for test in doctest.DocTestFinder(exclude_empty=True).find(found, name):
        tree = ast.parse("".join(example.source for example in test.examples))
        nodes = list(ast.walk(tree))
        known = {*dir(builtins)}
        known |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        known |= {n.arg for n in nodes if isinstance(n, ast.arg)}
        known |= {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
        for node in nodes:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                known |= {alias.asname or alias.name for alias in node.names}
        used = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        assert used <= known, (test.name, used - known)


def test_type_checkers_see_the_same_names():
    tree = ast.parse(Path(mp.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.asname for node in block.body for alias in node.names}
    assert seen == set(mp.__all__)


def test_unknown_names_are_errors():
    with pytest.raises(AttributeError, match="no attribute 'solv'"):
        _ = mp.solv


def test_an_exact_curve_needs_no_compiler():
    """Of the heavy packages only xarray, and pandas, without which xarray cannot be imported."""
    code = """
import sys, manypass as mp
problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.9, decay=0.8)
found = mp.solve(problem, [1.0, 2.0], mp.Exact()), mp.steady_state(problem), mp.solve(problem, [1])
mp.critical_rate(problem), mp.slow_mode(problem)
print(*{name.split(".")[0] for name in sys.modules}, *sys.modules)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "xarray" in loaded
    heavy = {"numba", "dask", "matplotlib", "h5py", "scipy.special", "scipy.linalg", "scipy.sparse"}
    assert not heavy & loaded


def test_nothing_but_the_verbs_imports_a_method():
    """The rooms of the house: physics does not know the methods, the page or the shell."""
    allowed = ("verbs.py", "__init__.py", "cli.py", "flags.py")
    # In the room of a method itself
    allowed += ("sample.py", "trained.py", "networks.py", "refusals.py", "cost.py", "accuracy.py")
    for path in Path(mp.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
        if path.name not in allowed and path.parent.name not in ("explorer", "reproduce"):
            assert not [n for n in names if n.endswith((".method", ".mean_force"))], path
