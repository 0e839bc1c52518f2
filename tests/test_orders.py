"""The order of the examples: a field of the problem, and who serves which."""

import inspect
import json
import warnings

import numpy as np
import pytest
from every_rule import RULES
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import manypass as mp
from manypass import orders
from manypass.cli import main
from manypass.problem import SEQUENCES
from manypass.simulation import kernels, settling
from manypass.simulation.descent import Descent
from manypass.simulation.examples import Examples
from manypass.simulation.network import Learner

PROBLEM = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=0.9, decay=0.3)
GIVEN = mp.Dataset(np.eye(4) + 0.1, [1.0, -1.0, 1.0, -1.0], task="classification")
ORDERS = [{"sequence": "reshuffled"}, {"sequence": "fixed"}, {"batch_share": 0.5}]
ORDERS += [{"sequence": "reshuffled", "batch_share": 0.25}]


def made(kind, problem, n=20, dtype=float, seed=0):
    examples = Examples.draw(problem.data, n, np.random.default_rng(seed), np.dtype(dtype))
    force = kernels.compiled_force(problem.rule)
    draws, noise = np.random.default_rng(seed + 1), np.random.default_rng(seed + 2)
    return kind(problem, examples, force, draws, noise)


# --- the field ------------------------------------------------------------------------------


@given(
    sequence=st.sampled_from(SEQUENCES),
    share=st.one_of(st.sampled_from([0.0, 1.0, 0.5, 1 / 3, 1 / 7, 1e-6]), st.floats(0, 1)),
    mode=st.sampled_from(["online", "batch"]),
)
def test_any_order_is_taken_or_refused_by_name(sequence, share, mode):
    try:
        problem = PROBLEM.replace(sequence=sequence, batch_share=share, mode=mode)
    except ValueError as error:
        assert "`batch_share`" in str(error) or "`sequence`" in str(error)
    else:
        assert mp.Problem.from_dict(json.loads(json.dumps(problem.to_dict()))) == problem
        if problem.batch_share and sequence != "replacement":
            assert problem.batch_share == 1 / round(1 / problem.batch_share)
        assert mode == "online" or (sequence, share) == ("replacement", 0.0)


def test_orders_that_contradict_themselves():
    with pytest.raises(ValueError, match=r"`mode` = 'batch' .* excludes `sequence` = 'fixed'"):
        PROBLEM.replace(mode="batch", sequence="fixed")
    with pytest.raises(ValueError, match=r"`mode` = 'batch' .* excludes `batch_share` = 0.5"):
        PROBLEM.replace(mode="batch", batch_share=0.5)
    with pytest.raises(ValueError, match=r"`batch_share` = 0.4 .* 'reshuffled' needs: take 1/2"):
        PROBLEM.replace(sequence="reshuffled", batch_share=0.4)
    assert PROBLEM.replace(batch_share=0.4).batch_share == 0.4  # with replacement
    assert PROBLEM.replace(sequence="fixed", batch_share=0.3333333333).batch_share == 1 / 3


def test_what_was_written_before_there_were_orders_opens(tmp_path):
    entry = PROBLEM.to_dict()
    del entry["sequence"], entry["batch_share"]
    assert mp.Problem.from_dict(entry) == PROBLEM
    found = mp.solve(PROBLEM, [1.0])
    found.attrs["problem"] = json.dumps(entry)
    for suffix in ("nc", "csv", "json"):
        mp.save(found, tmp_path / f"x.{suffix}")
        assert mp.problem_of(mp.load(tmp_path / f"x.{suffix}")) == PROBLEM


@pytest.mark.parametrize("order", ORDERS)
def test_files_keep_the_order(order, tmp_path):
    problem = PROBLEM.replace(**order)
    found = mp.solve(problem, [1.2], mp.Simulation(n=10, samples=2))
    mp.save(found, tmp_path / "x.nc")
    assert mp.problem_of(mp.load(tmp_path / "x.nc")) == problem


def test_orders_are_swept():
    grid = mp.Grid(PROBLEM, sequence=list(SEQUENCES), batch_share=[0.0, 0.5, 0.3])
    found = mp.sweep(
        grid, mp.Simulation(n=20, samples=3), times=[1.2, 2.4], workers=1, progress=False
    )
    assert list(found.sequence.values) == list(SEQUENCES)
    refused = found.error.values != ""
    assert refused.tolist() == [[False] * 3] + [[False, False, True]] * 2
    assert "`batch_share` = 0.3" in found.error.values[1, 2]
    assert np.isfinite(found.Q.values[~refused]).all()
    each = mp.solve(grid.problem.replace(sequence="fixed"), [1.2, 2.4], mp.Simulation(20, 3))
    assert_allclose(found.Q.sel(sequence="fixed", batch_share=0.0), each.Q)


