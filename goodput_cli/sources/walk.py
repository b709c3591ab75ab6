"""The files of a path, a directory or a glob.

A path that the user named fails with an error. A member of a directory that cannot be read is returned with the reason,
and the other members are read.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Sequence

from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import SourceError
from goodput_cli.sources.base import ReadContext
from goodput_cli.sources.blocks import LOG_ENDINGS, is_log_name
from goodput_cli.sources.layouts import (
    DEVICE_TABLES,
    LATEST_RUN,
    TIMELESS,
    SourceListing,
    UnreadMember,
    has_name_of_dump,
    is_cycle_file,
    is_dump_file,
    is_of_devices,
    is_of_tracker,
    logs_and_runs,
    unreadable,
)
from goodput_cli.sources.other_files import folder_contents, shown_path
from goodput_cli.vocabulary.text import plural

_GONE = "the target of the link does not exist"
_DENIED = "permission denied"
_OF_KERNEL = "in a file system of the kernel, whose files may never end"
_ABOVE = "the link leads to a directory that contains the named one"
_KERNEL_FOLDERS = ("/proc", "/sys", "/dev")
_MEMORY = "/dev/shm"
"""File systems of plain files in memory."""


def find_files(path: str) -> SourceListing:
    """Return the files of a path, a directory or a glob, sorted. Raises SourceError if there are none."""
    if os.path.isdir(path):
        return files_in_folder(path)
    if os.path.lexists(path) or not glob.has_magic(path):
        return SourceListing((_without_kernel_file(path),), ())
    paths = sorted(glob.glob(path, recursive=True))
    if not paths:
        raise SourceError(f"{shown_path(path)}: the glob matches no file", tip="check the folder and the spelling")
    files = tuple(_without_kernel_file(name) for name in paths if not os.path.isdir(name))
    return SourceListing(files, ()) if files else _files_in_folders(paths)


def _without_kernel_file(path: str) -> str:
    """Return a path. Raises SourceError for a file of the kernel: to read `/proc/kmsg` never ends."""
    if os.path.isfile(path) and _is_of_kernel(os.path.realpath(path)):
        raise SourceError(f"{shown_path(path)}: is {_OF_KERNEL}", tip="copy what you need into a file, and name that")
    return path


def _is_of_kernel(real: str) -> bool:
    return any(_is_below(real, one) for one in _KERNEL_FOLDERS) and not _is_below(real, _MEMORY)


def files_in_folder(folder: str) -> SourceListing:
    """Return the logs and tracker files in a directory tree. Raises SourceError if there are neither."""
    walk = _Walk(_own_name(folder))
    files = logs_and_runs(sorted(walk.paths))
    if not files.logs and not files.tracked:
        raise _no_log(folder, walk.unread)
    return SourceListing(files.logs, files.tracked, tuple(walk.unread), tuple(walk.outside))


def _files_in_folders(folders: list[str]) -> SourceListing:
    """Return the files in the directories that a glob matches. One without a log is an unread member."""
    logs: list[str] = []
    unread: list[UnreadMember] = []
    outside: list[str] = []
    for folder in folders:
        try:
            files = files_in_folder(folder)
        except SourceError as error:
            unread.append(UnreadMember(folder, "a directory without a readable log", str(error)))
            continue
        logs += files.read
        unread += files.unread
        outside += files.outside
    if not logs:
        raise SourceError.from_sentence(unread[0].problem)
    return SourceListing(tuple(logs), (), tuple(unread), tuple(outside))


def _no_log(folder: str, unread: list[UnreadMember]) -> SourceError:
    if unread:
        more = f" (and {plural(len(unread) - 1, 'other member')} of {shown_path(folder)})" if len(unread) > 1 else ""
        error = SourceError.from_sentence(unread[0].problem)
        return SourceError(error.message + more, tip=error.tip)
    timeless = min(
        (os.path.join(root, name) for root, _, names in os.walk(folder) for name in names if name in TIMELESS),
        default="",
    )
    if timeless:
        return SourceError(
            f"{shown_path(folder)}: no log in this folder",
            cause=f"{shown_path(timeless)} contains no timestamps",
            tip="`goodput help formats` shows which file to pass instead",
        )
    endings = " ".join(f"*{ending}" for ending in LOG_ENDINGS)
    return SourceError(
        f"{shown_path(folder)}: no log in this folder ({endings}, also .gz and .zst): {folder_contents(folder)}",
        tip="pass the files by name",
    )


def _own_name(folder: str) -> str:
    """Return the run directory that a tracker's link to its latest run points to, or the directory itself."""
    link = folder.rstrip("/")
    if os.path.islink(link) and os.path.basename(link) == LATEST_RUN:
        return os.path.join(os.path.dirname(link), os.readlink(link))
    return folder


