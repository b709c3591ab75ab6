"""Reports that name ranks: those that others wait for (desync reports, mismatched collectives, barriers, NCCL RAS),
and slow ones (nvidia-resiliency-ext in NeMo's log, FlagScale).

Ranks that others wait for are ranks in the group, except for the tasks of the coordination service of XLA. A report
of a mismatch is from one of both sides: only the majority of all reports shows the other side. A score of NVRx is the
speed of a rank relative to the fastest one. Its individual scores compare a rank with itself, so they are not
used to name a rank.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from goodput_cli.events.capability import InputLine
from goodput_cli.events.evidence import quoted
from goodput_cli.events.hangs.positions import MOST_RANKS, global_rank
from goodput_cli.events.text.causes import ranks_in
from goodput_cli.events.text.log_lines import CollectedRule, pattern

Kind = Literal["desync", "fingerprint", "barrier", "tasks", "ras"]
_DESYNC = pattern(r"\[(?P<rank>\d{1,8})\] Timeout at collective: (?P<operation>\w{1,64}), #(?P<sequence>\d{1,20})")
_DESYNC_LINE = pattern(r"^[>|]?\s+(?:- |\[|#)")
_NAMED = re.compile(
    r"\[(?P<missed>[\d, ]{1,4000})\] (?:finished collective #\d+, )?but didn.t join collective #"
    r"|\[?(?P<never>[\d, ]{1,4000})\]? (?:are|is) the lagging ranks?.{0,80}never joined any"
)
_FINGERPRINT = pattern(r"[Rr]ank \d{1,8} is running (?:inconsistent )?collective: CollectiveFingerPrint\(")
_RUNNING = re.compile(
    r"[Rr]ank (\d{1,8}) is running (?:inconsistent )?collective: CollectiveFingerPrint\((?:SequenceNumber=(\d{1,20}))?"
    r",? ?OpType=(\w{1,64})(?:, TensorShape=\[([^\]]{0,1000})\])?"
)
_BARRIER = pattern(
    r"(?:\[Rank (?P<reporter>\d{1,8})\]: )?(?:Ranks? (?P<ranks>\d{1,8}(?:, ?\d{1,8}){0,4000}) failed to pass"
    r"|Rank (?P<reached>\d{1,8}) successfully reached) monitoredBarrier"
)
_TASKS = pattern("Barrier timed out[.] (?:Barrier_id|Id): ")
_TASK_LINE = pattern(r"^# of tasks that reached|^The first task at the barrier|^\s*/job:\w+/")
_TASK = re.compile(r"^\s*/job:\w+/replica:\d+/task:(\d{1,8})\s*$")
_RAS = pattern(
    r"^\s*(?:(?P<count>\d{1,8}) ranks? (?:have|has)|Rank (?P<rank>\d{1,8}) has) (?:launched up to operation "
    r"(?P<sequence>\d{1,20})|not launched any operations)|^\s*Missing communicator data from \d+ ranks?$"
)
_RAS_LINE = pattern(rf"{_RAS.pattern}|^\s*(?:Rank \d+ -- |The missing ranks?: )")
_RAS_RANK = re.compile(r"^\s*Rank (\d{1,8}) (?:has .{0,80}?)?-- ")
_RAS_LOST = re.compile(r"^\s*The missing ranks?: ([\d, -]{1,4000})$")
_RAS_HOST = re.compile(r" on node (\S{1,200})")
_FEWEST = 2
"""A running job is often one operation apart."""
LINES = (
    CollectedRule(
        name="desync report", anchors=("Timeout at collective: ",), begins=_DESYNC, goes_on=_DESYNC_LINE, most=24
    ),
    CollectedRule(name="fingerprint", anchors=("collective: CollectiveFingerPrint(",), begins=_FINGERPRINT),
    CollectedRule(
        name="barrier report",
        anchors=("failed to pass monitoredBarrier", "successfully reached monitoredBarrier"),
        begins=_BARRIER,
    ),
    CollectedRule(
        name="task barrier", anchors=("Barrier timed out. ",), begins=_TASKS, goes_on=_TASK_LINE, most=128
    ),
    CollectedRule(
        name="ras counts",
        anchors=("launched up to operation ", "not launched any operations", "Missing communicator data from "),
        begins=_RAS, goes_on=_RAS_LINE, most=256,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class RankReport:
    """A report about ranks."""

    job: str
    where: str
    time: int | None
    kind: Kind
    named: tuple[int, ...]
    """Ranks that did not join: in the group, or tasks."""
    reporter: int | None = None
    """Rank in the group that reports it."""
    process: int | None = None
    """Global rank of the reporter, if its lines show it."""
    sequence: int | None = None
    operation: str = ""
    size: int | None = None
    """Number of members of the group; None if it is not in the report."""
    running: tuple[tuple[int, str, str], ...] = ()
    """Operation and shape of each rank, for a mismatch; how far the named ranks are, for a snapshot of NCCL."""
    is_apart: bool = True
    """False for a snapshot that a running job may show."""
    reached: tuple[int, ...] = ()
    """Ranks that joined a barrier."""
    hosts: tuple[str, ...] = ()
    quote: str = ""


def reports_in(lines: Iterable[InputLine]) -> Iterator[RankReport]:
    """Yield the reports in lines."""
    readers = {
        "desync report": _desync, "fingerprint": _mismatch, "barrier report": _barrier, "task barrier": _tasks,
        "ras counts": _ras,
    }  # fmt: skip
    for one in lines:
        if one.rule in readers:
            yield from readers[one.rule](one)


def _report(one: InputLine, kind: Kind, named: Iterable[int] = (), **facts: Any) -> RankReport:
    ranks = tuple(sorted({rank for rank in named if rank < MOST_RANKS}))
    return RankReport(one.job, one.where, one.time, kind, ranks, quote=quoted(one.text), **facts)


def _desync(one: InputLine) -> Iterator[RankReport]:
    """Yield the reports in a block: those of other processes may follow without a prefix."""
    head, process, named = _DESYNC.search(one.text), global_rank(one), set[int]()
    for text in (*one.more, ""):
        begins = _DESYNC.search(text)
        if head is not None and (begins is not None or not text):
            yield _report(one, "desync", named, reporter=int(head["rank"]), process=process,
                          sequence=int(head["sequence"]), operation=head["operation"])  # fmt: skip
        if begins is not None:
            head, process, named = begins, None, set()
        if (found := _NAMED.search(text)) is not None:
            named.update(ranks_in(found["missed"] or found["never"]))


def _mismatch(one: InputLine) -> Iterator[RankReport]:
    found = _RUNNING.findall(one.text)
    if found:
        running = tuple((int(rank), operation, shape) for rank, _, operation, shape in found)
        yield _report(one, "fingerprint", running=running, reporter=running[0][0], process=global_rank(one),
                      sequence=int(found[0][1]) if found[0][1] else None)  # fmt: skip


def _barrier(one: InputLine) -> Iterator[RankReport]:
    found = _BARRIER.search(one.text)
    if found is not None:
        reached = (int(found["reached"]),) if found["reached"] else ()
        reporter = found["reporter"] or found["reached"]
        yield _report(one, "barrier", ranks_in(found["ranks"] or ""), reached=reached, process=global_rank(one),
                      reporter=None if reporter is None else int(reporter))  # fmt: skip


def _tasks(one: InputLine) -> Iterator[RankReport]:
    found = [int(task[1]) for text in one.more if (task := _TASK.search(text)) is not None]
    if found:
        yield _report(one, "tasks", found)


def _ras(one: InputLine) -> Iterator[RankReport]:
    """Yield the ranks that launched fewer operations than most, and those that do not answer. A list of ranks that are
    ahead names no rank."""
    counts: list[tuple[int, int | None, list[int]]] = []
    hosts: dict[int, str] = {}
    for text in (one.text, *one.more):
        head, rank, lost = _RAS.search(text), _RAS_RANK.search(text), _RAS_LOST.search(text)
        if head is not None:
            is_lost = head["count"] is None and head["rank"] is None
            counts.append((int(head["count"] or 1), None if is_lost else int(head["sequence"] or 0), []))
        if rank is not None and counts:
            counts[-1][2].append(int(rank[1]))
            hosts.update({int(rank[1]): quoted(host[1]) for host in [_RAS_HOST.search(text)] if host})
        elif lost is not None and counts:
            counts[-1][2].extend(ranks_in(lost[1]))
    answers = [row for row in counts if row[1] is not None]
    total = sum(count for count, _, _ in answers)
    most = max(answers, key=lambda row: row[0], default=(0, 0, []))
    lagging = [row for row in counts if row[1] is None or (row[1] < (most[1] or 0) and 2 * most[0] > total)]
    if sum(row[0] for row in lagging if row[1] is not None) > 1:  # One of them may hold up the others.
        lagging = [row for row in lagging if row[1] is None]
    named = [rank for row in lagging for rank in row[2]]
    if named:
        apart = any(row[1] is None or (most[1] or 0) - row[1] >= _FEWEST for row in lagging)
        yield _report(
            one,
            "ras",
            named,
            sequence=most[1],
            is_apart=apart,
            size=total if len(answers) == len(counts) else None,
            running=tuple((rank, str(number), "") for _, number, ranks in lagging for rank in ranks),
            hosts=tuple(sorted({hosts[rank] for rank in named if rank in hosts})),
        )


_SCORES, _NAMED_SLOW, _SECTIONS = "straggler scores", "straggler warning", "straggler report"
_SCORE = re.compile(r"Rank=(\d{1,8}) Node=(\S{1,200}) Score=(\d{1,3}(?:\.\d{1,6})?)")
_AFFECTED = re.compile(r"StragglerId\(rank=(\d{1,8}), node='([^']{0,200})'\)")
_DETECTED = re.compile(r"(?i)detected stragglers?: \[([\d, ]{0,4000})\]")
_RANK = re.compile(
    r"(?i)^\s*(?:- )?rank (?P<rank>\d{1,8})(?: \((?P<host>\S{1,200})\))?"
    r"(?:: (?P<value>\d{1,9}(?:\.\d{1,6})?) ?(?P<ms>ms)?)?$"
)
_APART = 200
"""Maximum distance, in lines, of a warning from the scores that it is about."""
_LARGEST = 1 << 20
STRAGGLER_LINES = (
    CollectedRule(
        name=_SCORES, anchors=("GPU relative performance:",), begins=pattern("GPU relative performance:"),
        goes_on=pattern(r"^\s+(?:Worst|Best) performing |^\s+Rank=\d"), most=64,
    ),
    CollectedRule(
        name=_NAMED_SLOW, anchors=("STRAGGLER DETECTION WARNING",), begins=pattern(
            "STRAGGLER DETECTION WARNING: Some GPUs have worse relative performance"
        ),
    ),
    CollectedRule(
        name=_SECTIONS, anchors=("traggler Report at ", "TRAGGLER REPORT AT "),
        begins=pattern("(?i)straggler report at step (?P<step>\\d{1,15})"),
        goes_on=pattern(
            r"(?i)stragglers|^\s*(?:- )?rank \d+(?: \(|: )|slowdown: |min=|section|scores|^\s*[-=]*$|^ +[\w.-]+:$"
        ),
        most=256,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class StragglerReport:
    """A report about the speed of ranks."""

    job: str
    where: str
    time: int | None
    source: str
    """nvrx or flagscale."""
    named: tuple[int, ...] = ()
    """Ranks that it calls slow."""
    scores: tuple[tuple[int, float], ...] = ()
    """Speed of ranks relative to the fastest one."""
    hosts: tuple[tuple[int, str], ...] = ()


def straggler_reports(lines: Iterable[InputLine]) -> list[StragglerReport]:
    """Return the reports in lines, in the order of lines of each source."""
    found: list[StragglerReport] = []
    open_at: dict[str, tuple[int, int]] = {}
    """By source: the position of its last scores, and their line."""
    for one in lines:
        if one.rule == _SCORES:
            open_at[one.source] = len(found), one.line
            found.append(_scores(one))
        elif one.rule == _NAMED_SLOW:
            at, line = open_at.get(one.source, (-1, -_APART))
            named = {int(rank): quoted(host) for rank, host in _AFFECTED.findall(one.text) if int(rank) < _LARGEST}
            if at < 0 or one.line - line > _APART:
                at = len(found)
                found.append(StragglerReport(one.job, one.where, one.time, "nvrx"))
            before = found[at]
            found[at] = StragglerReport(
                before.job, before.where, before.time, before.source, tuple(sorted({*before.named, *named})),
                before.scores, tuple({**dict(before.hosts), **named}.items()),
            )  # fmt: skip
        elif one.rule == _SECTIONS:
            found.append(_sections(one))
    return found


def _scores(one: InputLine) -> StragglerReport:
    rows = [match for text in one.more for match in _SCORE.findall(text) if int(match[0]) < _LARGEST]
    scores = tuple((int(rank), float(score)) for rank, _, score in rows)
    return StragglerReport(
        one.job, one.where, one.time, "nvrx", (), scores, tuple((int(rank), quoted(host)) for rank, host, _ in rows)
    )


def _sections(one: InputLine) -> StragglerReport:
    """Read a report of FlagScale: the slow ranks with their hosts, and the times of all ranks by section."""
    named: set[int] = set()
    hosts: dict[int, str] = {}
    times: dict[int, float] = {}
    has_times = False
    for text in one.more:
        listed, row = _DETECTED.search(text), _RANK.search(text)
        named.update(ranks_in(listed[1] if listed else ""))
        if row is None:
            has_times = "timings (ms)" in text.lower() or (has_times and "scores" not in text.lower())
            continue
        rank = int(row["rank"])
        if row["host"]:
            hosts[rank] = quoted(row["host"])
        if row["value"] is None:
            named.add(rank)
        elif has_times or row["ms"]:
            times[rank] = times.get(rank, 0.0) + float(row["value"])
    fastest = min((ms for ms in times.values() if ms > 0), default=0.0)
    scores = tuple((rank, fastest / ms) for rank, ms in times.items() if ms > 0)
    slow = tuple(sorted(rank for rank in named if rank < _LARGEST))
    return StragglerReport(one.job, one.where, one.time, "flagscale", slow, scores, tuple(hosts.items()))
