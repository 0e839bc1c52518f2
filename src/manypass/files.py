"""Writing files: whole, beside what they replace, and with one line if that fails."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xarray as xr


def write(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write beside the target and rename: a file is as it was, or complete.

    Everything is in memory by then, so that a full disk meets no library that is half done.
    """
    target = Path(path)
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)
        partial.replace(target)
    except FileNotFoundError:
        folder = str(target.parent)
        raise FileNotFoundError(f"no folder {folder!r} to write {target.name!r} to") from None
    except OSError as error:
        reason = error.strerror or error
        raise OSError(error.errno, f"cannot write the file: {reason}", str(target)) from None
    finally:
        partial.unlink(missing_ok=True)


def missing(path: str | os.PathLike[str]) -> str:
    """Say what is not there: the file, or already its folder."""
    folder = Path(path).parent
    return f"no file {str(path)!r}" if folder.is_dir() else f"no folder {str(folder)!r}"


def netcdf(groups: Mapping[str, xr.Dataset]) -> bytes:
    """One or more datasets as the bytes of a netCDF file; the group of a single one is "/"."""
    import h5netcdf
    from xarray.backends import H5NetCDFStore

    buffer = io.BytesIO()
    with h5netcdf.File(buffer, "w") as file:
        for name, dataset in groups.items():
            place = file if name == "/" else file.create_group(name)
            dataset.dump_to_store(H5NetCDFStore(place))
    return buffer.getvalue()
