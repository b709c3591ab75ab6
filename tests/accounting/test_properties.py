"""Properties of all logs (accounting §1): generated runs, legal and torn, read by the real reader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import goodput_cli
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.errors import NotEnoughData
from goodput_cli.vocabulary.categories import Category
from tests.strategies import JOB, any_logs, messy_logs, shifted, step_end_logs, unchanged_answers

slowly = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
Lines = Sequence[str]


def analyse(*files: Lines, **question: object) -> Analysis | None:
    """Return the analysis of a log split into files, all runs as one job; None if it spans no time."""
    with TemporaryDirectory() as folder:
        paths = []
        for number, lines in enumerate(files):
            path = Path(folder, f"{number}.jsonl")
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
            paths.append(path)
        try:
            return goodput_cli.analyze(paths, job_name=JOB, run="all", **question)  # type: ignore[arg-type]
        except NotEnoughData:
            return None


def answer(analysis: Analysis | None) -> dict[str, object] | None:
    """Return the parts in which two analyses of the same events must agree."""
    if analysis is None:
        return None
    job, segments = analysis.job, analysis.timeline.segments
    return {
        "job": (job.start_ns, job.end_ns, job.ending, job.attempts, job.runs, job.disruptions, job.kept_steps),
        "steps": (job.first_step, job.last_step, analysis.steps),
        "goodput": analysis.goodput.ns,
        "badput": sorted((row.name, row.ns) for row in analysis.badput),
        "overlapped": [row.ns for row in analysis.overlapped],
        "at_risk": analysis.at_risk,
        "not_recorded": analysis.not_recorded,
        "segments": [
            (start, end, category)
            for start, end, category in zip(
                segments.start.tolist(), segments.end.tolist(), segments.category.tolist(), strict=True
            )
        ],
    }


def questions() -> st.SearchStrategy[dict[str, object]]:
    """Return options of an analysis."""
    return st.fixed_dictionaries(
        {},
        optional={
            "reference_step_time": st.sampled_from(["auto", "1", "2.5", "7.000000001"]),
            "data_loading": st.just("blocking"),
            "async_saves": st.just(True),
            "stall_factor": st.sampled_from([0.0, 1.0, 3.0]),
            "exclude": st.sampled_from([("+20s/+50s",), ("+0s/+7s", "+5s/+61s"), ("-40s/-10s",)]),
            "exclude_stopped": st.just(True),
            "planned": st.sampled_from(["yes", "no"]),
            "as_of": st.sampled_from(["+1m", "+3m", "-30s"]),
        },
    )


def amounts(analysis: Analysis) -> Iterator[int]:
    yield analysis.goodput.ns
    yield from (row.ns for row in analysis.badput)


@slowly
@given(st.one_of(any_logs(), messy_logs()), questions())
def test_all_time_is_in_exactly_one_category(lines: Lines, question: dict[str, object]) -> None:
    analysis = analyse(lines, **question)
    if analysis is None:
        return
    segments, window = analysis.timeline.segments, analysis.window
    assert sum(amounts(analysis)) == window.counted_ns
    assert segments.start[0] == analysis.job.start_ns == window.start_ns
    assert segments.end[-1] == analysis.job.end_ns == window.end_ns
    assert (segments.start[1:] == segments.end[:-1]).all()
    assert (segments.start < segments.end).all()
    assert all(row.ns > 0 for row in analysis.badput if row.category != "training_slowdown")
    assert analysis.goodput.ns >= 0


@slowly
@given(st.one_of(any_logs(), messy_logs()), questions(), st.data())
def test_windows_that_tile_the_job_add_up(lines: Lines, question: dict[str, object], data: st.DataObject) -> None:
    analysis = analyse(lines, **question)
    if analysis is None:
        return
    start, end = analysis.job.start_ns, analysis.job.end_ns
    cuts = sorted(data.draw(st.lists(st.integers(start, end), max_size=12)))
    edges = np.array([start, *cuts, end])
    ledger = analysis.timeline.ledger
    pieces, whole = ledger.between(edges[:-1], edges[1:]), ledger.between(edges[:1], edges[-1:])
    assert {key: int(value.sum()) for key, value in pieces.items()} == {key: int(v[0]) for key, v in whole.items()}
    assert np.array_equal(np.sum(list(pieces.values()), axis=0), np.diff(edges))


@slowly
@given(st.data(), any_logs(), questions())
def test_answer_does_not_depend_on_order_or_files(
    data: st.DataObject, lines: Lines, question: dict[str, object]
) -> None:
    changed = data.draw(unchanged_answers(list(lines)))
    assert answer(analyse(*changed, **question)) == answer(analyse(lines, **question))


@settings(slowly)
@given(st.data(), step_end_logs(), questions(), st.integers(1, 10**8))
@pytest.mark.usefixtures("step_end_lines")
def test_step_end_answer_does_not_depend_on_order_or_time(
    data: st.DataObject, lines: Lines, question: dict[str, object], seconds: int
) -> None:
    here = analyse(lines, **question)
    assert answer(analyse(*data.draw(unchanged_answers(list(lines))), **question)) == answer(here)
    there = analyse(shifted(list(lines), seconds), **question)
    assert (here is None) == (there is None)
    if here is not None and there is not None:
        assert sum(amounts(here)) == here.window.counted_ns
        assert list(amounts(there)) == list(amounts(here))


@slowly
@given(any_logs(), st.integers(1, 10**8))
def test_shift_of_all_times_shifts_the_answer(lines: Lines, seconds: int) -> None:
    here, there = analyse(lines), analyse(shifted(list(lines), seconds))
    if here is None or there is None:
        assert here is there
        return
    assert there.job.start_ns - here.job.start_ns == seconds * 10**9
    assert [(row.name, row.ns) for row in there.badput] == [(row.name, row.ns) for row in here.badput]


@slowly
@given(any_logs())
def test_frames_contain_the_same_seconds(lines: Lines) -> None:
    analysis = analyse(lines)
    if analysis is None:
        return
    frame = analysis.segments
    assert (frame["start"].to_numpy()[1:] == frame["end"].to_numpy()[:-1]).all()
    productive = frame.loc[frame["category"] == "productive"]
    length = int((productive["end"].astype("int64") - productive["start"].astype("int64")).sum())
    assert length - frame["slowdown_ns"].sum() == analysis.goodput.ns
    assert len(analysis.events) == len(analysis.table)


@slowly
@given(any_logs())
def test_as_of_the_end_equals_no_as_of(lines: Lines) -> None:
    """Compare `--as-of` the end of the job with no `--as-of`."""
    whole = analyse(lines)
    if whole is not None:
        known = analyse(lines, as_of=whole.job.end_ns)
        assert known is not None
        assert known.job.end_ns == whole.job.end_ns
        if whole.timeline.ended:
            assert answer(known) == answer(whole)


@pytest.mark.parametrize("category", [Category.OTHER, Category.PRODUCTIVE])
def test_each_category_is_listed_once(category: Category) -> None:
    from goodput_cli.vocabulary.categories import CATEGORIES

    assert CATEGORIES.index(CATEGORIES[category]) == category
    assert len(set(CATEGORIES)) == len(Category)
