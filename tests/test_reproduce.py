"""The paper's figures: what is written, that a run goes on, and that verdicts can be bad."""

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import manypass as mp
from manypass.cli import main
from manypass.reproduce import FIGURES, Clock, agreement, figure2, figure6, figure7, reproduce
from manypass.reproduce.agreement import Panel, Symbol, compare
from manypass.reproduce.parts import Part, Scale
from manypass.reproduce.report import row
from manypass.results import method_entry


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("figures")
    main(["reproduce", "2", "4", "--quick", "--out", str(made)])
    return made


def test_files_of_a_run(folder, capsys):
    pictures = {"figure2", "figure2-size", "figure4"}
    names = {p.name for p in folder.iterdir()}
    assert names == {
        *(f"{name}.png" for name in pictures),
        *("figure2.nc", "figure4.nc", "report.md", "report.html", "parts"),
    }
    text = (folder / "report.md").read_text(encoding="utf-8")
    assert "![figure4](figure4.png)" in text
    assert "| Fig. 2(a) |" in text
    assert "(figure2-size.png)" in text
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "http" not in page  # nothing from outside
    assert page.count("<tr><td>") == text.count("| R |") + text.count("| Q |") + text.count(
        "| F2 |"
    ) + text.count("| Eg |") + text.count("| Et |") + text.count("\n| Fig.")


def test_a_report_says_what_this_run_has_computed(folder):
    text = (folder / "report.md").read_text(encoding="utf-8")
    page = (folder / "report.html").read_text(encoding="utf-8")
    for said in (
        "E_t from 25,000 Monte Carlo samples. Symbols: simulations of 6 networks with N = 500.",
        "3 networks with N = 1000 and τ = 0 (circles), 5 (diamonds) and 20 (triangles down)",
    ):
        assert said in text
        assert said in page
    assert "nan" not in (text + page).lower()
    assert "| – |" in text  # no half size: no extrapolation


def test_the_captions_of_a_whole_run_are_those_of_the_documentation():
    kept = (Path(__file__).parent.parent / "docs" / "figures" / "report.md").read_text("utf-8")
    assert "nan" not in kept.lower()
    for module in FIGURES.values():
        parts = {}
        for part in module.parts(Scale()):
            asked = part.arguments.get("method") or part.arguments.get("source")
            method = json.dumps(method_entry(asked)) if asked else "{}"
            parts[part.name] = xr.Dataset(attrs={"method": method, "n": part.arguments.get("n")})
        assert module.caption(parts) in kept


@pytest.mark.parametrize("quick", [False, True])
def test_there_is_a_line_at_every_symbol_of_figure_6(quick):
    parts = {part.name: part for part in FIGURES[6].parts(Scale(0, quick))}
    simulated = [name for name in parts if "simulation" in name]
    assert len(simulated) == 6 * (1 if quick else 2)
    for name in simulated:
        line = parts[f"theory-{name.split('simulation-')[1]}"]
        assert line.problem == parts[name].problem
        assert set(parts[name].arguments["times"]) <= set(line.arguments["times"])


def test_figure_6_tells_the_orders_apart(tmp_path, monkeypatch):
    """Lines and symbols of Adaline agree, and each line disagrees with the others' symbols."""
    monkeypatch.setattr(figure6, "RULES", {"adaline": figure6.RULES["adaline"]})
    found = {part.name: part.get(tmp_path)[0] for part in figure6.parts(Scale(0, True))}
    late = {order: found[f"theory-adaline-{order}"].F2[-1] for order in figure6.LOOKS}
    assert late["replacement"] > 1.8 * late["reshuffled"] > 3.2 * late["fixed"]
    for order in figure6.LOOKS:
        runs = found[f"simulation-adaline-{order}"].isel(t=-1)
        assert min(late, key=lambda other: abs(float(late[other] - runs.F2))) == order


@pytest.mark.parametrize(
    ("figure", "quick", "expected"), [(7, False, 9), (7, True, 6), (8, False, 6), (8, True, 3)]
)
def test_there_is_a_line_at_every_symbol(figure, quick, expected):
    parts = {part.name: part for part in FIGURES[figure].parts(Scale(0, quick))}
    simulated = [name for name in parts if "simulation" in name]
    assert len(simulated) == expected
    for name in simulated:
        line = parts[f"theory-{name.split('simulation-')[1]}"]
        assert line.problem == parts[name].problem
        axis = "times" if "times" in line.arguments else "passes"
        assert set(parts[name].arguments[axis]) <= set(line.arguments[axis])


