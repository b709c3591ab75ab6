"""`goodput doctor`: versions, extras, credentials and settings of this installation. It connects to nothing."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import click

from goodput_cli import __version__
from goodput_cli.cli.console import page_of_terminal, write_output
from goodput_cli.cli.group import Command
from goodput_cli.cli.settings import find_settings
from goodput_cli.errors import GoodputError, to_install
from goodput_cli.vocabulary.text import safe, wrapped

State = Literal["ok", "missing", "not set", "broken"]
EXTRAS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "fleet": (("distributed",), "goodput fleet in several processes or on a Dask cluster"),
    "s3": (("boto3",), "logs in Amazon S3"),
    "zst": (("compression.zstd", "backports.zstd"), "logs compressed with zstd"),
    "reconcile": (("ml_goodput_measurement",), "goodput reconcile with recorder logs"),
}
"""For each extra: alternative modules, and the purpose of the extra."""
_DISTRIBUTIONS = ("numpy", "pandas", "pyarrow", "rich", "google-cloud-logging", "google-cloud-storage")
GOOGLE, AMAZON = "Google credentials", "Amazon credentials"
_NOT_TRIED = "(not tested: doctor does not connect)"
_AWS = ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")


@dataclass(frozen=True)
class SetupFinding:
    """One line of the output. `not set` is not an error."""

    state: State
    what: str
    detail: str


def examine() -> Iterator[SetupFinding]:
    """Yield one finding for each thing that is checked."""
    yield SetupFinding("ok", "goodput-cli", f"{__version__}, {Path(__file__).parent.parent.parent}")
    yield SetupFinding("ok", "python", f"{platform.python_version()}, {platform.platform()}")
    yield from map(_distribution, _DISTRIBUTIONS)
    for extra, (modules, what_for) in EXTRAS.items():
        there = any(map(_is_there, modules))
        detail = what_for if there else f"{what_for}; install it with {to_install(extra)}"
        yield SetupFinding("ok" if there else "missing", f"extra {extra}", detail)
    yield google()
    yield amazon()
    yield _settings()
    size = shutil.get_terminal_size()
    yield SetupFinding("ok", "terminal", f"{size.columns} columns, TERM={os.environ.get('TERM', 'unknown')}")


def _distribution(name: str) -> SetupFinding:
    try:
        return SetupFinding("ok", name, version(name))
    except PackageNotFoundError:
        return SetupFinding("broken", name, f"missing; install it with {to_install()}")


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # its parent package is missing, too
        return False


def google() -> SetupFinding:
    """Return where the credentials for Google Cloud are read from."""
    named = os.environ.get("GOOGLE_APPLICATION_CREDENTIALS")
    usual = Path(os.environ.get("CLOUDSDK_CONFIG", Path.home() / ".config" / "gcloud"))
    file = Path(named) if named else usual / "application_default_credentials.json"
    if named and not file.is_file():
        return SetupFinding("broken", GOOGLE, f"GOOGLE_APPLICATION_CREDENTIALS={named}: no such file")
    if file.is_file():
        return SetupFinding("ok", GOOGLE, f"{file} {_NOT_TRIED}")
    advice = "create one with `gcloud auth application-default login`; VMs of Google Cloud need none"
    return SetupFinding("not set", GOOGLE, f"no key file; {advice}")


def amazon() -> SetupFinding:
    """Return where the credentials for Amazon are read from."""
    file = Path.home() / ".aws" / "credentials"
    if not _is_there("boto3"):
        return SetupFinding("not set", AMAZON, "not checked: the extra s3 is not installed")
    variables = [name for name in _AWS if os.environ.get(name)]
    if variables or file.is_file():
        return SetupFinding("ok", AMAZON, f"{', '.join(variables) or file} {_NOT_TRIED}")
    advice = "create them with `aws configure`; EC2 instances need none"
    return SetupFinding("not set", AMAZON, f"no AWS_… variables and no ~/.aws/credentials; {advice}")


def _settings() -> SetupFinding:
    try:
        settings = find_settings(Path.cwd())
    except (GoodputError, OSError) as error:
        return SetupFinding("broken", "settings", str(error))
    if settings is None:
        return SetupFinding("not set", "settings", "no goodput.toml and no [tool.goodput] in pyproject.toml")
    return SetupFinding("ok", "settings", settings.shown)


@click.command(
    cls=Command,
    epilog="""\b
    Examples:
      goodput doctor""",
)
def doctor() -> int:
    """Check the installation: extras, credentials, settings.

    Connects to nothing. Exits with 1 if something that is set up does not work; missing credentials are not an error.
    """
    findings = list(examine())
    width = max(len(one.what) for one in findings)
    room = page_of_terminal().width - 1 if sys.stdout.isatty() else None
    write_output("".join(f"{line}\n" for one in findings for line in _lines(one, width, room)))
    return GoodputError.exit_code if any(one.state == "broken" for one in findings) else 0


def _lines(finding: SetupFinding, width: int, room: int | None) -> list[str]:
    """Return the lines of a finding. width: of the column of names. room: columns of the terminal; None for a pipe."""
    head = f" {finding.state:<7}  {finding.what:<{width}}  "
    line = head + safe(finding.detail)
    return [line] if room is None else wrapped(line, room, " " * len(head))
