"""What is asked of one job, checked before any log is read. No NumPy here, as `--help` reads this."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any, Literal, Unpack

from goodput_cli.accounting.rules import HOW, WHEN, Method, MethodOptions
from goodput_cli.errors import UsageError
from goodput_cli.events.hints import WHAT
from goodput_cli.vocabulary.amounts import bounded, read_length
from goodput_cli.vocabulary.likely import did_you_mean
from goodput_cli.vocabulary.option import declared, option
from goodput_cli.vocabulary.when import Span, When, parse_span, parse_when
from goodput_cli.vocabulary.zones import AUTO, load_zone

Time = str | datetime | int | When
"""An instant: as typed on the command line, a datetime, or ns since 1970 UTC."""
_read_seconds = bounded(Fraction, "is not a step time; write seconds such as 2.5, or auto", above=0, most=1e9, unit=1)


def _read_zone(name: str) -> str:
    load_zone(name)
    return name


def _read_run(value: str | int) -> str:
    text = str(value).strip().lower()
    if text == "last" or (text.isascii() and text.isdigit() and 0 < len(text) < 10 and int(text) > 0):
        return text
    raise UsageError(f"{value!r} is not a run; runs are numbered from 1, or write last")


def _read_step_time(value: str | float | Fraction) -> Fraction | Literal["auto"]:
    """Seconds, exactly as written: 0.1 is a tenth, not the nearest float."""
    return "auto" if isinstance(value, str) and value.strip().lower() == "auto" else _read_seconds(value)


def _read_ns(value: str | int) -> int:
    """A length of time from text, or in ns."""
    if isinstance(value, int) and value <= 0:
        raise UsageError(f"{value} ns is not a length of time above 0")
    return value if isinstance(value, int) else read_length(value)


def _read_window(value: str | int) -> int:
    return 0 if isinstance(value, str) and value.strip().lower() == "auto" else _read_ns(value)


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked of one job, and how to account for it. Times are resolved once the job is known."""

    run: str | None = option(
        None, WHAT, "One run of a job name that was used several times.", metavar="N|last", read=_read_run
    )
    """One run of a job name: a number from 1, or "last"; None for all."""
    timezone: str = option(
        AUTO,
        WHAT,
        "Zone of times that name none, in logs and on the command line; auto: as entries of Cloud Logging show, else "
        "UTC.",
        metavar="ZONE",
        read=_read_zone,
        settings={"show_default": True},
    )
    """The zone of times that name none; "auto" for what the entries around them show, else UTC."""
    reference_step_time: Fraction | Literal["auto"] | None = option(
        None,
        HOW,
        "What a step should take: productive is kept steps times this.",
        metavar="SECONDS|auto",
        read=_read_step_time,
    )
    """In seconds, exact; "auto" where the log is to give it (accounting §6)."""
    method: Method = Method()
    """The choices that are part of every answer."""
    exclude: tuple[Span, ...] = option(
        (), HOW, "Take a window out.", metavar="START/END", read=parse_span, follows="stall_factor"
    )
    """Windows to take out."""
    start: When | None = option(
        None,
        WHEN,
        "Start of the window; default: the job's.",
        names=("--from",),
        metavar="TIME",
        read=parse_when,
    )
    """Start of the window; None for the job's."""
    end: When | None = option(
        None, WHEN, "End of the window; default: the job's.", names=("--to",), metavar="TIME", read=parse_when
    )
    """End of the window; None for the job's."""
    as_of: When | None = option(None, WHEN, "Answer as it was known then.", metavar="TIME|now", read=parse_when)
    """Nothing that was logged later counts; None for all."""
    window: tuple[int, ...] = option(
        (),
        WHEN,
        "Length of rolling windows, such as 1h; auto for a round tenth.",
        metavar="W",
        read=_read_window,
    )
    """Lengths of rolling windows in ns; 0 for a round tenth of the window."""
    every: int | None = option(
        None, WHEN, "One window ends every E.  [default: the shortest window]", metavar="E", read=_read_ns
    )
    """Time from the end of one rolling window to the next, in ns; None for the length of the shortest."""
    now_ns: int = field(default_factory=time.time_ns)
    """The present, ns since 1970 UTC."""


class AccountingOptions(MethodOptions, total=False):
    """How to account, and in which window, for editors and type checkers: the arguments that a `Question` is made of.

    What is left out or None is as by default. Each is described at the field of `Question` or `Method` of its name.
    """

    timezone: str
    reference_step_time: str | float | Fraction | None
    exclude: Sequence[str | Span]
    start: Time | None
    end: Time | None
    as_of: Time | None


class QuestionOptions(AccountingOptions, total=False):
    """All arguments that a `Question` is made of."""

    run: int | str | None
    window: str | Sequence[str | int]
    every: str | int | None


def make_question(**options: Unpack[QuestionOptions]) -> Question:
    """A question from what a person typed or a program gives. `UsageError` if it makes no sense."""
    known = {one.keyword: one for one in declared(Question)}
    unknown = options.keys() - known.keys()
    if unknown:
        meant = did_you_mean(min(unknown), known, "the names are those of the options, as in reference_step_time=8")
        raise TypeError(f"there is no argument {', '.join(sorted(unknown))}; {meant}")
    values: dict[str, Any] = {
        known[name].name: known[name].value(value) for name, value in options.items() if value is not None
    }
    method = Method(**{one.name: values.pop(one.name) for one in declared(Method) if one.name in values})
    question = Question(method=method, **values)
    if question.every is not None and not question.window:
        raise UsageError("--every says how often the windows of --window end; name a --window too")
    return question
