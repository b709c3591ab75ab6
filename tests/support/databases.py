"""Servers of PostgreSQL and MariaDB for tests, where their programs are installed: each on a socket of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy

PASSWORD = "p@ss:w/rd"
_SECONDS = 900
"""After so many a server ends by itself, whatever became of the tests."""


@dataclass(frozen=True)
class DatabaseServer:
    """A running server with an empty database `mlflow` of the account `owner`, and another one, `other`."""

    kind: str
    socket: str
    """Of its address: what stands behind `?`."""

    def uri(self, account: str = "owner", password: str = PASSWORD, database: str = "mlflow", driver: str = "") -> str:
        """Where a database is read, as a person writes it."""
        host = "localhost" if self.kind == "mysql" else ""
        return f"{self.kind}{driver}://{account}:{quote(password, safe='')}@{host}/{database}?{self.socket}"

    def run(self, *statements: str, uri: str = "") -> None:
        """Statements as the owner, who may do all."""
        address = sqlalchemy.make_url(uri or self.uri())
        drivers = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql"}
        engine = sqlalchemy.create_engine(address.set(drivername=drivers[self.kind]), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            for statement in statements:
                connection.execute(sqlalchemy.text(statement))
        engine.dispose()


def why_not(kind: str) -> str:
    """Why such a server cannot be run here; empty where it can."""
    if not _program(kind):
        return f"no server of {kind} is installed"
    try:
        __import__({"postgresql": "psycopg", "mysql": "pymysql"}[kind])
    except ImportError as error:
        return str(error)
    return ""


@contextmanager
def served(kind: str) -> Iterator[DatabaseServer]:
    """A server of `postgresql` or `mysql` (MariaDB)."""
    folder = Path(tempfile.mkdtemp(prefix="goodput-db-", dir="/tmp"))  # a socket's path must be short
    account = _unprivileged(folder)
    try:
        command, server = (_postgres if kind == "postgresql" else _mariadb)(folder, account)
        with (
            open(folder / "log", "w") as log,
            subprocess.Popen(["timeout", str(_SECONDS), *command], stdout=log, stderr=log, **account) as process,
        ):
            try:
                _prepare(server)
                yield server
            finally:
                process.terminate()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _program(kind: str) -> str:
    if kind == "mysql":
        return shutil.which("mariadbd", path="/usr/sbin:/usr/local/sbin:" + os.environ.get("PATH", "")) or ""
    return next(iter(sorted(glob("/usr/lib/postgresql/*/bin/postgres"), reverse=True)), "")


def _unprivileged(folder: Path) -> dict[str, Any]:
    """Servers refuse to run as root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _postgres(folder: Path, account: dict[str, Any]) -> tuple[Sequence[str], DatabaseServer]:
    program, data = Path(_program("postgresql")), str(folder / "data")
    secret = folder / "secret"
    secret.write_text(PASSWORD)
    create = [str(program.with_name("initdb")), "-D", data, "-U", "owner", "-A", "scram-sha-256", f"--pwfile={secret}"]
    subprocess.run([*create, "--no-sync"], cwd=folder, check=True, capture_output=True, **account)
    options = ["-c", "listen_addresses=", "-c", "fsync=off", "-k", str(folder)]
    return [str(program), "-D", data, *options], DatabaseServer("postgresql", f"host={folder}")


def _mariadb(folder: Path, account: dict[str, Any]) -> tuple[Sequence[str], DatabaseServer]:
    socket, first = folder / "s", folder / "first.sql"
    first.write_text(
        f"CREATE USER owner@localhost IDENTIFIED BY '{PASSWORD}';\n"
        "GRANT ALL ON *.* TO owner@localhost WITH GRANT OPTION;\n"
    )
    create = ["mariadb-install-db", "--no-defaults", f"--datadir={folder / 'data'}", "--skip-test-db"]
    user = [f"--user={pwd.getpwuid(account['user']).pw_name}"] if account else []
    subprocess.run([*create, *user], cwd=folder, check=True, capture_output=True, **account)
    options = [f"--datadir={folder / 'data'}", f"--socket={socket}", "--skip-networking", f"--init-file={first}"]
    return [_program("mysql"), "--no-defaults", *options], DatabaseServer("mysql", f"unix_socket={socket}")


def _prepare(server: DatabaseServer) -> None:
    """Its databases, as soon as it answers."""
    system = server.uri(database={"postgresql": "postgres", "mysql": "mysql"}[server.kind])
    for _ in range(1200):
        try:
            server.run("CREATE DATABASE mlflow", "CREATE DATABASE other", uri=system)
            return
        except sqlalchemy.exc.OperationalError:
            time.sleep(0.1)
    raise AssertionError(f"the server of {server.kind} did not come up")
