"""What `goodput fleet` answers: the sums of a fleet as rows, each column declared once.

The attribute, JSON, CSV, Parquet and docs/schema.json follow from a field's declaration; see `analysis/table.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from goodput_cli.analysis.sheet import Audience, Column
from goodput_cli.analysis.table import attribute, column, columns_of, people_columns
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.fleet.grouping import UNKNOWN_SIZE, Grouping, size_classes
from goodput_cli.fleet.totals.aggregate import Fleet, RunRow, WorstDisruption
from goodput_cli.fleet.totals.cut import Key
from goodput_cli.fleet.totals.ratios import HOUR_NS, hours, percent, quantile, ratio
from goodput_cli.fleet.totals.sums import Mpg, Sums, mpg_of
from goodput_cli.vocabulary.categories import BY_NAME, Category

_CHIP: dict[str, Any] = {
    "json": {"type": "string", "pattern": "^-?[0-9]+$"}, "audience": Audience.JSON, "key": "chip_ns",
}  # fmt: skip
_LEAST_RUNS = 5
_LONG_RUN_NS = 24 * HOUR_NS
_NODE_DAYS = 1000 * 24 * HOUR_NS


@dataclass(frozen=True)
class CategoryRow:
    """What the fleet's time went to."""

    category: str = column("text", "a category, or custom_badput_events:LABEL", people=(0, "time went to"))
    chip_ns: str = column("text", "accelerators x ns, as decimal text", **_CHIP)
    ns: int = column("count", "time of all runs in ns, each run counted once", audience=Audience.JSON)
    accelerator_hours: float | None = column(
        "number", "chip time in hours; null where no run's accelerators are known", people=(1, "accelerator h")
    )
    share_percent: float | None = column(
        "percent", "of the chip time without exclusions; null where nothing is known", name="share", people=(2, "share")
    )
    job_hours: float = column("number", "time of all runs in hours", people=(3, "job h"))
    time_share_percent: float | None = column(
        "percent", "of the time of all runs without exclusions", name="time_share", people=(4, "of job time")
    )
    bar: float | None = column("share", "", audience=Audience.PEOPLE, people=(5, ""))


@dataclass(frozen=True)
class GroupRow:
    """A group of runs: a value of one dimension, or of several crossed."""

    group: str = column("text", "the values of the dimensions, with ` / ` between them", people=(0, "group"))
    values: list[str] = column(
        "text", "the values of the dimensions", audience=Audience.JSON, json={"type": "array",
        "items": {"type": "string"}},
    )  # fmt: skip
    runs: int = column("count", "runs of which something lies in the window", people=(1, "runs"))
    known_runs: int = column("count", "those whose accelerators are known")
    chip_ns: str = column("text", "chip time without exclusions, accelerators x ns as decimal text", **_CHIP)
    accelerator_hours: float | None = column(
        "number", "chip time without exclusions, in hours; null if unknown", people=(2, "accelerator h")
    )
    goodput_percent: float | None = column(
        "percent",
        "productive share of the chip time; null where it is not known",
        name="goodput",
        people=(3, "goodput"),
    )
    time_goodput_percent: float | None = column(
        "percent", "the same with every run weighing its time alone", name="time_goodput", people=(8, "by job time")
    )
    median_goodput_percent: float | None = column("percent", "median over runs, unweighted", name="median_goodput")
    quartile_low_percent: float | None = column("percent", "a quarter of the runs is below", name="quartile_low")
    quartile_high_percent: float | None = column("percent", "a quarter of the runs is above", name="quartile_high")
    lost_hours: float | None = column("number", "accelerator hours without progress", people=(4, "lost h"))
    held_lost_hours: float | None = column("number", "those in which accelerators were held: only these cost")
    cost: str | None = column(
        "text", "what they cost, by currency; null without prices", people=(5, "cost"), json={"type": "string"}
    )
    priced_runs: int = column("count", "runs with a price")
    failures: int = column("count", "disruptions that count as failures", people=(6, "failures"))
    scheduling_percent: float | None = column("percent", "scheduling goodput; null without capacity", name="scheduling")
    runtime_percent: float | None = column("percent", "runtime goodput", name="runtime")
    program_percent: float | None = column("percent", "program goodput; null where it is not recorded", name="program")
    mpg_percent: float | None = column(
        "percent", "ML productivity goodput; null unless all three are there", name="mpg"
    )
    most_lost_to: str | None = column("text", "the category that took most", people=(7, "most lost to"))


