"""Databases of MLflow: the tables `runs` and `metrics` as lines of JSON. Nothing is ever written to one.

`mlflow.db` and `sqlite:///PATH` need nothing else; `postgresql://…` and `mysql://…` need SQLAlchemy and a driver.
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
_METRIC_COLUMNS = ("run_uuid", "key", "timestamp", "step")
_METRICS = "SELECT run_uuid, {key}, {timestamp}, step FROM metrics ORDER BY run_uuid, {timestamp}, step"

Query = Callable[[str], Iterable[Sequence[Any]]]


class DatabaseSource:
    """Reads `sqlite:///PATH`, `postgresql://…` and `mysql://…`."""

    def read(self, uri: str, _context: ReadContext, /) -> Iterator[Batch]:
        """See `Source.read`."""
        scheme = uri.partition(":")[0].lower()
        if scheme != "sqlite":
            return _read_server(uri)
        path = unquote(uri.partition("://")[2].removeprefix("/"))
        if not os.path.isfile(path):
            raise SourceError(f"{uri}: no such file; sqlite:///x.db is relative, sqlite:////srv/x.db absolute")
        return read_sqlite(path, path)


def is_sqlite(path: str) -> bool:
    """Whether a file is a database of SQLite."""
    try:
        with open(path, "rb") as file:
            return file.read(len(SQLITE_HEAD)) == SQLITE_HEAD
    except OSError:
        return False


def read_sqlite(name: str, path: str) -> Iterator[RawBatch]:
    """The runs and metrics of a database file. Raises SourceError for one without them, or a damaged one."""
    try:
        with _opened(path) as connection:
            yield from _lines(name, connection.execute, "key", "timestamp")
    except sqlite3.OperationalError as error:
        if "no such" not in str(error):
            raise SourceError(f"{name}: the database cannot be read: {error}; try again, or read a copy") from error
        raise SourceError(f"{name}: a database without the tables of MLflow ({error}); export rows as CSV") from error
    except (sqlite3.Error, UnicodeDecodeError) as error:  # also where its own words for what is wrong are no text
        raise SourceError(f"{name}: the database is damaged: {error}") from error


@contextmanager
def _opened(path: str) -> Iterator[sqlite3.Connection]:
    """The database, for reading only; a copy of it with what is not yet in it (`-wal`) where that cannot be."""
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
    """Whether SQLite reads a database where it is: without a place to write, not one with a `-wal` beside it."""
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=5)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        return "no such" in str(error)
    return True


def _read_server(uri: str) -> Iterator[RawBatch]:
    name = _without_password(uri)
    try:
        import sqlalchemy  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        raise SourceError(f"{name}: databases are read with SQLAlchemy; pip install sqlalchemy") from error
    try:
        engine = sqlalchemy.create_engine(uri)
        quoted = engine.dialect.identifier_preparer.quote_identifier
        with engine.connect() as connection:
            connection = connection.execution_options(stream_results=True)
            query: Query = lambda text: connection.execute(sqlalchemy.text(text))  # noqa: E731
            yield from _lines(name, query, quoted("key"), quoted("timestamp"))
    except (sqlalchemy.exc.SQLAlchemyError, ImportError) as error:
        reason = str(error).splitlines()[0]
        raise SourceError(f"{name}: the database cannot be read: {reason}") from error


def _without_password(uri: str) -> str:
    scheme, _, rest = uri.partition("://")
    account, at, place = rest.rpartition("@")
    return f"{scheme}://{account.partition(':')[0]}{at}{place}"


def _lines(name: str, query: Query, key: str, timestamp: str) -> Iterator[RawBatch]:
    """Runs, then metrics, a record each."""
    runs = _records(query(_RUNS), _RUN_COLUMNS)
    metrics = _records(query(_METRICS.format(key=key, timestamp=timestamp)), _METRIC_COLUMNS)
    first_line = 1
    waiting: list[bytes] = []
    for line in (line for part in (runs, metrics) for line in part):
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
