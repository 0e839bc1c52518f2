"""Data sets from files: CSV, TSV and Parquet, by column names."""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from manypass import checks
from manypass.data import columns, tidying
from manypass.data.dataset import Dataset, in_memory
from manypass.files import home, missing

SEPARATORS = {".csv": ",", ".tsv": "\t", ".csv.gz": ",", ".tsv.gz": "\t"}
SEPARATORS |= dict.fromkeys((".txt", ".dat"), r"\s+")
FORMATS = (*SEPARATORS, ".parquet")
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+(e[+-]?\d+)?\s*", re.IGNORECASE)
THOUSANDS = re.compile(r"\s*[+-]?\d{1,3}(,\d{3})+(\.\d*)?\s*")
BLANKS = re.compile(r"\s*[+-]?\d{1,3}(([\s'’])\d{3})(\2\d{3})*([.,]\d*)?\s*")  # 1 234, 1'234
GROUPING = (",", ".", "'", " ")
GROUPED = re.compile(r"[+-]?\d{1,3}([.'\u2019 \u00a0\u202f])\d{3}(?:\1\d{3})*(?:,\d*)?")
DECIMALS = (".", ",")
OTHERS, LINES = (";", "\t", "|", ","), 20  # what may separate entries, and where it is looked for
SAID_SEP = re.compile(r'"?sep=(.)"?', re.IGNORECASE)  # as Excel writes it, on the first line
TOO_MANY = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")  # as pandas says it
UNCLOSED = re.compile(r"EOF inside string starting at row (\d+)")
TYPED = {"tab": "\t", "\\t": "\t"}  # what can be typed in a shell
TEXT = ("sep", "encoding", "decimal", "thousands")  # how a text file is written
WRITTEN = {"\t": "tab"}
TIDYING = ("drop", "drop_constant", "one_hot", "positive", *TEXT)
SETTINGS = ("path", "target", "test", "task", "standardize", "intercept", *TIDYING)
Style = dict[str, Any]  # of a text file: sep, encoding, decimal, thousands
DESCRIPTION = ("examples", "features", "test_examples", "names", "hash")


def read_dataset(
    path: Any,
    target: str,
    *,
    test: Any = None,
    task: str = "",
    standardize: bool = False,
    intercept: bool = False,
    drop: Any = (),
    drop_constant: bool = False,
    one_hot: Any = (),
    positive: Any = None,
    sep: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
) -> Dataset:
    r"""Read a training set, and perhaps a test set, from files with named columns.

    Parameters
    ----------
    path, test : str or path
        By the ending of the name CSV or TSV (the first line names the columns), these also
        compressed (.csv.gz), columns apart by spaces (.txt, .dat), or Parquet, which needs pyarrow:
        ``pip install 'manypass[data]'`` brings it. Lines before the names that begin with # are
        comments, but for one that names the columns.
    target : str
        The column that holds the targets; all others are features.
    task, standardize, intercept, drop, drop_constant, one_hot, positive
        As for `Dataset`.
    sep : str, optional
        What separates the entries of a line: one ASCII character, 'tab', or '\s+' for any space;
        by default a comma, a tab in TSV, any space in .txt and .dat.
    encoding : str, optional
        Of text files, such as 'latin-1'; by default UTF-8.
    decimal : {".", ","}, optional
        What stands before the decimals in text files; by default a point.
    thousands : {",", ".", "'", " "}, optional
        What groups the digits of numbers in text files, as in 1,234.5; by default nothing.

    Examples
    --------
    >>> import manypass as mp
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.csv"
    >>> _ = path.write_text("id;size;age;good\n1;1.5;3;yes\n2;0.5;2;no\n3;2.5;9;yes\n")
    >>> data = mp.read_dataset(path, "good", sep=";", drop=["id"], positive="yes")
    >>> data.names, data.task, data.y
    (('size', 'age'), 'classification', array([ 1., -1.,  1.]))
    """
    if not isinstance(target, str):
        raise ValueError(f"`target` must be the name of a column, got {checks.shown(target)}")
    drop = tidying.column_list("drop", drop)
    files = {"path": path} if test is None else {"path": path, "test": test}
    style: Style = {"sep": sep, "encoding": encoding, "decimal": decimal}
    style["thousands"] = thousands
    spared = bool(drop_constant)  # whether it is one of two is checked with the others
    tables = {n: _table(n, file, target, style, drop, spared) for n, file in files.items()}
    for name, table in tables.items():
        held = list(map(str, table.columns))
        shown = ", ".join(n if n == n.strip() else repr(n) for n in held)
        if target not in held:
            one = "; it is one column: is `sep` right?" if len(held) == 1 else ""
            if one and _suffix(file := home(files[name])) in SEPARATORS:
                one += _looks(file, _text_options(file, target, style))
            raise ValueError(
                f"`target` must be a column of the `{name}` {str(files[name])!r}, which has "
                f"{shown:.200}, got {checks.shown(target)}{one}"
            )
        _check_points(
            f"`{name}` {str(files[name])!r}", table, (*drop, *_listed(one_hot)), decimal == ","
        )
    try:
        return Dataset(
            tables["path"],
            target,
            tables.get("test"),
            task=task,
            standardize=standardize,
            intercept=intercept,
            drop=drop,
            drop_constant=drop_constant,
            one_hot=one_hot,
            positive=positive,
        ).read_from(path=str(path), test=None if test is None else str(test), **style)
    except columns.RowError as error:
        file = home(files["test" if error.argument.endswith("_test") else "path"])
        if _suffix(file) not in SEPARATORS:  # Parquet has rows, no lines
            raise
        place = f"line {line_of(file, error.row, target, style)} of {str(file)!r}"
        raise ValueError(error.placed(place)) from None


