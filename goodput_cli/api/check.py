"""`goodput_cli.check(...)`: find problems in logs, with advice.

Also the help for writing mappings: `goodput check --suggest`, `--explain`, `--rejects` and the matches of a mapping.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from typing import TYPE_CHECKING, BinaryIO, Unpack

from goodput_cli.api.options import JOB, Reading, Source, command_line_of, split, takes
from goodput_cli.errors import GoodputError, UsageError
from goodput_cli.vocabulary.secrets import without_secrets
from goodput_cli.vocabulary.text import place_of

if TYPE_CHECKING:
    from goodput_cli.analysis.check import CheckReport
    from goodput_cli.analysis.question import Question
    from goodput_cli.analysis.sheet import Sheet
    from goodput_cli.api.keywords import JobOptions
    from goodput_cli.events.mappings.draft.expected import Draft
    from goodput_cli.events.mappings.explained import Refused, SourceLine
    from goodput_cli.events.reading_options import ReadingOptions
    from goodput_cli.events.schema import EventLog


@takes(JOB)
def check(
    sources: Source | Sequence[Source],
    *,
    jobs_done: Callable[[int, int], None] | None = None,
    **options: Unpack[JobOptions],
) -> CheckReport:
    """Read logs, and find the problems in them and in each of their jobs.

    The logs are read as by `goodput_cli.analyze`, with inferred rules for steps of an unknown format. Mappings are
    tested on the logs (`mapping_contradicted`). The report has no job if no event could be read. The arguments and
    errors are those of `goodput_cli.jobs`. Jobs are always checked as a whole.
    """
    reading, question = split(options)
    from goodput_cli.analysis.jobs import check_log
    from goodput_cli.api.contradicted import contradicted
    from goodput_cli.api.draft import DraftedReading

    read = DraftedReading(sources, reading, question.timezone)
    log = read.checked_log()
    noticed = [*contradicted(sources, reading.hints.checked().mappings.named, log, question, reading.job_name)]
    if (inferred := read.notice(command_line_of(sources, reading, question))) is not None:
        noticed.append(inferred)
    log = replace(log, diagnostics=(*log.diagnostics, *noticed))
    return check_log(log, question, job_name=reading.job_name, jobs_done=jobs_done)


REJECTS = ("source", "line", "rule", "field", "reason", "text")
"""The columns of refused lines."""


@dataclass(frozen=True)
class MappingReport:
    """Result of reading logs with mappings."""

    sheets: tuple[Sheet, ...]
    refused: tuple[Refused, ...]
    """Lines that match a rule but have wrong values, and lines that contain its text but do not match."""
    failed: tuple[str, ...]
    """One sentence per failing sample, with its location."""
    finds_steps: bool
    """True if one of the mappings read a step, or anything if it has no rule for steps."""

    @property
    def rejects(self) -> list[tuple[str | int, ...]]:
        """Return the refused lines as rows of `REJECTS`."""
        rows = self.refused
        return [
            (
                *place_of(one.line.source, one.line.number),
                one.rule,
                one.field,
                *map(without_secrets, (one.reason, one.line.text)),
            )
            for one in rows
        ]


def draft_mapping(source: str) -> Draft:
    """Infer a mapping (TOML) for a log of an unknown format, with the reasons if it cannot be used.

    Raises SourceError.
    """
    from goodput_cli.api.draft import DraftedReading

    reading, question = split({})
    return DraftedReading([source], reading, question.timezone).suggested()


def explain_line(place: str, mapping: Sequence[str] = ()) -> str:
    """Explain how the line `FILE:LINE` is read: its prefix, its rule, its values, what each pass made of it
    (docs/text-engine.md), and its evidence (docs/causes.md). A part of a log is read with the other parts."""
    from goodput_cli.events.mappings.explained import AROUND, explain, lines_of
    from goodput_cli.events.text.passes import LineTrace

    file, _, number = place.rpartition(":")
    if not file or not (number.isascii() and number.isdecimal()) or int(number) < 1:
        raise UsageError(f"--explain {place}: not a location", tip="use FILE:LINE, such as train.log:120")
    reading, question = split({"mapping": tuple(mapping)})
    reading = replace(reading, hints=replace(reading.hints, samples=False))
    mappings = reading.hints.mappings
    files, at_line = _document_of(file, int(number), reading.hints)
    lines = lines_of(files, (*mappings.named, *mappings.shipped_of_records), hints=reading.hints)
    before: deque[SourceLine] = deque(maxlen=AROUND)
    line = next(lines, None)
    while line is not None and line.number != at_line:
        before.append(line)
        line = next(lines, None)
    if line is None:
        raise UsageError(f"--explain {place}: {file} has no line {number}, or this line is a table header")
    own = [one for one in before if one.source == line.source]
    behind = list(takewhile(lambda one: one.source == line.source, islice(lines, AROUND)))
    reading = _with_inferred_rules(files, reading, question.timezone)
    trace, log = LineTrace(line.number), None
    with suppress(GoodputError):
        log = replace(reading, trace=trace).read(files, question.timezone)
    said: list[str] = []
    for sentence in explain(line, reading.hints.mappings, own, behind):
        said.append(without_secrets(sentence))
        if sentence.startswith("evidence: row"):
            said.append(f"used for: {_used_for(log, question, line.number)}")
    passes = [f"after {name}: {what}" for name, what in trace.changes]
    at = next((at for at, sentence in enumerate(said) if sentence.startswith("evidence:")), len(said))
    return "".join(f"{sentence}\n" for sentence in (*said[:at], *passes, *said[at:]))


def _document_of(file: str, line: int, hints: ReadingOptions) -> tuple[list[str], int]:
    """Return the files of the document that a local file is part of, such as a rotated log, and the number of a line of
    the file in the document."""
    from goodput_cli.events.joined_logs import read_sources
    from goodput_cli.sources.base import RawBatch, ReadContext
    from goodput_cli.sources.files import names_in
    from goodput_cli.sources.parts import candidates
    from goodput_cli.vocabulary.text import JoinedName

    folder = os.path.dirname(file)
    names = [os.path.join(folder, name) for name in names_in(folder)] if os.path.isfile(file) else []
    files = next((list(one.orders[0]) for one in candidates(sorted(names)) if file in one.orders[0]), [file])
    if len(files) == 1:
        return [file], line
    batches = read_sources(files, ReadContext(lambda _: None), hints)
    sources = {batch.source for batch in batches if isinstance(batch, RawBatch)}
    joined = [source for source in sources if isinstance(source, JoinedName)]
    parts = [(source, part) for source in joined for part in source.parts if part.file == file]
    if len(sources) > 1 or not parts:
        return [file], line
    document, part = parts[0]
    at = part.first + line - part.line
    if line > part.line and document.place(at)[0] != file:
        raise UsageError(f"--explain {file}:{line}: {file} has no line {line}")
    return files, at


def _with_inferred_rules(files: Sequence[str], reading: Reading, timezone: str) -> Reading:
    """Return how a log is read: with inferred rules if no format gives its steps."""
    from goodput_cli.api.draft import infer_rules

    inferred = infer_rules(files, reading, timezone)
    return reading if inferred is None else replace(reading, hints=reading.hints.with_draft(inferred[0]))


def _used_for(log: EventLog | None, question: Question, line: int) -> str:
    """Return the disruption for which a line of evidence was used, and as what; otherwise why it was not used. log:
    None if it cannot be read."""
    from goodput_cli.analysis.account import analyze_log

    timeline = None
    with suppress(GoodputError):
        timeline = None if log is None else analyze_log(log, question).timeline
    if timeline is None:
        return "nothing: this file alone is not the log of one job"
    for attempt, why in enumerate(timeline.causes.why):
        own = [one for one in why.used if line in (one.line, one.last_line, *(at for _, at in one.ranks))]
        if not own:
            continue
        number = int((timeline.disruptions < attempt).sum()) + 1
        ended = f"disruption {number}" if attempt in timeline.disruptions else f"the end of attempt {attempt + 1}"
        if why.evidence is not None and why.evidence.row == own[0].row and why.evidence.code == why.code:
            return f"{ended}, as its cause, {why.code} ({why.certainty})"
        what = _AS.get(own[0].role, own[0].role)
        return f"{ended}, as {what}; its cause is {why.code}"
    return "nothing: it is not after the last progress of an attempt, or it belongs to another job"


_AS = {
    "root": "another possible cause with lower priority",
    "exit": "the exit of a process",
    "echo": "a report that another process is gone",
    "teardown": "output of a process that is being killed",
    "context": "context",
}


def mapping_report(
    typed: Sequence[str], mapping: Sequence[str], sources: Sequence[str], stdin: BinaryIO | None = None
) -> MappingReport:
    """Return the matches of each rule of each mapping: of typed mappings, and of the others (`mapping` has all) if they
    read anything. stdin: the stream of `-`, which is read to its end. Failing samples are in the report. Raises
    UsageError."""
    from goodput_cli.analysis.check import mapping_sheet, refused_notes, unread_sheet
    from goodput_cli.events.documents import is_known_table_or_text
    from goodput_cli.events.mappings.explained import lines_of, matches
    from goodput_cli.events.mappings.registry import load_mappings, read_files
    from goodput_cli.events.mappings.samples import failed_samples
    from goodput_cli.events.reading_options import ReadingOptions

    loaded = load_mappings(read_files(mapping), samples=False).named
    own = {made.name for made in load_mappings(read_files(typed), samples=False).named}
    hints = ReadingOptions(mapping=tuple(mapping), samples=False)
    lines: Iterator[SourceLine] = lines_of(sources, loaded, lambda head: is_known_table_or_text(head, hints), stdin)
    found, rest, examples = matches(loaded, lines)
    shown = [one for one in found if one.made.name in own or one.lines]
    sheets = [mapping_sheet(one.made.name, one.rules, refused_notes(one.refused)) for one in shown]
    if rest and shown:
        sheets.append(unread_sheet(rest, examples))
    named = [one for one in found if one.made.name in own]
    return MappingReport(
        tuple(sheets),
        tuple(refused for one in named or shown for refused in (*one.refused, *one.near)),
        tuple(str(error) for one in found for error in failed_samples(one.made)),
        not named or any(one.finds_steps for one in named),
    )
