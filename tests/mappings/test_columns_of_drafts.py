"""Columns of inferred rules: what is read of many lines at once is what is read of each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput_cli.events.mappings.draft import columns, record_entries, text_entries
from goodput_cli.events.mappings.draft.entries import Entry, Texts
from goodput_cli.events.mappings.draft.guess import step_guesses
from goodput_cli.events.mappings.draft.lines import LinesCollector, lines_of_texts
from goodput_cli.events.mappings.draft.record_entries import records_of_lines
from goodput_cli.events.mappings.draft.records import taken_apart
from goodput_cli.events.mappings.draft.rules import Rule, loaded
from goodput_cli.events.mappings.draft.text_entries import texts_in_bytes

NUMBERS = [
    ["7", "30412", "007"], ["1,250", "12", "1,000,000"], ["+3", "4"], ["-3", "4"], ["1.0", "2.00"], ["1.0", "2.50"],
    ["0.75", "12.345678"], ["3e-05", "1.5E+3"], ["nan", "1"], ["inf", "2"], ["00:07", "1:02:03"], ["1h 2m", "3"],
    ["9" * 15, "1"], ["9" * 16, "1"], ["123456789.0123456789", "1"], ["1.2.3", "4"], ["word", "\u00e9t\u00e9"],
    ["5.", ".5"],
]  # fmt: skip


@pytest.mark.parametrize("texts", NUMBERS, ids="-".join)
@pytest.mark.parametrize("few", [1, 100])
def test_columns_are_the_numbers_of_their_texts(texts: list[str], few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_entries, "_FEW", few)
    lines = [f"loss {text} word\u00e9" for text in texts]
    source = np.zeros(len(lines), dtype=np.int64)
    entries = text_entries.text_entries(texts_in_bytes(lines, source, lambda at: (lines[at], "")), "", 0)
    for one in entries.templates:
        one.values = ((5, 5 + one.length - len(" word\u00e9".encode()) - 5),)
    values, plain = entries.column(np.arange(len(lines)), 0), Texts(texts)
    assert list(values.texts) == texts
    assert np.array_equal(values.numbers, plain.numbers, equal_nan=True)
    assert (values.whole is None) == (plain.whole is None)
    assert plain.whole is None or np.array_equal(np.asarray(values.whole), plain.whole)


STEPS = {
    "plain": ("line = 'step {step:int} loss {_} took {each:float}s'", "step {n} loss 2.{n} took 0.{n}s"),
    "thousands": ("line = 'step {step:int} loss'", "step {n:,} loss 2.5"),
    "epochs": (
        "line = 'epoch {epoch:int} step {step:int}/{of:int} loss'\nepoch = { first = 0 }",
        "epoch {e} step {i}/50 loss 2",
    ),
    "milliseconds": (
        "line = 'step {step:int} loss {_} dt {each:float}'\neach = { unit = 'ms' }",
        "step {n} loss 1 dt {n}.5",
    ),
    "rate": ("line = 'step {step:int} at {each:float} it/s'\neach = { unit = 'per_s' }", "step {n} at {n}.25 it/s"),
    "clock": ("line = 'step {step:int} after {elapsed:clock} of'", "step {n} after 0:{i:02d}:07 of 1:00:00"),
    "prefixes": ("line = 'step {step:int} loss'", "[rank{i}]: step {n} loss 2"),
    "colors": ("line = 'step {step:int} loss'", "\x1b[3{i}mstep\x1b[0m {n} loss 2"),
    "collected": ("line = 'step {step:int} loss'", "2026-03-01T10:{i:02d}:07.123456789Z step {n} loss 2"),
    "long": ("line = 'step {step:int} {_} loss'", "step {n} " + 90 * "\x1b[3{i}mword\x1b[0m " + "loss 2"),
    "epoch times": ("line = '{time:float} step {step:int} loss'", "17723592{i:02d}.25 step {n} loss 2"),
    "records": (
        "keys = { step = 'it', each = 'dt', time = 'at.ts' }\nwhere = { kind = 'train' }",
        '{{"it": {n}, "dt": 0.{n}, "kind": "train", "at": {{"ts": "2026-03-01T10:{i:02d}:07Z"}}}}',
    ),
    "messages": (
        "keys = { text = 'message', time = 'ts' }\nline = 'step {step:int} took {each:float}s'",
        '{{"ts": "2026-03-01T10:{i:02d}:07Z", "message": "step {n} took 0.{n}s"}}',
    ),
    "dates": ("line = 'step {step:int} loss'", "2026-03-01 10:{i:02d}:07,123 INFO step {n} loss 2"),
    "wrong": ("line = 'step {step:int} took {each:float}s'", "step {n} took {n}e9s"),
}


@pytest.mark.parametrize("name", STEPS)
def test_steps_read_together_are_those_of_each_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keys, line = STEPS[name]
    texts = [line.format(n=n, e=n // 50, i=n % 50) for n in range(1, 1200, 7)]
    made = loaded(["name = 'x'"], [Rule("step", (keys,), texts[0], 1)])
    assert made is not None
    log = taken_apart(lines_of_texts(("train.log", at, text) for at, text in enumerate(texts, 1)), 0)
    together = columns.read_columns(made, log.entries)
    monkeypatch.setattr(columns, "_FEW", 10**6)
    alone = columns.read_columns(made, log.entries)
    assert len(together.rows) == (0 if name == "wrong" else len(texts))
    for one, other in zip(together, alone, strict=True):
        assert np.array_equal(one, other, equal_nan=one.dtype == np.float64)


def test_collected_lines_are_those_of_their_sources() -> None:
    collected = LinesCollector(1000, 5)
    collected.add("a.log", 1, b"one\r\n\xff two\n")
    collected.add("b.log", 1, b"\n  \nthree\rfour\r\nsix")
    lines = collected.lines()
    assert list(lines.texts()) == ["one", "\N{REPLACEMENT CHARACTER} two", "", "  ", "three\rfour"]
    assert [lines.where(at) for at in range(5)] == ["a.log:1", "a.log:2", "b.log:1", "b.log:2", "b.log:3"]
    assert not lines.whole
    states = lines.full().states(every=True)
    assert [lines.data[b:e] for b, e in zip(states.begin, states.end, strict=True)][-2:] == [b"three", b"four"]
    assert len(lines.full().states(every=False).begin) == 3


VALUES = st.one_of(
    st.integers(-(10**18), 10**18), st.integers(0, 9), st.floats(allow_nan=False), st.booleans(), st.none(),
    st.text(max_size=3), st.just(""), st.lists(st.integers(), max_size=1),
)  # fmt: skip
RECORDS = st.lists(
    st.dictionaries(st.sampled_from("abc"), st.one_of(VALUES, st.dictionaries(st.sampled_from("ab"), VALUES))),
    min_size=1,
    max_size=12,
)


def plain(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a record by path, except lists."""
    found: dict[str, Any] = {}
    for key, value in record.items():
        inner = plain(value) if isinstance(value, dict) else {"": value}
        found |= {f"{key}.{own}".rstrip("."): one for own, one in inner.items()}
    return {key: one for key, one in found.items() if one is not None and not isinstance(one, list)}