def line_of(file: Path, row: int, target: str, style: Style) -> int:
    """Return the line on which a row of a text file begins; the names of the columns come first.

    Lines that pandas skips count, and so do those within quotes.
    """
    options = _text_options(file, target, style)
    spaces = options["sep"] == r"\s+"
    with _opened(file, options["encoding"]) as text, _cells_of_any_length():
        for _ in range(options["skiprows"]):
            next(text)
        entries = csv.reader(text, delimiter=" " if spaces else options["sep"])
        last, rows = 0, 0 if "names" in options else -1  # the names come before row 0
        for words in entries:
            begun, last = last + 1, entries.line_num
            rows += any(word.strip() for word in words) or (len(words) > 1 and not spaces)
            if rows > row:
                break
    return begun + int(options["skiprows"])


@contextlib.contextmanager
def _cells_of_any_length() -> Iterator[None]:
    """Let csv read cells as long as pandas has read them."""
    usual = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(usual)


def _opened(file: Path, encoding: str) -> Any:
    opened: Any = gzip.open if file.name.lower().endswith(".gz") else open
    return opened(file, "rt", encoding=encoding, newline="")


def _head(file: Path, target: str, sep: str, encoding: str, given: bool) -> dict[str, Any]:
    """Skip comments at the head; the last of them may name the columns, as numpy writes them.

    A first line sep=; names the separator, unless one is `given`.
    """
    count, words = 0, list[str]()
    with _opened(file, encoding) as text:
        for line in text:
            plain = line.lstrip("\ufeff")
            if not count and (said := SAID_SEP.fullmatch(plain.rstrip("\r\n"))):
                count, sep = 1, sep if given else said[1]
                continue
            before, words = words, plain.split(None if sep == r"\s+" else sep)
            if not plain.startswith("#"):
                break
            words = line.lstrip("\ufeff# ").split(None if sep == r"\s+" else sep)
            count += 1
        else:
            before = []
    names = [name.strip() for name in before] if count else []
    if target in names and len(names) == len(words) > 1:
        return {"sep": sep, "skiprows": count, "header": None, "names": names}
    return {"sep": sep, "skiprows": count}


def from_dict(entries: dict[str, Any]) -> Dataset:
    """Read the data set that `Dataset.to_dict` or a problem file describes."""
    allowed = (*SETTINGS, *DESCRIPTION)
    for key in entries:
        if key not in allowed:
            hint = checks.meant(key, SETTINGS)
            raise ValueError(f"`{key}` is not a field of data: it has {', '.join(SETTINGS)}{hint}")
    if not isinstance(entries.get("hash", ""), str):
        raise ValueError(f"`hash` must be a text, got {checks.shown(entries['hash'])}")
    if "path" not in entries:
        if (known := in_memory(entries)) is not None:
            return known
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


