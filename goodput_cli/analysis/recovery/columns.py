"""Recoveries (accounting §10, Links): times to detect outages and to recover from them, who restarted the job, and
the columns of disruptions with these facts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, Protocol, get_args

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.disruptions.costs import AttemptCosts
from goodput_cli.analysis.recovery.chain import REDONE, OutagePhase, OutageTimeline, chains_of
from goodput_cli.analysis.results import MARK, RECOVERIES, UNKNOWN_IN_VERSION_1, Recoveries
from goodput_cli.analysis.sheet import Audience, Cell, Column
from goodput_cli.analysis.table import UNKNOWN, DisruptionFacts
from goodput_cli.arrays import I64
from goodput_cli.events.signs import RecoveryPhase
from goodput_cli.vocabulary.text import duration, iso, plural

Most = Literal["exact", "at_most"]
MOSTS: tuple[Most, ...] = get_args(Most)
Chains = Sequence[OutageTimeline | None]
"""Chains of some disruptions; None for a scale-up and for a rollback."""


class RecoveredOutage(Protocol):
    """An outage: a chain, or the part of it that a fleet keeps."""

    @property
    def trained(self) -> bool: ...
    @property
    def detect_ns(self) -> int | None: ...
    @property
    def recover_ns(self) -> int | None: ...
    @property
    def failed_is_known(self) -> bool: ...
    @property
    def recovery(self) -> str | None: ...


def recoveries_of(chains: Sequence[RecoveredOutage]) -> Recoveries:
    """Return the recoveries of the unplanned disruptions of a window."""
    recovered = [one for one in chains if one.trained and one.recover_ns is not None]
    detected = [one for one in chains if one.detect_ns is not None]
    mean, p50, p90 = mean_and_quantiles([one.recover_ns or 0 for one in recovered])
    by = Counter(one.recovery for one in chains)
    return Recoveries(
        mean, p50, p90, any(not one.failed_is_known for one in recovered), len(recovered),
        len(chains) - len(recovered), mean_and_quantiles([one.detect_ns or 0 for one in detected])[0], len(detected),
        any(not one.failed_is_known for one in detected), *(by[name] for name in (*RECOVERIES, None)),
    )  # fmt: skip


def mean_and_quantiles(ns: Sequence[int]) -> tuple[float | None, float | None, float | None]:
    """Return the mean, p50 and p90 (linear between neighbors) of some times, in seconds; None without any."""
    if not ns:
        return None, None, None
    p50, p90 = np.percentile(np.array(ns, dtype=np.int64), [50, 90]).tolist()
    return sum(ns) / len(ns) / 1e9, p50 / 1e9, p90 / 1e9


def shown_time(ns: int | None, *, known: bool) -> str | None:
    """Return a time for people: with `<=` if it is an upper limit."""
    return None if ns is None else ("" if known else MARK) + duration(ns)


def link_rows(chain: OutageTimeline | None) -> list[dict[str, Any]]:
    """Return the links for JSON: redone work first, and points without a log line in their order."""
    if chain is None:
        return []
    rows = [_row(REDONE, "known", {"wasted_seconds": chain.redone_ns / 1e9})] if chain.followed else []
    for link in chain.links:
        rows += [_row(one.words, "not_logged", {}) for one in link.missing]
        rows.append(_known(link))
    if chain.followed and chain.time_of(RecoveryPhase.CAUGHT_UP) is None:
        rows.append(
            _row(
                RecoveryPhase.CAUGHT_UP.words,
                "not_before_next" if not chain.trained or chain.caught_up_later else "never",
                {},
            )
        )
    return rows


def _row(name: str, state: str, values: dict[str, Any]) -> dict[str, Any]:
    return {"link": name, "state": state, **values}


_AMOUNTS = ("wasted", "downtime", "restart", "queued")


def _known(link: OutagePhase) -> dict[str, Any]:
    amounts = {f"{name}_seconds": getattr(link, f"{name}_ns") / 1e9 for name in _AMOUNTS}
    return _row(
        link.point.words, "known",
        {
            "start": iso(link.start_ns), "end": iso(link.end_ns), "seconds": link.ns / 1e9, **amounts,
            "beside_seconds": link.uncategorized_ns / 1e9, "elsewhere_seconds": link.elsewhere_ns / 1e9,
            "at_most": link.at_most, "out_of_order_seconds": link.moved_ns / 1e9, "evidence": link.where,
        },
    )  # fmt: skip


def _number(value: Callable[[OutageTimeline], int | None]) -> Callable[[Any], I64]:
    """Return the values of a column of numbers."""

    def of(part: Any) -> I64:
        found = (None if one is None else value(one) for one in part.chains)
        return np.array([UNKNOWN if one is None else one for one in found], dtype=np.int64)

    return of


def _text(value: Callable[[OutageTimeline], str | None]) -> Callable[[Any], list[str | None]]:
    """Return the values of a column of words."""
    return lambda part: [None if one is None else value(one) for one in part.chains]


def _nodes(name: str) -> Callable[[Any], list[str | None]]:
    """Return nodes, separated by blanks."""
    return _text(lambda one: None if one.nodes is None else " ".join(getattr(one.nodes, name)))


def _people(value: Callable[[OutageTimeline], int | None]) -> Callable[[Any], list[Cell]]:
    return lambda part: [
        None if one is None else shown_time(value(one), known=one.failed_is_known) for one in part.chains
    ]


def _bound(value: Callable[[OutageTimeline], int | None]) -> Callable[[Any], list[str | None]]:
    return _text(lambda one: None if value(one) is None else MOSTS[0] if one.failed_is_known else MOSTS[1])


def _detect(one: OutageTimeline) -> int | None:
    return one.detect_ns


def _recover(one: OutageTimeline) -> int | None:
    return one.recover_ns


def _times(
    name: str, value: Callable[[OutageTimeline], int | None], *, heading: str, words: str
) -> tuple[Column, Column]:
    """Return two columns: a time, and True if it is an upper limit."""
    return (
        Column(
            name, "duration", values=_number(value), people_values=_people(value), words=words, nullable=True, least=0,
            later=True, title=heading,
        ),
        Column(
            f"{name}_is", "text", Audience.PROGRAMS, _bound(value), words="at_most: the failure is not logged, so "
            "the time counts from the last progress; null if that time is", json={"enum": [*MOSTS, None]}, later=True,
        ),
    )  # fmt: skip


CHAIN_COLUMNS = (
    *_times(
        "time_to_detect", _detect, heading="detect", words="from the failure to the line that reports it",
    ),
    *_times(
        "time_to_recover", _recover, heading="recover", words="from the failure until training resumed, queue "
        "included; null if it did not resume before the next disruption",
    ),
    Column(
        "recovery", "text", Audience.PROGRAMS, _text(lambda one: one.recovery), words="who restarted the job; null if "
        "not logged, and for a planned scale-up and a rollback",
        json={"enum": [*RECOVERIES, UNKNOWN_IN_VERSION_1, None]}, later=True,
    ),
    Column(
        "restarts_left", "count", Audience.PROGRAMS, _number(lambda one: one.budget[0] if one.budget else None),
        words="restarts left at the time of this one; null if not logged",
        nullable=True, least=0, later=True,
    ),
    Column(
        "restarts_allowed", "count", Audience.PROGRAMS, _number(lambda one: one.budget[1] if one.budget else None),
        words="allowed restarts; null if not logged", nullable=True, least=0, later=True,
    ),
    *(
        Column(
            f"nodes_{name}", "text", Audience.PROGRAMS,
            _nodes(name),
            words=words, nullable=True, later=True,
        )
        for name, words in (
            ("left", "nodes that no longer trained after it, separated by blanks; null if not logged"),
            ("came", "nodes that trained only after it"),
            ("standby", "standby nodes after it"),
        )
    ),
    Column(
        "redone", "duration", Audience.PROGRAMS, _number(lambda one: one.redone_ns),
        words="the part of wasted before the last progress", nullable=True, least=0, later=True,
    ),
    Column(
        "links", "text", Audience.JSON, lambda part: [link_rows(one) for one in part.chains], words="the recovery "
        "phases of the outage: the amounts add up to those of the disruption (accounting, section 10)",
        json={"type": "array", "items": {"type": "object"}}, later=True,
        json_values=lambda part: [link_rows(one) for one in part.chains],
    ),
)  # fmt: skip
"""Fields of a disruption row about its chain."""


def restarts_words(chain: OutageTimeline) -> str | None:
    """Return `restart 1 of 5` or `2 restarts left`; None if it is not logged."""
    if chain.budget is None:
        return None
    left, of = chain.budget
    return f"{plural(left, 'restart')} left" if of is None else f"restart {of - left + 1} of {of}"


def budget_used(chains: Sequence[OutageTimeline]) -> tuple[int, int] | None:
    """Return how many restarts were used, and of how many, at the last logged one."""
    said = [one.budget for one in chains if one.budget is not None and one.budget[1] is not None]
    if not said:
        return None
    left, of = said[-1]
    assert of is not None
    return min(of - left + 1, of), of


def unplanned_chains(chains: Chains) -> Iterator[OutageTimeline]:
    """Yield the chains of disruptions that count."""
    return (one for one in chains if one is not None and one.number is not None)


def _chains(timeline: Timeline, costs: AttemptCosts, attempts: Sequence[int]) -> Chains:
    chain_of = {one.ended: one for one in chains_of(timeline, costs=costs)}
    return tuple(map(chain_of.get, attempts))


RECOVERY_FACTS = DisruptionFacts(name="recovery", columns=CHAIN_COLUMNS, of=_chains)
