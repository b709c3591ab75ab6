"""The arguments that the functions of the library share, and how logs are read with them."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, BinaryIO, TypedDict, TypeVar

from goodput_cli.analysis.question import WHAT, AccountingOptions, Question, make_question
from goodput_cli.errors import UsageError
from goodput_cli.vocabulary.amounts import DAY, bounded
from goodput_cli.vocabulary.option import declared, option
from goodput_cli.vocabulary.when import When, parse_when

if TYPE_CHECKING:
    from goodput_cli.events.asked import Asked
    from goodput_cli.events.schema import EventLog
    from goodput_cli.sources.base import Progress, RawBatch, Wanted

Source = str | os.PathLike[str]
"""A file, a glob, a folder, `-` for standard input, or an address such as gs://bucket/logs."""
Records = Any
"""Events that a program has: a list of dicts, or a DataFrame of pandas or polars."""
_ACCEPTED = "name a log file, a folder, a glob or an address, or give a DataFrame or a list of dicts of events"
_MOST_DAYS = 36_500  # Cloud Logging keeps no log for a hundred years
_read_days = bounded(
    float, "is not a number of days; write one such as 7 or 0.5, or 36h", above=0, most=_MOST_DAYS, unit=DAY
)
Function = TypeVar("Function", bound=Callable[..., Any])


def _read_year(value: str | int) -> int:
    year = int(value) if str(value).isascii() and str(value).isdigit() else 0
    if not 1970 <= year < 2255:
        raise UsageError(f"--year {value}: is no year from 1970 to 2254")
    return year


def _read_start(value: str | When) -> When:
    """A time that needs no job to be one."""
    when = parse_when(value) if isinstance(value, str) else value
    if when.kind not in ("instant", "local"):
        raise UsageError(f"--start {when.text}: write a date and a time, such as 2026-01-31T14:05")
    return when


class LogOptions(TypedDict, total=False):
    """How to read, for editors and type checkers. Each is described at the field of `Reading` that has its name."""

    log_name: str | None
    lookback_days: float | None
    use_cache: bool
    mapping: tuple[str, ...]
    year: int | None
    clock_start: When | str | None
    tensorboard_tag: str | None
    exact_run_name: bool
    heartbeats: bool
    stdin: BinaryIO | None
    progress: Progress | None
    notice: Callable[[str], None] | None


class SharedOptions(LogOptions, AccountingOptions, total=False):
    """How to read and how to account."""


class JobOptions(SharedOptions, total=False):
    """The same, of one job and one of its runs."""

    job_name: str | None
    run: int | str | None


class AnalyzeOptions(JobOptions, total=False):
    """The same, with rolling windows."""

    window: str | Sequence[str | int]
    every: str | int | None


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How logs are read."""

    job_name: str | None = option(
        None, WHAT, "The job, where the logs hold several.", names=("--job-name", "-j"), metavar="NAME", read=str
    )
    """The job; may be left out where the logs hold one."""
    log_name: str | None = option(
        None, WHAT, "The log in Cloud Logging; default: both usual names.", metavar="ID", read=str
    )
    """Which log of Cloud Logging; None for both usual ones."""
    lookback_days: float | None = option(
        None,
        WHAT,
        "How far back to read Cloud Logging (7, 36h).  [default: the job's start]",
        names=("--lookback",),
        metavar="DAYS",
        read=_read_days,
    )
    """How far back to read Cloud Logging; None: as far as the job goes."""
    use_cache: bool = option(True, WHAT, "Read Cloud Logging anew and keep nothing of it.", names=("--no-cache",))
    """Whether entries of Cloud Logging that were read before may be kept and used."""
    mapping: tuple[str, ...] = option(
        (), WHAT, "A log format of your own: TOML (docs/mappings.md).", metavar="FILE", read=str
    )
    """Files that declare log formats."""
    year: int | None = option(None, WHAT, "The year of stamps that name none.", metavar="YYYY", read=_read_year)
    """Of stamps in text without one; None for that of the stamps around them, or of the file's last change."""
    tensorboard_tag: str | None = option(
        None, WHAT, "The scalar of event files whose steps count.", metavar="TAG", read=str
    )
    """The scalar of TensorBoard's event files whose steps are those of training; None for the likeliest."""
    clock_start: When | None = option(
        None,
        WHAT,
        "When a text without any time began.",
        names=("--start",),
        metavar="TIME",
        read=_read_start,
        follows="year",
    )
    """Of text in which no line has a time; None: what it says ends when the file was last changed."""
    exact_run_name: bool = option(False, WHAT, "Runs of ML Diagnostics whose names differ are different jobs.")
    """Whether runs whose names differ in their time of start are jobs of their own."""
    heartbeats: bool = option(
        True, WHAT, "Leave out signs of life in Cloud Logging's metrics.", names=("--no-heartbeats",)
    )
    """Whether system metrics of ML Diagnostics, 99 in 100 of its entries, are asked of Cloud Logging too."""
    stdin: BinaryIO | None = None
    """The stream behind `-`; None for the standard input of the process."""
    progress: Progress | None = None
    """Is told how reading goes on."""
    notice: Callable[[str], None] | None = None
    """Takes sentences for the person who waits."""

    @property
    def wanted(self) -> Wanted:
        """What to ask of places that can be asked for a part."""
        from goodput_cli.sources.base import Wanted

        return Wanted(self.job_name, self.log_name, self.lookback_days, self.use_cache, heartbeats=self.heartbeats)

    @property
    def asked(self) -> Asked:
        """What logs do not say themselves. Raises UsageError for a mapping with a mistake."""
        from goodput_cli.events.asked import asked

        return asked(self.mapping, self.year, self.tensorboard_tag, self.clock_start, self.exact_run_name)

    def read(self, sources: Source | Sequence[Source], timezone: str) -> EventLog:
        """Read the logs into one table. Raises SourceError where one cannot be read."""
        from goodput_cli.events.read import read_events

        return read_events(
            readable(sources),
            timezone=timezone,
            stdin=self.stdin,
            progress=self.progress,
            wanted=self.wanted,
            notice=self.notice,
            asked=self.asked,
        )