@pytest.mark.physics
def test_figure_7_says_what_it_finds(tmp_path, monkeypatch):
    """One law and one size: symbols agree, and exponents are those of scaling laws."""
    monkeypatch.setattr(figure7, "DATA", {1.0: figure7.DATA[1.0]})
    monkeypatch.setattr(figure7, "LAWS", dict([*figure7.LAWS.items()][2:]))
    monkeypatch.setattr(figure7, "FEW", {})
    found = {part.name: part.get(tmp_path)[0] for part in figure7.parts(Scale(0, True))}
    assert figure7.draw(found).keys() == {"figure7"}
    first, third = figure7.panels(found)
    assert first.agrees
    assert third.agrees
    assert "agrees for μ ~ k^{-2}" in first.remarks[1]
    data = found["theory-data"]
    for name, power in (("one_pass", -1 / 3), ("best", -1 / 2)):
        fitted = figure7.slope(data.alpha.values, data[name].values, (0.04, 0.32))
        assert fitted == pytest.approx(power, rel=0.04), name
    plateau = found["theory-plateau-powerlaw:2:1.5:0.01"]
    assert (np.diff(plateau.plateau) > 0).all()
    assert ((plateau.second > 0.8) & (plateau.second < 1)).all()


@pytest.mark.parametrize("quick", [False, True])
def test_there_is_a_line_at_every_symbol_of_figure_3(quick):
    parts = {part.name: part.arguments for part in FIGURES[3].parts(Scale(0, quick))}
    for decay in (0.4, 0.8):
        seen = parts[f"simulation-{decay}"]["rates"]
        assert set(seen) <= set(parts[f"theory-sampled-{decay}"]["rates"])


def test_a_symbol_without_a_line_is_compared_with_nothing():
    data = xr.Dataset(
        {"Eg": ("rate", [0.1, 0.2, 0.3]), "Eg_se": ("rate", [0.1, 0.1, 0.1])},
        {"rate": [0.5, 1.0, 1.4]},
    )
    theory = xr.Dataset({"Eg": ("rate", [0.3, 0.1])}, {"rate": [1.4 + 1e-12, 0.5]})
    panel = Panel("a", list(compare(["Eg"], theory, data)), 100)
    assert [s.z for s in panel.compared] == [0.0, 0.0]
    assert panel.verdict.startswith("Agrees: the largest of 2 z-scores is 0.0")
    assert row(panel.symbols[1]) == ["Eg", "v = 1", "–", "0.2", "0.1", "–", "–"]
    alone = Panel("a", panel.symbols[1:2], 100)
    assert alone.verdict == "No verdict: there is no line at any of the symbols."


def test_the_file_of_a_figure_holds_every_plotted_number(folder):
    tree = xr.open_datatree(folder / "figure2.nc", engine="h5netcdf")
    theory = tree["theory"].to_dataset()
    assert np.isclose(theory.Eg[-1], 0.33838, atol=1e-4)
    assert mp.problem_of(theory) == figure2.PROBLEM
    assert {"R", "R_se", "Et", "Et_se"} <= set(tree["simulation"].data_vars)
    tree.close()
    windows = xr.open_datatree(folder / "figure4.nc", engine="h5netcdf")
    lines = [windows[f"theory-{t}"].Eg for t in (0, 2, 5, 10, 20)]
    at_zero = [float(line[0]) for line in lines]
    assert np.ptp(at_zero) < 1e-3  # all τ meet at v = 0 ...
    assert min(float(line[-1]) for line in lines) > 0.45  # ... and diverge at one v_c
    middle = [float(line.sel(rate=1.6, method="nearest")) for line in lines]
    assert np.all(np.diff(middle) < -0.005)
    windows.close()


def test_a_run_goes_on_where_it_was(folder, monkeypatch):
    parts = sorted((folder / "parts" / "figure4").iterdir())
    ages = {p.name: p.stat().st_mtime_ns for p in parts}
    before = mp.load(parts[0])
    parts[0].write_bytes(b"damaged")
    parts[1].unlink()
    reproduce([4], folder, quick=True)
    again = {p.name: p.stat().st_mtime_ns for p in (folder / "parts" / "figure4").iterdir()}
    assert again.keys() == ages.keys()
    assert {name for name in ages if again[name] != ages[name]} == {parts[0].name, parts[1].name}
    xr.testing.assert_identical(mp.load(parts[0]), before)  # the same seed, the same numbers


