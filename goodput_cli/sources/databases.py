"""Databases of MLflow: the tables `runs` and `metrics` as lines of JSON. Nothing is ever written to one.

`mlflow.db` and `sqlite:///PATH` need nothing else; `postgresql://…` and `mysql://…` need SQLAlchemy and a driver (the
extra `mlflow-databases`).
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from importlib import import_module
from typing import Any
from urllib.parse import quote, unquote

import orjson

from goodput_cli.errors import SourceError, to_install
from goodput_cli.sources.base import Batch, RawBatch, ReadContext, without_password
from goodput_cli.sources.layouts import RUN_KEY

SQLITE_HEAD = b"SQLite format 3\x00"
_ROWS = 50_000
_RUN_COLUMNS = ("run_uuid", "name", "status", "start_time", "end_time", "lifecycle_stage")
_RUNS = f"SELECT {', '.join(_RUN_COLUMNS)} FROM runs ORDER BY start_time, run_uuid"
_METRIC_COLUMNS = ("run_uuid", "key", "timestamp", "step", "value")
_METRICS = (
    "SELECT run_uuid, {key}, {timestamp}, step, CASE WHEN {key} LIKE 'system/%' THEN value END FROM metrics "
    "ORDER BY run_uuid, {timestamp}, step"
)
"""Values only of metrics of the machine: of others it counts when they were."""

Query = Callable[[str], Iterable[Sequence[Any]]]


class DatabaseSource:
    """Reads `sqlite:///PATH`, `postgresql://…`, `mysql://…` and `mariadb://…`."""

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
    work = _Work(path)
    try:
        with _opened(path) as connection:
            connection.set_progress_handler(work.is_too_much, _OPERATIONS)
            yield from _lines(name, connection.execute, "key", "timestamp")
    except sqlite3.OperationalError as error:
        if "interrupted" in str(error):
            raise work.reason(name) from error
        if "no such" not in str(error):
            raise SourceError(f"{name}: the database cannot be read: {error}; try again, or read a copy") from error
        raise SourceError(f"{name}: a database without the tables of MLflow ({error}); export rows as CSV") from error
    except (sqlite3.Error, UnicodeDecodeError) as error:  # also where its own words for what is wrong are no text
        raise SourceError(f"{name}: the database is damaged: {error}") from error


_OPERATIONS = 100_000
"""Of SQLite, between two looks at how many there were."""
_OPERATIONS_PER_BYTE, _OPERATIONS_AT_LEAST = 20, 20_000_000
"""A row takes some dozens and is of 50 bytes and more; a view may count more than once."""


class _Work:
    """How much SQLite did for one file: a view without end would keep it for ever. While it counts, Ctrl-C is heard."""

    def __init__(self, path: str) -> None:
        files = (path, path + "-wal")
        size = sum(os.path.getsize(file) for file in files if os.path.exists(file))
        self._left = (_OPERATIONS_AT_LEAST + _OPERATIONS_PER_BYTE * size) // _OPERATIONS

    def is_too_much(self) -> bool:
        """Whether to stop."""
        self._left -= 1
        return self._left < 0

    def reason(self, name: str) -> BaseException:
        """Why SQLite was interrupted: by us, or by what a signal raised in `is_too_much`, which SQLite keeps."""
        if self._left >= 0:
            return KeyboardInterrupt()
        advice = "is `runs` or `metrics` a view without end? Read a copy in which they are tables"
        return SourceError(f"{name}: the database gives more than a file of its size can hold; {advice}")


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
    name = without_password(uri)
    try:
        import sqlalchemy  # type: ignore[import-not-found,unused-ignore]
        from sqlalchemy import exc
    except ImportError as error:
        install = to_install("mlflow-databases")
        raise SourceError(f"{name}: databases are read with SQLAlchemy; install it with {install}") from error
    try:
        with connected(uri) as connection:
            quoted = connection.dialect.identifier_preparer.quote_identifier
            query: Query = lambda text: connection.execute(sqlalchemy.text(text))  # noqa: E731
            yield from _lines(name, query, quoted("key"), quoted("timestamp"))
    except exc.ProgrammingError as error:
        raise SourceError(f"{name}: {_reason(error)}; are these the tables of MLflow, and may they be read?") from error
    except (exc.SQLAlchemyError, ImportError, ValueError) as error:
        raise SourceError(f"{name}: the database cannot be read: {_reason(error)}") from error


@contextmanager
def connected(uri: str) -> Iterator[Any]:
    """A connection of SQLAlchemy that can only read, and sees the database as it was at the first query. Rows come as
    they are asked for. Raises the errors of SQLAlchemy, and ImportError where no driver is installed."""
    import sqlalchemy
    from sqlalchemy.pool import NullPool

    url = _with_driver(sqlalchemy.make_url(uri))
    patience = {} if url.get_backend_name() == "sqlite" else {"connect_timeout": _CONNECT_SECONDS}
    engine = sqlalchemy.create_engine(url, poolclass=NullPool, connect_args=patience)
    with engine.connect() as connection:
        for setting in _READ_ONLY.get(url.get_backend_name(), ()):
            connection.execute(sqlalchemy.text(setting))
        connection.commit()  # what was set holds from the next transaction on
        yield connection.execution_options(stream_results=True)


_CONNECT_SECONDS = 10
_READ_ONLY = {
    "postgresql": ("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",),
    "mysql": ("SET SESSION TRANSACTION READ ONLY", "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"),
    "mariadb": ("SET SESSION TRANSACTION READ ONLY", "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"),
}
_DRIVERS = {
    "postgresql": (("psycopg", "psycopg"), ("psycopg2", "psycopg2")),
    "mysql": (("pymysql", "pymysql"), ("MySQLdb", "mysqldb"), ("mysql.connector", "mysqlconnector")),
    "mariadb": (("pymysql", "pymysql"), ("MySQLdb", "mysqldb")),
}
"""By kind of database: modules, and what SQLAlchemy calls them; the first that is there is taken."""


def _with_driver(url: Any) -> Any:
    """The address with a driver that is installed, where it names none."""
    if "+" in url.drivername or url.drivername not in _DRIVERS:
        return url
    for module, driver in _DRIVERS[url.drivername]:
        with suppress(ImportError):
            import_module(module)
            return url.set(drivername=f"{url.drivername}+{driver}")
    raise ImportError(f"no driver is installed; install one with {to_install('mlflow-databases')}")


def _reason(error: Exception) -> str:
    """What is wrong, in the words of the driver, as one line."""
    cause = getattr(error, "orig", None) or error
    said = cause.args[-1] if cause.args and isinstance(cause.args[-1], str) else str(cause)
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[0] if lines else type(cause).__name__


def _lines(name: str, query: Query, key: str, timestamp: str) -> Iterator[RawBatch]:
    """Runs, then metrics, a record each. A query is asked when the rows of the one before have come: a connection that
    streams has one answer at a time."""
    queries = ((_RUNS, _RUN_COLUMNS), (_METRICS.format(key=key, timestamp=timestamp), _METRIC_COLUMNS))
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
