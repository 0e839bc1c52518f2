"""Sweeps from TOML files: what they may say, and what is wrong with them."""

import pytest
from slow_sweeps import PLAN

import manypass as mp
from manypass.cli import main
from manypass.sweeps.plan import read_plan


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--cluster", "nonsense"], "--cluster must be an address such as tcp://host:8786"),
        (["--slurm", "0"], "--slurm must be a whole number from 1"),
        (["--slurm", "1"], "--slurm needs the command sbatch"),
        (["--workers", "0"], "--workers must be a whole number from 1"),
        (["--out", ""], "--out must be the name of a folder, got ''"),
    ],
)
def test_bad_places(tmp_path, capsys, monkeypatch, flags, message):
    monkeypatch.setenv("PATH", str(tmp_path))  # no Slurm there
    (tmp_path / "plan.toml").write_text(PLAN)
    with pytest.raises(SystemExit) as stop:
        main(["sweep", str(tmp_path / "plan.toml"), "--out", str(tmp_path / "out"), *flags])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


BAD_PLANS = [
    ("rate = ", "is not a TOML file"),
    ("rate = 1", "has no table [sweep]"),
    ("data = {alpha = 1}\n[sweep]\nfoo = [1]", "`foo` cannot be swept"),  # not: no rate
    (
        "rate = 1\ndata = {alpha = 1}\n[sweep]\n",
        "plan.toml: the table [sweep] is empty: name fields",
    ),
    ("rate = 1\ndata = {alpha = 1}\n[sweep]\ntogether = []", "the table [sweep] is empty"),
    ("rate = 1\ndata = {alpha = 1}\n[sweep]\ndecay = [1, 2]", "`rule` is missing: a problem"),
    ("data = {alpha = 1}\n[sweep]\nrate = 5", "`rate` must be a list or { from"),
    ("data = {alpha = 1}\n[sweep]\nrate = {from = 0, to = 1, count = 3, scale = 'log'}", "above 0"),
    ("data = {alpha = 1}\n[sweep]\nrate = {from = 1, to = 2, count = 2.5}", "a whole count"),
    ("data = {alpha = 1}\n[sweep]\nrate = {from = 1, to = 2, count = 1}", "count is how many"),
    ("rate = 1\n[sweep]\nalpha = ['inf', 1]", "or inf, got 'inf', a text: write it without quotes"),
    ("data = {alpha = 1}\n[sweep]\nrate = {from = 1, to = 2, count = 2, step = 1}", "has from, to"),
    ("rate = 1\n[sweep]\ndecay = [1, 2]", "`alpha` is missing"),
    ("data = {alpha = 1}\n[sweep]\nrate = []", "`rate` must have at least one value, got []"),
    ("data = {alpha = 1}\n[sweep]\nrate = {from = 1, to = 2, count = 100000000}", "up to 1000000"),
    ("rate = 1\ndata = {alpha = 1}\n[sweep]\ncolour = [1]", "`colour` cannot be swept"),
    ("rate = 1\ndata = {alpha = 1}\nmethod = 'magic'\n[sweep]\ndecay = [1]", "`method` must be"),
    (
        "rate = 1\ndata = {alpha = 1}\nmethod = {name = 'exact', n = 3}\n[sweep]\ndecay = [1]",
        "`n` is no setting of method exact",
    ),
    (
        "data = {alpha = 1}\n[sweep]\nrate = [1]\ntimes = [1, 2]",
        "it stands at the top of the plan, times = [1, 2] above",
    ),
    (
        "data = {alpha = 1}\n[sweep]\nrate = [1]\nmethod = 'simulation'",
        'the top of the plan, method = "simulation" above [sweep], or is a list of methods',
    ),
    (
        "n = 400\ndata = {alpha = 1}\n[sweep]\nrate = [1]",
        '`n` is a setting of a method: method = { name = "simulation", n = 400 }',
    ),
    ("data = {alpha = 1}\n[sweep]\nrats = [1]", "; did you mean 'rate'?"),
    (
        "rate = 1\ndata = {alpha = 1}\n[[sweep.together]]\ndecay = [1, 2]\nnoise = [1]",
        "as long as each other",
    ),
]


