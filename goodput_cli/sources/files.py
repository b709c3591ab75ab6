"""Files, globs, folders and standard input; packed or not."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

from goodput_cli.errors import SourceError
from goodput_cli.sources.base import Batch, Document, ReadContext
from goodput_cli.sources.blocks import BLOCK_BYTES, line_blocks
from goodput_cli.sources.endings import LOG_ENDINGS, MANIFEST_ENDING, PARQUET_ENDING, is_log_name
from goodput_cli.sources.inflate import until_damaged
from goodput_cli.sources.not_logs import said_of, told_apart

STDIN = "-"
STDIN_NAME = "stdin"


class FileSource:
    """Reads a path, a glob, a folder (its whole tree), `file://` or `-`, in sorted order, each file once."""

    def read(self, uri: str, context: ReadContext) -> Iterator[Batch]:
        """See `Source.read`. Raises SourceError for what is missing, forbidden or holds no logs."""
        if uri == STDIN:
            return self._read_stdin(context)
        paths = _logs_behind(uri, context)
        paths = [path for path in paths if _first_time(path, context)]
        if all(map(os.path.isfile, paths)):  # nobody knows how much a pipe will give
            context.expect(sum(map(os.path.getsize, paths)))
        return (batch for path in paths for batch in _read_path(path, context))

    def documents(self, uri: str, context: ReadContext) -> list[Document]:
        """See `Listing`: what cannot be read is listed with the reason."""
        if uri == STDIN:
            return [Document(STDIN, STDIN_NAME)]
        return [_document(path) for path in _logs_behind(uri, context)]

    def read_document(self, document: Document, context: ReadContext) -> Iterator[Batch]:
        """See `Listing`."""
        return _read_path(document.uri, context)

    def _read_stdin(self, context: ReadContext) -> Iterator[Batch]:
        if STDIN in context.seen:
            return iter(())
        context.seen.add(STDIN)
        stream = context.stdin or getattr(sys.stdin, "buffer", None)
        if stream is None:
            raise SourceError("-: there is no standard input to read; name a file instead")
        return _read_stream(STDIN_NAME, stream, context)


def _logs_behind(uri: str, context: ReadContext) -> list[str]:
    """The files that a URI stands for, without what in a folder is plainly no log, which is said."""
    paths = find_files(local_path(uri))
    if os.path.isdir(local_path(uri)):
        paths, others = told_apart(paths, context.is_log)
        if others:
            context.report(said_of([shown_path(path) for path in others]))
    return paths


def _document(path: str) -> Document:
    """A file as a list has it. Its version is its size and when it was written."""
    name = shown_path(path)
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        return Document(path, name, problem=str(unreadable(path, error)))
    identity = (status.st_dev, status.st_ino)
    if not os.access(path, os.R_OK):
        return Document(path, name, identity=identity, problem=str(unreadable(path, PermissionError())))
    plain = os.path.isfile(path)  # nobody reads a pipe twice
    version = f"{status.st_size}-{status.st_mtime_ns}" if plain else ""
    return Document(path, name, status.st_size if plain else None, version, status.st_mtime_ns, identity, plain)


def find_files(path: str) -> list[str]:
    """The files that a path, a folder or a glob stands for, sorted. Raises SourceError if there are none."""
    if os.path.isdir(path):
        return _logs_in_folder(path)
    if os.path.lexists(path) or not glob.has_magic(path):
        return [path]
    paths = sorted(glob.glob(path, recursive=True))
    if not paths:
        raise SourceError(f"{shown_path(path)}: the glob matches no file; check the folder and the spelling")
    files = [name for name in paths if not os.path.isdir(name)]
    return files or [name for folder in paths for name in _logs_in_folder(folder)]


def _logs_in_folder(folder: str) -> list[str]:
    paths = sorted(_walk(folder, set()))
    if not paths:
        endings = " ".join(f"*{ending}" for ending in LOG_ENDINGS)
        raise SourceError(f"{shown_path(folder)}: no log in this folder ({endings}, also .gz and .zst); name the files")
    return paths


def _walk(folder: str, visited: set[str]) -> Iterator[str]:
    """Log files in a folder's tree; links to folders are followed, each folder once."""
    real = os.path.realpath(folder)
    if real in visited:
        return
    visited.add(real)
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise unreadable(folder, error) from error
    for entry in entries:
        if entry.is_dir():
            yield from _walk(entry.path, visited)
        elif is_log_name(entry.name):
            yield entry.path


