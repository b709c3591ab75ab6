"""A local file: one `write(2)` per line, in the caller's thread. After SIGKILL, every line whose call returned is in
the file."""

from __future__ import annotations

import errno
import os
import stat
import struct
import sys
import threading
import time
from contextlib import suppress

from ..lines import STEP_LINE, VITAL
from ..queues import Drops, UnavailableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..queues import Item, SayDropped

SLOW_NS = 50_000_000
SLOW_WRITES = 3
"""Number of consecutive writes longer than SLOW_NS after which the file gets a queue."""
_LOOK_NS = 10**6
"""Time between two checks that the descriptor is still that of the file, and the file is not deleted. A check is a
system call. With this interval, consecutive lines stay cheap, and a line per step is never written to another file."""
_NAME_NS = 5 * 10**9
"""Time between two checks that the file still has its name, and between two attempts to open it."""
DELETED = "the file was deleted"
_NO_FILE = "the file was replaced by something that is not a regular file"
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOCTTY", 0)
_LOCK = "hhqqi4x"
"""`struct flock` of Linux with 64 bits: kind, whence, start, length, process."""
FSYNC = ("ends", "never")


class FileSink:
    """A file, opened for appending with the first line; its folders are created. O_APPEND keeps lines whole with
    several writers.

    A line that cannot be written (a full disk) is counted, and reported when a write succeeds again. So are the lines
    of a deleted file: the next line begins a new one. A descriptor that the program has closed, and that may now belong
    to another file, is left alone. A partial write is ended by a line break before the next one, also one from an
    earlier attempt.
    fsync: "ends" (after vital lines, in the background) or "never". follow: True to write through a symbolic link.
    slow: called once, when writes have become slow. second: called with the number of another process that also writes
    the file; returns the line that reports it.
    """

    batch_lines = 1
    most_lines = 1000
    most_bytes = 1 << 20

    def __init__(
        self,
        path: str,
        *,
        dropped_line: SayDropped,
        warn: Callable[[str], None],
        fsync: str = "ends",
        follow: bool = True,
        descriptor: int | None = None,
        second: Callable[[int], bytes] | None = None,
    ) -> None:
        self.name = "file"
        self.path = path
        self.has_path = descriptor is None
        self._dropped_line = dropped_line
        self._warn = warn
        self._second = second
        self._flags = _FLAGS if follow else _FLAGS | getattr(os, "O_NOFOLLOW", 0)
        self._fsync = fsync == "ends" and descriptor is None
        self._given = descriptor is not None
        self._descriptor = -1 if descriptor is None else descriptor
        self._opened: os.stat_result | None = None
        """Status of the file of the descriptor."""
        self._begins_as = _type_of(path) if descriptor is None else stat.S_IFREG
        """Type of the file at the path before the first write: a pipe or a device that replaces it later is
        rejected."""
        self._look_ns = sys.maxsize if self._given else 0
        self._name_ns = 0
        self._torn = False
        self._drops = Drops()
        self._held = Drops()
        """Lines that this process wrote to the file, and lost lines that the file reports: they are lost with the
        file."""
        self._slow_writes = 0
        self.slow: Callable[[FileSink], None] | None = None
        self._lock = threading.RLock()
        self._problem = ""
        self._said: set[str] = set()
        self._unsynced = False
        self._syncing = False

    def write(self, line: bytes, kind: int, us: int) -> None:
        """Write a line now."""
        if not self._attempt(line, kind, us):
            self.lost(kind, us, self._problem)

    def lost(self, kind: int, us: int, reason: str) -> None:
        """Count a line that cannot be written at all."""
        with self._lock:
            self._drops.add(kind, us, reason)

    def flush(self, _deadline: float) -> bool:
        """Return True: no line waits here."""
        return True

    # Interface of a sink with a queue: `Delivery`.

    def latency(self) -> float:
        """Return the seconds that a line waits for a batch."""
        return 0.0

    def send(self, items: Sequence[Item]) -> Sequence[Item]:
        """Write lines. Raises Unavailable at the first that fails, with the number of those before it."""
        for at, (_, us, kind, line) in enumerate(items):
            if not self._attempt(line, kind, us):
                raise UnavailableError(self._problem, done=at)
        return ()

    def close(self, _deadline: float = 0.0) -> Drops:
        """Close the file; return the lost lines that could not be reported."""
        if not self._given and self._is_deleted(self._own()):
            self._count_file_as_lost()
        elif self._drops.lines and self._descriptor >= 0:
            self._repair()
        if self._unsynced and self._descriptor >= 0:
            _quietly(_datasync, self._descriptor)
        if not self._given:
            self._let_go()
        drops, self._drops = self._drops, Drops()
        return drops

    def _attempt(self, line: bytes, kind: int, us: int) -> bool:
        """Write a line; return True if it was written as a whole."""
        begin = time.perf_counter_ns()
        if begin >= self._look_ns or (kind == VITAL and not self._given):
            self._look(begin)
        if (self._torn or self._drops.lines) and not self._repair():
            return False
        try:
            done = os.write(self._descriptor, line)
        except OSError as error:
            self._warn_on_change(self._problem if self._descriptor < 0 else _reason(error))
            return False
        if done != len(line):
            self._torn = True
            self._warn_on_change("a write was incomplete")
            return False
        held = self._held
        held.first, held.last = held.first or us, us
        held.lines += 1
        held.steps += kind == STEP_LINE
        if time.perf_counter_ns() - begin > SLOW_NS:
            self._was_slow()
        else:
            self._slow_writes = 0
        if kind == VITAL and self._fsync:
            self._sync()
        return True

    def _look(self, now_ns: int) -> None:
        """Open the file if it is not open, is deleted, or lost its name to another one."""
        with self._lock:
            self._look_ns = now_ns + _LOOK_NS
            own = self._own()
            if own is None or not own.st_nlink:
                self._name_ns = 0 if self._descriptor >= 0 else self._name_ns
            if now_ns < self._name_ns:
                return
            self._name_ns = now_ns + _NAME_NS
            if own is None and self._descriptor >= 0:
                self._descriptor = -1
                self._warn_once("the program closed this file; reopening it")
            if own is None or not self._is_named(own):
                self._open(own)

    def _open(self, own: os.stat_result | None) -> None:
        """Open the file of that name in place of the open one."""
        if self._is_deleted(own):
            self._count_file_as_lost()
            self._warn_once(f"{DELETED} during recording; later lines are written to a new file")
        try:
            os.makedirs(os.path.dirname(self.path) or ".", exist_ok=True)
            torn = _ends_in_the_middle(self.path)
            descriptor = self._opened_descriptor()
        except OSError as error:
            self._warn_on_change(
                _NO_FILE if error.errno in (errno.ENXIO, errno.EISDIR) and self._opened else _reason(error)
            )
            if self._is_deleted(own):
                self._let_go()
            return
        self._torn = torn
        if self._descriptor < 0:
            self._descriptor = descriptor
        else:  # keep the number: another thread may be writing to it
            os.dup2(descriptor, self._descriptor, inheritable=False)
            os.close(descriptor)
        self._opened = os.fstat(self._descriptor)
        beside = second_writer_pid(self._descriptor) if is_local(self.path) else None
        if beside is not None:
            self._report_second_writer(beside)

    def _opened_descriptor(self) -> int:
        """Open the path. Only a pipe that was there at the start is waited for. Raises OSError, also for a pipe or a
        device that has replaced a file, because a write to it may never return."""
        if self._opened is None and stat.S_ISFIFO(self._begins_as):
            return os.open(self.path, self._flags, 0o644)
        descriptor = os.open(self.path, self._flags | _NONBLOCK, 0o644)
        now = stat.S_IFMT(os.fstat(descriptor).st_mode)
        if now not in (stat.S_IFREG, self._begins_as):
            os.close(descriptor)
            raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))
        os.set_blocking(descriptor, True)
        return descriptor

    def _own(self) -> os.stat_result | None:
        """Return the current status of the descriptor's file; None without one, or if the descriptor belongs to another
        file now."""
        if self._descriptor < 0 or self._opened is None:
            return None
        try:
            now = os.fstat(self._descriptor)
        except OSError as error:  # the server has forgotten the file, so its writes will fail
            return None if error.errno == errno.EBADF else self._opened
        return now if _file_identity(now) == _file_identity(self._opened) else None

    def _is_named(self, own: os.stat_result) -> bool:
        try:
            return _file_identity(own) == _file_identity(os.stat(self.path))
        except OSError as error:
            return not isinstance(error, FileNotFoundError | NotADirectoryError)

    def _is_deleted(self, own: os.stat_result | None) -> bool:
        """Return True if the file can no longer be opened: some file systems never report the number of names of a
        file."""
        return own is not None and not own.st_nlink and not self._is_named(own)

    def _count_file_as_lost(self) -> None:
        held, self._held = self._held, Drops()
        held.reason = DELETED
        self._drops.merge(held)

    def _let_go(self) -> None:
        """Close the file, if the descriptor is still that of the file."""
        own, descriptor, self._descriptor = self._own(), self._descriptor, -1
        if own is not None:
            _quietly(os.close, descriptor)

    def _report_second_writer(self, beside: int) -> None:
        self._warn(
            f"{self.path}: process {beside} also writes to this file, and both are read as one job. Give each process "
            "its own "
            "rank or file"
        )
        if self._second is not None:
            line = self._second(beside)
            if self._torn and self._whole(b"\n"):
                self._torn = False
            self._whole(line)

    def _repair(self) -> bool:
        """End a partial line, and report the lost lines; return True on success."""
        with self._lock:
            if self._torn:
                if not self._whole(b"\n"):
                    return False
                self._torn = False
            drops, self._drops = self._drops, Drops()
            if drops.lines and not self._whole(self._dropped_line(drops, self.name)):
                drops.merge(self._drops)
                self._drops = drops
                return False
            self._held.merge(drops)
            return True

    def _whole(self, line: bytes) -> bool:
        try:
            done = os.write(self._descriptor, line)
        except OSError as error:
            if self._descriptor >= 0:  # otherwise the reason has been reported
                self._warn_on_change(_reason(error))
            return False
        self._torn = self._torn or 0 < done < len(line)
        return done == len(line)

    def _warn_on_change(self, problem: str) -> None:
        if problem != self._problem:
            self._warn(f"{self.path}: {problem}; lines that cannot be written are counted in the log")
        self._problem = problem

    def _warn_once(self, what: str) -> None:
        if what not in self._said:
            self._said.add(what)
            self._warn(f"{self.path}: {what}")

    def _was_slow(self) -> None:
        self._slow_writes += 1
        if self.slow is not None and self._slow_writes == SLOW_WRITES:
            slow, self.slow = self.slow, None
            self._warn(f"{self.path}: slow writes; lines now go through a queue")
            slow(self)

    def _sync(self) -> None:
        self._unsynced = True
        if self._syncing:
            return
        self._syncing = True
        try:
            threading.Thread(target=self._sync_now, name="goodput-record fdatasync", daemon=True).start()
        except RuntimeError:  # the interpreter is ending: `close` does it
            self._syncing = False

    def _sync_now(self) -> None:
        while self._unsynced:
            self._unsynced = False
            _quietly(_datasync, self._descriptor)
        self._syncing = False