@pytest.mark.parametrize(("text", "message"), BAD_PLANS)
def test_bad_plans(tmp_path, capsys, text, message):
    (tmp_path / "plan.toml").write_text(text if "rule" in message else "rule = 'adaline'\n" + text)
    with pytest.raises(SystemExit) as stop:
        main(["sweep", str(tmp_path / "plan.toml"), "--out", str(tmp_path / "out")])
    assert stop.value.code == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert errors.count("\n") == 1


def test_a_plan_with_ranges_rules_methods_and_fields_together(tmp_path, capsys):
    (tmp_path / "plan.toml").write_text(
        """
        data = { alpha = 1.0 }
        times = "0:2:3"
        [sweep]
        rate = { from = 0.25, to = 1.0, count = 3, scale = "log" }
        rule = ["adaline", { name = "adatron", kappa = 1.0 }]
        method = ["exact", { name = "simulation", n = 50, samples = 4 }]
        [[sweep.together]]
        decay = [0.1, 0.2]
        noise = [0.0, 0.5]
        """
    )
    main(["sweep", str(tmp_path / "plan.toml"), "--out", str(tmp_path / "out"), "--workers", "1"])
    found = mp.load(tmp_path / "out" / "sweep.nc")
    assert found.sizes == {"rate": 3, "rule": 2, "method": 2, "decay": 2, "t": 3}
    assert found.rate.values.tolist() == [0.25, 0.5, 1.0]
    assert found.noise.values.tolist() == [0.0, 0.5]
    assert found.noise.dims == ("decay",)
    problem = mp.Problem(mp.Teacher(alpha=1.0, noise=0.5), mp.Adaline(), rate=0.5, decay=0.2)
    assert found.Q[1, 0, 0, 1].values.tolist() == mp.solve(problem, [0, 1, 2]).Q.values.tolist()
    printed = capsys.readouterr().out
    assert "6 of 24 points have no answer:" in printed
    assert "Exact() serves the linear rules" in printed


def test_the_plan_in_the_help_is_one(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["sweep", "--help"])
    shown = capsys.readouterr().out.split("a plan:\n")[1]
    (tmp_path / "plan.toml").write_text(shown)
    plan = read_plan(tmp_path / "plan.toml")
    assert plan.grid.shape == (10, 2, 2)
    assert (plan.method.n, plan.times[-1]) == (400, 8.0)
    points = list(plan.grid.points(plan.method, plan.times))
    assert points[-1].problem.rule == mp.Adatron(kappa=1.0)
    assert points[-1].problem.temperature == 0.01


def test_the_last_line_of_a_sweep_counts_its_points():
    problem = mp.Problem(mp.Teacher(alpha=1.0), mp.Adaline(), rate=1.0)
    assert mp.Grid(problem, rate=[1, 2, 3]).counted == "3 points, rate"
    two = mp.Grid(problem, rate=[1, 2, 3], decay=[0, 1])
    assert two.counted == "6 points, 3 of rate x 2 of decay"


def test_a_plan_with_schedules_and_starts(tmp_path):
    (tmp_path / "plan.toml").write_text(
        """
        rule = "adaline"
        data = { alpha = 1.0 }
        times = "0:2:3"
        [sweep]
        rate = ["inverse:1.5:2", 1.0]
        start = [{ R = 0, Q = 0 }, { R = 0.5, Q = 1.0 }]
        """
    )
    plan = read_plan(tmp_path / "plan.toml")
    asked = [point.problem for point in plan.grid.points(plan.method, plan.times)]
    problem = mp.Problem(mp.Teacher(alpha=1.0), mp.Adaline(), rate="inverse:1.5:2")
    start, nothing = mp.Start(R=0.5, Q=1.0), mp.Start()
    assert asked[1:3] == [problem.replace(start=start), problem.replace(start=nothing, rate=1.0)]