@dataclass(frozen=True)
class WeekRow:
    """A week of the fleet."""

    week: str = column("text", "ISO week, Monday to Sunday in the time zone", people=(0, "week"))
    start_ns: int = column("instant", "where it begins, inside the window")
    end_ns: int = column("instant", "where it ends, inside the window")
    partial: bool = column(
        "text", "whether the window holds only a part of it", audience=Audience.JSON, json={"type": "boolean"}
    )
    covered_percent: float = column("percent", "how much of the week the window holds", name="covered")
    runs: int = column("count", "runs of which something lies in it", people=(4, "runs"))
    chip_ns: str = column("text", "chip time without exclusions, accelerators x ns as decimal text", **_CHIP)
    accelerator_hours: float | None = column(
        "number", "chip time without exclusions, in hours; null if unknown", people=(5, "accelerator h")
    )
    goodput_percent: float | None = column("percent", "as of a group", name="goodput", people=(1, "goodput"))
    time_goodput_percent: float | None = column(
        "percent", "the same with every run weighing its time alone", name="time_goodput", people=(8, "by job time")
    )
    bar: float | None = column("share", "", audience=Audience.PEOPLE, people=(2, ""))
    change_points: float | None = column(
        "points", "against the week before; null where one of them has too little", name="change", people=(3, "change")
    )
    lost_hours: float | None = column("number", "accelerator hours without progress")
    failures: int = column("count", "disruptions that count as failures", people=(6, "failures"))
    most_lost_to: str | None = column("text", "the category that took most", people=(7, "most lost to"))
    categories: list[dict[str, Any]] = column(
        "text", "chip time by category", audience=Audience.JSON,
        json={"type": "array", "items": {"type": "object", "properties": {
            "category": {"type": "string"}, "chip_ns": _CHIP["json"], "ns": {"type": "integer"}}}},
    )  # fmt: skip


@dataclass(frozen=True)
class SizeRow:
    """A class of runs by the accelerators that they held at most."""

    size: str = column("text", "accelerators, from - to", people=(0, "accelerators"))
    runs: int = column("count", "runs of which something lies in the window", people=(1, "runs"))
    accelerator_hours: float | None = column("number", "chip time without exclusions, in hours; null if unknown")
    goodput_percent: float | None = column("percent", "as of a group", name="goodput", people=(8, "goodput"))
    ettr_percent: float | None = column(
        "percent", "effective training time ratio: productive time over time, in job time", name="ettr",
        people=(2, "ETTR"),
    )  # fmt: skip
    median_ettr_percent: float | None = column("percent", "median over runs of a day and more", name="median_ettr")
    p10_ettr_percent: float | None = column("percent", "a tenth of them is below", name="p10_ettr")
    p90_ettr_percent: float | None = column("percent", "a tenth of them is above", name="p90_ettr")
    up_ns: int = column("duration", "job time in which attempts were up: the exposure", people=(7, "up"))
    accelerator_days: float = column("number", "the exposure in accelerator days")
    failures: int = column("count", "disruptions that count as failures", people=(3, "failures"))
    mttf_ns: int | None = column("duration", "exposure / failures; null without a failure", people=(4, "MTTF"))
    mttf_low_ns: int | None = column("duration", "lower end of its 95 % interval (Garwood)", people=(5, "from"))
    mttf_high_ns: int | None = column(
        "duration", "upper end of its 95 % interval; null without a failure", people=(6, "to (95 %)")
    )
    per_1000_node_days: float | None = column(
        "number", "failures in a thousand node days; null without accelerators_per_node", people=(9, "/1000 node-days")
    )


