"""Lines read as columns give the same result as lines read one by one, with any lines between them."""

from __future__ import annotations

import io
import json
import math
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from goodput_cli.events import json_documents as line_reading
from goodput_cli.events import rows
from goodput_cli.events.fast_json import Block, Columns, FastJson, learn
from goodput_cli.events.read import read_events
from goodput_cli.events.rows import constant, is_constant
from goodput_cli.events.schema import COLUMNS, Edge, EventLog, Kind
from goodput_cli.events.values import (
    END_SECOND,
    FIRST_SECOND,
    KEEP_FIRST,
    DecimalColumn,
    digit_values,
    epoch_column,
    from_digits,
    not_digits,
    round_to_us,
)
from loggen.scenario import Model, Scenario
from loggen.write import log_bytes
from tests.support.formats import ODD, ODD_ENTRIES, entry
from tests.support.logs import T0, log_file, step


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Learn a template from every line in these tests."""
    monkeypatch.setattr(FastJson, "FEW", 1)


def one_by_one(monkeypatch: pytest.MonkeyPatch, path: str) -> EventLog:
    """Return the log as read without templates, blocks and columns."""
    with monkeypatch.context() as patch:
        patch.setattr(FastJson, "read", lambda _, block: ([], np.arange(len(block), dtype=np.int64)))
        patch.setattr(line_reading, "_all_at_once", lambda _: None)
        return read_events([path])


def content(log: EventLog) -> dict[str, Any]:
    """Return all contents of a log, with resolved codes."""
    table = log.table
    coded = {"label": table.labels, "detail": table.details, "job": table.jobs, "entry": table.entries}
    said: dict[str, Any] = {name: getattr(table, name).tolist() for name in COLUMNS}
    for name, values in coded.items():
        said[name] = [repr(values[code]) if code >= 0 else None for code in said[name]]
    return said | {"formats": log.formats, "diagnostics": log.diagnostics, "jobs": table.jobs}


def assert_same(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    __tracebackhide__ = True
    assert content(read_events([path])) == content(one_by_one(monkeypatch, path))


def ordinary(count: int) -> list[bytes]:
    """Return lines that match templates."""
    return [json.dumps(step(at * 7, at * 8 + at / 64)).encode() for at in range(count)]


@given(st.lists(st.one_of(st.sampled_from(ODD), st.integers(0, 3000)), max_size=30))
@example([9, *range(1, 20), *range(9995, 10_005)])
def test_odd_lines_between_ordinary_ones_are_read(parts: list[bytes | int]) -> None:
    made = [part if isinstance(part, bytes) else json.dumps(step(part, part / 64)).encode() for part in parts]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(FastJson, "FEW", 1)
        assert_same(monkeypatch, log_file(Path(folder), *made))


@pytest.mark.parametrize("odd", ODD)
def test_each_odd_line_among_similar_lines_is_read(odd: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_same(monkeypatch, log_file(tmp_path, *ordinary(5), odd, *ordinary(5), odd, odd, *ordinary(2)))


def entries(count: int) -> list[bytes]:
    """Return envelopes that match templates."""
    times = [f"2026-01-01T00:00:{at % 60:02d}.{at:06d}Z".encode() for at in range(count)]
    return [entry(b"i%03d" % at, b"%d" % (at * 7), b"17672256%02d.25" % at, times[at]) for at in range(count)]


@pytest.mark.parametrize("odd", ODD_ENTRIES)
def test_each_odd_envelope_among_similar_ones_is_read(
    odd: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_same(monkeypatch, log_file(tmp_path, *entries(9), odd, *entries(12), odd, odd, *entries(2)))


@given(st.lists(st.one_of(st.sampled_from(ODD_ENTRIES), st.sampled_from(ODD), st.integers(0, 90)), max_size=30))
def test_odd_lines_between_envelopes(parts: list[bytes | int]) -> None:
    made = [part if isinstance(part, bytes) else entries(part + 1)[-1] for part in parts]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(FastJson, "FEW", 1)
        assert_same(monkeypatch, log_file(Path(folder), *made))


@pytest.mark.parametrize("ending", [b"", b"\n", b"\r\n", b"\n\n", b"\n "])
def test_any_file_end_and_windows_line_ends_are_read(
    ending: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for separator in (b"\n", b"\r\n"):
        path = tmp_path / "run.jsonl"
        path.write_bytes(b"\xef\xbb\xbf" + separator.join(ordinary(9)) + ending)
        assert_same(monkeypatch, str(path))


@pytest.mark.parametrize("model", list(Model))
@pytest.mark.parametrize("wrapped", [False, True])
def test_whole_logs_with_bad_lines_are_read(
    model: Model, wrapped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = Scenario(
        model=model, lines=3000, data_loading_every=3, bad_share=0.01, envelopes=wrapped, shuffle=True, seed=5
    )
    data, truth = log_bytes(scenario)
    path = tmp_path / "run.jsonl"
    path.write_bytes(data)
    assert truth.bad
    assert_same(monkeypatch, str(path))


@pytest.mark.parametrize("whole", [ordinary(300), entries(90)], ids=["bare", "wrapped"])
def test_randomly_changed_bytes_are_handled(
    whole: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(11)
    for _ in range(20):
        damaged = list(whole)
        for at in chance.sample(range(len(whole)), len(whole) * 2 // 5):
            line = bytearray(damaged[at])
            line[chance.randrange(len(line))] = chance.choice(b'0123456789.:/-eE"{}, \t\r\x00\x80\xffa')
            damaged[at] = bytes(line)
        assert_same(monkeypatch, log_file(tmp_path, *damaged))


def test_fractions_are_rounded_as_floats_are() -> None:
    chance = random.Random(3)
    whole = [chance.randrange(FIRST_SECOND, END_SECOND) for _ in range(20_000)]
    digits = [chance.randint(1, 8) for _ in whole]
    fraction = [chance.randrange(10**count) // 10 * 10 + chance.choice([0, 5, 9]) for count in digits]
    fraction = [value % 10**count for value, count in zip(fraction, digits, strict=True)]
    texts = [f"{w}.{f:0{d}d}" for w, f, d in zip(whole, fraction, digits, strict=True)]
    scaled = [f * 10 ** (8 - d) for f, d in zip(fraction, digits, strict=True)]
    ns, good = DecimalColumn(np.array(whole), np.array(scaled)).epoch_ns()
    expected, as_good = epoch_column([float(text) for text in texts])
    assert ns.tolist() == expected.tolist()
    assert good.tolist() == as_good.tolist()


def test_small_numbers_are_rounded_to_the_microsecond_exactly() -> None:
    """Durations: halves of a microsecond, their neighbours among the floats, and any others."""
    chance = random.Random(5)
    halves = [(2 * chance.randrange(10 ** chance.randint(1, 10)) + 1) / 2_000_000 for _ in range(2000)]
    near = [math.nextafter(half, chance.choice([0, math.inf])) for half in halves]
    exact = [chance.randrange(1 << 20) / (1 << chance.randint(7, 22)) for _ in range(2000)]
    values = [*halves, *near, *exact, *(chance.random() * 10 ** chance.randint(-7, 5) for _ in range(20_000))]
    ns, good = epoch_column(values)
    assert good.all()
    assert ns.tolist() == [round_to_us(value) for value in values]


def test_every_character_at_every_position_of_a_word() -> None:
    for place in range(8):
        for character in range(256):
            text = bytearray(b"12345678")
            text[place] = character
            values = digit_values(np.frombuffer(bytes(text), dtype="<u8"), KEEP_FIRST[8])
            assert (not_digits(values)[0] == 0) == (0x30 <= character <= 0x39)
            if 0x30 <= character <= 0x39:
                assert from_digits(values)[0] == int(text)


@pytest.mark.parametrize("wrapped", [False, True])
def test_ordinary_log_is_read_once_as_columns(wrapped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts records parsed one by one, and lines tried for a template."""
    monkeypatch.setattr(FastJson, "FEW", 16)
    data, _ = log_bytes(Scenario(lines=20_000, disruption_every=5000, eval_every=0, save_every=2500, envelopes=wrapped))
    path = tmp_path / "run.jsonl"
    path.write_bytes(data)
    parsed: list[int] = []
    looked: list[int] = []
    read, parse = FastJson.read, line_reading.parse_lines

    def counting_read(self: FastJson, block: Block) -> tuple[list[Columns], Any]:
        columns, rest = read(self, block)
        looked.append(sum(len(one.rows) for one in columns))
        return columns, rest

    def counting_parse(text: bytes, numbers: Any) -> Any:
        parsed.append(len(numbers))
        return parse(text, numbers)

    monkeypatch.setattr(FastJson, "read", counting_read)
    monkeypatch.setattr(line_reading, "parse_lines", counting_parse)
    log = read_events([str(path)])
    assert sum(parsed) + sum(looked) == data.count(b"\n")
    assert sum(parsed) < 0.01 * sum(looked)
    assert len(log.table) >= sum(looked)


