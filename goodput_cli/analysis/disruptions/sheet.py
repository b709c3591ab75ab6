"""Disruptions as a `Sheet` and as an answer: one row for each, or for each cause or attempt, with evidence below each
row, and totals below the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from signal import Signals
from typing import Annotated, Literal, get_args

from goodput_cli.accounting.attempts.failure_cause import FailureCause
from goodput_cli.analysis.analysis_data import MeasuredWindow, NamedJob, measured_window, named_job
from goodput_cli.analysis.capabilities import CAPABILITIES
from goodput_cli.analysis.disruptions.costs import ATTEMPTS, costs_of, costs_of_attempts
from goodput_cli.analysis.disruptions.rows import AT_LEAST, PRICED_DISRUPTIONS, Disruption, Disruptions
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.goodput.phrases import (
    at_the_end,
    evidence_text,
    goodput_text,
    last_cause,
    location_text,
    window_text,
)
from goodput_cli.analysis.json_fields import Json, written
from goodput_cli.analysis.question import Price
from goodput_cli.analysis.recovery.columns import unplanned_chains
from goodput_cli.analysis.recovery.links import BY_LINK, by_link_sheet, link_totals
from goodput_cli.analysis.recovery.points import standby_ns
from goodput_cli.analysis.results import Reliability, recovery_words
from goodput_cli.analysis.sheet import Audience, Column, Sheet
from goodput_cli.analysis.table import FilledTable, TableDeclaration, attribute, each
from goodput_cli.events.evidence import FailureEvidence
from goodput_cli.vocabulary.categories import (
    ENDED,
    ENDED_MEANINGS,
    KILLED,
    UNKNOWN_CAUSE,
    CauseGroup,
    cause_text,
    ended_words,
    group_of,
)
from goodput_cli.vocabulary.text import duration, duration_of_seconds, exact, number, percent, period, plural

By = Literal["cause", "group", "host"]
BY: tuple[By, ...] = get_args(By)
UNKNOWN_HOST = "unknown host"
_MOST_RANKS = 5


@written("by_cause")
@dataclass(frozen=True)
class CauseStatistics:
    """Disruptions of one cause."""

    code: str
    """the cause; unknown: not logged"""
    group: str
    """of the cause"""
    count: int
    """disruptions"""
    ns: Annotated[int, Json("seconds and ns")]
    """time lost in total"""


@dataclass(frozen=True)
class DisruptionGroup:
    """A table row for several disruptions."""

    name: str
    group: CauseGroup
    count: int
    lost_ns: int
    of_ns: int
    """Time lost by all disruptions (ns)."""
    why: tuple[FailureCause, ...]

    @property
    def first_at(self) -> str | None:
        """Return their most frequent first host, otherwise the first ranks."""
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
    by: TableDeclaration(
        f"by_{by}",
        "some of the disruptions",
        (
            Column(by, "text", Audience.TABLES, each(lambda one: None if one.name == UNKNOWN_HOST else one.name)),
            Column(by, "text", Audience.PEOPLE, attribute("name"), title="why" if by != "host" else "host"),
            *_COLUMNS,
        ),
    )
    for by in BY
}


def lines(rows: Disruptions, by: By) -> list[DisruptionGroup]:
    """Return the disruptions that count, added up: the most costly first, unknown causes and hosts last."""
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
    """Return a table of groups instead of the list."""
    found = lines(analysis.disruptions, by)
    columns = TABLES[by].sheet_columns()
    total = sum(one.count for one in found)
    known = sum(why.is_explained for one in found for why in one.why)
    lost = sum(one.lost_ns for one in found)
    shown = [*found, DisruptionGroup("total", "unknown", total, lost, lost, ())] if len(found) > 1 else found
    return Sheet(
        title=f"Disruptions of {analysis.job.name} by {by}: {total}, {known} with a known cause",
        columns=columns,
        rows=TABLES[by].of_rows(found).cells(columns),
        grouped_rows=tuple(TABLES[by].of_rows(shown).cells(columns)),
        answer=lambda: disruptions_answer(analysis, None),
        notes=tuple(_notes(found)),
    )


def _notes(found: Sequence[DisruptionGroup]) -> Iterator[str]:
    yield "lost time: wasted training, downtime, and the start-up after it"
    if any(why.code == KILLED for one in found for why in one.why):
        yield f"{KILLED}: a signal ended the process; the log does not report who sent it"
    likely = sum(why.certainty == "likely" for one in found for why in one.why)
    if likely:
        causes = "cause is" if likely == 1 else "causes are"
        yield f"{likely} {causes} likely but not confirmed; `goodput disruptions` shows which"


def attempts_sheet(analysis: Analysis) -> Sheet:
    """Return the cost of each attempt, and their total."""
    table = costs_of_attempts(costs_of(analysis))
    (columns,) = table.parts()
    people = [one for one in ATTEMPTS.columns if one.audience & Audience.PEOPLE]
    empty = {one.heading for one in people if one.kind == "duration" and not one.values(columns).any()}  # type: ignore[misc]
    shown = ATTEMPTS.sheet_columns(without=empty)
    return Sheet(
        title=f"Cost of each attempt of {analysis.job.name}",
        summary=(window_text(analysis),),
        columns=shown,
        rows=table.cells(shown),
        notes=(
            "each row covers the time from one start to the next; the columns after time add up to it",
            "wasted: training of this attempt that was lost, whichever disruption lost it",
        ),
        answer=lambda: disruptions_answer(analysis, None),
    )


def links_sheet(analysis: Analysis) -> Sheet:
    """Return the loss by recovery phase, over the disruptions that count."""
    chains = list(unplanned_chains(analysis.disruptions.chains))
    return by_link_sheet(analysis, chains, lambda: disruptions_answer(analysis, None))


MORE_PHASES = "Use --full for the phases of each outage, --by link for totals per phase."
_SHOWN_EVIDENCE = {
    "last_step": "last step",
    "last_sign_of_life": "last activity",
    "next_start": "next start",
    "resumed_step": "resumed",
    "regained": "regained",
}
_MOST_EVIDENCE = 10


def disruptions_sheet(analysis: Analysis, price: Price | None, *, full: bool = False) -> Sheet:
    """Return the disruptions of the window, with their cost if the price is known. full: with each recovery phase
    below."""
    rows = analysis.disruptions
    columns = tuple(
        replace(one, spare=price is not None and one.heading == "ended")  # There is not enough space for all of them.
        for one in PRICED_DISRUPTIONS.sheet_columns(without=_hidden(rows, price))
    )
    shown = {one.heading for one in columns if one.audience & Audience.PEOPLE}
    has_causes = any(one.certainty for one in rows.why)
    return Sheet(
        title=f"Disruptions of {analysis.job.name}",
        summary=(window_text(analysis),),
        columns=columns,
        rows=rows.as_priced_table(price).cells(columns),
        details=tuple(
            tuple(_details(analysis, row, why if has_causes else None))
            for row, why in zip(rows[:_MOST_EVIDENCE], rows.why, strict=False)
        ),
        notes=(
            *_statistics(analysis, price),
            *_notes_sheet(analysis, rows, shown),
            *([] if full or not len(rows.unplanned) else [MORE_PHASES]),
        ),
        sections=tuple(sheet for one in CAPABILITIES for sheet in one.disruption_sections(analysis)) if full else (),
        answer=lambda: disruptions_answer(analysis, price),
    )


def _hidden(rows: Disruptions, price: Price | None) -> set[str]:
    """Return the headings of columns that are empty for people, or for which there is not enough space."""
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


def _statistics(analysis: Analysis, price: Price | None) -> Iterator[str]:
    """Yield the totals of the disruptions."""
    rows, reliability = analysis.disruptions, analysis.reliability
    assert reliability is not None
    low, high = reliability.mtbf_ci95_seconds
    planned = len(rows) - len(rows.unplanned)
    beside = _uncounted(rows) if planned else ""
    failures = reliability.failures or 0
    more = failures > reliability.disruptions
    failed = f" ({plural(failures, 'failure')}, including the end of the last attempt)" if more else ""
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
    idle = (
        f", longest period without progress {duration(longest[1] - longest[0])} ({period(*longest)})" if longest else ""
    )
    terms = [_MTBF] if reliability.mtbf_seconds is not None or low is not None else []
    ettr = goodput_text(analysis) if reliability.ettr is None else percent(100 * reliability.ettr)
    yield f"ETTR {ettr}{idle}"
    has_mttr = reliability.recoveries is not None and reliability.recoveries.recovered
    yield "; ".join([*terms, *([_MTTR] if has_mttr else []), _ETTR])
    if price is not None:
        lost = int(rows.column("lost_ns").sum())
        words = f"cost: {duration(lost)} x {exact(price.accelerators)} accelerators = {number(price.hours(lost))} h"
        per_hour = price.per_hour
        yield words if per_hour is None else f"{words} x {exact(per_hour)} = {price.hours(lost) * per_hour:,.2f}"


_MTBF = "MTBF: mean up time between failures"
_MTTR = "MTTR: mean time to recover, from a failure until training resumed"
_ETTR = "ETTR: effective training time ratio, the share of time that became progress"


def _uncounted(rows: Disruptions) -> str:
    """Return ` and 1 planned scale-up, 2 rollbacks`."""
    count = Counter(ENDED[code] for code in rows.column("ended").tolist())
    parts = [plural(count[how], words) for how, words in _UNCOUNTED_WORDS.items() if count[how]]
    return f" and {', '.join(parts)}"


_UNCOUNTED_WORDS = {"scale_up": "planned scale-up", "rolled_back": "rollback"}


def _notes_sheet(analysis: Analysis, rows: Disruptions, shown: set[str]) -> Iterator[str]:
    """Yield the legend of the shown columns, and notes about all rows."""
    if rows:
        ends = sorted({ENDED[code] for code in rows.column("ended").tolist()})
        yield "ended: " + "; ".join(f"{ended_words(one)} = {ENDED_MEANINGS[one]}" for one in ends)
        yield "steps lost: steps that were trained again after the restart" + (
            "; >=: at least, because the last log lines may be missing"
            if (rows.column("steps_lost_is") == AT_LEAST).any()
            else ""
        )
        yield "wasted: the time of the lost steps and of the step in progress"
        yield "downtime: from the last training until the next attempt is up" + (
            "; may include training, because the time of the failure between the last checkpoint and the next start is "
            "not logged (died_between in JSON)"
            if rows.column("undetermined_ns").any()
            else ""
        )
    if "regained" in shown:
        shorter = ", so it may be shorter than recover" if "recover" in shown else ""
        yield (
            "regained: from the last log activity until training caught up with the step before the disruption"
            + shorter
        )
    yield from (note for one in CAPABILITIES for note in one.disruption_notes(analysis))
    if (end := end_note(analysis)) is not None:
        yield end
    unplanned = [one for one in rows.why if not one.planned]
    if unplanned and analysis.table.observed.read and not any(one.certainty for one in rows.why):
        yield no_cause_words(unplanned)
    if len(rows) > _MOST_EVIDENCE:
        yield f"the log lines of the other {len(rows) - _MOST_EVIDENCE} disruptions are in the JSON and CSV output"
    if rows and (words := evidence_text(analysis.table.files)) is not None:
        yield words


def _details(analysis: Analysis, row: Disruption, why: FailureCause | None) -> Iterator[str]:
    """Yield the evidence of a disruption: its cause and the lines that bound it. why: None if no cause is known of any
    disruption."""
    if row.ended == "rolled_back":
        yield "steps were rolled back; the process kept running"
    elif why is not None:
        yield cause_text_of(why)
    yield f"attempt {row.attempt}{_steps(row)}; {_evidence(row, analysis.table.files)}"


def no_cause_words(every: Sequence[FailureCause]) -> str:
    """Return where to look if no log line states a cause: the first rank that failed, or a rank that others lost."""
    why = every[0] if len(every) == 1 else FailureCause()
    if why.evidence is not None and why.rank is not None:
        at = f" on {why.host}" if why.host else ""
        return f"cause not logged; rank {why.rank}{at} failed first, so add its output"
    lost = sorted({rank for one in why.echoes for rank in one.ranks})
    words = "cause not logged"
    if lost:
        words += f"; {_ranks(lost)} {'reports' if len(lost) == 1 else 'report'} a lost peer"
    look = why.suspects or why.silent_ranks
    if look:
        return f"{words}; check {_ranks(look)}"
    return f"{words}; add the output of all ranks, and the scheduler or kernel log (docs/causes.md)"


def _ranks(ranks: Sequence[int]) -> str:
    shown = [str(rank) for rank in ranks[:_MOST_RANKS]]
    if len(ranks) > len(shown):
        return f"{len(ranks)} ranks"
    return f"rank{'s' * (len(ranks) > 1)} {' and '.join(filter(None, (', '.join(shown[:-1]), shown[-1])))}"


_MOST_RANKS = 8


def cause_text_of(why: FailureCause) -> str:
    """Return why an attempt failed, with the line that states it: `rank 3, node-01, device_oom: ... (train.log:81)`."""
    if why.planned:
        return "planned"
    if why.certainty is None:
        return no_cause_words([why])
    return cause_words(why).removeprefix(", ")


def end_note(analysis: Analysis) -> str | None:
    """Return how the job ended and why, with the line that states it; None if it is not logged."""
    last = last_cause(analysis)
    return None if last is None else f"{at_the_end(analysis)}{cause_words(last)}"


def cause_words(why: FailureCause) -> str:
    """Return where and why an attempt failed, with the line that states it: `, rank 3, node-01, device_oom: ...`."""
    parts = [
        "" if why.rank is None else f"rank {why.rank}",
        why.host,
        "" if not why.device else why.device if ":" in why.device else f"GPU {why.device}",
    ]
    location = "".join(f", {one}" for one in parts if one)
    words = f": {_killed_by(why)}" if why.code == KILLED else f": `{why.text}`" if why.text else ""
    where = f" ({why.where})" if why.where else ""
    note = f", {NOTES[why.evidence.row]}" if why.evidence is not None and why.evidence.row in NOTES else ""
    doubt = f"; not confirmed: {why.doubt}" if why.certainty == "likely" and why.doubt else ""
    also = "".join(f"; also: {_other_evidence_text(one)}" for one in why.also_seen)
    return f"{location}, {cause_text(why.code, why.certainty)}{note}{words}{where}{doubt}{also}{_waits(why)}"


def _killed_by(why: FailureCause) -> str:
    """Return which signal killed a process: `pid 4750 received SIGKILL; the log does not show the sender`."""
    code = None if why.evidence is None else why.evidence.exit
    number = 0 if code is None else code - 128 if code > 128 else abs(code)
    unplaced = why.rank is None and why.evidence is not None and why.evidence.pid is not None
    process = f"pid {why.evidence.pid} " if why.evidence is not None and unplaced else ""
    return f"{process}received {signal_name(number) if number else 'a signal'}; the log does not show the sender"


def signal_name(number: int) -> str:
    """Return `SIGKILL` for 9; `signal 99` for a number without a name."""
    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"


NOTES = {
    "terminal": "the terminal was closed",
    "size mismatch": "the checkpoint has another configuration",
    "other ranks than saved": "the checkpoint has another configuration",
    "clock of a host": "the clock of the host is wrong",
}
"""Notes about causes, by the row of evidence."""


def _other_evidence_text(one: FailureEvidence) -> str:
    """Return other evidence: `rank 2, host not logged, train.log:81: ValueError: wrong shape`."""
    rank = "rank not logged" if one.rank is None else f"rank {one.rank}"
    host = f"host {one.host}" if one.host else "host not logged"
    return f"{rank}, {host}, {one.where}: {f'`{one.text}`, ' if one.text else ''}{one.code}"


def _waits(why: FailureCause) -> str:
    waited = max((len(one.ranks) for one in why.echoes if one.code == "collective_timeout"), default=0)
    timed_out = waited and why.code != "collective_timeout"
    text = f"; {plural(waited, 'rank')} timed out while waiting" if timed_out else ""
    if why.silent_ranks:
        text += f"; no output from {_ranks(why.silent_ranks)}"
    if why.suspects and why.rank is None:
        text += f"; other ranks waited for {_ranks(why.suspects)}"
    return text


def _steps(row: Disruption) -> str:
    if row.last_step is None:
        return ", no step"
    resumed = "" if row.resumed_step is None else f", resumed at step {row.resumed_step}"
    return f", last step {row.last_step}{resumed}"


def _evidence(row: Disruption, sources: Sequence[str]) -> str:
    """Return the lines that bound a disruption, without the file if it is the same for all."""
    shown = []
    for name, words in _SHOWN_EVIDENCE.items():
        place = getattr(row.evidence, name)
        if place is not None:
            shown.append(f"{words} {location_text(place, sources)}")
    return f"{'lines' if len(sources) == 1 else 'evidence'}: {', '.join(shown)}"


@written("disruption_cost", "of all of them; null without --accelerators")
@dataclass(frozen=True)
class DisruptionCost:
    """Cost of all disruptions."""

    accelerators: float
    """allocated to the job"""
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
    """Disruptions of the window with their totals."""

    job: NamedJob
    window: MeasuredWindow
    disruptions: Annotated[FilledTable, PRICED_DISRUPTIONS]
    by_cause: tuple[CauseStatistics, ...]
    """the same by cause: the most costly first, unknown causes last"""
    attempts: Annotated[FilledTable, ATTEMPTS]
    reliability: Reliability | None
    cost: DisruptionCost | None
    by_link: Annotated[FilledTable | None, BY_LINK, Json(optional=True)] = None
    """recovery phases of the disruptions that count; the row `total` is the time that they lost"""
    standby_ns: Annotated[int | None, Json("seconds", key="standby_node_seconds", optional=True)] = None
    """node time of standby nodes in the whole job; left out if not logged"""


def disruptions_answer(analysis: Analysis, price: Price | None) -> DisruptionsAnswer:
    """Return the disruptions of the window, with their cost if the price is known."""
    rows = analysis.disruptions
    return DisruptionsAnswer(
        job=named_job(analysis),
        window=measured_window(analysis),
        disruptions=rows.as_priced_table(price),
        by_cause=tuple(CauseStatistics(one.name, one.group, one.count, one.lost_ns) for one in lines(rows, "cause")),
        attempts=costs_of_attempts(costs_of(analysis)),
        reliability=analysis.reliability,
        cost=None if price is None else _cost(rows, price),
        standby_ns=standby_ns(analysis.timeline),
        by_link=BY_LINK.of_rows(link_totals(chains)) if (chains := list(unplanned_chains(rows.chains))) else None,
    )


def _cost(rows: Disruptions, price: Price) -> DisruptionCost:
    lost = int(rows.column("lost_ns").sum())
    return DisruptionCost(price.accelerators, price.per_hour, lost, price.hours(lost), price.money(lost))
