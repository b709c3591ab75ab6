"""The renderers of `Sheet`: exact values for programs, words for people, and text that is only text."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from msgspec import UNSET, Struct, UnsetType
from rich.cells import cell_len

from goodput_cli.analysis.sheet import Audience, Column, Lazy, Sheet
from goodput_cli.errors import UsageError
from goodput_cli.report.base import Page, load_sheet_renderer
from goodput_cli.report.json import json_text
from goodput_cli.report.terminal import sparkline
from goodput_cli.vocabulary.text import as_typed
from tests.support.answers import BASE, HOSTILE, check_golden

NS = 10**9
COLUMNS = (
    Column("name", "text"),
    Column("events", "count"),
    Column("when", "instant"),
    Column("down time", "duration"),
    Column("goodput", "percent"),
    Column("", "share"),
    Column("factor", "number"),
    Column("short", "text", Audience.PEOPLE),
    Column("exact", "duration", Audience.TABLES),
)
ROWS = (
    ("plain", 3, BASE, 90 * NS + 1, 50.0, 0.5, 1.5, "eye", 1),
    (HOSTILE, None, None, None, None, None, None, None, None),
    ("=1+2", 0, BASE + 1, -NS, float("nan"), 2.0, float("inf"), "x", NS // 2),
)


class SheetAnswer(Struct, kw_only=True):
    """An answer with lists, objects and an optional key."""

    schema_version: int = 2
    rows: Sequence[dict[str, Any]] = ()
    none: Sequence[str] = ()
    one: str | None = None
    lone: Sequence[Any] | UnsetType = UNSET


def answer() -> SheetAnswer:
    return SheetAnswer(rows=[{"name": row[0], "share": row[5], "factor": row[6]} for row in ROWS])


def sheet(**changes: Any) -> Sheet:
    """Return a sheet with a cell of every kind, and hostile text everywhere."""
    made = Sheet(
        title=f"Sheet of {HOSTILE}",
        columns=COLUMNS,
        rows=ROWS,
        answer=answer,
        summary=("first line", HOSTILE),
        notes=("a note", HOSTILE),
    )
    return replace(made, **changes)


def render(name: str, shown: Sheet, **page: Any) -> str:
    text = load_sheet_renderer(name)(shown, Page(**page))
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize(("ending", "name"), [("txt", "table"), ("md", "markdown"), ("csv", "csv"), ("json", "json")])
def test_every_format_is_as_expected(ending: str, name: str) -> None:
    check_golden(f"sheet.{ending}", render(name, sheet()))


@pytest.mark.parametrize("name", ["table", "markdown", "csv", "json"])
def test_text_is_harmless(name: str) -> None:
    text = render(name, sheet(), colour=False)
    assert not any(char in text for char in "\x1b\u202e\u200b")


def test_csv_is_exact_and_names_the_unit() -> None:
    rows = list(csv.DictReader(io.StringIO(render("csv", sheet()))))
    assert list(rows[0]) == [
        "name", "events", "when", "down_time_seconds", "goodput_percent", "factor", "exact_seconds",
    ]  # fmt: skip
    assert list(rows[0].values()) == [
        "plain",
        "3",
        "2025-01-01T00:00:00Z",
        "90.000000001",
        "50.0",
        "1.5",
        "0.000000001",
    ]
    assert list(rows[1].values())[1:] == [""] * 6
    assert list(rows[2].values()) == ["'=1+2", "0", "2025-01-01T00:00:00.000000001Z", "-1", "", "", "0.5"]


def test_json_has_a_line_per_item_and_never_nan() -> None:
    text = render("json", sheet())
    value = json.loads(text, parse_constant=pytest.fail)
    assert value["schema_version"] == 2
    assert value["rows"][2] == {"name": "=1+2", "share": 2.0, "factor": None}
    assert (value["none"], value["one"]) == ([], None)
    assert text.count("\n") == 10
    assert text.isascii()


def test_json_can_always_be_encoded() -> None:
    text = json_text(SheetAnswer(lone=["\ud800", {"\udfff": "fine \U0001f600"}]))
    assert json.loads(text)["lone"] == ["\ufffd", {"\ufffd": "fine \U0001f600"}]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120, 160])
def test_no_line_is_wider_than_the_page(width: int) -> None:
    wide = sheet(rows=(*ROWS, ("漢字" * 60, 10**18, BASE, 10**18, 1e9, 1.0, 1e300, "word " * 50, 1)))
    lines = render("table", wide, width=width).splitlines()
    assert max(map(cell_len, lines)) <= max(width, 40)
    assert not any(line.endswith(" ") for line in lines)


def test_omitted_columns_are_named() -> None:
    columns = tuple(Column(f"column {number}", "count") for number in range(12))
    text = render("table", sheet(columns=columns, rows=((10**9,) * 12,)))
    assert "not shown at this width: column 6" in text
    assert text.count("column") == 12


def test_spare_columns_are_omitted_first() -> None:
    columns = (Column("job name", "text"), Column("start", "count", spare=True), Column("goodput", "percent"))
    narrow = sheet(columns=columns, rows=[("a name of thirty characters, so", 1_767_225_600, 70.0)])
    text = render("table", narrow, width=44)
    assert "70.00 %" in text
    assert text.endswith("not shown at this width: start\n")


def test_good_and_bad_differ_by_color_if_there_is_any() -> None:
    columns = (Column("points", "points", tone=lambda cell: "good" if float(cell or 0) > 0 else "bad"),)
    moved = sheet(columns=columns, rows=[(1.5,), (-2.0,)])
    assert "\x1b" not in render("table", moved, width=80)
    coloured = load_sheet_renderer("table")(moved, Page(80, colour=True))
    assert "\x1b[32m +1.50\x1b[0m" in str(coloured)
    assert "\x1b[31m -2.00\x1b[0m" in str(coloured)


def test_same_day_is_omitted() -> None:
    columns = (Column("when", "instant"),)
    assert " 00:00:00\n" in render("table", sheet(columns=columns, rows=((BASE,),)))
    text = render("table", sheet(columns=columns, rows=((BASE,), (BASE + 86_400 * NS,))))
    assert " 2025-01-01 00:00:00\n 2025-01-02 00:00:00\n" in text
    said = replace(sheet(columns=columns, rows=((BASE,), (BASE + 86_400 * NS,))), summary=("2025-01-01 to 2025-01-02",))
    assert " 01-01 00:00:00\n 01-02 00:00:00\n" in render("table", said)


def test_grouped_rows_are_for_people_only() -> None:
    grouped = sheet(columns=(Column("n", "count"),), rows=((1,), (2,)), grouped_rows=((12,),))
    assert "12" in render("table", grouped)
    assert "| 12 |" in render("markdown", grouped)
    assert render("csv", grouped) == "n\n1\n2\n"


def test_sheet_without_rows_has_no_table() -> None:
    assert render("table", sheet(title="t", rows=(), summary=("nothing",), notes=())) == " t\n nothing\n"
    assert "|" not in render("markdown", sheet(title="t", rows=(), summary=(), notes=()))
    assert render("csv", sheet(rows=())).count("\n") == 1


def test_plain_page_is_ascii() -> None:
    text = render("table", sheet(rows=ROWS[:1], title="t", summary=(), notes=()), unicode=False)
    assert text.isascii()
    assert "#" in text
    assert "\x1b" in render("table", sheet(rows=ROWS[:1]), colour=True)


def test_format_that_needs_more_than_rows_is_restricted() -> None:
    for name in ("openmetrics", "junit", "svg", "png"):
        with pytest.raises(
            UsageError, match="not available for this command; use one of table, json, csv, markdown, html, parquet"
        ):
            load_sheet_renderer(name)
    assert load_sheet_renderer("svg", ["chart"])


def test_sparkline_keeps_the_lowest_value() -> None:
    assert sparkline([0, 50, 100, None], 10, unicode=True) == "▁▅█ "
    assert sparkline([100.0] * 99 + [0.0], 10, unicode=True) == "█████████▁"
    assert sparkline([-5.0, 130.0], 10, unicode=False) == "_#"
    assert sparkline([], 10, unicode=True) == ""


@pytest.mark.parametrize(
    ("ns", "text"),
    [(3600 * NS, "1h"), (5400 * NS, "1h30m"), (90 * NS, "1m30s"), (NS // 2, "0.5s"), (86_400 * NS, "1d"), (0, "0s")],
)
def test_durations_are_written_as_typed(ns: int, text: str) -> None:
    assert as_typed(ns) == text


def test_rows_can_be_made_on_demand() -> None:
    made: list[int] = []

    def make() -> Iterator[tuple[int]]:
        for number in range(3):
            made.append(number)
            yield (number,)

    lazy = sheet(
        columns=(Column("n", "count"),), rows=Lazy(3, make), answer=lambda: SheetAnswer(rows=Lazy(0, lambda: []))
    )
    assert '"rows": []' in render("json", lazy)
    assert made == []
    assert render("csv", lazy) == "n\n0\n1\n2\n"
    render("table", lazy)
    assert made == [0, 1, 2] * 2
    assert (len(lazy.rows), lazy.rows[1], list(lazy.rows[1:])) == (3, (1,), [(1,), (2,)])
