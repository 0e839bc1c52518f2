"""The exact theory of linear rules: numbers, limits and identities."""

import numpy as np
import pytest

import manypass as mp
from manypass.exact.modes import linear_modes
from manypass.spectrum import marchenko_pastur

FIG2 = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.9, decay=0.8)
GRID = [
    mp.Problem(mp.Teacher(alpha=alpha), mp.Adaline(), rate=0.5, decay=decay)
    for alpha in (0.05, 0.5, 0.999, 1.0, 1.2, 7.0)
    for decay in (0.0, 0.01, 0.8, 20.0)
]


def test_known_values_of_figure_2():
    curve = mp.solve(FIG2, [0.25, 0.5, 1, 2, 4])
    np.testing.assert_allclose(
        curve.R, [0.221134, 0.295783, 0.338436, 0.350830, 0.352163], atol=5e-7
    )
    np.testing.assert_allclose(
        curve.Q, [0.462277, 0.551358, 0.5476885, 0.527384, 0.524709], atol=5e-7
    )
    np.testing.assert_allclose(
        curve.F2, [1.005730, 0.895006, 0.761560, 0.702242, 0.695720], atol=5e-7
    )
    steady = mp.steady_state(FIG2)
    np.testing.assert_allclose(
        [steady.R, steady.Q, steady.F2, steady.Eg],
        [0.352190, 0.524675, 0.695618, 0.338376],
        atol=5e-7,
    )
    assert float(mp.steady_state(FIG2.replace(mode="batch")).Eg) == pytest.approx(
        0.239680, abs=5e-7
    )
    assert mp.critical_rate(FIG2) == pytest.approx(3.091780, abs=5e-7)


@pytest.mark.parametrize("problem", GRID, ids=lambda p: f"a{p.data.alpha}-l{p.decay}")
def test_closed_critical_rate_equals_the_spectral_one(problem):
    law = marchenko_pastur(problem.data.alpha)
    relaxing = law.h > 0
    h, rho = law.h[relaxing], law.rho[relaxing]
    spectral = 2 / np.sum(rho * h**2 / (h + problem.decay))
    assert mp.critical_rate(problem) == pytest.approx(spectral, rel=1e-10)


@pytest.mark.parametrize("problem", GRID, ids=lambda p: f"a{p.data.alpha}-l{p.decay}")
def test_slow_mode_crosses_zero_at_the_critical_rate(problem):
    limit = mp.critical_rate(problem)
    scale = 2 * limit * (1 + problem.decay)
    assert abs(mp.slow_mode(problem.replace(rate=limit))) < 1e-10 * scale
    gapless = problem.data.alpha == 1 and problem.decay == 0  # there the band itself begins at 0
    assert mp.slow_mode(problem.replace(rate=limit * 0.999)) > 0 or gapless
    assert mp.slow_mode(problem.replace(rate=limit * 1.001)) < 0


@pytest.mark.parametrize("alpha", [0.3, 0.8, 1.5, 6.0])
@pytest.mark.parametrize("rate", [0.2, 1.0, 1.9, 2.6, 4.0])
def test_slow_mode_is_the_lowest_eigenvalue_of_the_noise(alpha, rate):
    problem = mp.Problem(mp.Teacher(alpha=alpha), mp.Adaline(), rate=rate, decay=0.4)
    modes = linear_modes(problem).driven
    root = np.sqrt(modes.rho)
    lowest = np.linalg.eigvalsh(np.diag(2 * modes.x) - np.outer(root * modes.k, root * modes.h))[0]
    # without an isolated mode the lowest node lies a little above the edge of the band
    assert mp.slow_mode(problem) == pytest.approx(lowest, rel=1e-5)


def test_large_training_set_gives_the_critical_rate_of_fresh_examples():
    for decay in (0.0, 0.3, 2.0):
        problem = mp.Problem(mp.Teacher(alpha=1e6), mp.Adaline(), rate=1.0, decay=decay)
        assert mp.critical_rate(problem) == pytest.approx(2 * (1 + decay), rel=1e-5)


