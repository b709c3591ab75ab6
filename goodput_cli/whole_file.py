"""Atomic writes: files are written under a temporary name in the same directory, then renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from goodput_cli.errors import UsageError, not_written


@contextmanager
def replace_file(path: Path, *, durable: bool = True, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """Yield a stream that replaces a file if the block ends without an error. Otherwise the file stays unchanged.
    Symbolic links are followed.

    durable: flush the data to disk before the rename. mode: permissions, less the umask. Raises OSError.
    """
    target = path.resolve()
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        temporary.unlink(missing_ok=True)  # left by a killed process; in containers all have the same pid
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as stream:
            yield stream
            if durable:
                flush_to_disk(stream)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def lock_folder(folder: Path) -> Iterator[bool]:
    """Hold an exclusive lock on a folder during the block. Yield False if the system does not support it (Windows, some
    network file systems). Raises OSError."""
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


def flush_to_disk(stream: IO[bytes]) -> int:
    """Flush a stream to disk and return the size of the file in bytes."""
    stream.flush()
    os.fsync(stream.fileno())
    return stream.tell()


def write_whole(path: Path, content: str | bytes, *, force: bool) -> None:
    """Write a report atomically (text as UTF-8)."""
    try:
        with replace_file(path) as stream:
            stream.write(content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace"))
            if not force and path.exists():
                raise file_exists_error(path)
    except OSError as error:
        raise not_written(path, error) from error


def file_exists_error(path: Path) -> UsageError:
    """Return the error for a file that must not be overwritten."""
    return UsageError(f"{path}: the file exists; --force overwrites it")