def test_a_run_without_a_terminal_says_how_far_it_is(folder, monkeypatch, capsys):
    reproduce([2, 4], folder, quick=True, progress=True)
    assert capsys.readouterr().err == "manypass: figure2\nmanypass: figure4\n"  # all is kept
    clock, part = Clock(300.0, True), Part("theory", mp.solve, None, seconds=100.0)
    monkeypatch.setattr(Part, "get", lambda *_: (None, 60.0))
    for name in ("figure1", "figure1", "figure2"):
        clock.get(part, Path(name))
    told = "manypass: figure1: some 5 minutes left\nmanypass: figure2: some 60 s left\n"
    assert capsys.readouterr().err == told


def test_an_interrupted_run_keeps_what_is_finished(tmp_path, monkeypatch):
    real = mp.Simulation.steady_state

    def interrupted(self, problem, *, window):
        if window == 5:
            raise KeyboardInterrupt
        return real(self, problem, window=window)

    monkeypatch.setattr(mp.Simulation, "steady_state", interrupted)
    monkeypatch.setattr("manypass.reproduce.figure4.RATES", np.array([0.5, 0.7, 1.0]))
    with pytest.raises(KeyboardInterrupt):
        reproduce([4], tmp_path, quick=True)
    kept = {p.name.rsplit("-", 1)[0] for p in (tmp_path / "parts" / "figure4").iterdir()}
    assert kept == {"theory-0", "simulation-0", "theory-2", "theory-5"}


def test_a_whole_run_writes_pdf(tmp_path, monkeypatch):
    figure1_quick = FIGURES[1].parts(Scale(0, True))
    monkeypatch.setattr(FIGURES[1], "parts", lambda scale: figure1_quick)
    written = {path.name for path in reproduce([1], tmp_path)}
    assert written == {"figure1.png", "figure1.pdf", "figure1.nc", "report.md", "report.html"}
    assert (tmp_path / "figure1.pdf").read_bytes().startswith(b"%PDF")
    assert "shrink" in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_every_figure_names_what_it_computes():
    for number, module in FIGURES.items():
        for quick in (False, True):
            parts = module.parts(Scale(0, quick))
            files = [part.file() for part in parts]
            assert len(set(files)) == len(parts), number
        other = [part.file() for part in module.parts(Scale(1, False))]
        same = set(other) & {part.file() for part in module.parts(Scale(0, False))}
        exact = {p.file() for p in module.parts(Scale(0, False)) if p.theory}
        assert same <= exact, number  # another seed, other simulations


def symbols(z, z_infinite=np.nan, count=20):
    first = Symbol("F2", "t = 1", 1.0, 1.0 + 0.01 * z, 0.01, z, z_infinite)
    return [first] + [Symbol("R", "t = 1", 1.0, 1.0, 0.01, 0.5, 0.5)] * (count - 1)


def test_verdicts():
    assert Panel("a", symbols(3.0), 100).verdict.startswith("Agrees: the largest of 20 z-scores")
    assert Panel("a", symbols(4.5), 100).verdict.startswith("Disagrees")
    finite = Panel("a", symbols(4.5, 1.0), 100)
    assert finite.agrees
    assert "+4.5%" in finite.verdict
    assert finite.verdict.startswith("Agrees for N → ∞. The finite size shows")
    assert Panel("a", symbols(4.5, 4.5), 100).verdict.startswith("Disagrees")
    assert "no verdict" in Panel("a", symbols(4.5), 5).verdict
    assert Panel("a", symbols(4.5), 11).agrees  # few networks: error bars are uncertain


@pytest.mark.physics
def test_a_theory_that_is_two_per_cent_off_is_found_out():
    problem = figure2.PROBLEM.replace(task="regression")
    t = np.linspace(0, 4, 9)
    theory = mp.solve(problem, t)
    large, small = (
        mp.solve(problem, t, mp.Simulation(n=n, samples=s, seed=n))
        for n, s in ((200, 800), (100, 1600))
    )
    names = ["R", "Q", "Eg"]
    right = Panel("", list(compare(names, theory, large, small)), 800)
    assert len(right.symbols) == 3 * 8  # t = 0 is not compared
    assert right.agrees
    wrong = Panel("", list(compare(names, theory * 1.02, large, small)), 800)
    assert wrong.verdict.startswith("Disagrees")
    assert agreement.samples_of(large) == 800


def test_a_file_is_no_folder_to_write_to(tmp_path, capsys):
    (tmp_path / "a").write_text("")
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "2", "--quick", "--out", str(tmp_path / "a")])
    assert stop.value.code == 2
    assert "--out must be a folder, got the file" in capsys.readouterr().err
