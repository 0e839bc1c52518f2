"""README as a new user would try it: pasted block after block, typed command after command."""

import ast
import re
import shlex
import tomllib
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from manypass.cavity.method import RTOL
from manypass.cli import main
from manypass.reproduce import figure2
from manypass.reproduce.parts import Scale

README = Path(__file__).parents[1] / "README.md"
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(\.venv/bin/)?manypass ")


def blocks(language):
    return [text for name, text in FENCED.findall(README.read_text("utf-8")) if name == language]


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """The folder and the names after all Python blocks; (line, value, comment) of each answer."""
    names, answers = {"__name__": "__main__"}, []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("readme"))
        for block in blocks("python"):
            lines = block.splitlines()
            for node in ast.parse(block).body:
                source = ast.get_source_segment(block, node)
                if isinstance(node, ast.Expr):
                    comment = lines[node.end_lineno - 1][node.end_col_offset :].strip(" #")
                    answers.append((source, eval(source, names), comment))
                else:
                    exec(source, names)
        yield Path.cwd(), names, answers


def test_the_python_blocks_run_one_after_another(session):
    folder, names, answers = session
    assert (folder / "curves.png").stat().st_size > 10_000
    assert names["own"].data.n == 10
    assert {"R_se", "Eg_se"} <= {*names["general"]}
    assert len(answers) == 8


def test_the_numbers_in_comments_are_what_comes_out(session):
    checked = 0
    for source, value, comment in session[2]:
        told = re.match(r"\d+\.(\d+)", comment)
        if told:
            np.testing.assert_allclose(
                float(value), float(told[0]), atol=0.51 * 10.0 ** -len(told[1]), err_msg=source
            )
            checked += 1
    assert checked == 5


def test_every_other_number_is_what_it_stands_for():
    """Those of prose and captions: of the figure, of defaults, of the package."""
    text = FENCED.sub("", README.read_text("utf-8"))
    text = re.sub(r"\]\(.*?\)|<[^>]*>|`[^`]*`", "", text)  # links, tags and code
    shown = next(part for part in figure2.parts(Scale()) if part.name == "simulation")
    problem, method = figure2.PROBLEM, shown.arguments["method"]
    root = README.parent
    python = tomllib.loads((root / "pyproject.toml").read_text())["project"]["requires-python"]
    paper = re.search(r"cond-mat/(\d+)", (root / "CITATION.cff").read_text())[1]
    known = {problem.data.alpha, problem.rate, problem.decay, method.n, method.samples, 100 * RTOL}
    known |= {float(python.removeprefix(">=")), float(paper)}
    licence = float(re.search(r"BSD-(\d)", (root / "pyproject.toml").read_text())[1])
    found = [float(number) for number in re.findall(r"(?<![\w.])\d+(?:\.\d+)?", text)]
    assert {*found} <= known | {licence}, {*found} - known
    assert {problem.data.alpha, problem.rate, problem.decay, method.n, method.samples} <= {*found}


def test_it_is_a_page_and_leads_on():
    lines = README.read_text("utf-8").splitlines()
    assert len(lines) <= 120
    links = re.findall(r"\]\((?!http)(.*?)\)|src=\"(.*?)\"", "\n".join(lines))
    assert len(links) > 15
    for link in links:
        assert (README.parent / "".join(link)).exists(), link


def shell_commands():
    """All lines of shell blocks but those of make, and commands that are to read a TOML block."""
    text = README.read_text("utf-8")
    lines = [line.partition("#")[0].strip() for block in blocks("") for line in block.splitlines()]
    lines = [line for line in lines if not line.startswith("make ")]
    assert all(COMMAND.match(line) for line in lines), lines
    files = re.findall(
        r"`(manypass \w+ (\w+\.toml)[^`]*)`:\n+```toml\n(.*?)^```$", text, re.M | re.S
    )
    assert len(files) == len(blocks("toml"))  # those of the site run while it is built
    found = [(line, None, None) for line in lines] + files
    return [(shlex.split(line)[1:], file, entries) for line, file, entries in found]


@pytest.mark.parametrize(
    ("words", "file", "entries"),
    [command for command in shell_commands() if command[0][0] != "explore"],
    ids=lambda v: " ".join(v[:2]) if isinstance(v, list) else "",
)
def test_a_command_runs(session, monkeypatch, capsys, words, file, entries):
    monkeypatch.chdir(session[0])  # where the Python blocks have left train.csv and test.csv
    if file:
        Path(file).write_text(entries, encoding="utf-8")
    main(words)
    found = capsys.readouterr()
    assert len(found.out.splitlines()) >= 1
    assert "manypass:" not in found.err
    for flag in ("--out", "--plot"):
        if flag in words:
            assert Path(words[words.index(flag) + 1]).exists()


def test_the_explorer_runs(explorer):
    """Started without a browser, and stopped by the fixture."""
    assert ["explore"] in [words for words, _, _ in shell_commands()]
    with urllib.request.urlopen(explorer) as page:
        assert b"manypass" in page.read()
