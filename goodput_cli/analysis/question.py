"""What is asked of one job, checked before any log is read. No NumPy here, as `--help` reads this.

What time costs in accelerator hours and money.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any, Literal, get_args

from goodput_cli.accounting.options import HOW, WHEN, Method
from goodput_cli.analysis.work_options import NOTHING_SAID, WorkOptions
from goodput_cli.errors import UsageError
from goodput_cli.events.reading_options import WHAT
from goodput_cli.vocabulary.option import bounded, declared, option, read_length, read_ns
from goodput_cli.vocabulary.removed import removed_keyword
from goodput_cli.vocabulary.text import did_you_mean
from goodput_cli.vocabulary.when import AUTO, NS_PER_HOUR, NS_PER_SECOND, Span, When, load_zone, parse_span, parse_when

Time = str | datetime | int | When
"""An instant: as typed on the command line, a datetime, or ns since 1970 UTC."""
ALL = "all"
BASELINE: Literal["baseline"] = "baseline"
"""A reference step time that comparisons take of their baseline."""
_read_seconds = bounded(Fraction, "is not a step time; write seconds such as 2.5, or auto", above=0, most=1e9, unit=1)


def _read_zone(name: str) -> str:
    load_zone(name)
    return name


def _read_run(value: str | int) -> str:
    text = str(value).strip().lower()
    if text in (AUTO, ALL, "last") or (text.isascii() and text.isdigit() and 0 < len(text) < 10 and int(text) > 0):
        return text
    raise UsageError(f"{value!r} is not a run; runs are numbered from 1, or write last, all or auto")


def _read_step_time(value: str | float | Fraction) -> Fraction | Literal["auto", "baseline"]:
    """Seconds, exactly as written: 0.1 is a tenth, not the nearest float."""
    word = value.strip().lower() if isinstance(value, str) else ""
    return "auto" if word == "auto" else BASELINE if word == BASELINE else _read_seconds(value)


def _read_ns(value: str | int) -> int:
    """A length of time from text, or in ns."""
    if isinstance(value, int) and value <= 0:
        raise UsageError(f"{value} ns is not a length of time above 0")
    return read_ns(value)


def _read_window(value: str | int) -> int:
    return 0 if isinstance(value, str) and value.strip().lower() == "auto" else _read_ns(value)


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked of one job, and how to account for it. Times are resolved once the job is known."""

    run: str = option(
        AUTO,
        WHAT,
        "One run of a job name that was used several times, or all as one; auto: the last, where the others said that "
        "they were finished, else all.",
        about='One run of a job name: a number from 1, or "last"; "all" for all of them as one; "auto" for the last '
        "where the others said that they were finished, else for all (accounting §10).",
        accepts="int | str | None",
        metavar="N|last|all|auto",
        read=_read_run,
        settings={"show_default": True},
    )
    timezone: str = option(
        AUTO,
        WHAT,
        "Zone of times that name none, in logs and on the command line; auto: as entries of Cloud Logging show, else "
        "UTC.",
        about='The zone of times that name none; "auto" for what the entries around them show, else UTC.',
        metavar="ZONE",
        read=_read_zone,
        settings={"show_default": True},
    )
    reference_step_time: Fraction | Literal["auto", "baseline"] | None = option(
        None,
        HOW,
        "What a step should take: productive is kept steps times this.",
        about='What a step should take, in seconds, exact; "auto" where the log is to give it (accounting §6), and of '
        'comparisons "baseline" for the median step of that side.',
        accepts="str | float | Fraction | None",
        metavar="SECONDS|auto",
        read=_read_step_time,
    )
    method: Method = Method()
    """The choices that are part of every answer."""
    exclude: tuple[Span, ...] = option(
        (),
        HOW,
        "Take a window out.",
        about="Windows `START/END` to take out.",
        accepts="Sequence[str | Span]",
        metavar="START/END",
        read=parse_span,
        follows="stall_factor",
    )
    start: When | None = option(
        None,
        WHEN,
        "Start of the window; default: the job's.",
        about="Start of the window; None for the job's.",
        accepts="Time | None",
        names=("--from",),
        metavar="TIME",
        read=parse_when,
    )
    end: When | None = option(
        None,
        WHEN,
        "End of the window; default: the job's.",
        about="End of the window; None for the job's.",
        accepts="Time | None",
        names=("--to",),
        metavar="TIME",
        read=parse_when,
    )
    as_of: When | None = option(
        None,
        WHEN,
        "Answer as it was known then.",
        about="The answer as it was known then: nothing that was logged later counts. None for all.",
        accepts="Time | None",
        metavar="TIME|now",
        read=parse_when,
    )
    window: tuple[int, ...] = option(
        (),
        WHEN,
        "Length of rolling windows, such as 1h; auto for a round tenth.",
        about='Lengths of rolling windows: "1h", or ns; "auto" (0 here) for a round tenth of the window.',
        accepts="str | Sequence[str | int]",
        metavar="W",
        read=_read_window,
    )
    every: int | None = option(
        None,
        WHEN,
        "One window ends every E.  [default: the shortest window]",
        about='From the end of one rolling window to the next: "30m", or ns; None for the length of the shortest.',
        accepts="str | int | None",
        metavar="E",
        read=_read_ns,
    )
    work: WorkOptions = NOTHING_SAID
    """What is known of the work of the job."""
    now_ns: int = field(default_factory=time.time_ns)
    """The present, ns since 1970 UTC."""


