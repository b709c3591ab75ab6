"""Tables and results declared once: the results of a declaration, and the errors of a wrong one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import pytest

from goodput_cli.analysis.json_fields import Count, Instant, Json, written
from goodput_cli.analysis.sheet import Audience, Column
from goodput_cli.analysis.table import TableDeclaration, attribute, column, columns_of
from goodput_cli.analysis.to_json import json_type
from goodput_cli.report.json import json_text

SECOND = 10**9


@dataclass(frozen=True)
class Outage:
    """A row."""

    number: int = column("count", "from 1", heading="no.")
    down_ns: int = column("duration", "until it was up", heading="downtime")
    why: str | None = column("text", "the cause", heading="why")


OUTAGES = TableDeclaration("outage", "an outage", columns_of(Outage, attribute))
ROWS = [Outage(1, 90 * SECOND, None), Outage(2, 5 * SECOND, "preempted")]


def headings(table: TableDeclaration, without: Sequence[str] = ()) -> list[str]:
    return [one.heading for one in table.sheet_columns(without) if one.audience & Audience.PEOPLE]


def test_columns_keep_the_order_of_their_declaration() -> None:
    assert headings(OUTAGES) == ["no.", "downtime", "why"]
    assert [one.head() for one in OUTAGES.table_columns()] == ["number", "down_seconds", "why"]
    assert OUTAGES.of_rows(ROWS).json()[0] == {"number": 1, "down_seconds": 90.0, "why": None}


def test_columns_for_people_have_their_own_order() -> None:
    table = TableDeclaration("outage", "", OUTAGES.columns, people=("why", "no.", "downtime"), first=("why",))
    assert headings(table) == ["why", "no.", "downtime"]
    assert headings(table, without=["no."]) == ["why", "downtime"]
    assert [one.head() for one in table.table_columns()] == ["why", "number", "down_seconds"]
    assert list(table.of_rows(ROWS).cells(table.people_columns()))[1] == ("preempted", 2, 5 * SECOND)


def test_column_that_hides_another_is_an_error() -> None:
    for twice in (
        Column("other", "text", Audience.PEOPLE, title="why"),
        Column("number", "text", Audience.TABLES),
        Column("x", "text", Audience.JSON, key="why"),
    ):
        with pytest.raises(ValueError, match="two columns are called"):
            TableDeclaration("outage", "", (*OUTAGES.columns, twice))


def test_heading_missing_in_the_order_for_people_is_an_error() -> None:
    with pytest.raises(ValueError, match="downtime"):
        TableDeclaration("outage", "", OUTAGES.columns, people=("no.", "why"))


def test_dataframe_has_the_columns_of_csv() -> None:
    frame = OUTAGES.of_rows(ROWS[:0]).to_frame()
    assert list(frame) == ["number", "down_seconds", "why"]


@written("part", nulls=True)
@dataclass(frozen=True)
class Part:
    """A part that can be missing."""

    steps: Annotated[float, Json("whole")]
    bounds: Annotated[tuple[float | None, float | None], Json(missing=(None, None))]


@written("span", keys="start_ns ns end_ns")
@dataclass(frozen=True)
class Span:
    """Some time."""

    start_ns: Instant
    end_ns: Instant

    @property
    def ns(self) -> Annotated[Count, Json("seconds and ns", ns="in ns")]:
        """its length"""
        return self.end_ns - self.start_ns


def span(pair: tuple[int, int]) -> Span:
    return Span(*pair)


@written(
    "whole_answer",
    "an answer",
    kind="test",
    keys="count lost_ns share part longest spans by_name rows left_out",
)
@dataclass(frozen=True)
class Answered:
    """An answer with a field of every kind."""

    hidden: object
    lost_ns: Annotated[int | None, Json("seconds")]
    """what was lost"""
    count: Count
    share: Annotated[float, Json(key="fraction")]
    part: Part | None
    longest: Annotated[tuple[int, int] | None, Json(made=span, kind=Span)]
    spans: tuple[Annotated[tuple[int, int], Json(made=span, kind=Span)], ...]
    by_name: dict[str, Span]
    rows: Annotated[Sequence[Outage], OUTAGES]
    left_out: Annotated[str | None, Json(optional=True)] = None


def answer(**more: Any) -> Any:
    given = {"part": None, "longest": (0, SECOND), "spans": (), "by_name": {}, "rows": ROWS[:1], **more}
    return json.loads(json_text(Answered(object(), 3 * SECOND // 2, 2, 0.5, **given)))


def test_result_is_written_as_its_fields_declare() -> None:
    got = answer()
    assert list(got) == [
        "schema_version",
        "kind",
        "rules",
        "count",
        "lost_seconds",
        "fraction",
        "part",
        "longest",
        "spans",
        "by_name",
        "rows",
    ]
    assert (got["kind"], got["count"], got["lost_seconds"], got["fraction"]) == ("test", 2, 1.5, 0.5)
    assert got["part"] == {"steps": None, "bounds": [None, None]}
    assert got["longest"] == {
        "start": "1970-01-01T00:00:00Z", "seconds": 1.0, "ns": SECOND, "end": "1970-01-01T00:00:01Z"
    }  # fmt: skip


def test_whole_numbers_are_written_as_integers() -> None:
    assert repr(answer(part=Part(3.0, (None, 1.0)))["part"]["steps"]) == "3"
    assert repr(answer(part=Part(3.5, (None, 1.0)))["part"]["steps"]) == "3.5"


def test_optional_field_is_written_if_known() -> None:
    assert answer(left_out="x")["left_out"] == "x"


def test_saved_answer_is_read_by_the_same_declaration() -> None:
    saved = {**answer(), "rows": []}
    read: Any = msgspec.convert(saved, json_type(Answered).saved)
    assert (read.count, read.lost_seconds, read.longest.ns) == (2, 1.5, SECOND)
    with pytest.raises(msgspec.ValidationError, match=r"`\$.count`"):
        msgspec.convert({**saved, "count": -1}, json_type(Answered).saved)


def read_back(saved: Any) -> Any:
    of = json_type(Answered)
    return of.back(msgspec.convert(saved, of.saved))


LONG = 2**55 + 1
"""ns of more than a year, which a float of seconds cannot represent exactly."""


def test_value_that_is_read_is_a_result_again() -> None:
    saved = answer(spans=((0, SECOND),), by_name={"a": Span(0, SECOND)}, part=Part(3.5, (None, 1.0)), rows=[])
    read = read_back(saved)
    assert (read.hidden, read.left_out, read.share, read.lost_ns) == (None, None, 0.5, 3 * SECOND // 2)
    assert (read.part, read.longest, read.spans) == (Part(3.5, (None, 1.0)), Span(0, SECOND), (Span(0, SECOND),))
    assert (saved["by_name"]["a"]["seconds"], read.by_name) == (1.0, {"a": Span(0, SECOND)})
    assert read_back(answer(rows=[])).part is None


def test_seconds_are_unchanged_after_reading_and_writing() -> None:
    saved = {**answer(rows=[]), "lost_seconds": LONG / 1e9}
    read = read_back(saved)
    assert read.lost_ns / 1e9 == LONG / 1e9