def test_orders_in_plans(tmp_path):
    from manypass.sweeps.plan import read_plan

    text = 'rule = "adaline"\nrate = 0.9\nbatch_share = 0.5\n'
    text += 'method = { name = "simulation", n = 20, samples = 2 }\n'
    text += 'times = [1.2]\ndata = { alpha = 1.2 }\n[sweep]\nsequence = ["fixed", "reshuffled"]\n'
    (tmp_path / "plan.toml").write_text(text)
    plan = read_plan(tmp_path / "plan.toml")
    assert plan.grid.problem.batch_share == 0.5
    points = list(plan.grid.points(plan.method, plan.times))
    assert [point.problem.sequence for point in points] == ["fixed", "reshuffled"]


@pytest.mark.parametrize("verb", ["solve", "steady", "critical-rate"])
def test_flags_of_the_order(verb, capsys, tmp_path):
    text = 'rule = "adaline"\nrate = 0.9\nsequence = "fixed"\ndata = { alpha = 1.2 }\n'
    (tmp_path / "p.toml").write_text(text)
    given = [verb, "--alpha", "1.2", "--rate", "0.9", "--sequence", "reshuffled"]
    if verb == "critical-rate":
        main(given)
        assert capsys.readouterr().out.startswith("v_c = 2.000000\n")
        main([*given[:-1], "fixed", "--decay", "0.2"])  # no slow mode is known
        assert capsys.readouterr().out == "v_c = 2.350505\nv/v_c = 0.382897\n"
        return
    out = str(tmp_path / "x.nc")
    few = ["--method", "simulation", "--n", "20", "--samples", "2", "--out", out]
    when = ["--times", "1.2"] if verb == "solve" else ["--settle", "600"]
    main([*given, "--batch-share", "0.5", *few, *when])
    problem = mp.problem_of(mp.load(out))
    assert (problem.sequence, problem.batch_share) == ("reshuffled", 0.5)
    main([verb, str(tmp_path / "p.toml"), *few, *when])
    assert mp.problem_of(mp.load(out)).sequence == "fixed"
    with pytest.raises(SystemExit) as end:
        main(["steady", *given[1:], "--method", "mean-force"])
    said = capsys.readouterr().err.splitlines()[-1]
    assert (end.value.code, "does not serve --sequence reshuffled" in said) == (2, True)
    assert said.endswith("use --method exact or --method simulation --n 500 --samples 100")


# --- who serves what ------------------------------------------------------------------------

ASKED = {
    "Exact": lambda p: mp.solve(p, [1.2], mp.Exact()),
    "Exact.steady_state": lambda p: mp.steady_state(p.replace(rate=0.5), mp.Exact()),
    "MeanForce.steady_state": lambda p: mp.steady_state(p, mp.MeanForce()),
    "DMFT": lambda p: mp.solve(p, [1.2], mp.DMFT(samples=16_000)),
    "DMFT.steady_state": lambda p: mp.steady_state(p, mp.DMFT(samples=16_000)),
    "DMFT.critical_rate": lambda p: mp.DMFT().critical_rate(p),
    "Simulation": lambda p: mp.solve(p, [1.2], mp.Simulation(n=20, samples=2)),
    "Simulation.steady_state": lambda p: mp.steady_state(p, mp.Simulation(n=20, samples=2)),
    "critical_rate": mp.critical_rate,
    "slow_mode": mp.slow_mode,
    "force_autocorrelation": lambda p: mp.force_autocorrelation(p, [1.2]),
    "example_response": lambda p: mp.example_response(p, [1.2]),
    "activations": lambda p: mp.activations(p, 1.2, samples=10),
    "activation_density": lambda p: mp.activation_density(p, 1.2, [0.0], y=1.0, target=1.0),
    "cavity_experiment": lambda p: mp.cavity_experiment(p, [1.2], n=20, stimuli=1),
}
ON_DATA = {
    "Exact": ASKED["Exact"],
    "Exact.steady_state": ASKED["Exact.steady_state"],
    "Simulation": lambda p: mp.solve(p, [1.2], mp.Simulation(samples=2)),
    "Simulation.steady_state": lambda p: mp.steady_state(p, mp.Simulation(samples=2)),
    "critical_rate": mp.critical_rate,
    "advise": lambda p: mp.advise(p, passes=2),
}
# Functions that take a problem and ask no theory of their own.
THROUGH_OTHERS = {"solve", "steady_state", "best", "Grid", "effective_data", "specialization"}


