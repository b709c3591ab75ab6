"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from goodput_cli.errors import GoodputError, UsageError


def write_whole(path: Path, content: str | bytes, *, force: bool) -> None:
    """Write a file (text as UTF-8) under a temporary name beside it and rename it: nobody ever sees half a report."""
    target = path.resolve()  # through a link, the file behind it
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        temporary.unlink(missing_ok=True)  # of a process that was killed; in containers all have the same number
        with open(temporary, "xb") as stream:
            stream.write(content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace"))
            stream.flush()
            os.fsync(stream.fileno())
        if not force and target.exists():
            raise exists(path)
        os.replace(temporary, target)
    except OSError as error:
        raise GoodputError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def exists(path: Path) -> UsageError:
    """The error for a file that is not to be overwritten."""
    return UsageError(f"{path}: the file exists; --force overwrites it")
