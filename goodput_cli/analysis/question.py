"""Options of an analysis of one job, checked before any log is read: the question, the price of accelerator time, and
what the log does not contain about the work.

No NumPy here, because `--help` imports this module.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any, Literal, get_args

from goodput_cli.accounting.options import HOW, WHEN, Method
from goodput_cli.errors import UsageError, removed_keyword
from goodput_cli.events.reading_options import WHAT
from goodput_cli.vocabulary.option import bounded, declared, option, read_length, read_ns
from goodput_cli.vocabulary.text import did_you_mean
from goodput_cli.vocabulary.when import (
    AUTO,
    NS_PER_HOUR,
    NS_PER_SECOND,
    Span,
    TimeArgument,
    load_zone,
    parse_span,
    parse_when,
)

WORK = "Work"
"""Heading in `--help`."""
TERA = 1e12
PEAK_TFLOPS: Mapping[str, float] = {
    "a100": 312, "h100": 989, "h200": 989, "h100-pcie": 756, "b200": 2250, "gb200": 2500,
    "v4": 275, "v5e": 197, "v5p": 459, "v6e": 918,
}  # fmt: skip
"""Peak TFLOP/s of one accelerator: dense BF16, without sparsity."""
_MOST = 1e18
"""Upper limit of plausible work per step."""
_read_tokens = bounded(float, "is not a number of tokens; use a number above 0", above=0, most=_MOST)
_read_peak = bounded(float, "is not a number of TFLOP/s; use a number above 0, such as 989", above=0, most=1e6)
_read_total = bounded(int, "is not a number of steps; use a whole number from 1", least=1, most=_MOST)


@dataclass(frozen=True, kw_only=True)
class WorkOptions:
    """User input about the work of a job, which takes precedence over the log."""

    tokens_per_step: float | None = option(
        None,
        WORK,
        "Tokens per step, over all accelerators.  [default: from the log]",
        about="Tokens per step, over all accelerators. None: from the log.",
        metavar="N",
        read=_read_tokens,
    )
    peak_tflops: float | None = option(
        None,
        WORK,
        "Peak TFLOP/s of one accelerator, for MFU.  [default: from the log]",
        about="Peak TFLOP/s of one accelerator, for MFU. None: from the log.",
        metavar="N",
        read=_read_peak,
    )
    accelerator_type: str | None = option(
        None,
        WORK,
        "Accelerator, for its peak in dense BF16.",
        about="Accelerator, for its peak in dense BF16. None: from the log.",
        choices=tuple(PEAK_TFLOPS),
    )
    total_steps: int | None = option(
        None,
        WORK,
        "Number of steps of the whole job, for the ETA.  [default: from the log]",
        about="Number of steps of the whole job, for the ETA. None: from the log.",
        metavar="N",
        read=_read_total,
    )

    def __post_init__(self) -> None:
        if self.peak_tflops is not None and self.accelerator_type is not None:
            raise UsageError("use either --peak-tflops or --accelerator-type, not both")

    @property
    def peak_flops(self) -> float | None:
        """Return the peak FLOP/s of one accelerator; None if unknown."""
        if self.accelerator_type is not None:
            return PEAK_TFLOPS[self.accelerator_type] * TERA
        return None if self.peak_tflops is None else self.peak_tflops * TERA

    @property
    def peak_option(self) -> str:
        """Return the option that sets it, as typed."""
        return "--peak-tflops" if self.accelerator_type is None else f"--accelerator-type {self.accelerator_type}"


NOTHING_SAID = WorkOptions()


Time = str | datetime | int | TimeArgument
"""A time: as typed on the command line, a datetime, or ns since 1970 UTC."""
ALL = "all"
BASELINE: Literal["baseline"] = "baseline"
"""The reference step time of a comparison is the median step of the baseline."""
_read_seconds = bounded(Fraction, "is not a step time; use seconds such as 2.5, or auto", above=0, most=1e9, unit=1)


def _read_zone(name: str) -> str:
    load_zone(name)
    return name


def _read_run(value: str | int) -> str:
    text = str(value).strip().lower()
    if text in (AUTO, ALL, "last") or (text.isascii() and text.isdigit() and 0 < len(text) < 10 and int(text) > 0):
        return text
    raise UsageError(f"{value!r} is not a run", tip="use a number from 1, last, all or auto")


def _read_step_time(value: str | float | Fraction) -> Fraction | Literal["auto", "baseline"]:
    """Return seconds exactly as written: 0.1 is a tenth, not the nearest float."""
    word = value.strip().lower() if isinstance(value, str) else ""
    return "auto" if word == "auto" else BASELINE if word == BASELINE else _read_seconds(value)


def _read_ns(value: str | int) -> int:
    """Return a duration in ns, from text or ns."""
    if isinstance(value, int) and value <= 0:
        raise UsageError(f"{value} ns is not a positive duration")
    return read_ns(value)


def _read_window(value: str | int) -> int:
    """Return a length in ns; 0 for "auto", also if it was read before."""
    return 0 if value == 0 or str(value).strip().lower() == "auto" else _read_ns(value)


@dataclass(frozen=True, kw_only=True)
class Question:
    """Options of an analysis of one job. Relative times are resolved once the job is known."""

    run: str = option(
        AUTO,
        WHAT,
        "Run of a job name that was used several times. auto: the last run if the earlier ones finished, otherwise all "
        "as one.",
        about='Run of a job name: a number from 1, "last", "all" (as one job) or "auto".',
        accepts="int | str | None",
        metavar="N|last|all|auto",
        read=_read_run,
        settings={"show_default": True},
    )
    timezone: str = option(
        AUTO,
        WHAT,
        "Time zone of times without one. auto: the zone of Cloud Logging entries, otherwise UTC.",
        about='Time zone of times without one. "auto": that of nearby log entries, otherwise UTC.',
        metavar="ZONE",
        read=_read_zone,
        settings={"show_default": True},
    )
    reference_step_time: Fraction | Literal["auto", "baseline"] | None = option(
        None,
        HOW,
        "Expected time of a step. Goodput is then kept steps times this.",
        about='Expected time of a step in seconds, "auto" (from the log) or, in comparisons, "baseline".',
        accepts="str | float | Fraction | None",
        metavar="SECONDS|auto",
        read=_read_step_time,
    )
    method: Method = Method()
    """The options that are part of every answer."""
    exclude: tuple[Span, ...] = option(
        (),
        HOW,
        "Exclude a window from the accounting; repeatable.",
        about="Windows `START/END` to exclude from the accounting.",
        accepts="Sequence[str | Span]",
        metavar="START/END",
        read=parse_span,
        follows="stall_factor",
    )
    start: TimeArgument | None = option(
        None,
        WHEN,
        "Start of the window.  [default: the job's start]",
        about="Start of the window. None: the job's start.",
        accepts="Time | None",
        names=("--from",),
        metavar="TIME",
        read=parse_when,
    )
    end: TimeArgument | None = option(
        None,
        WHEN,
        "End of the window.  [default: the job's end]",
        about="End of the window. None: the job's end.",
        accepts="Time | None",
        names=("--to",),
        metavar="TIME",
        read=parse_when,
    )
    as_of: TimeArgument | None = option(
        None,
        WHEN,
        "Ignore everything logged after TIME.",
        about="Ignore everything logged after this time. None: use all lines.",
        accepts="Time | None",
        metavar="TIME|now",
        read=parse_when,
    )
    window: tuple[int, ...] = option(
        (),
        WHEN,
        "Length of rolling windows, such as 1h; auto: a tenth of the job, rounded up. Repeatable.",
        about='Lengths of rolling windows, such as "1h" or ns. "auto": a tenth of the job, rounded up.',
        accepts="str | Sequence[str | int]",
        metavar="W",
        read=_read_window,
    )
    every: int | None = option(
        None,
        WHEN,
        "Time between the ends of rolling windows.  [default: W]",
        about='Time between the ends of rolling windows, such as "30m" or ns. None: the shortest length.',
        accepts="str | int | None",
        metavar="E",
        read=_read_ns,
    )
    work: WorkOptions = NOTHING_SAID
    """User knowledge about the work of the job."""
    now_ns: int = field(default_factory=time.time_ns)
    """The current time, ns since 1970 UTC."""


def make_question(**options: Any) -> Question:
    """Return a question from typed options or keywords. None means the default.

    Raises TypeError for an unknown keyword and UsageError for a wrong value.
    """
    known = {one.keyword: one for one in declared(Question)}
    unknown = options.keys() - known.keys()
    for name in sorted(unknown):
        if (sentence := removed_keyword(name)) is not None:
            raise UsageError(sentence)
    if unknown:
        meant = did_you_mean(min(unknown), known, "arguments are named like the options, such as reference_step_time=8")
        raise TypeError(f"unknown argument: {', '.join(sorted(unknown))}; {meant}")
    values: dict[str, Any] = {
        known[name].name: known[name].value(value) for name, value in options.items() if value is not None
    }
    method = Method(**{one.name: values.pop(one.name) for one in declared(Method) if one.name in values})
    work = WorkOptions(**{one.name: values.pop(one.name) for one in declared(WorkOptions) if one.name in values})
    question = Question(method=method, work=work, **values)
    if question.every is not None and not question.window:
        raise UsageError("--every needs --window: it sets how often these windows end")
    return question


@dataclass(frozen=True)
class Price:
    """The number and the price of the job's accelerators."""

    accelerators: float
    """The number of accelerators of the job."""
    per_hour: float | None = None
    """The price per accelerator and hour, in any currency; None if unknown."""

    def hours(self, ns: float) -> float:
        """Return the accelerator hours of `ns`."""
        return ns / NS_PER_HOUR * self.accelerators

    def money(self, ns: float) -> float | None:
        """Return the price of `ns`; None if the price is unknown."""
        return None if self.per_hour is None else self.hours(ns) * self.per_hour


