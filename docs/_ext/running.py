"""Two things that running pages need: whole streams, and downloads that hold what was kept."""

from functools import wraps
from typing import Any

from myst_nb.core.execute.cache import NotebookClientCache
from nbclient import NotebookClient
from sphinx.application import Sphinx


def whole_streams(init: Any) -> Any:
    """Let what a cell prints be one output; as chunks, or joined by myst_nb, lines are broken."""

    @wraps(init)
    def start(self: Any, *args: Any, **options: Any) -> None:
        init(self, *args, **{"coalesce_streams": True, **options})

    return start


def kept_in_downloads(start: Any) -> Any:
    """Put outputs that were kept into the notebook that is written; myst_nb writes it without."""

    @wraps(start)
    def started(self: Any) -> None:
        given = self.notebook
        start(self)
        for cell, kept in zip(given.cells, self.notebook.cells, strict=True):
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = kept.outputs, kept.execution_count

    return started


def setup(app: Sphinx) -> dict[str, object]:
    """Change both classes."""
    NotebookClient.__init__ = whole_streams(NotebookClient.__init__)
    NotebookClientCache.start_client = kept_in_downloads(NotebookClientCache.start_client)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
