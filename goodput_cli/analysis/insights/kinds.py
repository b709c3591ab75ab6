"""Kinds of insights, declared once, in `kinds.toml`. Thresholds, reports, JSON and docs/insights.md follow from it.

This module does not import NumPy: thresholds are checked before any work.

An insight describes an event, its time, its cost, the lines that show it, and what to do.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from goodput_cli.analysis.json_fields import Amount, Bounds, Count, Instant, Json, written
from goodput_cli.analysis.question import Price
from goodput_cli.vocabulary.option import TomlRows


@dataclass(frozen=True)
class InsightKind:
    """The declaration of a kind of insights: a table of `kinds.toml`."""

    title: str
    """Heading for people."""
    meaning: str
    """Conditions for reporting it, and the seconds that it covers."""
    advice: str
    """Advice, unless the finder has a better one; "" if the log shows too little for advice."""
    command: str
    """Command that shows more, with its options."""
    least_percent: float
    """Percentage of the window; an insight that cost less is omitted."""
    origin: str
    """Origin of that limit, and of any other limit of the kind."""
    needs: tuple[str, ...] = ()
    """Measures: the kind is judged only if the log has one of them; empty if every log can be judged."""
    covers: tuple[str, ...] = ()
    """Categories whose time it explains, unless the finder names them."""


BY_CODE: Mapping[str, InsightKind] = TomlRows(Path(__file__).with_name("kinds.toml"), InsightKind)
"""All kinds by code, which is the name in JSON and in thresholds (`insight:CODE`), in the order of the documents.
Answers are in the order of cost, confirmed losses first."""
LEAST_NS = 60 * 10**9
"""Minimum cost of an insight (ns): less than a minute is not worth acting on."""


_HELD_BY_NOBODY = frozenset({"queued"})


@dataclass(frozen=True)
class InsightTarget:
    """Rows of the report that an insight is about, by their names there, with a maximum of each."""

    disruptions: tuple[int, ...] = ()
    """Numbers of disruptions of the job, from 1."""
    steps: tuple[int, ...] = ()
    """Steps that hung, the worst first, or the first steps of slow periods."""
    categories: tuple[str, ...] = ()
    """Rows of the ledger: `step_stall`, `custom_badput_events:EVAL_STEP`."""


@dataclass(frozen=True)
class Candidate:
    """Result of a finder, before it is compared with the window."""

    code: str
    """Code of its kind."""
    ns: int
    """Cost (ns); no two insights count the same time."""
    text: str
    """Description of the event, in a sentence without a full stop. It may contain text of the log."""
    start_ns: int
    end_ns: int
    """End of the event; it began at `start_ns`."""
    count: int = 1
    """Number of occurrences."""
    rows: tuple[int, ...] = ()
    """Rows of the table that show it."""
    about: InsightTarget = InsightTarget()
    """Disruptions, steps and categories that show it."""
    options: tuple[str, ...] = ()
    """Options of the command that shows more."""
    command: str | None = None
    """Command that shows more, if it differs from the kind's."""
    advice: str | None = None
    """Advice, if it differs from the kind's."""
    in_goodput_ns: int = 0
    """Part of `ns` that counts as goodput all the same: slow training that was kept."""
    confirmed: bool = True
    """True if the time was lost. False if it is unknown whether it was slow or by design."""
    sooner: str = ""
    """End of the text: what would have ended the event sooner. It is left out where the log shows whom to look at."""


@written(
    "insight_part",
    "what happened, what it cost and what to do; no second is in two insights",
    keys=(
        "code title text advice seconds ns in_goodput_ns confirmed percent start_ns end_ns count evidence disruptions "
        "steps categories typed_command accelerator_hours cost"
    ),
)
@dataclass(frozen=True)
class Insight:
    """A loss, its evidence and what to do.

    `ns` is the exact cost from the ledger, and no second is in two insights. Times relative to a usual step are
    rounded once.
    """

    code: Annotated[str, Bounds(enum=tuple(BY_CODE))]
    """kind of the insight"""
    text: str
    """description of the event"""
    advice: str
    """recommended action; empty if the log shows too little for advice"""
    ns: Count
    """cost of the event"""
    in_goodput_ns: Annotated[Count, Json("seconds", key="ns_in_goodput")]
    """part of seconds that counts as goodput, because slow training was kept"""
    percent: Amount
    """of the window without exclusions"""
    start_ns: Instant
    """when it began"""
    end_ns: Instant
    """when it ended"""
    count: Count
    """number of occurrences"""
    evidence: tuple[str, ...]
    """file:line or insertId of the first lines that show it"""
    command: tuple[str, ...]
    """Command that shows more, as words, without the logs."""
    source: tuple[str, ...]
    """Logs and job of that command, as they were named; empty if they came from a program."""
    confirmed: Annotated[bool, Json(missing=True, later=True)] = True
    """whether the time was lost; false: unknown whether slow or by design, listed after all confirmed insights"""
    about: InsightTarget = InsightTarget()
    """Rows of other tables that show it."""
    price: Price | None = None
    """Price of the accelerators."""

    @property
    def advice_sentence(self) -> str:
        """Return the advice as a sentence; "" without advice."""
        return f"{self.advice[:1].upper()}{self.advice[1:]}." if self.advice else ""

    @property
    def kind(self) -> InsightKind:
        """Return the declaration of its kind."""
        return BY_CODE[self.code]

    @property
    def title(self) -> str:
        """its kind in a few words"""
        return self.kind.title

    @property
    def seconds(self) -> Amount:
        return self.ns / 1e9

    @property
    def disruptions(self) -> tuple[Count, ...]:
        """numbers of the disruptions that show it, at most 100"""
        return self.about.disruptions

    @property
    def steps(self) -> tuple[int, ...]:
        """steps that show it: hanging steps, or first steps of slow periods"""
        return self.about.steps

    @property
    def categories(self) -> tuple[str, ...]:
        """rows of badput that show it; a custom event as custom_badput_events:LABEL"""
        return self.about.categories

    @property
    def typed_command(self) -> Annotated[str, Json(key="command")]:
        """the command that shows more"""
        return self.command_line()

    @property
    def accelerator_hours(self) -> Annotated[Amount | None, Json(missing=None)]:
        """seconds x accelerators, in hours; null without --accelerators, and in the queue"""
        return None if self.price is None or self.code in _HELD_BY_NOBODY else self.price.hours(self.ns)

    @property
    def cost(self) -> Annotated[Amount | None, Json(missing=None)]:
        """accelerator_hours x price; null without --price-per-hour"""
        return None if self.price is None or self.code in _HELD_BY_NOBODY else self.price.money(self.ns)

    def command_line(self, source: str | None = None) -> str:
        """Return the command as typed. source: replacement for the names of the logs."""
        name, *options = self.command
        logs = shlex.join(self.source) if source is None and self.source else source or "LOG"
        return " ".join(("goodput", name, logs, *map(shlex.quote, options)))
