"""Advice, followed: scikit-learn and a PyTorch-style loop get the errors that were predicted."""

import re

import numpy as np
import pytest
from data_sets import agrees, critical, data_set, sgd, squared_errors
from sklearn.linear_model import SGDRegressor

import manypass as mp
from manypass.cli import main
from manypass.data.advice import text, trained_on


@pytest.fixture(scope="module")
def advice():
    problem = mp.Problem(
        data_set("diabetes"), mp.Adaline(), rate=0.5 * critical("diabetes"), decay=0.05
    )
    return mp.advise(problem, passes=6)


@pytest.mark.physics
@pytest.mark.parametrize("kind", ["all", "rate", "window"])
def test_scikit_learn_gets_what_was_predicted(advice, kind):
    """Rows are drawn with replacement, as the theory has it; SGDRegressor then shuffles those."""
    data, row, rng = data_set("diabetes"), advice.sel(advice=kind), np.random.default_rng(1)
    found = []
    for seed in range(1200 if kind == "rate" else 400):
        model = SGDRegressor(
            penalty="l2",
            alpha=float(row.alpha),
            learning_rate="constant",
            eta0=float(row.eta0),
            fit_intercept=False,
            average=int(row.average) or False,
            random_state=seed,
        )
        drawn = rng.integers(data.p, size=int(row.passes) * data.p)
        model.partial_fit(data.X[drawn], data.y[drawn])
        found.append(model.coef_)
    agrees(squared_errors(data.X_test, data.y_test, np.array(found)), float(row.F2_test))


@pytest.mark.parametrize("kind", ["start", "all"])
def test_epochs_as_people_run_them_get_what_was_measured(advice, kind):
    """SGDRegressor shuffles before each epoch: another sequence, with less noise."""
    data, row, found = data_set("diabetes"), advice.sel(advice=kind), []
    for seed in range(100):
        model = SGDRegressor(
            penalty="l2",
            alpha=float(row.alpha),
            learning_rate="constant",
            eta0=float(row.eta0),
            max_iter=int(row.passes),
            tol=None,
            fit_intercept=False,
            average=int(row.average) or False,
            random_state=seed,
        )
        found.append(model.fit(data.X, data.y).coef_)
    errors = squared_errors(data.X_test, data.y_test, np.array(found))
    error = np.hypot(errors.std() / 10, row.F2_test_shuffled_se)
    assert abs(errors.mean() - row.F2_test_shuffled) < 4 * error
    assert error < (0.005 if kind == "all" else 0.06) * row.F2_test
    if kind == "all":
        assert errors.mean() < 0.9 * float(advice.F2_test.sel(advice="start"))
        said = f"with shuffle=True F2_test of `all` is {float(row.F2_test_shuffled):.5g} +- "
        assert said in text(advice)


def test_batches_of_an_epoch_are_measured_too():
    data, size = data_set("breast cancer"), 16
    problem = mp.Problem(data, mp.Adaline(), rate=0.03 * size, decay=0.05)
    found = mp.advise(problem, passes=2, batch_size=size)
    assert "eta0" not in found
    assert "MSELoss(), DataLoader(batch_size=16, shuffle=True, drop_last=True)" in text(found)
    row, share = found.sel(advice="start"), 1 / round(data.p / size)
    order = problem.replace(sequence="reshuffled", batch_share=share, rate=0.03)
    runs = mp.solve(order, [2 * data.alpha], mp.Simulation(samples=400, seed=5))
    error = float(np.hypot(runs.F2_test_se[0], row.F2_test_shuffled_se))
    assert abs(float(runs.F2_test[0] - row.F2_test_shuffled)) < 4 * error
    assert error < 0.005 * float(runs.F2_test[0])