def test_template_is_learned_only_from_a_plain_line() -> None:
    assert learn(json.dumps(step(1, 0.5)).encode()) is not None
    for odd in (b"{}", b"[1]", b'{"a": [1]}', b'{"a": -1}', b'{"a": 1e5}', b'{"a": 1, "a": 2}', b'{"a": null, "b": 1}'):
        assert learn(odd) is None
    assert learn(b'{"job_name": "j", "x": 1.5, "y": 2.5}') is None
    assert learn(b'{"job_name": "j", "l": {}, "x": 1}') is None


def test_envelope_is_learned_only_with_an_identity() -> None:
    assert learn(entry()) is not None
    assert learn(entry().replace(b"insertId", b"otherId")) is None
    assert learn(entry().replace(b'"timestamp"', b'"moment"')) is None
    assert learn(entry().replace(b'"logName": "l"', b'"logName": true')) is None
    assert learn(b'{"jsonPayload": 12345678, "insertId": "a", "timestamp": "2026-01-01T00:00:05Z"}') is None


def test_records_of_columns_are_parsed_on_demand() -> None:
    lines = ordinary(23)[20:]
    block = Block(b"".join(line + b"\n" for line in lines))
    (columns,), _ = FastJson().read(block)
    records = columns.take(np.array([True, False, True])).records
    assert len(records) == 2
    assert records[1] == step(22 * 7, 22 * 8 + 22 / 64)
    assert [one["step_start_time"] for one in records] == [T0 + at * 8 + at / 64 for at in (20, 22)]
    assert list(records[1:]) == [records[1]]
    assert io.BytesIO(block.text(np.array([1]))).readline() == lines[1] + b"\n"


