"""Functions compiled by numba and kept on disk, wherever there is a place to keep them."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
from numba.core import config as numba_config
from numba.core.caching import FunctionCache

config: Any = numba_config  # its names are made at run time


class Kept(FunctionCache):
    """Numba's cache on disk; on a full disk what was compiled is used and not kept."""

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write one compiled version of the function, if that is possible."""
        with suppress(OSError):
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]


def njit(*, cache: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit`, whose cache need not find a folder it can write to.

    Numba keeps compiled functions beside their source or in the user's home. Where both are
    read-only they are kept in a temporary folder; where there is none either, nothing is kept.
    """

    def compiled(function: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(**options)(function)
        if cache and not config.DISABLE_JIT:
            dispatcher._cache = _kept(function) or dispatcher._cache
        return dispatcher

    return compiled


def _kept(function: Callable[..., Any]) -> Kept | None:
    with suppress(RuntimeError):  # numba has found no folder
        return Kept(function)  # type: ignore[no-untyped-call]
    before = config.CACHE_DIR
    try:
        config.CACHE_DIR = _temporary()
        return Kept(function)  # type: ignore[no-untyped-call]
    except (RuntimeError, OSError):
        return None
    finally:
        config.CACHE_DIR = before  # a user's own functions stay where they were


def _temporary() -> str:
    """Return a folder of this user's alone, if there is one: who writes to a cache can run code."""
    path = Path(tempfile.gettempdir(), f"manypass-{os.getuid()}")
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    mine = found.st_uid == os.getuid() and not found.st_mode & 0o077
    return str(path) if mine and stat.S_ISDIR(found.st_mode) else ""
