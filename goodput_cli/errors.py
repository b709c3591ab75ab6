"""Errors that users see, and sentences for options and inputs that were removed. Each names the problem, its location
and the fix; every class has its exit code.
"""

from __future__ import annotations

import errno
from collections.abc import Collection
from typing import Self

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
"""Advice by error number for limits and failures of the machine, which are not errors of this program."""


def to_install(extra: str = "") -> str:
    """Return the command that installs goodput-cli (from a checkout or a URL), with one of its extras if given."""
    extras = f"[{extra}]" if extra else ""
    here, elsewhere = f"pip install '.{extras}'", f"pip install 'goodput-cli{extras} @ URL'"
    return f"`{here}` in a checkout of goodput-cli, otherwise `{elsewhere}` with its URL"


class GoodputError(Exception):
    """Base of all errors that this package raises on purpose. `exit_code` is the exit code of the command.

    message: what failed. cause: why. tip: what to do. `str` joins them to one sentence.
    """

    exit_code = 1

    def __init__(self, message: str = "", *, cause: str = "", tip: str = "") -> None:
        super().__init__("; ".join(filter(None, (message, cause, tip))))
        self.message, self.cause, self.tip = message, cause, tip

    @classmethod
    def from_sentence(cls, sentence: str) -> Self:
        """Return the error that `str` made a sentence of."""
        message, separator, tip = sentence.rpartition("; ")
        return cls(message, tip=tip) if separator else cls(sentence)

    def after(self, name: str) -> Self:
        """Return the same error with a name before its message, such as the source."""
        return type(self)(f"{name}: {self.message}", cause=self.cause, tip=self.tip)


def error_lines(message: str, cause: str = "", tip: str = "") -> str:
    """Return the lines that a terminal shows: what failed, why, and what to do."""
    parts = (("error", message), ("cause", cause), ("tip", tip))
    return "\n".join(f"{name}: {text}" for name, text in parts if text or name == "error")


def is_of_machine(error: OSError) -> bool:
    """Return True if a system error reports a limit or a failure of the machine."""
    return bool(_advice(error))


def _advice(error: OSError) -> str:
    if "No usable temporary directory" in str(error):  # the error of `tempfile` if no directory is writable
        return "free some space, or set TMPDIR to another folder"
    return _WHAT_TO_DO.get(error.errno or 0, "")


def not_written(place: object, error: OSError) -> GoodputError:
    """Return the error for a path that cannot be written."""
    return error_from_os(f"{place}: cannot be written", error)


def error_from_os(what: str, error: OSError) -> GoodputError:
    """Return an error with the system's message, and advice if there is any. what: what failed; may be empty."""
    return GoodputError(": ".join(filter(None, (what, error.strerror or str(error)))), tip=_advice(error))


class SourceError(GoodputError):
    """A source that could not be read: missing file, glob without matches, permission, network."""

    exit_code = 1


class UsageError(GoodputError):
    """Invalid usage, such as a bad option value or an unknown name."""

    exit_code = 2


class ThresholdNotMet(GoodputError):
    """A `--fail-…` threshold that was not met."""

    exit_code = 3


class NotEnoughData(GoodputError):
    """A question that the logs cannot answer: no events, job not found, or the value of a threshold is unknown."""

    exit_code = 4


class NeedsMapping(NotEnoughData):
    """Step lines in an unknown format: a mapping is needed, more lines do not help."""


class ProblemsFound(GoodputError):
    """Problems found by `--strict` or `check`."""

    exit_code = 5


def code_of_gates(met: Collection[bool | None]) -> int:
    """Return the exit code for gates. met: True for a failed gate, None for one that could not be judged; failed gates
    win."""
    if True in met:
        return ThresholdNotMet.exit_code
    return NotEnoughData.exit_code if None in met else 0


REMOVED_OPTIONS = {
    "--what-if": (
        "advise",
        "`goodput advise LOG` ranks the improvements that would help most, and its table shows "
        "the goodput of each checkpoint interval",
    ),
    "--online": (
        "doctor",
        "to test credentials, read a log, for example with `goodput check gs://BUCKET/PATH`",
    ),
}
"""For each option: the command that had it, and what to use instead."""
REMOVED_DATABASES = ("postgresql", "postgres", "mysql", "mariadb")
"""Schemes of MLflow databases that are no longer read."""
NO_DATABASE = (
    "MLflow runs are no longer read from PostgreSQL or MySQL: read them from the tracking server, "
    "mlflow+https://HOST, or pass `mlflow.db` or `mlruns/`"
)
PROFILE_ENDINGS = (".yaml", ".yml")
"""Extensions of `LogProfile` documents."""
NO_PROFILE = (
    "LogProfile YAML is no longer read as a mapping: write the mapping in TOML (docs/mappings.md); "
    "`goodput check --suggest LOG > my.toml` makes one from a log"
)


def removed_keyword(name: str) -> str | None:
    """Return the sentence for a removed keyword of the library, such as `what_if`; None for any other name."""
    option = f"--{name.replace('_', '-')}"
    return f"{option} was removed: {REMOVED_OPTIONS[option][1]}" if option in REMOVED_OPTIONS else None