def test_column_of_one_value_takes_no_memory(tmp_path: Path) -> None:
    """Saves are read in another way than steps; that must not create four full columns for the log."""
    data, _ = log_bytes(Scenario(lines=20_000, save_every=50))
    path = tmp_path / "run.jsonl"
    path.write_bytes(data)
    table = read_events([str(path)]).table
    assert len(set(table.detail.tolist())) > 100
    assert all(is_constant(getattr(table, name)) for name in ("job", "source", "rank", "entry"))


@pytest.mark.parametrize("piece", [1, 3, 1 << 20])
def test_names_are_numbered_in_order_of_first_use(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_PIECE", piece)
    builder, codes = rows.RowBuilder(), np.array([3, -1, 1, 3, 1, 4], dtype=np.int32)
    order, none = np.arange(6), constant(6, -1)
    origin = rows.Origin(0, order, order + 1, none, constant(6, 0))
    builder.add(origin, np.ones(6, dtype=bool), Kind.CUSTOM, Edge.POINT, order, label=codes)
    builder.end_block()
    labels = ("a", "b", "c", "d", "e")
    table = rows.build_table(builder.columns(), jobs=("j",), labels=labels, sources=("f",), details=(), entries=())
    assert table.labels == ("d", "b", "e")
    assert table.label.tolist() == [0, -1, 1, 0, 1, 2]