def make_question(**options: Any) -> Question:
    """A question from what a person typed or a program gives, by the keywords of its options; None is as by default.
    `UsageError` if it makes no sense."""
    known = {one.keyword: one for one in declared(Question)}
    unknown = options.keys() - known.keys()
    for name in sorted(unknown):
        if (sentence := removed_keyword(name)) is not None:
            raise UsageError(sentence)
    if unknown:
        meant = did_you_mean(min(unknown), known, "the names are those of the options, as in reference_step_time=8")
        raise TypeError(f"there is no argument {', '.join(sorted(unknown))}; {meant}")
    values: dict[str, Any] = {
        known[name].name: known[name].value(value) for name, value in options.items() if value is not None
    }
    method = Method(**{one.name: values.pop(one.name) for one in declared(Method) if one.name in values})
    work = WorkOptions(**{one.name: values.pop(one.name) for one in declared(WorkOptions) if one.name in values})
    question = Question(method=method, work=work, **values)
    if question.every is not None and not question.window:
        raise UsageError("--every says how often the windows of --window end; name a --window too")
    return question


@dataclass(frozen=True)
class Price:
    """What the job's accelerators cost."""

    accelerators: float
    """How many the job holds."""
    per_hour: float | None = None
    """Of one of them for an hour, in any currency; None where it is not known."""

    def hours(self, ns: float) -> float:
        """Accelerator hours in which the job held its accelerators for `ns`."""
        return ns / NS_PER_HOUR * self.accelerators

    def money(self, ns: float) -> float | None:
        """The price of that; None where no price is known."""
        return None if self.per_hour is None else self.hours(ns) * self.per_hour


def price_of(accelerators: float | None, per_hour: float | None) -> Price | None:
    """The price, None where nobody says how many accelerators the job holds. `UsageError`: a price of none."""
    if per_hour is not None and accelerators is None:
        raise UsageError("--price-per-hour needs --accelerators: how many are held")
    return None if accelerators is None else Price(accelerators, per_hour)


def hours_and_money(price: Price | None, ns: float) -> tuple[float | None, float | None]:
    """Accelerator hours and their price, None as far as they are not known."""
    return (None, None) if price is None else (price.hours(ns), price.money(ns))


ADVICE = "Advice"
"""The heading in `--help`."""
Death = Literal["earliest", "middle", "latest"]
"""When a life ended whose end no line shows: between its last sign of life and the next start."""
_read_steps = bounded(int, "is not a number of steps; write one from 1", least=1)


def _seconds(value: str | float) -> float:
    """Seconds, also from a length of time as it is typed."""
    return read_length(value) / NS_PER_SECOND if isinstance(value, str) else float(value)


@dataclass(frozen=True, kw_only=True)
class AdviceQuestion:
    """What is asked of advice on a job, and what a person knows of the job that no line says. Times in s."""

    save_seconds: float | None = option(
        None, ADVICE, "What a save blocks, where no line says it.", metavar="LENGTH", read=_seconds
    )
    interval_now: int | None = option(
        None, ADVICE, "Steps between two saves.  [default: the log's]", metavar="STEPS", read=_read_steps,
        about="Steps between two saves today; None for what the log says.",
    )  # fmt: skip
    mtbf: float | None = option(
        None, ADVICE, "Training between two failures, as known elsewhere.", metavar="LENGTH", read=_seconds,
        about="Seconds of training between two failures, as the cluster is known for.",
    )  # fmt: skip
    death: Death = option(
        "middle", ADVICE, "The moment of a death that no line shows.", choices=get_args(Death),
        accepts='Literal["earliest", "middle", "latest"]', settings={"show_default": True},
    )  # fmt: skip
    spare_seconds: float = option(
        60.0, ADVICE, "How soon a spare takes over.", metavar="LENGTH", read=_seconds,
        settings={"default": "60s", "show_default": True},
    )  # fmt: skip

    @property
    def save_ns(self) -> int | None:
        """What a save blocks, ns."""
        return None if self.save_seconds is None else round(self.save_seconds * NS_PER_SECOND)
