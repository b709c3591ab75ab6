"""A saved answer of `analyze` as a side: detected by its contents, accepted only if it adds up."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput_cli.analysis.compare.results import OTHER_RULES, moved_between
from goodput_cli.analysis.compare.saved_analysis import summary_of_saved, with_current_values
from goodput_cli.analysis.summary import summary_of
from goodput_cli.api.compare import compare
from goodput_cli.errors import GoodputError, SourceError
from goodput_cli.report.base import Page
from tests.support.answers import as_json as render
from tests.support.story import account, custom, end, save, start, steps

ANALYSIS = account(
    start(0), steps(0, 9, at=0), save(85, 5, 8), custom("EVAL", 90, 95), start(200), steps(6, 9, at=210), end(310)
).analysis
LOG = "".join(f"{line}\n" for line in [start(0), *steps(0, 9, at=0), end(100)])
Damage = Callable[[dict[str, Any]], None]


def saved() -> dict[str, Any]:
    """A fresh copy of a saved answer."""
    value: dict[str, Any] = orjson.loads(render(ANALYSIS, Page()))
    return value


@pytest.fixture
def folder(folder: Path) -> Path:
    (folder / "run.jsonl").write_text(LOG)
    return folder


def kinds(*sources: str) -> list[bool]:
    """Return, for each side, True if it was read as a saved answer."""
    return [side.saved for side in compare(sources).sides]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("baseline.json", json.dumps(saved(), indent=2)),
        ("compact.json", json.dumps(saved())),
        ("sorted.txt", json.dumps(saved(), indent=1, sort_keys=True)),
        ("run.jsonl.bak", "\n\n" + json.dumps(saved(), indent=2) + "\n\n"),
        ("mark.json", "\ufeff" + json.dumps(saved(), indent=2)),
    ],
)
def test_saved_analysis_is_detected_by_content(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text, encoding="utf-8")
    assert kinds(name, "run.jsonl") == [True, False]


def test_saved_values_of_version_1_are_read_as_current_values() -> None:
    row = {"cause_certainty": "said", "recovery": "not said", "ended": "crashed"}
    likely = {"cause_certainty": "likely", "recovery": "by hand", "ended": "crashed"}
    document = saved() | {"schema_version": 1, "disruptions": [row, likely], "last_end": {"certainty": "said"}}
    current = with_current_values(document)
    assert current["disruptions"] == [{"cause_certainty": "confirmed", "recovery": None, "ended": "crashed"}, likely]
    assert current["last_end"] == {"certainty": "confirmed"}


def test_saved_analysis_may_be_compressed(folder: Path) -> None:
    (folder / "baseline.json.gz").write_bytes(gzip.compress(json.dumps(saved()).encode()))
    assert kinds("baseline.json.gz", "run.jsonl") == [True, False]


def test_a_log_called_json_is_a_log(folder: Path) -> None:
    (folder / "log.json").write_text(LOG)
    (folder / "pretty.json").write_text("\n".join(json.dumps(json.loads(line), indent=2) for line in LOG.splitlines()))
    (folder / "array.json").write_text(json.dumps([json.loads(line) for line in LOG.splitlines()]))
    assert kinds("log.json", "pretty.json", "array.json") == [False, False, False]


def test_lines_that_have_such_a_key_too_are_a_log(folder: Path) -> None:
    lines = [json.dumps({"schema_version": 3, **json.loads(line)}) for line in LOG.splitlines()]
    (folder / "versioned.jsonl").write_text("\n".join(lines))
    (folder / "pretty.jsonl").write_text("\n".join(json.dumps(json.loads(line), indent=1) for line in lines[::-1]))
    assert kinds("versioned.jsonl", "run.jsonl") == [False, False]


def test_saved_analysis_gives_the_same_summary() -> None:
    assert summary_of_saved(saved(), "x") == summary_of(ANALYSIS)


def test_answer_of_other_rules_is_compared_but_not_judged(folder: Path) -> None:
    older = saved()
    del older["rules"]
    (folder / "older.json").write_text(json.dumps(older))
    comparison = compare(["older.json", "run.jsonl"], changes=["mtbf:-1h", "kept_steps:-100", "steps.median:+10%"])
    moved, *others = comparison.thresholds
    assert (moved.met, moved.hint) == (None, OTHER_RULES)
    assert [one.met for one in others] == [False, False]
    (told,) = (one for one in comparison.diagnostics if one.code == "rules_differ")
    assert "uses version 1 of the rules and" in told.message
    assert moved_between(summary_of(ANALYSIS), summary_of(ANALYSIS)) == frozenset()


def test_answer_without_method_and_saves_is_read() -> None:
    older = saved()
    del older["method"], older["saves"], older["elastic"], older["at_risk"], older["reliability"], older["disruptions"]
    found = summary_of_saved(older, "x")
    assert (found.method, found.saves, found.each_disruption, found.mtbf_seconds) == (None, None, None, None)


def test_older_answer_without_kind_is_read() -> None:
    older = saved()
    del older["kind"]
    assert summary_of_saved(older, "x") == summary_of(ANALYSIS)


def damaged(path: str, value: Any) -> Damage:
    """The answer with another value at `a.b.0.c`."""
    *way, last = path.split(".")

    def damage(answer: dict[str, Any]) -> None:
        part: Any = answer
        for key in way:
            part = part[int(key)] if key.isdigit() else part[key]
        part[int(last) if last.isdigit() else last] = value

    return damage


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("schema_version", 3, "schema_version 3, but this goodput reads 2"),
        ("schema_version", "1", "schema_version 1, but"),
        ("schema_version", None, "schema_version None"),
        ("kind", "rolling", "another answer of goodput (its kind is 'rolling')"),
        ("kind", None, "another answer of goodput"),
        ("goodput.ns", 1, "do not add up"),
        ("goodput.ns", 0.5, "goodput.ns: expected `int | null`, got"),
        ("goodput.ns", True, "goodput.ns: expected `int | null`, got"),
        ("goodput.ns", -1, "goodput.ns: expected `int` >= 0"),
        ("goodput.ns", 1 << 63, "badput"),
        ("goodput", [], "goodput: expected `object`"),
        ("badput.0.ns", -5, "badput[0].ns is not a duration"),
        ("badput.0.category", "goodput", "not a category of badput"),
        ("badput.0.category", "excluded", "not a category of badput"),
        ("badput.0.category", 7, "badput[0].category: expected `str`"),
        ("badput.0.label", "X", "does not match"),
        ("badput", {}, "badput: expected `array`"),
        ("badput", [1], "badput[0]: expected `object`"),
        ("window.start", "yesterday", "window.start: has the wrong format"),
        ("window.start", "2020-01-01T00:00:00Z", "not the time from"),
        ("window.ns", 0, "window.ns: expected `int` >= 1"),
        ("window.excluded_ns", 310 * 10**9, "all of the window is excluded"),
        ("job.name", None, "job.name: expected `str`"),
        ("job.kept_steps", -1, "job.kept_steps: expected `float` >= 0"),
        ("steps.p99_seconds", "fast", "steps.p99_seconds: expected `float | null`"),
        ("steps.count", None, "steps.count: expected `int`"),
        ("not_recorded", "queued", "not_recorded: expected `array`"),
        ("not_recorded", ["other", "program_startup", "wasted_progress_from_disruption"], "listed as not recorded"),
        ("disruptions.0.wasted_seconds", None, "disruptions[0].wasted_seconds: expected `float`"),
        ("method.data_loading", "sometimes", "method.data_loading: invalid enum value"),
        ("method.async_saves", "no", "method.async_saves: expected `bool`"),
        ("diagnostics", [{"code": "x", "severity": "grave"}], "diagnostics[0].severity: invalid enum value"),
    ],
)
def test_file_not_from_analyze_is_rejected_with_a_message(path: str, value: Any, words: str) -> None:
    answer = saved()
    damaged(path, value)(answer)
    with pytest.raises(SourceError) as refused:
        summary_of_saved(answer, "baseline.json")
    assert str(refused.value).startswith("baseline.json: ")
    assert words in str(refused.value)
    assert "`goodput analyze" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (json.dumps(saved(), indent=2)[:-40], "not a complete"),
        (
            json.dumps(saved(), indent=2).replace('"kept_steps":', '"kept_steps": NaN, "x":'),
            "not a complete",
        ),
        ('{"schema_version": 1, "job": {}}', "it has no 'window'"),
        ('{"schema_version": 1, "sides": [], "comparisons": []}', "another answer of goodput"),
        ('{"schema_version": 1e999}', "not a complete"),
        ('{\n"schema_version": ' + "[" * 100_000 + "\n", "not a complete"),
    ],
)
def test_similar_file_is_an_error_without_traceback(folder: Path, text: str, words: str) -> None:
    (folder / "baseline.json").write_text(text)
    with pytest.raises(SourceError, match=words):
        compare(["baseline.json", "run.jsonl"])


def test_saved_analysis_in_a_folder_is_not_a_log(folder: Path) -> None:
    """A file that goodput wrote next to the logs is not a log: the directory is read as its log."""
    (folder / "all").mkdir()
    (folder / "all" / "a.json").write_text(json.dumps(saved(), indent=2))
    (folder / "all" / "b.jsonl").write_text(LOG)
    among, alone = compare(["all", "run.jsonl"]).sides
    assert (among.saved, among.goodput) == (False, alone.goodput)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def json_paths(value: Any, path: str = "") -> list[str]:
    """Return every location in a JSON value, as `damaged` takes it."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, inner in parts for place in (f"{path}{key}", *json_paths(inner, f"{path}{key}."))]


@given(st.sampled_from(json_paths(saved())), VALUES)
def test_any_invalid_value_gives_one_sentence(path: str, value: Any) -> None:
    answer = saved()
    damaged(path, value)(answer)
    try:
        summary = summary_of_saved(answer, "x")
    except GoodputError:
        return
    assert (summary.goodput_ns or 0) + sum(summary.badput.values()) == summary.window.counted_ns
