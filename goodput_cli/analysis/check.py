"""A linter for event logs (`goodput check`): problems, their effect on the numbers, and advice.

Its tables show failure messages, the lines that the rules of a mapping read, and processes that were read as one.
Programs get each row, people one per kind."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.order import in_order
from goodput_cli.analysis.goodput.findings import findings
from goodput_cli.analysis.json_fields import Count, Json, written
from goodput_cli.analysis.log_coverage import check_clocks, check_coverage, check_hosts, check_skew, far_times
from goodput_cli.analysis.sheet import Audience, Cell, Column, DisplayableAnswer, Sheet
from goodput_cli.analysis.table import TableDeclaration, attribute, column, columns_of, each, table_rows
from goodput_cli.arrays import group_by_key
from goodput_cli.diagnostics.diagnostic import (
    SEVERITIES,
    Diagnostic,
    HasSeverity,
    Severity,
    code_texts,
    merge,
    problems,
    worst_first,
)
from goodput_cli.events.evidence import FailureEvidence, quoted
from goodput_cli.events.schema import EventTable, Kind
from goodput_cli.vocabulary.categories import CAUSES, PEER_LOST, ROLES
from goodput_cli.vocabulary.secrets import without_secrets
from goodput_cli.vocabulary.text import file_line, plural

if TYPE_CHECKING:
    from goodput_cli.analysis.analysis_data import AnalysisData
    from goodput_cli.events.mappings.explained import Refused, RuleMatches, SourceLine


BEGAN = {
    "first": "the first line of its job",
    "start": "the log reports its start",
    "steps_fall": "steps begin again without a logged start",
    "goes_on": "training continues long after an end",
    "beside": "its lines are within the time of the attempt",
}
"""Reasons for a separate process, and for its attempt (accounting §3)."""


@dataclass(frozen=True)
class ProcessRow:
    """Lines of one source in one attempt. Times are ns since 1970 UTC."""

    job: str = column("text", "job of the attempt", heading="job")
    attempt: int = column("count", "from 1", least=1, heading="attempt")
    source: str = column("text", "the file or log")
    first_line: int = column("count", "first recognized line", least=0)
    last_line: int = column("count", "last recognized line", least=0)
    start_ns: int = column("instant", "time of the first line", heading="start", spare=True)
    end_ns: int = column("instant", "time of the last line")
    steps: int = column("count", "step records", least=0, heading="steps")
    began: str = column(
        "text", "; ".join(f"{name}: {words}" for name, words in BEGAN.items()), json={"enum": list(BEGAN)},
        heading="began",
    )  # fmt: skip


PROCESSES = TableDeclaration(
    "process",
    "the lines of one source about one attempt",
    (
        *columns_of(ProcessRow, attribute),
        Column("evidence", "text", Audience.PEOPLE, each(lambda one: f"{one.source}:{one.first_line}-{one.last_line}")),
    ),
    people=("job", "attempt", "start", "steps", "evidence", "began"),
)
_MOST = 40


def processes_of(timeline: Timeline) -> Iterator[ProcessRow]:
    """Yield one row per attempt and source, ordered by attempt, the source that began it first."""
    table, attempts = timeline.table.by_file(), timeline.attempts
    rows = np.flatnonzero(attempts.of_row >= 0)
    owner, source = attempts.of_row[rows], np.asarray(table.source)[rows]
    order = np.lexsort((rows, source, owner))
    rows, owner, source = rows[order], owner[order], source[order]
    heads = np.flatnonzero(np.r_[True, (np.diff(owner) != 0) | (np.diff(source) != 0)]) if len(rows) else rows
    found: list[ProcessRow] = []
    name = table.jobs[int(table.job[0])] if len(table) else ""
    for part in np.split(rows, heads[1:]) if len(rows) else ():
        attempt = int(attempts.of_row[part[0]])
        begins = int(attempts.begin_row[attempt]) in part
        lines = np.asarray(table.line)[part]
        found.append(
            ProcessRow(
                name,
                int(attempts.number[attempt]),
                table.sources[int(table.source[part[0]])],
                int(lines.min()),
                int(lines.max()),
                int(table.time[part].min()),
                int(table.end[part].max()),
                int(np.isin(np.asarray(table.kind)[part], (Kind.STEP, Kind.FINISHED)).sum()),
                _began(timeline, attempt) if begins else "beside",
            )
        )
    yield from sorted(found, key=lambda one: (one.attempt, one.began == "beside", one.start_ns, one.source))


def _began(timeline: Timeline, attempt: int) -> str:
    attempts = timeline.attempts
    if attempt == 0:
        return "first"
    if attempts.started[attempt]:
        return "start"
    return "goes_on" if attempts.first_ending[attempt - 1] >= 0 else "steps_fall"


def processes_sheet(processes: Sequence[ProcessRow]) -> Sheet:
    """Return the processes of a log for people: the first of many."""
    several = len({one.job for one in processes}) > 1
    columns = PROCESSES.people_columns(without=() if several else ("job",))
    shown = processes[:_MOST]
    more = len(processes) - len(shown)
    used = dict.fromkeys(one.began for one in shown)
    return Sheet(
        title=f"Lines by attempt: {plural(len({(one.job, one.attempt) for one in processes}), 'attempt')}",
        columns=columns,
        rows=PROCESSES.of_rows(shown).cells(columns),
        notes=(
            *(f"{name}: {BEGAN[name]}" for name in used),
            *((f"{more} more in the JSON output",) if more else ()),
        ),
    )


_NUMBERS = {"type": "array", "items": {"type": "integer"}}
OBSERVATIONS = TableDeclaration(
    "observation",
    "one recognized line or block about a failure (docs/causes.md); it changes no number",
    (
        Column(
            "code", "text", values=attribute("code"), words="a cause, or peer_lost: another rank is gone",
            json={"enum": [*CAUSES, PEER_LOST]},
        ),
        Column(
            "role", "text", values=attribute("role"),
            words="root: a mechanism; exit: how a process ended; echo: other ranks are gone; teardown: logged while "
            "being killed; context: does not end an attempt", json={"enum": list(ROLES)},
        ),
        Column("count", "count", values=attribute("count"), words="number of identical lines", least=1),
        Column("rank", "count", values=attribute("rank"), words="null: not logged", nullable=True),
        Column("local_rank", "count", Audience.JSON, attribute("local_rank"), "null: not logged", nullable=True),
        Column(
            "ranks", "text", Audience.JSON, attribute("ranks"), "all ranks that report the same", json=_NUMBERS,
            json_values=each(lambda one: sorted({rank for rank, _ in one.ranks})),
        ),
        Column(
            "host", "text", Audience.PROGRAMS, each(lambda one: one.host or None), "null: not logged", nullable=True
        ),
        Column(
            "device", "text", Audience.PROGRAMS, each(lambda one: one.device or None), "null: not logged", nullable=True
        ),
        Column("pid", "count", Audience.JSON, attribute("pid"), "null: not logged", nullable=True),
        Column("exit", "count", Audience.JSON, attribute("exit"), "exit code; below 0: a signal", nullable=True),
        Column("peer", "text", Audience.JSON, each(lambda one: one.peer or None), "null: not logged", nullable=True),
        Column(
            "suspects", "text", Audience.JSON, attribute("suspects"), "ranks that others waited for", json=_NUMBERS,
            json_values=each(lambda one: list(one.suspects)),
        ),
        Column("row", "text", Audience.JSON, attribute("row"), "the row that read it"),
        Column("where", "text", values=attribute("where"), words="file:line of the first"),
        Column(
            "text", "text", Audience.PROGRAMS, each(lambda one: one.text or None),
            "the line, without prefix and secrets; null with --no-quotes", nullable=True,
        ),
    ),
)  # fmt: skip
_MOST, _QUOTED = 40, 5


def observations_sheet(observations: Sequence[FailureEvidence]) -> Sheet:
    """Return the failure messages of a log for people: the first of many."""
    columns = OBSERVATIONS.people_columns()
    shown = observations[:_MOST]
    more = len(observations) - len(shown)
    rest = (f"{more} more in the JSON output",) if more else ()
    return Sheet(
        title=f"Failure messages: {len(observations)}",
        columns=columns,
        rows=OBSERVATIONS.of_rows(shown).cells(columns),
        notes=(*(f"{one.where}: `{one.text}`" for one in shown[:_QUOTED] if one.text), *rest),
    )


_SHOWN = 5
_LONGEST = 60
_NO_LETTER = re.compile(r"[\W_]+")


def check_names(names: Sequence[str]) -> Iterator[Diagnostic]:
    """Report `similar_job_names`: one finding per group of names that differ only in case, spaces or punctuation."""
    groups = group_by_key((_NO_LETTER.sub("-", name.casefold()).strip("-"), name) for name in names)
    for plain, group in groups.items():
        if plain and len(group) > 1:
            short = (name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…" for name in sorted(group)[:_SHOWN])
            shown = ", ".join(map(repr, short))
            more = f" and {len(group) - _SHOWN} more" if len(group) > _SHOWN else ""
            message = f"jobs with almost the same name: {shown}{more}"
            yield Diagnostic.of("similar_job_names", message, len(group))


@dataclass(frozen=True)
class CheckFinding:
    """A diagnostic, with its effect on the numbers and advice."""

    code: str
    """Code of the diagnostic."""
    severity: Severity
    """Severity: error, warning or info."""
    job: str | None
    """Name of the job; None for a finding about the whole log (its lines)."""
    count: int
    """Number of occurrences."""
    message: str
    """Description, in a sentence."""
    where: tuple[str, ...]
    """`file:line` or insertId of the first locations."""
    effect: str
    """Effect on the numbers."""
    advice: str
    """Advice."""


def first_of(items: Sequence[str], most: int, count: int, between: str) -> str:
    """Return the first items, and how many more there are."""
    shown = list(dict.fromkeys(items))[:most]
    more = max(count, len(items)) - len(shown)
    if shown and more > 0:
        shown.append(f"+{more} more")
    return between.join(shown)


_PLACES_IN_A_CELL = 20
FINDINGS = TableDeclaration(
    "finding",
    "one warning: an error, a warning or an information",
    (
        Column("code", "text", Audience.JSON, attribute("code"), "stable name, described in docs/diagnostics.md"),
        Column(
            "severity", "text", values=attribute("severity"),
            words="error: data was lost; warning: a number may be wrong; info: no number changes",
            json={"enum": list(SEVERITIES)},
        ),
        Column("code", "text", Audience.PEOPLE | Audience.TABLES, attribute("code")),
        Column("job", "text", Audience.JSON, attribute("job"), "null: about the whole log", nullable=True),
        Column("count", "count", values=attribute("count"), words="how often", least=0),
        Column("jobs", "count", Audience.PEOPLE | Audience.TABLES, each(lambda one: None if one.job is None else 1)),
        Column("job", "text", Audience.TABLES, attribute("job")),
        Column("where", "text", Audience.PEOPLE, each(lambda one: one.where[0] if one.where else None)),
        Column("message", "text", Audience.PROGRAMS, attribute("message"), "what was found"),
        Column("effect", "text", Audience.PROGRAMS, attribute("effect"), "what it does to the numbers"),
        Column("advice", "text", Audience.PROGRAMS, attribute("advice"), "what to do"),
        Column(
            "where", "text", Audience.PROGRAMS,
            each(lambda one: first_of(one.where, _PLACES_IN_A_CELL, one.count, "; ")),
            "file:line or insertId; may be fewer than count", json={"type": "array", "items": {"type": "string"}},
            json_values=attribute("where"),
        ),
    ),
)  # fmt: skip


@written("check_answer", "goodput check --format json", kind="check")
@dataclass(frozen=True, repr=False)
class CheckReport(DisplayableAnswer):
    """Results of a check with every finding."""

    jobs: Count
    """jobs checked"""
    runs: Count
    """their runs; more than jobs if a name was used again"""
    events: Count
    """events checked, duplicates included"""
    findings: Annotated[tuple[CheckFinding, ...], FINDINGS]
    """the most severe first, then by code and job"""
    observations: Annotated[tuple[FailureEvidence, ...], OBSERVATIONS] = ()
    """failure messages, also of files without a job; by file and line"""
    processes: Annotated[tuple[ProcessRow, ...], PROCESSES, Json(optional=True)] = ()
    """which lines were read as one process, and which processes as one attempt; by job and attempt"""
    diagnostics: Annotated[tuple[CheckFinding, ...], FINDINGS, Json(later=True)] = ()
    """the same as `findings`, under the name that other answers use"""

    def count(self, severity: Severity) -> int:
        """Return the number of findings of a severity."""
        return sum(finding.severity == severity for finding in self.findings)

    @property
    def has_problems(self) -> bool:
        """Return True if there is an error or a warning; findings of severity info do not count."""
        return bool(problems(self.findings))

    def sheet(self) -> Sheet:
        return check_sheet(self)


def counts_in_words(found: Iterable[HasSeverity]) -> str:
    """Return how many findings there are: `1 error, 2 warnings, 3 infos`; "" without any."""
    counts = Counter(one.severity for one in found)
    return ", ".join(plural(counts[severity], severity) for severity in SEVERITIES if counts[severity])


def noticed_in(analysis: AnalysisData, now_ns: int) -> list[Diagnostic]:
    """Return all that `goodput check` finds in the log of an analysis. now_ns: the present, ns since 1970 UTC."""
    return [*analysis.diagnostics, *_checks(analysis.timeline, now_ns)]


def check_job(timeline: Timeline, now_ns: int) -> Iterator[Diagnostic]:
    """Yield the diagnostics of the accounting and of the checks of a job. now_ns: the present, ns since 1970 UTC."""
    yield from merge(findings(timeline))
    yield from _checks(timeline, now_ns)


def _checks(timeline: Timeline, now_ns: int) -> Iterator[Diagnostic]:
    yield from check_clocks(timeline, now_ns)
    yield from check_skew(timeline)
    yield from check_hosts(timeline)
    yield from check_coverage(timeline)


def check_unaccountable(table: EventTable, now_ns: int, reason: str) -> Iterator[Diagnostic]:
    """Yield the diagnostics of a job whose events span no time."""
    ordered = in_order(table).table
    yield Diagnostic.of("job_without_duration", reason, len(ordered), (ordered.where(0),))
    yield from far_times(ordered, now_ns)


def report(
    reading: Iterable[Diagnostic],
    names: Sequence[str],
    of_jobs: Iterable[tuple[str, Sequence[str], Diagnostic]],
    runs: int,
    events: int,
    observations: Sequence[FailureEvidence] = (),
    processes: Sequence[ProcessRow] = (),
) -> CheckReport:
    """Return all findings in order. reading: diagnostics of reading; names: of the checked jobs. of_jobs: the
    diagnostics of each, with its name and its log formats."""
    of_logs = merge([*reading, *check_names(names)])
    every = [_finding(None, (), one) for one in of_logs] + [_finding(*one) for one in of_jobs]
    every.sort(key=lambda finding: (finding.code, finding.job or "", finding.message))
    seen = tuple(sorted(observations, key=lambda one: (one.source, one.line)))
    found = tuple(worst_first(every))
    return CheckReport(len(names), runs, events, found, seen, tuple(processes), found)


def _finding(job: str | None, formats: Sequence[str], diagnostic: Diagnostic) -> CheckFinding:
    texts = code_texts(diagnostic.code)
    return CheckFinding(
        diagnostic.code,
        diagnostic.severity,
        job,
        diagnostic.count,
        diagnostic.message,
        diagnostic.where,
        texts.effect,
        texts.advice_for(formats),
    )


_MESSAGES = 2
"""Number of different messages of one code that are shown by default."""
_NAMES = 3


def check_sheet(report: CheckReport, *, every_place: bool = False) -> Sheet:
    """Return the findings of all jobs. every_place: name every message, job and location in the notes."""
    several, jobs = report.jobs > 1, plural(report.jobs, "job")
    columns = FINDINGS.sheet_columns(without=() if several else ("jobs",))
    groups = [list(group) for _, group in groupby(report.findings, key=lambda one: (one.severity, one.code))]
    wrong = counts_in_words(report.findings)
    title = [wrong or "No warnings"] if report.events else ["No events read", *([wrong] if wrong else [])]
    return Sheet(
        title=", ".join(title),
        columns=columns,
        rows=FINDINGS.of_rows(report.findings).cells(columns),
        grouped_rows=tuple(_grouped(group) for group in groups),
        answer=lambda: report,
        summary=(f"checked {plural(report.events, 'event')} of {jobs} ({plural(report.runs, 'run')})",),
        notes=tuple(note for group in groups for note in _notes(group, several, every_place)),
        sections=(
            *((processes_sheet(report.processes),) if report.processes else ()),
            *((observations_sheet(report.observations),) if report.observations else ()),
        ),
    )


def _grouped(group: Sequence[CheckFinding]) -> tuple[Cell, ...]:
    jobs = len({one.job for one in group if one.job is not None})
    count = sum(one.count for one in group)
    head, place = group[0], next((one.where[0] for one in group if one.where), None)
    return (head.severity, head.code, count, jobs or None, None, place, None, None, None, None)


def _notes(group: Sequence[CheckFinding], several: bool, every_place: bool) -> Iterator[str]:
    """Yield the messages of one code, their effect and the advice."""
    head = group[0]
    messages = list(dict.fromkeys(one.message for one in group))
    shown = messages if every_place else messages[:_MESSAGES]
    more = f"; and {len(messages) - len(shown)} more" if len(messages) > len(shown) else ""
    jobs = list(dict.fromkeys(one.job for one in group if one.job is not None))
    where = f" (in {first_of(jobs, len(jobs) if every_place else _NAMES, len(jobs), ', ')})" if several and jobs else ""
    yield f"{head.code}: {'; '.join(shown)}{more}{where}"
    yield f"  effect: {head.effect}"
    yield f"  advice: {head.advice}"
    if every_place:
        yield from (f"  at: {first_of(one.where, len(one.where), one.count, ', ')}" for one in group if one.where)


_MOST_EXAMPLES = 10


def mapping_sheet(name: str, rows: Sequence[RuleMatches], refused: Sequence[str]) -> Sheet:
    """Return one row per rule, named by its line in the mapping, with the results of the first lines that it read
    below."""
    columns = (
        Column("rule", "text", values=each(lambda row: f"line {row.at}")),
        Column("event", "text", values=attribute("event")),
        Column("lines", "count", values=attribute("lines")),
        Column("refused", "count", values=attribute("refused")),
        Column("first at", "text", values=attribute("first")),
        Column("last at", "text", values=attribute("last")),
    )
    notes = [f"line {row.at}, {row.event}: {'; '.join(row.results)}" for row in rows if row.results]
    rows_of = table_rows(columns, len(rows), lambda: [rows])
    return Sheet(title=f"Mapping {name}", columns=columns, rows=rows_of, notes=(*notes, *refused))


def refused_notes(refused: Sequence[Refused]) -> list[str]:
    """Return the first refused lines, one sentence each."""
    notes = [
        f"{file_line(one.line.source, one.line.number)} refused: {without_secrets(one.reason)}"
        for one in refused[:_MOST_EXAMPLES]
    ]
    more = len(refused) - len(notes)
    return [*notes, f"and {more} more lines; use --rejects FILE to write all of them to a file"] if more > 0 else notes


def unread_sheet(shapes: Counter[str], examples: Mapping[str, SourceLine]) -> Sheet:
    """Return the most frequent lines that no rule reads: an example of each, and how many differ from it only in
    digits."""
    rows = [(shape, count, examples[shape]) for shape, count in shapes.most_common(_MOST_EXAMPLES)]
    columns = (
        Column("lines that no rule reads", "text", values=each(lambda row: quoted(row[2].text))),
        Column("count", "count", values=each(lambda row: row[1])),
        Column("first at", "text", values=each(lambda row: file_line(row[2].source, row[2].number))),
    )
    return Sheet(title="Other lines", columns=columns, rows=table_rows(columns, len(rows), lambda: [rows]))
