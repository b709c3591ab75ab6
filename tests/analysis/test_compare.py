"""Two runs side by side: the sources of the difference in goodput, and inconclusive results."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from goodput_cli.analysis.compare.compare import compare_sides
from goodput_cli.analysis.compare.phrases import fact_is_better, fact_words, length_line, moved_lines, work_lines
from goodput_cli.analysis.compare.results import Contribution, Pair, Side, parse_change
from goodput_cli.analysis.compare.sheet import change_chart
from goodput_cli.analysis.compare.work import PRODUCTIVE
from goodput_cli.analysis.measures import MEASURES
from goodput_cli.analysis.summary import Summary, summary_of
from goodput_cli.api.compare import compare
from tests.strategies import any_logs, messy_logs
from tests.support.story import (
    Lines,
    account,
    custom,
    end,
    finished,
    loaded,
    prep,
    save,
    saved,
    start,
    started,
    steps,
    terminated,
)

SAMPLES = Path(__file__).parents[2] / "sample_logs"
NIGHT_LOG, SECOND_LOG = SAMPLES / "llm-pretrain.jsonl", SAMPLES / "llm-pretrain-r2.jsonl"
SECOND = 10**9
SAVE = "unproductive_checkpoint_save_time"
PREP = "training_prep"


def side(name: str, *events: Lines, **options: Any) -> Side:
    """Return a side built from a story."""
    return as_side(name, summary_of(account(*events, **options).analysis))


def as_side(name: str, summary: Summary) -> Side:
    return Side(name, f"{name}.jsonl", False, None, summary)


def pair(baseline: Side, other: Side, *expressions: str) -> Pair:
    (made,) = compare_sides(baseline, [other], [parse_change(text) for text in expressions]).pairs
    return made


def contribution(made: Pair, category: str, label: str | None = None) -> Contribution:
    (found,) = (one for one in made.contributions if (one.category, one.label) == (category, label))
    return found


def fact(made: Pair, name: str) -> tuple[Any, Any, Any]:
    (found,) = (one for one in made.changes if one.measure.name == name)
    return found.baseline, found.value, found.change


FAST_SAVES = side("fast", start(0), prep(0, 20), steps(0, 9, at=20), save(100, 10, 8), end(120))
SLOW_SAVES = side("slow", start(0), prep(0, 20), steps(0, 17, at=20), save(180, 40, 16), end(240))


def test_category_points_are_the_difference_of_shares() -> None:
    made = pair(FAST_SAVES, SLOW_SAVES)
    assert contribution(made, PREP).points == Fraction(100 * 20, 120) - Fraction(100 * 20, 240)
    assert contribution(made, SAVE).points == Fraction(100 * 10, 120) - Fraction(100 * 40, 240)
    assert contribution(made, SAVE).baseline_ns == 10 * SECOND
    assert contribution(made, SAVE).ns == 40 * SECOND


def test_the_points_add_up_to_the_change_of_goodput_exactly() -> None:
    made = pair(FAST_SAVES, SLOW_SAVES)
    assert made.points == SLOW_SAVES.percent - FAST_SAVES.percent
    assert sum(one.points or 0 for one in made.contributions) + made.one_sided == made.points


def test_largest_change_comes_first() -> None:
    made = pair(FAST_SAVES, SLOW_SAVES)
    sizes = [abs(one.points) for one in made.contributions if one.points is not None]
    assert sizes == sorted(sizes, reverse=True)
    assert {one.points > 0 for one in made.contributions if one.points} == {True, False}


def test_points_are_worth_time_of_the_other_window() -> None:
    made = pair(FAST_SAVES, SLOW_SAVES)
    assert made.worth_ns(Fraction(10)) == 24 * SECOND


def test_category_of_one_side_has_no_points() -> None:
    without = side("without", start(0), steps(0, 9, at=20), end(120))
    made = pair(without, FAST_SAVES)
    saves = contribution(made, SAVE)
    assert (saves.baseline_ns, saves.ns, saves.points) == (None, 10 * SECOND, None)
    assert made.one_sided == -Fraction(100 * (20 + 10), 120)
    assert sum(one.points or 0 for one in made.contributions) + made.one_sided == made.points


def test_recorded_zero_is_zero() -> None:
    outside = side("outside", start(0), prep(0, 20), steps(0, 9, at=20), save(100, 10, 8), end(120), window=(30, 80))
    assert contribution(pair(outside, FAST_SAVES), SAVE).baseline_ns == 0


def test_custom_events_are_compared_label_by_label() -> None:
    told = (start(0), steps(0, 9, at=0))
    before = side("before", *told, custom("EVAL", 80, 90), custom("OLD", 90, 95), end(100))
    after = side("after", *told, custom("EVAL", 80, 85), custom("NEW", 85, 90), end(100))
    made = pair(before, after)
    assert contribution(made, "custom_badput_events", "EVAL").points == 5
    assert contribution(made, "custom_badput_events", "OLD").points is None
    assert contribution(made, "custom_badput_events", "NEW").points is None
    assert made.one_sided == 0


def test_other_changes_are_listed() -> None:
    first = [started(0), loaded(0, 10), finished(10, 110), saved(10, 120), finished(20, 220), saved(20, 240)]
    again = [started(300), loaded(20, 320), finished(30, 420), saved(30, 440)]
    made = pair(side("one", *first, terminated(250)), side("two", *first, *again, terminated(450)))
    assert fact(made, "attempts") == (1, 2, 1)
    assert fact(made, "disruptions") == (0, 1, 1)
    assert fact(made, "disruptions.silent") == (0, 1, 1)
    assert fact(made, "saves.count") == (2, 3, 1)
    assert fact(made, "saves.time") == (15, Fraction(10 + 20 + 20, 3), Fraction(5, 3))
    assert fact(made, "window") == (250, 450, 200)


def test_there_is_nothing_to_average_without_a_disruption() -> None:
    made = pair(FAST_SAVES, SLOW_SAVES)
    for name in ("mtbf", "mean_downtime", "mean_wasted", "mean_steps_lost"):
        assert fact(made, name) == (None, None, None)
        assert MEASURES[name].is_empty(FAST_SAVES.summary)
    assert not MEASURES["steps.p99"].is_empty(FAST_SAVES.summary)


def test_missing_categories_are_described() -> None:
    without = side("without", start(0), steps(0, 9, at=20), end(120))
    made = pair(FAST_SAVES, without)
    words = {one.measure.name: fact_words(made, one) for one in made.changes}
    assert words["mtbf"] == ("none", "none", "")
    assert words["saves.interval"] == ("none", "not recorded", "not recorded")
    assert words["saves.count"] == ("1", "not recorded", "not recorded")
    assert words["window"] == ("2 min 00 s", "2 min 00 s", "0 s")


def test_step_times_that_were_not_recorded_are_not_zero() -> None:
    checkpoints = side("c", started(0), loaded(0, 10), finished(10, 110), saved(10, 120), terminated(130))
    made = pair(checkpoints, FAST_SAVES)
    assert fact(made, "steps.median") == (None, 10, None)
    assert fact(made, "steps.count") == (None, 8, None)


def test_differing_methods_are_reported() -> None:
    told = (start(0), steps(0, 9, at=0), end(100))
    plain = side("plain", *told)
    other = side("other", *told, reference="9.5", data_loading="blocking", stall_factor=0.0)
    (found,) = compare_sides(plain, [other]).diagnostics
    assert (found.code, found.severity) == ("methods_differ", "warning")
    assert "reference step time 9.5 s (given) instead of none" in found.message
    assert "--data-loading blocking instead of overlapped" in found.message
    assert "--stall-factor 0 instead of 5" in found.message
    assert compare_sides(plain, [replace(plain, name="again")]).diagnostics == ()


def test_every_other_side_is_compared_with_the_baseline() -> None:
    found = compare_sides(FAST_SAVES, [SLOW_SAVES, FAST_SAVES], [parse_change("goodput:-1pp")])
    assert [made.baseline.name for made in found.pairs] == ["fast", "fast"]
    assert [one.name for one in found.sides] == ["fast", "slow", "fast"]
    assert found.pairs[1].points == 0
    assert len(found.thresholds) == 2


# Properties of any two logs.

LOGS = st.one_of(any_logs(), messy_logs())


def test_changes_are_listed_largest_first() -> None:
    """The changes in words, largest first, with amounts."""
    pair = compare([NIGHT_LOG, SECOND_LOG]).pairs[0]
    worse, better = moved_lines(pair)
    assert (
        worse == "worse for the same work: recovery 3.9 % (5 min 22 s), evaluation 3.5 % (4 min 54 s)"
    )  # and 2 % of it
    assert better == "better for the same work: wasted progress 9.5 % (13 min 07 s)"
    (said,) = length_line(pair)
    assert said.startswith("run lengths differ (2 h 15 min against 11 h 11 min)")
    words = {one.measure.name: fact_is_better(pair, one) for one in pair.changes}
    assert (words["mean_downtime"], words["mean_steps_lost"]) == ("worse", "better")
    shares = {one.measure.name: one.change for one in pair.changes if one.measure.dimension == "ratio" and one.change}
    assert pair.work is None or pair.work.is_clear or not any(words[name] for name, by in shares.items() if abs(by) < 2)
    assert words["mtbf"] == "", "by less than a tenth, and nobody knows what it varies by"
    assert (words["disruptions"], words["saves.count"], words["window"]) == ("", "", "")
    assert (words["steps.median"], words["steps.p90"]) == ("", "")  # a slow stretch in one run: nobody can tell


def test_equal_time_is_not_better_in_a_longer_window() -> None:
    """Steps of 1.05 s instead of 1 s, and the preparation as it was: its share fell, and nothing is better."""
    mon, tue = (
        side(name, start(0), prep(0, 20), steps(0, 1500, at=20, every=every), end(20 + 1500 * every))
        for name, every in (("mon", 1.0), ("tue", 1.05))
    )
    made = pair(mon, tue)
    assert all(one.points > 0 for one in made.contributions if one.points)
    assert contribution(made, PREP).moved is None
    assert [*moved_lines(made)] == []
    chart = change_chart(made)
    assert chart is not None
    assert [(name, word) for name, _, word in chart.moved if word] == [("productive", "worse")]
    (said,) = work_lines(made)
    assert "more than noise" in said
    assert made.same_work is not None
    gained = sum((one.work_seconds or 0) * 10**9 for one in made.contributions)
    assert gained + made.same_work.gained_ns(PRODUCTIVE) == -made.same_work.in_all_ns


def test_the_chart_shows_the_largest_changes_first() -> None:
    chart = change_chart(compare([NIGHT_LOG, SECOND_LOG]).pairs[0])
    assert chart is not None
    assert [name for name, *_ in chart.moved[:3]] == ["wasted progress", "recovery", "evaluation"]
    assert "Change in time for the same work" in chart.words
    assert change_chart(compare([NIGHT_LOG, NIGHT_LOG]).pairs[0]) is None


def test_side_names_differ_by_their_paths(tmp_path: Path) -> None:
    for folder in ("monday", "tuesday"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "run.jsonl").write_text(NIGHT_LOG.read_text())
    found = compare([tmp_path / "monday" / "run.jsonl", tmp_path / "tuesday" / "run.jsonl"])
    assert [one.name for one in found.sides] == ["monday/run.jsonl", "tuesday/run.jsonl"]
