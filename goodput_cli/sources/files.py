"""Files, globs, folders and standard input; packed or not.

In a folder, files that are clearly not logs are left out, such as the settings of a model next to the logs of a run.
"""

from __future__ import annotations

import filecmp
import json
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import SourceError
from goodput_cli.sources.base import FILE_SCHEME, Batch, ReadContext, SourceDocument, is_new, scheme_of
from goodput_cli.sources.blocks import (
    BLOCK_BYTES,
    MANIFEST_ENDING,
    PARQUET_ENDING,
    head_of,
    is_packed,
    is_published,
    line_blocks,
    until_damaged,
)
from goodput_cli.sources.layouts import (
    TIMELESS,
    UnreadableError,
    UnreadMember,
    has_times,
    is_dump,
    is_dump_file,
    is_of_devices,
    unreadable,
)
from goodput_cli.sources.other_files import shown_path
from goodput_cli.sources.parts import ENDS_BYTES, Member, candidates, ends_of_batches
from goodput_cli.sources.walk import find_files, report_walk, unread_diagnostic

_HEAD_BYTES = 1 << 16
_TEXT = (".log", ".out", ".err", ".txt")
_OUTPUTS = ("stdout", "stderr", "slurm-")
_LINES_OF_JSON = (".jsonl", ".ndjson")
_HINTS = (
    b'"job_name"', b'"jsonPayload"', b'"textPayload"', b'"schema_version"',
    b'"involvedObject"', b'"creationTimestamp"', b'"py_callstack"',
)  # fmt: skip
"""Strings in any log of goodput's, any entry of Cloud Logging, any saved result, and in failure records of Kubernetes
and torchrun's agents."""


def _split_logs(paths: Sequence[str], is_none: Callable[[str], bool]) -> tuple[list[str], list[str]]:
    """Return the paths that may be logs, and those that are clearly not; all of them as logs if none would be left."""
    others = list(filter(is_none, paths))
    if len(others) == len(paths):
        return list(paths), []
    left_out = set(others)
    return [path for path in paths if path not in left_out], others


def is_written_by_goodput(path: str) -> bool:
    """Return True for a file that goodput itself wrote about a log, such as a result or a monitor's output."""
    try:
        if not os.path.isfile(path):  # reading a pipe would block
            return False
        with open(path, "rb") as file:
            return is_published(head_of(file.fileno()))
    except (OSError, ValueError):
        return False


def _is_clearly_no_log(path: str, is_log: Callable[[bytes], bool] | None) -> bool:
    """Return True for one JSON value over several lines without a job, or for text without any recognized line. A file
    of JSON lines, long text, a packed file and an unreadable one are left to the reader. A file with the name of a
    process' output is always a log. is_log: returns True if text that begins like this is a log."""
    if os.path.basename(path).lower().startswith(_OUTPUTS):
        return False
    if path.lower().endswith(_LINES_OF_JSON) or not path.lower().endswith((".json", *_TEXT)):
        return False
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return False
    if not head.strip() or any(hint in head for hint in _HINTS) or is_dump(path, head):
        return False
    if not any(line.lstrip().startswith((b"{", b"[")) for line in head.splitlines()):
        return is_log is None or (len(head) < _HEAD_BYTES and not is_log(head))
    return len(head) < _HEAD_BYTES and b"\n" in head.strip() and is_json_value(head)