def price_of(accelerators: float | None, per_hour: float | None) -> Price | None:
    """Return the price; None if the number of accelerators is unknown. Raises UsageError for a price without one."""
    if per_hour is not None and accelerators is None:
        raise UsageError("--price-per-hour needs --accelerators, the number of accelerators of the job")
    return None if accelerators is None else Price(accelerators, per_hour)


def hours_and_money(price: Price | None, ns: float) -> tuple[float | None, float | None]:
    """Return accelerator hours and their price; None if unknown."""
    return (None, None) if price is None else (price.hours(ns), price.money(ns))


ADVICE = "Advice"
"""The heading in `--help`."""
Death = Literal["earliest", "middle", "latest"]
"""Assumed end of an attempt whose end is not logged: between its last activity and the next start."""
_read_steps = bounded(int, "is not a number of steps; use a whole number from 1", least=1)


def _seconds(value: str | float) -> float:
    """Return seconds, from a number or a typed duration."""
    return read_length(value) / NS_PER_SECOND if isinstance(value, str) else float(value)


@dataclass(frozen=True, kw_only=True)
class AdviceQuestion:
    """Options of advice, and what the user knows about the job that the log does not contain. Times in s."""

    save_seconds: float | None = option(
        None,
        ADVICE,
        "Time that a save blocks training, if it is not logged.",
        metavar="LENGTH",
        read=_seconds,
        about="Seconds that a save blocks training, if it is not logged.",
    )
    interval_now: int | None = option(
        None, ADVICE, "Current checkpoint interval in steps.  [default: from the log]", metavar="STEPS",
        read=_read_steps, about="Current checkpoint interval in steps. None: from the log.",
    )  # fmt: skip
    mtbf: float | None = option(
        None, ADVICE, "Training time between failures, if known from the cluster.", metavar="LENGTH", read=_seconds,
        about="Seconds of training between failures, if known from the cluster.",
    )  # fmt: skip
    death: Death = option(
        "middle", ADVICE, "Assumed failure time if it is not logged.", choices=get_args(Death),
        accepts='Literal["earliest", "middle", "latest"]', settings={"show_default": True},
    )  # fmt: skip
    spare_seconds: float = option(
        60.0, ADVICE, "Time until a spare node takes over.", metavar="LENGTH", read=_seconds,
        settings={"default": "60s", "show_default": True},
    )  # fmt: skip

    @property
    def save_ns(self) -> int | None:
        """Return the time that a save blocks training, in ns."""
        return None if self.save_seconds is None else round(self.save_seconds * NS_PER_SECOND)
