"""A local file: one `write(2)` a line, in the caller's thread: after SIGKILL each line whose call returned is there."""

from __future__ import annotations

import errno
import os
import stat
import struct
import sys
import threading
import time
from contextlib import suppress

from ..lines import VITAL
from ..queues import Drops, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..queues import Item, SayDropped

SLOW_NS = 50_000_000
SLOW_WRITES = 3
"""After so many writes in a row that took longer than SLOW_NS, the file goes behind a queue."""
_LOOK_NS = 5 * 10**9
"""Between two looks at whether the file is still the one of that name."""
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOCTTY", 0)
_LOCK = "hhqqi4x"
"""`struct flock` of Linux with 64 bits: kind, whence, start, length, process."""
FSYNC = ("ends", "never")


class FileSink:
    """Appends to a file, which is opened with the first line; folders are made. O_APPEND keeps lines whole with
    several writers.

    A line that cannot be written (a full disk) is counted, and said when a write succeeds again. A write that was cut
    is ended by a line break before the next one, also one that was cut in an earlier life.
    fsync: "ends" (after vital lines, in the background) or "never". follow: whether a symbolic link may be written
    through. slow: called once, when writes have become slow. second: called where another process writes the file too,
    with its number; gives the line that says so.
    """

    batch_lines = 1
    most_lines = 1000
    most_bytes = 1 << 20

    def __init__(
        self,
        path: str,
        *,
        say_dropped: SayDropped,
        warn: Callable[[str], None],
        fsync: str = "ends",
        follow: bool = True,
        descriptor: int | None = None,
        second: Callable[[int], bytes] | None = None,
    ) -> None:
        self.name = "file"
        self.path = path
        self.has_path = descriptor is None
        self._say_dropped = say_dropped
        self._warn = warn
        self._second = second
        self._flags = _FLAGS if follow else _FLAGS | getattr(os, "O_NOFOLLOW", 0)
        self._fsync = fsync == "ends" and descriptor is None
        self._given = descriptor is not None
        self._descriptor = -1 if descriptor is None else descriptor
        self._look_ns = 0
        self._torn = False
        self._drops = Drops()
        self._slow_writes = 0
        self.slow: Callable[[FileSink], None] | None = None
        self._lock = threading.RLock()
        self._problem = ""
        self._unsynced = False
        self._syncing = False

    def write(self, line: bytes, kind: int, us: int) -> None:
        """Write a line now."""
        if not self._attempt(line, kind):
            self.lost(kind, us, self._problem)

    def lost(self, kind: int, us: int, reason: str) -> None:
        """A line that cannot be written at all."""
        with self._lock:
            self._drops.add(kind, us, reason)

    def flush(self, _deadline: float) -> bool:
        """Nothing waits here."""
        return True

    # Behind a queue: `Delivery`.

    def latency(self) -> float:
        """Seconds that a line waits for company."""
        return 0.0

    def send(self, items: Sequence[Item]) -> Sequence[Item]:
        """Write lines; raises Unavailable at the first that fails, with those before it done."""
        for at, (_, _, kind, line) in enumerate(items):
            if not self._attempt(line, kind):
                raise Unavailable(self._problem, done=at)
        return ()

    def close(self, _deadline: float = 0.0) -> Drops:
        """Close the file; returns what was lost and could not be said."""
        if self._drops.lines and self._descriptor >= 0:
            self._repair()
        if self._unsynced and self._descriptor >= 0:
            _quietly(_datasync, self._descriptor)
        if self._descriptor >= 0 and not self._given:
            descriptor, self._descriptor = self._descriptor, -1
            _quietly(os.close, descriptor)
        drops, self._drops = self._drops, Drops()
        return drops

    def _attempt(self, line: bytes, kind: int) -> bool:
        """Whether the line was written, whole."""
        begin = time.perf_counter_ns()
        if begin >= self._look_ns:
            self._look(begin)
        if (self._torn or self._drops.lines) and not self._repair():
            return False
        try:
            done = os.write(self._descriptor, line)
        except OSError as error:
            self._say(self._problem if self._descriptor < 0 else _reason(error))
            return False
        if done != len(line):
            self._torn = True
            self._say("a write was cut")
            return False
        if time.perf_counter_ns() - begin > SLOW_NS:
            self._was_slow()
        else:
            self._slow_writes = 0
        if kind == VITAL and self._fsync:
            self._sync()
        return True

    def _look(self, now_ns: int) -> None:
        """Open the file if it is not open, or if another one has its name by now."""
        with self._lock:
            self._look_ns = now_ns + _LOOK_NS
            if self._given or (self._descriptor >= 0 and self._is_same()):
                return
            try:
                os.makedirs(os.path.dirname(self.path) or ".", exist_ok=True)
                torn = _ends_in_the_middle(self.path)
                descriptor = os.open(self.path, self._flags, 0o644)
            except OSError as error:
                self._say(_reason(error))
                return
            self._torn = torn
            beside = other_writer(descriptor) if is_local(self.path) else None
            if self._descriptor < 0:
                self._descriptor = descriptor
            else:  # the number stays the same: another thread may be writing to it
                os.dup2(descriptor, self._descriptor, inheritable=False)
                os.close(descriptor)
            if beside is not None:
                self._say_second(beside)

    def _say_second(self, beside: int) -> None:
        self._warn(
            f"{self.path}: process {beside} writes there too, and both are read as one job; give each process a rank, "
            "or a file of its own"
        )
        if self._second is not None:
            line = self._second(beside)
            if self._torn and self._whole(b"\n"):
                self._torn = False
            self._whole(line)

    def _is_same(self) -> bool:
        try:
            ours, named = os.fstat(self._descriptor), os.stat(self.path)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return (ours.st_dev, ours.st_ino) == (named.st_dev, named.st_ino)

    def _repair(self) -> bool:
        """End a line that was cut, and say what was lost; whether that went well."""
        with self._lock:
            if self._torn:
                if not self._whole(b"\n"):
                    return False
                self._torn = False
            drops, self._drops = self._drops, Drops()
            if drops.lines and not self._whole(self._say_dropped(drops, self.name)):
                drops.merge(self._drops)
                self._drops = drops
                return False
            return True

    def _whole(self, line: bytes) -> bool:
        try:
            done = os.write(self._descriptor, line)
        except OSError as error:
            if self._descriptor >= 0:  # otherwise it was said why not
                self._say(_reason(error))
            return False
        self._torn = self._torn or 0 < done < len(line)
        return done == len(line)

    def _say(self, problem: str) -> None:
        if problem != self._problem:
            self._warn(f"{self.path}: {problem}; lines that cannot be written are counted, and the log will say so")
        self._problem = problem

    def _was_slow(self) -> None:
        self._slow_writes += 1
        if self.slow is not None and self._slow_writes == SLOW_WRITES:
            slow, self.slow = self.slow, None
            self._warn(f"{self.path}: writes take long; lines go through a queue from now on")
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


