"""Simulation on a card, without one: numba's simulator runs the kernels, numpy replays them."""

import ast
import json
import os
import subprocess
import sys
import types
from pathlib import Path

import numba
import numpy as np
import pytest
import stand_in_cupy

import manypass as mp
from manypass import card, cli
from manypass.sweeps import pools

PROGRAM = Path(__file__).with_name("simulated_card.py")
CHECKS = [
    node.name
    for node in ast.parse(PROGRAM.read_text(encoding="utf-8")).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
]
PROBLEM = mp.Problem(mp.Teacher(1.2), mp.Adaline(), rate=1.0, decay=0.8)


@pytest.mark.physics
def test_in_the_simulator():
    """All checks of the program at once: runners would each start it for their share of them."""
    command = [sys.executable, "-W", "error", str(PROGRAM)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found) == set(CHECKS)
    wrong = [f"{name}: {error}" for name, error in found.items() if error]
    assert not wrong, "\n".join(wrong)


@pytest.fixture
def no_card(monkeypatch):
    monkeypatch.delenv("NUMBA_ENABLE_CUDASIM", raising=False)
    for look in (card.kernels_missing, card.arrays_missing):
        look.cache_clear()
    yield monkeypatch
    for look in (card.kernels_missing, card.arrays_missing):
        look.cache_clear()


def test_a_missing_package_is_named_with_the_command_that_installs_it(no_card):
    no_card.setattr(card, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"numba-cuda is missing: pip install 'manypass\[cuda\]'"):
        mp.solve(PROBLEM, [1], mp.Simulation(device="cuda"))


def test_no_driver_is_one_line(no_card):
    if os.path.exists("/dev/nvidia0"):
        pytest.skip("there is a card")
    no_card.setattr(card, "find_spec", lambda name: name)
    with pytest.raises(ValueError, match=r"device='cuda' cannot be served: .*; device='cpu'") as e:
        mp.solve(PROBLEM, [1], mp.Simulation(device="cuda"))
    assert "\n" not in str(e.value)


def test_a_compiler_that_does_not_know_its_numpy_is_one_line(no_card):
    """numba-cuda 0.30 looks for `np.row_stack` when it compiles; numpy 2.5 has none."""

    class Gone:
        gpus, current_context, jit = [0], lambda self: None, None

    card_of = Gone()
    card_of.jit = lambda signature: np.row_stacked
    nvvm, error = types.ModuleType("nvvm"), types.ModuleType("error")
    nvvm.NVVM, error.CudaSupportError, error.NvvmSupportError = object, KeyError, KeyError
    driver = types.ModuleType("cudadrv")
    driver.nvvm = nvvm
    no_card.setattr(numba, "cuda", card_of, raising=False)
    for name, module in (("", card_of), (".cudadrv", driver), (".cudadrv.error", error)):
        no_card.setitem(sys.modules, f"numba.cuda{name}", module)
    no_card.setattr(card, "find_spec", lambda name: name)
    no_card.setattr(card, "version", lambda name: "0.30")
    line = r"numba-cuda 0.30 compiles nothing here \(AttributeError: .*row_stacked.*pip install"
    with pytest.raises(ValueError, match=line):
        mp.solve(PROBLEM, [1], mp.Simulation(device="cuda"))


@pytest.mark.parametrize(
    ("problem", "method", "named"),
    [
        (PROBLEM.replace(mode="batch"), mp.Simulation(device="cuda"), "`mode` = 'batch'"),
        (PROBLEM.replace(batch_share=0.5), mp.Simulation(device="cuda"), "`batch_share` = 0.5"),
        (PROBLEM, mp.Simulation(device="cuda", response=True, precision="float64"), "`response`"),
        (PROBLEM, mp.Simulation(device="cuda", n=20_000), "`n` = 20000"),
        (PROBLEM, mp.Exact(device="cuda"), "serves on-line learning on a Dataset"),
    ],
)
def test_what_a_card_does_not_serve_is_refused_by_name(problem, method, named):
    with pytest.raises(ValueError, match=named):
        mp.solve(problem, [1], method)


def test_unknown_devices_are_refused():
    for make in (mp.Simulation, mp.Exact):
        with pytest.raises(ValueError, match=r"`device` must be one of .*cuda.*, got 'tpu'"):
            make(device="tpu")
    with pytest.raises(ValueError, match="`device`"):
        mp.critical_rate(PROBLEM, device="gpu")


