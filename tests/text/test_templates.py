"""Lines read by template have the same events as lines read one by one."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from goodput_cli.events.mappings import registry
from goodput_cli.events.mappings.draft.text_entries import text_entries, text_groups, texts_in_bytes
from goodput_cli.events.mappings.registry import Mappings
from goodput_cli.events.text.causes import shipped_rows
from goodput_cli.events.text.collector import TextPart
from goodput_cli.events.text.date_positions import depends_on_digits
from goodput_cli.events.text.scan import TextLines
from goodput_cli.events.text.stretches import expanded
from goodput_cli.events.text.templates import LineReader, ReadLine
from goodput_cli.sources.base import RawBatch
from tests.support.draws import EXPLORES, drawn, number_of
from tests.text.case_set import CASES
from tests.text.support import SAMPLES

ROOT = Path(__file__).parents[2]
RULES = Mappings().ruleset
_TEXT = (".log", ".out", ".txt", ".jsonl")
BLOCKS = (1 << 10, 1 << 20)
_MOST = 6_000
"""Number of characters read per log, to limit the time of the test."""
_LEAST = 2_000


def logs() -> Iterator[tuple[str, str]]:
    """Yield each sample log and each log of a case, with its name."""
    for folder in (SAMPLES, ROOT / "sample_logs"):
        for path in sorted(folder.rglob("*")):
            if path.suffix in _TEXT:
                yield path.name, path.read_text("utf-8", errors="replace")
    for path in sorted(CASES.glob("*.toml")):
        for number, case in enumerate(tomllib.loads(path.read_text("utf-8"))["case"]):
            for name, text in {"log": case.get("log", ""), **case.get("files", {})}.items():
                if text:
                    yield f"{path.stem}-{number}-{name}", text
    yield "samples of mappings", "\n".join(_sample_lines())


def _sample_lines() -> Iterator[str]:
    folder = Path(registry.__file__).parent / "shipped"
    for path in sorted(folder.glob("*.toml")):
        yield from (one["line"] for one in tomllib.loads(path.read_text("utf-8"))["sample"] if "line" in one)
    yield from (row.sample for row in shipped_rows().rows if row.sample)


def other_digits(text: str, by: int) -> str:
    return re.sub("[0-9]", lambda digit: str((int(digit[0]) + by) % 10), text)


def repeated(text: str) -> str:
    """Return a log followed by itself, and by itself with other digits, including invalid times, steps and
    durations."""
    shifted = (other_digits(text, by) for by in (0, 0, 3))
    return "".join(one if one.endswith("\n") else f"{one}\n" for one in shifted)


def parts(text: str, size: int) -> list[TextPart]:
    """Return the content of a log read in blocks of whole lines of about a size."""
    reader, line, found = TextLines(RULES), 1, []
    data = text.encode()
    while data:
        end = data.find(b"\n", size) + 1 or len(data)
        batch = RawBatch("train.log", line, data[:end], 0)
        found.append(reader.feed(batch).text)
        line, data = line + batch.data.count(b"\n"), data[end:]
    found.append(reader.finish().text)
    told = [one for one in found if one is not None]
    return [replace(one, log_lines=expanded(one.log_lines)) for one in told]


def sizes_of(number: int) -> tuple[int, ...]:
    """Return the sizes of blocks in which a log is read, drawn by a number. GOODPUT_EXPLORE takes all."""
    return BLOCKS if EXPLORES else (BLOCKS[number % len(BLOCKS)],)


LOGS = dict(logs())


@pytest.mark.parametrize("name", LOGS)
def test_templates_change_no_log_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = repeated(LOGS[name][:_MOST])
    sizes = sizes_of(number_of(name))
    found = [parts(text, size) for size in sizes]
    monkeypatch.setattr(LineReader, "_template", lambda *_: None)
    assert found == [parts(text, size) for size in sizes]


@pytest.mark.parametrize("name", drawn(LOGS, 2, 1))
def test_templates_change_no_entry_of_a_draft(name: str) -> None:
    lines = repeated(LOGS[name][:_LEAST]).split("\n")
    assert drafted_entries(lines) == [entry for line in lines for entry in drafted_entries([line])]


def drafted_entries(lines: list[str]) -> list[tuple[object, ...]]:
    """Return what a draft makes of each line: its text, where its message and its time are, and its values."""
    source = np.zeros(len(lines), dtype=np.int64)
    entries = text_entries(texts_in_bytes(lines, source, lambda at: (lines[at], "train.log:1")), "", 0)
    values: dict[int, tuple[str, ...]] = {}
    for group in text_groups(entries):
        texts = zip(*(one.texts for one in group.columns), strict=True) if group.columns else [()] * len(group)
        values |= dict(zip(group.rows.tolist(), texts, strict=True))
    return [(one.text, one.begin, one.span, values[row]) for row, one in enumerate(entries)]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"step (?P<step>\d+)/(?:[\d.]+|nan)", False),
        (r"[^|]*\w+\s\S[0-9a-f]+", False),
        (r"step [1-9]", True),
        (r"rank 0", True),
        (r"[^0]", True),
        (r"(a)\1", True),
        (r"(?:x|y5)", True),
        (r"(?!\d:)(?<=\d)[^\d]", False),
        (r"\z", True),
    ],
)
def test_pattern_depends_on_digits_only_if_it_contains_some(pattern: str, expected: bool) -> None:
    assert depends_on_digits(pattern) is expected


def test_templates_and_lines_seen_once_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goodput_cli.events.text.templates._MOST", 4)
    reader = TextLines(RULES)
    words = "".join(f"saving checkpoint at iteration 7 to /{chr(97 + at)}\n" * 3 for at in range(20))
    reader.feed(RawBatch("train.log", 1, words.encode(), 0))
    kept = reader._reader
    assert max(len(kept._seen), *map(len, kept._templates)) <= 4


def test_few_lines_are_read_without_their_template(monkeypatch: pytest.MonkeyPatch) -> None:
    alone: list[str] = []
    read = LineReader._read_alone

    def counted(reader: LineReader, raw: str, overwritten: bool) -> ReadLine:
        alone.append(raw)
        return read(reader, raw, overwritten)

    monkeypatch.setattr(LineReader, "_read_alone", counted)
    line = " [2026-03-01 10:00:00] iteration {:8d}/ 1000 | elapsed time per iteration (ms): 1000.0 | lm loss: 2.5 |\n"
    text = "".join(map(line.format, range(1, 501)))
    (part, _) = parts(text, 1 << 20)
    assert len(part.log_lines) == 500
    assert len(alone) <= 3  # The number has one, two or three digits.
