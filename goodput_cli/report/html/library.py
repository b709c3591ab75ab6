"""The JavaScript that makes charts move, to be held by a page: it defines `vegaEmbed`.

Putting it together takes longer than all else of a report. It is the same for every page that a version of vl-convert
makes, so it is kept in the user's cache folder, with a hash beside it: what does not fit its hash is made anew.
"""

from __future__ import annotations

import contextlib
import os
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import vl_convert

_CODE = "window.vegaEmbed = vegaEmbed;"


@cache
def library(vl_version: str) -> str:
    """The script, for a version of Vega-Lite."""
    file = _cache_file(vl_version)
    kept = None if file is None else _kept(file)
    if kept is not None:
        return kept
    bundle: str = vl_convert.javascript_bundle(_CODE, vl_version=vl_version)
    if file is not None:
        _keep(file, bundle)
    return bundle


def _cache_file(vl_version: str) -> Path | None:
    """None where the user has no folder for it."""
    from goodput_cli.sources.cache import cache_folder

    try:
        return cache_folder() / "charts" / f"vega-{vl_version}-{version('vl-convert-python')}.js"
    except (OSError, RuntimeError, PackageNotFoundError):
        return None


def _kept(file: Path) -> str | None:
    """What was kept, if it is whole and only its owner could have written it."""
    try:
        with file.open("rb") as stream:
            state = os.fstat(stream.fileno())
            digest, _, data = stream.read().partition(b"\n")
    except OSError:
        return None
    safe = not hasattr(os, "getuid") or (state.st_uid == os.getuid() and not state.st_mode & 0o022)
    whole = sha256(data).hexdigest().encode() == digest
    return data.decode() if safe and whole else None


def _keep(file: Path, bundle: str) -> None:
    """Best effort: a page is complete without."""
    data = bundle.encode()
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(sha256(data).hexdigest().encode() + b"\n" + data)
        os.replace(temporary, file)
