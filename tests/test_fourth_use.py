"""What careful readers of the README met: each of these was silent, wrong or slow."""

import math
import warnings

import numpy as np
import pytest

import manypass as mp
from manypass import cli

PROBLEM = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.9, decay=0.8)
ADATRON = mp.Problem(mp.Teacher(alpha=1.2), mp.Adatron(kappa=1.0), rate=1.0, decay=0.1)


def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 5))
    return X, X[:, 0] + 0.3 * rng.standard_normal(100)


def too_large(x, target):
    if x > 1.2:
        raise ValueError("too large")
    return target - x


def test_a_force_that_raises_values_of_its_own_is_named():
    own = PROBLEM.replace(rule=mp.Rule(too_large))
    with pytest.raises(
        ValueError, match=r"`force` of .*too_large.* fails on an example.*too large"
    ):
        mp.solve(own, [3], mp.Simulation(n=50, samples=2))


def test_schedules_of_ones_own_are_functions():
    class Mine(mp.schedules.Schedule):
        def __call__(self, t):
            return 1.0 / (1 + t)

    mine, plain = (
        mp.solve(PROBLEM.replace(rate=rate), [1.0]) for rate in (Mine(), lambda t: 1.0 / (1 + t))
    )
    assert float(mine.Q[0]) == pytest.approx(float(plain.Q[0]), rel=1e-9)
    with pytest.raises(ValueError, match="`rate`, a function of the time t, fails at t = 0"):
        PROBLEM.replace(rate=mp.schedules.Schedule())


@pytest.mark.parametrize("inputs", [mp.Blocks([1, 1]), mp.PowerLaw(0.0)])
def test_equal_eigenvalues_are_no_warning(inputs):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = mp.solve(PROBLEM.replace(inputs=inputs), [1.0])
    assert float(found.Q[0]) == pytest.approx(float(mp.solve(PROBLEM, [1.0]).Q[0]), rel=1e-6)


def test_what_never_learns_is_told_and_is_the_same_for_every_method():
    still = ADATRON.replace(rule=mp.Adatron(kappa=0))
    fresh = still.replace(alpha=math.inf)
    for problem, method in ((still, "dmft"), (fresh, "exact")):
        with pytest.warns(UserWarning, match="never learns from J = 0"):
            found = mp.solve(problem, [0.5, 2], method)
        assert found.Q.values.tolist() == [0, 0]
        assert found.Eg.values.tolist() == [0.5, 0.5]
    with pytest.warns(UserWarning, match="never learns from J = 0"):
        assert float(mp.steady_state(still).Eg) == 0.5


def test_batches_that_no_table_fills_are_told():
    X, y = table()
    with pytest.warns(UserWarning, match="`batch_size` = 1000 is more than the 100 examples"):
        problem = mp.Problem(mp.Dataset(X, y), "adaline", rate=0.1, batch_size=1000)
    with pytest.warns(UserWarning, match=r"no batch is learned by t = 10: .*t = 200 at N = 5"):
        mp.solve(problem, [1, 10], "exact")


def test_labels_of_inputs_are_signs_and_of_a_regressions_test_are_refused():
    X, y = table()
    signs = mp.inputs_of(X, np.where(y > 0, 1, -1))
    for labels in (y > 0, (y > 0).astype(int)):
        with pytest.warns(UserWarning, match="`y` has 0 and 1 alone: taken as the classes -1 and"):
            assert mp.inputs_of(X, labels) == signs
    with pytest.raises(ValueError, match="`y_test` has booleans, but `y` has the numbers"):
        mp.Dataset(X, y, X[:10], y[:10] > 0)


def test_the_fit_of_repetitions_says_when_it_is_at_an_end(capsys):
    """It gave exp(-5), where it stopped to look."""
    harmful = PROBLEM.replace(alpha=5.0, decay=0.0)
    found = mp.effective_data(harmful, [1, 2, 4, 100, 1000])
    assert float(found.R_star) == 0.0
    assert np.ptp(found.fit.values) == 0.0
    flags = ["--alpha", "5", "--rate", "1.9", "--passes", "1,2,4,100,1000"]
    cli.main(["worth", *flags])
    assert "R* = 0: more passes add nothing" in capsys.readouterr().out


def test_a_simulated_plateau_of_one_draw_has_no_error_bar():
    start = mp.Start(R=[[0.1, 0], [0, 0.1]], Q=[[0.25, 0], [0, 0.25]])
    data = mp.Teacher(math.inf, "regression", hidden=2)
    problem = mp.Problem(data, mp.Committee(2), rate=1.0, start=start)
    found = mp.specialization(problem, range(0, 60, 6), mp.Simulation(n=60, samples=2))
    assert np.isnan(found.time_se).all()


@pytest.mark.parametrize("change", [{"batch_size": 3}, {"momentum": 0.5}], ids=str)
def test_the_cavity_experiment_refuses_what_it_does_not_do(change):
    with pytest.raises(ValueError, match=f"`{next(iter(change))}` = .* one example at a time"):
        mp.cavity_experiment(PROBLEM.replace(**change), [1, 2], n=100)


def test_a_response_that_nobody_asked_for_is_told():
    method = mp.Simulation(n=20, samples=2, response=True)
    with pytest.warns(UserWarning, match="`response` = True measures"):
        mp.solve(PROBLEM, [1.0], method)


def test_a_steady_state_whose_forces_died_out_says_so():
    with pytest.raises(mp.NotSettledError, match=r"at `decay` = 0.001 forces are so few"):
        mp.steady_state(ADATRON.replace(decay=0.001), mp.DMFT(rtol=0.1))


def test_activations_of_a_steady_state_are_as_accurate_as_their_source():
    """A hundred populations were solved one after another, to one per mille."""
    seen = mp.activations(ADATRON, "steady", samples=8_000, source=mp.DMFT(rtol=0.1))
    steady = mp.steady_state(ADATRON, mp.DMFT(rtol=0.02))
    force = np.maximum(1 - seen.x * seen.target, 0)
    assert float((force**2).mean()) == pytest.approx(float(steady.F2), rel=0.1)


def test_test_labels_that_were_never_learned_are_told():
    X, y = table()
    with pytest.warns(UserWarning, match="`y_test` has labels that `y` has not, 'No', 'Yes'"):
        mp.Dataset(X, np.where(y > 0, "yes", "no"), X, np.where(y > 0, "Yes", "No"), positive="yes")


@pytest.mark.parametrize("sequence", ["replacement", "reshuffled", "fixed"])
def test_before_the_first_batch_nothing_is_known(sequence):
    """Eg was that of rounding."""
    slow = mp.Problem(
        mp.Teacher(0.3), "adaline", rate=0.5, decay=2, sequence=sequence, batch_share=1 / 3
    )
    found = mp.solve(slow, [0.0, 0.05, 0.1], "exact")
    assert found.Q.values[:2].tolist() == found.R.values[:2].tolist() == [0, 0]
    assert found.Eg.values[:2].tolist() == [0.5, 0.5]
    assert float(found.R[2]) > 0.03


def test_a_fixed_order_that_is_learned_by_heart_is_followed():
    """F2 falls into rounding, where no two lines agree: it took minutes to say so."""
    problem = mp.Problem(mp.Teacher(0.5), "adaline", rate=1.0, sequence="fixed")
    found = mp.solve(problem, [20.0, 25.0], "exact")
    assert 0 < float(found.F2[1]) < float(found.F2[0]) < 1e-8
    assert float(found.R[1]) == pytest.approx(0.398942, abs=1e-6)