def is_json_value(text: bytes) -> bool:
    """Return True if a text is one value of JSON."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


DATABASE_ENDINGS = (".db", ".sqlite", ".sqlite3")
STDIN = "-"
STDIN_NAME = "stdin"


class FileSource:
    """Source of a path, a glob, a folder (its whole tree), `file://` or `-`, in sorted order, each file once."""

    def read(self, uri: str, context: ReadContext) -> Iterator[Batch]:
        """Read as in `Source.read`. Raises SourceError for missing or forbidden files, or without logs."""
        return (batch for member in self.members(uri, context) for batch in member.read())

    def members(self, uri: str, context: ReadContext) -> list[Member]:
        """Return the files (see `HasMembers`)."""
        if uri == STDIN:
            stdin = self._read_stdin(context)
            return [Member(STDIN_NAME, lambda: stdin, None)]
        found = _find_logs(uri, context)
        read, is_first = (_read_path, _first_time) if found.named else (_read_member, _first_time_of_member)
        paths = [path for path in found.paths if is_first(path, context)]
        if all(map(os.path.isfile, paths)):  # the size of a pipe is unknown
            with suppress(OSError):  # one was removed in the meantime
                context.expect(sum(map(os.path.getsize, paths)))
        return [member_of(path, context)._replace(read=partial(read, path, context)) for path in paths]

    def documents(self, uri: str, context: ReadContext) -> list[SourceDocument]:
        """Return the files (see `Listing`): unreadable ones are listed with the reason."""
        if uri == STDIN:
            return [SourceDocument(STDIN, STDIN_NAME)]
        found = _find_logs(uri, context)
        unread = (
            SourceDocument(one.path, shown_path(one.path), problem=one.problem, named=False) for one in found.unread
        )
        return [*(replace(_document(path), named=found.named) for path in found.paths), *unread]

    def member(self, document: SourceDocument, context: ReadContext) -> Member:
        """Return one file (see `HasMembers`)."""
        return member_of(document.uri, context)

    def read_document(self, document: SourceDocument, context: ReadContext) -> Iterator[Batch]:
        """Read one file (see `Listing`)."""
        return _read_path(document.uri, context)

    def _read_stdin(self, context: ReadContext) -> Iterator[Batch]:
        if not is_new(STDIN, context):
            return iter(())
        stream = context.stdin or getattr(sys.stdin, "buffer", None)
        if stream is None:
            raise SourceError("-: no standard input", tip="pass a file instead")
        return _read_stream(STDIN_NAME, stream, context)


@dataclass(frozen=True)
class _FoundLogs:
    """The files of a URI."""

    paths: list[str]
    unread: tuple[UnreadMember, ...]
    named: bool
    """True if the user named them, by path or glob, not a directory above them."""


def _find_logs(uri: str, context: ReadContext) -> _FoundLogs:
    """Return the files of a URI, without files in a directory that are clearly not logs. Those are reported."""
    path = local_path(uri)
    is_folder = os.path.isdir(path)
    if not is_folder:
        _report_file_with_times(path, context)
    files = find_files(path)
    report_walk(files, context)
    if is_folder:
        parts = {name for one in candidates(files.logs) for name in one.orders[0]}
        paths, others = _split_logs(
            files.logs,
            lambda one: is_written_by_goodput(one) or (one not in parts and _is_clearly_no_log(one, context.is_log)),
        )
    else:
        paths, others = _split_logs(files.logs, is_written_by_goodput)
        paths += dumps_next_to(paths)
    if files.tracked:
        paths = _select_with_trackers(paths, files.tracked, context)
    elif others:
        shown = tuple(sorted(map(shown_path, others)))
        message = "files in the folder that are not logs were not read"
        context.report(Diagnostic.of("not_a_log", message, len(shown), shown))
    return _FoundLogs(paths, files.unread, not is_folder)


def dumps_next_to(paths: Sequence[str]) -> list[str]:
    """Return the dumps of flight recorders in the folders of some logs."""
    known = set(paths)
    folders = dict.fromkeys(os.path.dirname(path) for path in paths if os.path.isfile(path))
    found = (os.path.join(folder, name) for folder in folders for name in names_in(folder))
    return [path for path in found if path not in known and is_dump_file(path)]


def _report_file_with_times(path: str, context: ReadContext) -> None:
    """Report the file with times next to one that trainers write without times: in its folder, or in the parent
    folder."""
    folder, base = os.path.split(path)
    if base not in TIMELESS:
        return
    above = os.path.dirname(folder) if base == "trainer_state.json" else folder
    names = dict.fromkeys(os.path.join(one, name) for one in (folder, above) for name in names_in(one))
    others = tuple(shown_path(name) for name in names if has_times(os.path.basename(name)))
    if others:
        message = f"{base} contains no timestamps; pass {shown_path(others[0])} instead"
        context.report(Diagnostic.of("times_beside", message, len(others), others))


def names_in(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder or "."))
    except OSError:
        return []


def _select_with_trackers(paths: list[str], tracked: Sequence[str], context: ReadContext) -> list[str]:
    """Return the files to read in a folder with files of trackers: those files, or only the logs if one contains steps.
    paths: possible logs."""
    if any(context.gives_steps(_read_path(path, ReadContext(lambda _: None))) for path in paths):
        shown = tuple(sorted({shown_path(path) for path in tracked}))
        message = "files of experiment trackers next to logs with steps were not read; pass their folder to read them"
        context.report(Diagnostic.of("tracker_beside", message, len(shown), shown))
        return paths
    return sorted((*tracked, *(path for path in paths if is_of_devices(path, whatever_its_name=True))))


def _document(path: str) -> SourceDocument:
    """Return the document of a file. Its version is its size and the time of its last change."""
    name = shown_path(path)
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        return SourceDocument(path, name, problem=str(unreadable(path, error)))
    identity = (status.st_dev, status.st_ino)
    if not os.access(path, os.R_OK):
        return SourceDocument(path, name, identity=identity, problem=str(unreadable(path, PermissionError())))
    plain = os.path.isfile(path)  # a pipe is never read twice
    version = f"{status.st_size}-{status.st_mtime_ns}" if plain else ""
    return SourceDocument(path, name, status.st_size if plain else None, version, status.st_mtime_ns, identity, plain)


def local_path(uri: str) -> str:
    if not uri.lower().startswith("file://"):
        return uri
    parts = urlsplit(uri)
    if parts.netloc not in ("", "localhost"):
        raise SourceError(f"{uri}: file:// needs an absolute path", tip="use file:///path or the path itself")
    # a question mark or hash is part of the name here
    return unquote(uri[len("file://") + len(parts.netloc) :])


def _first_time(path: str, context: ReadContext) -> bool:
    """Return True if a file was not read before. Raises SourceError for an unreadable file, or a device."""
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    if not is_new((status.st_dev, status.st_ino), context):
        return False
    if not os.access(path, os.R_OK):
        raise unreadable(path, PermissionError())
    if stat.S_ISBLK(status.st_mode) or (  # a terminal ends by Ctrl-D, and an empty device at once
        stat.S_ISCHR(status.st_mode) and not os.path.samefile(path, os.devnull) and not _is_terminal(path)
    ):
        raise SourceError(f"{shown_path(path)}: is a device without an end", tip="pass a log file")
    return True


def _report_unread(path: str, error: SourceError, context: ReadContext) -> None:
    """Report an unreadable member of a directory, without its path in the reason."""
    context.report(unread_diagnostic(str(error).removeprefix(f"{shown_path(path)}: "), [path]))


def _first_time_of_member(path: str, context: ReadContext) -> bool:
    """Return True if a file that a walk found was not read before; report one that has become unreadable."""
    try:
        return _first_time(path, context)
    except SourceError as error:
        _report_unread(path, error, context)
        return False


def _is_terminal(path: str) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:  # /dev/tty of a process without a terminal
        return False
    try:
        return os.isatty(descriptor)
    finally:
        os.close(descriptor)


def _read_path(path: str, context: ReadContext) -> Iterator[Batch]:
    place = os.path.join(context.folder, path)
    if os.path.exists(place + MANIFEST_ENDING):
        _report_again(place, context)
    batches: Iterator[Batch] | None = None
    if path.lower().endswith(PARQUET_ENDING):
        from goodput_cli.sources.snapshot import read_parquet

        batches = read_parquet(shown_path(path), place)
    elif path.lower().endswith(DATABASE_ENDINGS):
        from goodput_cli.sources.databases import is_sqlite, read_sqlite

        batches = read_sqlite(shown_path(path), place) if is_sqlite(place) else None
    if batches is None:
        with _opened(place, path) as stream:
            yield from _read_stream(shown_path(path), stream, context, os.fstat(stream.fileno()).st_mtime_ns)
        return
    yield from batches
    with _opened(place, path) as stream:  # its bytes were read in another way, and must be counted
        while block := stream.read(BLOCK_BYTES):
            context.took(block)


def _report_again(path: str, context: ReadContext) -> None:
    """Report the diagnostics of the sources of a snapshot again, because they still apply."""
    from goodput_cli.sources.snapshot import read_manifest, written_manifest

    manifest = read_manifest(Path(path))
    if manifest is None and written_manifest(Path(path)) is not None:
        message = "the lines of the snapshot were changed; `goodput fetch --force` downloads them again"
        context.report(Diagnostic.of("snapshot_changed", message, 1, (shown_path(path),)))
    for diagnostic in manifest.diagnostics if manifest is not None else ():
        context.report(diagnostic)


def member_of(path: str, context: ReadContext) -> Member:
    """Return a file that may be part of a log."""
    return Member(shown_path(path), partial(_read_path, path, context), partial(_ends_of, path, context))


def _ends_of(path: str, context: ReadContext) -> tuple[bytes, bytes]:
    """Return the first and last bytes of a file, unpacked; none of one that cannot be read."""
    place = os.path.join(context.folder, path)
    try:
        with open(place, "rb") as file:
            head = file.read(ENDS_BYTES)
            if not is_packed(head):
                file.seek(max(os.fstat(file.fileno()).st_size - ENDS_BYTES, 0))
                return head, file.read(ENDS_BYTES)
    except OSError:
        return b"", b""
    return ends_of_batches(_read_path(path, ReadContext(lambda _: None, folder=context.folder)))


def _read_member(path: str, context: ReadContext) -> Iterator[Batch]:
    """Read a file that a walk found. An error of the operating system ends only this file, with a warning."""
    try:
        yield from _read_path(path, context)
    except UnreadableError as error:
        _report_unread(path, error, context)


def _opened(place: str, path: str) -> BinaryIO:
    """Open the file at a location. path: its display name."""
    try:
        return open(place, "rb")
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error


def _read_stream(name: str, stream: BinaryIO, context: ReadContext, modified_ns: int | None = None) -> Iterator[Batch]:
    chunks = until_damaged(name, _chunks(name, stream, context), context.report)
    yield from line_blocks(name, chunks, modified_ns, longest_mib=context.wanted.longest_line, report=context.report)


def _chunks(name: str, stream: BinaryIO, context: ReadContext) -> Iterator[bytes]:
    """Yield pieces of about a block from small reads of a pipe. Ctrl-C works between reads, but not within one that
    gathers a whole block."""
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


def source_of_path(path: Path, uris: Sequence[str], stdin: BinaryIO | None = None) -> str | None:
    """Return the source that reads the file at `path` under any name: another name, a link, another case, within a
    folder or a glob, or standard input; None if none does. A copy without a manifest counts, because on another mount
    it may be the same file. So does a source that does not exist yet, by its name."""
    if not path.exists():
        place = os.path.realpath(path)
        return next((uri for uri in uris if any(os.path.realpath(name) == place for name in _path_in(uri))), None)
    status = os.stat(path)
    for uri in uris:
        if uri == STDIN and _is_standard_input(stdin, status):
            return uri
        for name in _files_of(uri):
            if _is_one_file(name, path, status) or _is_same(name + MANIFEST_ENDING, status):
                return shown_path(name)
    return None


def _path_in(uri: str) -> list[str]:
    """Return the path in a URI, if it has one."""
    if uri == STDIN:
        return []
    if scheme_of(uri) == "sqlite":
        return [unquote(uri.partition("://")[2].removeprefix("/"))]
    return [local_path(uri)] if scheme_of(uri) == FILE_SCHEME else []


def newest_file(uris: Sequence[str]) -> int:
    """Return the time (ns since 1970) of the last change of these sources; 0 if none is an existing file."""
    newest = 0
    for path in (path for uri in uris if scheme_of(uri) == FILE_SCHEME for path in _files_of(uri)):
        with suppress(OSError):
            newest = max(newest, os.stat(path).st_mtime_ns)
    return newest


def _files_of(uri: str) -> list[str]:
    """Return all files that may be read for a URI."""
    files: list[str] = []
    for path in _path_in(uri):
        try:
            found = find_files(path)
            files += [*_split_logs(found.logs, is_written_by_goodput)[0], *found.tracked]
        except SourceError:
            pass
    return files


def _is_same(name: str, status: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(name), status)
    except OSError:
        return False


def _is_standard_input(stdin: BinaryIO | None, status: os.stat_result) -> bool:
    try:
        stream = stdin or sys.stdin.buffer
        return os.path.samestat(os.fstat(stream.fileno()), status)
    except (OSError, ValueError, AttributeError):  # a custom stream of the program
        return False


def _is_one_file(name: str, path: Path, status: os.stat_result) -> bool:
    try:
        if os.path.samestat(os.stat(name), status):
            return True
        if os.path.getsize(name) != status.st_size or os.path.exists(f"{path}{MANIFEST_ENDING}"):
            return False
        return status.st_size > 0 and filecmp.cmp(name, path, shallow=False)
    except OSError:
        return False
