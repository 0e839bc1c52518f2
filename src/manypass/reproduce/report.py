"""The report of a run: figures, captions, verdicts, and the z-score of every symbol."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from pathlib import Path

from manypass import __version__, files
from manypass.reproduce.agreement import Panel, Symbol
from manypass.reproduce.parts import Scale

INTRODUCTION = (
    "Lines are theory for N → ∞, symbols are simulations with one standard error. A z-score is the "
    "difference between symbol and line in units of their standard error; among n independent ones "
    "the largest is about 2 for n = 20 and 3 for n = 400. A panel agrees if its largest z-score "
    "would be exceeded by chance in more than 1 of 100 such panels (Student's t with the number of "
    "simulated networks, corrected for the number of symbols). The last column extrapolates "
    "simulations of the stated and of half the size to N → ∞, assuming that finite size adds a "
    "term in 1/N. A dash stands for what was not computed."
)
HEAD = ("symbol", "at", "theory", "simulated", "standard error", "z", "z for N → ∞")
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; background: #fff }
img { max-width: 100%; width: 32rem; display: block; margin: 1rem 0 }
table { border-collapse: collapse; font-size: 14px; margin: 1rem 0 }
th, td { padding: 2px 10px; text-align: right; border-bottom: 1px solid #ddd }
th:first-child, td:first-child, .verdicts td { text-align: left }
.large { font-weight: bold; color: #b00 }
summary { cursor: pointer }
"""


@dataclass(frozen=True)
class Chapter:
    """What the report says of one figure."""

    number: int
    pictures: list[str]
    caption: str
    panels: list[Panel]


def write_report(folder: Path, chapters: list[Chapter], scale: Scale) -> list[Path]:
    """Write report.md and report.html."""
    how = f"manypass {__version__}, seed {scale.seed}" + (
        ": a quick version with a twentieth of the samples, whose verdicts are coarse"
        if scale.quick
        else ", at the paper's own parameters"
    )
    texts = {"report.md": markdown(chapters, how), "report.html": page(chapters, how)}
    for name, text in texts.items():
        files.write(folder / name, text)
    return [folder / name for name in texts]


def row(symbol: Symbol) -> list[str]:
    """One line of the table of z-scores."""
    numbers = zip(
        (symbol.theory, symbol.value, symbol.error, symbol.z, symbol.z_infinite),
        (".5g", ".5g", ".2g", "+.2f", "+.2f"),
        strict=True,
    )
    shown = ["–" if math.isnan(x) else format(x, how) for x, how in numbers]
    return [symbol.name, symbol.at, *shown]


def markdown(chapters: list[Chapter], how: str) -> str:
    """Return the report as Markdown."""
    lines = ["# Figures", "", f"({how})", "", INTRODUCTION, "", "| panel | verdict |", "|---|---|"]
    lines += [f"| {panel.title} | {panel.verdict} |" for c in chapters for panel in c.panels]
    for chapter in chapters:
        lines += ["", f"## Fig. {chapter.number}", ""]
        lines += [f"![{name}]({name}.png)" for name in chapter.pictures]
        lines += ["", chapter.caption]
        for panel in chapter.panels:
            lines += ["", f"### {panel.title}", "", panel.verdict]
            lines += [f"\n{remark}" for remark in panel.remarks]
            lines += ["", f"<details><summary>All {len(panel.symbols)} symbols</summary>", ""]
            lines += [_cells(HEAD), _cells(["---"] * len(HEAD))]
            lines += [*(_cells(row(symbol)) for symbol in panel.symbols), "", "</details>"]
    return "\n".join(lines) + "\n"


def _cells(values: tuple[str, ...] | list[str]) -> str:
    return f"| {' | '.join(values)} |"


def page(chapters: list[Chapter], how: str) -> str:
    """Return the report as one HTML page beside the pictures."""
    verdicts = "".join(
        f"<tr><td>{panel.title}</td><td>{html.escape(panel.verdict)}</td></tr>"
        for c in chapters
        for panel in c.panels
    )
    body = "".join(map(_chapter, chapters))
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>manypass: figures</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<style>{STYLE}</style><h1>Figures</h1><p>{html.escape(how)}</p>"
        f"<p>{INTRODUCTION}</p><table class=verdicts><tbody>{verdicts}</table>{body}</html>\n"
    )


def _chapter(chapter: Chapter) -> str:
    pictures = "".join(
        f'<img src="{name}.png" alt="Fig. {chapter.number}">' for name in chapter.pictures
    )
    panels = "".join(map(_panel, chapter.panels))
    return f"<h2>Fig. {chapter.number}</h2>{pictures}<p>{html.escape(chapter.caption)}</p>{panels}"


def _panel(panel: Panel) -> str:
    head = "".join(f"<th>{name}" for name in HEAD)
    rows = "".join(_row(symbol) for symbol in panel.symbols)
    remarks = "".join(f"<p>{html.escape(remark)}</p>" for remark in panel.remarks)
    return (
        f"<h3>{panel.title}</h3><p>{html.escape(panel.verdict)}</p>{remarks}"
        f"<details><summary>All {len(panel.symbols)} symbols</summary>"
        f"<table><thead><tr>{head}<tbody>{rows}</table></details>"
    )


def _row(symbol: Symbol) -> str:
    cells = row(symbol)
    marked = ' class="large"' if abs(symbol.z) > 3 else ""
    return "<tr>" + "".join(
        f"<td{marked if i == 5 else ''}>{html.escape(cell)}" for i, cell in enumerate(cells)
    )
