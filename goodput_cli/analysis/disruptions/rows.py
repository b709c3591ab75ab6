"""The Disruption record, and its columns: each is declared once, here or by a capability, and filled in find.py.

The declaration determines the attribute of `Disruption`, the key in JSON, the heading in CSV, the type in Parquet,
the entry in docs/schema.json and, if people see it, the column in the terminal. Disruptions are stored as columns; a
`Disruption` is made on demand. The list of capabilities is apart from that of the hooks, because hooks make tables of
disruptions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import compress
from operator import attrgetter, methodcaller
from typing import TYPE_CHECKING, Any, Literal, get_args, overload

import numpy as np

from goodput_cli.accounting.attempts.failure_cause import Echo, FailureCause
from goodput_cli.analysis.hangs.hang import HANG_FACTS
from goodput_cli.analysis.question import Price
from goodput_cli.analysis.recovery.chain import OutageTimeline
from goodput_cli.analysis.recovery.columns import RECOVERY_FACTS, Chains
from goodput_cli.analysis.sheet import Audience, Cell, Column
from goodput_cli.analysis.table import (
    INSTANT,
    UNKNOWN,
    DisruptionFacts,
    FilledTable,
    TableDeclaration,
    column,
    columns_of,
    row_schema,
)
from goodput_cli.arrays import I64, Rows, blocks
from goodput_cli.events.evidence import FailureEvidence
from goodput_cli.events.schema import EventTable
from goodput_cli.events.timestamps import isos
from goodput_cli.vocabulary.categories import (
    CAUSES,
    CERTAINTIES,
    CONFIRMED_IN_VERSION_1,
    ENDED,
    GROUPS,
    UNCOUNTED,
    UNKNOWN_CAUSE,
    Ended,
    cause_text,
    ended_words,
)
from goodput_cli.vocabulary.text import duration, plural

if TYPE_CHECKING:
    import pandas as pd


DISRUPTION_FACTS: tuple[DisruptionFacts, ...] = (RECOVERY_FACTS, HANG_FACTS)


Bound = Literal["exact", "at_least"]
BOUNDS: tuple[Bound, ...] = get_args(Bound)
AT_LEAST = BOUNDS.index("at_least")
"""Value in the column `steps_lost_is`."""
_WORDS: dict[str, tuple[str, ...]] = {"ended": ENDED, "steps_lost_is": BOUNDS}
"""Fields that are words, stored as positions in these tuples."""


@dataclass(frozen=True)
class Evidence:
    """The line (file:line or insertId) that shows each bound of a disruption; None if not logged."""

    last_step: str | None = column("text", "the last step")
    last_sign_of_life: str | None = column(
        "text",
        "the last event before it; the line of the last step if that step was credited beyond any event",
    )
    ended: str | None = column("text", "the termination, crash or preempted save")
    next_start: str | None = column("text", "the next start")
    next_up: str | None = column("text", "the last start of its burst")
    resumed_step: str | None = column("text", "the step, load or save that names the step resumed from")
    first_step: str | None = column("text", "the first step or progress after it")
    regained: str | None = column("text", "the first kept step or progress past the old last step")
    cause: str | None = column("text", "the line that states the cause")


EVIDENCE_COLUMNS = columns_of(Evidence, lambda name: lambda part: part.evidence[name])


def _died_between(part: DisruptionColumns) -> list[list[str]]:
    return [list(pair) for pair in zip(part.last_signs, isos(part.numbers["death_latest_ns"]), strict=True)]


@dataclass(frozen=True)
class Disruption:
    """A transition to the next attempt that does not follow a believed clean end (accounting §10). Amounts are ns of
    the whole disruption, for any window; times are ns since 1970 UTC. None is "not known"."""

    number: int = column("count", "from 1, in time order, over the whole job", least=1, heading="no.")
    attempt: int = column("count", "the attempt that ended, from 1", least=1)
    ended: Ended = column(
        "text",
        "how it ended, as logged; preempted: one of its saves reached a preemption",
        json={"enum": list(ENDED)},
        people_values=attrgetter("shown_ends"),
        heading="ended",
    )
    last_step: int | None = column("count", "last step it recorded; null if it recorded none")
    last_sign_of_life_ns: int = column(
        "instant", "its last activity in the log", json_values=attrgetter("last_signs"), heading="down since"
    )
    death_latest_ns: int = column(
        "instant",
        "the attempt failed within this time; two equal instants if its end is logged",
        name="died_before",
        key="died_between",
        json={"type": "array", "items": INSTANT, "minItems": 2, "maxItems": 2},
        json_values=_died_between,
    )
    """End of the range in which it ended, which begins at its last sign of life. It is the same time if its end was
    logged, otherwise the next start."""
    next_start_ns: int = column(
        "instant", "first start line of the next attempt, or its first event if it has no start line"
    )
    next_up_ns: int = column("instant", "last start line of that burst")
    resumed_step: int | None = column(
        "count", "step from which training resumed, in the first attempt that did; null if none did"
    )
    steps_lost: int | None = column(
        "count",
        "steps whose training was lost; in checkpoint logs the recorded steps, and null if only unrecorded steps can "
        "have been lost",
        least=0,
        heading="steps lost",
        people_values=attrgetter("steps_lost_at_least"),
    )
    """In hindsight; includes steps of earlier attempts if it resumed before they ended."""
    steps_lost_is: Bound | None = column(
        "text",
        "at_least: the attempt ended without a message, and its last lines may be missing; null if steps_lost is null",
        json={"enum": [*BOUNDS, None]},
    )
    wasted_ns: int = column("duration", "time of the training that was lost", least=0, heading="wasted")
    downtime_ns: int = column(
        "duration",
        "recovery, undetermined and stopped time until the next attempt was up",
        least=0,
        heading="downtime",
    )
    undetermined_ns: int = column("duration", "part of downtime_seconds that may have been wasted training", least=0)
    queued_ns: int = column("duration", "time in the queue", least=0, heading="queued")
    restart_ns: int = column(
        "duration",
        "initialization, preparation, restore, loading, elastic waits and program start-up of the next attempt",
        least=0,
    )
    lost_ns: int = column("duration", "wasted + downtime + restart", least=0)
    """Time in which accelerators were allocated: queued time is not included."""
    time_to_first_step_ns: int | None = column(
        "duration", "from next_up to the next step (checkpoint logs: recorded progress); null if none came", least=0
    )
    """The step may belong to any attempt."""
    regained_after_ns: int | None = column(
        "duration",
        "from the last activity until kept training passed the old last step; null if it never did",
        least=0,
        heading="regained",
    )
    ranks_before: int | None = column(
        "count", "distinct ranks that started the attempt; null if start lines carry no rank", least=1
    )
    ranks_after: int | None = column(
        "count", "distinct ranks that started the next one; null if start lines carry no rank", least=1
    )
    cause: str | None = column(
        "text",
        "cause of the failure (docs/causes.md); unknown: not logged; null for a planned scale-up and a rollback",
        json={"enum": [*CAUSES, None]},
        heading="why",
        people_values=attrgetter("shown_causes"),
    )
    cause_group: str | None = column("text", "the group of the cause", json={"enum": [*GROUPS, None]})
    cause_certainty: str | None = column(
        "text",
        "confirmed: the log states it; likely: chosen among several, or joined by time; null if unknown",
        json={"enum": [*CERTAINTIES, CONFIRMED_IN_VERSION_1, None]},
    )
    cause_text: str | None = column("text", "the line that states the cause, without prefix and secrets")
    first_rank: int | None = column("count", "the rank that failed; null if not logged", least=0)
    first_host: str | None = column("text", "its host, as in the log; null if not logged")
    first_device: str | None = column("text", "its device, as in the log; null if not logged")
    first_peer: str | None = column("text", "the peer in that line: a host or an address; null without one", later=True)
    also: tuple[str, ...] = column(
        "text",
        "causes that other lines report at the same time",
        json={"type": "array", "items": {"enum": list(CAUSES)}},
        json_values=lambda part: [list(one.also) for one in part.why],
    )
    also_seen: tuple[FailureEvidence, ...] = column(
        "text",
        "the evidence for `also`: code, rank, host, where and text of the first of each; null: not logged",
        audience=Audience.JSON,
        json={"type": "array", "items": {"type": "object"}},
        json_values=attrgetter("also_seen"),
        later=True,
    )
    silent_ranks: tuple[int, ...] = column(
        "text",
        "ranks without any output while nearly all others have some; they are not blamed",
        json={"type": "array", "items": {"type": "integer"}},
        json_values=lambda part: [list(one.silent_ranks) for one in part.why],
    )
    echoes: tuple[Echo, ...] = column(
        "text",
        "reports of other ranks about a lost peer, by code",
        audience=Audience.JSON,
        json={"type": "array", "items": {"type": "object"}},
        json_values=attrgetter("echoes"),
    )
    evidence: Evidence = column(
        "text",
        "file:line or insertId for each bound; null if not logged",
        audience=Audience.JSON,
        json=row_schema(EVIDENCE_COLUMNS, "evidence", ""),
    )
    chain: OutageTimeline | None = None
    """The recovery phases of the outage; None for a planned scale-up and a rollback, which have none."""

    def __repr__(self) -> str:
        """Return one line for a session: number, end, loss and cause."""
        at = "" if self.last_step is None else f" after step {self.last_step}"
        cause = self.cause if self.cause in (None, UNKNOWN_CAUSE) else cause_text(self.cause, self.cause_certainty)
        lost = f"{ended_words(self.ended)}{at}, lost {duration(self.lost_ns)}"
        return f"<Disruption {self.number}: {lost}{'' if cause is None else f', cause {cause}'}>"


@dataclass(frozen=True)
class DisruptionColumns:
    """Columns of some disruptions."""

    numbers: dict[str, I64]
    """Numbers by the names of the fields of `Disruption`; `UNKNOWN` is None."""
    evidence: dict[str, list[str | None]]
    """Locations by the names of the fields of `Evidence`."""
    price: Price | None = None
    """Price of the losses, if known."""
    why: Sequence[FailureCause] = ()
    """Cause of each."""
    facts: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Facts about each by the name of the capability."""

    @property
    def chains(self) -> Chains:
        """Return the recovery chain of each."""
        return self.facts.get(RECOVERY_FACTS.name, ())

    @property
    def shown_ends(self) -> list[str]:
        """Return how attempts ended for people: `slice down`."""
        return [ended_words(how) for how in self.column("ended")]

    @property
    def shown_causes(self) -> list[Cell]:
        """Return causes for people: `likely device_oom`; None if unknown."""
        return [
            None if one.code == UNKNOWN_CAUSE or one.planned else cause_text(one.code, one.certainty)
            for one in self.why
        ]

    @property
    def echoes(self) -> list[list[dict[str, Any]]]:
        """Return echoes for JSON."""
        return [
            [
                {"code": one.code, "ranks": list(one.ranks), "hosts": list(one.hosts), "count": one.count}
                for one in why.echoes
            ]
            for why in self.why
        ]

    @property
    def also_seen(self) -> list[list[dict[str, Any]]]:
        """Return other evidence for JSON."""
        return [
            [
                {
                    "code": one.code,
                    "rank": one.rank,
                    "host": one.host or None,
                    "where": one.where,
                    "text": one.text or None,
                }
                for one in why.also_seen
            ]
            for why in self.why
        ]

    @cached_property
    def last_signs(self) -> list[str]:
        """Return the last sign of life of each for JSON, which two of its columns contain."""
        return isos(self.numbers["last_sign_of_life_ns"])

    def column(self, name: str) -> Any:
        """Return a field of each: int64, or a list of texts or objects."""
        if name == "evidence":
            places = zip(*self.evidence.values(), strict=True)
            return [dict(zip(self.evidence, row, strict=True)) for row in places]
        if name == "first_rank":
            return np.array([UNKNOWN if one.rank is None else one.rank for one in self.why], np.int64)
        if name in _OF_CAUSE:
            return [_OF_CAUSE[name](one) for one in self.why]
        values, words = self.numbers[name], _WORDS.get(name)
        return values if words is None else [None if value == UNKNOWN else words[value] for value in values.tolist()]

    def values(self, name: str) -> list[Any]:
        """Return a field of each, as in `Disruption`."""
        if name in _TUPLES:
            return [getattr(one, name) for one in self.why]
        values = self.column(name)
        if isinstance(values, list):
            return values
        return [None if value == UNKNOWN else value for value in values.tolist()]

    @property
    def steps_lost_at_least(self) -> list[Cell]:
        """Return the number of lost steps, `>=12` if there may have been more."""
        pairs = zip(self.values("steps_lost"), self.values("steps_lost_is"), strict=True)
        return [f">={steps}" if bound == "at_least" else steps for steps, bound in pairs]

    @property
    def ranks(self) -> list[str | None]:
        """Return ranks before and after, as `8 > 7`."""
        pairs = zip(self.values("ranks_before"), self.values("ranks_after"), strict=True)
        shown = (["?" if count is None else str(count) for count in pair] for pair in pairs)
        return [None if pair == ["?", "?"] else " > ".join(pair) for pair in shown]

    def priced(self, value: Callable[[Price, int], float | None], digits: int | None = None) -> list[Cell]:
        """Return a value computed from the price and each loss (ns), rounded to `digits`; None without a price."""
        price = self.price
        if price is None:
            return [None] * len(self.numbers["lost_ns"])
        amounts = (value(price, ns) for ns in self.numbers["lost_ns"].tolist())
        return [amount if digits is None else round(amount or 0.0, digits) for amount in amounts]


