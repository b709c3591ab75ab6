"""`goodput doctor`: what this installation can read, and with which credentials.

What an installation has: versions, extras, credentials, settings. Nothing is connected to unless one asks for it.

What answers over the network: the credentials for Google Cloud and Amazon, and Cloud Logging. Bounded by seconds.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import click

from goodput_cli import __version__
from goodput_cli.cli.console import page_of_terminal, write_output
from goodput_cli.cli.settings import find_settings
from goodput_cli.errors import GoodputError, SourceError, to_install
from goodput_cli.sources.google_credentials import within
from goodput_cli.vocabulary.text import safe, wrapped
from goodput_cli.vocabulary.when import NS_PER_DAY

State = Literal["ok", "missing", "none", "broken"]
EXTRAS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "fleet": (("distributed",), "goodput fleet in several processes and on a dask cluster"),
    "s3": (("boto3",), "logs in Amazon S3"),
    "zst": (("compression.zstd", "backports.zstd"), "logs packed with zstd"),
    "mlflow-databases": (("sqlalchemy",), "MLflow's runs in PostgreSQL or MySQL"),
    "yaml": (("yaml",), "profiles of other systems as --mapping"),
    "reconcile": (("ml_goodput_measurement",), "goodput reconcile with recorder logs"),
}
"""By extra: modules of which one must be there, and what it is for."""
_DISTRIBUTIONS = ("numpy", "pandas", "pyarrow", "rich", "google-cloud-logging", "google-cloud-storage")
GOOGLE, AMAZON = "Google credentials", "Amazon credentials"
_NOT_TRIED = "(not tried: --online)"
_AWS = ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")


@dataclass(frozen=True)
class Finding:
    """A line of the answer. none: nothing is set, which may be as it should be."""

    state: State
    what: str
    detail: str


def examine(*, online: bool) -> Iterator[Finding]:
    """All that is looked at."""
    yield Finding("ok", "goodput-cli", f"{__version__}, {Path(__file__).parent.parent.parent}")
    yield Finding("ok", "python", f"{platform.python_version()}, {platform.platform()}")
    yield from map(_distribution, _DISTRIBUTIONS)
    for extra, (modules, what_for) in EXTRAS.items():
        there = any(map(_is_there, modules))
        detail = what_for if there else f"{what_for}: {to_install(extra)}"
        yield Finding("ok" if there else "missing", f"extra {extra}", detail)
    yield from online_findings() if online else (google(), amazon())
    yield _settings()
    size = shutil.get_terminal_size()
    yield Finding("ok", "terminal", f"{size.columns} columns, colours: {os.environ.get('TERM', 'not known')}")


def _distribution(name: str) -> Finding:
    try:
        return Finding("ok", name, version(name))
    except PackageNotFoundError:
        return Finding("broken", name, f"is missing: {to_install()}")


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package that would hold it
        return False


def google() -> Finding:
    """Where the credentials for Google Cloud would be read from."""
    named = os.environ.get("GOOGLE_APPLICATION_CREDENTIALS")
    usual = Path(os.environ.get("CLOUDSDK_CONFIG", Path.home() / ".config" / "gcloud"))
    file = Path(named) if named else usual / "application_default_credentials.json"
    if named and not file.is_file():
        return Finding("broken", GOOGLE, f"GOOGLE_APPLICATION_CREDENTIALS names {named}, which is no file")
    if file.is_file():
        return Finding("ok", GOOGLE, f"{file} {_NOT_TRIED}")
    return Finding("none", GOOGLE, "no file; gcloud auth application-default login makes one; machines have their own")


def amazon() -> Finding:
    """Where those for Amazon would be read from."""
    file = Path.home() / ".aws" / "credentials"
    if not _is_there("boto3"):
        return Finding("none", AMAZON, "not looked for without the extra s3")
    variables = [name for name in _AWS if os.environ.get(name)]
    if variables or file.is_file():
        return Finding("ok", AMAZON, f"{', '.join(variables) or file} {_NOT_TRIED}")
    return Finding("none", AMAZON, "neither variables nor ~/.aws/credentials; machines have their own")


def _settings() -> Finding:
    try:
        settings = find_settings(Path.cwd())
    except (GoodputError, OSError) as error:
        return Finding("broken", "settings", str(error))
    if settings is None:
        return Finding("none", "settings", "no goodput.toml, and no [tool.goodput] in a pyproject.toml")
    return Finding("ok", "settings", settings.shown)


LOGGING = "Cloud Logging"
_SECONDS = 10.0
"""How long one of the questions may take, looking for credentials included."""
_ANSWER_SECONDS = 5.0
_NETWORK = "check the network, or the proxy"


def online_findings() -> Iterator[Finding]:
    """Credentials tried, and one entry of the last day asked of Cloud Logging where there is a project."""
    from goodput_cli.sources.google_credentials import ENDPOINT_VARIABLE

    at_home = google()  # a key file that is named and is not there: nothing else is tried
    endpoint = os.environ.get(ENDPOINT_VARIABLE)
    if at_home.state == "broken":
        yield at_home
    elif endpoint:
        yield _tried(LOGGING, lambda: f"{_ask_logging()}, at {endpoint} ({ENDPOINT_VARIABLE})")
    else:
        yield (tried := _tried(GOOGLE, _ask_google))
        not_asked = Finding("none", LOGGING, "not asked: no credentials")
        yield _tried(LOGGING, _ask_logging) if tried.state == "ok" else not_asked
    at_home = amazon()
    yield at_home if "extra s3" in at_home.detail else _tried(AMAZON, _ask_amazon)


def _tried(what: str, ask: Callable[[], str]) -> Finding:
    try:
        return Finding("ok", what, within(_SECONDS, ask))
    except NotThereError as error:
        return Finding("none", what, str(error))
    except TimeoutError:
        return Finding("broken", what, f"no answer within {_SECONDS:g} s: {_NETWORK}")
    except GoodputError as error:
        return Finding("broken", what, str(error))


class NotThereError(SourceError):
    """There are no credentials, which may be as it should be."""


def _ask_google() -> str:
    from google.auth.exceptions import DefaultCredentialsError

    from goodput_cli.sources.google_credentials import SCOPES, find_credentials

    try:
        _, project = find_credentials("Google Cloud", SCOPES)
    except SourceError as error:
        if isinstance(error.__cause__, DefaultCredentialsError):
            raise NotThereError("none found; gcloud auth application-default login makes them") from error
        raise
    return f"accepted; project {project or 'not named: set GOOGLE_CLOUD_PROJECT'}"


def _ask_logging() -> str:
    import grpc
    from google.cloud.logging_v2.types import ListLogEntriesRequest

    from goodput_cli.sources.cloud_logging_pages import Fault, LogQuery, kind_of, rfc3339, sentence
    from goodput_cli.sources.google_credentials import connect

    connection = connect()
    try:
        if connection.project is None:
            raise NotThereError("not asked: no project is named; set GOOGLE_CLOUD_PROJECT")
        since = rfc3339(time.time_ns() - NS_PER_DAY)
        first_entry = ListLogEntriesRequest(
            resource_names=[f"projects/{connection.project}"],
            filter=f'timestamp>="{since}"',
            order_by="timestamp asc",
            page_size=1,
        )
        connection.list_entries(first_entry, timeout=_ANSWER_SECONDS)
    except grpc.RpcError as error:
        query = LogQuery(connection.project or "", "")
        if kind_of(error, with_token=False) is not Fault.PASSING:
            raise sentence(error, query) from error
        raise SourceError(f"project {query.project}: no answer ({error.code().name}): {_NETWORK}") from error
    finally:
        connection.close()
    return f"project {connection.project} can be read"


def _ask_amazon() -> str:
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, NoCredentialsError
    from botocore.exceptions import ConnectionError as NotConnectedError

    config = Config(connect_timeout=_ANSWER_SECONDS, read_timeout=_ANSWER_SECONDS, retries={"total_max_attempts": 1})
    try:
        return f"accepted; {boto3.client('sts', config=config).get_caller_identity()['Arn']}"
    except NoCredentialsError as error:
        raise NotThereError("none found; `aws configure` makes them") from error
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "refused")
        raise SourceError(f"not accepted ({code}); run `aws sso login` or `aws configure`") from error
    except (NotConnectedError, HTTPClientError) as error:
        raise SourceError(f"no answer ({_one_line(error)}): {_NETWORK}") from error
    except (BotoCoreError, ValueError) as error:
        raise SourceError(f"cannot be used ({_one_line(error)}); see `aws configure`") from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


@click.command(
    epilog="""\b
    Examples:
      goodput doctor
      goodput doctor --online""",
)
@click.option("--online", is_flag=True, help="Try the credentials too; without, nothing is connected to.")
def doctor(online: bool) -> int:
    """Say which extras, credentials and settings are there.

    Exits with 1 where what is there does not work. Without credentials nothing is broken.
    """
    findings = list(examine(online=online))
    width = max(len(one.what) for one in findings)
    room = page_of_terminal().width - 1 if sys.stdout.isatty() else None
    write_output("".join(f"{line}\n" for one in findings for line in _lines(one, width, room)))
    return GoodputError.exit_code if any(one.state == "broken" for one in findings) else 0


def _lines(finding: Finding, width: int, room: int | None) -> list[str]:
    """width: of what was looked at. room: columns of the terminal; None where it is none."""
    head = f" {finding.state:<7}  {finding.what:<{width}}  "
    line = head + safe(finding.detail)
    return [line] if room is None else wrapped(line, room, " " * len(head))
