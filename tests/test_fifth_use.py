"""What the next readers of the README met: each of these was silent, wrong or unclear."""

import decimal
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import manypass as mp
from manypass import cli, inputs
from manypass.simulation.sample import CARRIED, bent

PERCEPTRON = mp.Problem(mp.Teacher(0.9, noise=0.4), mp.Perceptron(0.2), rate=0.8, decay=0.2)
LAYERED = mp.Problem(
    mp.Teacher(1.0, "regression", noise=0.2, hidden=2),
    mp.Committee(2, "relu"),
    rate=0.3,
    start=mp.Start(R=[[0.1, 0.0], [0.0, 0.1]], Q=[[0.25, 0.0], [0.0, 0.25]]),
)


@pytest.mark.parametrize("problem", [PERCEPTRON, LAYERED], ids=["perceptron", "relu"])
def test_the_measured_response_of_a_force_that_jumps_is_that_of_theory(problem):
    """A small stimulus takes no example across a jump: G was that of the decay alone, G_se nil."""
    t = [0.4, 1.0, 2.1]
    method = mp.Simulation(n=250, samples=100, seed=4, response=True)
    measured = mp.solve(problem, t, method, two_time=True)
    theory = mp.solve(problem, t, mp.DMFT(rtol=0.02), two_time=True)
    late, early = np.tril_indices(3, -1)
    error = np.hypot(measured.G_se.values, theory.G_se.values)[late, early]
    z = (measured.G.values - theory.G.values)[late, early] / error
    assert np.abs(z).max() < 3.5
    assert error.max() < 0.03


@pytest.mark.physics
def test_a_stimulus_that_is_not_small_bends_g_by_no_more_than_its_error_says():
    """Four times the usual one: what it bends is seen, and G_se covers it."""
    t, n, size = [0.4, 1.0, 2.1], 400, 0.02
    usual = mp.Simulation(n=n, samples=1000, seed=4, response=True)
    large = mp.Simulation(n=n, samples=300, seed=5, response=True, stimulus=size)
    one, other = (mp.solve(PERCEPTRON, t, m, two_time=True) for m in (usual, large))
    assert size**2 * n / other.Q.values[0] > (4 * CARRIED) ** 2
    change = (other.G - one.G).values[1, 0]
    most = bent({"Q": other.Q.values, "G": other.G.values}, size, n)[1, 0]
    assert 5 * float(one.G_se[1, 0]) < change < most < 6 * change
    assert float(other.G_se[1, 0]) > most


def test_the_response_of_a_continuous_force_is_measured_by_next_to_nothing():
    smooth = PERCEPTRON.replace(rule=mp.Adatron(1.0))
    default, small = (
        mp.solve(
            smooth, [0.5, 1.0], mp.Simulation(n=50, samples=4, response=True, **s), two_time=True
        )
        for s in ({}, {"stimulus": 1e-6})
    )
    assert default.drop_attrs().equals(small.drop_attrs())


@pytest.mark.parametrize(
    ("cells", "mark", "odd"),
    [
        (("1.3", "2.6", "1.200"), ".", "'1.3'"),
        (("0,300", "0,200", "1,200"), ",", "'0,300'"),
        (("2.338166736175902", "1.200.000", "3"), ".", "'2.338166736175902'"),
        (("1 23", "1 234", "3"), " ", "'1 23'"),
    ],
)
def test_what_groups_no_three_digits_groups_no_thousands(cells, mark, odd, tmp_path):
    """Decimals became up to 10¹⁵ times too large, without a word."""
    path = tmp_path / "x.csv"
    path.write_text("a;y\n" + "".join(f"{cell};{k}\n" for k, cell in enumerate(cells)))
    style = {"sep": ";", "thousands": mark} | ({"decimal": ","} if mark == "." else {})
    with pytest.raises(ValueError, match=f"column 'a' has {odd}, in which '.' does not group"):
        mp.read_dataset(path, "y", **style)


def test_rows_that_have_a_name_are_a_column_of_parquet_as_of_text(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((40, 3)), columns=["a", "b", "y"]).set_index("a")
    table.to_parquet(tmp_path / "x.parquet")
    table.to_csv(tmp_path / "x.csv")
    found = [mp.read_dataset(tmp_path / f"x.{end}", "y") for end in ("parquet", "csv")]
    assert found[0].names == found[1].names == ("a", "b")
    assert np.allclose(found[0].X, found[1].X)


def test_decimals_of_a_data_base_are_numbers():
    column = [decimal.Decimal(k * k % 7) / 4 for k in range(20)]
    data = mp.Dataset(pd.DataFrame({"a": column, "y": np.arange(20.0) - 9.5}), "y")
    assert data.X[2, 0] == 1.0


def test_arrays_of_xarray_are_paired_by_their_labels():
    rows = np.arange(30)
    X = xr.DataArray(np.eye(30)[:, :3] + 1, dims=("row", "column"), coords={"row": rows})
    y = xr.DataArray(rows**2 % 17, dims="row", coords={"row": rows})
    moved = y[::-1]
    assert np.array_equal(mp.Dataset(X, moved).y, mp.Dataset(X, y).y)
    with pytest.raises(ValueError, match="`y` must have the index of `X`"):
        mp.Dataset(X, y.assign_coords(row=rows + 1))


def test_small_words(tmp_path, capsys):
    problem = mp.Problem(mp.Teacher(1.2), "adaline", rate=1.0, decay=0.5)
    with pytest.raises(ValueError, match=r"`objective` must be among Q, F2, Eg, got 'loss'"):
        mp.best(problem, "rate", objective="loss", method="exact")
    with pytest.raises(ValueError, match=r"`results` have none of Et, Eg, which a panel"):
        mp.plot.overview(mp.solve(problem, [1, 2])[["R"]])
    with pytest.warns(UserWarning, match="`y` has the value 0 alone"):
        mp.Dataset(np.eye(3), np.array([-0.0, 0, 0]))
    with pytest.raises(ValueError, match=r"`y` must be the targets, got 'y': of a frame"):
        inputs.inputs_of(pd.DataFrame({"a": [1.0], "y": [2.0]}), "y")
    data = mp.Dataset(np.eye(3), np.array([0.5, 1, 2]))
    with pytest.raises(ValueError, match=r"`start` must be Start\(weights="):
        problem.replace(data=data, start=[1, 2, 3])
    plan = tmp_path / "plan.toml"
    plan.write_text('rule="adaline"\nout="x"\nrate=1\ndata={alpha=1}\n[sweep]\ndecay=[1,2]\n')
    with pytest.raises(SystemExit):
        cli.main(["sweep", str(plan), "--out", str(tmp_path / "a")])
    assert "the plan has the key 'out', which is a flag of the command" in capsys.readouterr().err


def test_who_may_not_write_at_home_draws_in_silence(tmp_path):
    """Matplotlib told of its folder, which nobody there can mend."""
    kept = {k: v for k, v in os.environ.items() if k not in ("MPLCONFIGDIR", "XDG_CACHE_HOME")}
    words = ["solve", "--alpha", "1.2", "--rate", "0.5", "--times", "1,2", "--plot", "y.png"]
    done = subprocess.run(
        [sys.executable, "-m", "manypass", *words],
        cwd=tmp_path,
        env=kept | {"HOME": os.devnull},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "y.png").exists()
