"""The charts of the fleet page, drawn as SVG here: no script, and names of groups only as text that is drawn."""

from __future__ import annotations

import altair as alt
from markupsafe import Markup

from goodput_cli.fleet.report.report import FleetReport, category_name, short_title
from goodput_cli.fleet.totals.ratios import HOUR_NS, hours
from goodput_cli.fleet.totals.sums import Sums
from goodput_cli.report.html.drawing import drawn_alone
from goodput_cli.vocabulary.categories import BY_NAME, Category
from goodput_cli.vocabulary.text import safe, shorten

_WIDTH = 820
_INK = "currentColor"
_MOST_GROUPS, _MOST_RUNS, _NAME = 20, 500, 32
_GOOD = Category.PRODUCTIVE.look.colour
_MISSING = "#8a8a8a"


def factors_chart(report: FleetReport) -> Markup:
    """Capacity, allocated, kept and ideal chip time: what is missing is an outline."""
    sums, mpg = report.sums, report.mpg
    capacity = None if not mpg.scheduling else hours(sums.allocated / mpg.scheduling)
    ideal = None if not mpg.program else hours(sums.kept * mpg.program)
    known = {
        "capacity": capacity,
        "allocated": hours(sums.allocated),
        "kept training": hours(sums.kept),
        "ideal": ideal,
    }
    widest = max([value for value in known.values() if value is not None], default=1)
    rows = [
        {"name": name, "hours": widest if value is None else value, "missing": value is None,
         "text": "not recorded" if value is None else f"{value:,.1f} h"}
        for name, value in known.items()
    ]  # fmt: skip
    base = alt.Chart(alt.Data(values=rows)).encode(
        y=alt.Y("name:N", sort=list(known), axis=alt.Axis(title=None, labelLimit=200)),
    )
    scale = alt.Scale(domain=[0, 1.2 * widest], nice=False)  # room for the words behind the widest
    x = alt.X("hours:Q", axis=alt.Axis(title="accelerator hours", tickCount=6), scale=scale)
    bars = base.transform_filter("!datum.missing").mark_bar(color=_GOOD).encode(x=x)
    gaps = base.transform_filter("datum.missing").mark_bar(filled=False, stroke=_MISSING, strokeDash=[4, 3]).encode(x=x)
    words = base.mark_text(align="left", dx=4, color=_INK, fontSize=12).encode(x=x, text="text:N")
    return _drawn(alt.layer(bars, gaps, words).properties(width=_WIDTH, height=120), "factors")


def weeks_chart(report: FleetReport) -> Markup:
    """Accelerator hours a week by category, and goodput over them."""
    by_time = not report.sums.known_time
    rows = [
        {
            "week": week.week + ("~" if week.partial else ""),
            "category": _family(key_name),
            "hours": amount,
            "order": order,
        }
        for week, sums in zip(report.weeks, report.week_sums, strict=True)
        for order, (key_name, amount) in enumerate(_amounts(sums, by_time=by_time))
    ]
    line = [
        {"week": week.week + ("~" if week.partial else ""), "goodput": value}
        for week in report.weeks
        if (value := week.time_goodput_percent if by_time else week.goodput_percent) is not None
    ]
    names = list(dict.fromkeys(str(row["category"]) for row in rows))
    colours = [BY_NAME[_id_of(name)].look.colour for name in names]
    x = alt.X("week:O", axis=alt.Axis(title=None, labelAngle=-40, labelOverlap=True))
    unit = "job hours" if by_time else "accelerator hours"
    bars = alt.Chart(alt.Data(values=rows)).mark_bar().encode(
        x=x,
        y=alt.Y("sum(hours):Q", axis=alt.Axis(title=unit)),
        color=alt.Color("category:N", scale=alt.Scale(domain=names, range=colours),
                        legend=alt.Legend(title=None, orient="bottom", columns=4, labelLimit=180)),
        order="order:Q",
    )  # fmt: skip
    percents = alt.Y("goodput:Q", scale=alt.Scale(domain=[0, 100]), axis=alt.Axis(title="goodput, %", grid=False))
    dots = alt.OverlayMarkDef(filled=True, color=_INK)
    goodput = alt.Chart(alt.Data(values=line)).mark_line(point=dots, color=_INK, strokeWidth=2).encode(x=x, y=percents)
    chart = alt.layer(bars, goodput).resolve_scale(y="independent")
    return _drawn(chart.properties(width=_WIDTH, height=260), "weeks")


