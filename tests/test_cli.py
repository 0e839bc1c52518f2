"""The command line as a user meets it."""

import json
import re
import signal
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest
from PIL import Image

import manypass as mp
from manypass.cli import as_flags, main, parser
from manypass.starting import unheard
from manypass.sweeps.pools import local

FLAGS = ["--rule", "adaline", "--alpha", "1.2", "--rate", "1.9", "--decay", "0.8"]
PROBLEM = mp.Problem(mp.Teacher(1.2), mp.Adaline(), rate=1.9, decay=0.8)
TOML = 'rate = 1.9\ndecay = 0.8\nrule = "adaline"\ndata = { alpha = 1.2 }\n'


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "manypass", *arguments], capture_output=True, text=True, timeout=60
    )


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from manypass.cli import parser; parser().format_help(); print(*sys.modules)"
    )
    modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True
    ).stdout.split()
    assert not {"numpy", "scipy", "xarray", "matplotlib"} & set(modules)


def test_solve_prints_a_table(capsys):
    main(["solve", *FLAGS, "--times", "1,2"])
    header, first, second = capsys.readouterr().out.splitlines()
    assert header.split() == ["t", "R", "Q", "F2", "Eg"]
    assert first.split() == ["1", "0.338436", "0.547689", "0.76156", "0.348813"]
    assert second.split()[0] == "2"


def test_long_tables_are_thinned_on_the_terminal_only(capsys, tmp_path):
    main(["solve", *FLAGS, "--times", "0:8:161", "--out", str(tmp_path / "x.nc")])
    lines = capsys.readouterr().out.splitlines()
    assert (lines[1].split()[0], lines[-2].split()[0]) == ("0", "8")
    assert len(lines) == 1 + 21 + 1
    assert lines[-1].startswith("(21 of 161 times")
    assert mp.load(tmp_path / "x.nc").t.size == 161