@pytest.mark.physics
def test_a_loop_in_the_manner_of_pytorch_gets_what_was_predicted():
    """w ← w − lr (gradient of the mean square over the batch + weight_decay w), averaged."""
    data, size = data_set("breast cancer"), 16
    problem = mp.Problem(data, mp.Adaline(), rate=1.6, decay=0.05, batch_size=size)
    found = mp.advise(problem, passes=4)
    rng = np.random.default_rng(2)
    for kind in ("start", "all"):
        row, samples = found.sel(advice=kind), 1000
        lr, decay = float(row.lr), float(row.weight_decay)
        steps, window = (round(float(row[k]) * data.p / size) for k in ("passes", "window"))
        w, total = np.zeros((samples, data.n)), np.zeros((samples, data.n))
        for step in range(steps):
            batch = rng.integers(data.p, size=(samples, size))
            X, y = data.X[batch], data.y[batch]
            off = np.einsum("sbn,sn->sb", X, w) - y
            gradient = 2 * np.einsum("sb,sbn->sn", off, X) / size
            w = w - lr * (gradient + decay * w)
            if step >= steps - window:
                total += w
        final = total / window if window else w
        agrees(squared_errors(data.X_test, data.y_test, final), float(row.F2_test))


def test_advice_is_consistent(advice):
    best = advice.F2_test.sel(advice="all")
    alone = advice.F2_test.sel(advice=["start", "rate", "passes", "window", "decay"])
    assert best <= alone.min() * 1.001
    assert (alone <= alone.sel(advice="start") * 1.0001).all()
    ridge = advice.F2_test.sel(advice=["batch, best decay", "batch"]).values
    assert ridge[0] <= ridge[1]
    row = advice.sel(advice="all")
    assert row.eta0 == row.rate / 10
    assert row.lr == row.rate / 20
    assert row.weight_decay == 2 * row.decay
    assert "SGDRegressor(" in text(advice)
    problem = mp.problem_of(advice, data=data_set("diabetes"))
    J = sgd(problem, [6 * problem.data.alpha], 8000, 5)[0]
    agrees(
        squared_errors(problem.data.X_test, problem.data.y_test, J),
        float(advice.F2_test.sel(advice="start")),
    )
    np.testing.assert_allclose(
        mp.solve(problem, [6 * problem.data.alpha]).Eg[0], advice.Eg.sel(advice="start"), rtol=1e-4
    )


def held_out(objective):
    full = data_set("diabetes")
    data = mp.Dataset(full.X[:80, :4], full.y[:80])
    problem = mp.Problem(data, mp.Adaline(), rate=0.1)
    return mp.advise(problem, passes=1, holdout=0.3, seed=4, objective=objective)


@pytest.mark.physics
def test_a_part_is_held_out_and_for_regression_both_objectives_are_one(tmp_path):
    found, other = held_out("F2_test"), held_out("Eg")
    np.testing.assert_array_equal(found.rate, other.rate)
    assert "smallest Eg, half the mean squared error" in text(other)
    assert found.attrs["holdout"] == 0.3
    assert "held out" in text(found)
    for suffix in ("nc", "csv", "json"):
        mp.save(found, tmp_path / f"a.{suffix}")
    again = mp.load(tmp_path / "a.nc")
    assert (again.F2_test.values == found.F2_test.values).all()
    assert list(again.advice.values) == list(found.advice.values)


def test_all_critical_rates_of_an_advice_are_of_what_is_trained_on(tmp_path, capsys):
    full = data_set("diabetes")
    table = np.column_stack([full.X[:80, :4], full.y[:80]])
    path = tmp_path / "d.csv"
    np.savetxt(path, table, delimiter=",", header="a,b,c,d,y", comments="")
    main(["advise", "--data", str(path), "--target", "y", "--passes", "1", "--seed", "3"])
    said = capsys.readouterr().out
    limit = re.search(r"v_c = (\S+), that of the 75% trained on", said)
    start = re.search(r"half this critical rate, (\S+),", said)
    assert float(start[1]) == pytest.approx(float(limit[1]) / 2, rel=1e-4)
    data = mp.Dataset(table[:, :4], table[:, 4])
    part = mp.Problem(data.held_out(0.25, 3), mp.Adaline(), rate=1.0)
    assert float(limit[1]) == pytest.approx(mp.critical_rate(part), rel=1e-4)
    assert float(limit[1]) != pytest.approx(mp.critical_rate(part.replace(data=data)), rel=1e-4)


