"""Log contents are untrusted: each bad line is a diagnostic with its number, and good lines next to it count."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from goodput_cli.events.formats import registry as formats
from goodput_cli.events.json_documents import JsonLinesReader, _one_by_one
from goodput_cli.events.read import read_events
from goodput_cli.sources.base import RawBatch
from tests.support.logs import codes, found, lines, log_file, read_lines, rows, step, where
from tests.support.logs import recorded_steps_of as steps

GOOD = json.dumps(step(1, 1))
BAD_LINES: list[tuple[Any, str, str]] = [
    ("not json at all", "malformed_lines", "not JSON"),
    ("{'job_name': 'j'}", "malformed_lines", "not JSON"),
    ("\0" * 64, "malformed_lines", "not JSON"),
    (GOOD[:-10], "malformed_lines", "truncated object"),
    ('{"job_name": "j', "malformed_lines", "truncated object"),
    ("{", "malformed_lines", "truncated object"),
    (GOOD + GOOD, "malformed_lines", "more than one JSON value"),
    (GOOD + ", " + GOOD, "malformed_lines", "more than one JSON value"),
    ("null", "malformed_lines", "not an object"),
    ("5", "malformed_lines", "not an object"),
    ('"text"', "malformed_lines", "not an object"),
    (f"[{GOOD}]", "malformed_lines", "not an object"),
    (b'{"job_name": "\xff\xfe"}', "malformed_lines", "not UTF-8"),
    (b"\x80\x81", "malformed_lines", "not UTF-8"),
    ("[" * 100_000, "malformed_lines", "nested too deep"),
    ('{"a":' * 100_000, "malformed_lines", "nested too deep"),
    ('{"a": ' + "1" * 5_000 + "}", "malformed_lines", "not JSON"),
    ("{}", "unrecognised_lines", "no log format"),
    ('{"job_name": "j"}', "unrecognised_lines", "no log format"),
    ('{"message": "hello", "level": "info"}', "unrecognised_lines", "no log format"),
    ('{"step_count": 1, "step_start_time": 1}', "missing_job_name", "`job_name`"),
    ('{"job_name": "", "job_start_time": 1}', "missing_job_name", "`job_name`"),
    ('{"job_name": null, "job_start_time": 1}', "missing_job_name", "`job_name`"),
    ('{"job_name": 5, "job_start_time": 1}', "bad_value", "`job_name`"),
    ('{"job_name": ["j"], "job_start_time": 1}', "bad_value", "`job_name`"),
    ('{"job_name": "j", "job_start_time": NaN}', "bad_value", "`job_start_time`"),
    ('{"job_name": "j", "job_start_time": -Infinity}', "bad_value", "`job_start_time`"),
    (f'{{"job_name": "j", "step_count": {2**60 + 1}, "step_start_time": 3}}', "bad_value", "`step_count`"),
]


@pytest.mark.parametrize(("line", "code", "reason"), BAD_LINES, ids=[str(at) for at in range(len(BAD_LINES))])
def test_bad_line_affects_no_other_line(tmp_path: Path, line: Any, code: str, reason: str) -> None:
    log = read_lines(tmp_path, step(1, 1), step(2, 2), line, step(4, 4))
    assert steps(log.table) == [1, 2, 4]
    assert lines(log.table) == [1, 2, 4]
    (told,) = log.diagnostics
    assert (told.code, told.count, told.where) == (code, 1, (f"{tmp_path}/run.jsonl:3",))
    assert reason in told.message
    assert told.severity == ("warning" if code == "unrecognised_lines" else "error")


def test_all_bad_lines_at_once_are_reported(tmp_path: Path) -> None:
    mixed = [line for bad, _, _ in BAD_LINES for line in (bad, step(1, 1))]
    log = read_lines(tmp_path, *mixed)
    assert lines(log.table) == list(range(2, 2 * len(BAD_LINES) + 1, 2))
    told = sorted(int(place) for code in codes(log) for place in where(log, code))
    assert told == list(range(1, 2 * len(BAD_LINES), 2))


def test_object_over_two_lines_is_two_bad_lines(tmp_path: Path) -> None:
    log = read_lines(tmp_path, step(1, 1), '{"job_name": "j",\n"job_start_time": 1}', step(4, 4))
    assert lines(log.table) == [1, 4]
    assert sorted(where(log, "malformed_lines")) == ["2", "3"]


def test_empty_array_before_lines_of_objects_is_a_bad_line(tmp_path: Path) -> None:
    log = read_lines(tmp_path, "[]", '{"job_name": "j", "step_cou', step(3, 3), "null", step(5, 5))
    assert lines(log.table) == [3, 5]
    assert sorted(where(log, "malformed_lines")) == ["1", "2", "4"]


def test_empty_arrays_before_an_array_are_empty_pages(tmp_path: Path) -> None:
    log = read_lines(tmp_path, "[]", "[", json.dumps(step(3, 3)) + ",", step(4, 4), "]")
    assert (lines(log.table), log.diagnostics) == ([3, 4], ())


def test_truncated_last_line_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(GOOD + "\n" + GOOD[:-3])
    log = read_events([str(path)])
    assert (lines(log.table), where(log, "malformed_lines")) == ([1], ["2"])


def test_huge_line_is_reported(tmp_path: Path) -> None:
    log = read_lines(tmp_path, step(1, 1), {**step(2, 2), "note": "x" * 5_000_000}, "y" * 5_000_000, step(4, 4))
    assert steps(log.table) == [1, 2, 4]
    assert where(log, "malformed_lines") == ["3"]


def test_json_only_the_standard_library_reads_is_accepted(tmp_path: Path) -> None:
    names = ["\\ud800", "a\\ud83d\\ude00b", "\\uDC00x"]
    odd = [f'{{"job_name": "{name}", "job_start_time": 1, "note": NaN}}' for name in names]
    log = read_lines(
        tmp_path, *odd, b"\xef\xbb\xbf" + GOOD.encode(), '{"job_name": "j", "job_end_time": 2, "n": 1e999}'
    )
    assert log.table.jobs == ("\ufffd", "a\U0001f600b", "\ufffdx", "j")
    assert [name.encode() for name in log.table.jobs]
    assert codes(log) == {"unknown_keys"}


def test_log_text_is_kept_unchanged(tmp_path: Path) -> None:
    name = "\x1b[31m\u202ered | [bold]"
    assert read_lines(tmp_path, step(1, 1, job=name)).table.jobs == (name,)


def test_locations_are_sorted_and_bounded_with_an_exact_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goodput_cli.diagnostics.diagnostic.MAX_PLACES", 5)
    log = read_lines(tmp_path, *["{junk"] * 12)
    (told,) = found(log, "malformed_lines")
    assert told.count == 12
    assert [place.rpartition(":")[2] for place in told.where] == ["1", "2", "3", "4", "5"]


def test_locations_are_ordered_by_file_and_line(tmp_path: Path) -> None:
    b = log_file(tmp_path, *["{junk"] * 11, name="b.log")
    a = log_file(tmp_path, "{junk", name="a.log")
    (told,) = found(read_events([b, a]), "malformed_lines")
    assert told.where == (*(f"{b}:{number}" for number in range(1, 12)), f"{a}:1")


def test_error_in_a_format_of_another_package_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class BeatsFormat:
        name = "beats"
        keys = frozenset({"job_name", "beat"})

        def recognises(self, record: Any) -> bool:
            return "beat" in record

        def translate(self, records: Any, output: Any) -> Any:
            time, good = output.times(records, "beat")
            output.rows.add(records.origin, good, formats_kind(), formats_edge(), time)
            return good

    from goodput_cli.events.schema import Edge, Kind

    def formats_kind() -> Kind:
        return Kind.STEP

    def formats_edge() -> Edge:
        return Edge.POINT

    class EntryPointStub:
        name, value = "beats", "other:Beats"

        def load(self) -> Any:
            return BeatsFormat

    class BrokenEntryPoint(EntryPointStub):
        name = "broken"

        def load(self) -> Any:
            raise ImportError("no module named other")

    monkeypatch.setattr(formats, "plugged_in", lambda: (BrokenEntryPoint(), EntryPointStub()))
    log = read_lines(tmp_path, {"job_name": "j", "beat": 1}, step(1, 1))
    assert [row[0] for row in rows(log)] == ["STEP", "STEP"]
    assert log.format_names == (("beats", "recorder"),)
    assert "no module named other" in found(log, "format_plugin_failed")[0].message


_FRAGMENTS = [
    "{",
    "}",
    "{}",
    "},{",
    "} , {",
    "[",
    "]",
    ",",
    ":",
    '"',
    '"a":',
    "1",
    "\n",
    "\n",
    "}\n{",
    '{"a":1}',
    "\\",
    " ",
    "\r\n",
    "[{}",
    "{}]}",
]


@given(st.lists(st.sampled_from(_FRAGMENTS), max_size=14).map("".join))
@example('{"a":[{}\n{}]}\n{},{}\n')
@example('{"a":1}\n{"a":1},2,{"a":1}\n{"a":"}\n{"}\n')
def test_a_block_parsed_at_once_gives_what_its_lines_give(text: str) -> None:
    data = text.encode() + b"\n"
    block = JsonLinesReader().feed(RawBatch("s", 1, data))
    single = _one_by_one(data, np.arange(1, data.count(b"\n") + 1))
    assert list(block.records) == list(single.records)
    assert block.lines.tolist() == single.lines.tolist()
    assert list(block.bad) == list(single.bad)


def test_damaged_log_never_raises_and_keeps_good_lines(tmp_path: Path) -> None:
    chance = random.Random(7)
    whole = [json.dumps(step(number, number)).encode() for number in range(400)]
    for _ in range(30):
        damaged, touched = list(whole), set(chance.sample(range(400), 40))
        for at in touched:
            line = bytearray(whole[at])
            for _ in range(chance.randint(1, 6)):
                line[chance.randrange(len(line))] = chance.choice([b for b in range(256) if b != 10])
            damaged[at] = bytes(line)
        log = read_lines(tmp_path, *damaged)
        kept = set(lines(log.table))
        assert {at + 1 for at in range(400) if at not in touched} <= kept
        told = {int(place) for code in codes(log) for place in where(log, code)}
        assert kept | told == set(range(1, 401))
