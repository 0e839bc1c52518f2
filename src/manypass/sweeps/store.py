"""A folder of finished points: one small file each, written whole or not at all."""

from __future__ import annotations

import os
import time
from pathlib import Path

from manypass import files
from manypass.sweeps.points import Answer, Point, plain, unseal

STALE = 3600.0  # seconds after which an unfinished file is nobody's


class Store:
    """Points by their key, as files `<key>.point`: nothing is unpickled, nothing half-written."""

    def __init__(self, folder: Path) -> None:
        self.folder = files.folder("out", folder)
        self.skipped: dict[str, str] = {}
        self.names: set[str] = set()
        for entry in os.scandir(folder):
            if entry.name.endswith(".part"):
                if time.time() - entry.stat().st_mtime > STALE:
                    Path(entry.path).unlink(missing_ok=True)
            elif entry.name.endswith(".point") and entry.is_file():
                self.names.add(entry.name)
            else:
                self.skipped[entry.name] = "foreign: not a point of a sweep"

    def get(self, point: Point) -> Answer | None:
        """Return the answer to a point, or None if there is none that can be trusted."""
        name = f"{point.key}.point"
        if name not in self.names:
            return None
        try:
            with open(f"{self.folder}/{name}", encoding="utf-8") as file:
                answer = unseal(file.read())
            if plain(answer["asked"]) != plain(point.asked):
                raise ValueError("foreign: it answers another question")
        except UnicodeDecodeError:
            self.skipped[name] = "foreign: not a text"
            return None
        except (OSError, ValueError, KeyError) as error:
            self.skipped[name] = str(error)
            return None
        return answer

    def __contains__(self, point: Point) -> bool:
        """Whether there is a file that answers the point, just now."""
        name = f"{point.key}.point"
        return name not in self.skipped and (self.folder / name).exists()

    def put(self, point: Point, text: str) -> None:
        """Keep the answer to a point."""
        target = self.folder / f"{point.key}.point"
        files.write(target, text)
        self.names.add(target.name)