@pytest.mark.parametrize("more", [["--rule", "logistic"], ["--mode", "batch"]])
def test_the_command_looks_at_the_problem_before_its_critical_rate(tmp_path, capsys, more):
    path = tmp_path / "x.csv"
    path.write_text("a,y\n1,1\n2,-1\n3,1\n4,-1\n", encoding="utf-8")
    with pytest.raises(SystemExit) as stop:
        main(["advise", "--data", str(path), "--target", "y", *more])
    errors = capsys.readouterr().err
    assert (stop.value.code, errors.count("\n")) == (2, 1)
    assert "must be on-line Adaline to be advised on" in errors


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"passes": 0}, "`passes` must be a whole number from 1"),
        ({"batch_size": 10**6}, "`batch_size` must be a whole number from 1 to 331"),
        ({"holdout": 1.5}, "`holdout` must be a number from 0.01 to 0.9"),
        ({"seed": -1}, "`seed` must be"),
    ],
)
def test_bad_settings(change, words):
    problem = mp.Problem(data_set("diabetes"), mp.Adaline(), rate=0.1)
    with pytest.raises(ValueError, match=words):
        mp.advise(problem, **change)


def small_data(scale=1.0):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    return mp.Dataset(scale * X, np.sign(X[:, 0] + 0.3 * rng.standard_normal(60)))


def test_a_batch_has_no_more_than_what_is_trained_on(tmp_path, capsys):
    data = small_data()
    problem = mp.Problem(data, mp.Adaline(), rate=0.2)
    with pytest.raises(
        ValueError, match="`batch_size` must be a whole number from 1 to 45, got 46"
    ):
        mp.advise(problem, batch_size=46, passes=3)
    np.savetxt(
        tmp_path / "a.csv", np.c_[data.X, data.y], delimiter=",", header="a,b,c,d,t", comments=""
    )
    for rate in ([], ["--rate", "0.2"]):
        flags = ["--data", str(tmp_path / "a.csv"), "--target", "t", "--batch-size", "46"]
        with pytest.raises(SystemExit):
            main(["advise", *flags, *rate])
        assert "--batch-size must be a whole number from 1 to 45, got 46" in capsys.readouterr().err


def test_units_in_which_no_rate_can_be_given_are_named(tmp_path, capsys):
    start = mp.Problem(small_data(), mp.Adaline(), rate=0.2)
    for scale in (1e-6, 1e6):
        with pytest.raises(ValueError, match="in the units of `X` the critical rate is"):
            mp.advise(start.replace(data=small_data(scale)), passes=2)
    large = mp.advise(start.replace(data=small_data(1e3), rate=1e-7), passes=2)  # decays are cut
    assert large.F2_test.sel(advice="all") < large.F2_test.sel(advice="start")
    data = small_data(1e6)
    np.savetxt(
        tmp_path / "a.csv", np.c_[data.X, data.y], delimiter=",", header="a,b,c,d,t", comments=""
    )
    with pytest.raises(SystemExit):
        main(["advise", "--data", str(tmp_path / "a.csv"), "--target", "t"])
    assert "say --standardize" in capsys.readouterr().err