@pytest.mark.endurance
def test_a_full_disk_loses_no_number(tmp_path):
    """One line with the path, after the numbers; nothing half-written, no crash at the end."""
    limit = "import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (2000, 2000)); "
    commands = (
        ["solve", *FLAGS, "--out", str(tmp_path / "x.nc")],
        ["solve", *FLAGS, "--plot", str(tmp_path / "x.png")],
        ["reproduce", "2", "--quick", "--out", str(tmp_path / "figures")],
    )
    code = f"""{limit}
from contextlib import suppress
from manypass.cli import main
for arguments in {commands[:-1]!r}:
    with suppress(SystemExit):
        main(arguments)
main({commands[-1]!r})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    told = re.findall(rf"manypass: {tmp_path}/(\S+): cannot write the file: .*\n", done.stderr)
    assert [name.partition("/")[0] for name in told] == ["x.nc", "x.png", "figures"]
    others = [line for line in done.stderr.splitlines() if "cannot write the file" not in line]
    assert others == ["manypass: figure2"]  # how far it is
    assert len(re.findall(r"^ +8 .* 0\.338376$", done.stdout, re.MULTILINE)) == 2  # both tables
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_standard_output_may_be_full_too(tmp_path):
    solve = ["solve", *FLAGS, "--out", str(tmp_path / "x.csv")]
    for words in (solve, ["--help"], ["sweep", "--help"], ["--version"]):
        command = [sys.executable, "-m", "manypass", *words]
        with open("/dev/full", "w") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert "standard output: No space left on device" in done.stderr
    assert mp.load(tmp_path / "x.csv").t.size == 161


def test_where_the_rest_is_is_said_only_to_those_who_did_not_save(capsys, tmp_path):
    main(["solve", *FLAGS])
    assert capsys.readouterr().out.endswith("(21 of 161 times; --out x.csv writes all)\n")
    main(["solve", *FLAGS, "--out", str(tmp_path / "x.csv")])
    assert capsys.readouterr().out.endswith("(21 of 161 times)\n")


@pytest.mark.parametrize("suffix", ["nc", "csv", "json"])
def test_flags_and_file_give_the_same_problem(tmp_path, suffix, capsys):
    (tmp_path / "p.toml").write_text(TOML)
    main(
        [
            "solve",
            str(tmp_path / "p.toml"),
            "--times",
            "0:4:5",
            "--out",
            str(tmp_path / f"a.{suffix}"),
        ]
    )
    main(["solve", *FLAGS, "--times", "0:4:5", "--out", str(tmp_path / f"b.{suffix}")])
    if suffix != "nc":
        assert (tmp_path / f"a.{suffix}").read_text() == (tmp_path / f"b.{suffix}").read_text()
    else:
        assert mp.problem_of(mp.load(tmp_path / "a.nc")) == mp.problem_of(
            mp.load(tmp_path / "b.nc")
        )


def test_flags_override_the_file(tmp_path, capsys):
    (tmp_path / "p.toml").write_text(TOML)
    main(
        [
            "solve",
            str(tmp_path / "p.toml"),
            "--alpha",
            "2",
            "--times",
            "1,2",
            "--out",
            str(tmp_path / "x.nc"),
        ]
    )
    assert mp.problem_of(mp.load(tmp_path / "x.nc")).data.alpha == 2


@pytest.mark.parametrize("suffix", ["png", "pdf"])
def test_plot(tmp_path, suffix, capsys):
    main(["solve", *FLAGS, "--plot", str(tmp_path / f"x.{suffix}")])
    assert (tmp_path / f"x.{suffix}").stat().st_size > 5000


def test_a_rate_that_changes_is_shown_below_the_curves(tmp_path):
    schedule = ["--rate", "cosine:1.5:0.1:2", "--times", "0:2:5"]
    heights = [
        _height(tmp_path / "x.png", flags)
        for flags in (schedule, [*schedule, "--no-show-rate"], [], ["--show-rate"])
    ]
    assert heights == [720, 580, 580, 720]


def _height(path, flags):
    main(["solve", *FLAGS, *flags, "--plot", str(path)])
    with Image.open(path) as picture:
        return picture.height


def test_two_time_goes_to_a_file(tmp_path, capsys):
    main(["solve", *FLAGS, "--times", "0:4:5", "--two-time", "--out", str(tmp_path / "x.nc")])
    assert mp.load(tmp_path / "x.nc").C.shape == (5, 5)


def test_steady_and_critical_rate(capsys, tmp_path):
    main(["steady", *FLAGS, "--window", "2", "--out", str(tmp_path / "x.json")])
    *lines, whose = capsys.readouterr().out.splitlines()
    assert whose.startswith("(R, Q, Eg: of weights averaged over 2; ")
    printed = dict(line.split(" = ") for line in lines)
    expected = mp.steady_state(
        mp.Problem(mp.Teacher(1.2), mp.Adaline(), rate=1.9, decay=0.8), window=2
    )
    assert float(printed["      Eg"]) == pytest.approx(float(expected.Eg), rel=1e-5)
    assert json.loads((tmp_path / "x.json").read_text())["coords"]["window"]["data"] == 2
    main(["critical-rate", "--alpha", "1.2", "--decay", "0.8"])
    assert capsys.readouterr().out == "v_c = 3.091780\n"
    main(["critical-rate", *FLAGS])
    assert "v/v_c = 0.614533" in capsys.readouterr().out
    main(["steady", *FLAGS, "--method", "mean-force"])
    assert "Eg" in capsys.readouterr().out


def test_simulation(capsys, tmp_path):
    settings = ["--method", "simulation", "--n", "50", "--samples", "5", "--seed", "3"]
    main(["solve", *FLAGS, "--times", "1,2", *settings, "--out", str(tmp_path / "x.nc")])
    found = mp.load(tmp_path / "x.nc")
    assert found.attrs["seed"] == 3
    problem = PROBLEM
    again = mp.solve(problem, [1, 2], mp.Simulation(n=50, samples=5, seed=3))
    assert (again.F2.values == found.F2.values).all()
    assert "Et_se" in capsys.readouterr().out
    main(["steady", *FLAGS, *settings, "--rule", "adatron", "--kappa", "0.5", "--settle", "2"])
    assert "Et = " in capsys.readouterr().out


def test_mean_field(capsys, tmp_path):
    settings = ["--rule", "adatron", "--dt", "0.2", "--samples", "4000", "--seed", "2"]
    files = ["--out", str(tmp_path / "x.nc"), "--plot", str(tmp_path / "x.png")]
    main(["solve", *FLAGS, *settings, "--times", "0:2:5", *files])
    found = mp.load(tmp_path / "x.nc")
    problem = mp.Problem(mp.Teacher(1.2), mp.Adatron(), rate=1.9, decay=0.8)
    again = mp.solve(problem, np.linspace(0, 2, 5), mp.DMFT(dt=0.2, samples=4000, seed=2))
    assert (again.F2.values == found.F2.values).all()
    assert found.attrs["errors"] == again.attrs["errors"]
    assert "Et_se" in capsys.readouterr().out
    main(["steady", *FLAGS, "--method", "dmft", "--rtol", "0.1"])
    assert "settled = " in capsys.readouterr().out


LONG = {
    "simulation": ["--n", "500", "--samples", "2", "--times", "1000000"],
    "dmft": ["--dt", "0.1", "--samples", "400000", "--times", "0:20:5"],
}


SHORT = {"simulation": mp.Simulation(n=20, samples=1), "dmft": mp.DMFT(dt=0.1, samples=2_000)}


@pytest.mark.parametrize("method", LONG)
@pytest.mark.endurance
def test_ctrl_c_stops_a_long_run_at_once(method):
    mp.solve(PROBLEM, [0.1], SHORT[method])  # compiling, which cannot be stopped, is done here
    command = [sys.executable, "-m", "manypass", "solve", *FLAGS, "--method", method]
    with subprocess.Popen([*command, *LONG[method]], stderr=subprocess.PIPE, text=True) as long:
        start = time.monotonic()
        while psutil.Process(long.pid).num_threads() < 3:  # one more for each that computes
            assert time.monotonic() < start + 60
            time.sleep(0.1)
        time.sleep(0.2)
        long.send_signal(signal.SIGINT)
        try:
            _, words = long.communicate(timeout=10)
        finally:
            long.kill()
    assert long.returncode == 130
    assert words.strip().endswith("manypass: interrupted")


def test_ctrl_c_within_a_callback_of_the_compiler_is_not_lost():
    """Python drops exceptions there, and says so: the run would go on."""
    code = """
