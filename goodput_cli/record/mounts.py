"""Whether a write to a path can block: the file system says it."""

from __future__ import annotations

import os
import stat

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
