"""Comparisons of any two logs: properties that are always true."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
from hypothesis import given

from goodput_cli.analysis.compare.compare import compare_sides
from goodput_cli.analysis.compare.results import Side, parse_change
from goodput_cli.analysis.compare.saved_analysis import summary_of_saved
from goodput_cli.analysis.goodput.analyse import evaluate
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.goodput.thresholds import parse_threshold
from goodput_cli.analysis.measures import MEASURES, value_of
from goodput_cli.analysis.summary import summary_of
from goodput_cli.api.compare import compare
from goodput_cli.report.base import Page, load_sheet_renderer
from tests.accounting.test_properties import analyse, questions, slowly
from tests.analysis.test_compare import LOGS, as_side, pair
from tests.strategies import any_logs
from tests.support.answers import as_json as render


def summaries(*logs: list[str], **question: Any) -> tuple[Side, Side] | None:
    """Both sides; None where one cannot be analysed or judged, which is compared with nothing."""
    one, two = (analyse(lines, **question) for lines in logs)
    if one is None or two is None or one.goodput_unknown or two.goodput_unknown:
        return None
    return as_side("one", summary_of(one)), as_side("two", summary_of(two))


@slowly
@given(LOGS, LOGS, questions())
def test_points_always_add_up(one: list[str], two: list[str], question: dict[str, Any]) -> None:
    sides = summaries(one, two, **question)
    if sides is not None:
        made = pair(*sides)
        assert sum(found.points or 0 for found in made.contributions) + made.one_sided == made.points
        assert made.points == sides[1].percent - sides[0].percent


@slowly
@given(LOGS, questions())
def test_a_log_against_itself_changes_nothing(lines: list[str], question: dict[str, Any]) -> None:
    sides = summaries(lines, lines, **question)
    if sides is not None:
        made = pair(*sides)
        assert made.points == made.one_sided == 0
        assert {found.points for found in made.contributions} <= {0}
        assert {found.change for found in made.changes} <= {0, None}


@slowly
@given(LOGS, LOGS)
def test_swapping_the_sides_turns_every_sign(one: list[str], two: list[str]) -> None:
    sides = summaries(one, two)
    if sides is None:
        return
    there, back = pair(*sides), pair(sides[1], sides[0])
    assert (there.points, there.one_sided) == (-back.points, -back.one_sided)
    turned = {(found.category, found.label): found.points for found in back.contributions}
    for found in there.contributions:
        other = turned.pop((found.category, found.label))
        assert found.points is None if other is None else found.points == -other
    assert not turned
    for forth, returned in zip(there.changes, back.changes, strict=True):
        assert forth.change is None if returned.change is None else forth.change == -returned.change


@slowly
@given(LOGS, questions())
def test_saved_analysis_compares_like_the_log(lines: list[str], question: dict[str, Any]) -> None:
    analysis = analyse(lines, **question)
    if analysis is not None:
        assert summary_of_saved(orjson.loads(render(analysis, Page())), "saved") == summary_of(analysis)


@slowly
@given(LOGS, questions())
def test_a_name_measures_the_same_in_one_log_and_in_a_comparison(lines: list[str], question: dict[str, Any]) -> None:
    analysis = analyse(lines, **question)
    if analysis is not None:
        summary = summary_of(analysis)
        for name in MEASURES:
            asked = parse_threshold(f"{name}>0")
            value = value_of(summary, name, None, asked.unit)
            (judged,) = evaluate([asked], analysis)
            assert (judged.met, judged.value) == ((None, None) if value is None else (value > 0, float(value))), name


@slowly
@given(LOGS, LOGS)
def test_every_format_can_be_written(one: list[str], two: list[str]) -> None:
    sides = summaries(one, two)
    if sides is not None:
        sheet = compare_sides(sides[0], sides[1:], [parse_change("goodput:-2pp")]).sheet()
        for name in ("table", "json", "csv", "markdown"):
            assert load_sheet_renderer(name)(sheet, Page())


@slowly
@given(any_logs())
def test_from_files_and_from_a_saved_analysis_comes_the_same(lines: list[str]) -> None:
    analysis: Analysis | None = analyse(lines)
    if analysis is None or analysis.goodput_unknown:
        return
    with TemporaryDirectory() as folder:
        log, answer = Path(folder, "log.jsonl"), Path(folder, "saved.txt")
        log.write_text("\n".join(lines) + "\n", encoding="utf-8")
        text = render(analysis, Page())
        assert isinstance(text, str)
        answer.write_text(text.replace(f"{folder}/", ""), encoding="utf-8")
        (made,) = compare([answer, log], job_name=[analysis.job.name]).pairs
        assert made.points == 0
        assert {found.points for found in made.contributions} <= {0}
        assert (made.baseline.saved, made.side.saved) == (True, False)