import ctypes, signal, time
import manypass.cli
from manypass.__main__ import main
def run():
    ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))()
    time.sleep(20)
manypass.cli.main = run
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=15)
    assert (done.returncode, done.stderr) == (130, "manypass: interrupted\n")


@pytest.mark.parametrize("module", ["manypass.cli", "manypass.verbs"])
def test_ctrl_c_while_modules_load_is_one_line(module):
    """As if it came at the very import: of the commands, and of what a command needs."""
    code = f"""
import sys
class Stop:
    def find_spec(self, name, *_):
        if name == {module!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Stop())
sys.argv = ["manypass", "solve", "--alpha", "1", "--rate", "1"]
from manypass.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "manypass: interrupted\n")


def test_workers_that_start_do_not_hear_ctrl_c():
    pool, seen = local(1), []
    make = pool.make

    def watched():
        seen.append(signal.getsignal(signal.SIGINT))
        return make()

    pool.make, before = watched, signal.getsignal(signal.SIGINT)
    try:
        assert pool.submit([]).result() == []
        ask = "import signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
        with unheard():
            told = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True)
    finally:
        pool.close()
    assert seen == [signal.SIG_IGN]
    assert told.stdout == "True\n"
    assert signal.getsignal(signal.SIGINT) is before


def test_a_closed_pipe_loses_no_file(tmp_path):
    command = (
        f"{sys.executable} -u -m manypass solve {' '.join(FLAGS)} --out {tmp_path / 'x.nc'} | true"
    )
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert mp.load(tmp_path / "x.nc").t.size == 161


BAD = [
    (["solve", "--rate", "1"], "--alpha is missing"),
    (["solve", "--alpha", "1"], "--rate is missing"),
    (
        ["solve", *FLAGS, "--alpha", "0"],
        "--alpha must be a number from 1e-06 to 1e+06 or inf, got 0.0",
    ),
    (["solve", *FLAGS, "--alpha", "x"], "argument --alpha: invalid float value: 'x'"),
    (
        ["solve", *FLAGS, "--rate", "-1"],
        "1e-12 to 1e+06 or a schedule such as 'cosine:1.5:0.1:8', got -1.0",
    ),
    (
        ["solve", *FLAGS, "--rate", "nan"],
        "--rate must be a number from 1e-12 to 1e+06 or a schedule such as",
    ),
    (["solve", *FLAGS, "--rule", "adalin"], "--rule must be one of"),
    (["solve", *FLAGS, "--kappa", "1"], "rule 'adaline' has no --kappa (got 1.0)"),
    (
        ["solve", *FLAGS, "--rule", "perceptron", "--mode", "batch"],
        "--method dmft does not serve --rule Perceptron(kappa=0.0) in batch mode: its force jumps",
    ),
    (["solve", *FLAGS, "--method", "dmft", "--dt", "0.1", "--rtol", "0.1"], "--rtol chooses dt"),
    (
        ["solve", *FLAGS, "--method", "dmft", "--dt", "1e-9"],
        "time steps of 1e-09 up to t = 8, more than 20000: take earlier --times",
    ),
    (["solve", *FLAGS, "--method", "exact", "--rtol", "0.1"], "--rtol (got 0.1) is no setting"),
    (["solve", *FLAGS, "--rule", "adatron", "--accuracy", "0.1"], "no setting of --method dmft"),
    (
        ["solve", *FLAGS, "--task", "sort"],
        "--task must be one of 'classification', 'regression', got 'sort'",
    ),
    (["solve", *FLAGS, "--mode", "off"], "--mode must be one of 'online', 'batch', got 'off'"),
    (["solve", *FLAGS, "--times", "5:1:3"], "--times must be strictly increasing, got 5 before 3"),
    (
        ["solve", *FLAGS, "--times", "a:b"],
        "--times must be t1,t2,... or first:last:count, a whole count up to 1000000, got 'a:b'",
    ),
    (
        ["solve", *FLAGS, "--times", "0:1:-3"],
        "--times must be t1,t2,... or first:last:count, a whole count up to 1000000, got '0:1:-3'",
    ),
    (["solve", *FLAGS, "--times", ""], "--times must be t1,t2,... or first:last:count"),
    (["solve", *FLAGS, "--rule", ""], "--rule must be one of"),
    (["solve", "--rate", "1", "--data", "", "--target", "y"], "--data must end in .csv"),
    (["solve", "", *FLAGS], "the name of the TOML file is empty, got ''"),
    (["solve", *FLAGS, "--seed", "some"], "argument --seed: invalid seed value: 'some'"),
    (["solve", *FLAGS, "--method", "magic"], "argument --method: invalid choice: 'magic'"),
    (["solve", *FLAGS, "--out", "x.txt"], "--out must end in .nc, .csv, .json, got 'x.txt'"),
    (["solve", *FLAGS, "--out", "no/such/x.nc"], "--out: no folder 'no/such'"),
    (["solve", *FLAGS, "--plot", "x.gif"], "--plot must end in .png, .pdf, .svg, got 'x.gif'"),
    (["solve", *FLAGS, "--show-rate"], "--show-rate is for a picture: add --plot x.png"),
    (["solve", *FLAGS, "--two-time"], "--two-time gives functions of (t, s)"),
    (["solve", "none.toml"], "there is no file 'none.toml'"),
    (["solve", "nowhere/none.toml"], "there is no folder 'nowhere'"),
    (["solve", *FLAGS, "--out", "nowhere/x.nc"], "--out: no folder 'nowhere' to write"),
    (["steady", *FLAGS, "--rate", "4"], "--rate 4 is not below the critical rate v_c = 3.09178"),
    (["steady", *FLAGS, "--window", "-1"], "--window must be a number from 0 to 1e+12, got -1.0"),
    (["solve", *FLAGS, "--times", "0:inf:3"], "--times must be"),
    (["solve", *FLAGS, "--times", "0:8:999999999"], "--times must be"),
    (["solve", *FLAGS, "--alp", "2"], "unrecognized arguments: --alp"),
    (["solve", *FLAGS, "--out", "/.nc/"], "--out"),
    (["solve", *FLAGS, "--method", "simulation", "--n", "0"], "--n must be a whole number from 1"),
    (["solve", *FLAGS, "--n", "50"], "--n (got 50) is no setting of --method exact"),
    (["solve", *FLAGS, "--method", "simulation", "--response"], "add --two-time"),
    (["solve", *FLAGS, "--settle", "5"], "unrecognized arguments: --settle"),
    (["steady", *FLAGS, "--rate", "1e-9", "--samples", "10"], "cannot be sampled"),
    (["reproduce", "9"], "`figures` must be among 1, 2, 3, 4, 5, 6, 7, 8, got 9"),
    (
        ["solve", *FLAGS[2:], "--rule", "committee", "--teacher-hidden", "0"],
        "--teacher-hidden must be a whole number from 1 to 16, got 0",
    ),
    (["solve", *FLAGS, "--teacher-hidden", "2"], "--teacher-hidden 2 is for two layers"),
    (["solve", *FLAGS[2:], "--rule", "committee"], "such as --start '0.1;0/0.25,0;0,0.25'"),
    (
        ["solve", *FLAGS, "--times", "0:8:1"],
        "--times 0:8:1 asks for one value alone, and names two",
    ),
    (["advise", "--alpha", "2"], "advise needs --data FILE and --target COLUMN"),
    (
        ["worth", "--data", "x.csv", "--target", "y", "--rate", "1"],
        "worth needs a teacher, --alpha",
    ),
    (["frobnicate"], "invalid choice: 'frobnicate'"),
    ([], "the following arguments are required: COMMAND"),
]


@pytest.mark.parametrize(
    ("arguments", "words"), BAD, ids=lambda x: " ".join(x) if isinstance(x, list) else ""
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, words, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    output, line = capsys.readouterr()
    assert output == ""
    assert words in line
    assert line.count("\n") == 1


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            "not `rule` Adatron(kappa=1.0): use method DMFT() or Simulation(n=500, samples=100)",
            "not --rule Adatron(kappa=1.0): use --method dmft or "
            "--method simulation --n 500 --samples 100",
        ),
        ("MeanForce() serves a Teacher", "--method mean-force serves a Teacher"),
        (
            "take device='cpu' or Exact(diagonal=True)",
            "take --device cpu or --method exact --diagonal",
        ),
        ("for an intercept say intercept=True", "for an intercept say --intercept"),
        ("fewer `times` or two_time=False", "fewer --times or no --two-time"),
        ("`nothing` and nothing=True stay", "`nothing` and nothing=True stay"),
        ("`hidden` of the teacher must be 1", "--teacher-hidden must be 1"),
        ("`overlaps` of the teacher = 3", "--overlaps 3"),
        ("`hidden` must be 1", "--hidden must be 1"),
        ("by `drop` = 'Unnamed: 0'", "by --drop 'Unnamed: 0'"),
        ("`mode` = 'batch' and `rate` = 4", "--mode batch and --rate 4"),
        ("`second` = [1.0, -2.0] is", "--second 1.0,-2.0 is"),
        ("as Start(R=[[0.1], [0.0]], Q=[[1.0, 0.0], [0.0, 1.0]])", "as --start '0.1;0/1,0;0,1'"),
        ("Start(R=0.5, Q=1.0) or Start(weights=...)", "--start 0.5,1 or Start(weights=...)"),
        ("Exact().steady_state() serves", "the steady state of --method exact serves"),
    ],
)
def test_messages_speak_of_flags(message, words):
    arguments = parser().parse_args(["solve", *FLAGS])
    assert as_flags(message, arguments) == words


def test_what_a_problem_file_says_is_called_as_it_does(tmp_path):
    arguments = parser().parse_args(["steady", "problem.toml", "--decay", "1"])
    said = "take a longer `settle`, another `rate` or `decay`"  # no file of a problem has `settle`
    assert as_flags(said, arguments) == "take a longer --settle, another `rate` or --decay"


def test_a_message_keeps_what_has_no_flag():
    said = "take Exact(diagonal=True)"
    assert as_flags(said, parser().parse_args(["critical-rate", *FLAGS])) == said


def test_a_warning_is_one_line_too():
    done = run("solve", *FLAGS, "--times", "1", "--accuracy", "0.01", "--samples", "10")
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith("manypass: --accuracy 0.01 is not reached with --samples 10")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rate = ", "is not a TOML file"),
        (TOML + "method = 'exact'\n", "p.toml: 'method' is no field of a problem: only a plan"),
        (TOML + "window = 5\n", "p.toml: 'window' is no field of a problem: only a plan"),
        (TOML + "lambda = 1\n", "`lambda` is not a field of a problem"),
        (TOML.replace("1.9", '"fast"'), "`rate` must be a number, or steps:"),
        (TOML.replace("{ alpha = 1.2 }", "3"), "`data` must be a table with `alpha`, got 3"),
        (TOML.replace("alpha", "beta"), "`beta` is not a field of data"),
        (TOML.replace("{ alpha = 1.2 }", "{}"), "`alpha` is missing"),
        (TOML + "alpha = 1.2\n", "`alpha` belongs to `data`: data = { alpha = 1.2 }"),
        (TOML.replace('rule = "adaline"', ""), "`rule` is missing: a problem needs data, rule"),
        (TOML.replace('"adaline"', "7"), "`rule` must be a name or a table with a `name`, got 7"),
    ],
)
def test_bad_files_name_the_key(tmp_path, capsys, text, words):
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(SystemExit) as stop:
        main(["solve", str(tmp_path / "p.toml")])
    assert stop.value.code == 2
    assert words in capsys.readouterr().err


def test_a_drawn_seed_is_told(tmp_path, capsys):
    ask = ["solve", *FLAGS, "--times", "1", "--method", "simulation", "--n", "20", "--samples", "3"]
    main([*ask, "--seed", "none", "--out", str(tmp_path / "x.nc")])
    drawn = capsys.readouterr()
    seed = re.fullmatch(r"manypass: drawn: --seed (\d+)\n", drawn.err)[1]
    assert mp.load(tmp_path / "x.nc").attrs["seed"] == int(seed)
    main([*ask, "--seed", seed])
    assert capsys.readouterr().out == drawn.out


def test_runs_as_a_module_without_a_traceback():
    good, bad = run("critical-rate", "--alpha", "1.2"), run("solve", "--alpha", "-1", "--rate", "1")
    assert (good.returncode, good.stdout) == (0, "v_c = 2.000000\n")
    assert bad.returncode == 2
    assert "Traceback" not in bad.stderr
    assert run("--version").stdout == f"manypass {mp.__version__}\n"


def test_compiled_code_that_is_interrupted_is_no_traceback(monkeypatch, capsys):
    """Numba makes a SystemError of it; one of another kind stays what it is."""
    from manypass import __main__, cli

    def stopped():
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            raise SystemError("returned a result with an exception set") from error

    monkeypatch.setattr(cli, "main", stopped)
    monkeypatch.setattr(__main__.signal, "signal", lambda *_: None)  # this process keeps its own
    with pytest.raises(SystemExit) as stop:
        __main__.main()
    assert stop.value.code == 130
    assert capsys.readouterr().err == "manypass: interrupted\n"

    def broken():
        raise SystemError("something else")

    monkeypatch.setattr(cli, "main", broken)
    with pytest.raises(SystemError, match="something else"):
        __main__.main()
