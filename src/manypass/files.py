"""Writing files: whole, beside what they replace, and with one line if that fails."""

from __future__ import annotations

import contextlib
import hashlib
import io
import operator
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr

SEAL = b"\nmanypass sha256 "


def write(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write beside the target and rename: a file is as it was, or complete.

    Everything is in memory by then, so that a full disk meets no library that is half done.
    """
    target = home(path)
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)
        partial.replace(target)
    except OSError as error:
        place, reason = str(target.parent), error.strerror or error
        if not target.parent.is_dir():
            raise FileNotFoundError(f"no folder {place!r} to write {target.name!r} to") from None
        if isinstance(error, IsADirectoryError):
            reason = "a folder has this name"
        if isinstance(error, FileNotFoundError):  # a file system of the machine's own
            reason = f"the folder {place!r} takes no files"
        raise OSError(error.errno, f"cannot write the file: {reason}", str(target)) from None
    finally:
        with contextlib.suppress(OSError):  # a name that cannot be
            partial.unlink(missing_ok=True)


def home(path: str | os.PathLike[str]) -> Path:
    """Return a path with its ~ spelt out, as the shell and pandas do."""
    return Path(os.path.expanduser(path))


def suffix(path: Any, allowed: Sequence[str]) -> str:
    """Return the ending of a file's name if it is one of those that are allowed."""
    from manypass import checks  # and with it numpy, which --help need not wait for

    if not isinstance(path, str | os.PathLike) or "\0" in str(path):
        raise ValueError(f"`path` must be the name of a file, got {checks.shown(path)}")
    ending = Path(path).suffix.lower()
    if ending not in allowed:
        raise ValueError(f"`path` must end in {', '.join(allowed)}, got {checks.shown(str(path))}")
    return ending


def folder(argument: str, path: Any) -> Path:
    """Make a folder if it is not there yet."""
    from manypass import checks

    if not isinstance(path, str | os.PathLike) or "\0" in str(path) or not str(path).strip():
        raise ValueError(f"`{argument}` must be the name of a folder, got {checks.shown(path)}")
    made, name = home(path), checks.shown(str(path), 300)
    try:
        if made.is_file():
            raise ValueError(f"`{argument}` must be a folder, got the file {name}")
        made.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise ValueError(f"`{argument}`: no folder {name} can be made: {reason}") from None
    return made


def missing(path: str | os.PathLike[str]) -> str:
    """Say what is not there: the file, which may be a folder, or already its folder."""
    if lost := lost_folder(path):
        return f"no file {str(path)!r}: {lost}"
    if os.path.isdir(path):  # False of a name that is too long, where Path raises
        return f"no file {str(path)!r}: it is a folder"
    folder = Path(path).parent
    return f"no file {str(path)!r}" if os.path.isdir(folder) else f"no folder {str(folder)!r}"


def lost_folder(path: str | os.PathLike[str]) -> str:
    """Say that the folder one is in was deleted, if it was, and a path is relative to it."""
    try:
        os.getcwd()
    except FileNotFoundError:
        told = "the folder that you are in has been deleted: go to another one (cd)"
        return "" if os.path.isabs(path) else told
    return ""


def toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a TOML file; files that its data name by a relative path are beside it.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "problem.toml"
    >>> _ = file.write_text("data = { path = 'train.csv', target = 'y' }")
    >>> toml(file)["data"]["path"] == str(file.with_name("train.csv"))
    True
    """
    import tomllib

    if not str(path).strip():
        raise ValueError(f"the name of the TOML file is empty, got {str(path)!r}")
    try:
        entries = tomllib.loads(home(path).read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a TOML file: {error}") from None
    except FileNotFoundError:
        raise ValueError(f"there is {missing(path)}") from None
    except OSError as error:
        raise ValueError(f"cannot read {str(path)!r}: {error.strerror}") from None
    data = entries.get("data")
    if isinstance(data, dict):
        for name in ("path", "test"):
            if isinstance(data.get(name), str) and data[name]:
                data[name] = str(home(path).parent / home(data[name]))
    return entries


def netcdf(groups: Mapping[str, xr.Dataset]) -> bytes:
    """One or more datasets as the bytes of a netCDF file; the group of a single one is "/"."""
    import h5netcdf
    from xarray.backends import H5NetCDFStore

    buffer = io.BytesIO()
    with h5netcdf.File(buffer, "w") as file:
        for name, dataset in groups.items():
            place = file if name == "/" else file.create_group(name)
            dataset.dump_to_store(H5NetCDFStore(place))
    content = buffer.getvalue()
    return content + _seal(content)


def check_seal(content: bytes) -> None:
    """Refuse a netCDF file of ours that was damaged: HDF5 may look for its end for ever.

    The digest stands behind the end of the file, where readers do not look; a program that changes
    the file in place removes it. It may itself be what was damaged: most of its first words are
    enough to know it.
    """
    size = len(_seal(b""))
    body, seal = content[:-size], content[-size:]
    known = sum(map(operator.eq, seal, SEAL)) > len(SEAL) / 2
    if known and seal != _seal(body):
        raise ValueError("it is damaged, some bytes are not those that were saved")


def open_netcdf(path: str | os.PathLike[str], content: bytes) -> xr.Dataset:
    """Open a netCDF file of this content."""
    import h5py
    import xarray as xr

    check_seal(content)
    with h5py.File(path, "r") as file:  # h5netcdf, stopped half-way, would print that it was
        file.attrs.get("_nc3_strict")
    return xr.load_dataset(path, engine="h5netcdf")


def _seal(content: bytes) -> bytes:
    return SEAL + hashlib.sha256(content).hexdigest().encode()