def _suffix(file: Path) -> str | None:
    return next((end for end in FORMATS if file.name.lower().endswith(end)), None)


def _table(
    argument: str, path: Any, target: str, style: Style, drop: tuple[str, ...], spared: bool
) -> Any:
    if not isinstance(path, str | Path):
        frame = ": Dataset(frame, target) takes a frame" if columns.is_frame(path) else ""
        odd = checks.shown(path)
        raise ValueError(f"`{argument}` must be the name of a file, got {odd}{frame}")
    if "://" in str(path):
        odd = checks.shown(path)
        raise ValueError(f"`{argument}` must be a file of this machine, got {odd}: download it")
    file = home(path)
    suffix = _suffix(file)
    if suffix is None:
        odd = checks.shown(str(path))
        raise ValueError(f"`{argument}` must end in {', '.join(FORMATS)}, got {odd}")
    if not os.path.isfile(file):  # False of a name that is too long, where Path raises
        raise ValueError(f"`{argument}`: there is {missing(file)}")
    import pandas as pd

    for name, given in style.items() if suffix == ".parquet" else ():
        if given is not None:
            raise ValueError(f"`{name}` (got {given!r}) is for text files, not for {str(path)!r}")
    text: dict[str, Any] = {}
    try:
        text = {} if suffix == ".parquet" else _text_options(file, target, style)
        table = pd.read_csv(file, **text) if text else columns.with_rows(pd.read_parquet(file))
        if text and style["thousands"] is not None:
            _check_groups(f"`{argument}` {str(path)!r}", table, file, text)
        if text and "names" not in text:  # pandas would call the second of two columns 'a' a.1
            first = pd.read_csv(file, **text, header=None, nrows=1, dtype=str).iloc[0].dropna()
            _check_header(f"`{argument}` {str(path)!r}", list(map(str, first)))
            columns.check_distinct(argument, first)
        if text:  # pandas takes blanks off before a name alone
            table.columns = [n.strip() if isinstance(n, str) else n for n in table.columns]
            for name in table.columns[[d.kind not in "biuf" for d in table.dtypes]].unique():
                if not isinstance(table[name], pd.DataFrame):  # two of one name are refused below
                    table[name] = columns.stripped(table[name])  # nor after a text
    except ImportError:
        raise ValueError(
            f"`{argument}` {str(path)!r}: Parquet needs pyarrow: pip install 'manypass[data]'"
        ) from None
    except UnicodeError as error:
        raise ValueError(
            f"`{argument}` {str(path)!r} cannot be read as {style['encoding'] or 'UTF-8'}: "
            f"{error}; say its `encoding`"
        ) from None
    except _OptionError:
        raise
    except (ValueError, OSError, EOFError, zlib.error) as error:  # parser errors among them
        hint = _looks(file, text) if text else ""
        raise ValueError(f"`{argument}` {str(path)!r} {_unreadable(error, hint)}") from None
    columns.check_distinct(argument, table.columns)
    if text and not table.index.equals(pd.RangeIndex(len(table))):  # row names, for pandas
        named = len(table.columns)
        entries, hint = named + table.index.nlevels, " If it is, name them all, row names too; a "
        hint += "title above the names must go, or begin with #"
        raise ValueError(
            f"`{argument}` {str(path)!r}: line {1 + text['skiprows']} names {named} "
            f"column{'s' * (named > 1)}, those after it have {entries} entries: "
            f"is `sep` right?{_looks(file, text) or hint}"
        )
    if not len(table):
        raise ValueError(f"`{argument}` {str(path)!r} has no examples, names of columns alone")
    nameless = [n for n in map(str, table.columns) if n.startswith("Unnamed: ") and n not in drop]
    empty = [n for n in nameless if tidying.same(table[n])]
    if spared:
        table = table.drop(columns=empty)
        nameless = [n for n in nameless if n not in empty]
    if nameless:
        what = _nameless(nameless, empty, len(table.columns) - len(nameless))
        raise ValueError(f"`{argument}` {str(path)!r}: {what}")
    return table


