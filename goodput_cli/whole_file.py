"""Files that are written whole or not at all: under a temporary name beside their own, and then renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from goodput_cli.errors import UsageError, not_written


@contextmanager
def replacing(path: Path, *, durable: bool = True, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """A stream of what takes the place of a file when the block has ended without an error; else the file stays as it
    was, and nothing lies beside it. A link stays one.

    durable: nothing of it can be lost once it is in its place. mode: who may read and write it, less the umask. Raises
    OSError.
    """
    target = path.resolve()
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        temporary.unlink(missing_ok=True)  # of a process that was killed; in containers all have the same number
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as stream:
            yield stream
            if durable:
                on_disk(stream)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[bool]:
    """Wait until no other process is in such a block for this folder, and keep others waiting. False where the system
    cannot tell: some that share files over a network. Raises OSError."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield False
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            alone = True
        except OSError:
            alone = False
        yield alone
    finally:
        os.close(descriptor)


def on_disk(stream: IO[bytes]) -> int:
    """The size in bytes of what was written, when nothing of it can be lost any more."""
    stream.flush()
    os.fsync(stream.fileno())
    return stream.tell()


def write_whole(path: Path, content: str | bytes, *, force: bool) -> None:
    """Write a report (text as UTF-8): nobody ever sees half of one."""
    try:
        with replacing(path) as stream:
            stream.write(content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace"))
            if not force and path.exists():
                raise exists(path)
    except OSError as error:
        raise not_written(path, error) from error


def exists(path: Path) -> UsageError:
    """The error for a file that is not to be overwritten."""
    return UsageError(f"{path}: the file exists; --force overwrites it")
