"""Malformed and hostile text: one error message, no traceback."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import pytest

import goodput_cli
from goodput_cli.analysis.account import pick_job
from goodput_cli.errors import NotEnoughData, UsageError
from goodput_cli.events.mappings.registry import Mappings
from goodput_cli.events.read import read_events
from goodput_cli.events.schema import EventLog
from tests.text.support import SAMPLES, analysed, codes, seconds, written

RECORD = " [2026-03-01 10:{:02d}:00] iteration {:8d}/     100 | elapsed time per iteration (ms): 6000.0 |\n"
GOOD = "".join(RECORD.format(minute, 10 * minute) for minute in range(1, 6))


def read(text: str | bytes) -> EventLog:
    data = text.encode() if isinstance(text, str) else text
    return read_events(["-"], stdin=io.BytesIO(data))


def diagnostics(log: EventLog) -> set[str]:
    return {one.code for one in log.diagnostics}


def test_random_text_is_refused_with_a_tip() -> None:
    noise = random.Random(1)
    text = "".join(
        chr(noise.choice((10, 32, 58, 91, 123, 0x1B, 0x7F, 0xFFFD, noise.randrange(1, 256)))) for _ in range(20_000)
    )
    for given in (text, text.encode("latin-1", "replace"), "words, and no more of them\n" * 100):
        log = read(given)
        assert len(log.table) == 0
        assert diagnostics(log) <= {"unrecognised_lines", "malformed_lines", "bad_value"}
    with pytest.raises(NotEnoughData, match="`goodput check --suggest "):
        pick_job(log, None)


def test_colors_and_progress_bars_hide_nothing() -> None:
    bars = "".join(f"\r {at:3d}%|####      | {at}/100 [00:01<00:09,  9.9it/s]" for at in range(100))
    coloured = "\x1b[32m" + RECORD.format(6, 60).rstrip("\n") + "\x1b[0m\n"
    log = read(GOOD + bars + "\r" + RECORD.format(7, 70) + coloured)
    assert sorted(log.table.step[log.table.step > 0].tolist()) == [10, 20, 30, 40, 50, 60, 70]
    assert "malformed_lines" not in diagnostics(log)


def test_long_lines_are_noise() -> None:
    log = read(GOOD + "iteration " * 100_000 + "\n" + RECORD.format(6, 60))
    assert 60 in log.table.step.tolist()


@pytest.mark.parametrize(
    "line",
    [
        " [2026-13-01 10:06:00] iteration       60/     100 | elapsed time per iteration (ms): 6000.0 |\n",
        " [2026-03-01 10:06:00] iteration       x0/     100 | elapsed time per iteration (ms): 6000.0 |\n",
        " [2026-03-01 10:06:00] iteration       60/     100 | elapsed time per iteration (ms): nan |\n",
        " [2026-03-01 10:06:00] iteration 99999999999999999999/ 100 | elapsed time per iteration (ms): 6000.0 |\n",
    ],
)
def test_line_with_an_invalid_value_is_reported_and_dropped(line: str) -> None:
    log = read(GOOD + line)
    (bad,) = [one for one in log.diagnostics if one.code == "bad_value"]
    assert bad.where == ("stdin:6",)
    assert sorted(log.table.step[log.table.step > 0].tolist()) == [10, 20, 30, 40, 50]


@pytest.mark.parametrize(
    "line",
    [
        " [1900-03-01 10:06:00] iteration       60/     100 | elapsed time per iteration (ms): 6000.0 |\n",
        "iteration 9007199254740992/ 9007199254740992 | elapsed time per iteration (ms): 999999999000.0 |\n",
        "    evaluate .......................................: (1.0, 999999999999.0)\n" * 50,
        "time to initialize megatron (seconds): 999999999.0\n"
        "[after megatron is initialized] datetime: 1970-01-01 01:00:00\n",
        f"\rEpoch {'9' * 15}:  1%|#| 7/{10**15} [{'9' * 15}:00<10:00, 1.0s/it]\n",
    ],
)
def test_impossible_dates_break_nothing(line: str) -> None:
    steps = read(GOOD + line).table.step
    assert {10, 20, 30, 40, 50} <= set(steps.tolist())


@pytest.mark.parametrize("throughput", ["4.1.2", "1" * 400])
def test_non_numeric_throughput_is_ignored(throughput: str) -> None:
    bad = GOOD.replace(" |\n", f" | throughput per GPU (TFLOP/s/GPU): {throughput} |\n")
    assert sorted(read(bad).table.step[read(bad).table.step > 0].tolist()) == [10, 20, 30, 40, 50]


def test_clock_that_goes_back_is_reported() -> None:
    back = GOOD + " [2026-03-01 10:03:30] iteration       60/     100 | elapsed time per iteration (ms): 6000.0 |\n"
    assert "stamps_go_back" in diagnostics(read(back))
    assert "stamps_go_back" not in diagnostics(read(GOOD))


def test_log_without_a_clock_has_amounts(tmp_path: Path) -> None:
    log = "".join(
        f"iteration {at:8d}/     100 | elapsed time per iteration (ms): 6000.0 |\n" for at in range(10, 60, 10)
    )
    analysis = analysed(written(tmp_path / "run", a_out=log))
    assert seconds(analysis) == {"productive": 240, "other": 60}
    assert "no_clock" in codes(analysis)


def test_native_log_among_text_is_read() -> None:
    ours = '{"job_name": "j", "step_count": 1, "step_start_time": 1772359200.0}\n'
    log = read("starting\nloading the data of many files\n" * 2 + ours + "{'loss': 2.1}\n" + '{"loss": 2.1}\n')
    assert log.table.step.tolist() == [1]
    assert "malformed_lines" not in diagnostics(log)


def test_lines_with_a_leading_bracket_are_not_arrays() -> None:
    noise = "".join(f"[NeMo I 2026-03-01 10:00:{at % 60:02d} nemo_logger:145] building\n" for at in range(3000))
    log = read(noise + GOOD)
    assert "malformed_lines" not in diagnostics(log)
    assert sorted(log.table.step[log.table.step > 0].tolist()) == [10, 20, 30, 40, 50]


def test_all_prefixes_are_removed() -> None:
    plain = "[2026-03-01 10:06:00] iteration       60/     100 | elapsed time per iteration (ms): 6000.0 |"
    for prefix in (
        "0: ", "[rank7]:", "[default7]: ", "12: [default3]:", "2026-03-01T10:06:00.000000000Z ",
        "2026-03-01T10:06:00.000000000Z stdout F ", "[pod/llm-0/trainer] ", "trainer-1  | ", "[1,0]<stdout>:",
        "llm/0 [default0]:",
    ):  # fmt: skip
        log = read(GOOD + prefix + plain + "\n")
        assert 60 in log.table.step.tolist(), prefix
        assert log.table.time[log.table.step == 60] == 1_772_359_560 * 10**9, prefix


def test_lines_without_a_literal_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    from goodput_cli.events.text import lines

    looked: list[str] = []
    real = lines.LineRules.read

    def counted(rules: lines.LineRules, text: str, overwritten: bool = False) -> Any:
        looked.append(text)
        return real(rules, text, overwritten)

    monkeypatch.setattr(lines.LineRules, "read", counted)
    read("nothing to see, 2026-03-01 10:00:30 it says\n" * 1000 + GOOD + "more of nothing\n" * 1000)
    assert len(looked) < 2 * GOOD.count("\n") + 5


def test_slow_pattern_takes_linear_time() -> None:
    """Four gaps in a template on a line of 60,000 characters: a backtracking engine would take years."""
    from goodput_cli.events.mappings.declared import mappings_in
    from goodput_cli.events.mappings.registry import load_mapping

    text = 'name = "slow"\n[[rule]]\nevent = "step"\nline = "step {_}x{_}x{_}x{_}y {step:int}"\n'
    (mapping,) = mappings_in("slow.toml", text)
    assert Mappings((load_mapping(mapping),)).ruleset.read("step " + "x" * 60_000) == ([], False, "")


def test_log_without_events_is_refused_in_one_sentence() -> None:
    with pytest.raises(NotEnoughData):
        goodput_cli.analyze("-", stdin=io.BytesIO(b"hello\nworld\n"))


def test_launcher_log_alone_has_attempts_and_downtime(tmp_path: Path) -> None:
    text = (SAMPLES / "nemo2-crash-and-restart.log").read_text("utf-8")
    lines = [line for line in text.splitlines() if "ft_launcher@" in line]
    analysis = analysed(written(tmp_path / "run", a_log="\n".join(lines)))
    assert (analysis.job.attempts, len(analysis.disruptions)) == (2, 1)


def test_bytes_with_quotes_and_controls_are_not_a_table() -> None:
    noise = bytes(random.Random(3).randrange(256) for _ in range(200_000))
    for data in (noise, noise.replace(b"\0", b","), b'a,"b\r\n' * 50):
        assert len(read(data).table) == 0


def test_start_option_sets_the_begin_of_text_without_clock(tmp_path: Path) -> None:
    log = "".join(
        f"iteration {at:8d}/     100 | elapsed time per iteration (ms): 6000.0 |\n" for at in range(10, 60, 10)
    )
    path = written(tmp_path / "run", a_out=log) / "a.out"
    for start in ("2026-03-01T10:00:00Z", "2026-03-01 11:00"):
        analysis = analysed(path, clock_start=start, timezone="Europe/Berlin")
        assert (analysis.job.start_ns, analysis.job.end_ns) == (1_772_359_200 * 10**9, 1_772_359_500 * 10**9)
    with pytest.raises(UsageError, match="use a date and a time"):
        analysed(path, clock_start="-2h")
