"""The rows of what `goodput fleet` answers, each column declared once: the words, and what its cells are made of.

The attribute, JSON, CSV, Parquet and docs/schema.json follow from a field's declaration; see `analysis/table.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any

from goodput_cli.analysis.json_fields import Json, written
from goodput_cli.analysis.sheet import Audience, Column
from goodput_cli.analysis.table import TableDeclaration, attribute, column, columns_of
from goodput_cli.fleet.results import RunResult
from goodput_cli.fleet.sums import FleetTotals, LabelledCategory, Totals, decimals, hours, percent, ratio
from goodput_cli.vocabulary.categories import Category, brief_name, ended_words
from goodput_cli.vocabulary.text import tenths

_CHIP: dict[str, Any] = {
    "json": {"type": "string", "pattern": "^-?[0-9]+$"}, "audience": Audience.JSON, "key": "chip_ns",
}  # fmt: skip


def percent_of(share: str, words: str, **more: Any) -> Any:
    """A column of percent: a share that sums have."""
    return column("percent", words, of=lambda sums: percent(getattr(sums, share)), **{"name": share, **more})


def hours_of(chip_ns: str, words: str, **more: Any) -> Any:
    """A column of accelerator hours: chip time that sums have."""
    return column("number", words, of=lambda sums: known_hours(sums, getattr(sums, chip_ns)), **more)


def known_hours(sums: FleetTotals, chip_ns: int) -> float | None:
    """Return accelerator hours; None if no run has a known number."""
    return hours(chip_ns) if sums.known_time else None


def used_of(name: str, words: str, **more: Any) -> Any:
    """Declare a column of used or idle accelerators, as far as samples exist."""
    return column("number", f"{words}; null: not recorded", of=lambda sums: number_of(getattr(sums, name)),
                  later=True, **more)  # fmt: skip


def number_of(value: Fraction | None) -> float | None:
    return None if value is None else float(value)


_KWH = "energy (kWh) of accelerators, as far as power samples cover it"
_LOST_KWH = "part of that energy outside training that counts"
_IDLE = "accelerator hours of training with a utilization below 20 %, as far as samples cover it"


def category_name(key: LabelledCategory) -> str:
    """`queued`, or `custom_badput_events:EVAL`."""
    return key[0].id if key[1] is None else f"{key[0].id}:{key[1]}"


def most_lost_to(sums: FleetTotals) -> str | None:
    """The category that took most; None where nothing was lost."""
    worst = sums.worst()
    return None if worst is None else category_name(worst[0])


def _counted(sums: FleetTotals) -> str:
    return str(sums.counted)


def cost_of(sums: FleetTotals) -> str | None:
    """`168908.00 USD`; currencies are never added."""
    amounts = (f"{decimals(amount)} {code}" for code, amount in sorted(sums.money.items()))
    return (", ".join(amounts) or "0.00") if sums.priced_runs else None


@dataclass(frozen=True)
class FleetCategoryRow:
    """Time of the fleet in one category."""

    category: str = column("text", "a category, or custom_badput_events:LABEL", brief=brief_name, heading="category")
    chip_ns: str = column("text", "accelerators x ns, as decimal text", **_CHIP)
    ns: int = column("count", "time of all runs in ns, each run counted once", audience=Audience.JSON)
    accelerator_hours: float | None = column(
        "number", "chip time in hours; null if no run's accelerators are known", heading="accelerator h"
    )
    share_percent: float | None = column(
        "percent", "share of the chip time without exclusions; null: unknown", name="share", heading="share"
    )
    job_hours: float = column("number", "time of all runs in hours", heading="job h")
    time_share_percent: float | None = column(
        "percent", "share of the time of all runs without exclusions", name="time_share", heading="share of job time"
    )
    bar: float | None = column("share", "", audience=Audience.PEOPLE, heading="")


@dataclass(frozen=True)
class GroupRow:
    """A group of runs: a value of one dimension, or of several crossed."""

    group: str = column("text", "the values of the dimensions, with ` / ` between them", heading="group")
    values: list[str] = column(
        "text", "the values of the dimensions", audience=Audience.JSON, json={"type": "array",
        "items": {"type": "string"}},
    )  # fmt: skip
    runs: int = column("count", "runs with time in the window", heading="runs")
    known_runs: int = column("count", "runs whose accelerators are known")
    chip_ns: str = column(
        "text", "chip time without exclusions, accelerators x ns as decimal text", of=_counted, **_CHIP
    )
    accelerator_hours: float | None = hours_of(
        "counted", "chip time without exclusions, in hours; null if unknown", heading="accelerator h"
    )
    goodput_percent: float | None = percent_of(
        "goodput", "productive share of the chip time; null: unknown", heading="goodput"
    )
    time_goodput_percent: float | None = percent_of(
        "time_goodput", "the same, with runs weighed by time only", heading="goodput by job time"
    )
    median_goodput_percent: float | None = column("percent", "median over runs, unweighted", name="median_goodput")
    quartile_low_percent: float | None = column("percent", "first quartile over runs", name="quartile_low")
    quartile_high_percent: float | None = column("percent", "third quartile over runs", name="quartile_high")
    lost_hours: float | None = hours_of("lost", "accelerator hours without progress", heading="lost h")
    held_lost_hours: float | None = hours_of(
        "lost_while_allocated", "lost hours in which accelerators were allocated; only these cost"
    )
    cost: str | None = column(
        "text", "their cost, by currency; null without prices", heading="cost", json={"type": "string"}, of=cost_of
    )
    priced_runs: int = column("count", "runs with a price")
    failures: int = column("count", "disruptions that count as failures", heading="failures")
    scheduling_percent: float | None = column("percent", "scheduling goodput; null without capacity", name="scheduling")
    runtime_percent: float | None = column("percent", "runtime goodput", name="runtime")
    program_percent: float | None = column("percent", "program goodput; null: not recorded", name="program")
    mpg_percent: float | None = column(
        "percent", "ML productivity goodput; null unless all three are known", name="mpg"
    )
    most_lost_to: str | None = column(
        "text", "the category that lost most", brief=brief_name, heading="most lost to", of=most_lost_to
    )
    kwh: float | None = used_of("kwh", _KWH, heading="kWh")
    lost_kwh: float | None = used_of("lost_kwh", _LOST_KWH, heading="kWh lost")
    idle_hours: float | None = used_of("idle_hours", _IDLE, heading="idle h")
    unlogged_hours: float | None = column(
        "number", "allocated accelerator hours without a training log, which are in no other figure; null without a "
        "scheduler table", heading="no log h", of=lambda _: None, later=True,
    )  # fmt: skip


@dataclass(frozen=True)
class WeekRow:
    """A week of the fleet."""

    week: str = column("text", "ISO week, Monday to Sunday in the time zone", heading="week")
    start_ns: int = column("instant", "its start, inside the window")
    end_ns: int = column("instant", "its end, inside the window")
    partial: bool = column(
        "text", "true if only part of it is in the window", audience=Audience.JSON, json={"type": "boolean"}
    )
    covered_percent: float = column("percent", "share of the week that is in the window", name="covered")
    runs: int = column("count", "runs with time in it", heading="runs")
    chip_ns: str = column(
        "text", "chip time without exclusions, accelerators x ns as decimal text", of=_counted, **_CHIP
    )
    accelerator_hours: float | None = hours_of(
        "counted", "chip time without exclusions, in hours; null if unknown", heading="accelerator h"
    )
    goodput_percent: float | None = percent_of("goodput", "as for a group", heading="goodput")
    time_goodput_percent: float | None = percent_of(
        "time_goodput", "the same, with runs weighed by time only", heading="goodput by job time"
    )
    bar: float | None = column("share", "", audience=Audience.PEOPLE, heading="")
    change_points: float | None = column(
        "points",
        "change from the week before; null if one of them has too little data",
        name="change",
        heading="points",
    )
    lost_hours: float | None = hours_of("lost", "accelerator hours without progress")
    failures: int = column("count", "disruptions that count as failures", heading="failures")
    most_lost_to: str | None = column(
        "text", "the category that lost most", brief=brief_name, heading="most lost to", of=most_lost_to
    )
    categories: list[dict[str, Any]] = column(
        "text", "chip time by category", audience=Audience.JSON,
        json={"type": "array", "items": {"type": "object", "properties": {
            "category": {"type": "string"}, "chip_ns": _CHIP["json"], "ns": {"type": "integer"}}}},
    )  # fmt: skip


@dataclass(frozen=True)
class ChangeRow:
    """A part of what moved goodput from one week to the next."""

    what: str = column("text", "category or run", json={"enum": ["category", "run"]}, heading="what")
    name: str = column("text", "its name; `all other runs` for the rest", heading="name")
    before_percent: float = column(
        "percent", "share of the earlier week lost to it", name="before", heading="week before"
    )
    now_percent: float = column("percent", "share of the later week lost to it", name="now", heading="week")
    points: float = column("points", "resulting change of goodput; those of a kind add up", heading="points")


@dataclass(frozen=True)
class SizeRow:
    """A class of runs by their largest number of accelerators."""

    size: str = column("text", "accelerators, from - to", heading="size")
    runs: int = column("count", "runs with time in the window", heading="runs")
    accelerator_hours: float | None = hours_of("counted", "chip time without exclusions, in hours; null if unknown")
    goodput_percent: float | None = column("percent", "as for a group", name="goodput", heading="goodput")
    ettr_percent: float | None = percent_of(
        "time_goodput", "effective training time ratio: productive time over time, in job time", name="ettr",
        heading="ETTR",
    )  # fmt: skip
    median_ettr_percent: float | None = column("percent", "median over runs of at least a day", name="median_ettr")
    p10_ettr_percent: float | None = column("percent", "10th percentile over these runs", name="p10_ettr")
    p90_ettr_percent: float | None = column("percent", "90th percentile over these runs", name="p90_ettr")
    up_ns: int = column("duration", "job time in which attempts were up: the exposure", heading="up")
    accelerator_days: float = column(
        "number", "the exposure in accelerator days", of=lambda sums: hours(sums.chip_up) / 24
    )
    failures: int = column("count", "disruptions that count as failures", heading="failures")
    mttf_ns: int | None = column("duration", "exposure / failures; null without failures", heading="MTTF")
    mttf_low_ns: int | None = column("duration", "lower end of its 95 % interval (Garwood)", heading="95 % from")
    mttf_high_ns: int | None = column(
        "duration", "upper end of its 95 % interval; null without a failure", heading="95 % to"
    )
    per_1000_node_days: float | None = column(
        "number", "failures per 1000 node days; null without accelerators_per_node", heading="/1000 node-days"
    )


@dataclass(frozen=True)
class FleetCauseRow:
    """Failures of one cause."""

    cause: str = column("text", "cause (docs/causes.md); unknown: not logged", heading="why")
    group: str = column("text", "the group of the cause", heading="group")
    failures: int = column("count", "disruptions that count as failures", heading="failures")
    runs: int = column("count", "runs that had one", heading="runs")
    per_1000_accelerator_days: float | None = column(
        "number", "failures per 1000 accelerator days up; null if accelerators are unknown",
        heading="/1000 acc. days",
    )  # fmt: skip
    per_1000_low: float | None = column("number", "lower end of its 95 % interval (Garwood)", heading="95 % from")
    per_1000_high: float | None = column("number", "upper end of its 95 % interval", heading="95 % to")
    lost_ns: int = column("duration", "wasted + downtime + restart, in job time", heading="lost")
    accelerator_hours: float | None = column("number", "the same x accelerators", heading="accelerator h")


@dataclass(frozen=True)
class FleetHostRow:
    """A host on which runs died, and how that compares with chance."""

    host: str = column("text", "the host", heading="host")
    cluster: str | None = column("text", "from labels; null: unknown", heading="cluster", spare=True)
    runs_died: int = column("count", "runs that failed on it", heading="runs died", later=True)
    expected: float = column(
        "number", "expected number of runs failing on it by chance", heading="by chance", later=True
    )
    deaths: int = column("count", "failures on it that a host can cause", heading="deaths")
    of: int = column("count", "such failures on all hosts", heading="of")
    up_ns: int = column("duration", "its time up, over all runs", heading="up")
    share_percent: float = column("percent", "its share of all hosts' time up", name="share", heading="share of time")
    p: float = column(
        "number", "probability of this many failed runs by chance, corrected for all hosts (Holm)", heading="p"
    )
    as_rank_0: int = column(
        "count", "those of these runs in which it was the first host by name, like that of rank 0", later=True
    )
    causes: str = column("text", "causes", heading="why")
    runs: str = column("text", "the runs that failed there", heading="runs")


@dataclass(frozen=True)
class DisruptionRow:
    """One of the worst disruptions."""

    job: str = column("text", "the job's name", heading="job")
    run: int = column("count", "which run of it; 0 for all of them", heading="run", spare=True)
    number: int = column("count", "which disruption of that, from 1", heading="no.")
    at_ns: int = column("instant", "its last log activity", name="last_sign_of_life", heading="down since")
    ended: str = column("text", "how the attempt ended", heading="ended")
    cause: str = column("text", "cause (docs/causes.md); unknown: not logged", heading="why", spare=True)
    accelerators: int | None = column("count", "accelerators allocated then; null: unknown", heading="accelerators")
    lost_ns: int = column("duration", "wasted + downtime + restart", heading="lost")
    wasted_ns: int = column("duration", "training that had to be repeated")
    downtime_ns: int = column("duration", "time until the next attempt was up")
    restart_ns: int = column("duration", "time from then until training resumed")
    chip_ns: str | None = column("text", "lost time x accelerators, as decimal text; null without them", **_CHIP)
    accelerator_hours: float | None = column("number", "the same in hours", heading="accelerator h")
    cost: str | None = column("text", "its cost; null without a price", json={"type": "string"})
    evidence: str | None = column("text", "file:line or insertId that shows it", heading="evidence")


@dataclass(frozen=True)
class RunLine:
    """A run."""

    job: str = column("text", "the job's name", heading="job")
    run: int = column("count", "which run of the name, from 1; 0 for all of them", heading="run")
    runs: int = column("count", "number of runs with this name")
    start_ns: int = column("instant", "T0 of the run", heading="start")
    end_ns: int = column("instant", "T1 of the run")
    ns: int = column("count", "its time in the window, in ns")
    team: str | None = column("text", "from labels; null: unknown", heading="team")
    cluster: str | None = column("text", "from labels; null: unknown")
    accelerator: str | None = column("text", "the type, from labels; null: unknown")
    accelerators: int | None = column(
        "count", "most at the same time in the window; null: unknown", heading="accelerators"
    )
    size: str = column("text", "size class")
    events: int = column("count", "events of the run, each once")
    attempts: int = column("count", "attempts of the run")
    disruptions: int = column("count", "disruptions in the window", heading="disruptions")
    failures: int = column("count", "disruptions that count as failures")
    ending: str | None = column("text", "how the last attempt ended", heading="ended")
    goodput_ns: int = column("count", "productive time in the window, in ns", name="goodput_ns")
    lost_ns: int = column("count", "other time in the window without exclusions, in ns", name="lost_ns", later=True)
    goodput_percent: float | None = column(
        "percent", "of the window without exclusions", name="goodput", heading="goodput"
    )
    chip_ns: str | None = column("text", "chip time without exclusions, as decimal text", **_CHIP)
    lost_hours: float | None = column("number", "accelerator hours without progress; null: unknown", heading="lost h")
    most_lost_to: str | None = column("text", "the category that lost most", brief=brief_name, heading="most lost to",
                                      later=True)  # fmt: skip
    causes: str = column("text", "causes of its failures, the most expensive first", heading="why", later=True)
    cost: str | None = column(
        "text",
        "cost of its time without progress, as for a group",
        heading="cost",
        json={"type": "string"},
        later=True,
    )
    redone: bool = column(
        "text", "true if a later run with this name started at or below its first step and this one did not log "
        "that it finished", audience=Audience.JSON, json={"type": "boolean"}, later=True,
    )  # fmt: skip
    kwh: float | None = column("number", f"{_KWH}; null: not recorded", later=True)
    lost_kwh: float | None = column("number", f"{_LOST_KWH}; null: not recorded", later=True)
    idle_hours: float | None = column("number", f"{_IDLE}; null: not recorded", later=True)
    doubts: list[str] = column(
        "text", "warnings: why its goodput may mix several jobs or belong to another one", audience=Audience.JSON,
        json={"type": "array", "items": {"type": "string"}}, later=True,
    )  # fmt: skip
    documents: list[str] = column(
        "text", "sources of its events", audience=Audience.JSON, json={"type": "array", "items": {"type": "string"}}
    )
    at_risk_ns: int | None = column(
        "duration", "kept progress after its last complete checkpoint; null: its log has no saves", later=True
    )
    blocked_by: str | None = column(
        "text", "ranks or hosts that held it up at its last end (docs/hangs.md); null if none is named", later=True
    )


@dataclass(frozen=True)
class NotAnalysed:
    """A run, a job or a document that is not in the sums."""

    what: str = column("text", "document, job or run", json={"enum": ["document", "job", "run"]}, heading="what")
    name: str = column("text", "its name", heading="name")
    reason: str = column("text", "why", heading="reason")

    @classmethod
    def of(cls, what: str, name: str, reason: str, job: str | None = None) -> NotAnalysed:
        """Return a row with the reason worded as in other rows: without the name. job: of a run."""
        return cls(what, name, reason.removeprefix(f"{name}: ").replace(f" of job {job or name!r}", ""))


@dataclass(frozen=True)
class UncountedRun:
    """Runs excluded from the sums for one reason, for people."""

    what: str = column("text", "", audience=Audience.PEOPLE, heading="what")
    count: int = column("count", "", audience=Audience.PEOPLE, heading="count")
    reason: str = column("text", "", audience=Audience.PEOPLE, heading="reason")
    names: str = column("text", "", audience=Audience.PEOPLE, heading="name")


def grouped(amount: str) -> str:
    """`1250.00 USD` with commas between thousands."""
    return re.sub(r"\d{4,}", lambda found: f"{int(found[0]):,}", amount)


def declared_table(record: type, name: str, words: str, *people: str) -> TableDeclaration:
    """The table of a row. people: the headings that people see, in their order."""
    return TableDeclaration(name, words, tuple(_for_people(one) for one in columns_of(record, attribute)), people)


def _for_people(one: Column) -> Column:
    """People see hours to a tenth, 17,831.0, and amounts of money as 1,250.00 USD."""
    exact = one.values
    assert exact is not None
    number = "{:.2g}".format if one.name == "p" else tenths
    by_name: dict[str, Callable[[Any], str]] = {"cost": grouped, "ended": ended_words, "ending": ended_words}
    shown = by_name.get(one.name, number if one.kind == "number" else None)
    if shown is None:
        return one
    return replace(one, people_values=lambda rows: [None if value is None else shown(value) for value in exact(rows)])


GROUP_TABLE = declared_table(
    GroupRow, "fleet_group", "a group of runs",
    "group", "runs", "accelerator h", "goodput", "lost h", "cost", "kWh", "idle h", "failures",
    "no log h", "most lost to", "kWh lost", "goodput by job time",
)  # fmt: skip
CATEGORY_TABLE = declared_table(
    FleetCategoryRow, "fleet_category", "a category of the fleet",
    "category", "accelerator h", "share", "job h", "share of job time", "",
)  # fmt: skip
CHANGE_TABLE = declared_table(
    ChangeRow, "fleet_change_row", "a part of the change of goodput from one week to the next",
    "what", "name", "points", "week before", "week",
)  # fmt: skip
WEEK_TABLE = declared_table(
    WeekRow, "fleet_week", "a week of the fleet",
    "week", "goodput", "goodput by job time", "", "points", "runs", "accelerator h", "failures", "most lost to",
)  # fmt: skip
SIZE_TABLE = declared_table(
    SizeRow, "fleet_size", "a size class",
    "size", "runs", "ETTR", "failures", "MTTF", "95 % from", "95 % to", "up", "goodput", "/1000 node-days",
)  # fmt: skip
CAUSE_TABLE = declared_table(
    FleetCauseRow, "fleet_cause", "failures of one cause",
    "why", "failures", "runs", "/1000 acc. days", "95 % from", "95 % to", "accelerator h", "lost", "group",
)  # fmt: skip
HOST_TABLE = declared_table(
    FleetHostRow, "fleet_host", "a host on which runs failed",
    "host", "cluster", "runs died", "by chance", "p", "why", "runs", "deaths", "of", "share of time", "up",
)  # fmt: skip
DISRUPTION_TABLE = declared_table(
    DisruptionRow, "fleet_disruption", "one of the worst disruptions",
    "job", "run", "no.", "down since", "ended", "why", "lost", "accelerator h", "accelerators", "evidence",
)  # fmt: skip
RUN_TABLE = declared_table(
    RunLine, "fleet_run", "a run",
    "job", "run", "start", "team", "accelerators", "goodput", "most lost to", "why", "lost h", "cost", "disruptions",
    "ended",
)  # fmt: skip
NOT_ANALYSED_TABLE = declared_table(
    NotAnalysed, "fleet_left_out", "something that is not in the totals",
    "what", "name", "reason",
)  # fmt: skip
LEFT_OUT_TABLE = declared_table(
    UncountedRun, "left_out", "what is not in the totals for one reason",
    "what", "count", "reason", "name",
)  # fmt: skip


@written("fleet_change", "change of goodput between the latest two weeks with enough runs")
@dataclass(frozen=True)
class FleetChange:
    """Change from one week to the next."""

    before: str
    """the earlier week"""
    week: str
    """the later week"""
    by_time: bool
    """whether every run counts by its time alone"""
    points: float
    """goodput of the later week less that of the earlier"""
    rows: Annotated[tuple[ChangeRow, ...], CHANGE_TABLE]
    """categories, then runs; the points of each kind add up"""


@written("fleet_groups", "the groups of one --by", keys="dims shown")
@dataclass(frozen=True)
class GroupTable:
    """The groups of one --by."""

    dims: Annotated[tuple[str, ...], Json(key="by")]
    """dimensions by which the runs are grouped"""
    rows: tuple[GroupRow, ...]
    """One row per group, sorted."""
    totals: tuple[Totals, ...]
    """Totals of each row."""
    limit: int | None = None
    """`--limit`; None: every row is shown."""
    unlogged: tuple[GroupRow, ...] = ()
    """Groups that only a scheduler knows: no runs, and unknown goodput."""

    @property
    def shown(self) -> Annotated[tuple[GroupRow, ...], GROUP_TABLE, Json(key="rows")]:
        """the first --limit rows"""
        return (*self.rows, *self.unlogged)[: self.limit]


def run_name(one: RunResult | RunLine) -> str:
    """`llm-7b`, and `llm-7b #2` for one of several runs."""
    return f"{one.job} #{one.run}" if one.runs > 1 and one.run else one.job


def run_number_text(one: RunLine) -> str:
    """`2 of 3`, and whether a later one threw it away; empty of a name that was used once."""
    if one.runs < 2 or not one.run:
        return ""
    return f"{one.run} of {one.runs}{', discarded later' if one.redone else ''}"


def category_rows(sums: FleetTotals) -> list[FleetCategoryRow]:
    """Productive time first, then what took most; exclusions last."""
    keys = sorted(
        {*sums.chip, *sums.time},
        key=lambda key: (
            key[0] != Category.PRODUCTIVE, key[0] == Category.EXCLUDED, -sums.chip[key], -sums.time[key], key[0],
            key[1] or "",
        ),
    )  # fmt: skip
    rows = []
    for key in keys:
        chip, time = sums.chip[key], sums.time[key]
        if not chip and not time:
            continue
        counts = key[0] != Category.EXCLUDED
        share, time_share = (ratio(chip, sums.counted), ratio(time, sums.time_counted)) if counts else (None, None)
        drawn = time_share if share is None else share
        rows.append(
            FleetCategoryRow(
                category=category_name(key),
                chip_ns=str(chip),
                ns=time,
                accelerator_hours=known_hours(sums, chip),
                share_percent=percent(share),
                job_hours=hours(time),
                time_share_percent=percent(time_share),
                bar=None if drawn is None else float(max(drawn, Fraction(0))),
            )
        )
    return rows