def groups_chart(report: FleetReport) -> Markup | None:
    """Lost accelerator hours of the first --by, by category."""
    table = report.groups[0]
    by_time = not report.sums.known_time
    rows: list[dict[str, str | float]] = []
    order: list[str] = []
    for row, sums in list(zip(table.rows, table.sums, strict=True))[:_MOST_GROUPS]:
        name = shorten(safe(row.group), _NAME)
        order.append(name)
        rows += [
            {"group": name, "category": _family(key), "hours": amount}
            for key, amount in _amounts(sums, by_time=by_time)
            if key != Category.PRODUCTIVE.id
        ]
    if not rows:
        return None
    names = list(dict.fromkeys(str(row["category"]) for row in rows))
    colours = [BY_NAME[_id_of(name)].look.colour for name in names]
    chart = alt.Chart(alt.Data(values=rows)).mark_bar().encode(
        y=alt.Y("group:N", sort=order, axis=alt.Axis(title=None, labelLimit=220)),
        x=alt.X("sum(hours):Q", axis=alt.Axis(title="lost job hours" if by_time else "lost accelerator hours")),
        color=alt.Color("category:N", scale=alt.Scale(domain=names, range=colours),
                        legend=alt.Legend(title=None, orient="bottom", columns=4, labelLimit=180)),
    )  # fmt: skip
    return _drawn(chart.properties(width=_WIDTH, height=max(24 * len(order), 60)), "groups")


def failures_chart(report: FleetReport) -> Markup | None:
    """Mean time to failure by size, with its interval; an arrow where only the lower end is known."""
    rows = [
        {
            "size": row.size,
            "mttf": None if row.mttf_ns is None else row.mttf_ns / HOUR_NS,
            "low": row.mttf_low_ns / HOUR_NS,
            "high": (row.mttf_low_ns * 4 if row.mttf_high_ns is None else row.mttf_high_ns) / HOUR_NS,
            "open": row.mttf_high_ns is None,
        }
        for row in report.sizes
        if row.mttf_low_ns
    ]
    if not rows:
        return None
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("size:N", sort=[row["size"] for row in rows], axis=alt.Axis(title="accelerators", labelAngle=0))
    )
    scale = alt.Scale(type="log", nice=True)
    y = alt.Y("low:Q", scale=scale, axis=alt.Axis(title="job hours to a failure", tickCount=6, format="~r"))
    ranges = base.mark_rule(strokeWidth=2, color=_INK).encode(y=y, y2="high:Q")
    points = base.transform_filter("!datum.open").mark_point(size=90, filled=True, color=_GOOD).encode(
        y=alt.Y("mttf:Q", scale=scale)
    )  # fmt: skip
    ends = base.transform_filter("datum.open")
    arrows = ends.mark_point(size=110, shape="triangle-up", filled=True, color=_INK).encode(
        y=alt.Y("high:Q", scale=scale)
    )
    return _drawn(alt.layer(ranges, points, arrows).properties(width=_WIDTH, height=220), "failures")


def runs_chart(report: FleetReport) -> Markup | None:
    """Goodput of the runs that lost most, against their length."""
    known = [row for row in report.runs if row.goodput_percent is not None]
    by_time = not report.sums.known_time
    chosen = sorted(known, key=lambda row: (-(row.lost_hours or 0), row.goodput_percent or 0, row.job, row.run))[
        :_MOST_RUNS
    ]
    rows = []
    for row in chosen:
        amount = row.ns / HOUR_NS if by_time else hours(int(row.chip_ns or 0))
        name = f"{shorten(safe(row.job), _NAME)} {safe(row.team or '')}".strip()
        if amount > 0:
            rows.append({"hours": amount, "goodput": row.goodput_percent, "name": name})
    if len(rows) < 2:
        return None
    chart = alt.Chart(alt.Data(values=rows)).mark_point(size=36, filled=True, opacity=0.6, color=_GOOD).encode(
        x=alt.X("hours:Q", scale=alt.Scale(type="log"),
                axis=alt.Axis(title="job hours" if by_time else "accelerator hours", tickCount=8, format="~s")),
        y=alt.Y("goodput:Q", scale=alt.Scale(domain=[0, 100]), axis=alt.Axis(title="goodput, %")),
        description="name:N",
    )  # fmt: skip
    return _drawn(chart.properties(width=_WIDTH, height=260), "runs")


def _amounts(sums: Sums, *, by_time: bool) -> list[tuple[str, float]]:
    """Hours by category, productive first; what is excluded or negative is in no picture."""
    source = sums.time if by_time else sums.chip
    keys = sorted(source, key=lambda key: (key[0] != Category.PRODUCTIVE, key[0], key[1] or ""))
    return [(category_name(key), hours(source[key])) for key in keys if key[0] != Category.EXCLUDED and source[key] > 0]


def _family(category: str) -> str:
    """A category in a legend: custom events are one."""
    return short_title(category.partition(":")[0])


def _id_of(title: str) -> str:
    return next(name for name in BY_NAME if short_title(name) == title)


def _drawn(chart: alt.TopLevelMixin, name: str) -> Markup:
    return Markup(drawn_alone(chart, f"fleet-{name}"))
