"""The best schedule of each kind: trained as typed, it gets the errors that were predicted."""

import math

import numpy as np
import pytest
from data_sets import agrees, critical, data_set, squared_errors
from sklearn.linear_model import SGDRegressor

import manypass as mp
from manypass import families, schedules
from manypass.cli import main
from manypass.data import units
from manypass.data.advice import text
from manypass.data.scheduled import verdict

PASSES = 2


@pytest.fixture(scope="module")
def advice():
    rate = 0.3 * critical("diabetes")
    problem = mp.Problem(data_set("diabetes"), mp.Adaline(), rate=rate, decay=0.05)
    return mp.advise(problem, passes=PASSES, schedules=True)


@pytest.mark.physics
@pytest.mark.parametrize("progress", [True, False])
def test_advice_shows_how_many_schedules_are_compared(capsys, progress):
    X = np.random.default_rng(0).standard_normal((40, 2))
    problem = mp.Problem(mp.Dataset(X, X[:, 0] + X[:, 1] ** 2 - 1), mp.Adaline(), rate=0.1)
    mp.advise(problem, passes=1, schedules=True, progress=progress)
    assert ("schedules:" in capsys.readouterr().err) == progress


class SGD:
    """PyTorch's optimizer and its schedulers, as its documentation has them."""

    def __init__(self, lr, weight_decay):
        self.first, self.lr, self.decay, self.k = lr, lr, weight_decay, 0

    def scheduled(self, words):
        names = {name: getattr(self, name) for name in dir(self) if name.endswith("LR")}
        self.next = eval(words, names) if words else lambda: self.lr
        if words.startswith("LambdaLR"):
            self.lr = self.next()
        return self

    def LambdaLR(self, function):
        return lambda: self.first * function(self.k)

    def ExponentialLR(self, gamma):
        return lambda: self.lr * gamma

    def MultiStepLR(self, milestones, gamma):
        return lambda: self.lr * gamma if self.k in milestones else self.lr

    def CosineAnnealingLR(self, T_max):
        return lambda: (
            (1 + math.cos(math.pi * self.k / T_max))
            / (1 + math.cos(math.pi * (self.k - 1) / T_max))
            * self.lr
        )

    def step(self, w, gradient):
        w = w - self.lr * (gradient + self.decay * w)
        self.k += 1
        self.lr = self.next()
        return w


@pytest.mark.parametrize("kind", [*families.FAMILIES, "invscaling"])
@pytest.mark.physics
def test_a_loop_in_the_manner_of_pytorch_gets_what_was_predicted(advice, kind):
    data, row = data_set("diabetes"), advice.sel(advice=kind)
    optimizer, _, scheduler = row.pytorch.item().partition("), ")
    sgd = eval(optimizer.rstrip(")") + ")", {"SGD": SGD})
    sgd.scheduled(scheduler.removesuffix(" at every step"))
    rng, w = np.random.default_rng(2), np.zeros((400, data.n))
    for _ in range(PASSES * data.p):
        drawn = rng.integers(data.p, size=len(w))
        off = np.einsum("sn,sn->s", data.X[drawn], w) - data.y[drawn]
        w = sgd.step(w, 2 * off[:, None] * data.X[drawn])
    agrees(squared_errors(data.X_test, data.y_test, w), float(row.F2_test))


@pytest.mark.physics
def test_scikit_learn_gets_what_was_predicted(advice):
    data, row, found = data_set("diabetes"), advice.sel(advice="invscaling"), []
    assert 'learning_rate="invscaling"' in row.scikit_learn.item()
    rng = np.random.default_rng(1)
    for seed in range(200):
        model = eval(row.scikit_learn.item(), {"SGDRegressor": SGDRegressor})
        model.set_params(random_state=seed)
        drawn = rng.integers(data.p, size=PASSES * data.p)
        found.append(model.partial_fit(data.X[drawn], data.y[drawn]).coef_)
    agrees(squared_errors(data.X_test, data.y_test, np.array(found)), float(row.F2_test))


@pytest.mark.physics
def test_epochs_as_people_run_them_get_what_was_measured(advice):
    data, row, found = data_set("diabetes"), advice.sel(advice="invscaling"), []
    for seed in range(100):
        model = eval(row.scikit_learn.item(), {"SGDRegressor": SGDRegressor})
        found.append(model.set_params(random_state=seed).fit(data.X, data.y).coef_)
    errors = squared_errors(data.X_test, data.y_test, np.array(found))
    error = np.hypot(errors.std() / 10, row.F2_test_shuffled_se)
    assert abs(errors.mean() - row.F2_test_shuffled) < 4 * error
    assert error < 0.005 * row.F2_test