@dataclass(frozen=True)
class DisruptionRow:
    """One of the worst disruptions."""

    job: str = column("text", "the job's name", people=(0, "job"))
    run: int = column("count", "which run of it; 0 for all of them", people=(1, "run"))
    number: int = column("count", "which disruption of that, from 1", people=(8, "no."))
    at_ns: int = column("instant", "its last sign of life", name="last_sign_of_life", people=(2, "when"))
    ended: str = column("text", "how the attempt ended", people=(5, "ended"))
    accelerators: int | None = column("count", "that were held then; null where nobody knows", people=(3, "chips"))
    lost_ns: int = column("duration", "wasted + downtime + restart", people=(7, "lost"))
    wasted_ns: int = column("duration", "training that was taken back")
    downtime_ns: int = column("duration", "until the next attempt was up")
    restart_ns: int = column("duration", "until it trained")
    chip_ns: str | None = column("text", "lost time x accelerators, as decimal text; null without them", **_CHIP)
    accelerator_hours: float | None = column("number", "the same in hours", people=(4, "accelerator h"))
    cost: str | None = column("text", "what it cost; null without a price", json={"type": "string"})
    evidence: str | None = column("text", "file:line or insertId that shows it", people=(6, "evidence"))


@dataclass(frozen=True)
class RunLine:
    """A run."""

    job: str = column("text", "the job's name", people=(0, "job"))
    run: int = column("count", "which run of the name, from 1; 0 for all of them", people=(1, "run"))
    runs: int = column("count", "how often the name was used")
    start_ns: int = column("instant", "T0 of the run", people=(2, "start"))
    end_ns: int = column("instant", "T1 of the run")
    ns: int = column("count", "length of what lies in the window, in ns")
    team: str | None = column("text", "from labels; null where none says it", people=(3, "team"))
    cluster: str | None = column("text", "from labels; null where none says it")
    accelerator: str | None = column("text", "the type, from labels; null where none says it")
    accelerators: int | None = column(
        "count", "most at once in the window; null where nobody knows", people=(4, "chips")
    )
    size: str = column("text", "size class")
    events: int = column("count", "events of the run, each once")
    attempts: int = column("count", "attempts of the run")
    disruptions: int = column("count", "disruptions in the window", people=(6, "disruptions"))
    failures: int = column("count", "those that count as failures")
    ending: str | None = column("text", "how the last attempt ended", people=(7, "ending"))
    goodput_ns: int = column("count", "productive time in the window, in ns", name="goodput_ns")
    goodput_percent: float | None = column(
        "percent", "of the window without exclusions", name="goodput", people=(5, "goodput")
    )
    chip_ns: str | None = column("text", "chip time without exclusions, as decimal text", **_CHIP)
    lost_hours: float | None = column("number", "accelerator hours without progress; null where nobody knows")
    documents: list[str] = column(
        "text", "where its events stand", audience=Audience.JSON, json={"type": "array", "items": {"type": "string"}}
    )


@dataclass(frozen=True)
class NotAnalysed:
    """A run, a job or a document that is not in the sums."""

    what: str = column("text", "document, job or run", json={"enum": ["document", "job", "run"]}, people=(0, "what"))
    name: str = column("text", "its name", people=(1, "name"))
    reason: str = column("text", "why", people=(2, "reason"))


def declared_columns(record: type) -> tuple[Column, ...]:
    """The columns of a row, for programs, then for people in their order."""
    people = people_columns(record, attribute)
    own = (one for one in columns_of(record, attribute) if one.audience & Audience.PROGRAMS)
    return (*own, *(_for_people(people[place]) for place in sorted(people)))


def _for_people(one: Column) -> Column:
    """People see hours to a tenth, and short titles of categories."""
    exact = one.values
    assert exact is not None
    if one.kind == "number":
        return replace(one, values=lambda rows: [None if value is None else round(value, 1) for value in exact(rows)])
    if one.name == "most lost to":
        return replace(
            one, values=lambda rows: [None if value is None else short_title(value) for value in exact(rows)]
        )
    return one


def short_title(category: str) -> str:
    """A category as people read it where there is little room."""
    name, _, label = category.partition(":")
    return label or BY_NAME[name].row.title or name


@dataclass(frozen=True)
class Coverage:
    """Over what the totals are."""

    documents: int
    unreadable: int
    runs: int
    """Analysed, and in the window."""
    not_analysed: int
    outside: int
    """Runs that lie outside the window."""
    known_runs: int
    """Runs with known accelerators."""
    known_time: Fraction | None
    """Share of the job time with known accelerators."""
    lost_sight_of: int
    """Runs that never ended, and were not heard of for longer than --alive-within before --as-of."""
    unlogged: int
    """Allocations without a log."""
    unlogged_chip_ns: int
    assumed_chip_ns: int
    """Chip time of runs with allocations that no allocation covers."""


