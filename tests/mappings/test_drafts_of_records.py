"""Drafts of JSON lines: kinds of records, their processes, and words about other events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.api.check import draft_mapping
from tests.mappings.drafting import drafted
from tests.text.support import codes, seconds

BEGIN = datetime(2026, 3, 1, 12, tzinfo=UTC)
Record = tuple[float, Mapping[str, object]]


def when(second: float) -> str:
    return (BEGIN + timedelta(seconds=second)).isoformat().replace("+00:00", "Z")


def lines(records: Iterable[Record]) -> str:
    return "".join(json.dumps({"at": when(second), **record}) + "\n" for second, record in records)


def steps(first: int, stop: int, begin: float, each: float, **more: object) -> list[Record]:
    """Return records of steps, each at its end."""
    return [(begin + each * (at + 1 - first), {**more, "step": at}) for at in range(first, stop)]


def of(tmp_path: Path, records: Iterable[Record]) -> Analysis:
    return drafted(tmp_path, lines(records), "run.jsonl")


def test_pair_of_records_is_a_save(tmp_path: Path) -> None:
    """100 steps of 5 s; after every 25th a save of 40 s, with a record of its begin and one of its end."""
    records: list[Record] = []
    for quarter in range(4):
        begin = quarter * (25 * 5 + 40)
        records += steps(25 * quarter, 25 * quarter + 25, begin, 5, event="train_step_end")
        last = {"step": 25 * quarter + 24}
        records += [
            (begin + 125, {"event": "ckpt_begin", **last}), (begin + 165, {"event": "ckpt_end", **last}),
        ]  # fmt: skip
    analysis = of(tmp_path, records)
    assert seconds(analysis)["unproductive_checkpoint_save_time"] == 160
    assert analysis.saves is not None
    assert analysis.saves.count == 4


def test_records_of_steps_may_have_no_kind(tmp_path: Path) -> None:
    """As above, in a log whose steps have metrics instead of a kind, next to lines that are no records."""
    records: list[Record] = []
    for quarter in range(4):
        begin, last = quarter * (25 * 5 + 40), {"step": 25 * quarter + 24}
        records += steps(25 * quarter, 25 * quarter + 25, begin, 5, loss=1.5)
        records += [(begin + 125, {"event": "save_begin", **last}), (begin + 165, {"event": "save_end", **last})]
    analysis = drafted(tmp_path, f"Using 8 devices\n{lines(records)}Goodbye\n", "run.log")
    assert seconds(analysis)["unproductive_checkpoint_save_time"] == 160
    assert analysis.saves is not None
    assert analysis.saves.count == 4


def test_starts_minutes_apart_are_separate_attempts(tmp_path: Path) -> None:
    """Step 100 did not hang for six minutes: the program was started three times, and died twice before a step."""
    records: list[Record] = [(0, {"event": "boot"}), *steps(0, 100, 60, 3, event="step")]
    records += [(second, {"event": "boot"}) for second in (480, 600, 720)]
    records += steps(80, 150, 780, 3, event="step")
    analysis = of(tmp_path, records)
    assert (analysis.job.attempts, len(analysis.disruptions)) == (4, 3)
    assert not any(one.code == "hang" for one in analysis.insights)


@pytest.mark.parametrize(("key", "first", "second"), [("rank", 0, 1), ("host", "gpu-00", "gpu-01")])
def test_steps_of_one_of_several_processes_are_read(tmp_path: Path, key: str, first: object, second: object) -> None:
    own = steps(0, 200, 0, 5, **{key: first})
    other = [(at + 0.25, {**record, key: second}) for at, record in own]
    analysis = of(tmp_path, sorted([*own, *other], key=lambda one: one[0]))
    assert (analysis.job.kept_range, len(analysis.disruptions)) == ((2, 200), 0)
    said = [one.message for one in analysis.diagnostics if one.code == "drafted_mapping"]
    assert any(f"only the steps of `{key}` {first} are read (2 processes)" in one for one in said)


def test_steps_of_evaluations_are_not_the_steps(tmp_path: Path) -> None:
    """An evaluation writes 30 records after every tenth step, more than training does."""
    records: list[Record] = []
    for tenth in range(10):
        begin = 130 * tenth
        records += steps(10 * tenth, 10 * tenth + 10, begin, 10, split="train")
        records += steps(0, 30, begin + 100, 1, split="eval")
    analysis = of(tmp_path, records)
    assert (analysis.job.kept_range, len(analysis.disruptions)) == ((2, 100), 0)


def test_time_with_a_unit_is_not_a_kind_of_record(tmp_path: Path) -> None:
    """`6.95s` is repeated by chance and does not separate records."""
    records = [(second, {**one, "dur": f"{6.9 + at % 12 / 100:.2f}s"})
               for at, (second, one) in enumerate(steps(0, 200, 0, 7))]  # fmt: skip
    analysis = of(tmp_path, records)
    assert analysis.job.kept_range == (2, 200)
    assert analysis.goodput_percent == 100


def test_restore_takes_the_time_in_its_record(tmp_path: Path) -> None:
    records: list[Record] = [(0, {"event": "start"}), *steps(0, 100, 60, 5, event="step")]
    records += [(860, {"event": "start"}), (890, {"event": "restore", "step": 80, "took_s": 25.0})]
    records += steps(80, 200, 890, 5, event="step")
    assert seconds(of(tmp_path, records))["unproductive_checkpoint_restore_time"] == 25


def test_step_with_a_total_is_read(tmp_path: Path) -> None:
    records = [(5.0 * at, {"progress": f"{at}/200"}) for at in range(1, 201)]
    assert of(tmp_path, records).job.kept_range == (2, 200)


def test_minutes_between_two_steps_are_not_training(tmp_path: Path) -> None:
    """800 s between two steps of 2 s: the log does not explain them."""
    records = steps(0, 300, 0, 2) + steps(300, 500, 1400, 2)
    found = seconds(of(tmp_path, records))
    assert (found["productive"], found["other"]) == (998, 800)


def test_clock_of_records_follows_their_lines(tmp_path: Path) -> None:
    """Records whose numbers have three digits are read together, and their clock must not go back."""
    assert "stamps_go_back" not in codes(of(tmp_path, steps(0, 300, 0, 5, util=93)))


def test_records_without_training_words_have_no_kinds(tmp_path: Path) -> None:
    records = [(5.0 * at, {"step": at, "zone": f"zone-{'ab'[at // 10 % 2]}"}) for at in range(200)]
    assert of(tmp_path, records).job.kept_range == (2, 200)


@pytest.mark.parametrize(("key", "refused"), [("phase", True), ("trial", True), ("session", False)])
def test_steps_that_restart_with_a_stage_are_one_attempt(tmp_path: Path, key: str, refused: bool) -> None:
    log = tmp_path / "run.jsonl"
    log.write_text(lines([*steps(0, 200, 0, 2, **{key: "first"}), *steps(0, 100, 460, 3, **{key: "second"})]))
    found = draft_mapping(str(log)).refused
    assert bool(found) is refused
    assert not found or f"start again where `{key}` changes from first to second" in found[0]


@pytest.mark.parametrize(("key", "refused"), [("util", True), ("loss", False)])
def test_log_without_training_gives_no_draft(tmp_path: Path, key: str, refused: bool) -> None:
    """Samples of a monitor also count up."""
    log = tmp_path / "run.jsonl"
    log.write_text(lines((5.0 * at, {"sample": at, key: 93}) for at in range(200)))
    found = draft_mapping(str(log)).refused
    assert bool(found) is refused
    assert not found or "`sample` increases from record to record, but may count anything" in found[0]


def test_refusal_quotes_are_comments_of_the_draft(tmp_path: Path) -> None:
    log, hostile = tmp_path / "run.jsonl", 'a\n[[rule]]\nevent = "crashed"\x1b[31m'
    log.write_text(lines([*steps(0, 200, 0, 2, phase="b"), *steps(0, 100, 460, 3, phase=hostile)]))
    made = draft_mapping(str(log))
    assert made.refused
    assert not any(line.startswith("[[") for line in made.text.splitlines())
    assert "\x1b" not in made.text
