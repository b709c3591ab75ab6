"""Inputs of capabilities: lines, the lines that belong to them, their times and jobs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.events import decode
from goodput_cli.events.accelerators.hooks import DEVICE_SAMPLES
from goodput_cli.events.capability import CollectedInputs, InputLine, InputTable
from goodput_cli.events.mappings import registry
from goodput_cli.events.text.lines import Lines
from goodput_cli.events.text.log_lines import CollectedRule, any_of
from goodput_cli.events.text.observed_line import LineCollector

RULE = CollectedRule(
    name="quota",
    anchors=("quota left:",),
    begins=re.compile(r"quota left: (\d+) GB"),
    goes_on=re.compile(r"^  - "),
    most=2,
)
STEP = "[2026-03-01 12:0{0}:00] iteration {0}/ 9 | elapsed time per iteration (ms): 60000.0 | lm loss: 1.5\n"


@dataclass(frozen=True)
class Quota:
    job: str
    where: str
    time: int | None
    left: int
    more: Sequence[str]


def _quotas(inputs: CollectedInputs) -> Iterator[Quota]:
    for one in inputs.lines:
        assert isinstance(one, InputLine)
        found = RULE.begins.search(one.text)
        yield Quota(one.job, one.where, one.time, int(found[1]), one.more)


QUOTAS: InputTable[Quota] = InputTable(name="quotas", lines=(RULE,), rows=_quotas)


@pytest.fixture
def with_quotas(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for module in (decode, registry):
        monkeypatch.setattr(module, "INPUT_TABLES", (DEVICE_SAMPLES, QUOTAS))
    registry._without_own.cache_clear()
    yield
    registry._without_own.cache_clear()


def collected(text: str, *, size: int = 1 << 20) -> list[tuple[int, str, list[str]]]:
    """Read a text in blocks of whole lines; return the number, prefix and further lines of each collected line."""
    collector, found, number = LineCollector((RULE,)), [], 1
    anchors = any_of(RULE.anchors)
    lines = text.splitlines(keepends=True)
    for at in range(0, len(lines), size):
        block = Lines("".join(lines[at : at + size]).encode())
        found += collector.feed(block, number, block.found(anchors))
        number += len(lines[at : at + size])
    return [(one.number, one.prefix, one.more) for one in found]


@pytest.mark.usefixtures("with_quotas")
def test_lines_become_a_table_with_job_time_and_location(tmp_path: Path) -> None:
    log = tmp_path / "run-a.log"
    log.write_text(
        STEP.format(1) + "[2026-03-01 12:01:30] quota left: 12 GB\n  - /ckpt\n  - /data\n  - /home\n"
        + STEP.format(2) + "quota left: 11 GB\n" + STEP.format(3)
    )  # fmt: skip
    first, last = QUOTAS.of(goodput_cli.analyze(str(log)).table)
    assert (first.job, first.left, first.more) == ("run-a", 12, ("  - /ckpt", "  - /data"))
    assert (last.left, last.more) == (11, ())
    assert first.where.endswith("run-a.log:2")
    assert first.time is not None
    assert last.time is not None
    assert last.time - first.time == 30 * 10**9  # Its own line has no time: that of the line before it counts.


@pytest.mark.usefixtures("with_quotas")
def test_lines_change_no_other_answer(tmp_path: Path) -> None:
    log = tmp_path / "run-a.log"
    plain = "".join(map(STEP.format, range(1, 10)))
    log.write_text(plain)
    before = goodput_cli.analyze(str(log)).to_dict()
    log.write_text(plain.replace(STEP.format(5), STEP.format(5) + "quota left: 9 GB\n"))
    after = goodput_cli.analyze(str(log)).to_dict()
    assert {key: after[key] for key in ("goodput", "badput", "steps")} == {
        key: before[key] for key in ("goodput", "badput", "steps")
    }


@pytest.mark.parametrize("size", [1, 2, 100])
def test_next_lines_of_the_same_process_belong_to_a_line(size: int) -> None:
    """Also in the next block, and if another process prints in between; the rank that only the first line has does not
    count."""
    text = "[rank1]:quota left: 3 GB\n[rank2]: something\n  - a\n  - b\nquota left: 2 GB\nother\n  - c\n"
    assert collected(text, size=size) == [(1, "[rank1]:", ["  - a", "  - b"]), (5, "", [])]


def test_block_of_a_silent_process_ends() -> None:
    """A line long after it belongs to something else."""
    assert collected("[3]: quota left: 3 GB\n" + "[4]: other\n" * 20 + "[3]:   - a\n") == [(1, "[3]: ", [])]


def test_first_and_last_lines_of_a_source_are_kept(tmp_path: Path) -> None:
    from goodput_cli.events.text.collector import Collector, TextPart
    from goodput_cli.events.text.log_lines import CollectedLine

    texts = Collector()
    for begin in range(0, 20_000, 100):
        lines = [CollectedLine("quota", number, "", "", "", None) for number in range(begin, begin + 100)]
        texts.add(0, TextPart(collected=lines))
    numbers = [one.number for one in texts.sources[0].collected]
    assert numbers == [*range(5_000), *range(15_000, 20_000)]