def local_path(uri: str) -> str:
    if not uri.lower().startswith("file://"):
        return uri
    parts = urlsplit(uri)
    if parts.netloc not in ("", "localhost"):
        raise SourceError(f"{uri}: file:// names a path on this machine; write file:///path or the path itself")
    # a question mark or hash is a part of the name here
    return unquote(uri[len("file://") + len(parts.netloc) :])


def _first_time(path: str, context: ReadContext) -> bool:
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    identity = (status.st_dev, status.st_ino)
    if identity in context.seen:
        return False
    context.seen.add(identity)
    if not os.access(path, os.R_OK):
        raise unreadable(path, PermissionError())
    return True


def _read_path(path: str, context: ReadContext) -> Iterator[Batch]:
    place = os.path.join(context.folder, path)
    if os.path.exists(place + MANIFEST_ENDING):
        _report_again(place, context)
    if path.lower().endswith(PARQUET_ENDING):
        from goodput_cli.sources.snapshot import read_parquet

        yield from read_parquet(shown_path(path), place)
        with _opened(place, path) as stream:
            while block := stream.read(BLOCK_BYTES):
                context.took(block)
        return
    with _opened(place, path) as stream:
        yield from _read_stream(shown_path(path), stream, context, os.fstat(stream.fileno()).st_mtime_ns)


def _report_again(path: str, context: ReadContext) -> None:
    """What the sources of a snapshot had to say is still true of it."""
    from goodput_cli.sources.snapshot import read_manifest

    manifest = read_manifest(Path(path))
    for diagnostic in manifest.diagnostics if manifest is not None else ():
        context.report(diagnostic)


def _opened(place: str, path: str) -> BinaryIO:
    """The file at a place. path: what people call it."""
    try:
        return open(place, "rb")
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error


def _read_stream(name: str, stream: BinaryIO, context: ReadContext, modified_ns: int | None = None) -> Iterator[Batch]:
    chunks = until_damaged(name, _chunks(name, stream, context), context.report)
    yield from line_blocks(name, chunks, modified_ns)


def _chunks(name: str, stream: BinaryIO, context: ReadContext) -> Iterator[bytes]:
    """Pieces of about a block, made of what a pipe gives at a time: between two looks at it Ctrl-C is heeded, which
    within a `read` that gathers them it is not."""
    look = getattr(stream, "read1", stream.read)
    pieces: list[bytes] = []
    missing = BLOCK_BYTES
    while True:
        try:
            piece = look(missing)
        except OSError as error:
            raise unreadable(name, error) from error
        if not piece:
            break
        context.took(piece)
        pieces.append(piece)
        missing -= len(piece)
        if missing <= 0:
            yield b"".join(pieces)
            pieces, missing = [], BLOCK_BYTES
    if pieces:
        yield b"".join(pieces)


def unreadable(path: str, error: OSError | ValueError) -> SourceError:
    shown = shown_path(path)
    if isinstance(error, FileNotFoundError):
        return SourceError(f"{shown}: no such file; check the path (relative paths start at the current folder)")
    if isinstance(error, PermissionError):
        return SourceError(f"{shown}: permission denied; ask for read access or copy the file")
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return SourceError(f"{shown}: cannot be read: {reason}")


def shown_path(path: str) -> str:
    """A path as people see it: bytes of a name that are not UTF-8 are spelled out."""
    return path.encode("utf-8", "backslashreplace").decode()
