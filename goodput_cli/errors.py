"""The errors that a person sees. Each says what, where and what to do; the exit code goes with the kind."""

from __future__ import annotations


def to_install(extra: str = "") -> str:
    """What to type to install goodput-cli, with one of its extras if named: it is on no package index yet."""
    extras = f"[{extra}]" if extra else ""
    here, elsewhere = f"pip install '.{extras}'", f"pip install 'goodput-cli{extras} @ URL'"
    return f"`{here}` in a checkout of goodput-cli, elsewhere `{elsewhere}` with its URL"


class GoodputError(Exception):
    """Base of every error this package raises on purpose; `exit_code` is what the command exits with."""

    exit_code = 1


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
    """The logs cannot answer: no events, job not found, a threshold on what was not recorded."""

    exit_code = 4


class ProblemsFound(GoodputError):
    """`--strict` or `check` found problems."""

    exit_code = 5