_datasync = getattr(os, "fdatasync", os.fsync)


def _quietly(call: Callable[[int], object], descriptor: int) -> None:
    with suppress(OSError, ValueError):  # it is closed, or what can be done about it was done when it was written
        call(descriptor)


_REASONS = {
    errno.ELOOP: "it is a symbolic link, and none is written through in the default folder; give `to` the file itself",
    getattr(errno, "EDQUOT", errno.ENOSPC): "the disk quota is used up (Disk quota exceeded)",
    errno.ENOSPC: "the disk is full (No space left on device)",
    errno.EROFS: "the disk can only be read (Read-only file system)",
}


def _reason(error: OSError) -> str:
    if error.errno in _REASONS:
        return _REASONS[error.errno]
    return os.strerror(error.errno) if error.errno else type(error).__name__


def _ends_in_the_middle(path: str) -> bool:
    """Whether the last line of a file has no end. Only a regular file is looked into: reading others has effects."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open(path, "rb") as stream:
            stream.seek(-1, os.SEEK_END)
            return stream.read(1) != b"\n"
    except OSError:
        return False  # it is empty, or not there


_LOCAL = frozenset(("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "tmpfs", "devtmpfs", "overlay"))
_MOUNTS = "/proc/self/mountinfo"


def is_local(path: str, mounts: str = _MOUNTS) -> bool:
    """Whether a file there is written without waiting for another machine. False where that is not known.

    A pipe is not: it waits for whoever reads it.
    """
    try:
        if stat.S_ISFIFO(os.stat(path).st_mode):
            return False
    except OSError:
        pass  # it is not there yet
    return file_system(path, mounts) in _LOCAL


def is_file(descriptor: int) -> bool:
    """Whether this is an open file. A pipe or a terminal waits for whoever reads it."""
    try:
        return stat.S_ISREG(os.fstat(descriptor).st_mode)
    except OSError:
        return False


def other_writer(descriptor: int) -> int | None:
    """The process that writes this file too, if it asked as this one does from now on; None: none, or not known.

    Locks of records are asked for without waiting, and are not handed on to forked processes: a loader's worker that
    outlives its job holds none.
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
    except (OSError, struct.error):  # disks that have no locks
        pass
    return None


def file_system(path: str, mounts: str = _MOUNTS) -> str:
    """The type of the mount that holds the path; "" where that is not known."""
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
    """Mount point and type, of a line of proc(5) mountinfo."""
    fields = line.split(" ")
    point = fields[4]
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        point = point.replace(code, character)
    return point, fields[fields.index("-", 6) + 1].partition(".")[0]