@pytest.mark.physics
def test_rows_are_consistent(advice):
    constant = float(advice.F2_test.sel(advice="constant"))
    for name in ("inverse", "inverse root", "exponential", "steps", "invscaling"):
        assert advice.F2_test.sel(advice=name) < 1.001 * constant  # which is one of them, nearly
        assert advice.schedule.sel(advice=name).item()
    rate = advice.schedule.sel(advice="cosine").item()
    problem = mp.problem_of(advice, data=data_set("diabetes"))
    problem = problem.replace(rate=rate, decay=float(advice.decay.sel(advice="cosine")))
    again = mp.solve(problem, [PASSES * problem.data.alpha])
    np.testing.assert_allclose(again.F2_test[-1], advice.F2_test.sel(advice="cosine"), rtol=1e-5)
    said = text(advice)
    errors = (float(advice.F2_test.sel(advice=name)) for name in ("inverse", "all"))
    assert verdict(*errors) in said
    assert verdict(1.0, 1.01) == "it beats averaging"
    assert verdict(1.01, 1.0) == "it does not beat averaging"
    assert verdict(1.0005, 1.0) == "it is as good as averaging, to 0.1%"
    assert "CosineAnnealingLR(T_max=662) at every step" in said
    assert said.count("scikit-learn: ") == 2


def test_words_for_batches():
    said = units.typed(schedules.Steps([(0, 1.0), (4.1, 0.5)]), 0.1, 10, 4, 3, 30, 0)
    assert said["scikit_learn"] == ""
    assert said["pytorch"].endswith("MultiStepLR(milestones=[11], gamma=0.5) at every step")
    said = units.typed(schedules.Warmup(2.0, 0.4), 0.1, 10, 1, 3, 30, 0)
    assert said["pytorch"].startswith("SGD(lr=0.02, weight_decay=0.2), LambdaLR(lambda k: min(1,")


@pytest.mark.physics
def test_the_command_line(tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2))
    rows = np.c_[X, X[:, 0] + rng.standard_normal(40)]
    np.savetxt(tmp_path / "a.csv", rows, delimiter=",", header="a,b,t", comments="")
    flags = ["--data", str(tmp_path / "a.csv"), "--target", "t", "--passes", "1", "--schedules"]
    main(["advise", *flags, "--out", str(tmp_path / "a.nc")])
    out = capsys.readouterr().out
    assert "averaging" in out
    assert "SGDRegressor(" in out
    saved = mp.load(tmp_path / "a.nc")
    assert saved.schedule.sel(advice="cosine").item().startswith("cosine:")
    with pytest.raises(ValueError, match="`schedules` must be True or False"):
        mp.advise(mp.problem_of(saved, data=mp.Dataset(X, rows[:, 2])), schedules="yes")


def test_members_have_their_mean():
    for name, family in (families.FAMILIES | {"invscaling": families.invscaling(0.01)}).items():
        low, high = family.shapes or (1.0, 1.0)
        rate = family.member(0.7, math.sqrt(low * high), 5.0)
        t = (np.arange(200_000) + 0.5) / 200_000 * 5
        np.testing.assert_allclose(schedules.at(rate, t).mean(), 0.7, rtol=5e-3, err_msg=name)


@pytest.mark.physics
def test_the_best_schedule_of_a_teacher():
    teacher = mp.Teacher(alpha=1.2, task="regression", noise=0.5)
    problem = mp.Problem(teacher, mp.Adaline(), rate=1.0, decay=0.1)
    found = mp.best(problem, over="schedule", at=4.0, progress=False)
    least = found.best_Eg
    assert list(found.schedule.values[:2]) == ["constant", "averaged"]
    alone = mp.best(problem, over="rate", at=4.0, progress=False)
    np.testing.assert_allclose(least.sel(schedule="constant"), alone.best_Eg, rtol=1e-4)
    assert least.sel(schedule="averaged") < least.sel(schedule="constant")
    assert found.window.sel(schedule="averaged") > 0
    for name in ("inverse", "cosine"):
        rate = found.best_rate.sel(schedule=name).item()
        again = mp.solve(problem.replace(rate=rate), [4.0]).Eg[-1]
        np.testing.assert_allclose(least.sel(schedule=name), again, rtol=1e-9)
    assert least.sel(schedule="inverse") < least.sel(schedule="constant")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "`at` must be a time for `over` = 'schedule'"),
        ({"at": -1.0}, "`at` must be"),
        ({"at": 1.0, "objective": "foo"}, "`objective` must be among Q, F2"),
        ({"at": 1.0, "window": 2.0}, "`window` is varied"),
    ],
)
def test_bad_input(more, said):
    problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.0, decay=0.1)
    with pytest.raises(ValueError, match=said):
        mp.best(problem, over="schedule", progress=False, **more)
