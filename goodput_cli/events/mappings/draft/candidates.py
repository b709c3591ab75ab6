"""A drafted mapping before its result is known, and what its log leads to expect of the result.

The log itself is not kept: its lines and columns take more memory than the accounting.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from goodput_cli.events.mappings.draft.expected import Excess, Expected, Whole, whole_contradictions
from goodput_cli.events.mappings.draft.proof import UNEXPLAINED, Contradiction
from goodput_cli.vocabulary.secrets import without_secrets
from goodput_cli.vocabulary.text import duration, plural, safe

_S = 10**9


@dataclass(frozen=True)
class LeftOut:
    """A rule that the log contradicts."""

    event: str
    line: int | None
    reason: str
    test: str
    """The failed test (`proof`)."""


@dataclass(frozen=True)
class Draft:
    """A drafted mapping."""

    text: str
    """TOML with rules that match the log, rejected rules with reasons, and sample lines; only comments if no rule could
    be proven or none is needed."""
    rules: int = 0
    lines: int = 0
    """Number of lines that it was made from."""
    left_out: tuple[LeftOut, ...] = ()
    refused: tuple[str, ...] = ()
    """Why its result would be wrong, and what to do."""
    refused_by: str = ""
    """The test that the likeliest step rule or its result fails (`proof`); empty if no number may count steps."""
    doubts: tuple[str, ...] = ()
    """Warnings about its result."""


@dataclass(frozen=True)
class Candidate:
    """A drafted mapping whose result is unknown."""

    text: str
    lines: int
    """Number of lines that its rules match."""
    events: tuple[str, ...]
    """Event of each rule."""
    left_out: tuple[tuple[str, Contradiction], ...]
    """Events and reasons of rejected rules."""
    expected: Expected
    begins: int
    """Number of processes that lines show to begin."""
    total: int | None
    """Total number of steps in the log."""
    excess: Excess
    before: tuple[int, float]
    """The first step, and the seconds of the steps before it (`steps_before`)."""
    part: tuple[str, float] | None
    """A time that covers only a part of the time between records (`named_part`); None without one."""
    window: int
    """Time (ns) between the first and the last entry."""
    jumps_back: tuple[int, str]
    """How often timestamps jump back, and the first location."""

    def contradictions(self, whole: Whole | str) -> list[Contradiction]:
        """W: return the reasons why its result is implausible."""
        if isinstance(whole, str):
            where = self.expected.first
            return [Contradiction("W", f"with this rule, the log cannot be analyzed: {whole}", where)]
        return list(whole_contradictions(whole, self.expected, self.begins, self.total))

    def finished(self, whole: Whole) -> Draft:
        """Return the draft with the warnings about its result."""
        left = tuple(LeftOut(event, one.line, shown(one.reason), one.test) for event, one in self.left_out)
        doubts = tuple(self._doubts(whole, left))
        return Draft(self.text, len(self.events), self.lines, left, doubts=doubts)

    def _doubts(self, whole: Whole, left: tuple[LeftOut, ...]) -> Iterator[str]:
        unread = [one.reason for one in left if one.event in ("save", "eval") and one.event not in self.events]
        if unread:
            yield f"ignored {', '.join(dict.fromkeys(unread))}; their time may count as training"
        least = UNEXPLAINED * whole.window / _S
        over = self.excess.since(whole.begin)
        if over > least:
            yield f"{duration(round(over * _S))} between steps is unexplained, so goodput may be wrong"
        first, before = self.before
        if before > least and "resume" not in self.events:
            yield f"the first step line has step {first}; earlier steps are not counted"
        if self.part is not None:
            name, share = self.part
            yield f"`{name}` covers {share:.0%} of the time between step lines, but all of it counts as training"
        outside = self.window - whole.window if whole.begin is None else 0
        if outside > UNEXPLAINED * self.window:
            said = f"{duration(outside)} of output is outside the measured window"
            yield f"{said} (before the first or after the last event)"
        back, where = self.jumps_back
        if back:
            yield f"timestamps jump back {plural(back, 'time')}, first at {where}; steps may be counted twice or lost"


def shown(sentence: str) -> str:
    """Return a sentence with text from the log, made safe to show."""
    return safe(without_secrets(sentence))