@pytest.mark.physics
def test_no_advice_is_worse_than_the_start():
    """Unscaled features: the search tells decays apart no better than to its own tolerance."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    data = mp.Dataset(X[::2], 2.0 * y[::2] - 1)
    kept = trained_on(mp.Problem(data, mp.Adaline(), rate=1.0), 0.25, 0)
    with pytest.warns(UserWarning, match="good rates are those of the largest numbers"):
        found = mp.advise(kept.replace(rate=mp.critical_rate(kept) / 2), passes=3)
    alone = found.F2_test.sel(advice=["rate", "passes", "window", "decay", "all"])
    assert (alone <= found.F2_test.sel(advice="start")).all()
    assert found.F2_test.sel(advice="all") == found.F2_test[:6].min()


@pytest.mark.filterwarnings("ignore:`rule` .* is one of margins")
def test_bad_problems():
    data = data_set("diabetes")
    with pytest.raises(ValueError, match="`problem` must be on-line Adaline"):
        mp.advise(mp.Problem(data, mp.Logistic(), rate=0.1))
    with pytest.raises(ValueError, match="`data` must be a Dataset"):
        mp.advise(mp.Problem(mp.Teacher(1.0), mp.Adaline(), rate=0.1))


@pytest.mark.physics
def test_what_is_minimised_is_said_and_can_be_chosen():
    """The best squared error is not the best error rate: each objective gets its own."""
    full = data_set("breast cancer")
    data = mp.Dataset(full.X[:, :8], full.y, full.X_test[:, :8], full.y_test)
    problem = mp.Problem(data, mp.Adaline(), rate=0.1, decay=0.05)
    alone = ["start", "rate", "passes", "window", "decay"]
    squares = mp.advise(problem, passes=2)
    rates = mp.advise(problem, passes=2, objective="Eg")
    for found, name, words in (
        (squares, "F2_test", "smallest F2_test, the mean squared error on the test set"),
        (rates, "Eg", "smallest Eg, the error rate on the test set"),
    ):
        assert found.attrs["objective"] == name
        assert words in text(found)
        best = found[name].sel(advice="all")
        assert best <= found[name].sel(advice=alone).min() * 1.001
        assert (found[name].sel(advice=alone) <= found[name].sel(advice="start") * 1.001).all()
        batch = found[name].sel(advice=["batch, best decay", "batch"]).values
        assert batch[0] <= batch[1]
    print(squares.Eg.values, rates.Eg.values, squares.F2_test.values, rates.F2_test.values)
    assert rates.Eg.sel(advice="all") < 0.98 * squares.Eg.sel(advice="all")
    assert rates.F2_test.sel(advice="all") > squares.F2_test.sel(advice="all")
    with pytest.raises(ValueError, match="`objective` must be one of 'F2_test', 'Eg', got 'Et'"):
        mp.advise(problem, objective="Et")


@pytest.mark.parametrize(("rate", "task"), [(1e3, "classification"), (1e6, "regression")])
def test_far_above_the_critical_rate_errors_are_infinite_and_nothing_warns(rate, task):
    """Warnings are errors in these tests."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 20))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    problem = mp.Problem(mp.Dataset(X, y, task=task), mp.Adaline(), rate=rate)
    found = mp.advise(problem, passes=5)
    assert np.isinf(found.F2[0])
    assert np.isfinite(found.F2.sel(advice="all"))


def test_advice_from_a_few_examples_is_told_to_mean_nothing():
    problem = mp.Problem(mp.Dataset(np.eye(2) + 1, [1.0, 2.5]), mp.Adaline(), rate=0.1)
    with pytest.warns(UserWarning, match="1 examples to train on and 1 to test on: with fewer"):
        mp.advise(problem, passes=2)


def test_numbers_of_very_different_size_have_advice_and_are_told():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(3e4, 8e3, 120), rng.standard_normal((120, 3))])
    data = mp.Dataset(X, X[:, 0] / 1e4 + X[:, 1])
    with pytest.warns(UserWarning, match=r"column 0 is .* as large as .* say standardize=True"):
        found = mp.advise(mp.Problem(data, mp.Adaline(), rate=0.3), passes=2)
    assert found.F2_test.sel(advice="all") < np.mean(data.y**2)
    assert np.isinf(found.F2_test.sel(advice="decay"))  # no decay mends a rate that diverges
