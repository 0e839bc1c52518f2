"""The paper's figures, and four that it could not draw, at the paper's own parameters."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import matplotlib as mpl
import xarray as xr

from manypass import files, notebooks, plot
from manypass.reproduce.parts import Part, Parts, Scale
from manypass.reproduce.report import Chapter, write_report
from manypass.reproduce.style import LOOK

FIGURES = {n: import_module(f"{__name__}.figure{n}") for n in range(1, 9)}


def reproduce(
    figures: Sequence[int],
    folder: Path,
    *,
    seed: int = 0,
    quick: bool = False,
    progress: bool = False,
) -> list[Path]:
    """Compute the asked figures, all by default, into a folder; return the files written.

    Every piece is kept in `folder/parts` when it is finished, so that an interrupted run goes on
    where it was. Each figure gets a .png, a .pdf (not if `quick`) and a .nc with every plotted
    number; report.md and report.html show them with captions and say how well symbols and lines
    agree.
    """
    chosen = list(dict.fromkeys(figures)) or list(FIGURES)
    for number in chosen:
        if number not in FIGURES:
            raise ValueError(
                f"`figures` must be among {', '.join(map(str, FIGURES))}, got {number}"
            )
    files.folder("out", folder)
    scale = Scale(seed, quick)
    work = {number: FIGURES[number].parts(scale) for number in chosen}
    places = {number: folder / "parts" / f"figure{number}" for number in chosen}
    missing = (p.seconds for n in chosen for p in work[n] if not (places[n] / p.file()).exists())
    clock = Clock(sum(missing), progress, 0.0 if quick else 1.0)
    written, chapters = [], []
    for number in chosen:
        kept = places[number]
        kept.mkdir(parents=True, exist_ok=True)
        parts = {part.name: clock.get(part, kept) for part in work[number]}
        drawn, chapter = _figure(number, parts, folder, (".png",) if quick else (".png", ".pdf"))
        written += drawn
        chapters.append(chapter)
    clock.close()
    return [*written, *write_report(folder, chapters, scale)]


def _figure(
    number: int, parts: Parts, folder: Path, formats: tuple[str, ...]
) -> tuple[list[Path], Chapter]:
    module, written = FIGURES[number], []
    with mpl.rc_context(LOOK):
        pictures = module.draw(parts)
        for name, figure in pictures.items():
            for suffix in formats:
                written.append(folder / f"{name}{suffix}")
                plot.save_figure(figure, written[-1])
    numbers = folder / f"figure{number}.nc"
    files.write(numbers, files.netcdf(parts))
    panels = module.panels(parts)
    return [*written, numbers], Chapter(number, list(pictures), module.caption(parts), panels)


class Clock:
    """Shows what is computed and how long the rest will take; adds up the time of theory.

    Where no bar can be drawn, it says so in a line for each figure. `pace` are the seconds that an
    expected one is thought to take, 0 if that is not known before some are over.
    """

    def __init__(self, expected: float, progress: bool, pace: float = 1.0) -> None:
        layout = "{desc:<34}{percentage:3.0f}%|{bar}| {elapsed} spent, {remaining} left"
        self.lines = progress and not notebooks.draws_bars()
        drawn = progress and not self.lines
        self.bar = notebooks.bar(total=expected, bar_format=layout, disable=not drawn)
        self.spent = {"theory": 0.0, "simulation": 0.0}
        self.left, self.done, self.pace, self.last = expected, 0.0, pace, ""

    def get(self, part: Part, folder: Path) -> xr.Dataset:
        """Get one part and move on."""
        self.bar.set_description_str(f"{folder.name} {part.name}")
        if self.lines and folder.name != self.last:
            wait = self.left * self.pace
            left = f": some {notebooks.span(wait)} left" if wait else ""
            print(f"manypass: {folder.name}{left}", file=sys.stderr, flush=True)
            self.last = folder.name
        result, seconds = part.get(folder)
        self.spent["theory" if part.theory else "simulation"] += seconds
        if seconds:  # not of a part that was kept
            self.left, self.done = max(self.left - part.seconds, 0.0), self.done + part.seconds
            self.pace = sum(self.spent.values()) / self.done
            self.bar.update(part.seconds)
        return result

    def close(self) -> None:
        """Say how long it took."""
        self.bar.close()
        print(", ".join(f"{what} {seconds:.0f} s" for what, seconds in self.spent.items()))
