"""What an installation has: versions, extras, credentials, settings. Nothing is connected to unless one asks for it."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from goodput_cli import __version__
from goodput_cli.cli.settings_file import find_settings
from goodput_cli.errors import GoodputError, to_install

State = Literal["ok", "missing", "none", "broken"]
EXTRAS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "fleet": (("distributed",), "goodput fleet in several processes and on a dask cluster"),
    "s3": (("boto3",), "logs in Amazon S3"),
    "tensorboard": (("tensorboardX",), "goodput monitor --publish tensorboard:DIR"),
    "zst": (("compression.zstd", "backports.zstd"), "logs packed with zstd"),
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
    yield Finding("ok", "goodput-cli", f"{__version__}, {Path(__file__).parent.parent}")
    yield Finding("ok", "python", f"{platform.python_version()}, {platform.platform()}")
    yield from map(_distribution, _DISTRIBUTIONS)
    for extra, (modules, what_for) in EXTRAS.items():
        there = any(map(_is_there, modules))
        detail = what_for if there else f"{what_for}: {to_install(extra)}"
        yield Finding("ok" if there else "missing", f"extra {extra}", detail)
    yield from _online() if online else (google(), amazon())
    yield _settings()
    size = shutil.get_terminal_size()
    yield Finding("ok", "terminal", f"{size.columns} columns, colours: {os.environ.get('TERM', 'not known')}")


def _online() -> Iterator[Finding]:
    from goodput_cli.cli.doctor_online import online_findings  # only where something is connected to

    return online_findings()


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