@dataclass(frozen=True)
class GroupTable:
    """The groups of one --by."""

    dims: tuple[str, ...]
    rows: tuple[GroupRow, ...]
    sums: tuple[Sums, ...]
    """Of each row."""
    mpgs: tuple[Mpg, ...]
    limit: int | None = None

    @property
    def shown(self) -> tuple[GroupRow, ...]:
        """The rows that an answer has: the first --limit."""
        return self.rows[: self.limit]


@dataclass(frozen=True)
class FleetReport:
    """The answer about a fleet. Instants and amounts of time are ns."""

    start_ns: int
    end_ns: int
    timezone: str
    complete: bool
    """Whether every document could be read and every run analysed."""
    coverage: Coverage
    grouping: Grouping
    sums: Sums
    total: GroupRow
    mpg: Mpg
    allocated_from_logs: bool
    """Whether allocations come from logs, and not from a scheduler."""
    categories: tuple[CategoryRow, ...]
    weeks: tuple[WeekRow, ...]
    week_sums: tuple[Sums, ...]
    sizes: tuple[SizeRow, ...]
    groups: tuple[GroupTable, ...]
    disruptions: tuple[DisruptionRow, ...]
    runs: tuple[RunLine, ...]
    not_analysed: tuple[NotAnalysed, ...]
    method: dict[str, str]
    """How it was accounted for, as options."""
    diagnostics: tuple[Diagnostic, ...]


def report_of(
    fleet: Fleet, *, documents: int, unreadable: Sequence[NotAnalysed], timezone: str, method: dict[str, str],
    diagnostics: Sequence[Diagnostic],
) -> FleetReport:  # fmt: skip
    """The whole answer. fleet: finished. unreadable: documents, and jobs that killed their worker."""
    lost = [
        NotAnalysed("run" if one.runs > 1 else "job", _run_name(one), one.reason or "") for one in fleet.not_analysed
    ]
    not_analysed = (*unreadable, *lost)
    mpg = mpg_of(fleet.total, fleet.capacity_ns(), saved_only=fleet.grouping.saved_only)
    weeks = tuple(fleet.by_week[number] for number in range(len(fleet.weeks)))
    return FleetReport(
        start_ns=fleet.start,
        end_ns=fleet.end,
        timezone=timezone,
        complete=not not_analysed,
        coverage=_coverage(fleet, documents, sum(one.what == "document" for one in unreadable), len(not_analysed)),
        grouping=fleet.grouping,
        sums=fleet.total,
        total=group_row((), fleet.total, mpg),
        mpg=mpg,
        allocated_from_logs=not fleet.allocations,
        categories=tuple(category_rows(fleet.total)),
        weeks=tuple(_week_rows(fleet, weeks)),
        week_sums=weeks,
        sizes=tuple(_size_rows(fleet)),
        groups=tuple(_group_table(fleet, dims) for dims in fleet.groups),
        disruptions=tuple(map(_disruption_row, fleet.worst)),
        runs=tuple(map(_run_line, fleet.runs)),
        not_analysed=not_analysed,
        method=method,
        diagnostics=tuple(diagnostics),
    )


def category_name(key: Key) -> str:
    """`queued`, or `custom_badput_events:EVAL`."""
    return key[0].id if key[1] is None else f"{key[0].id}:{key[1]}"


def category_rows(sums: Sums) -> list[CategoryRow]:
    """Productive time first, then what took most; exclusions last."""
    keys = sorted(
        {*sums.chip, *sums.time},
        key=lambda key: (
            key[0] != Category.PRODUCTIVE, key[0] == Category.EXCLUDED, -sums.chip[key], -sums.time[key], key[0],
            key[1] or "",
        ),
    )  # fmt: skip
    return [_category_row(key, sums) for key in keys if sums.chip[key] or sums.time[key]]


def _category_row(key: Key, sums: Sums) -> CategoryRow:
    counts = key[0] != Category.EXCLUDED
    share = ratio(sums.chip[key], sums.counted) if counts else None
    time_share = ratio(sums.time[key], sums.time_counted) if counts else None
    drawn = time_share if share is None else share
    width = None if drawn is None else max(drawn, Fraction(0))
    return CategoryRow(
        category=category_name(key),
        chip_ns=str(sums.chip[key]),
        ns=sums.time[key],
        accelerator_hours=_known(sums, sums.chip[key]),
        share_percent=percent(share),
        job_hours=hours(sums.time[key]),
        time_share_percent=percent(time_share),
        bar=None if width is None else float(width),
    )