def _nameless(names: list[str], empty: list[str], named: int) -> str:
    """Say which columns have no name, all at once, and what may be done about them."""
    numbers = [name.removeprefix("Unnamed: ") for name in names]
    *rest, last = numbers
    which = f"columns {', '.join(rest)} and {last} have" if rest else f"column {last} has"
    it = "them" if rest else "it"
    if names == empty:
        both = f"no name and {'are' if rest else 'is'} empty, or the same in all rows"
        return f"{which} {both}: leave {it} out by `drop_constant`"
    if named == 1 and rest:
        return f"{which} no name: a title above the names must go, or begin with #"
    listed = repr(names[0]) if len(names) == 1 else repr(names)
    what = "they hold row numbers, or nothing" if rest else "it is a row number"
    return f"{which} no name; if {what}, leave {it} out by `drop` = {listed}"


def _looks(file: Path, options: dict[str, Any]) -> str:
    """Say which other separator would make as many entries of each of the first lines."""
    try:
        with _opened(file, options["encoding"]) as text:
            lines = [line.rstrip("\r\n") for line, _ in zip(text, range(LINES), strict=False)]
    except (OSError, EOFError, UnicodeError, zlib.error):
        return ""
    lines = [line for line in lines[options["skiprows"] :] if line.strip()]
    for other in (sep for sep in OTHERS if sep != options["sep"]):
        held = [line for line in lines if other in line]
        if len(held) < 2 or held != lines[-len(held) :] or len({h.count(other) for h in held}) > 1:
            continue  # but for a title above them, they are not all alike
        cells = [cell for line in held[1:] for cell in line.split(other)]
        commas = options["decimal"] == "." and any(map(DECIMAL_COMMA.fullmatch, cells))
        sep = f"`sep` = {WRITTEN.get(other, other)!r}" + " and `decimal` = ','" * commas
        title = "" if held == lines else "; and a title above the names must go, or begin with #"
        return f" It looks like {sep}{title}"
    return ""


def _unreadable(error: Exception, hint: str) -> str:
    """Say why a file cannot be read, in other words than pandas."""
    said = " ".join(str(error).split()).removeprefix("Error tokenizing data. C error: ")
    if found := TOO_MANY.search(said):
        return (
            f"cannot be read: line {found[2]} has {found[3]} entries, those before it {found[1]}: "
            f"is `sep` right?{hint or ' Texts that hold it must be in quotes'}"
        )
    if found := UNCLOSED.search(said):
        opens = int(found[1]) + 1  # lines are counted from 1 here
        return f"cannot be read: a quote that opens in line {opens} is never closed"
    if said.startswith("No columns to parse"):
        return "is empty: it must have a line that names the columns, and examples"
    return f"cannot be read: {said}"


def _check_header(where: str, names: list[str]) -> None:
    """Refuse an example in the place of the names; 0, 1, 2, ... are names that pandas gives."""
    if not all(map(columns.reads_as_number, names)):
        return
    values = [float(name) for name in names]
    if values not in ([float(first + i) for i in range(len(names))] for first in (0, 1)):
        raise _OptionError(
            f"{where}: the first line must name the columns, but has numbers only, "
            f"{', '.join(names):.60}: write a line of names above it"
        )


def _listed(one_hot: Any) -> tuple[str, ...]:
    return () if isinstance(one_hot, bool) else tidying.column_list("one_hot", one_hot)