def addresses(sources: Any) -> list[str]:
    """One source or several, as texts. Raises UsageError for anything else."""
    named = [sources] if isinstance(sources, str | os.PathLike) else sources
    if not isinstance(named, Iterable) or isinstance(named, bytes | Mapping):
        raise UsageError(f"sources are not {type(sources).__name__}; {_ACCEPTED}")
    return [_address(source) for source in named]


def _address(source: object) -> str:
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    raise UsageError(f"a source is not {type(source).__name__}; {_ACCEPTED}")


def readable(sources: Any) -> list[str | RawBatch]:
    """The same, where events that a program has are sources too. Raises UsageError for what cannot be one."""
    from goodput_cli.events.in_memory import batch_of, is_records, is_table

    if is_table(sources) or is_records(sources):
        return [batch_of(sources)]
    if not isinstance(sources, Sequence) or isinstance(sources, str | bytes):
        return [*addresses(sources)]
    return [batch_of(one) if is_table(one) or is_records(one) else _address(one) for one in sources]


def asked(sources: Source | Sequence[Source], reading: Reading, question: Question) -> tuple[str, ...]:
    """The logs and the job as one types them: `Analysis.asked`."""
    named = [sources] if isinstance(sources, str | os.PathLike) else sources
    texts = [os.fspath(source) for source in named if isinstance(source, str | os.PathLike)]
    if not texts:
        return ()
    job = ("-j", reading.job_name) if reading.job_name else ()
    return (*texts, *job, *(("--run", question.run) if question.run else ()))


def split(options: Mapping[str, Any]) -> tuple[Reading, Question]:
    """How to read, and what to ask: everything is checked here, before a log is read. Raises UsageError."""
    of_reading = {one.name for one in fields(Reading)}
    reading = Reading(**_checked({name: value for name, value in options.items() if name in of_reading}))
    return reading, make_question(**{name: value for name, value in options.items() if name not in of_reading})


def _checked(options: dict[str, Any]) -> dict[str, Any]:
    """What a program gives for options that are read: files as paths, a year as a number or text."""
    if options.get("mapping") is not None:
        named = options["mapping"]
        options["mapping"] = tuple(map(os.fspath, [named] if isinstance(named, str | os.PathLike) else named))
    if options.get("clock_start") is not None:
        options["clock_start"] = _read_start(options["clock_start"])
    if options.get("year") is not None:
        options["year"] = _read_year(options["year"])
    return {name: value for name, value in options.items() if name != "mapping" or value is not None}


def spelled_out(options: type) -> Callable[[Function], Function]:
    """Show the names and defaults in `**options` to `help()` and `inspect.signature`. options: the TypedDict."""

    def decorate(function: Function) -> Function:
        known = [*declared(Reading), *declared(Question)]
        defaults = {one.keyword: False if one.option.negative else one.default for one in known}
        defaults |= {one.name: one.default for one in fields(Reading)}
        kinds = {name: getattr(kind, "__forward_arg__", kind) for name, kind in options.__annotations__.items()}
        own = inspect.signature(function)
        first = [one for one in own.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kinds[name])
            for name, default in defaults.items()
            if name in kinds
        ]
        function.__signature__ = own.replace(parameters=[*first, *more])  # type: ignore[attr-defined]
        return function

    return decorate
