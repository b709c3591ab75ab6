"""Reports that name the ranks that others wait for: desync reports, mismatched collectives, barriers, NCCL RAS.

The ranks of a desync report are ranks in the group. A report of a mismatch is from one of both sides: only the majority
of all reports shows the other side.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from goodput_cli.events.capability import InputLine
from goodput_cli.events.evidence import quoted
from goodput_cli.events.hangs.positions import global_rank
from goodput_cli.events.text.causes import ranks_in
from goodput_cli.events.text.collected_lines import CollectedRule
from goodput_cli.events.text.log_lines import pattern

Kind = Literal["desync", "fingerprint", "barrier", "ras"]
_MOST_RANKS = 65_536
_DESYNC = pattern(r"\[(?P<rank>\d{1,8})\] Timeout at collective: (?P<operation>\w{1,64}), #(?P<sequence>\d{1,20})")
_DESYNC_LINE = pattern(r"^\s+(?:- |\[|#)")
_MISSED = re.compile(r"\[(?P<ranks>[\d, ]{1,4000})\] (?:finished collective #\d+, )?but didn.t join collective #(\d+)")
_NEVER = re.compile(r"\[?(?P<ranks>[\d, ]{1,4000})\]? (?:are|is) the lagging ranks?.{0,80}never joined any")
_STUCK = re.compile(r"\[(?P<ranks>[\d, ]{1,4000})\] joined but didn.t finish collective #(\d+)")
_FINGERPRINT = pattern(
    r"Rank (?P<rank>\d{1,8}) is running collective: CollectiveFingerPrint\((?P<own>.{0,400}?)\), but Rank "
    r"(?P<other>\d{1,8}) is running collective: CollectiveFingerPrint\((?P<others>.{0,400}?)\)(?:\.|,|$|\s)"
)
_SEQUENCE = re.compile(r"SequenceNumber=(\d{1,20}),? ?")
_BARRIER = pattern(r"Ranks? (?P<ranks>\d{1,8}(?:, ?\d{1,8}){0,4000}) failed to pass monitoredBarrier")
_RAS = pattern(r"(?P<count>\d{1,8}) ranks? (?:have|has) launched up to operation (?P<sequence>\d{1,20})")
_RAS_LINE = pattern(r"^\s*(?:Rank \d+ -- |\d+ ranks? (?:have|has) launched up to operation )")
_RAS_RANK = re.compile(r"Rank (\d{1,8}) -- .{0,200}?on node (\S{1,200})")
LINES = (
    CollectedRule(
        name="desync report", anchors=("Timeout at collective: ",), begins=_DESYNC, goes_on=_DESYNC_LINE, most=24
    ),
    CollectedRule(name="fingerprint", anchors=("is running collective: CollectiveFingerPrint(",), begins=_FINGERPRINT),
    CollectedRule(name="barrier report", anchors=("failed to pass monitoredBarrier",), begins=_BARRIER),
    CollectedRule(
        name="ras counts", anchors=("launched up to operation ",), begins=_RAS, goes_on=_RAS_LINE, most=256
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
    """Ranks that did not join: in the group for a desync report, otherwise global."""
    reporter: int | None = None
    """Rank in the group that reports a desync."""
    process: int | None = None
    """Global rank of the reporter, if its lines show it."""
    sequence: int | None = None
    operation: str = ""
    stuck: tuple[int, ...] = ()
    """Ranks that joined and did not finish."""
    running: tuple[tuple[int, str], ...] = ()
    """What each rank runs, for a mismatch."""
    hosts: tuple[str, ...] = ()
    quote: str = ""


def reports_in(lines: Iterable[InputLine]) -> Iterator[RankReport]:
    """Yield the reports in lines."""
    for one in lines:
        if one.rule == "desync report":
            yield from _desync(one)
        elif one.rule == "fingerprint" and (found := _FINGERPRINT.search(one.text)) is not None:
            running = ((int(found["rank"]), found["own"]), (int(found["other"]), found["others"]))
            number = _SEQUENCE.search(found["own"])
            plain = tuple((rank, _SEQUENCE.sub("", text)) for rank, text in running)
            yield RankReport(one.job, one.where, one.time, "fingerprint", (), running=plain, quote=quoted(one.text),
                             sequence=None if number is None else int(number[1]))  # fmt: skip
        elif one.rule == "barrier report" and (found := _BARRIER.search(one.text)) is not None:
            named = _ranks(found["ranks"])
            yield RankReport(one.job, one.where, one.time, "barrier", named, quote=quoted(one.text))
        elif one.rule == "ras counts":
            yield from _ras(one)


def _ranks(text: str) -> tuple[int, ...]:
    return tuple(sorted({rank for rank in ranks_in(text) if rank < _MOST_RANKS}))


def _desync(one: InputLine) -> Iterator[RankReport]:
    head = _DESYNC.search(one.text)
    if head is None:
        return
    named: set[int] = set()
    stuck: set[int] = set()
    for text in one.more:
        for found in (_MISSED.search(text), _NEVER.search(text)):
            named.update(() if found is None else _ranks(found["ranks"]))
        joined = _STUCK.search(text)
        stuck.update(() if joined is None else _ranks(joined["ranks"]))
    yield RankReport(
        one.job, one.where, one.time, "desync", tuple(sorted(named)), int(head["rank"]), global_rank(one),
        int(head["sequence"]), head["operation"], tuple(sorted(stuck)), quote=quoted(one.text),
    )  # fmt: skip


def _ras(one: InputLine) -> Iterator[RankReport]:
    """Yield the ranks that launched fewer operations than most. A list of ranks that are ahead names nobody."""
    counts: list[tuple[int, int, list[tuple[int, str]]]] = []
    for text in (one.text, *one.more):
        found = _RAS.search(text)
        if found is not None:
            counts.append((int(found["count"]), int(found["sequence"]), []))
        elif counts and (rank := _RAS_RANK.search(text)) is not None:
            counts[-1][2].append((int(rank[1]), rank[2]))
    if len(counts) < 2:
        return
    most = max(counts, key=lambda row: row[0])
    behind = [row for row in counts if row[1] < most[1] and row[2]]
    named = tuple(sorted(rank for row in behind for rank, _ in row[2]))
    if not named:
        return
    hosts = tuple(sorted({quoted(host) for row in behind for _, host in row[2]}))
    yield RankReport(one.job, one.where, one.time, "ras", named, sequence=most[1], hosts=hosts, quote=quoted(one.text))
