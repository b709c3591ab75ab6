"""What an installation has: versions, extras, credentials, settings. Nothing is connected to unless one asks for it."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from goodput_cli import __version__
from goodput_cli.cli.settings_file import find_settings
from goodput_cli.errors import GoodputError, to_install

State = Literal["ok", "missing", "none", "broken"]
_EXTRAS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "s3": (("boto3",), "logs in Amazon S3"),
    "zst": (("compression.zstd", "backports.zstd"), "logs packed with zstd"),
    "reconcile": (("ml_goodput_measurement",), "goodput reconcile with recorder logs"),
}
"""By extra: modules of which one must be there, and what it is for."""
_DISTRIBUTIONS = ("numpy", "pandas", "pyarrow", "rich", "google-cloud-logging", "google-cloud-storage")
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
    for extra, (modules, what_for) in _EXTRAS.items():
        there = any(map(_is_there, modules))
        detail = what_for if there else f"{what_for}: {to_install(extra)}"
        yield Finding("ok" if there else "missing", f"extra {extra}", detail)
    yield _google(online)
    yield _amazon(online)
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


def _google(online: bool) -> Finding:
    what, named = "Google credentials", os.environ.get("GOOGLE_APPLICATION_CREDENTIALS")
    usual = Path(os.environ.get("CLOUDSDK_CONFIG", Path.home() / ".config" / "gcloud"))
    file = Path(named) if named else usual / "application_default_credentials.json"
    if named and not file.is_file():
        return Finding("broken", what, f"GOOGLE_APPLICATION_CREDENTIALS names {named}, which is no file")
    if online:
        return _tried(what, _try_google)
    if file.is_file():
        return Finding("ok", what, f"{file} (not tried: --online)")
    return Finding("none", what, "no file; gcloud auth application-default login makes one. A machine may have its own")


def _amazon(online: bool) -> Finding:
    what, file = "Amazon credentials", Path.home() / ".aws" / "credentials"
    if not _is_there("boto3"):
        return Finding("none", what, "not looked for without the extra s3")
    if online:
        return _tried(what, _try_amazon)
    variables = [name for name in _AWS if os.environ.get(name)]
    if variables or file.is_file():
        return Finding("ok", what, f"{', '.join(variables) or file} (not tried: --online)")
    return Finding("none", what, "neither variables nor ~/.aws/credentials; a machine may have its own")


def _tried(what: str, attempt: Callable[[], str]) -> Finding:
    try:
        return Finding("ok", what, attempt())
    except Exception as error:
        return Finding("broken", what, f"{type(error).__name__}: {error}".splitlines()[0])


def _try_google() -> str:
    from goodput_cli.sources.cloud_logging.credentials import SCOPES
    from goodput_cli.sources.google_credentials import find_credentials

    _, project = find_credentials("Google Cloud", SCOPES)
    return f"work, project {project or 'not named: set GOOGLE_CLOUD_PROJECT'}"


def _try_amazon() -> str:
    import boto3

    return f"work, {boto3.client('sts').get_caller_identity()['Arn']}"


def _settings() -> Finding:
    try:
        settings = find_settings(Path.cwd())
    except (GoodputError, OSError) as error:
        return Finding("broken", "settings", str(error))
    if settings is None:
        return Finding("none", "settings", "no goodput.toml, and no [tool.goodput] in a pyproject.toml")
    return Finding("ok", "settings", settings.shown)
