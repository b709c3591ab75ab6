"""`goodput_cli.compare(...)`: two runs or more side by side, from logs and from saved answers of `analyze`.

import goodput_cli
comparison = goodput_cli.compare(["before.json", "run.jsonl"], changes=["goodput:-2pp"])
for pair in comparison.pairs:
    print(pair.side.name, float(pair.points), pair.thresholds)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Unpack

from goodput_cli.analysis.question import BASELINE
from goodput_cli.api.draft import SharedDraft
from goodput_cli.api.options import (
    CLOUD_LOGGING,
    COMPARE,
    Reading,
    Sides,
    Source,
    addresses,
    parsed_options,
    split,
    takes,
)
from goodput_cli.errors import NotEnoughData, UsageError
from goodput_cli.sources.base import scheme_of, without_password
from goodput_cli.sources.layouts import shared_levels
from goodput_cli.vocabulary.when import AUTO

if TYPE_CHECKING:
    from goodput_cli.accounting.options import Bound
    from goodput_cli.analysis.compare.compare import Comparison
    from goodput_cli.analysis.compare.results import Side
    from goodput_cli.analysis.question import Question
    from goodput_cli.analysis.summary import Summary
    from goodput_cli.analysis.threshold import Expression
    from goodput_cli.api.keywords import CompareOptions
    from goodput_cli.diagnostics.diagnostic import Diagnostic
    from goodput_cli.events.schema import EventLog

_NOT_COMPARED = "its goodput is unknown, so it cannot be compared"
_BOTH_LOGS = "--reference-step-time baseline needs logs for all runs"
_GIVE_EVERYTHING = ("file", "gs", "s3")
"""Sources with the same content for every job: they are read once for all sides."""


@dataclass(frozen=True)
class PlannedSide:
    """One side before it is read."""

    source: str
    job_name: str | None
    run: str | None
    job_alone: bool
    """True if the job was set for this run, and not for all."""
    run_alone: bool
    """True if the run was set for this side, and not for all."""
    usual: bool = False
    """True for a further baseline."""


@takes(COMPARE)
def compare(
    sources: Source | Sequence[Source],
    *others: Source,
    job_name: str | Sequence[str] = (),
    run: int | str | Sequence[int | str] = (),
    changes: Sequence[Expression | str] = (),
    draft: bool = True,
    **options: Unpack[CompareOptions],
) -> Comparison:
    """Compare runs with a baseline.

    sources, others: one per run: anything that `analyze` reads, or an answer that it saved as JSON; or one source for
    all runs.
    job_name, run: none, one for all runs, or one per run in the order of the sources.
    changes: expressions such as "goodput:-2pp", judged for every pair.
    draft: infer rules for runs of an unknown format, from the first of these logs.
    The options are those of `goodput_cli.analyze`. They apply to logs, not to saved answers.

    Raises UsageError (before anything is read), SourceError or NotEnoughData.
    """
    from goodput_cli.analysis.compare.compare import compare_sides
    from goodput_cli.analysis.compare.results import parse_change

    expressions = [parse_change(one) if isinstance(one, str) else one for one in changes]
    asked, of_all = parsed_options(Sides, options)
    baselines = addresses(asked.baseline)
    planned = plan_sides(
        addresses(sources) + addresses(others),
        [job_name] if isinstance(job_name, str) else job_name,
        [str(one) for one in ([run] if isinstance(run, int | str) else run)],
        baselines[0] if baselines else None,
        baselines[1:],
    )
    reading, question = split(of_all)
    shared = SharedDraft()
    sides = _with_own_names(list(_SideReader(question, reading, shared if draft else None).sides(planned)))
    usual = [side for side, plan in zip(sides, planned, strict=True) if plan.usual]
    comparison = compare_sides(
        sides[0],
        [side for side, plan in zip(sides[1:], planned[1:], strict=True) if not plan.usual],
        expressions,
        usual,
    )
    return shared.marked(comparison)


def plan_sides(
    sources: Sequence[str],
    job_names: Sequence[str],
    runs: Sequence[str],
    baseline: str | None,
    baselines: Sequence[str] = (),
) -> list[PlannedSide]:
    """Return the runs to compare, the baseline first. Raises UsageError for less than two."""
    named = list(sources)
    named += [one for one in dict.fromkeys((baseline, *baselines)) if one is not None and one not in named]
    if not named and job_names:
        named = [CLOUD_LOGGING]
    count = max(len(named), len(job_names), len(runs))
    for what, values in (("SOURCE", named), ("--job-name", job_names), ("--run", runs)):
        if len(values) not in ((1, count) if what == "SOURCE" else (0, 1, count)):
            raise UsageError(
                f"{len(values)} x {what} for {count} runs", tip="use one for all runs, or one per run in order"
            )
    if count < 2:
        raise UsageError(
            "nothing to compare",
            tip="pass two SOURCEs (logs, or JSON of analyze), or one log with --job-name or --run twice",
        )
    sides = [
        PlannedSide(
            source=named[at % len(named)],
            job_name=job_names[at % len(job_names)] if job_names else None,
            run=runs[at % len(runs)] if runs else None,
            job_alone=len(job_names) > 1,
            run_alone=len(runs) > 1,
            usual=named[at % len(named)] in baselines and named[at % len(named)] != baseline,
        )
        for at in range(count)
    ]
    if sum(not side.usual for side in sides) < (1 if baseline is None else 2):
        raise UsageError("all runs are baselines", tip="pass a SOURCE that is not a baseline")
    first = 0 if baseline is None else next(at for at, side in enumerate(sides) if side.source == baseline)
    return [sides[first], *sides[:first], *sides[first + 1 :]]


class _SideReader:
    """Reader that reads each source once and makes the sides."""

    def __init__(self, question: Question, reading: Reading, draft: SharedDraft | None = None) -> None:
        """draft: rules for logs of an unknown format; None: do not infer rules."""
        self._draft = draft
        self._question = question
        self._reading = reading
        self._of_baseline = question.reference_step_time == BASELINE

    def sides(self, planned: Sequence[PlannedSide]) -> Iterator[Side]:
        """Yield the sides in order, named after their jobs."""
        read: dict[tuple[str, str | None], Summary | EventLog] = {}
        keys = [
            (side.source, None if scheme_of(side.source) in _GIVE_EVERYTHING else side.job_name) for side in planned
        ]
        last = {key: at for at, key in enumerate(keys)}
        for at, (side, key) in enumerate(zip(planned, keys, strict=True)):
            if key not in read:
                read[key] = self._read(side)
            try:
                if self._question.reference_step_time == BASELINE:
                    self._question = self._with_reference(side, read[key])
                yield self._side(side, read[key])
            except (UsageError, NotEnoughData) as error:
                raise error.after(without_password(side.source)) from error
            if last[key] == at:
                del read[key]  # free memory: logs may be large

    def _read(self, planned: PlannedSide) -> Summary | EventLog:
        from goodput_cli.events.joined_logs import read_sources
        from goodput_cli.events.read import decode_batches
        from goodput_cli.sources.base import ReadContext
        from goodput_cli.sources.blocks import single_answer

        diagnostics: list[Diagnostic] = []
        how = replace(self._reading, job_name=planned.job_name)
        context = ReadContext(diagnostics.append, how.stdin, how.progress, wanted=how.wanted, notice=how.notice)
        answer, batches = single_answer(read_sources([planned.source], context, how.hints))
        if answer is not None:
            from goodput_cli.analysis.compare.saved_analysis import summary_of_saved  # imports msgspec

            return summary_of_saved(answer, planned.source)
        zone = self._question.timezone
        log = decode_batches([batches], zone, context, diagnostics, how.hints.checked())
        if self._draft is None:
            return log
        try:
            return self._draft.log(log, planned.source, how, zone)
        except NotEnoughData as error:
            raise error.after(without_password(planned.source)) from error

    def _with_reference(self, planned: PlannedSide, read: Summary | EventLog) -> Question:
        """Return the question with the median step of the baseline, the first run, as the reference of all runs."""
        from goodput_cli.analysis.summary import Summary

        if isinstance(read, Summary):
            raise UsageError("a saved answer cannot be changed", tip=_BOTH_LOGS)
        without = _SideReader(replace(self._question, reference_step_time=None), self._reading)
        usual = without._side(planned, read).summary.steps.median_seconds
        if usual is None:
            raise NotEnoughData("has no step times for a reference", tip="set --reference-step-time in seconds")
        return replace(self._question, reference_step_time=Fraction(repr(usual)))

    def _side(self, planned: PlannedSide, read: Summary | EventLog) -> Side:
        from goodput_cli.analysis.account import analyze_log
        from goodput_cli.analysis.compare.results import Side
        from goodput_cli.analysis.summary import Summary, summary_of

        if isinstance(read, Summary):
            _check_saved(planned, read)
            if self._of_baseline:
                raise UsageError("a saved answer cannot be changed", tip=_BOTH_LOGS)
            if read.goodput_ns is None:
                if read.bounds:
                    raise NotEnoughData(_inconclusive(read.bounds, read.ledger_goodput_ns, read.window.counted_ns))
                raise NotEnoughData(f"{_NOT_COMPARED} (see the saved answer)")
            return Side(read.job, without_password(planned.source), True, None, read)
        analysis = analyze_log(read, replace(self._question, run=planned.run or AUTO), planned.job_name)
        if analysis.is_bounded:
            raise NotEnoughData(_inconclusive(analysis.bounds, analysis.goodput.ns, analysis.window.counted_ns))
        if analysis.unavailable_reason is not None:
            raise NotEnoughData(f"{_NOT_COMPARED}: {analysis.unavailable_reason}")
        return Side(analysis.job.name, without_password(planned.source), False, planned.run, summary_of(analysis))


def _inconclusive(bounds: Sequence[Bound], ledger_ns: int, counted_ns: int) -> str:
    """Return why a side with bounds of goodput alone is not compared, and what to do."""
    from goodput_cli.accounting.options import GOODPUT, limits_of, question_of
    from goodput_cli.analysis.goodput.phrases import limits_text

    share = limits_text(limits_of(bounds, GOODPUT, ledger_ns), counted_ns)
    return f"inconclusive: its goodput is {share}; {question_of(bounds)}"


def _check_saved(planned: PlannedSide, saved: Summary) -> None:
    """Raise an error if another job or run is requested from a saved answer."""
    if planned.job_alone and planned.job_name != saved.job:
        raise NotEnoughData(f"is a saved answer of job {saved.job!r}, not {planned.job_name!r}")
    if planned.run_alone:
        raise UsageError("is a saved answer of one run", tip="use --run once, which applies to the logs")


def _with_own_names(sides: list[Side]) -> list[Side]:
    """Return the sides with unique names: the job's if unique, otherwise also the source, then the run, then the
    position."""
    names = [side.name for side in sides]
    shared = shared_levels(side.source.rstrip("/").split("/")[:-1] for side in sides)
    places = ["/".join(side.source.split("/")[shared:]) for side in sides]
    names = _with_unique_names(names, ["stdin" if place == "-" else place for place in places])
    names = _with_unique_names(
        names, [f"{name}, run {side.run}" if side.run else name for side, name in zip(sides, names, strict=True)]
    )
    names = _with_unique_names(names, [f"{name} ({names[: at + 1].count(name)})" for at, name in enumerate(names)])
    return [replace(side, name=name) for side, name in zip(sides, names, strict=True)]


def _with_unique_names(names: list[str], more: list[str]) -> list[str]:
    """Return `names`, with `more` instead of those that occur more than once."""
    count = Counter(names)
    return [other if count[name] > 1 else name for name, other in zip(names, more, strict=True)]