def report_walk(files: SourceListing, context: ReadContext) -> None:
    """Report the members that cannot be read, by reason, and the links that lead out of the directory."""
    by_reason: dict[str, list[str]] = {}
    for one in files.unread:
        by_reason.setdefault(one.reason, []).append(one.path)
    for reason, paths in by_reason.items():
        context.report(unread_diagnostic(reason, paths))
    if files.outside:
        shown = tuple(sorted(map(shown_path, files.outside)))
        message = "links lead out of the directory; the logs that they point to are read"
        context.report(Diagnostic.of("links_followed", message, len(shown), shown))


def unread_diagnostic(reason: str, paths: Sequence[str]) -> Diagnostic:
    """Return the warning about members of a directory that were not read for one reason."""
    shown = tuple(sorted(map(shown_path, paths)))
    return Diagnostic.of("unread_members", f"members of the directory were not read: {reason}", len(shown), shown)


class _Walk:
    """A walk through a directory tree: its logs, the members that cannot be read, and the links that leave it.

    Links to directories are followed, each directory once. Those to a directory above, such as `/`, and to file systems
    of the kernel are not: the user named a part of the disk, and reading some files of a kernel never ends.
    """

    def __init__(self, folder: str) -> None:
        self.paths: list[str] = []
        self.unread: list[UnreadMember] = []
        self.outside: list[str] = []
        self._root = os.path.realpath(folder)
        self._visited = {self._root}
        try:
            waiting = [(self._root, entry) for entry in _members(folder)]
        except OSError as error:
            raise unreadable(folder, error) from error
        while waiting:  # an explicit stack, because a tree may be deeper than Python's recursion limit
            above, entry = waiting.pop()
            try:
                # resolve only links: resolving each path would take quadratic time in the depth
                real = os.path.realpath(entry.path) if entry.is_symlink() else os.path.join(above, entry.name)
                if entry.is_dir():
                    waiting += ((real, member) for member in self._new_members(entry, real))
                # Pipes and devices are read only if they are named.
                elif _may_be_read(entry) and stat.S_ISREG(entry.stat().st_mode):
                    self._add_file(entry, real)
            except OSError as error:
                self._add_unread(entry.path, error)

    def _new_members(self, entry: os.DirEntry[str], real: str) -> list[os.DirEntry[str]]:
        """Return the members of a directory that was not visited before. Raises OSError if it cannot be listed."""
        if real in self._visited or (entry.name == LATEST_RUN and entry.is_symlink()):
            return []
        self._visited.add(real)
        if self._is_left_out(entry, real):
            return []
        self._note_outside(entry, real)
        return _members(entry.path)

    def _add_file(self, entry: os.DirEntry[str], real: str) -> None:
        """Add a file if it is a log."""
        if self._is_left_out(entry, real):
            return
        if not os.access(entry.path, os.R_OK):
            raise PermissionError
        if _is_log(entry.path, entry.name) or is_of_devices(entry.path) or is_dump_file(entry.path):
            self._note_outside(entry, real)
            self.paths.append(entry.path)

    def _is_left_out(self, entry: os.DirEntry[str], real: str) -> bool:
        """Return True for a member that the walk must not enter or read, which is noted with the reason."""
        reason = ""
        if _is_of_kernel(real) and not _is_of_kernel(self._root):
            reason = _OF_KERNEL
        elif entry.is_dir() and _is_below(self._root, real):
            reason = _ABOVE
        if reason:
            self.unread.append(UnreadMember(entry.path, reason, f"{shown_path(entry.path)}: not read: {reason}"))
        return bool(reason)

    def _note_outside(self, entry: os.DirEntry[str], real: str) -> None:
        if entry.is_symlink() and not _is_below(real, self._root):
            self.outside.append(entry.path)

    def _add_unread(self, path: str, error: OSError) -> None:
        reason = error.strerror or "cannot be read"
        if isinstance(error, FileNotFoundError):
            if not os.path.islink(path):
                return  # it was removed after its directory was listed
            reason = _GONE
        elif isinstance(error, PermissionError):
            reason = _DENIED
        self.unread.append(UnreadMember(path, reason, str(unreadable(path, error))))


def _members(folder: str) -> list[os.DirEntry[str]]:
    """Return the members of a directory, the last name first. Raises OSError."""
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name, reverse=True)


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _is_log(path: str, name: str) -> bool:
    return is_log_name(name) or is_of_tracker(path) or is_cycle_file(name)


def _may_be_read(entry: os.DirEntry[str]) -> bool:
    name = entry.name
    return _is_log(entry.path, name) or name.lower().endswith(DEVICE_TABLES) or has_name_of_dump(name)
