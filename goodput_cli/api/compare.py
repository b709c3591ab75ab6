"""`goodput_cli.api.compare.compare(...)`: two runs or more side by side, from logs and from saved answers of `analyze`.

from goodput_cli.api.compare import compare
found = compare(["before.json", "run.jsonl"], changes=["goodput:-2pp"])
for pair in found.pairs:
    print(pair.side.name, float(pair.points), pair.thresholds)
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from goodput_cli.errors import GoodputError, NotEnoughData, UsageError

if TYPE_CHECKING:
    from goodput_cli.analysis.compare.compare import Comparison, Side
    from goodput_cli.analysis.compare.summary import Summary
    from goodput_cli.analysis.compare.thresholds import ChangeExpression
    from goodput_cli.api.analyze import Question, Source
    from goodput_cli.diagnostics.diagnostic import Diagnostic
    from goodput_cli.events.schema import EventLog
    from goodput_cli.sources.base import Progress, Wanted

CLOUD_LOGGING = "cloud-logging://"
_GIVE_EVERYTHING = ("file", "gs", "s3")
"""Places that hold what they hold, whatever job is wanted: read once for all sides."""


@dataclass(frozen=True)
class Asked:
    """One side as it is asked for. alone: whether job_name and run were given for this side and not for all."""

    source: str
    job_name: str | None
    run: str | None
    job_alone: bool
    run_alone: bool


def compare(
    sources: Sequence[Source],
    *,
    job_name: Sequence[str] = (),
    run: Sequence[int | str] = (),
    baseline: Source | None = None,
    changes: Sequence[ChangeExpression | str] = (),
    timezone: str = "UTC",
    stdin: BinaryIO | None = None,
    progress: Progress | None = None,
    log_name: str | None = None,
    lookback_days: float | None = None,
    use_cache: bool = True,
    notice: Callable[[str], None] | None = None,
    **question: Any,
) -> Comparison:
    """Analyse each side and hold the others against the baseline.

    sources: one a side: anything that `analyze` reads, or an answer that it saved as JSON; or a single one for all
    sides. job_name, run: none, one for all logs, or one a side in the order of the sources. baseline: one of the
    sources, or one more (then the last in that order); the first source by default. changes: expressions such as
    "goodput:-2pp", judged for every pair. The others are those of `goodput_cli.analyze`; they hold for logs, a saved
    answer stays as it was made.

    Raises UsageError before anything is read where the sides do not fit together, SourceError, NotEnoughData.
    """
    from goodput_cli.analysis.compare.compare import compare_sides
    from goodput_cli.analysis.compare.thresholds import parse_change
    from goodput_cli.api.analyze import make_question
    from goodput_cli.sources.base import Wanted

    expressions = [parse_change(given) if isinstance(given, str) else given for given in changes]
    asked = plan_sides(
        [os.fspath(source) for source in sources],
        job_name,
        [str(one) for one in run],
        None if baseline is None else os.fspath(baseline),
    )
    reader = _Reader(
        make_question(timezone=timezone, **question),
        Wanted(None, log_name, lookback_days, use_cache),
        stdin,
        progress,
        notice,
    )
    sides = _named(list(reader.sides(asked)))
    return compare_sides(sides[0], sides[1:], expressions)


def plan_sides(
    sources: Sequence[str], job_names: Sequence[str], runs: Sequence[str], baseline: str | None
) -> list[Asked]:
    """What each side is, the baseline first. `UsageError` where that cannot be told, or there is only one."""
    named = list(sources)
    if baseline is not None and baseline not in named:
        named.append(baseline)
    if not named and job_names:
        named = [CLOUD_LOGGING]
    count = max(len(named), len(job_names), len(runs))
    for what, given in (("SOURCE", named), ("--job-name", job_names), ("--run", runs)):
        if len(given) not in ((1, count) if what == "SOURCE" else (0, 1, count)):
            raise UsageError(
                f"{len(given)} x {what} for {count} sides: give one for all sides, or one for each in their order"
            )
    if count < 2:
        raise UsageError(
            "one side cannot be compared: name two SOURCEs (logs, or JSON that analyze saved), or one log with "
            "--job-name or --run twice"
        )
    sides = [
        Asked(
            source=named[at % len(named)],
            job_name=job_names[at % len(job_names)] if job_names else None,
            run=runs[at % len(runs)] if runs else None,
            job_alone=len(job_names) > 1,
            run_alone=len(runs) > 1,
        )
        for at in range(count)
    ]
    first = 0 if baseline is None else next(at for at, side in enumerate(sides) if side.source == baseline)
    return [sides[first], *sides[:first], *sides[first + 1 :]]


class _Reader:
    """Reads each source once and makes the sides of it."""

    def __init__(
        self,
        question: Question,
        wanted: Wanted,
        stdin: BinaryIO | None,
        progress: Progress | None,
        notice: Callable[[str], None] | None,
    ) -> None:
        self._question = question
        self._wanted = wanted
        self._stdin = stdin
        self._progress = progress
        self._notice = notice

    def sides(self, asked: Sequence[Asked]) -> Iterator[Side]:
        """The sides in the order in which they are asked for; names are those of the jobs."""
        read: dict[tuple[str, str | None], Summary | EventLog] = {}
        last = {_key(one): at for at, one in enumerate(asked)}
        for at, one in enumerate(asked):
            key = _key(one)
            if key not in read:
                read[key] = self._read(one)
            try:
                yield self._side(one, read[key])
            except (UsageError, NotEnoughData) as error:
                raise _told_where(error, one.source) from error
            if last[key] == at:
                del read[key]  # a log may be large, and the next one too

    def _read(self, asked: Asked) -> Summary | EventLog:
        from dataclasses import replace

        from goodput_cli.analysis.compare.saved_analysis import summary_of_saved
        from goodput_cli.events.read import decode_batches
        from goodput_cli.sources.base import ReadContext, source_for
        from goodput_cli.sources.single import single_answer
        from goodput_cli.vocabulary.zones import load_zone

        notices: list[Diagnostic] = []
        wanted = replace(self._wanted, job_name=asked.job_name)
        context = ReadContext(notices.append, self._stdin, self._progress, wanted=wanted, notice=self._notice)
        answer, batches = single_answer(source_for(asked.source).read(asked.source, context))
        if answer is not None:
            return summary_of_saved(answer, asked.source)
        return decode_batches([batches], load_zone(self._question.timezone), context, notices)

    def _side(self, asked: Asked, read: Summary | EventLog) -> Side:
        from dataclasses import replace

        from goodput_cli.analysis.compare.compare import Side
        from goodput_cli.analysis.compare.summary import Summary, summary_of
        from goodput_cli.api.analyze import analyze_log

        if isinstance(read, Summary):
            _check_saved(asked, read)
            return Side(read.job, asked.source, True, None, read)
        analysis = analyze_log(read, replace(self._question, run=asked.run), asked.job_name)
        return Side(analysis.job.name, asked.source, False, asked.run, summary_of(analysis))


def _key(asked: Asked) -> tuple[str, str | None]:
    from goodput_cli.sources.base import scheme_of

    return asked.source, None if scheme_of(asked.source) in _GIVE_EVERYTHING else asked.job_name


def _check_saved(asked: Asked, saved: Summary) -> None:
    """A saved answer is of one job and of the run that it was made of: no other can be had from it."""
    if asked.job_alone and asked.job_name != saved.job:
        raise NotEnoughData(f"is a saved answer about job {saved.job!r}, not {asked.job_name!r}")
    if asked.run_alone:
        raise UsageError("is a saved answer, which is of one run; give --run once, it holds for the logs")


def _told_where(error: GoodputError, source: str) -> GoodputError:
    return type(error)(f"{source}: {error}")


def _named(sides: list[Side]) -> list[Side]:
    """The sides with names that tell them apart: the job's where that does, else where it was read, then the run,
    then which of them it is."""
    from dataclasses import replace

    names = [side.name for side in sides]
    names = _where_alike(names, ["stdin" if side.source == "-" else side.source for side in sides])
    names = _where_alike(
        names, [f"{name}, run {side.run}" if side.run else name for side, name in zip(sides, names, strict=True)]
    )
    names = _where_alike(names, [f"{name} ({names[: at + 1].count(name)})" for at, name in enumerate(names)])
    return [replace(side, name=name) for side, name in zip(sides, names, strict=True)]


def _where_alike(names: list[str], more: list[str]) -> list[str]:
    """`more` instead of the names that occur more than once."""
    count = Counter(names)
    return [other if count[name] > 1 else name for name, other in zip(names, more, strict=True)]
