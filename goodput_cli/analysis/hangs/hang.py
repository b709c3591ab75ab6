"""The hang of an attempt: its result, its sentence, and its columns in the table of disruptions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.disruptions.costs import AttemptCosts
from goodput_cli.analysis.hangs.groups import Member, WaitGroup, Waiting, waits_of_attempts
from goodput_cli.analysis.hangs.verdict import Certainty, Finding, Verdict, judge
from goodput_cli.analysis.json_fields import Count, Instant, Json, written
from goodput_cli.analysis.sheet import Audience, Column
from goodput_cli.analysis.table import DisruptionFacts
from goodput_cli.arrays import group_by_key
from goodput_cli.events.hangs.positions import Position
from goodput_cli.events.schema import Edge, Kind
from goodput_cli.vocabulary.text import plural

_MOST_EVIDENCE = 20
_OPERATIONS = {"allreduce": "all-reduce", "allgather": "all-gather", "alltoall": "all-to-all"}
_BUSY = {Kind.SAVE: "a save", Kind.RESTORE: "a restore", Kind.DATA: "data loading", Kind.PREP: "preparation"}


@written("hang_position")
@dataclass(frozen=True)
class HangPosition:
    """Members of a group with the same progress."""

    ranks: str
    """global ranks, as ranges; processes of unknown rank as ?"""
    group_ranks: str
    """their ranks in the group, as ranges"""
    sequence: int | None
    """number of the operation in which they wait; null: they do not wait in this group"""
    operation: str | None
    """as logged; null: not logged"""
    elements: int | None
    """elements of its input; null: not logged"""
    enqueued: int | None
    """the last operation that their programs passed to their devices"""
    completed: int | None
    """the last operation that their devices finished"""
    evidence: Sequence[str]
    """file:line of the first lines that show it"""
    waited_ns: Annotated[Count | None, Json("seconds")] = None
    """the longest wait; null: not logged"""


@written("hang_group")
@dataclass(frozen=True)
class HangGroup:
    """A process group in which ranks wait."""

    name: str
    """as logged"""
    description: str
    """as logged; empty: not logged"""
    size: int | None
    """members, or the least number that it can have"""
    size_known: bool
    """true if size is the number of members"""
    waits_for_group: str | None
    """the group in which its other members wait; null: none, or unknown"""
    positions: Sequence[HangPosition]
    """its members by progress"""


@written(
    "hang",
    "who held the job up when ranks waited for each other (docs/hangs.md); null without a wait",
    keys=(
        "verdict certainty ranks hosts ranks_without_report began_ns waited_ns timeout_ns phase function missing "
        "groups evidence"
    ),
)
@dataclass(frozen=True)
class Hang:
    """The wait at the end of an attempt."""

    verdict: Verdict
    """absent: the ranks did not join; behind: they did not finish what others finished; diverged: they run another
    operation; busy: absent during work that did not end; all_joined: no rank held the job up; unknown: see missing"""
    certainty: Certainty
    """confirmed: shown by numbers or reports; likely: chosen as the few that differ; unknown"""
    ranks: Sequence[int]
    """ranks that held the job up; empty if none may be named"""
    hosts: Sequence[str]
    """their hosts, as logged"""
    ranks_without_report: str
    """ranks of the job that print nothing about the wait, as ranges: a fact, not a verdict"""
    began_ns: Instant | None
    """when the longest wait began"""
    waited_ns: Annotated[Count | None, Json("seconds")]
    """the longest wait"""
    timeout_ns: Annotated[Count | None, Json("seconds")]
    """the limit of the waits"""
    phase: str | None
    """work that had not ended, or the function in which most ranks wait; null: not logged"""
    function: str | None
    """function in which the first named rank is, from the output of py-spy; null: not read"""
    missing: Sequence[str]
    """what would decide an open question"""
    groups: Sequence[HangGroup]
    """groups with waits, that of the verdict first"""
    evidence: Sequence[str] = ()
    """file:line of the reports that name the ranks"""
    unmapped: str = ""
    """named ranks of the group whose global ranks are unknown, as ranges"""
    named_group: str = ""
    """the group of the verdict"""
    waiting: int = 0
    """number of ranks that wait"""


@written("hung_now", "the job may still run, and ranks wait for each other; null otherwise")
@dataclass(frozen=True)
class HungNow:
    """The wait of a job whose end is not logged."""

    hang: Hang
    """who holds the job up"""


def hangs_of_timeline(timeline: Timeline) -> dict[int, Hang]:
    """Return the hang of each attempt with waits, by its index."""
    judged = ((at, one, judge(one)) for at, one in waits_of_attempts(timeline).items())
    return {
        at: _hang(timeline, at, one, finding)
        for at, one, finding in judged if one.waits_in or finding.verdict != "unknown"
    }  # fmt: skip


def _hang(timeline: Timeline, attempt: int, waiting: Waiting, finding: Finding) -> Hang:
    verdict, work = finding.verdict, ""
    if verdict == "absent" and finding.ranks == (0,) and (work := _open_work(timeline, attempt)):
        verdict = "busy"
    waits = [one for group in waiting.groups.values() for one in group.waits.values()]
    longest = max((one.waited_ns or 0 for one in waits), default=0) or None
    begins = [one.time - one.waited_ns for one in waits if one.time is not None and one.waited_ns is not None]
    timeouts = [one.timeout_ns for one in waits if one.timeout_ns is not None]
    names = [name for name, one in waiting.groups.items() if one.waits]
    names.sort(key=lambda name: (name != finding.group, name))
    group = waiting.groups.get(finding.group or "")
    return Hang(
        verdict, finding.certainty, finding.ranks, _hosts(waiting, finding), ranges(waiting.missing),
        min(begins, default=None), longest, max(timeouts, default=None), work or _phase(waits),
        waiting.functions.get(finding.ranks[0]) if finding.ranks else None,
        tuple(_missing(waiting, finding)), tuple(_group(waiting, waiting.groups[name]) for name in names),
        finding.evidence, ranges(finding.unmapped), group.label if group is not None else "", len(waiting.waits_in),
    )  # fmt: skip


def _phase(waits: Iterable[Position]) -> str | None:
    """Return the function in which most ranks wait; None if it is not recorded."""
    found = Counter(one.phase for one in waits if one.phase)
    return found.most_common(1)[0][0] if found else None


def _open_work(timeline: Timeline, attempt: int) -> str:
    """Return the work that had begun and not ended at the last event of an attempt; "" if there is none."""
    table = timeline.table
    rows = np.flatnonzero(np.asarray(timeline.attempts.of_row) == attempt)
    rows = rows[~np.isin(table.kind[rows], (Kind.HEARTBEAT, Kind.TERMINATED, Kind.CRASHED))]
    if not len(rows):
        return ""
    last = rows[np.argmax(table.time[rows])]
    kind = Kind(int(table.kind[last]))
    return _BUSY.get(kind, "") if table.edge[last] == Edge.BEGIN else ""


def _hosts(waiting: Waiting, finding: Finding) -> tuple[str, ...]:
    own = {
        one.host for group in waiting.groups.values() for rank, one in group.positions.items()
        if rank in finding.ranks and one.host
    }  # fmt: skip
    return tuple(sorted({*finding.hosts, *own}))


def _missing(waiting: Waiting, finding: Finding) -> Iterator[str]:
    """Yield what would decide an open question."""
    if finding.verdict != "unknown" and finding.certainty != "unknown":
        return
    if finding.in_doubt:
        yield f"a report names {', '.join(finding.in_doubt[:3])}, which may itself wait for another rank"
    if waiting.missing:
        what, add = ("dump", "dumps") if waiting.has_dumps else ("line", "logs")
        yield f"no {what} of {ranks_text(waiting.missing)} is about the wait: add their {add}"
    if not waiting.has_dumps:
        yield "set TORCH_NCCL_DUMP_ON_TIMEOUT=1 and TORCH_NCCL_TRACE_BUFFER_SIZE=2000, and pass the dumps with the log"
        yield "set TORCH_NCCL_DESYNC_DEBUG=1"


def _group(waiting: Waiting, group: WaitGroup) -> HangGroup:
    by_progress = group_by_key(
        ((one.sequence, one.operation, one.elements, one.sequence is None and one.enqueued), member)
        for member, one in group.positions.items()
    )
    positions = [_place(group, members) for members in by_progress.values()]
    elsewhere = {
        waiting.waits_in[rank] for rank in group.known_members if waiting.waits_in.get(rank, group.name) != group.name
    }
    return HangGroup(
        group.name, group.about, group.size, group.size_is_known,
        waiting.groups[elsewhere.pop()].label if len(elsewhere) == 1 and "" not in elsewhere else None,
        tuple(sorted(positions, key=lambda one: (one.sequence is None, one.sequence or 0))),
    )  # fmt: skip


def _place(group: WaitGroup, members: Sequence[Member]) -> HangPosition:
    rows = [group.positions[member] for member in members]
    first, known = rows[0], [member for member in members if isinstance(member, int)]
    places = tuple(one.where for one in rows[:_MOST_EVIDENCE])
    inside = [one.group_rank for one in rows if one.group_rank is not None]
    return HangPosition(
        ranges(known) or "?", ranges(inside), first.sequence, first.operation or None, first.elements,
        _same(one.enqueued for one in rows), _same(one.completed for one in rows), places,
        max((one.waited_ns or 0 for one in rows), default=0) or None,
    )  # fmt: skip


def _same(values: Iterable[int | None]) -> int | None:
    """Return the largest known value."""
    return max((one for one in values if one is not None), default=None)


def ranges(ranks: Iterable[int]) -> str:
    """Return `0-3, 7`."""
    parts: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if parts and rank == parts[-1][1] + 1:
            parts[-1][1] = rank
        else:
            parts.append([rank, rank])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)


# sentences


def operation_name(name: str | None) -> str:
    """Return `all-reduce` for `ALLREDUCE`, `all-gather` for `_all_gather_base`."""
    plain = (name or "operation").strip("_").lower().removesuffix("_base").removesuffix("_oop").replace("_", "-")
    return _OPERATIONS.get(plain, plain)


def ranks_text(ranks: Sequence[int] | str) -> str:
    """Return `rank 3`, `ranks 0-2, 5`."""
    shown = ranks if isinstance(ranks, str) else ranges(ranks)
    return f"rank{'s' * (not shown.isdecimal())} {shown}"


def _wait(ranks: str) -> str:
    return f"{ranks_text(ranks)} wait{'s' * ranks.isdecimal()}"


def operation_text(one: HangPosition, group: HangGroup) -> str:
    """Return `all-reduce #7`, with the size of its input if others in the group run it with another one."""
    differs = any(
        (other.sequence, other.operation) == (one.sequence, one.operation) and other.elements != one.elements
        for other in group.positions
    )
    size = f" of {one.elements:,} element{'s' * (one.elements != 1)}" if differs and one.elements is not None else ""
    return f"{operation_name(one.operation)} #{one.sequence}{size}"


def _named(hang: Hang) -> str:
    if hang.ranks:
        at = f" ({', '.join(hang.hosts[:2])})" if hang.hosts else ""
        return f"{ranks_text(hang.ranks)}{at}"
    return f"{ranks_text(hang.unmapped)} of {hang.named_group or 'its group'}"


def blocked_by(hang: Hang | None) -> str | None:
    """Return the ranks that held a job up, with their hosts; None if none is named."""
    return None if hang is None or not (hang.ranks or hang.unmapped) else _named(hang)


def sentence(hang: Hang) -> str:
    """Return who waits where, and for whom. It contains text of the log."""
    group = hang.groups[0] if hang.groups else None
    waits = [] if group is None else [one for one in group.positions if one.sequence is not None]
    others = [one for one in waits if not _is_named(hang, one)]
    most = max(others, key=lambda one: rank_count(one.ranks), default=None)
    text_of = {id(one): operation_text(one, group) for one in waits if group is not None}
    if hang.verdict == "all_joined" and most is not None and group is not None:
        return f"all {group.size} ranks joined {text_of[id(most)]} and none finished it"
    if hang.verdict == "unknown" or not (hang.ranks or hang.unmapped):
        tied = "; ".join(f"{ranks_text(one.ranks)} in {text_of[id(one)]}" for one in waits[:3])
        shown = f"{plural(hang.waiting, 'rank')} waited" if hang.waiting else "ranks run different operations"
        shown += f" ({tied})" if tied else ""
        return f"{shown}; which rank held them up is unknown" + (f": {hang.missing[0]}" if hang.missing else "")
    where = "others wait" if most is None else f"{_wait(most.ranks)} in {text_of[id(most)]}"
    own = next((one for one in waits if _is_named(hang, one)), None)
    are, run = ("is", "runs") if (ranges(hang.ranks) or hang.unmapped).isdecimal() else ("are", "run")
    reason = {
        "absent": "did not join it", "busy": f"did not join it: {hang.phase} had not ended",
        "behind": "did not finish an operation that the others finished", "diverged": f"{run} another operation",
    }[hang.verdict]  # fmt: skip
    if own is not None and most is not None and hang.verdict == "diverged" and own.sequence is not None:
        ahead = own.sequence - (most.sequence or 0)
        reason = f"{are} in {text_of[id(own)]}"
        reason += f", {plural(abs(ahead), 'operation')} {'ahead' if ahead > 0 else 'behind'}" if ahead else ""
    likely = " (likely)" if hang.certainty == "likely" else ""
    inside = "" if hang.function is None else f"; rank {hang.ranks[0]} is in {hang.function}"
    return f"{where}; {_named(hang)} {reason}{likely}{inside}"


def rank_count(shown: str) -> int:
    """Return the number of ranks in ranges."""
    return sum(map(len, _ranges_in(shown))) or 1


def _is_named(hang: Hang, one: HangPosition) -> bool:
    members = {rank for some in _ranges_in(one.ranks) for rank in some}
    return bool(members) and members <= set(hang.ranks)


def _ranges_in(shown: str) -> Iterator[range]:
    """Yield the ranges in `0-3, 7`; none for `?`."""
    for part in shown.split(", "):
        low, _, high = part.partition("-")
        if low.isdecimal():
            yield range(int(low), int(high or low) + 1)


def advice(hang: Hang) -> str | None:
    """Return what to do; None if the advice about hangs stays."""
    if hang.verdict == "all_joined":
        return "look at the network and the devices, not at a rank"
    if hang.verdict == "busy":
        return f"raise the timeout above the time that {hang.phase} takes, or find out why it takes longer"
    if not (hang.ranks or hang.unmapped):
        return None
    what = {
        "absent": "find out what it did when the others joined", "behind": "check its device and its network",
        "diverged": "compare its code path in this step with the other ranks",
    }[hang.verdict]  # fmt: skip
    return f"look at {_named(hang)}: {what}"


_NAME = "hangs"


def _hangs(timeline: Timeline, _: AttemptCosts, attempts: Sequence[int]) -> Sequence[Hang | None]:
    found = hangs_of_timeline(timeline)
    return tuple(map(found.get, attempts))


def _of(value: Callable[[Hang], Any]) -> Callable[[Any], list[Any]]:
    """Return the values of a column; None without a wait."""
    return lambda part: [None if one is None else value(one) for one in part.facts[_NAME]]


def _json(hang: Hang) -> Any:
    from goodput_cli.analysis.to_json import json_type  # Few logs contain waits.

    return json_type(Hang).write(hang)


HANG_FACTS = DisruptionFacts(
    name=_NAME,
    of=_hangs,
    columns=(
        Column(
            "hang", "text", Audience.JSON, _of(_json), "who held the job up when ranks waited (docs/hangs.md), as "
            "last_end.hang of goodput analyze; null without a wait",
            json={"type": ["object", "null"]}, json_values=_of(_json), later=True,
        ),
        Column(
            "hang_verdict", "text", Audience.TABLES, _of(lambda one: one.verdict),
            "verdict about the wait; null without a wait", nullable=True,
        ),
        Column(
            "blocked_by_ranks", "text", Audience.TABLES, _of(lambda one: ranges(one.ranks) or None),
            "ranks that held the job up, as ranges; null if none is named", nullable=True,
        ),
        Column(
            "blocked_by_host", "text", Audience.TABLES, _of(lambda one: " ".join(one.hosts) or None),
            "their hosts; null if not logged", nullable=True,
        ),
    ),
)  # fmt: skip
