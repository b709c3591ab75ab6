"""Who we are to Google Cloud: found once, up front, within seconds even where the metadata server never answers."""

from __future__ import annotations

import os
from typing import Any

from goodput_cli.errors import SourceError

_READ_ONLY = ("https://www.googleapis.com/auth/cloud-platform.read-only",)
_PATIENCE = {"GCE_METADATA_TIMEOUT": "1", "GCE_METADATA_DETECT_RETRIES": "1"}
"""The library reads these when it is imported: 12 s become 1."""


def default_credentials(source: str) -> Any:
    """The credentials of this environment. Raises SourceError, with `source` in front, if there are none."""
    given = {name: os.environ.get(name) for name in _PATIENCE}
    for name, value in _PATIENCE.items():
        os.environ.setdefault(name, value)
    try:
        return _ask_library(source)
    finally:
        for name, before in given.items():
            if before is None:
                os.environ.pop(name, None)


def _ask_library(source: str) -> Any:
    import google.auth
    from google.auth.exceptions import GoogleAuthError

    try:
        credentials, _project = google.auth.default(scopes=_READ_ONLY)
    except (GoogleAuthError, OSError, ValueError) as error:
        hint = "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to a key file"
        raise SourceError(f"{source}: no usable Google Cloud credentials; {hint}") from error
    return credentials
