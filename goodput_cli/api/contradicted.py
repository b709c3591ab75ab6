"""Mappings that a log contradicts, by what its lines and the analysis with the mapping show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.order import in_order
from goodput_cli.analysis.account import account_for, earlier_runs, pick_job
from goodput_cli.analysis.goodput.analyse import kept_steps
from goodput_cli.analysis.question import Question
from goodput_cli.analysis.rolling import as_known_at
from goodput_cli.analysis.timeline.rows import segment_rows
from goodput_cli.api.draft_lines import lines_of_job
from goodput_cli.api.local_sources import changed_at, is_local, names_of
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import NotEnoughData, UsageError
from goodput_cli.events.mappings.draft.contradicted import contradictions
from goodput_cli.events.mappings.draft.expected import Whole
from goodput_cli.events.mappings.draft.lines import lines_of_texts
from goodput_cli.events.mappings.explained import lines_of
from goodput_cli.events.mappings.rules import Mapped
from goodput_cli.events.schema import EventLog, Kind
from goodput_cli.events.text.folders import launch_of
from goodput_cli.vocabulary.categories import Category
from goodput_cli.vocabulary.text import safe

_SHORT = {
    Category.SAVE: "save", Category.RESTORE: "restore", Category.CUSTOM: "evaluation",
    Category.DATA_LOADING_SYNC: "data load",
}  # fmt: skip
"""Segments that should be short compared with training. Others may take any time: the time between two attempts,
planned stops, program start-up, and time that the log does not explain, as a hang."""


def contradicted(
    sources: Any, mappings: Sequence[Mapped], log: EventLog, question: Question, job: str | None = None
) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each rule of a mapping that a log, or the analysis with the mapping, contradicts. The
    tests are those for inferred rules. log: as read with the mappings; job: its name if the log contains several
    jobs."""
    names = names_of(sources)
    if not mappings or not names or not all(map(is_local, names)):
        return
    try:
        whole = whole_of(log, question, job)
    except (NotEnoughData, UsageError):
        whole = None
    texts = ((one.source, one.number, one.text) for one in lines_of(names, mappings))
    lines = lines_of_job(lines_of_texts(texts))
    for made in mappings:
        for number, wrong in contradictions(made, lines, changed_at(names), whole):
            event, line = made.declared.rule[number].event.value, made.location_of(number).line
            rule = f"the {event} rule of {made.name} in line {line}"
            where = (wrong.where,) if wrong.where else ()
            yield Diagnostic.of("mapping_contradicted", safe(f"{rule}: {wrong.reason}"), 1, where)


def whole_of(log: EventLog, question: Question, job: str | None) -> Whole:
    """Return the part of an analysis that is used to check rules. job: its name. Raises NotEnoughData and
    UsageError."""
    events, name, _ = pick_job(log, job)
    ordered = in_order(events)
    question = replace(question, now_ns=max(question.now_ns, int(ordered.table.end.max())))
    timeline, start, end = account_for(ordered, question, name)
    timeline = timeline if question.method.hindsight else as_known_at(timeline, end)
    start, end = max(start, timeline.start), min(end, timeline.end)
    amounts = timeline.ledger.between(np.array([start]), np.array([end]))
    excluded, productive = (int(amounts.get((of, -1), [0])[0]) for of in (Category.EXCLUDED, Category.PRODUCTIVE))
    counted = end - start - excluded
    if counted <= 0:
        raise NotEnoughData("the whole window is excluded")
    return Whole(
        timeline.attempts.count, kept_steps(timeline, start, end), 100 * productive / counted, counted,
        timeline.shows_training, _longest(timeline, start, end),
        start if any(earlier_runs(ordered, question)) else None,
        len({launch_of(one) for one in timeline.table.sources} - {""}),
    )  # fmt: skip


def most_trained(log: EventLog) -> str | None:
    """Return the job with most step records, by which rules are judged if the log has several jobs; None for one job or
    without steps."""
    jobs = log.table.job[log.table.kind == Kind.STEP]
    if len(jobs) == 0 or len(log.table.jobs) < 2:
        return None
    return str(log.table.jobs[int(np.bincount(jobs).argmax())])


def _longest(timeline: Timeline, start: int, end: int) -> tuple[str, int]:
    """Return the longest segment that should be short, with its length in ns."""
    rows = segment_rows(timeline, start, end)
    is_short = np.isin(rows.category, [*_SHORT])
    is_short[:-1] &= rows.attempt[1:] == rows.attempt[:-1]  # The last one of an attempt is between two of them.
    length = np.where(is_short, rows.end - rows.start, 0)
    if not length.any():
        return "", 0
    at = int(length.argmax())
    return _SHORT[Category(rows.category[at])], int(length[at])