_OF_CAUSE: dict[str, Callable[[FailureCause], Any]] = {
    "cause": lambda why: None if why.planned else why.code,
    "cause_group": lambda why: None if why.planned else why.group,
    "cause_certainty": lambda why: why.certainty,
    "cause_text": lambda why: why.text,
    "first_rank": lambda why: why.rank,
    "first_host": lambda why: why.host or None,
    "first_device": lambda why: why.device or None,
    "first_peer": lambda why: (why.evidence.peer if why.evidence is not None else "") or None,
    "also": lambda why: " ".join(why.also) or None,
    "also_seen": attrgetter("also_seen"),
    "silent_ranks": lambda why: " ".join(map(str, why.silent_ranks)) or None,
    "echoes": attrgetter("echoes"),
}
"""Functions from `FailureCause` to fields of tables."""
_TUPLES = ("also", "also_seen", "silent_ranks", "echoes")


class Disruptions(Sequence[Disruption]):
    """Disruptions in time order, stored as columns. A row is made on demand: a long job has tens of thousands, and most
    answers show none of them.

    columns: int64, by the names of the fields of `Disruption`; `UNKNOWN` is None, and a word is its position in
    `_WORDS`. rows: by the names of the fields of `Evidence`, rows of the table, -1 for none.
    """

    def __init__(
        self, table: EventTable, columns: dict[str, I64], rows: dict[str, Rows], why: Sequence[FailureCause] = (),
        facts: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:  # fmt: skip
        self._table = table
        self._columns = columns
        self._rows = rows
        self.why = why
        """Cause of each attempt's end, in the same order."""
        self.facts = {one.name: () for one in DISRUPTION_FACTS} if facts is None else facts
        """Facts about each by the name of the capability, in the same order."""

    @property
    def chains(self) -> Chains:
        """Return the recovery chain of each outage."""
        return self.facts[RECOVERY_FACTS.name]

    def __len__(self) -> int:
        return len(self._columns["number"])

    def __iter__(self) -> Iterator[Disruption]:
        for start, stop in blocks(len(self), _AT_ONCE):
            yield from self._made(slice(start, stop))

    @overload
    def __getitem__(self, index: int) -> Disruption: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Disruption]: ...
    def __getitem__(self, index: int | slice) -> Disruption | Sequence[Disruption]:
        if isinstance(index, slice):
            return tuple(self._made(index))
        place = range(len(self))[index]
        return next(self._made(slice(place, place + 1)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def to_frame(self) -> pd.DataFrame:
        """Return a DataFrame with one row each, and the columns of CSV: times in UTC, durations in seconds."""
        return self.as_table().to_frame()

    def __repr__(self) -> str:
        """Return one line for a session: how many there are, and how to see them."""
        return f"<{plural(len(self), 'disruption')}; .to_frame() has one row per disruption>"

    def _repr_html_(self) -> str:
        return self.to_frame().to_html(index=False)

    def column(self, name: str) -> I64:
        """Return a column of numbers, without unknown ones."""
        column = self._columns[name]
        known: I64 = column[column != UNKNOWN]
        return known

    @property
    def unplanned(self) -> Disruptions:
        """Return the disruptions that count: all but rollbacks and scale-ups, which are intended."""
        chosen = ~np.isin(self._columns["ended"], [ENDED.index(how) for how in UNCOUNTED])
        columns = {name: column[chosen] for name, column in self._columns.items()}
        rows = {name: rows[chosen] for name, rows in self._rows.items()}
        which = chosen.tolist()
        facts = {name: tuple(compress(values, which)) for name, values in self.facts.items()}
        return Disruptions(self._table, columns, rows, tuple(compress(self.why, which)), facts)

    def as_table(self) -> FilledTable:
        """Return the table for programs."""
        return DISRUPTIONS.of(len(self), self.parts)

    def as_priced_table(self, price: Price | None) -> FilledTable:
        """Return the table for programs with the cost of each."""
        return PRICED_DISRUPTIONS.of(len(self), lambda: self.parts(price))

    def parts(self, price: Price | None = None) -> Iterator[DisruptionColumns]:
        """Yield all of them by column, in parts."""
        return (self._part(slice(start, stop), price) for start, stop in blocks(len(self), _AT_ONCE))

    def _part(self, part: slice, price: Price | None = None) -> DisruptionColumns:
        places = {name: list(self._table.locations(rows[part])) for name, rows in self._rows.items()}
        why = self.why[part]
        places["cause"] = [one.where for one in why]
        columns = {name: column[part] for name, column in self._columns.items()}
        facts = {name: values[part] for name, values in self.facts.items()}
        return DisruptionColumns(columns, {name: places[name] for name in _EVIDENCE}, price, why, facts)

    def _made(self, part: slice) -> Iterator[Disruption]:
        some = self._part(part)
        columns = [some.values(name) for name in _COLUMNS]
        places = some.evidence.values()
        rows = zip(zip(*columns, strict=True), zip(*places, strict=True), some.chains, strict=True)
        for values, evidence, chain in rows:
            named: dict[str, Any] = dict(zip(_COLUMNS, values, strict=True))
            yield Disruption(**named, evidence=Evidence(*evidence), chain=chain)


def no_disruptions(table: EventTable) -> Disruptions:
    """Return the disruptions of a time without any."""
    nothing = np.zeros(0, dtype=np.int64)
    rows = dict.fromkeys((name for name in _EVIDENCE if name != "cause"), nothing)
    return Disruptions(table, dict.fromkeys((name for name in _COLUMNS if name not in _OF_CAUSE), nothing), rows)


_PEOPLE = ("no.", "down since", "ended", "why", "steps lost", "wasted", "downtime")
"""The most important headings for people."""
_TIMES = ("detect", "recover", "regained")
_OF_DISRUPTION = columns_of(Disruption, lambda name: methodcaller("column", name))
_BEHIND = (
    *(one for facts in DISRUPTION_FACTS for one in facts.columns),
    *(replace(one, name=f"evidence_{one.name}", audience=Audience.TABLES) for one in EVIDENCE_COLUMNS),
    Column("ranks", "text", Audience.PEOPLE, attrgetter("ranks")),
)
DISRUPTIONS = TableDeclaration(
    "disruption",
    "a transition to the next attempt that does not follow a clean end; amounts are not cut to the window",
    (*_OF_DISRUPTION, *_BEHIND),
    people=(*_PEOPLE, *_TIMES, "queued", "ranks"),
    first=("number", "attempt", "ended", "wasted", "downtime", "queued"),
)
_PRICES = (
    Column(
        "accelerator_hours", "number", values=lambda part: part.priced(Price.hours),
        people_values=lambda part: part.priced(Price.hours, 2),
        words="lost_seconds x accelerators, in hours; null without --accelerators", nullable=True,
        title="accelerator h",
    ),
    Column(
        "cost", "number", values=lambda part: part.priced(Price.money),
        people_values=lambda part: part.priced(Price.money, 2),
        words="accelerator_hours x price; null without --price-per-hour", nullable=True, title="cost",
    ),
)  # fmt: skip
PRICED_DISRUPTIONS = replace(
    DISRUPTIONS,
    name="priced_disruption",
    words="a disruption and its cost",
    columns=(*_OF_DISRUPTION, *_PRICES, *_BEHIND),
    people=(*_PEOPLE, "accelerator h", "cost", *_TIMES, "queued", "ranks"),
)
"""The table of `goodput disruptions`, with the cost of each."""
_COLUMNS = tuple(one.name for one in fields(Disruption) if one.name not in ("evidence", "chain"))
_EVIDENCE = tuple(one.name for one in fields(Evidence))
_AT_ONCE = 1024
