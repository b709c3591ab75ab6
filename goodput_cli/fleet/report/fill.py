"""From sums to rows: categories, groups, weeks, sizes, disruptions and runs as people and programs read them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from goodput_cli.fleet.grouping import UNKNOWN_SIZE, size_classes
from goodput_cli.fleet.report.rows import CategoryRow, DisruptionRow, GroupRow, RunLine, SizeRow, WeekRow
from goodput_cli.fleet.totals.aggregate import Fleet
from goodput_cli.fleet.totals.cut import Key
from goodput_cli.fleet.totals.lists import RunRow, WorstDisruption
from goodput_cli.fleet.totals.ratios import HOUR_NS, hours, percent, quantile, ratio
from goodput_cli.fleet.totals.sums import Mpg, Sums
from goodput_cli.vocabulary.categories import Category

_LEAST_RUNS = 5
_LONG_RUN_NS = 24 * HOUR_NS
_NODE_DAYS = 1000 * 24 * HOUR_NS


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


def week_rows(fleet: Fleet, weeks: Sequence[Sums]) -> list[WeekRow]:
    """The weeks of the fleet. weeks: the sums of each."""
    rows: list[WeekRow] = []
    usual = quantile((Fraction(one.counted) for one in weeks), Fraction(1, 2)) or Fraction(0)
    before: Fraction | None = None
    for week, sums in zip(fleet.calendar.weeks, weeks, strict=True):
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


def size_rows(fleet: Fleet) -> list[SizeRow]:
    """The size classes that have runs."""
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


def disruption_row(one: WorstDisruption) -> DisruptionRow:
    """A disruption with its cost."""
    known = one.accelerators is not None
    money = None
    if known and one.price is not None:
        money = f"{_decimals(one.price * Fraction(one.cost, HOUR_NS))} {one.currency or ''}".strip()
    what = one.disruption
    return DisruptionRow(
        one.job, one.run, what.number, what.at_ns, what.ended, one.accelerators, what.lost_ns, what.wasted_ns,
        what.downtime_ns, what.restart_ns, str(one.cost) if known else None, hours(one.cost) if known else None,
        money, what.evidence,
    )  # fmt: skip


def run_line(row: RunRow) -> RunLine:
    """A run as the list of runs has it."""
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
