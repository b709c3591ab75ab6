"""The errors that a person sees. Each says what, where and what to do; the exit code goes with the kind."""

from __future__ import annotations

import errno
from collections.abc import Collection

_WHAT_TO_DO = {
    errno.ENOSPC: "free some space, or use another disk",
    errno.EDQUOT: "free some of your quota, or use another disk",
    errno.EFBIG: "raise `ulimit -f`",
    errno.EROFS: "use a writable location",
    errno.EIO: "check the disk",
    errno.ENAMETOOLONG: "use a shorter name",
    errno.EMFILE: "raise `ulimit -n`",
    errno.ENFILE: "close other programs",
}
"""What the machine is short of, or cannot do: no fault of this program, wherever it shows."""


def to_install(extra: str = "") -> str:
    """What to type to install goodput-cli, with one of its extras if named: it is on no package index yet."""
    extras = f"[{extra}]" if extra else ""
    here, elsewhere = f"pip install '.{extras}'", f"pip install 'goodput-cli{extras} @ URL'"
    return f"`{here}` in a checkout of goodput-cli, otherwise `{elsewhere}` with its URL"


class GoodputError(Exception):
    """Base of every error this package raises on purpose; `exit_code` is what the command exits with."""

    exit_code = 1


def is_of_machine(error: OSError) -> bool:
    """Whether an error of the system says what the machine is short of, or cannot do."""
    return bool(_advice(error))


def reason_of(error: OSError) -> str:
    """What the system says, and what to do about it where that is known."""
    return "; ".join(filter(None, (error.strerror or str(error), _advice(error))))


def _advice(error: OSError) -> str:
    if "No usable temporary directory" in str(error):  # as `tempfile` says that none takes a byte
        return "free some space, or set TMPDIR to another folder"
    return _WHAT_TO_DO.get(error.errno or 0, "")


def not_written(place: object, error: OSError) -> GoodputError:
    """The error for a place that does not take what is to be written there."""
    return GoodputError(f"{place}: cannot be written: {reason_of(error)}")


class SourceError(GoodputError):
    """A source could not be read: missing file, glob that matches nothing, permission, network."""

    exit_code = 1


class UsageError(GoodputError):
    """The question makes no sense: a bad option value, an unknown name."""

    exit_code = 2


class ThresholdNotMet(GoodputError):
    """A `--fail-…` threshold was not met."""

    exit_code = 3


class NotEnoughData(GoodputError):
    """The logs cannot answer: no events, job not found, a threshold on what was not recorded or is inconclusive."""

    exit_code = 4


class NeedsMapping(NotEnoughData):
    """Steps are there that no format reads: more lines like them will not help, a mapping will."""


class ProblemsFound(GoodputError):
    """`--strict` or `check` found problems."""

    exit_code = 5


def code_of_gates(met: Collection[bool | None]) -> int:
    """What a command ends with for its gates, each met, not met or (None) not to be judged: one that failed comes
    before one that could not be judged."""
    if True in met:
        return ThresholdNotMet.exit_code
    return NotEnoughData.exit_code if None in met else 0
