"""The arguments that the functions of the library share, how logs are read with them, and for which logs rules may be
inferred without being asked.
"""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from io import IOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from goodput_cli.accounting.options import HOW
from goodput_cli.analysis.question import AdviceQuestion, Question, make_question
from goodput_cli.errors import UsageError
from goodput_cli.events.reading_options import WHAT, ReadingOptions
from goodput_cli.sources.base import without_password
from goodput_cli.vocabulary.option import DAY, DeclaredOption, Keywords, argument, bounded, declared, option, read_ns

if TYPE_CHECKING:
    from goodput_cli.analysis.threshold import Expression
    from goodput_cli.diagnostics.diagnostic import Diagnostic
    from goodput_cli.events.schema import EventLog
    from goodput_cli.events.text.passes import Trace
    from goodput_cli.sources.base import Progress, RawBatch, SourceFilter


Source = str | os.PathLike[str]
"""A file, a glob, a folder, `-` for standard input, or an address such as gs://bucket/logs."""
Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""One file or several."""
Records = Any
"""Events in memory: a list of dicts, or a DataFrame of pandas or polars."""
_ACCEPTED = "pass a log file, a folder, a glob, an address, a DataFrame of events or a list of dicts"
_MOST_DAYS = 36_500  # a hundred years: no log in Cloud Logging is older
_read_days = bounded(
    float, "is not a number of days; use one such as 7, 0.5 or 36h", above=0, most=_MOST_DAYS, unit=DAY
)
COMPARISON, FOLLOW, MONITOR, SNAPSHOT = "Comparison", "Updates", "Monitor", "Snapshot"
"""Headings in `--help`."""
CLOUD_LOGGING = "cloud-logging://"
"""The source if only a job is given."""
LONGEST_LINE = 16
"""In MiB; equal to the limit in `sources.blocks`, which is not imported for `--help`."""
_read_interval = bounded(
    float, "is not an interval; use seconds from 0.1 to 86400, such as 5", least=0.1, most=DAY, unit=1
)
_read_seconds = bounded(float, "is not a duration; use seconds, or one such as 90s or 6h", least=0, most=1e9, unit=1)
_read_count = bounded(int, "is not a number of updates; use a whole number from 1", least=1, most=1e9)
_read_mib = bounded(int, "is not a number of MiB; use a whole number from 1 to 4096", least=1, most=4096)
Function = TypeVar("Function", bound=Callable[..., Any])
Declaring = TypeVar("Declaring")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Options for reading logs."""

    job_name: str | None = option(
        None,
        WHAT,
        "Job to analyze, if the logs contain several.",
        about="Job to analyze. Optional if the logs contain one job.",
        names=("--job-name", "-j"),
        metavar="NAME",
        read=str,
    )
    log_name: str | None = option(
        None,
        WHAT,
        "Cloud Logging log to read.  [default: both default logs]",
        about="Cloud Logging log to read. None: both default logs.",
        metavar="ID",
        read=str,
    )
    lookback_days: float | None = option(
        None,
        WHAT,
        "How far back to read Cloud Logging, such as 7 or 36h.  [default: the job's start]",
        about="Days to read back in Cloud Logging. None: to the start of the job.",
        names=("--lookback",),
        metavar="DAYS",
        read=_read_days,
    )
    use_cache: bool = option(
        True,
        WHAT,
        "Do not cache entries of Cloud Logging.",
        about="Cache entries of Cloud Logging, and use cached ones.",
        names=("--no-cache",),
    )
    hints: ReadingOptions = field(default_factory=ReadingOptions)
    """Information that the logs do not contain."""
    heartbeats: bool = option(
        True,
        WHAT,
        "Do not read heartbeats from Cloud Logging.",
        about="Read system metrics of ML Diagnostics, 99 % of its entries in Cloud Logging.",
        names=("--no-heartbeats",),
    )
    longest_line: int = option(
        LONGEST_LINE,
        WHAT,
        "Longest part of a line to read, in MiB.  [default: 16]",
        about="Longest part of a line to read, in MiB. The rest is left out and reported.",
        metavar="MIB",
        read=_read_mib,
    )
    stdin: BinaryIO | None = argument(None, "Stream for the source `-`. None: standard input.")
    progress: Progress | None = argument(None, "Callback that receives reading progress.")
    notice: Callable[[str], None] | None = argument(None, "Callback for status messages.")
    trace: Trace | None = None
    """Follows the passes over text."""
    settings_of: str | None = None
    """The job whose settings are used, if they contain its name from before 0.2."""

    @property
    def wanted(self) -> SourceFilter:
        """Return the part to read, for sources that can filter."""
        from goodput_cli.sources.base import SourceFilter

        return SourceFilter(
            self.job_name,
            self.log_name,
            self.lookback_days,
            self.use_cache,
            heartbeats=self.heartbeats,
            longest_line=self.longest_line,
        )

    def read(self, sources: Source | Sequence[Source], timezone: str) -> EventLog:
        """Read the logs into one table. Raises SourceError if one cannot be read."""
        from goodput_cli.events.read import read_events

        log = read_events(
            readable(sources),
            timezone=timezone,
            stdin=self.stdin,
            progress=self.progress,
            wanted=self.wanted,
            notice=self.notice,
            hints=self.hints.checked(),
            trace=self.trace,
        )
        noticed = self.renamed_settings(log.former, log.table.jobs) if self.settings_of is not None else ()
        return replace(log, diagnostics=(*log.diagnostics, *noticed)) if noticed else log

    def renamed_settings(
        self, former: Mapping[str, str], jobs: Collection[str], job: str | None = None
    ) -> tuple[Diagnostic, ...]:
        """Return the warning that settings contain the old name of a job. former: the names before 0.2 by job. jobs:
        all present jobs. job: the requested one, if it is not `job_name`. Raises UsageError if the job never had that
        name, so that the settings are those of another job."""
        from goodput_cli.diagnostics.diagnostic import Diagnostic, renamed

        old, job = self.settings_of, self.job_name or job or ""
        if old is None:
            return ()
        if former.get(job) != old or old in jobs:
            raise UsageError(
                f"the settings of the job {old!r} do not apply to {job!r}: the job never had this name, or another job "
                "has it now",
                tip="rename the table in the settings, or use --no-config",
            )
        return (Diagnostic.of("job_renamed", renamed(old, [job], "settings can use the old one")),)