def _known(sums: Sums, chip_ns: int) -> float | None:
    """Accelerator hours; None where no run says how many it has."""
    return hours(chip_ns) if sums.known_time else None


def group_row(values: tuple[str, ...], sums: Sums, mpg: Mpg) -> GroupRow:
    """A group of runs as a row."""
    shares = [share for share in (ratio(*pair) for pair in sums.shares) if share is not None]
    low, median, high = (quantile(shares, Fraction(part, 4)) for part in (1, 2, 3))
    worst = sums.worst()
    return GroupRow(
        group=" / ".join(values),
        values=list(values),
        runs=sums.runs,
        known_runs=sums.known,
        chip_ns=str(sums.counted),
        accelerator_hours=_known(sums, sums.counted),
        goodput_percent=percent(sums.goodput),
        time_goodput_percent=percent(sums.time_goodput),
        median_goodput_percent=percent(median),
        quartile_low_percent=percent(low),
        quartile_high_percent=percent(high),
        lost_hours=_known(sums, sums.lost),
        held_lost_hours=_known(sums, sums.held_lost),
        cost=money_text(sums) if sums.priced else None,
        priced_runs=sums.priced,
        failures=sums.failures,
        scheduling_percent=percent(mpg.scheduling),
        runtime_percent=percent(mpg.runtime),
        program_percent=percent(mpg.program),
        mpg_percent=percent(mpg.mpg),
        most_lost_to=None if worst is None else category_name(worst[0]),
    )


def money_text(sums: Sums) -> str:
    """`168908.00 USD`; currencies are never added."""
    return ", ".join(f"{_decimals(amount)} {code}" for code, amount in sorted(sums.money.items())) or "0.00"


def _decimals(amount: Fraction | int) -> str:
    """With two decimals, half to even."""
    cents = round(Fraction(amount) * 100)
    sign, cents = ("-" if cents < 0 else ""), abs(cents)
    return f"{sign}{cents // 100}.{cents % 100:02d}"


def _run_name(result: Any) -> str:
    return f"{result.job} #{result.run}" if result.runs > 1 and result.run else str(result.job)


def _coverage(fleet: Fleet, documents: int, unreadable: int, not_analysed: int) -> Coverage:
    sums = fleet.total
    return Coverage(
        documents, unreadable, sums.runs, not_analysed, fleet.outside, sums.known,
        ratio(sums.known_time, sums.time_counted), fleet.lost_sight_of, fleet.unlogged.rows, fleet.unlogged.chip_ns,
        sums.assumed,
    )  # fmt: skip


def _week_rows(fleet: Fleet, weeks: Sequence[Sums]) -> list[WeekRow]:
    rows: list[WeekRow] = []
    usual = quantile((Fraction(one.counted) for one in weeks), Fraction(1, 2)) or Fraction(0)
    before: Fraction | None = None
    for week, sums in zip(fleet.weeks, weeks, strict=True):
        enough = sums.runs >= _LEAST_RUNS and 2 * sums.counted >= usual
        goodput = sums.goodput
        change = goodput - before if enough and goodput is not None and before is not None else None
        worst = sums.worst()
        drawn = sums.time_goodput if goodput is None else goodput
        rows.append(
            WeekRow(
                week=week.name,
                start_ns=week.start,
                end_ns=week.end,
                partial=week.partial,
                covered_percent=100 * (week.end - week.start) / week.full_ns,
                runs=sums.runs,
                chip_ns=str(sums.counted),
                accelerator_hours=_known(sums, sums.counted),
                goodput_percent=percent(goodput),
                time_goodput_percent=percent(sums.time_goodput),
                bar=None if drawn is None else float(drawn),
                change_points=percent(change),
                lost_hours=_known(sums, sums.lost),
                failures=sums.failures,
                most_lost_to=None if worst is None else category_name(worst[0]),
                categories=[
                    {"category": row.category, "chip_ns": row.chip_ns, "ns": row.ns} for row in category_rows(sums)
                ],
            )
        )
        before = goodput if enough else None
    return rows


