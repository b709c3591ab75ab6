"""MLflow's runs in PostgreSQL and MySQL, read from real servers: the answer, and that nothing is ever written."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy

import goodput_cli
from goodput_cli.cli.main import run
from goodput_cli.errors import GoodputError, SourceError
from goodput_cli.sources.databases import connected
from tests.sources.test_mlflow_server import BEGIN, ROWS
from tests.support.databases import PASSWORD, DatabaseServer, served, why_not

_TABLES = (
    "CREATE TABLE runs (run_uuid VARCHAR(32) PRIMARY KEY, name VARCHAR(250), status VARCHAR(9), start_time BIGINT, "
    "end_time BIGINT, lifecycle_stage VARCHAR(20))",
    "CREATE TABLE metrics ({key} VARCHAR(250) NOT NULL, value DOUBLE PRECISION NOT NULL, {timestamp} BIGINT NOT NULL, "
    "run_uuid VARCHAR(32) NOT NULL, step BIGINT DEFAULT 0 NOT NULL, is_nan BOOLEAN DEFAULT FALSE NOT NULL)",
)
"""What goodput reads of the tables that MLflow 3.17 makes."""

pytestmark = pytest.mark.filterwarnings(  # the driver leaves the socket of a refused account to the collector
    "ignore:unclosed <socket:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """A socket that a driver left is collected here, not in the middle of another test."""
    yield
    gc.collect()


@pytest.fixture(scope="module", params=["postgresql", "mysql"])
def server(request: pytest.FixtureRequest) -> Iterator[DatabaseServer]:
    if reason := why_not(request.param):
        pytest.skip(reason)
    with served(request.param) as running:
        fill(running)
        yield running


def fill(server: DatabaseServer) -> None:
    """Two lives of a run, of which the second goes back by ten steps; and an account that may only read."""
    quote = '"' if server.kind == "postgresql" else "`"
    names = {name: f"{quote}{name}{quote}" for name in ("key", "timestamp")}
    rows = ", ".join(f"('loss', 1.0, {row['timestamp']}, 'a1', {row['step']})" for row in ROWS)
    at = "@localhost" if server.kind == "mysql" else ""
    word = "IDENTIFIED BY" if server.kind == "mysql" else "LOGIN PASSWORD"
    server.run(
        *(table.format(**names) for table in _TABLES),
        f"INSERT INTO runs VALUES ('a1', 'kind-owl', 'FINISHED', {BEGIN}, {BEGIN + 141_000}, 'active')",
        f"INSERT INTO metrics ({names['key']}, value, {names['timestamp']}, run_uuid, step) VALUES {rows}",
        f"CREATE USER reader{at} {word} 'look'",
        f"CREATE USER stranger{at} {word} 'look'",
        *(f"GRANT SELECT ON {table} TO reader{at}" for table in ("runs", "metrics")),
    )


@pytest.mark.parametrize(("account", "password"), [("owner", PASSWORD), ("reader", "look")])
def test_a_run_is_read(server: DatabaseServer, account: str, password: str) -> None:
    analysis = goodput_cli.analyze(server.uri(account, password))
    assert (analysis.job.name, analysis.job.attempts, analysis.job.kept_steps) == ("a1", 2, 40)
    assert (analysis.job.ending, analysis.disruptions[0].steps_lost) == ("clean", 10)


def test_nothing_can_be_written(server: DatabaseServer) -> None:
    """The owner of the tables may write, and the connection may not."""
    with connected(server.uri()) as connection:
        connection.execution_options(stream_results=False)  # else statements are wrapped in a query
        with pytest.raises(sqlalchemy.exc.DBAPIError, match=r"(?i)read[- ]only"):
            connection.execute(sqlalchemy.text("DELETE FROM metrics"))
        connection.rollback()
        with pytest.raises(sqlalchemy.exc.DBAPIError, match=r"(?i)read[- ]only"):
            connection.execute(sqlalchemy.text("CREATE TABLE mine (x INTEGER)"))
    with connected(server.uri()) as connection:
        assert connection.execute(sqlalchemy.text("SELECT count(*) FROM metrics")).scalar() == len(ROWS)


def test_what_is_wrong_is_one_sentence(server: DatabaseServer) -> None:
    def said(uri: str) -> str:
        with pytest.raises(SourceError) as caught:
            goodput_cli.analyze(uri)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    elsewhere = server.uri().replace("/tmp/goodput-db-", "/tmp/no-such-folder-")
    assert "cannot be read: " in said(elsewhere)
    assert "denied" in said(server.uri(password="guess")) or "authentication failed" in said(
        server.uri(password="guess")
    )
    assert "nope" in said(server.uri(database="nope"))
    assert "are these the tables of MLflow" in said(server.uri(database="other"))
    assert "denied" in said(server.uri("stranger", "look"))


@pytest.mark.parametrize(
    "command",
    ["analyze --full", "analyze --format json", "check", "watch", "compare LOG --format json", "fetch -o copy.jsonl"],
)
def test_a_password_is_shown_nowhere(
    server: DatabaseServer, folder: Path, capfd: pytest.CaptureFixture[str], command: str
) -> None:
    name, *options = command.replace("LOG", server.uri()).split()
    run([name, server.uri(), *options])
    run([name, server.uri(database="nope"), *options])
    said = capfd.readouterr()
    files = [file.read_text() for file in folder.rglob("*") if file.is_file()]
    for text in (said.out + said.err, *files):
        assert PASSWORD not in text
        assert "p%40ss" not in text
    assert "Error: " in said.err


def test_options_of_an_address_hold_no_password_either() -> None:
    uri = "postgresql://ann@db.example/mlflow?sslpassword=hidden&password=hidden&options=-csearch_path"
    with pytest.raises(GoodputError) as caught:
        goodput_cli.analyze(uri.replace("postgresql", "postgres"))
    assert "hidden" not in str(caught.value)
    assert "search_path" in str(caught.value)
