"""What repeated data are worth."""

import math

import numpy as np
import pytest

import manypass as mp
from manypass import worth

LAW = "powerlaw:1.2:1.4:0.005"


def problem(alpha=1.0, **changes):
    inputs = changes.pop("inputs", LAW)
    settings = {"rate": 0.5, "decay": 0.01} | changes
    data = mp.Teacher(alpha, task="regression", noise=0.1, inputs=inputs)
    return mp.Problem(data, mp.Adaline(), **settings)


@pytest.fixture(scope="module")
def seven():
    return mp.effective_data(problem(), [1, 2, 4, 8, 16, 32, 64])


def test_a_number_of_fresh_examples_gives_the_same_error(seven):
    """Also as an independent program found it, to all digits that it printed."""
    known = [0.82, 1.43, 2.33, 3.48, 4.68, 5.68, 6.27]
    np.testing.assert_allclose(seven.effective_data, known, atol=0.0051)
    fresh = mp.solve(problem(math.inf), seven.effective_data.values)
    np.testing.assert_allclose(fresh.Eg, seven.Eg, rtol=1e-9)
    assert mp.problem_of(seven) == problem()


@pytest.mark.parametrize("inputs", [None, LAW])
def test_a_reshuffled_pass_is_worth_one(inputs):
    asked = problem(inputs=inputs, decay=0.1, sequence="reshuffled")
    found = mp.effective_data(asked, [0.5, 1, 2, 4]).effective_data.values
    np.testing.assert_allclose(found[:2], [0.5, 1.0], rtol=1e-6)
    assert 1 < found[2] < 2


def test_what_no_fresh_examples_reach_is_inf():
    """Averaged over many passes a large rate's noise is not less: E_g lies above its plateau."""
    small = problem(4.0, inputs=None, rate=0.05, decay=0.0)
    assert np.isfinite(mp.effective_data(small, [1, 2]).effective_data).all()
    asked = problem(inputs=None, rate=1.5, decay=0.0).replace(noise=1.0)
    best = float(mp.solve(asked.replace(alpha=math.inf), np.geomspace(0.01, 100, 200)).Eg.min())
    assert worth.worth(asked.replace(alpha=math.inf), np.array([best / 2]), 1.0)[0] == math.inf


def test_the_fit_gives_back_what_it_is_made_of():
    k = np.array([1.0, 2.0, 4.0, 8.0, 32.0])
    for R_star in (0.5, 3.0, 15.0):
        D = 0.8 * worth.saturating(k, R_star)
        assert worth.fitted(k, D) == pytest.approx(R_star, rel=1e-3)
    assert math.isnan(worth.fitted(k[:2], k[:2]))


@pytest.mark.physics  # some hundred curves
def test_tuned_is_never_worse():
    given = mp.effective_data(problem(inputs=None), [1, 4])
    tuned = mp.effective_data(problem(inputs=None), [1, 4], tuned=True)
    assert (tuned.Eg.values <= given.Eg.values).all()
    best = mp.solve(problem(math.inf, inputs=None), [1.0])
    rate, decay = float(tuned.rate[0]), float(tuned.decay[0])
    near = [
        float(mp.solve(problem(inputs=None, rate=rate * f, decay=decay), [1.0]).Eg[0])
        for f in (0.9, 1.0, 1.1)
    ]
    assert near[1] == min(near) == pytest.approx(float(tuned.Eg[0]), rel=1e-9)
    assert np.isfinite(best.Eg[0])


@pytest.mark.parametrize(
    ("changes", "passes", "said"),
    [
        ({"rule": mp.Adatron(kappa=1.0)}, [1], "not `rule` Adatron.*; what data are worth"),
        ({"alpha": math.inf}, [1], "finite `alpha`"),
        ({}, [0, 1], "`passes` must be above 0"),
        ({"rate": 3.0}, [1], "`rate` = 3 is not below the critical rate"),
        ({}, [2, 1], "`passes` must be strictly increasing"),
        ({"sequence": "fixed"}, [1], "not `sequence` = 'fixed'; what data are worth"),
    ],
)
def test_bad_questions_are_named(changes, passes, said):
    with pytest.raises(ValueError, match=said):
        mp.effective_data(problem().replace(**changes), passes)


def test_the_command_prints_saves_and_draws(seven, tmp_path, capsys):
    from manypass.cli import main

    flags = "--alpha 1 --task regression --noise 0.1 --rate 0.5 --decay 0.01 --passes 1,2,4"
    files = ["--out", str(tmp_path / "x.nc"), "--plot", str(tmp_path / "x.png")]
    main(["worth", *flags.split(), "--inputs", LAW, *files])
    rows = capsys.readouterr().out.splitlines()
    assert float(rows[2].split()[1]) == pytest.approx(float(seven.effective_data[1]), rel=1e-5)
    assert rows[-1].startswith("R* = ")
    again = mp.load(tmp_path / "x.nc")
    np.testing.assert_array_equal(again.passes, [1, 2, 4])
    assert (tmp_path / "x.png").stat().st_size > 5000


def test_less_than_one_pass_does_not_change_the_fit():
    problem = mp.Problem(mp.Teacher(1.2), mp.Adaline(), rate=0.5, decay=0.8)
    known = mp.effective_data(problem, [1, 2, 4, 8])
    more = mp.effective_data(problem, [0.1, 0.5, 1, 2, 4, 8])
    assert float(more.R_star) == pytest.approx(float(known.R_star), rel=1e-6)
    np.testing.assert_allclose(more.fit[2:], known.fit, rtol=1e-6)
    assert np.isnan(more.fit[:2]).all()
    assert np.isfinite(more.effective_data).all()
