"""Functions compiled by numba and kept on disk, wherever there is a place to keep them."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

with warnings.catch_warnings():
    warnings.filterwarnings("error", "Environment variable", RuntimeWarning)  # with its traceback
    try:
        import numba
        from numba import types
        from numba.core import config as numba_config
        from numba.core.caching import FunctionCache, IndexDataCacheFile
    except (RuntimeWarning, ValueError) as error:
        unread = re.search(r"variable '(\w+)'", str(error))
        name = unread[1] if unread else "NUMBA_NUM_THREADS"
        least = ": it must be a whole number from 1" if name == "NUMBA_NUM_THREADS" else ""
        raise ValueError(
            f"{name} = {os.environ.get(name)!r} in the environment is nothing that numba can "
            f"take{least}; mend or unset it"
        ) from None

config: Any = numba_config  # its names are made at run time
# Sums may be reordered, so that they vectorise; inf and NaN keep their meaning.
FAST: dict[str, Any] = {
    "nogil": True,
    "cache": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}


class Files(IndexDataCacheFile):
    """Versions of a function under names of their own, and an index of them.

    Numba counts them: of two processes that add a version at once, each could read the other's.
    """

    def save(self, key: Any, data: Any) -> None:
        """Write a version, and then that it is there."""
        kinds = [k.dispatcher._uuid if isinstance(k, types.Dispatcher) else str(k) for k in key[0]]
        name = hashlib.sha256(repr((kinds, *key[1:])).encode()).digest()
        name = self._data_name(int.from_bytes(name[:8]))  # type: ignore[no-untyped-call]
        self._save_data(name, data)  # type: ignore[no-untyped-call]
        self._save_index({**self._load_index(), key: name})  # type: ignore[no-untyped-call]


class Kept(FunctionCache):
    """Numba's cache on disk; on a full disk what was compiled is used and not kept.

    What was compiled for a function among its arguments is kept if that function is.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        self._cache_file.__class__ = Files

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Read what was compiled for these types, if it is there."""
        if not _lasting(sig):
            return None
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except (AttributeError, ImportError):  # names a function that is no more
            with suppress(OSError):
                self.flush()  # type: ignore[no-untyped-call]
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write one compiled version of the function, if that is possible."""
        if _lasting(sig):
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
            if isinstance(dispatcher._cache, Kept):
                # As an argument it is a type of its own: the same one in every process.
                stamp = dispatcher._cache._impl.locator.get_source_stamp()
                dispatcher._set_uuid(f"{function.__module__}.{function.__qualname__} {stamp}")
        return dispatcher

    return compiled


def _lasting(sig: Any) -> bool:
    """Tell whether all functions among the arguments are the same ones in another process."""
    given = [kind.dispatcher for kind in sig if isinstance(kind, types.Dispatcher)]
    return all(isinstance(function._cache, Kept) for function in given)


def _kept(function: Callable[..., Any]) -> Kept | None:
    with suppress(RuntimeError):  # numba has found no folder
        return Kept(function)
    before = config.CACHE_DIR
    try:
        config.CACHE_DIR = _temporary()
        return Kept(function)
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
