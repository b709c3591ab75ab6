"""Reports about slow ranks: of nvidia-resiliency-ext in NeMo's log, and of FlagScale.

A score of NVRx is the speed of a rank relative to the fastest one. Its individual scores compare a rank with itself, so
they name nobody here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from goodput_cli.events.capability import InputLine
from goodput_cli.events.evidence import quoted
from goodput_cli.events.text.causes import ranks_in
from goodput_cli.events.text.collected_lines import CollectedRule
from goodput_cli.events.text.log_lines import pattern

_SCORES, _NAMED, _SECTIONS = "straggler scores", "straggler warning", "straggler report"
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
LINES = (
    CollectedRule(
        name=_SCORES, anchors=("GPU relative performance:",), begins=pattern("GPU relative performance:"),
        goes_on=pattern(r"^\s+(?:Worst|Best) performing |^\s+Rank=\d"), most=64,
    ),
    CollectedRule(
        name=_NAMED, anchors=("STRAGGLER DETECTION WARNING",), begins=pattern(
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
        elif one.rule == _NAMED:
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