@dataclass(frozen=True, kw_only=True)
class Sides:
    """The sides of a comparison."""

    baseline: tuple[str, ...] = option(
        (),
        COMPARISON,
        "Baseline to compare against. Repeat it to show the usual range.  [default: the first SOURCE]",
        about="Baseline to compare against. Three or more show the usual range. None: the first source.",
        accepts="Source | Sequence[Source] | None",
        metavar="SOURCE",
        path=True,
    )


@dataclass(frozen=True, kw_only=True)
class FollowOptions:
    """Options for following a growing log."""

    interval: float = option(
        2.0,
        FOLLOW,
        "Time between updates.  [default: 2]",
        about="Seconds between two updates. Longer if an update takes longer.",
        metavar="SECONDS",
        read=_read_interval,
    )


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Update and end times of a monitor, in s."""

    interval: float = option(
        60.0, MONITOR, "Time between updates.  [default: 60]", metavar="SECONDS", read=_read_interval
    )
    """Time between two updates."""
    windows: tuple[int, ...] = option(
        (), MONITOR, "Publish the last W too, such as 1d. Repeatable.", names=("--window",), metavar="W", read=read_ns
    )
    """Lengths of rolling windows in ns."""
    settle: float = option(
        60.0, MONITOR, "End TIME after a clean end.  [default: 60]", metavar="TIME", read=_read_seconds
    )
    """Time without a new line after a clean end until the monitor ends."""
    idle_end: float | None = option(
        None, MONITOR, "End after TIME without a new line.  [default: never]", metavar="TIME", read=_read_seconds
    )
    """Time without a new line until the monitor ends in any case; None: never."""
    forever: bool = option(False, MONITOR, "Keep running after the job has ended.")
    """True to keep running, even after a clean end."""
    keep_ended: float = option(
        3600.0,
        MONITOR,
        "Publish an ended job for TIME while other jobs run.  [default: 3600]",
        metavar="TIME",
        read=_read_seconds,
    )
    """Time for which an ended job is published while other jobs run."""
    updates: int | None = option(None, MONITOR, "End after N updates.", metavar="N", read=_read_count)
    """The number of updates after which to end."""
    wait: float = option(
        600.0, MONITOR, "Time limit for the first event.  [default: 600]", metavar="TIME", read=_read_seconds
    )
    """Time limit for the first event."""
    grace: float = option(
        10.0, MONITOR, "Time limit for the last update.  [default: 10]", metavar="TIME", read=_read_seconds
    )
    """Time limit for the last update."""
    whole_job: bool = option(False, MONITOR, "Publish totals only if the log begins with the job.")
    """True to publish nothing about the whole job if the log begins later than the job."""
    ideal_step_time: float | None = option(
        None, MONITOR, "Step time for deviations.  [default: from the log]", metavar="SECONDS", read=_read_seconds
    )
    """Step time for deviations in s; None or 0: that of the log."""
    thresholds: tuple[Expression, ...] = ()
    """Thresholds, judged at each update."""


@dataclass(frozen=True, kw_only=True)
class SnapshotMode:
    """How to treat an existing snapshot."""

    update: bool = option(
        False,
        SNAPSHOT,
        "Add new lines to the snapshot; SOURCE is optional.",
        about="Add new lines to an existing snapshot.",
    )
    force: bool = option(False, SNAPSHOT, "Replace an existing file.")


def addresses(sources: Any) -> list[str]:
    """Return one source or several as texts. Raises UsageError for anything else."""
    named = [sources] if isinstance(sources, str | os.PathLike) else sources
    if not isinstance(named, Iterable) or isinstance(named, bytes | Mapping | IOBase):
        raise UsageError(f"sources cannot be {type(sources).__name__}", tip=_ACCEPTED)
    return [_address(source) for source in named]


def _address(source: object) -> str:
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    raise UsageError(f"a source cannot be {type(source).__name__}", tip=_ACCEPTED)


def readable(sources: Any) -> list[str | RawBatch]:
    """Return sources as texts, or events in memory as a batch. Raises UsageError for other values."""
    from goodput_cli.events.read import batch_of, is_records, is_table

    if is_table(sources) or is_records(sources):
        return [batch_of(sources)]
    if not isinstance(sources, Sequence) or isinstance(sources, str | bytes):
        return [*addresses(sources)]
    return [batch_of(one) if is_table(one) or is_records(one) else _address(one) for one in sources]


def command_line_of(sources: Source | Sequence[Source], reading: Reading, question: Question) -> tuple[str, ...]:
    """Return the logs and the options that select and measure the job, as typed: `Analysis.options`.

    The window is not included, because follow-up commands choose their own.
    """
    named = [sources] if isinstance(sources, str | os.PathLike) else sources
    texts = [without_password(os.fspath(source)) for source in named if isinstance(source, str | os.PathLike)]
    if not texts:
        return ()
    values = {**vars(question.method), **vars(question), **vars(reading.hints), **vars(reading)}
    chosen = [one for one in (*declared(Reading), *declared(Question)) if one.option.group in (WHAT, HOW)]
    return (*texts, *(word for one in chosen for word in one.words(values[one.name])))


def split(options: Mapping[str, Any]) -> tuple[Reading, Question]:
    """Return the options for reading and for accounting. All are checked before a log is read. Raises UsageError."""
    hints, given = parsed_options(ReadingOptions, options)
    reading = Reading(hints=hints, **{one.name: given.pop(one.name) for one in fields(Reading) if one.name in given})
    return reading, make_question(**given)


LOG = Keywords.of("LogOptions", "Options for reading logs.", Reading, without=("job_name",))
FETCH = Keywords.of(
    "FetchOptions",
    "Options of `fetch`.",
    Reading,
    SnapshotMode,
    base=LOG,
    only=("job_name", "update", "force"),
)
SHARED = Keywords.of(
    "SharedOptions", "Options for reading and accounting.", Question, base=LOG, without=("run", "window", "every")
)
COMPARE = Keywords.of("CompareOptions", "Options of `compare`.", Sides, base=SHARED)

JOB = Keywords.of(
    "JobOptions", "Options for one job and one of its runs.", Reading, Question, base=SHARED, only=("job_name", "run")
)
ANALYZE = Keywords.of("AnalyzeOptions", "Options of `analyze`.", Question, base=JOB, only=("window", "every"))

WATCH = Keywords.of("WatchOptions", "Options of `watch`.", FollowOptions, base=ANALYZE)
ADVISE = Keywords.of("AdviseOptions", "Options of `advise`.", AdviceQuestion, base=JOB)


def parsed_options(kind: type[Declaring], options: Mapping[str, Any]) -> tuple[Declaring, dict[str, Any]]:
    """Return a dataclass of options, made of those given, and the other options. Raises UsageError."""
    rest = dict(options)
    typed = [(one, rest.pop(one.keyword)) for one in declared(kind) if one.keyword in rest]
    return kind(**{one.name: one.value(value) for one, value in typed if value is not None}), rest


def _shown_default(one: DeclaredOption) -> str:
    """Return the default of a keyword as `help()` shows it."""
    default = one.argument_default
    return repr(float(default)) if isinstance(default, Fraction) else repr(default)


def takes(keywords: Keywords) -> Callable[[Function], Function]:
    """Show the keywords in `**options` to `help()` and `inspect.signature`, with their types, defaults and meaning."""

    def decorate(function: Function) -> Function:
        own = inspect.signature(function)
        first = [one for one in own.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        listed = [
            inspect.Parameter(
                one.keyword, inspect.Parameter.KEYWORD_ONLY, default=one.argument_default, annotation=one.annotation
            )
            for one in keywords.all
        ]
        function.__signature__ = own.replace(parameters=[*first, *listed])  # type: ignore[attr-defined]
        if function.__doc__ is not None:  # python -OO
            lines = (f"    {one.keyword}={_shown_default(one)}: {one.about}" for one in keywords.all)
            function.__doc__ = "\n".join((inspect.cleandoc(function.__doc__), "", "Options:", *lines))
        return function

    return decorate


_LARGEST = 1 << 30
"""Maximum size of a file in bytes for inferring rules without being asked."""
_NO_TEXT = (".parquet", ".db", ".wandb")
"""Suffixes of files without lines of text."""


def names_of(sources: Any) -> list[str]:
    """Return the names of the sources; empty if one has no name."""

    try:
        return addresses(sources)
    except UsageError:
        return []


def is_local(name: str) -> bool:
    """Return True for a directory, or a file small enough for inferring rules without being asked."""
    path = Path(name)
    try:
        named = path.is_file() and path.suffix.lower() not in _NO_TEXT
        return path.is_dir() or (named and path.stat().st_size <= _LARGEST)
    except OSError:
        return False


def changed_at(names: Sequence[str]) -> int:
    """Return the time of the last change of the files (ns); the current time if unknown."""
    try:
        return max(Path(one).stat().st_mtime_ns for one in names)
    except (OSError, ValueError):
        return time.time_ns()