def _type_of(path: str) -> int:
    """Return the type of a file, as `stat.S_IFMT` has it; that of a regular file if nothing is there yet."""
    try:
        return stat.S_IFMT(os.stat(path).st_mode)
    except OSError:
        return stat.S_IFREG


def _file_identity(file: os.stat_result) -> tuple[int, int]:
    """Return the identity of a file."""
    return file.st_dev, file.st_ino


_datasync = getattr(os, "fdatasync", os.fsync)


def _quietly(call: Callable[[int], object], descriptor: int) -> None:
    with suppress(OSError, ValueError):  # it is closed, or the error was handled at the write
        call(descriptor)


_REASONS = {
    errno.ELOOP: "it is a symbolic link, which is not allowed in the default folder; pass the file itself as `to`",
    getattr(errno, "EDQUOT", errno.ENOSPC): "the disk quota is used up (Disk quota exceeded)",
    errno.ENOSPC: "the disk is full (No space left on device)",
    errno.EROFS: "the disk is read-only (Read-only file system)",
}


def _reason(error: OSError) -> str:
    if error.errno in _REASONS:
        return _REASONS[error.errno]
    return os.strerror(error.errno) if error.errno else type(error).__name__


def _ends_in_the_middle(path: str) -> bool:
    """Return True if the last line of a file is unterminated. Only a regular file is read, because reading others has
    side effects."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NONBLOCK)) as stream:
            stream.seek(-1, os.SEEK_END)
            return stream.read(1) != b"\n"
    except OSError:
        return False  # it is empty or missing


_LOCAL = frozenset(("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "tmpfs", "devtmpfs", "overlay"))
_MOUNTS = "/proc/self/mountinfo"


def is_local(path: str, mounts: str = _MOUNTS) -> bool:
    """Return True if a file there is written without waiting for another machine; False if unknown or for a pipe, which
    waits for its reader."""
    try:
        if stat.S_ISFIFO(os.stat(path).st_mode):
            return False
    except OSError:
        pass  # it does not exist yet
    return file_system(path, mounts) in _LOCAL


def is_file(descriptor: int) -> bool:
    """Return True for an open file. A pipe or a terminal waits for its reader."""
    try:
        return stat.S_ISREG(os.fstat(descriptor).st_mode)
    except OSError:
        return False


def second_writer_pid(descriptor: int) -> int | None:
    """Return the process that also writes this file, if it asks in the same way from now on; None if there is none, or
    unknown.

    Record locks are requested without waiting, and forked processes do not inherit them: a loader's worker that
    outlives its job has none.
    """
    if sys.platform != "linux":
        return None
    try:
        import fcntl

        asked = struct.pack(_LOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, *_, holder = struct.unpack(_LOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
        if kind != fcntl.F_UNLCK:
            return int(holder)
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (OSError, struct.error):  # the file system has no locks
        pass
    return None


def file_system(path: str, mounts: str = _MOUNTS) -> str:
    """Return the type of the mount that contains the path; "" if unknown."""
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as stream:
            points = [_mount(line) for line in stream]
    except (OSError, ValueError, IndexError):
        return ""
    found, length = "", -1
    real = os.path.realpath(path)
    for point, kind in points:
        if len(point) >= length and (real == point or real.startswith(point.rstrip("/") + "/")):
            found, length = kind, len(point)
    return found


def _mount(line: str) -> tuple[str, str]:
    """Return mount point and type of a line of proc(5) mountinfo."""
    fields = line.split(" ")
    point = fields[4]
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        point = point.replace(code, character)
    return point, fields[fields.index("-", 6) + 1].partition(".")[0]
