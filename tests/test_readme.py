"""README as a new user would try it: pasted block after block, typed command after command."""

import ast
import re
import shlex
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from manypass.cli import main

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
    assert names["data"].n == 61
    assert names["found"].sizes == {"rate": 50, "decay": 30}
    assert len(answers) > 8


def test_the_numbers_in_comments_are_what_comes_out(session):
    checked = 0
    for source, value, comment in session[2]:
        told = re.match(r"\d+\.(\d+)", comment)
        if told:
            np.testing.assert_allclose(
                float(value), float(told[0]), atol=0.51 * 10.0 ** -len(told[1]), err_msg=source
            )
            checked += 1
    assert checked == 9


def shell_commands():
    """All lines of shell blocks but those of make, and commands that are to read a TOML block."""
    text = README.read_text("utf-8")
    lines = [line.partition("#")[0].strip() for block in blocks("") for line in block.splitlines()]
    lines = [line for line in lines if not line.startswith("make ")]
    assert all(COMMAND.match(line) for line in lines), lines
    files = re.findall(
        r"`(manypass \w+ (\w+\.toml)[^`]*)`:\n+```toml\n(.*?)^```$", text, re.M | re.S
    )
    assert len(files) == len(blocks("toml")) == 2
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
