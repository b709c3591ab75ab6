"""What pages are made with and takes long to make: kept in the user's cache folder, ready for the next page.

A hash stands beside the data: what does not fit it is made anew, and so is what somebody else could have written, for
it holds code.
"""

from __future__ import annotations

import contextlib
import os
from hashlib import sha256
from pathlib import Path


def read(name: str) -> bytes | None:
    """What was kept under a name, if it is whole and only its owner could have written it."""
    file = _file(name)
    if file is None:
        return None
    try:
        with file.open("rb") as stream:
            state = os.fstat(stream.fileno())
            digest, _, data = stream.read().partition(b"\n")
    except OSError:
        return None
    safe = not hasattr(os, "getuid") or (state.st_uid == os.getuid() and not state.st_mode & 0o022)
    whole = sha256(data).hexdigest().encode() == digest
    return data if safe and whole else None


def keep(name: str, data: bytes) -> None:
    """Best effort: a page is complete without."""
    file = _file(name)
    if file is None:
        return
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(sha256(data).hexdigest().encode() + b"\n" + data)
        os.replace(temporary, file)


def _file(name: str) -> Path | None:
    """None where the user has no folder for it."""
    from goodput_cli.sources.cache import cache_folder

    try:
        return cache_folder() / "pages" / name
    except (OSError, RuntimeError):
        return None
