"""JSON records and table rows of steps that are read as columns give the same as records read one by one."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from goodput_cli.events.mappings import record_columns
from goodput_cli.events.mappings.rules import MappedRecords
from goodput_cli.events.reading_options import ReadingOptions
from goodput_cli.events.text import stretches
from tests.text.test_step_columns import compare
from tests.text.test_templates import sizes_of

NOW = 1_772_452_800_000_000_000
BEGIN = datetime(2026, 3, 1, 12, tzinfo=UTC)
TIMES: dict[str, tuple[str, Callable[[float], Any]]] = {
    "seconds": ("epoch_s", lambda second: 1_772_359_200 + second),
    "whole milliseconds": ("epoch_ms", lambda second: round((1_772_359_200 + second) * 1000)),
    "text": ("iso", lambda second: (BEGIN + timedelta(seconds=second)).isoformat().replace("+00:00", "Z")),
    "text with an offset": ("iso", lambda second: (BEGIN + timedelta(seconds=second)).isoformat()),
    "text without a zone": ("iso", lambda second: str((BEGIN + timedelta(seconds=second)).replace(tzinfo=None))),
    "numbers as text": ("epoch_s", lambda second: f"{1_772_359_200 + second:.3f}"),
}
MAPPING = """
name = "own"
time = {{ format = "{format}" }}
[[rule]]
event = "step"
keys = {{ step = "n", time = "at", each = "dt", total = "of" }}
where = {{ kind = "train" }}
each = {{ unit = "s" }}
work = {{ tokens = {{ field = "tok" }} }}
[[rule]]
event = "eval"
keys = {{ took = "dt", time = "at" }}
where = {{ kind = "eval" }}
took = {{ unit = "s" }}
[[rule]]
event = "start"
keys = {{ time = "at" }}
where = {{ kind = "start" }}
[[rule]]
event = "resume"
line = "resumed from {{step:int}}"
"""


@pytest.fixture(autouse=True)
def _short_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretches, "_FEWEST", 1)
    monkeypatch.setattr(record_columns, "_FEWEST", 2)


def own_log(seed: int, time: Callable[[float], Any]) -> str:
    """Return a log with evaluations, restarts, lines of text and wrong values among records of steps."""
    draw, rows, second, step = Random(seed), list[str](), 0.0, 0
    for _ in range(400):
        second = round(second + draw.choice((0.25, 2.0, 2.0, 2.0, 2.5)), 3)
        step += 1
        record: dict[str, Any] = {"at": time(second), "kind": "train", "n": step, "dt": 2.0, "of": 500, "tok": 8192}
        fate = draw.random()
        if fate < 0.02:
            record["n"] = draw.choice((-1, "x", 1.5, True, 10**19, "", None, [1]))
        elif fate < 0.04:
            record["dt"] = draw.choice((float("nan"), -1, 0, "2.0", 1e300))
        elif fate < 0.06:
            record["at"] = draw.choice(("", "soon", -5, None, {"x": 1}))
        elif fate < 0.08:
            rows.append(json.dumps(record | {"kind": "eval", "at": time(second + 1.5), "dt": 1.5}))
        elif fate < 0.10:
            rows.append(f"DEBUG {step} objects")
        elif fate < 0.11:
            step = max(step - 20, 0)
            rows += [json.dumps(record | {"kind": "start"}), f"resumed from {step}"]
        rows.append(json.dumps(record))
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize("seed", range(2))
def test_records_as_columns_equal_records_one_by_one(name: str, seed: int) -> None:
    written, time = TIMES[name]
    hints = ReadingOptions(now_ns=NOW).with_draft(MAPPING.format(format=written))
    compare({"run.jsonl": own_log(seed, time)}, list(TIMES).index(name) + seed, hints)


def test_rows_of_a_table_as_columns_equal_rows_one_by_one() -> None:
    mapping = """
name = "own"
csv = true
[[rule]]
event = "step"
keys = { step = "step", time = "time", epoch = "epoch", of = "batches" }
epoch = { first = 0 }
"""
    rows = ["time,epoch,step,batches,loss"]
    rows += [f"{TIMES['text'][1](2.0 * at)},{at // 50},{at % 50 + 1},50,{3 - at / 400:.4f}" for at in range(400)]
    compare({"metrics.csv": "\n".join(rows) + "\n"}, 0, ReadingOptions(now_ns=NOW).with_draft(mapping))


def test_few_records_of_a_calm_log_are_read_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only those at the ends of a stretch, and at an evaluation, are read alone."""
    read = MappedRecords._read
    alone: list[int] = []

    def counted(own: MappedRecords, records: Any, at: int, output: Any) -> Any:
        alone.append(at)
        return read(own, records, at, output)

    monkeypatch.setattr(MappedRecords, "_read", counted)
    time = TIMES["seconds"][1]
    rows = [{"at": time(2.0 * at), "kind": "train", "n": at, "dt": 2.0, "of": 5000, "tok": 1} for at in range(1, 2001)]
    rows.insert(1000, {"at": time(2001), "kind": "eval", "dt": 1.0})
    text = "".join(f"{json.dumps(one)}\n" for one in rows)
    hints = ReadingOptions(now_ns=NOW).with_draft(MAPPING.format(format="epoch_s"))
    compare({"run.jsonl": text}, 0, hints)
    in_blocks, whole = len(text) // 1000, 1
    assert len(alone) < len(sizes_of(0)) * 2001 + 12 * (in_blocks + whole)  # All without columns, and few with them.