def test_precision_depends_on_the_device():
    assert mp.Simulation().number == "float64"
    assert mp.Simulation(device="cuda").number == "float32"
    assert mp.Simulation(device="cuda", precision="float64").number == "float64"


@pytest.fixture
def arrays_on_a_card(monkeypatch):
    stand_in_cupy.install(monkeypatch)
    monkeypatch.setattr(card, "arrays_missing", lambda: None)


@pytest.mark.parametrize(
    ("n", "p", "task", "rule"),
    [
        (6, 30, "classification", mp.Adaline()),
        (12, 8, "regression", mp.Adaline()),
        (5, 20, "regression", mp.Hebbian()),
    ],
)
def test_theory_of_given_data_is_the_same_on_a_card(arrays_on_a_card, n, p, task, rule):
    rng = np.random.default_rng(n)
    X = rng.standard_normal((p + 10, n)) * np.linspace(0.3, 1.5, n)
    y = X @ rng.standard_normal(n)
    y = np.sign(y) if task == "classification" else y
    data = mp.Dataset(X[:p], y[:p], X[p:], y[p:], task=task)
    problem = mp.Problem(data, rule, rate=0.2, decay=0.05, temperature=0.01)
    times, both = np.linspace(0, 4, 5), [mp.Exact(), mp.Exact(device="cuda")]
    here, there = (mp.solve(problem, times, method, two_time=True) for method in both)
    for name in ("Q", "F2", "F2_test", "Et", "Eg", "C", "G"):
        np.testing.assert_allclose(there[name], here[name], rtol=1e-9, err_msg=name)
    here, there = (mp.steady_state(problem, method, window=3.0) for method in both)
    for name in here.data_vars:
        np.testing.assert_allclose(there[name], here[name], rtol=1e-7, err_msg=name)
    limit = mp.critical_rate(problem)
    assert mp.critical_rate(problem, device="cuda") == pytest.approx(limit, rel=1e-8)


def test_no_memory_on_the_card_is_said_with_the_number(arrays_on_a_card, monkeypatch):
    monkeypatch.setattr(card, "free_for_arrays", lambda: 1e3)
    rng = np.random.default_rng(0)
    data = mp.Dataset(rng.standard_normal((20, 5)), rng.standard_normal(20), task="regression")
    problem = mp.Problem(data, mp.Adaline(), rate=0.2)
    with pytest.raises(ValueError, match="GB of memory and 1e-06 GB are free: take fewer"):
        mp.solve(problem, [1], mp.Exact(device="cuda"))


def test_the_command_line_and_plans_take_a_device(no_card, capsys, tmp_path):
    no_card.setattr(card, "find_spec", lambda name: None)
    flags = ["--alpha", "1.2", "--rate", "1", "--times", "1", "--device", "cuda"]
    with pytest.raises(SystemExit) as stop:
        cli.main(["solve", *flags, "--method", "simulation"])
    assert stop.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "numba-cuda is missing: pip install 'manypass[cuda]'" in lines[0]
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'rule = "adaline"\ndata = { alpha = 1.2 }\ntimes = "0:1:2"\n'
        'method = { name = "simulation", n = 10, device = "cuda" }\n[sweep]\nrate = [0.5, 1.0]\n'
    )
    with pytest.raises(SystemExit) as stop:  # no point has an answer
        cli.main(["sweep", str(plan), "--out", str(tmp_path / "out")])
    assert stop.value.code == 1
    found = mp.load(tmp_path / "out" / "sweep.nc")
    assert all("numba-cuda is missing" in str(reason) for reason in found.error.values)


def test_points_of_a_sweep_do_not_compete_for_the_card(monkeypatch):
    asked = []

    def local(workers):
        asked.append(workers)
        raise KeyboardInterrupt

    monkeypatch.setattr(pools, "local", local)
    grid = mp.Grid(PROBLEM, rate=[0.5, 1.0])
    for method, workers in ((mp.Simulation(device="cuda"), 1), (mp.Simulation(), 2)):
        with pytest.raises(KeyboardInterrupt):
            mp.sweep(grid, method=method, times=[1.0], workers=2)
        assert asked.pop() == workers
