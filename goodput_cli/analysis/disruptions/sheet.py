"""Disruptions as a `Sheet` and as an answer: a row each, or a row a cause or an attempt; totals above, the lines behind
it below."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, get_args

from goodput_cli.accounting.attempts.failure_cause import FailureCause
from goodput_cli.analysis.answers import MeasuredWindow, NamedJob, measured_window, named_job
from goodput_cli.analysis.disruptions.costs import ATTEMPTS, costs_of, costs_of_attempts
from goodput_cli.analysis.disruptions.links import BY_LINK, by_link_sheet, chain_sheets, link_totals, recovery_notes
from goodput_cli.analysis.disruptions.nodes import standby_ns
from goodput_cli.analysis.disruptions.recovery import unplanned_chains
from goodput_cli.analysis.disruptions.rows import AT_LEAST, PRICED_DISRUPTIONS, Disruption, Disruptions
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.goodput.phrases import (
    at_the_end,
    evidence_text,
    goodput_text,
    last_cause,
    place_text,
    window_text,
)
from goodput_cli.analysis.json_fields import Json, written
from goodput_cli.analysis.question import Price
from goodput_cli.analysis.recoveries import recovery_words
from goodput_cli.analysis.results import Reliability
from goodput_cli.analysis.sheet import Audience, Column, Sheet
from goodput_cli.analysis.table import FilledTable, Table, attribute, each
from goodput_cli.events.evidence import FailureEvidence
from goodput_cli.vocabulary.categories import ENDED
from goodput_cli.vocabulary.causes import KILLED, UNKNOWN_CAUSE, CauseGroup, group_of
from goodput_cli.vocabulary.text import duration, duration_of_seconds, exact, number, percent, period, plural

By = Literal["cause", "group", "host"]
BY: tuple[By, ...] = get_args(By)
UNKNOWN_HOST = "unknown host"
_MOST_RANKS = 5


@written("by_cause")
@dataclass(frozen=True)
class ByCause:
    """Disruptions of one cause."""

    code: str
    """the cause; unknown: nobody says"""
    group: str
    """of the cause"""
    count: int
    """disruptions"""
    ns: Annotated[int, Json("seconds and ns")]
    """what they lost together"""


@dataclass(frozen=True)
class DisruptionGroup:
    """A line of the table: some disruptions."""

    name: str
    group: CauseGroup
    count: int
    lost_ns: int
    of_ns: int
    """What all lost."""
    why: tuple[FailureCause, ...]

    @property
    def first_at(self) -> str | None:
        """Where they were first: the host of most, else the ranks."""
        hosts = Counter(one.host for one in self.why if one.host)
        if hosts:
            host, count = max(hosts.items(), key=lambda pair: (pair[1], pair[0]))
            return f"{host} ({count} of {self.count})"
        ranks = [one.rank for one in self.why if one.rank is not None]
        more = ", …" if len(ranks) > _MOST_RANKS else ""
        return f"rank {', '.join(map(str, ranks[:_MOST_RANKS]))}{more}" if ranks else None


_COLUMNS = (
    Column("count", "count", values=attribute("count"), title="how many"),
    Column("lost", "duration", Audience.TABLES, attribute("lost_ns")),
    Column("lost time", "text", Audience.PEOPLE, each(lambda one: duration(one.lost_ns))),
    Column("share", "text", Audience.PEOPLE, each(lambda one: percent(100 * one.lost_ns / (one.of_ns or 1)))),
    Column("first_at", "text", values=attribute("first_at"), title="first at"),
)
TABLES = {
    by: Table(
        f"by_{by}",
        "some of the disruptions",
        (Column(by, "text", values=attribute("name"), title="why" if by != "host" else "host"), *_COLUMNS),
    )
    for by in BY
}


def lines(rows: Disruptions, by: By) -> list[DisruptionGroup]:
    """The disruptions that count, added up: what lost most comes first, and what nobody knows last."""
    unplanned = rows.unplanned
    lost: list[int] = unplanned.column("lost_ns").tolist()
    groups: dict[str, list[tuple[FailureCause, int]]] = {UNKNOWN_CAUSE: []} if by == "cause" else {}
    for why, ns in zip(unplanned.why, lost, strict=True):
        name = {"host": why.host or UNKNOWN_HOST, "cause": why.code, "group": why.group}[by]
        groups.setdefault(name, []).append((why, ns))
    found = [
        DisruptionGroup(
            name,
            group_of(name) if by == "cause" else some[0][0].group,
            len(some),
            sum(ns for _, ns in some),
            sum(lost),
            tuple(why for why, _ in some),
        )
        for name, some in groups.items()
    ]
    return sorted(found, key=lambda one: (one.name in (UNKNOWN_CAUSE, UNKNOWN_HOST), -one.lost_ns, one.name))


def by_sheet(analysis: Analysis, by: By) -> Sheet:
    """One table in the place of the list."""
    found = lines(analysis.disruptions, by)
    columns = TABLES[by].sheet_columns()
    total = sum(one.count for one in found)
    known = sum(why.known for one in found for why in one.why)
    lost = sum(one.lost_ns for one in found)
    shown = [*found, DisruptionGroup("total", "unknown", total, lost, lost, ())] if len(found) > 1 else found
    return Sheet(
        title=f"Disruptions of {analysis.job.name} by {by}: {total}; a line says why for {known}",
        columns=columns,
        rows=TABLES[by].of_rows(found).cells(columns),
        grouped_rows=tuple(TABLES[by].of_rows(shown).cells(columns)),
        answer=lambda: disruptions_answer(analysis, None),
        notes=tuple(_notes(found)),
    )


def _notes(found: Sequence[DisruptionGroup]) -> Iterator[str]:
    yield "lost time: wasted training, the downtime, and the start-up after it"
    if any(why.code == KILLED for one in found for why in one.why):
        yield f"{KILLED}: how it ended, and not why: no line says who sent the signal"
    likely = sum(why.certainty == "likely" for one in found for why in one.why)
    if likely:
        are = "cause is" if likely == 1 else "causes are"
        yield f"{likely} {are} only likely; `goodput disruptions` shows which"


def attempts_sheet(analysis: Analysis) -> Sheet:
    """What each attempt cost, and what all of them did."""
    table = costs_of_attempts(costs_of(analysis))
    (columns,) = table.parts()
    people = [one for one in ATTEMPTS.columns if one.audience & Audience.PEOPLE]
    empty = {one.heading for one in people if one.kind == "duration" and not one.values(columns).any()}  # type: ignore[misc]
    shown = ATTEMPTS.sheet_columns(without=empty)
    return Sheet(
        title=f"What each attempt of {analysis.job.name} cost",
        summary=(window_text(analysis),),
        columns=shown,
        rows=table.cells(shown),
        notes=(
            "a row goes from when an attempt was up until the next one was; the columns behind time add up to it",
            "wasted: training in it that was taken back, whichever end did that",
        ),
        answer=lambda: disruptions_answer(analysis, None),
    )


def links_sheet(analysis: Analysis) -> Sheet:
    """What each link lost, over the disruptions that count."""
    chains = list(unplanned_chains(analysis.disruptions.chains))
    return by_link_sheet(analysis, chains, lambda: disruptions_answer(analysis, None))


_MORE = "--full shows where each outage went, --by link what each link of them lost"
_SHOWN_EVIDENCE = {
    "last_step": "last step",
    "last_sign_of_life": "last sign of life",
    "next_start": "next start",
    "resumed_step": "resumed",
    "regained": "regained",
}
_MOST_EVIDENCE = 10


def disruptions_sheet(analysis: Analysis, price: Price | None, *, full: bool = False) -> Sheet:
    """The disruptions of the window, and what they cost where the price is known. full: each link by link below."""
    rows = analysis.disruptions
    columns = tuple(
        replace(one, spare=price is not None and one.heading == "ended")  # there is no room for all of them
        for one in PRICED_DISRUPTIONS.sheet_columns(without=_hidden(rows, price))
    )
    return Sheet(
        title=f"Disruptions of {analysis.job.name}",
        summary=tuple(_summary(analysis, price)),
        columns=columns,
        rows=rows.as_priced_table(price).cells(columns),
        notes=(*_notes_sheet(analysis, rows), *([] if full or not len(rows.unplanned) else [_MORE])),
        sections=tuple(chain_sheets(analysis)) if full else (),
        answer=lambda: disruptions_answer(analysis, price),
    )


def _hidden(rows: Disruptions, price: Price | None) -> set[str]:
    """Headings of columns in which people would see nothing, or for which there is no room."""
    hidden = {"accelerator h", "cost"} if price is None else set()
    if price is None or price.per_hour is None:
        hidden.add("cost")
    if not any(one.certainty for one in rows.why):
        hidden.add("why")
    if not rows.column("queued_ns").any():
        hidden.add("queued")
    for heading, time in (("detect", "detect_ns"), ("recover", "recover_ns")):
        if all(one is None or getattr(one, time) is None for one in rows.chains):
            hidden.add(heading)
    if not (len(rows.column("ranks_before")) or len(rows.column("ranks_after"))):
        hidden.add("ranks")
    return hidden


def _summary(analysis: Analysis, price: Price | None) -> Iterator[str]:
    rows, reliability = analysis.disruptions, analysis.reliability
    yield window_text(analysis)
    assert reliability is not None
    low, high = reliability.mtbf_ci95_seconds
    planned = len(rows) - len(rows.unplanned)
    beside = _uncounted(rows) if planned else ""
    failures = reliability.failures or 0
    more = failures > reliability.disruptions
    failed = f", {plural(failures, 'failure')} with the end of the last attempt," if more else ""
    counted = f"{plural(len(rows) - planned, 'disruption')}{beside}{failed}"
    up = f"{counted} in {duration(reliability.exposure_ns)} of up time"
    if reliability.mtbf_seconds is None:
        yield up + ("" if low is None else f": MTBF at least {duration_of_seconds(low)} (95 %)")
    else:
        known = None if low is None or high is None else f"{duration_of_seconds(low)} to {duration_of_seconds(high)}"
        yield f"{up}: MTBF {duration_of_seconds(reliability.mtbf_seconds)} (95 %: {known or 'unknown'})"
    down, regain = reliability.mean_downtime_seconds, reliability.mean_time_to_regain_seconds
    means = (("mean downtime", down), ("mean time to regain progress", regain))
    if shown := [f"{name} {duration_of_seconds(seconds)}" for name, seconds in means if seconds is not None]:
        yield ", ".join(shown)
    if reliability.recoveries is not None and (words := recovery_words(reliability.recoveries)):
        yield words
    longest = reliability.longest_unproductive
    idle = f", longest unproductive stretch {duration(longest[1] - longest[0])} ({period(*longest)})" if longest else ""
    ettr = goodput_text(analysis) if reliability.ettr is None else percent(100 * reliability.ettr)
    yield f"ETTR {ettr}{idle}"
    if price is not None:
        lost = int(rows.column("lost_ns").sum())
        words = f"cost: {duration(lost)} x {exact(price.accelerators)} accelerators = {number(price.hours(lost))} h"
        per_hour = price.per_hour
        yield words if per_hour is None else f"{words} x {exact(per_hour)} = {price.hours(lost) * per_hour:,.2f}"


def _uncounted(rows: Disruptions) -> str:
    """` and 1 planned scale-up, 2 rollbacks`"""
    count = Counter(ENDED[code] for code in rows.column("ended").tolist())
    parts = [plural(count[how], words) for how, words in _UNCOUNTED_WORDS.items() if count[how]]
    return f" and {', '.join(parts)}"


_UNCOUNTED_WORDS = {"scale_up": "planned scale-up", "rolled_back": "rollback"}


def _notes_sheet(analysis: Analysis, rows: Disruptions) -> Iterator[str]:
    if rows:
        yield "steps lost: those that had to be trained again; wasted: the time of these and of the step in flight"
        if (rows.column("steps_lost_is") == AT_LEAST).any():
            yield ">=: at least so many, because the last lines of a silent death may be missing"
        yield "regained: from the last sign of life until training was as far as before"
    yield from recovery_notes(analysis)
    if rows.column("undetermined_ns").any():
        yield (
            "downtime holds time that may have been training: these attempts died at an unlogged moment between their "
            "last checkpoint and the next start (died_between in the JSON)"
        )
    if (end := end_note(analysis)) is not None:
        yield end
    sources = analysis.table.sources
    if any(one.certainty for one in rows.why):
        yield from map(_ending_note, rows[:_MOST_EVIDENCE], rows.why)
        yield "why: `?` marks what is only likely; empty where no line says it (docs/causes.md)"
    elif analysis.table.observed.read and not all(one.planned for one in rows.why):
        yield f"why: {no_cause_words(rows.why)}"
    for row in rows[:_MOST_EVIDENCE]:
        yield f"no. {row.number}, attempt {row.attempt}{_steps(row)}; {_evidence(row, sources)}"
    if len(rows) > _MOST_EVIDENCE:
        yield f"the lines behind the other {len(rows) - _MOST_EVIDENCE} are in JSON and CSV"
    if rows and (words := evidence_text(sources)) is not None:
        yield words


def no_cause_words(every: Sequence[FailureCause]) -> str:
    """Where to look on, where no line says why attempts died: at who fell first, at whom others waited for, at whom
    they lost."""
    why = every[0] if len(every) == 1 else FailureCause()
    if why.evidence is not None and why.rank is not None:
        at = f" on {why.host}" if why.host else ""
        return f"no line names the cause; rank {why.rank}{at} was seen to fail first: add its output"
    lost = sorted({rank for one in why.echoes for rank in one.ranks})
    words = "no line names the cause"
    if lost:
        words += f"; {_ranks(lost)} {'reports' if len(lost) == 1 else 'report'} a lost peer"
    look = why.suspects or why.silent_ranks
    if look:
        return f"{words}; look at {_ranks(look)}"
    return f"{words}; add the output of all ranks, the scheduler's or the kernel's log (docs/causes.md)"


def _ending_note(row: Disruption, why: FailureCause) -> str:
    """How an attempt ended: why it died, unless its process lived on."""
    return f"no. {row.number}: the process lived on" if row.ended == "rolled_back" else cause_note(row.number, why)


def _ranks(ranks: Sequence[int]) -> str:
    shown = [str(rank) for rank in ranks[:_MOST_RANKS]]
    if len(ranks) > len(shown):
        return f"{len(ranks)} ranks"
    return f"rank{'s' * (len(ranks) > 1)} {' and '.join(filter(None, (', '.join(shown[:-1]), shown[-1])))}"


_MOST_RANKS = 8


def cause_note(number: int, why: FailureCause) -> str:
    """Why the attempt before a disruption died, with the line that says so."""
    if why.planned:
        return f"no. {number}: planned"
    if why.certainty is None:
        return f"no. {number}: {no_cause_words([why])}"
    return f"no. {number}{cause_words(why)}"


def end_note(analysis: Analysis) -> str | None:
    """How the job ended and why, with the line that says so; None where no line says it."""
    last = last_cause(analysis)
    return None if last is None else f"{at_the_end(analysis)}{cause_words(last)}"


def cause_words(why: FailureCause) -> str:
    """`, rank 3, node-01, device_oom: ...`: where and why an attempt died, and the line that says so."""
    places = [
        "" if why.rank is None else f"rank {why.rank}",
        why.host,
        "" if not why.device else why.device if ":" in why.device else f"GPU {why.device}",
    ]
    place = "".join(f", {one}" for one in places if one)
    words = f": {_ended_by(why)}" if why.code == KILLED else f": `{why.text}`" if why.text else ""
    where = f" ({why.where})" if why.where else ""
    note = f", {NOTES[why.evidence.row]}" if why.evidence is not None and why.evidence.row in NOTES else ""
    likely = f"; likely{': ' * bool(why.doubt)}{why.doubt}" if why.certainty == "likely" else ""
    also = "".join(f"; also: {_seen(one)}" for one in why.also_seen)
    return f"{place}, {why.code}{note}{words}{where}{likely}{also}{_waits(why)}"


def _ended_by(why: FailureCause) -> str:
    """How a process ended of which nobody says why."""
    code = None if why.evidence is None else why.evidence.exit
    signal = "a signal" if code is None else f"signal {code - 128 if code > 128 else abs(code)}"
    unplaced = why.rank is None and why.evidence is not None and why.evidence.pid is not None
    process = f"pid {why.evidence.pid} " if why.evidence is not None and unplaced else ""
    return f"{process}ended by {signal}: how, not why; no line says by whom"


NOTES = {
    "terminal": "the terminal is gone",
    "size mismatch": "another configuration",
    "other ranks than saved": "another configuration",
    "clock of a host": "the clock of the host is wrong",
}
"""What rows say beyond their cause."""


def _seen(one: FailureEvidence) -> str:
    """What else was seen: `rank 2, host not logged, train.log:81: ValueError: wrong shape`."""
    rank = "rank not logged" if one.rank is None else f"rank {one.rank}"
    host = f"host {one.host}" if one.host else "host not logged"
    return f"{rank}, {host}, {one.where}: {f'`{one.text}`, ' if one.text else ''}{one.code}"


def _waits(why: FailureCause) -> str:
    waited = max((len(one.ranks) for one in why.echoes if one.code == "collective_timeout"), default=0)
    text = f"; {plural(waited, 'rank')} waited in vain" if waited and why.code != "collective_timeout" else ""
    if why.silent_ranks:
        text += f"; no line is from rank {', '.join(map(str, why.silent_ranks))}"
    if why.suspects and why.rank is None:
        text += f"; waited for rank {', '.join(map(str, why.suspects))}"
    return text


def _steps(row: Disruption) -> str:
    if row.last_step is None:
        return ", no step"
    resumed = "" if row.resumed_step is None else f", resumed at {row.resumed_step}"
    return f", last step {row.last_step}{resumed}"


def _evidence(row: Disruption, sources: Sequence[str]) -> str:
    """The lines behind a disruption; without the file where it is the same everywhere."""
    shown = []
    for name, words in _SHOWN_EVIDENCE.items():
        place = getattr(row.evidence, name)
        if place is not None:
            shown.append(f"{words} {place_text(place, sources)}")
    return f"{'lines' if len(sources) == 1 else 'evidence'}: {', '.join(shown)}"


@written("disruption_cost", "of all of them; null without --accelerators")
@dataclass(frozen=True)
class DisruptionCost:
    """What all disruptions cost."""

    accelerators: float
    """held by the job"""
    price_per_hour: float | None
    """of one accelerator"""
    lost_ns: Annotated[int, Json("seconds")]
    """of all disruptions"""
    accelerator_hours: float
    """lost"""
    cost: float | None
    """null without --price-per-hour"""


@written(
    "disruptions_answer",
    "goodput disruptions --format json: every disruption of the window and what they add up to",
    kind="disruptions",
)
@dataclass(frozen=True)
class DisruptionsAnswer:
    """Every disruption of the window and what they add up to."""

    job: NamedJob
    window: MeasuredWindow
    disruptions: Annotated[FilledTable, PRICED_DISRUPTIONS]
    by_cause: tuple[ByCause, ...]
    """the same added up: what lost most comes first, what nobody knows last"""
    attempts: Annotated[FilledTable, ATTEMPTS]
    reliability: Reliability | None
    cost: DisruptionCost | None
    by_link: Annotated[FilledTable | None, BY_LINK, Json(optional=True)] = None
    """where the outages that count went, link by link; the row `total` is what they lost"""
    standby_ns: Annotated[int | None, Json("seconds", key="standby_node_seconds", optional=True)] = None
    """time of nodes that stood by in the whole job, of each node; left out where no line says it"""


def disruptions_answer(analysis: Analysis, price: Price | None) -> DisruptionsAnswer:
    """The disruptions of the window, and what they cost where the price is known."""
    rows = analysis.disruptions
    return DisruptionsAnswer(
        job=named_job(analysis),
        window=measured_window(analysis),
        disruptions=rows.as_priced_table(price),
        by_cause=tuple(ByCause(one.name, one.group, one.count, one.lost_ns) for one in lines(rows, "cause")),
        attempts=costs_of_attempts(costs_of(analysis)),
        reliability=analysis.reliability,
        cost=None if price is None else _cost(rows, price),
        standby_ns=standby_ns(analysis.timeline),
        by_link=BY_LINK.of_rows(link_totals(chains)) if (chains := list(unplanned_chains(rows.chains))) else None,
    )


def _cost(rows: Disruptions, price: Price) -> DisruptionCost:
    lost = int(rows.column("lost_ns").sum())
    return DisruptionCost(price.accelerators, price.per_hour, lost, price.hours(lost), price.money(lost))