@given(RECORDS)
def test_columns_of_records_are_their_values(records: list[dict[str, Any]]) -> None:
    lines = [json.dumps(one) for one in records]
    entries = records_of_lines(lines_of_texts(("a.jsonl", at, text) for at, text in enumerate(lines, 1)))
    assert entries is not None
    every = np.arange(len(records))
    want = [plain(one) for one in records]
    assert [entry.line for entry in entries] == lines
    assert repr([dict(entry.values) for entry in entries]) == repr(want)
    for path in ("a", "b.a"):
        assert repr(np.array(entries.column(path, every), dtype=object).tolist()) == repr(
            [one.get(path) for one in want]
        )
    groups = [rows.tolist() for rows in entries.alike(["a", "b"], ["c"])]
    of = [(one.get("a", "") != "", one.get("b", "") != "", repr(one.get("c"))) for one in want]
    assert sorted(groups) == sorted([at for at, key in enumerate(of) if key == own] for own in set(of))


def test_no_object_is_created_per_record(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    for many in (500, 4000):
        texts = [json.dumps({"ts": 1772323200 + n / 4, "step": n, "loss": 1 / n}) for n in range(1, many)]
        made = 0

        def count(*fields: Any, **more: Any) -> Entry:
            nonlocal made
            made += 1
            return Entry(*fields, **more)

        monkeypatch.setattr(record_entries, "Entry", count)
        log = taken_apart(lines_of_texts(("a.jsonl", at, text) for at, text in enumerate(texts, 1)), 0)
        guesses = step_guesses(log)
        assert guesses
        assert np.array_equal(guesses[0].done, np.arange(1, many))
        counts.append(made)
    assert counts[0] == counts[1] < 20
