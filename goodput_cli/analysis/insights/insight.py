"""An insight: what happened, when, what it cost, which lines show it, and what to do."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from goodput_cli.analysis.insights.kinds import BY_CODE, InsightKind
from goodput_cli.analysis.price import Price

_HELD_BY_NOBODY = frozenset({"queued"})


@dataclass(frozen=True)
class About:
    """The rows of the report that an insight is about, by the names they have there: at most some of each."""

    disruptions: tuple[int, ...] = ()
    """Numbers of disruptions of the job, from 1."""
    steps: tuple[int, ...] = ()
    """Steps that hung, the worst first, or the first steps of slow regimes."""
    categories: tuple[str, ...] = ()
    """Rows of the ledger: `step_stall`, `custom_badput_events:EVAL_STEP`."""


@dataclass(frozen=True)
class Candidate:
    """What a finder saw, before it is put against the window."""

    code: str
    """Of a kind."""
    ns: int
    """What it cost; no two insights count the same time."""
    text: str
    """What happened, in a sentence without a stop. It may hold text of the log."""
    start_ns: int
    end_ns: int
    """From when to when it happened."""
    count: int = 1
    """How many things it is about."""
    rows: tuple[int, ...] = ()
    """Rows of the table that show it."""
    about: About = About()
    """Disruptions, steps and categories that show it."""
    options: tuple[str, ...] = ()
    """Of the command that shows more."""
    command: str | None = None
    """That command, if it is not the kind's."""
    advice: str | None = None
    """What to do, if not what the kind says."""
    in_goodput_ns: int = 0
    """The part of `ns` that counts as goodput all the same: training that was kept, though it was slow."""


@dataclass(frozen=True)
class Insight:
    """What a person reads. `ns` is exact, from the ledger, and no second is in two insights; what is measured against
    a usual step is rounded once."""

    code: str
    """One of `kinds.KINDS`."""
    ns: int
    """What it cost."""
    in_goodput_ns: int
    """The part of it that counts as goodput all the same: training that was kept, though it was slow."""
    percent: float
    """Of the window without what is excluded."""
    text: str
    """What happened, in a sentence without a stop. It may hold text of the log."""
    advice: str
    """What to do."""
    command: tuple[str, ...]
    """The command that shows more, word by word, without the logs."""
    source: tuple[str, ...]
    """The logs and the job as they were named, for that command; empty where they came from a program."""
    start_ns: int
    """When it began, ns since 1970 UTC."""
    end_ns: int
    """When it ended, ns since 1970 UTC."""
    count: int
    """How many things it is about."""
    evidence: tuple[str, ...]
    """`file:line` or insertId of the lines that show it, the first ones."""
    about: About = About()
    """The rows of other tables that show it."""
    price: Price | None = None
    """What the accelerators cost."""

    @property
    def kind(self) -> InsightKind:
        """What is declared of its kind."""
        return BY_CODE[self.code]

    @property
    def seconds(self) -> float:
        return self.ns / 1e9

    @property
    def accelerator_hours(self) -> float | None:
        """In which the accelerators were held for nothing; None where nobody said how many there are, or none was
        held."""
        return None if self.price is None or self.code in _HELD_BY_NOBODY else self.price.hours(self.ns)

    @property
    def cost(self) -> float | None:
        """The price of these; None where it is not known."""
        return None if self.price is None or self.code in _HELD_BY_NOBODY else self.price.money(self.ns)

    def command_line(self, source: str | None = None) -> str:
        """The command as it is typed. source: what stands for the logs, if not their names."""
        name, *options = self.command
        logs = shlex.join(self.source) if source is None and self.source else source or "LOG"
        return " ".join(("goodput", name, logs, *map(shlex.quote, options)))
