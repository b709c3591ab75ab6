"""SQLite databases of MLflow (`mlflow.db`, `sqlite:///PATH`): the tables `runs` and `metrics` as lines of JSON.

Databases are never written to.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import quote, unquote

import orjson

from goodput_cli.errors import SourceError
from goodput_cli.sources.base import Batch, RawBatch, ReadContext
from goodput_cli.sources.layouts import RUN_KEY

SQLITE_HEAD = b"SQLite format 3\x00"
_ROWS = 50_000
_RUN_COLUMNS = ("run_uuid", "name", "status", "start_time", "end_time", "lifecycle_stage")
_RUNS = f"SELECT {', '.join(_RUN_COLUMNS)} FROM runs ORDER BY start_time, run_uuid"
_METRIC_COLUMNS = ("run_uuid", "key", "timestamp", "step", "value")
_METRICS = (
    "SELECT run_uuid, key, timestamp, step, CASE WHEN key LIKE 'system/%' THEN value END FROM metrics "
    "ORDER BY run_uuid, timestamp, step"
)
"""Query of metrics. Only system metrics need values; of the others, the times count."""

Query = Callable[[str], Iterable[Sequence[Any]]]


class DatabaseSource:
    """Source of `sqlite:///PATH`."""

    def read(self, uri: str, _context: ReadContext, /) -> Iterator[Batch]:
        """Read as in `Source.read`."""
        path = unquote(uri.partition("://")[2].removeprefix("/"))
        if not os.path.isfile(path):
            raise SourceError(f"{uri}: no such file; sqlite:///x.db is relative, sqlite:////srv/x.db absolute")
        return read_sqlite(path, path)


def is_sqlite(path: str) -> bool:
    """Return True for an SQLite database."""
    try:
        with open(path, "rb") as file:
            return file.read(len(SQLITE_HEAD)) == SQLITE_HEAD
    except OSError:
        return False


def read_sqlite(name: str, path: str) -> Iterator[RawBatch]:
    """Yield the runs and metrics of a database file. Raises SourceError for one without them, or a damaged one."""
    work = _OperationLimit(path)
    try:
        with _opened(path) as connection:
            connection.set_progress_handler(work.is_too_much, _OPERATIONS)
            yield from _lines(name, connection.execute)
    except sqlite3.OperationalError as error:
        if "interrupted" in str(error):
            raise work.reason(name) from error
        if "no such" not in str(error):
            raise SourceError(f"{name}: cannot read the database: {error}", tip="try again, or read a copy") from error
        raise SourceError(
            f"{name}: the database has no MLflow tables ({error})", tip="export the rows as CSV"
        ) from error
    except (sqlite3.Error, UnicodeDecodeError) as error:  # also for a message of SQLite that is not valid text
        raise SourceError(f"{name}: the database is damaged: {error}") from error


_OPERATIONS = 100_000
"""Number of SQLite operations between two checks of the total."""
_OPERATIONS_PER_BYTE, _OPERATIONS_AT_LEAST = 20, 20_000_000
"""Limits of the operations. A row takes some dozens and has at least 50 bytes; a view may count more than once."""


class _OperationLimit:
    """Counter of SQLite operations for one file, because a view may never end. Ctrl-C works while it counts."""

    def __init__(self, path: str) -> None:
        files = (path, path + "-wal")
        size = sum(os.path.getsize(file) for file in files if os.path.exists(file))
        self._left = (_OPERATIONS_AT_LEAST + _OPERATIONS_PER_BYTE * size) // _OPERATIONS

    def is_too_much(self) -> bool:
        """Return True to stop."""
        self._left -= 1
        return self._left < 0

    def reason(self, name: str) -> BaseException:
        """Return why SQLite was interrupted: by the limit, or by what a signal raised in `is_too_much`, which SQLite
        hides."""
        if self._left >= 0:
            return KeyboardInterrupt()
        advice = "if `runs` or `metrics` is an endless view, read a copy in which they are tables"
        return SourceError(f"{name}: the database returns more rows than its size allows", tip=advice)


@contextmanager
def _opened(path: str) -> Iterator[sqlite3.Connection]:
    """Open the database read-only, or a temporary copy with its pending changes (`-wal`) if that fails."""
    uri = f"file:{quote(os.path.abspath(path))}?mode=ro"
    if _can_be_read(uri):
        with closing(sqlite3.connect(uri, uri=True, timeout=5)) as connection:
            yield connection
        return
    with tempfile.TemporaryDirectory(prefix="goodput-") as folder:
        copy = shutil.copy(path, os.path.join(folder, "copy.db"))
        if os.path.exists(path + "-wal"):
            shutil.copy(path + "-wal", copy + "-wal")
        with closing(sqlite3.connect(copy, timeout=5)) as connection:
            yield connection


def _can_be_read(uri: str) -> bool:
    """Return True if SQLite can read a database in place: on a read-only disk it cannot read one with a `-wal` file."""
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=5)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        return "no such" in str(error)
    return True


def _lines(name: str, query: Query) -> Iterator[RawBatch]:
    """Yield runs, then metrics, one record each."""
    queries = ((_RUNS, _RUN_COLUMNS), (_METRICS, _METRIC_COLUMNS))
    first_line = 1
    waiting: list[bytes] = []
    for line in (line for text, columns in queries for line in _records(query(text), columns)):
        waiting.append(line)
        if len(waiting) == _ROWS:
            yield RawBatch(name, first_line, b"".join(waiting))
            first_line += len(waiting)
            waiting = []
    if waiting:
        yield RawBatch(name, first_line, b"".join(waiting))


def _records(rows: Iterable[Sequence[Any]], columns: Sequence[str]) -> Iterator[bytes]:
    for row in rows:
        record = {RUN_KEY if name == "run_uuid" else name: value for name, value in zip(columns, row, strict=True)}
        yield orjson.dumps({name: value for name, value in record.items() if value is not None}, default=str) + b"\n"