def test_large_training_set_gives_the_learning_curve_of_fresh_examples():
    """α → ∞: R' = v(a − (1+λ)R), Q' = 2v(aR − (1+λ)Q) + v²F2, F2 = b − 2aR + Q."""
    from scipy.integrate import solve_ivp

    problem = mp.Problem(mp.Teacher(alpha=1e6, noise=0.3), mp.Adaline(), rate=0.8, decay=0.2)
    a, b, v, rate = problem.data.a, problem.data.b, 0.8, 1.2

    def slope(t, y):
        R, Q = y
        return v * (a - rate * R), 2 * v * (a * R - rate * Q) + v**2 * (b - 2 * a * R + Q)

    times = np.linspace(0, 5, 11)
    fresh = solve_ivp(slope, (0, 5), (0, 0), t_eval=times, rtol=1e-10, atol=1e-12).y
    curve = mp.solve(problem, times)
    np.testing.assert_allclose(curve.R, fresh[0], rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(curve.Q, fresh[1], rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("rule", [mp.Adaline(), mp.Hebbian()])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_small_rate_at_fixed_vt_is_batch_learning(rule, task):
    batch = mp.Problem(
        mp.Teacher(alpha=0.7, task=task, noise=0.2), rule, rate=1.0, decay=0.3, mode="batch"
    )
    vt = np.array([0.3, 1.0, 4.0])
    expected = mp.solve(batch, vt, two_time=True)
    gaps = []
    for rate in (1e-3, 1e-4):
        online = mp.solve(batch.replace(rate=rate, mode="online"), vt / rate, two_time=True)
        gaps.append(
            [
                np.abs(online[n].values - expected[n].values).max()
                for n in ("R", "Q", "F2", "C", "G")
            ]
        )
    assert np.max(gaps[1]) < 2e-4
    assert (gaps[1] <= np.maximum(0.11 * np.array(gaps[0]), 1e-12)).all()  # linear in v


def test_batch_learning_is_gradient_flow_on_a_given_matrix():
    """Targets that are all teacher: dJ/dt = v(HB − HJ − λJ)."""
    rng = np.random.default_rng(0)
    H = np.cov(rng.standard_normal((30, 20)), rowvar=False, bias=True)
    h = np.linalg.eigvalsh(H)
    problem = mp.Problem(
        mp.Teacher(alpha=1.5, task="regression"), mp.Adaline(), rate=0.7, decay=0.1, mode="batch"
    )
    found = mp.solve(problem, [0.5, 3.0], mp.Exact(eigenvalues=h))
    for t, R, Q in zip(found.t, found.R, found.Q, strict=True):
        J = (
            h / (h + 0.1) * (1 - np.exp(-0.7 * (h + 0.1) * float(t)))
        )  # per unit of B in an eigenvector
        assert float(R) == pytest.approx(J.mean(), rel=1e-12)
        assert float(Q) == pytest.approx((J**2).mean(), rel=1e-12)


def test_long_times_reach_the_steady_state():
    for problem in (
        FIG2,
        FIG2.replace(rule=mp.Hebbian()),
        FIG2.replace(alpha=0.4, temperature=0.2),
    ):
        late, steady = mp.solve(problem, [1e4]), mp.steady_state(problem)
        for name in ("R", "Q", "F2", "Eg"):
            assert float(late[name][0]) == pytest.approx(float(steady[name]), rel=1e-12)


@pytest.mark.parametrize(
    "problem", [FIG2, FIG2.replace(alpha=0.4, temperature=0.2, task="regression")]
)
def test_window_average_is_the_double_integral_of_C(problem):
    window = 3.0
    u, weight = np.polynomial.legendre.leggauss(40)
    start = 60.0
    times = start + window * (1 + u) / 2
    C = mp.solve(problem, times, two_time=True).C.values
    # Split at the cusp: twice the integral over s < t, each row with its own nodes.
    total = 0.0
    for t, w in zip(times, weight / 2, strict=True):
        s = start + (t - start) * (1 + u) / 2
        row = mp.solve(problem, [*s, t], two_time=True).C.values[-1, :-1]
        total += 2 * w * (row @ weight) / 2 * (t - start) / window
    assert float(mp.steady_state(problem, window=window).Q) == pytest.approx(total, rel=1e-9)
    assert C.shape == (40, 40)


def test_long_windows_give_batch_learning_at_any_rate():
    batch = float(mp.steady_state(FIG2.replace(mode="batch")).Eg)
    for rate in (0.5, 1.9, 3.0):
        errors = [
            float(mp.steady_state(FIG2.replace(rate=rate), window=w).Eg) for w in (0, 2, 20, 1e9)
        ]
        assert errors == sorted(errors, reverse=True)
        assert errors[-1] == pytest.approx(batch, rel=1e-6)


def test_response_and_correlation_have_their_symmetries():
    found = mp.solve(FIG2.replace(temperature=0.1), np.linspace(0, 5, 37), two_time=True)
    C, G = found.C.values, found.G.values
    np.testing.assert_allclose(C, C.T)
    np.testing.assert_allclose(np.diag(C), found.Q, atol=1e-14)
    np.testing.assert_allclose(np.diag(G), 1, rtol=1e-12)
    assert (np.triu(G, 1) == 0).all()
    assert np.linalg.eigvalsh(C - np.outer(found.R, found.R)).min() > -1e-12


def test_correlation_obeys_its_equation_of_motion():
    """For t > s the noise of C relaxes as G does: ∂C/∂s at fixed t only feels the mean and n(s)."""
    problem = FIG2.replace(rule=mp.Hebbian())
    t, d = 2.0, 1e-4
    found = mp.solve(problem, [1.0, t - d, t + d], two_time=True)
    slope = (found.C.values[2, 0] - found.C.values[1, 0]) / (2 * d)
    middle = mp.solve(problem, [1.0, t], two_time=True)
    # dC/dt = −vλC + v⟨x(s)F(t)⟩ and ⟨x(s)ỹ⟩ = aR(s) + (1/α) v b e(s) for Hebbian learning
    a, b, v, x = problem.data.a, problem.data.b, 1.9, 1.9 * 0.8
    pull = a * float(middle.R[0]) + v * b / 1.2 * (1 - np.exp(-x)) / x
    assert slope == pytest.approx(-x * middle.C.values[1, 0] + v * pull, rel=1e-7)


def test_force_autocorrelation_meets_F2_on_the_diagonal_and_forgets():
    times = np.array([0.3, 1.0, 2.5, 60.0, 300.0])
    for problem in (
        FIG2,
        FIG2.replace(temperature=0.3, alpha=0.5),
        FIG2.replace(rule=mp.Hebbian()),
    ):
        FF = mp.force_autocorrelation(problem, times)
        np.testing.assert_allclose(np.diag(FF), mp.solve(problem, times).F2, rtol=1e-12)
        np.testing.assert_allclose(FF, FF.T)
    still = mp.steady_state(FIG2.replace(mode="batch")).F2
    FF = mp.force_autocorrelation(FIG2, times)
    assert float(FF[4, 3]) == pytest.approx(float(still), rel=1e-9)  # only what all times share


@pytest.mark.parametrize("alpha", [0.4, 1.0, 3.0])
def test_example_response_inverts_the_weight_response(alpha):
    """D̃(z) = 1/(1 + (v/α) G̃(z)), each transform by quadrature in time."""
    problem = mp.Problem(mp.Teacher(alpha=alpha), mp.Adaline(), rate=0.9, decay=0.3)
    u, weight = np.polynomial.legendre.leggauss(400)
    lags, weight = 30 * (1 + u), 30 * weight
    D = mp.example_response(problem, lags).values
    G = mp.solve(problem, [0.0, *lags], two_time=True).G.values[1:, 0]
    for z in (0.5, 1.0, 3.0):
        laplace = weight * np.exp(-z * lags)
        assert 1 + laplace @ D == pytest.approx(1 / (1 + 0.9 / alpha * (laplace @ G)), rel=1e-9)
    assert (mp.example_response(problem.replace(rule=mp.Hebbian()), lags) == 0).all()


def test_mean_force_agrees_for_small_rates_and_diverges_at_its_own_limit():
    for rate in (0.01, 0.02):
        problem = FIG2.replace(alpha=0.5, rate=rate)
        exact, mean = mp.steady_state(problem), mp.steady_state(problem, mp.MeanForce())
        assert float(mean.R) == pytest.approx(float(exact.R), rel=1e-12)
        assert abs(float(mean.Q - exact.Q)) < 0.5 * rate
    limit = 2 * (1 + 0.8)
    assert mp.critical_rate(FIG2) < limit
    near = mp.steady_state(FIG2.replace(rate=limit * (1 - 1e-6)), mp.MeanForce())
    assert near.Q > 1e4
    with pytest.raises(ValueError, match=r"2\(1 \+ decay\) = 3.6"):
        mp.steady_state(FIG2.replace(rate=limit), mp.MeanForce())


def test_mean_force_is_exact_when_all_modes_are_alike():
    """α → ∞: h = 1 for every mode, which is what the approximation assumes."""
    problem = FIG2.replace(alpha=1e6)
    exact, mean = mp.steady_state(problem), mp.steady_state(problem, mp.MeanForce())
    assert float(mean.Q) == pytest.approx(float(exact.Q), rel=1e-5)
    assert float(mean.F2) == pytest.approx(float(exact.F2), rel=1e-5)


def test_eigenvalues_of_a_large_matrix_give_the_same_curves():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((1200, 1000))
    h = np.linalg.eigvalsh(X.T @ X / 1200)
    given = mp.solve(FIG2, [0.5, 1, 4], mp.Exact(eigenvalues=h))
    law = mp.solve(FIG2, [0.5, 1, 4])
    for name in ("R", "Q", "F2"):
        np.testing.assert_allclose(given[name], law[name], rtol=0.01)
    assert mp.critical_rate(FIG2, eigenvalues=h) == pytest.approx(mp.critical_rate(FIG2), rel=0.01)
    fast = FIG2.replace(rate=2.8)
    assert mp.slow_mode(fast, eigenvalues=h) == pytest.approx(mp.slow_mode(fast), rel=0.05)


@pytest.mark.parametrize("scale", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_eigenvalues_of_scaled_inputs(scale, task):
    """Ridge regression on one large sample, by linear algebra, is the batch steady state."""
    rng = np.random.default_rng(4)
    n, p, noise, decay = 600, 900, 0.3, 0.4
    X = np.sqrt(scale) * rng.standard_normal((p, n))
    B = rng.standard_normal(n)
    B /= np.linalg.norm(B)
    target = X @ B + noise * rng.standard_normal(p)
    target = np.sign(target) if task == "classification" else target
    H = X.T @ X / p
    J = np.linalg.solve(H + decay * np.eye(n), X.T @ target / p)
    problem = mp.Problem(
        mp.Teacher(alpha=p / n, task=task, noise=noise),
        mp.Adaline(),
        rate=0.1,
        decay=decay,
        mode="batch",
    )
    steady = mp.steady_state(problem, mp.Exact(eigenvalues=np.linalg.eigvalsh(H)))
    assert float(steady.R) == pytest.approx(B @ J, rel=0.06)
    assert float(steady.Q) == pytest.approx(J @ J, rel=0.08)
    assert float(steady.F2) == pytest.approx(np.mean((target - X @ J) ** 2), rel=0.12)


def test_eigenvalues_must_fit_the_problem():
    with pytest.raises(
        ValueError, match=r"`eigenvalues`: 1 of them are positive, but `alpha` = 0.5"
    ):
        mp.solve(FIG2.replace(alpha=0.5), [1], mp.Exact(eigenvalues=[0.5, 1.5]))
    with pytest.raises(ValueError, match="of no use to Hebbian"):
        mp.solve(FIG2.replace(rule=mp.Hebbian()), [1], mp.Exact(eigenvalues=[1.0]))
    one = FIG2.replace(alpha=2.0, rate=2.0, decay=0.1)
    assert mp.slow_mode(one, eigenvalues=[0, 0, 1]) == pytest.approx(2 * 2 * 1.1 - 4 / 3, rel=1e-9)


def test_the_steady_state_just_below_the_critical_rate_is_large_and_positive():
    for alpha in np.linspace(0.3, 3, 20):
        problem = FIG2.replace(alpha=float(alpha))
        below = np.nextafter(mp.critical_rate(problem), 0)
        steady = mp.steady_state(problem.replace(rate=float(below)))
        assert float(steady.Q) > 1e12
        assert float(steady.Eg) == pytest.approx(0.5, abs=1e-5)


def test_steady_state_above_the_critical_rate_is_an_error_that_states_it():
    with pytest.raises(ValueError, match=r"v_c = 3\.09178"):
        mp.steady_state(FIG2.replace(rate=3.1))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rule": mp.Hebbian(), "decay": 0.0}, "Hebbian weights grow"),
        ({"alpha": 0.5, "decay": 0.0, "temperature": 0.1}, "heats 0.5 of all directions"),
        ({"alpha": 1.0, "decay": 0.0}, "relaxation rates reach zero"),
    ],
)
def test_other_missing_steady_states_are_explained(changes, words):
    with pytest.raises(ValueError, match=words):
        mp.steady_state(FIG2.replace(**changes).replace(rate=0.5))


def test_noiseless_regression_has_a_steady_state_even_at_alpha_1():
    problem = mp.Problem(mp.Teacher(alpha=1.0, task="regression"), mp.Adaline(), rate=0.5)
    steady = mp.steady_state(problem)
    assert float(steady.R) == pytest.approx(1, rel=1e-9)
    assert float(steady.F2) == pytest.approx(0, abs=1e-9)