def _size_rows(fleet: Fleet) -> list[SizeRow]:
    names = [name for name in size_classes(fleet.grouping.size_bounds) if name in fleet.by_size]
    return [_size_row(name, fleet.by_size[name]) for name in names]


def _size_row(name: str, sums: Sums) -> SizeRow:
    shares = [Fraction(*pair) for pair in sums.shares if pair[1] >= _LONG_RUN_NS]
    low, median, high = (quantile(shares, Fraction(part, 10)) for part in (1, 5, 9))
    least, most = sums.mttf_interval_ns
    mttf = sums.mttf_ns
    known = name != UNKNOWN_SIZE
    per_node = ratio(Fraction(sums.node_failures) * _NODE_DAYS, sums.node_up)
    return SizeRow(
        size=name,
        runs=sums.runs,
        accelerator_hours=_known(sums, sums.counted),
        goodput_percent=percent(sums.goodput) if known else None,
        ettr_percent=percent(sums.time_goodput),
        median_ettr_percent=percent(median),
        p10_ettr_percent=percent(low),
        p90_ettr_percent=percent(high),
        up_ns=sums.up,
        accelerator_days=hours(sums.chip_up) / 24,
        failures=sums.failures,
        mttf_ns=None if mttf is None else round(mttf),
        mttf_low_ns=None if least is None else round(least),
        mttf_high_ns=None if most is None else round(most),
        per_1000_node_days=None if per_node is None else float(per_node),
    )


def _group_table(fleet: Fleet, dims: tuple[str, ...]) -> GroupTable:
    grouping = fleet.grouping
    found: list[tuple[GroupRow, Sums, Mpg]] = []
    for values, sums in fleet.groups[dims].items():
        chosen = dict(zip(dims, values, strict=True))
        told_apart = chosen.keys() <= {"cluster", "accelerator"}
        capacity = fleet.capacity_ns(**chosen) if told_apart else None
        mpg = mpg_of(sums, capacity, saved_only=grouping.saved_only)
        found.append((group_row(values, sums, mpg), sums, mpg))
    found.sort(key=lambda one: _group_order(grouping.sort, *one[:2]))
    rows, sums_of, mpgs = (tuple(column) for column in zip(*found, strict=True))
    return GroupTable(dims, rows, sums_of, mpgs, grouping.limit)


def _group_order(key: str, row: GroupRow, sums: Sums) -> Any:
    match key:
        case "name":
            return row.values
        case "hours":
            return (-sums.counted, row.values)
        case "goodput":
            return (sums.goodput is None, sums.goodput or 0, row.values)
        case _:
            return (-sums.lost, row.values)


def _disruption_row(one: WorstDisruption) -> DisruptionRow:
    known = one.accelerators is not None
    money = None
    if known and one.price is not None:
        money = f"{_decimals(one.price * Fraction(one.cost, HOUR_NS))} {one.currency or ''}".strip()
    found = one.found
    return DisruptionRow(
        one.job, one.run, found.number, found.at_ns, found.ended, one.accelerators, found.lost_ns, found.wasted_ns,
        found.downtime_ns, found.restart_ns, str(one.cost) if known else None, hours(one.cost) if known else None,
        money, found.evidence,
    )  # fmt: skip


def _run_line(row: RunRow) -> RunLine:
    result, texts = row.result, row.labels.texts
    known = row.accelerators is not None
    return RunLine(
        job=result.job,
        run=result.run,
        runs=result.runs,
        start_ns=result.start_ns,
        end_ns=result.end_ns,
        ns=row.ns,
        team=texts.get("team"),
        cluster=texts.get("cluster"),
        accelerator=texts.get("accelerator"),
        accelerators=row.accelerators,
        size=row.size,
        events=result.events,
        attempts=result.attempts,
        disruptions=row.disruptions,
        failures=row.failures,
        ending=result.ending,
        goodput_ns=row.productive_ns,
        goodput_percent=100 * row.productive_ns / row.counted_ns if row.counted_ns > 0 else None,
        chip_ns=str(row.chip_ns) if known else None,
        lost_hours=hours(row.lost_chip_ns) if known else None,
        documents=list(result.documents),
    )
