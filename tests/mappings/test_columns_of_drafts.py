"""Columns of inferred rules: what is read of many lines at once is what is read of each."""

from __future__ import annotations

import numpy as np
import pytest

from goodput_cli.events.mappings.draft import columns, text_entries
from goodput_cli.events.mappings.draft.entries import Texts
from goodput_cli.events.mappings.draft.lines import LinesCollector, lines_of_texts
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
