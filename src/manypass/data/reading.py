"""Data sets from files: CSV and Parquet, by column names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from manypass.data.dataset import Dataset

FORMATS = (".csv", ".parquet")
SETTINGS = ("path", "target", "test", "task", "standardize", "intercept")
DESCRIPTION = ("examples", "features", "test_examples", "names", "hash")


def read_dataset(
    path: Any,
    target: str,
    *,
    test: Any = None,
    task: str = "",
    standardize: bool = False,
    intercept: bool = False,
) -> Dataset:
    r"""Read a training set, and perhaps a test set, from files with named columns.

    Parameters
    ----------
    path, test : str or path
        CSV (the first line names the columns) or Parquet, by the ending of the name; Parquet
        needs pyarrow, which ``pip install 'manypass[data]'`` brings.
    target : str
        The column that holds the targets; all others are features.
    task, standardize, intercept
        As for `Dataset`.

    Examples
    --------
    >>> import manypass as mp
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.csv"
    >>> _ = path.write_text("size,age,good\n1.5,3,1\n0.5,2,-1\n2.5,9,1\n")
    >>> data = mp.read_dataset(path, "good")
    >>> data.names, data.task
    (('size', 'age'), 'classification')
    """
    if not isinstance(target, str):
        raise ValueError(f"`target` must be the name of a column, got {target!r}")
    train = _table("path", path)
    other = None if test is None else _table("test", test)
    for argument, file, table in (("path", path, train), ("test", test, other)):
        if table is not None and target not in map(str, table.columns):
            held = ", ".join(map(str, table.columns))
            raise ValueError(
                f"`target` must be a column of the `{argument}` {str(file)!r}, which has "
                f"{held:.200}, got {target!r}"
            )
    return Dataset(
        train,
        target,
        other,
        task=task,
        standardize=standardize,
        intercept=intercept,
        path=str(path),
        test=None if test is None else str(test),
    )


def from_dict(entries: dict[str, Any]) -> Dataset:
    """Read the data set that `Dataset.to_dict` or a problem file describes."""
    allowed = (*SETTINGS, *DESCRIPTION)
    for key in entries:
        if key not in allowed:
            raise ValueError(f"`{key}` is not a field of data: it has {', '.join(SETTINGS)}")
    if "path" not in entries:
        shape = f"{entries.get('examples')} × {entries.get('features')}"
        raise ValueError(
            f"`path` is missing: these data ({shape}) came from memory, not from a file; give "
            f"them as problem_of(result, data=...)"
        )
    if "target" not in entries:
        raise ValueError("`target` is missing: data from a file need the column of the targets")
    settings = {key: entries[key] for key in SETTINGS if key in entries}
    return matching(read_dataset(settings.pop("path"), **settings), entries)


def matching(data: Dataset, entries: dict[str, Any]) -> Dataset:
    """Return the data if they are the ones described."""
    if entries.get("hash", data.hash) != data.hash:
        raise ValueError(
            f"`data` are not those of the result: {data!r} has the hash {data.hash[:12]}…, "
            f"the result's data have {entries['hash'][:12]}…"
        )
    return data


def _table(argument: str, path: Any) -> Any:
    file = Path(path) if isinstance(path, str | Path) else None
    if file is None or file.suffix.lower() not in FORMATS:
        raise ValueError(f"`{argument}` must end in {' or '.join(FORMATS)}, got {str(path)!r}")
    if not file.is_file():
        raise ValueError(f"`{argument}`: there is no file {str(path)!r}")
    import pandas as pd

    try:
        table = pd.read_csv(file) if file.suffix.lower() == ".csv" else pd.read_parquet(file)
    except ImportError:
        raise ValueError(
            f"`{argument}` {str(path)!r}: Parquet needs pyarrow: pip install 'manypass[data]'"
        ) from None
    except (ValueError, OSError) as error:  # parser errors and bad encodings among them
        raise ValueError(f"`{argument}` {str(path)!r} cannot be read: {error}") from None
    nameless = [name for name in table.columns if str(name).startswith("Unnamed: ")]
    if nameless:
        raise ValueError(
            f"`{argument}` {str(path)!r}: column {nameless[0].removeprefix('Unnamed: ')} has no "
            f"name; if it is a row number, drop it"
        )
    return table
