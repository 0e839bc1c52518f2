"""The exact theory of epochs and of batches that are a share of the training set."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from references import Table, tables
from scipy.integrate import solve_ivp

import manypass as mp
from manypass.exact import epochs, instants, repeated, settled
from manypass.exact.lines import Smooth
from manypass.exact.reshuffled import Reshuffled
from manypass.spectrum import edges, marchenko_pastur

TABLES = tables(("adaline", "hebbian"), "reshuffled") + tables(("adaline", "hebbian"), "fixed")
PASSES = ("reshuffled", "fixed")
ORDERS = [{"sequence": s, "batch_share": b} for s in PASSES for b in (0.0, 0.25)]
ORDERS += [{"batch_share": 0.25}]
PROBLEM = mp.Problem(
    mp.Teacher(alpha=1.2, noise=0.2), mp.Adaline(), rate=0.8, decay=0.5, temperature=0.02
)
REGRESSION = PROBLEM.replace(task="regression", alpha=0.6, rate=1.4, temperature=0.0)


def curves(problem, times, **how):
    return mp.solve(problem, times, mp.Exact(**how))


# --- against simulation ---------------------------------------------------------------------


@pytest.mark.parametrize("name", TABLES)
def test_tables(name):
    table = Table(name)
    found = mp.solve(table.problem, table.times, mp.Exact(samples=2048), two_time=True)
    seen = []
    for quantity in ("R", "Q", "F2", "Et", "C"):
        limit, error = table.limit(quantity)
        values, own = table.flat(quantity, found[quantity].values), 0.0
        if quantity == "Et":
            own = found.Et_se.values
            assert (own <= 4e-3 * values.max()).all()
        else:
            wrong = (limit - 1.005 * values) / error  # half a per cent off is seen
            assert np.abs(wrong).max() > 4, quantity
        z = (limit - values) / np.hypot(error, own)
        assert np.abs(z).max() < 4, (quantity, z)
        seen.append(z)
    assert np.sqrt(np.mean(np.concatenate(seen) ** 2)) < 1.6


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("rule", [mp.Adaline(), mp.Hebbian()], ids=repr)
def test_small_simulations_of_every_order(rule, order):
    problem = PROBLEM.replace(rule=rule, **order)
    t = 1.2 * np.array([0.25, 0.75, 1.0, 1.5, 2.25])
    found = mp.solve(problem, t, mp.Exact(samples=512), two_time=True)
    seen = mp.solve(problem, t, mp.Simulation(n=300, samples=40, seed=3), two_time=True)
    for name in ("R", "Q", "Et", "C"):
        error = np.hypot(seen[f"{name}_se"], found.get(f"{name}_se", 0.0))
        room = 3 / 300 * np.abs(found[name])  # the correction of order 1/N
        assert (np.abs(seen[name] - found[name]) < 4 * error + room).all(), name


# --- limits ---------------------------------------------------------------------------------


@pytest.mark.parametrize("order", PASSES)
@pytest.mark.parametrize("problem", [PROBLEM, REGRESSION], ids=["classification", "regression"])
def test_the_first_epoch_is_learning_from_fresh_examples(problem, order):
    v, decay, a, b = problem.rate, problem.decay, problem.data.a, problem.data.b

    def change(_, state):
        R, Q = state
        F2 = b - 2 * a * R + Q
        gain = 2 * v * (a * R - Q) + v**2 * F2 + 2 * problem.temperature
        return [v * (a - R) - v * decay * R, gain - 2 * v * decay * Q]

    t = problem.data.alpha * np.array([0.1, 0.37, 0.5, 0.99, 1.0])
    fresh = solve_ivp(change, (0, t[-1]), [0, 0], t_eval=t, rtol=1e-11, atol=1e-13).y
    found = curves(problem.replace(sequence=order), t)
    assert_allclose([found.R, found.Q], fresh, rtol=1e-8)


@pytest.mark.parametrize("order", PASSES)
def test_one_batch_is_gradient_descent(order):
    problem = REGRESSION.replace(rate=0.9, noise=0.5, sequence=order, batch_share=1.0)
    v, decay, alpha, b = problem.rate, problem.decay, problem.data.alpha, problem.data.b
    law, mu, rows = marchenko_pastur(alpha), 0.0, []
    w = np.where(law.h > 0, law.h**2 + (b - 1) * law.h / alpha, 0.0)
    over = np.where(law.h > 0, w / np.where(law.h > 0, law.h, 1), 0.0)
    for _ in range(6):  # every mode on its own, by steps of vα
        rest = (b - 1) * (1 - law.rank / alpha)
        F2 = rest + law.rho @ (over * (1 - law.h * mu) ** 2)
        rows.append([law.rho @ (law.h * mu), law.rho @ (w * mu**2), F2])
        mu = mu + v * alpha * (1 - (decay + law.h) * mu)
    found = curves(problem, alpha * np.arange(6.0))
    assert_allclose(np.array([found.R, found.Q, found.F2]).T, rows, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("order", ["replacement", *PASSES])
def test_small_batches_are_single_examples(order):
    problem, t = REGRESSION.replace(sequence=order), 0.6 * np.array([0.5, 1.0, 2.5, 4.0])
    exact = curves(problem, t)
    few, many = (curves(problem.replace(batch_share=s), t) for s in (1 / 40, 1 / 80))
    for name in ("R", "Q", "F2", "Et"):
        error = [np.abs(x[name] - exact[name]).max() for x in (few, many)]
        assert error[1] < 0.03, name
        assert 1.8 < error[0] / error[1] < 2.2, name  # of first order
        assert_allclose(2 * many[name] - few[name], exact[name], rtol=5e-3)


def test_reshuffling_takes_the_noise_of_small_rates():
    """Ying et al. 2018: with replacement the noise is of order v, in epochs of order v²."""
    shares = []
    for rate in (0.2, 0.1, 0.05):
        problem = REGRESSION.replace(rate=rate, alpha=1.5, noise=0.5)
        still = float(mp.steady_state(problem.replace(mode="batch")).Q)
        noise = float(mp.steady_state(problem).Q) - still
        assert 0.05 < noise / rate < 5
        modes, course = settled.reshuffled(problem.replace(sequence="reshuffled"))
        shares.append(modes.modes.rho @ course.after.n / noise)
    assert shares[0] < 0.5
    assert shares[2] < 0.6 * shares[1] < 0.36 * shares[0]


# --- accuracy -------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.05, 0.6, 8.0])
@pytest.mark.parametrize("order", PASSES)
def test_times_between_points_are_as_good_as_any(alpha, order):
    problem = REGRESSION.replace(alpha=alpha, sequence=order)
    t = alpha * np.linspace(0, 3, 31)
    whole = curves(problem, t)
    for i in (1, 14, 30):
        alone = curves(problem, t[: i + 1])
        for name in ("R", "Q", "F2"):
            assert_allclose(alone[name][-1], whole[name][i], rtol=1e-7, atol=1e-9)


@pytest.mark.physics
def test_points_are_added_until_two_lines_agree():
    problem = REGRESSION.replace(sequence="reshuffled", alpha=20.0, rate=1.0)
    found = epochs.Epochs(problem, np.array([30.0]))
    assert found.map.line.n > epochs.SIZES[1]  # a long epoch needs more
    fine = Reshuffled(problem, Smooth(20.0, 150))
    course = fine.epoch(fine.epoch(fine.start()).after)
    assert_allclose(found.curves["Q"], course.Q @ fine.line.at(np.array([10.0])).T, rtol=1e-7)
    with pytest.raises(ValueError, match=r"`alpha` = 100000 .* points do not resolve an epoch"):
        curves(problem.replace(alpha=1e5), [1.0])


def test_examples_drawn_have_the_mean_square_force():
    problem = PROBLEM.replace(sequence="reshuffled")
    found = epochs.Epochs(problem, 1.2 * np.array([0.6, 1.0, 3.3]))
    look = instants.epochs_drawn(found.recollection, found.epoch, found.phase)
    a, b = problem.data.a, problem.data.b
    for (A, B, variance), F2 in zip(
        look(4096, np.random.default_rng(0)), found.curves["F2"], strict=True
    ):
        force = b * (1 - B) ** 2 - 2 * a * A * (1 - B) + A**2 + variance
        assert abs(force.mean() - F2) < 4 * force.std() / 64


def test_no_curve_waits_for_a_compiler():
    code = "import sys, manypass as mp; p = mp.Problem(mp.Teacher(1.2), mp.Adaline(), rate=1.0, "
    code += "sequence='reshuffled'); mp.solve(p, [2.0], mp.Exact(samples=64), two_time=True); "
    code += "mp.steady_state(p.replace(sequence='fixed', decay=0.1)); print('numba' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"


# --- steady states and where they end -------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("problem", [PROBLEM, REGRESSION], ids=["classification", "regression"])
@pytest.mark.physics
def test_a_steady_state_is_where_curves_end(problem, order):
    problem = problem.replace(rate=0.7, decay=1.0, **order)
    alpha, found = problem.data.alpha, mp.steady_state(problem)
    late = curves(problem, alpha * np.arange(27, 28.01, 0.25))
    for name in ("R", "Q", "F2", "Eg"):
        ends = name if problem.sequence == "replacement" else f"{name}_end"
        assert_allclose(late[name][-1], found[ends], rtol=1e-7)
        assert_allclose(late[name][0], found[ends], rtol=1e-7)
    if order["batch_share"]:
        assert_allclose(late.Q[1:].mean(), found.Q, rtol=1e-7)
    else:
        fine = curves(problem, alpha * (27 + (np.arange(200) + 0.5) / 200))
        for name in ("R", "Q", "F2", "Eg"):
            assert_allclose(fine[name].mean(), found[name], rtol=1e-5)


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("passes", [0.5, 1.0, 2.5])
def test_windows(order, passes):
    problem = PROBLEM.replace(decay=1.0, **order)
    found = mp.steady_state(problem, window=1.2 * passes)
    if order["batch_share"]:
        t = 1.2 * (24 + 0.25 * np.arange(1, 4 * passes + 1))
    else:
        t = 1.2 * (24 + passes * (np.arange(120) + 0.5) / 120)
    late = mp.solve(problem, t, mp.Exact(), two_time=True)
    assert_allclose(found.Q, late.C.mean(), rtol=2e-4)
    assert_allclose(found.R, late.R.mean(), rtol=2e-5)
    assert_allclose(found.F2, mp.steady_state(problem).F2)


def test_without_decay_few_examples_are_learned_by_heart():
    problem = REGRESSION.replace(decay=0.0, alpha=0.5, noise=0.3, rate=1.0)
    for order in PASSES:
        found = mp.steady_state(problem.replace(sequence=order))
        assert_allclose([found.F2, found.R, found.Q], [0, 0.5, 0.5 + 0.09], rtol=1e-6, atol=1e-7)


def test_critical_rates():
    free = PROBLEM.replace(decay=0.0, temperature=0.0)
    for order in PASSES:  # each step turns the weights, and none is longer than before
        assert mp.critical_rate(free.replace(sequence=order)) == pytest.approx(2, rel=1e-6)
        whole = PROBLEM.replace(sequence=order, batch_share=1.0)
        edge = 2 / (1.2 * (0.5 + edges(1.2)[1]))
        assert mp.critical_rate(whole) == pytest.approx(edge, rel=1e-6)
        decaying = whole.replace(rule=mp.Hebbian())  # where a step takes J to −J
        assert mp.critical_rate(decaying) == pytest.approx(2 / (0.5 * 1.2))
        assert mp.critical_rate(decaying.replace(batch_share=0.0)) == np.inf
        with pytest.raises(ValueError, match=r"not below the critical rate v_c = 3\.3333"):
            mp.steady_state(decaying.replace(rate=3.34))
    shares = [mp.critical_rate(PROBLEM.replace(batch_share=s)) for s in (1, 0.1, 0.01)]
    single = mp.critical_rate(PROBLEM.replace(batch_share=0.0))
    assert shares[0] < shares[1] < shares[2] < single < 1.05 * shares[2]


@pytest.mark.parametrize("rate", [1.0, 2.2, 2 / 1.2, 3.2])
def test_hebbian_weights_may_turn_at_every_step(rate):
    """All of the examples at once is the same in any order; so is nearly all that is settled."""
    teacher = mp.Teacher(1.2, noise=0.3)
    one = mp.Problem(teacher, mp.Hebbian(), rate=rate, decay=0.6, batch_share=1.0)
    fixed, shuffled = (one.replace(sequence=order) for order in ("fixed", "reshuffled"))
    for t in ([1.2], [2.4, 12.0, 120.0]):
        assert_allclose(mp.solve(shuffled, t).Et, mp.solve(fixed, t).Et, atol=1e-9)
    if rate < 2 / (0.6 * 1.2):
        found = mp.steady_state(shuffled)
        assert float(found.Et) == pytest.approx(float(mp.steady_state(fixed).Et), abs=1e-9)
        drawn = one.replace(sequence="replacement")
        late = mp.solve(drawn, [1200.0])
        assert float(mp.steady_state(drawn).Et) == pytest.approx(float(late.Et[0]), abs=1e-9)


@pytest.mark.parametrize("order", PASSES)
@pytest.mark.physics
def test_learning_diverges_above_the_critical_rate(order):
    problem = mp.Problem(mp.Teacher(0.5), mp.Adaline(), rate=1.0, decay=0.4, sequence=order)
    limit = mp.critical_rate(problem)
    assert abs(limit / mp.critical_rate(problem.replace(sequence="replacement")) - 1) > 0.02
    for share, grows in ((0.9, False), (1.1, True)):
        there = problem.replace(rate=share * limit)
        seen = mp.solve(there, [5.0, 15.0], mp.Simulation(n=200, samples=20, seed=1))
        assert (float(seen.Q[1] / seen.Q[0]) > 10) == grows
        found = curves(there, [5.0, 15.0])
        assert (float(found.Q[1] / found.Q[0]) > 10) == grows
    with pytest.raises(ValueError, match=r"`rate` = .* not below the critical rate v_c = "):
        mp.steady_state(problem.replace(rate=1.01 * limit))
    if order == "reshuffled":
        assert mp.slow_mode(problem.replace(rate=0.99 * limit)) > 0
        assert mp.slow_mode(problem.replace(rate=1.01 * limit)) < 0


@pytest.mark.physics
def test_a_repeated_order_grows_as_its_product_of_steps():
    problem = mp.Problem(mp.Teacher(0.5), mp.Adaline(), rate=3.0, decay=0.4, sequence="fixed")
    n, rng, radii = 300, np.random.default_rng(0), []
    for _ in range(4):
        M = np.eye(n)
        for x in rng.standard_normal((n // 2, n)):
            M = M * (1 - 3.0 * 0.4 / n) - 3.0 / n * np.outer(x, x @ M)
        radii.append(np.abs(np.linalg.eigvals(M)).max())
    Q = curves(problem, 0.5 * np.array([30, 31])).Q
    assert np.sqrt(Q[1] / Q[0]) == pytest.approx(np.mean(radii), rel=0.1)


@pytest.mark.physics
def test_what_diverges_ends_as_inf():
    for order in ORDERS:
        found = curves(REGRESSION.replace(rate=9.0, **order), 0.6 * np.array([1.0, 2.0, 25.0]))
        assert np.isfinite(found.Q[:2]).all()
        assert found.Q[1] > found.Q[0]
        assert found.Q[2] > 1e100


# --- refusals -------------------------------------------------------------------------------


def test_what_is_refused():
    problem = PROBLEM.replace(sequence="reshuffled")
    with pytest.raises(ValueError, match=r"`eigenvalues` tell nothing about sequence='reshuffled'"):
        mp.solve(problem, [1.0], mp.Exact(eigenvalues=[1.0, 2.0]))
    with pytest.raises(ValueError, match=r"`times` up to 834 epochs"):
        mp.solve(problem.replace(sequence="fixed"), [1000.0], two_time=True)
    with pytest.raises(ValueError, match=r"`samples`: Et at 834 epochs"):
        curves(problem, [1000.0], samples=100)
    with pytest.raises(ValueError, match=r"`window` = 0.1 is shorter than one batch, 0.3"):
        mp.steady_state(problem.replace(batch_share=0.25), window=0.1)
    with pytest.raises(ValueError, match=r"`window` = 2: no averages are known of Hebbian"):
        mp.steady_state(problem.replace(rule=mp.Hebbian()), window=2.0)
    with pytest.raises(ValueError, match=r"`times` up to 3.* batches of `batch_share` = 1e-06"):
        curves(problem.replace(sequence="replacement", batch_share=1e-6), [4.0])
    with pytest.raises(ValueError, match=r"slow_mode\(\) does not serve `sequence` = 'fixed'"):
        mp.slow_mode(problem.replace(sequence="fixed"))


def test_an_accuracy_that_is_not_reached_is_told():
    problem = PROBLEM.replace(sequence="reshuffled")
    with pytest.warns(UserWarning, match=r"`accuracy` = 1e-05 is not reached with `samples` = 64"):
        curves(problem, [3.0], samples=64, accuracy=1e-5)
    assert curves(problem, [3.0], accuracy=2e-3).Et_se[0] <= 2e-3
    assert "Et" not in curves(problem, [3.0])


def test_growth_is_one_at_the_critical_rate():
    for order in ORDERS:
        problem = PROBLEM.replace(**order)
        limit = mp.critical_rate(problem)
        assert settled.log_growth(problem.replace(rate=limit)) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("alpha", "decay", "limit"), [(10, 10.0, 22), (2, 1e4, 20_002), (1000, 0.0, 2), (50, 2.0, 6)]
)
def test_the_critical_rate_of_epochs_that_forget_all(alpha, decay, limit):
    # D = 1 where an epoch leaves nothing, e^{−xα} → 0: then Λ = v(2λ + 2 − v)
    problem = PROBLEM.replace(alpha=alpha, decay=decay, sequence="fixed")
    assert mp.critical_rate(problem) == pytest.approx(limit, rel=1e-8)


def test_a_fixed_order_far_beyond_its_critical_rate():
    problem = PROBLEM.replace(alpha=5, rate=19, decay=0, sequence="fixed")
    with pytest.raises(ValueError, match=r"no steady state: `rate` = 19 .* v_c = 2$"):
        mp.steady_state(problem)
    found = mp.solve(problem.replace(alpha=2, rate=250, decay=10), [10.0], two_time=True)
    assert np.isinf(found.Q)
    assert np.isinf(found.C)


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize(
    ("order", "rate", "times"),
    [
        ({"batch_share": 0.5}, 9.0, [1.2, 1000.0]),
        ({"sequence": "reshuffled", "batch_share": 0.5}, 9.0, [1.2, 1000.0]),
        ({"sequence": "fixed"}, 4.0, [1.0, 1000.0]),  # as many epochs as numbers hold
        ({"rule": "hebbian", "batch_share": 0.5}, 90.0, [1.2, 1000.0]),
    ],
)
def test_what_diverges_ends_as_infinite_without_a_word_of_numpys(order, rate, times, task):
    problem = mp.Problem(mp.Teacher(1.2, task), "adaline", rate=rate, decay=0.5).replace(**order)
    early, late = (mp.solve(problem, times).isel(t=i) for i in (0, 1))
    assert np.isfinite(early.Q)
    assert np.isinf(late.Q)
    assert not np.isnan(late.R)
    assert late.Eg == (0.5 if task == "classification" else np.inf)
    assert "Et" not in late or late.Et == late.Eg


@pytest.mark.parametrize("alpha", [0.5, 1.2])
def test_a_fixed_order_begins_with_nothing(alpha):
    problem = mp.Problem(mp.Teacher(alpha), "adaline", rate=1.0, decay=0.1, sequence="fixed")
    found = mp.solve(problem, [0.0, 1.0]).isel(t=0)
    assert found.R == found.Q == 0
    assert found.Eg == 0.5


@pytest.mark.parametrize(("alpha", "rate", "t"), [(1.2, 5.0, 9.6), (1.2, 8.0, 6), (100.0, 3, 200)])
@pytest.mark.physics
def test_a_fixed_order_above_its_critical_rate_keeps_its_mean(alpha, rate, t):
    """R does not grow with Q: read from the circle of Q it was rounding, up to 1e167.

    256 points did not resolve that, after 10 s; within a long epoch Q was 0.
    """
    problem = PROBLEM.replace(sequence="fixed", alpha=alpha, rate=rate, decay=0.1)
    found = curves(problem, [t])
    a = problem.teacher.moments()[0]
    assert 0.8 * a < found["R"][0] < a
    assert found["Q"][0] > 1e50
    assert found["Et"][0] == pytest.approx(0.5, abs=1e-6)


def test_epochs_above_the_critical_rate_are_refused_before_they_are_followed():
    problem = PROBLEM.replace(sequence="fixed", rate=2.3, decay=0.1)
    told = r"`times` up to 834 epochs: .* above its critical rate v_c = 2\.16505 at most 100"
    with pytest.raises(ValueError, match=told):
        curves(problem, [1000.0])


def test_what_cannot_have_settled_is_not_followed_to_see(monkeypatch):
    """It took 20 s to see that rates of 1e-9 settle in none of the epochs that are followed."""
    monkeypatch.setattr(repeated.Repeated, "_follow", None)
    with pytest.raises(ValueError, match=r"`times` up to 833334 epochs: .* at most 500"):
        curves(PROBLEM.replace(sequence="fixed", rate=1e-9), [1e6])


@pytest.mark.filterwarnings("error")
def test_epochs_that_are_too_long_are_refused_without_words_of_others():
    with pytest.raises(ValueError, match=r"`alpha` = 1e\+06 .* do not resolve an epoch"):
        mp.steady_state(PROBLEM.replace(sequence="reshuffled", alpha=1e6))