def _check_points(where: str, table: Any, spared: tuple[str, ...], commas: bool) -> None:
    """Refuse a column whose texts would be numbers, were it not for their commas or points."""
    for name in table.columns:
        if str(name) in spared or table[name].dtype.kind in "biuf":
            continue
        texts = [v for v in table[name] if isinstance(v, str)]
        grouped = [v for v in texts if THOUSANDS.fullmatch(v)]
        decimal = [v for v in texts if DECIMAL_COMMA.fullmatch(v) and v not in grouped]
        blanks = {v: found[2] for v in texts if (found := BLANKS.fullmatch(v))}
        plain = [v for v in texts if columns.reads_as_number(v)]
        points = [v for v in plain if commas and "." in v]
        groups = [v for v in texts if commas and GROUPED.fullmatch(v)]
        odd = [*grouped, *decimal, *blanks]
        if sure := [v for v in groups if not columns.reads_as_number(v)]:
            mark = sure[0].lstrip("+-").lstrip("0123456789")[0]
            what = f"grouped thousands, {sure[0]!r}"
            remedy = f"say `thousands` = {mark!r}" if mark in GROUPING else "write them without"
        elif points:
            what, remedy = f"a decimal point, {points[0]!r}", "leave `decimal` out"
        elif not odd or len(odd) + len(plain) <= len(texts) / 2:
            continue
        elif blanks:
            first, mark = next(iter(blanks.items()))
            what = f"digits in groups, {first!r}"
            remedy = f"say `thousands` = {mark!r}" if mark in GROUPING else "write them without"
        elif decimal:
            what, remedy = f"a decimal comma, {decimal[0]!r}", "say `decimal` = ','"
        else:
            what = f"commas in its numbers, {grouped[0]!r}"
            remedy = "say `thousands` = ',' if these group thousands; if these are decimal "
            remedy += "commas, say `decimal` = ','"
        raise ValueError(
            f"{where}: column {str(name)!r} has {what}: leave it out (`drop`), or {remedy}"
        )


def _check_groups(where: str, table: Any, file: Path, text: dict[str, Any]) -> None:
    """Refuse numbers in which what groups thousands stands elsewhere: it would be passed over."""
    import pandas as pd

    mark, plain = text["thousands"], {k: v for k, v in text.items() if k != "thousands"}
    whole = rf"[+-]?[1-9]\d{{0,2}}({re.escape(mark)}\d{{3}})+({re.escape(text['decimal'])}\d*)?"
    written = pd.read_csv(file, **plain, dtype=str)
    for at, kind in enumerate(table.dtypes):
        cells = written.iloc[:, at].dropna().str.strip() if kind.kind in "iuf" else []
        odd = [c for c in cells if mark in c and not re.fullmatch(whole, c)]
        if odd:
            words = f"{where}: column {str(table.columns[at])!r} has {odd[0]!r}, in which {mark!r} "
            words += "does not group thousands"
            kind = {",": "comma", ".": "point"}.get(mark)
            ask = f": is it a decimal {kind}? Say `decimal` = {mark!r}" if kind else ""
            raise _OptionError(words + ask)


class _OptionError(ValueError):
    """An objection to an option, not to the file."""


def _text_options(file: Path, target: str, style: Style) -> dict[str, Any]:
    sep, encoding, decimal = style["sep"], style["encoding"], style["decimal"]
    found: Any = SEPARATORS[str(_suffix(file))] if sep is None else sep
    found = TYPED.get(found, found) if isinstance(found, str) else found
    alone = isinstance(found, str) and found.isascii() and (len(found) == 1 or found == r"\s+")
    if not alone:
        odd = checks.shown(sep)
        raise _OptionError(rf"`sep` must be one ASCII character, 'tab' or '\s+', got {odd}")
    try:
        name = codecs.lookup("utf-8" if encoding is None else encoding).name
        " ".encode(name)  # Python knows some that are none of texts, such as hex
    except (LookupError, TypeError, ValueError):  # a text with a zero among them
        odd = checks.shown(encoding)
        raise _OptionError(
            f"`encoding` must be one that Python knows, such as 'utf-8' or 'latin-1', got {odd}"
        ) from None
    if decimal is not None and (not isinstance(decimal, str) or decimal not in DECIMALS):
        raise _OptionError(f"`decimal` must be '.' or ',', got {checks.shown(decimal)}")
    options: dict[str, Any] = {"encoding": name, "decimal": decimal or "."}
    options |= _head(file, target, found, name, sep is not None)
    if (grouping := style["thousands"]) is not None:
        if not isinstance(grouping, str) or grouping not in GROUPING:
            known = ", ".join(map(repr, GROUPING))
            raise _OptionError(f"`thousands` must be one of {known}, got {checks.shown(grouping)}")
        for other, used in (("decimal", options["decimal"]), ("sep", options["sep"])):
            if grouping == used and not (other == "sep" and used == ","):  # commas within quotes
                raise _OptionError(f"`thousands` and `{other}` are both {used!r}: give another")
        options["thousands"] = grouping
    options |= {"low_memory": False}  # one type for a whole column
    return options | {"skipinitialspace": options["sep"] != " "}  # "a, b": the name is b