def test_every_public_function_of_a_problem_is_asked():
    functions = {
        name
        for name in mp.__all__
        if callable(getattr(mp, name))
        and not isinstance(getattr(mp, name), type(mp))
        and "problem" in inspect.signature(getattr(mp, name)).parameters
    }
    assert functions <= {*ASKED, *ON_DATA} | THROUGH_OTHERS


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize(
    ("who", "data"),
    [(who, PROBLEM.data) for who in ASKED] + [(who, GIVEN) for who in ON_DATA],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
@pytest.mark.filterwarnings("ignore:`settle`")
def test_an_order_is_served_or_refused_by_name(who, data, order):
    problem = PROBLEM.replace(data=data, **order)
    ask = (ASKED if data is PROBLEM.data else ON_DATA)[who]
    if orders.refusal(problem, who) is None:
        ask(problem)
        return
    name, value = ("batch_share", 0) if "batch_share" in order else ("sequence", "")
    value = value or order[name]
    shown = f"{value:g}" if name == "batch_share" else repr(value)
    with pytest.raises(ValueError, match=rf"does not serve `{name}` = {shown}") as refused:
        ask(problem)
    settings = "samples=100" if data is GIVEN else "n=500, samples=100"
    assert str(refused.value).endswith(f" Simulation({settings})")


@pytest.mark.parametrize("rule", [mp.Adaline(), mp.Logistic()], ids=repr)
@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_auto_takes_who_serves_the_order(rule, order, monkeypatch):
    problem = PROBLEM.replace(rule=rule, **order)
    from manypass.verbs import automatic

    if isinstance(rule, mp.Adaline):
        assert automatic(problem) == automatic(problem, "steady_state") == "exact"
        return
    assert (automatic(problem), automatic(problem, "steady_state")) == ("dmft", "simulation")
    assert automatic(PROBLEM) == "exact"


def test_a_refusal_names_what_is_served_instead(monkeypatch):
    shares = orders.Served(("replacement", "reshuffled"), ("replacement",))
    monkeypatch.setitem(orders.SERVED, "DMFT", shares)
    problem = PROBLEM.replace(sequence="fixed", batch_share=0.5, rule=mp.Logistic())
    said = orders.refusal(problem, "DMFT")
    assert "`sequence` = 'fixed' with `batch_share` = 0.5, only 'replacement':" in said
    said = orders.refusal(problem.replace(batch_share=0.0), "DMFT")
    assert "`sequence` = 'fixed', only 'replacement' and 'reshuffled':" in said
    said = orders.refusal(PROBLEM.replace(sequence="reshuffled"), "example_response")
    assert said.endswith("from method Exact() or DMFT() or Simulation(n=500, samples=100)")


def test_who_has_the_critical_rate_of_an_order():
    epochs = PROBLEM.replace(rule=mp.Adatron(), sequence="reshuffled")
    with pytest.raises(
        ValueError,
        match=r"and no other method does: learning curves come from method DMFT\(\) or Sim",
    ):
        mp.critical_rate(epochs)
    assert mp.critical_rate(epochs.replace(rule=mp.Logistic())) == np.inf
    for rule in (mp.Hebbian(), mp.Logistic()):  # the decay alone, in steps of 0.5 α
        batches = epochs.replace(rule=rule, batch_share=0.5, decay=0.3)
        limit = mp.critical_rate(batches)
        assert limit == pytest.approx(2 / (0.3 * 0.5 * 1.2))
        fast = [batches.replace(rate=factor * limit) for factor in (0.97, 1.03)]
        Q = [mp.solve(p, [60, 120], mp.Simulation(n=20, samples=2)).Q.values for p in fast]
        assert [bool(late > 2 * early) for early, late in Q] == [False, True]


# --- simulation -----------------------------------------------------------------------------


def test_simulation_says_where_its_sequence_has_moved():
    with pytest.warns(FutureWarning, match=r"moved to Problem\(sequence='fixed'\)"):
        method = mp.Simulation(n=20, samples=3, sequence="fixed")
    found = mp.solve(PROBLEM, [1.2, 3.0], method)
    assert mp.problem_of(found).sequence == "fixed"
    fixed = PROBLEM.replace(sequence="fixed")
    assert found.identical(mp.solve(fixed, [1.2, 3.0], mp.Simulation(n=20, samples=3)))
    assert mp.solve(fixed, [1.2, 3.0], method).identical(found)
    other = PROBLEM.replace(sequence="reshuffled")
    with pytest.raises(ValueError, match="`sequence` = 'fixed' of Simulation contradicts"):
        mp.solve(other, [1.2], method)
    with pytest.raises(ValueError, match="excludes `sequence` = 'fixed'"):
        mp.solve(PROBLEM.replace(mode="batch"), [1.2], method)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mp.Simulation(n=20)


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_the_whole_set_at_once_is_gradient_descent(rule):
    problem = PROBLEM.replace(rule=rule, rate=0.3, batch_share=1.0, sequence="reshuffled")
    net = made(Descent, problem)
    X, aims, J = net.examples.X, net.examples.targets, np.zeros(20)
    for k in range(1, 13):
        net.advance(1.2 * k)
        F = np.array([rule.force(x, y) for x, y in zip(X @ J, aims, strict=True)])
        # The step in the mean loss is vα: (v/N) Σ F ξ = vα (1/p) Σ F ξ.
        J = J + 0.3 * 1.2 * (X.T @ F / 24 - 0.3 * J)
        assert_allclose(net.J, J, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize("dtype", [float, np.float32])
def test_every_batch_is_the_definition(sequence, dtype):
    problem = PROBLEM.replace(sequence=sequence, batch_share=1 / 5, temperature=0.2)
    net = made(Descent, problem, dtype=dtype)  # 24 examples, in batches of 4.8
    batches, kicks, total = net.plan(10), net.kicks(10), np.zeros(20, dtype)
    drawn, ends = batches
    net.learn(batches, kicks, total)
    assert np.diff(ends).tolist() == 2 * [5, 5, 4, 5, 5]
    J, summed = np.zeros(20), np.zeros(20)
    for b in range(10):
        batch = drawn[ends[b] : ends[b + 1]]
        X, aims = net.examples.X[batch].astype(float), net.examples.targets[batch]
        J = (1 - 0.9 * 0.3 * 0.24) * J + 0.9 / 20 * X.T @ (aims - X @ J) + kicks[b]
        summed += J
    near = {"rtol": 1e-10, "atol": 1e-12} if dtype is float else {"rtol": 1e-4, "atol": 1e-5}
    assert_allclose(net.J, J, **near)
    assert_allclose(total, summed, **near)
    epochs = drawn.reshape(2, 24)
    if sequence != "replacement":
        assert (np.sort(epochs, axis=1) == np.arange(24)).all()
        assert (epochs[0] == epochs[1]).all() == (sequence == "fixed")


def test_batches_are_learned_when_they_are_complete_in_pieces_or_at_once():
    problem = PROBLEM.replace(batch_share=0.5, temperature=0.1)
    one, two = made(Descent, problem), made(Descent, problem)
    mean = np.zeros(20)
    assert one.advance(6.0, mean) == pytest.approx(6.0)
    for t in (0.1, 0.5999, 0.6, 3.2, 5.9999, 6.0):
        two.advance(t)
        assert two.steps == int(t / 0.6 + 1e-9)
    assert_allclose(one.J, two.J, rtol=1e-12)
    again = made(Descent, problem)
    path = []
    for k in range(1, 11):
        again.advance(0.6 * k)
        path.append(again.J.copy())
    assert_allclose(mean, 0.6 * np.sum(path, axis=0), rtol=1e-10)


def test_how_often_an_example_is_learned():
    """Once an epoch, or with replacement a binomial number of times with the mean 1."""
    for sequence in SEQUENCES:
        problem = PROBLEM.replace(alpha=10.0, sequence=sequence, batch_share=0.125)
        net = made(Descent, problem)
        counts = np.array(
            [np.bincount(net.plan(8)[0], minlength=200) for _ in range(50)]
        )  # epochs × examples
        if sequence != "replacement":
            assert (counts == 1).all()
            continue
        assert counts.mean() == 1
        assert abs(counts.var() - (1 - 1 / 200)) < 5 * np.sqrt(3 / counts.size)


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_small_batches_are_one_example_at_a_time(sequence):
    """A batch of one is the step that there was, for the same seed to the last digits."""
    problem = PROBLEM.replace(alpha=1.0, sequence=sequence)
    single = made(Learner, problem)
    batches = made(Descent, problem.replace(batch_share=1 / 20))
    for t in (0.5, 1.0, 4.0):
        single.advance(t)
        batches.advance(t)
        assert_allclose(batches.J, single.J, rtol=1e-10, atol=1e-12)


@pytest.mark.physics
def test_smaller_batches_approach_one_example_at_a_time():
    """The difference is that of Euler's scheme: of first order in the batch."""
    problem = PROBLEM.replace(alpha=2.0, task="regression", noise=0.5, rate=0.6)
    method = mp.Simulation(n=100, samples=800, seed=3)
    for sequence in ("replacement", "reshuffled"):
        aim = mp.solve(problem.replace(sequence=sequence), [4.0], method)
        gaps = []
        for share in (0.25, 0.05):
            found = mp.solve(problem.replace(sequence=sequence, batch_share=share), [4.0], method)
            gaps.append(abs(float(found.F2[0] - aim.F2[0])))
        assert gaps[1] < gaps[0] / 2 + 4 * float(aim.F2_se[0])
        assert gaps[1] < 0.03 * float(aim.F2[0])


def test_noise_of_batches_has_the_variance_of_the_temperature():
    """Without forces dQ = −2vλQ dt + 2T dt, as an Euler step of Δ has it."""
    none = mp.Adatron(kappa=-1e3)  # no activation is as wrong as that
    problem = PROBLEM.replace(rule=none, temperature=0.4, batch_share=0.5, alpha=1.0)
    found = mp.solve(problem, [0.5, 1.0, 5.0], mp.Simulation(n=50, samples=400, seed=1))
    keep, Q, expected = (1 - 0.9 * 0.3 * 0.5) ** 2, 0.0, []
    for _ in range(10):
        Q = keep * Q + 2 * 0.4 * 0.5
        expected.append(Q)
    z = (found.Q.values - np.array(expected)[[0, 1, 9]]) / found.Q_se.values
    assert np.abs(z).max() < 3.5
    assert (found.Q_se / found.Q < 0.02).all()


def test_batches_that_diverge_are_counted_and_bad_ones_refused():
    problem = PROBLEM.replace(rate=9.0, batch_share=1.0)
    found = mp.solve(problem, [1.2, 1200.0], mp.Simulation(n=20, samples=3))
    assert found.diverged.values.tolist() == [0, 3]
    with pytest.raises(ValueError, match=r"`batch_share` = 0\.001 of 24 examples is less than one"):
        mp.solve(PROBLEM.replace(batch_share=1e-3), [1.2], mp.Simulation(n=20, samples=2))
    root = mp.Rule(lambda x, y: np.sqrt(0.5 - x * y))
    with pytest.raises(ValueError, match="`force` returned NaN on an example with target"):
        mp.solve(PROBLEM.replace(rule=root, batch_share=0.5), [60.0], mp.Simulation(20, 2))


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_the_steady_state_of_an_order_is_a_mean_over_an_epoch(share):
    problem = PROBLEM.replace(sequence="fixed", batch_share=share)
    method = mp.Simulation(n=20, samples=1, settle=300.0)
    found = mp.steady_state(problem, method)
    assert found.F2_end.attrs["long_name"].endswith("training set, at the end of an epoch")
    # Of a fixed order nothing is left to chance: the steady state is a cycle.
    parts = (np.arange(16) + 0.5) / 16 if not share else np.array([0.5, 1.0])
    cycle = mp.solve(problem, 300 + 1.2 * np.append(parts, 1.25), method).isel(t=slice(0, -1))
    end = mp.solve(problem, [301.2], method).isel(t=0)
    for name in ("R", "Q", "F2", "Eg", "Et"):
        assert_allclose(found[name], cycle[name].mean(), rtol=1e-9, err_msg=name)
        assert_allclose(found[f"{name}_end"], end[name], rtol=1e-9, err_msg=name)
    averaged = mp.steady_state(problem, method, window=12.0)
    assert float(averaged.Q) < float(found.Q)
    assert_allclose(averaged.F2, found.F2, rtol=1e-9)
    assert "F2_end" not in mp.steady_state(PROBLEM, mp.Simulation(n=20, samples=3))


def test_looks_at_an_epoch():
    problem = PROBLEM.replace(sequence="reshuffled", batch_share=0.25)
    assert settling.epoch(problem, 24, 20) == 1.2
    assert settling.whole(2.5, 1.2) == pytest.approx(3.6)
    assert_allclose(
        settling.looks(problem, 2.5, 1.2, 24), 3.6 + 1.2 * np.array([0.25, 0.5, 0.75, 1, 1])
    )
    assert settling.epoch(PROBLEM, 24, 20) == 0
