"""Cost of looking for failures: no line of a healthy log is examined individually, and a storm of one failure is one
observation."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from goodput_cli.events.read import read_events
from goodput_cli.events.text import evidence_lines as observing
from goodput_cli.events.text import scan
from goodput_cli.events.text.causes import shipped_rows
from goodput_cli.events.text.evidence_reader import Observer
from goodput_cli.events.text.log_lines import any_of
from goodput_cli.events.text.observed_line import Line
from tests.causes.wordings import attempt_lines, wordings


@pytest.fixture
def examined_lines(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the numbers of the lines that are examined individually."""
    seen: list[int] = []
    take = Observer.take

    def counted(self: Observer, line: Line, back: object) -> object:
        seen.append(line.number)
        return take(self, line, back)  # type: ignore[arg-type]

    monkeypatch.setattr(Observer, "take", counted)
    return seen


def test_healthy_log_has_no_line_examined(tmp_path: Path, examined_lines: list[int]) -> None:
    words = [f"[rank{at % 8}] INFO loaded shard {at} with 4096 documents, no error, 0 timeouts" for at in range(8_000)]
    (tmp_path / "train.log").write_text("\n".join([*attempt_lines(0, 10), *words, *attempt_lines(30, 160)]) + "\n")
    assert not read_events([str(tmp_path)]).table.observed.listed
    assert len(examined_lines) <= 2  # NCCL reports the host on which it runs.


def test_only_lines_about_a_failure_are_examined(tmp_path: Path, examined_lines: list[int]) -> None:
    words = [f"[rank{at % 8}] INFO loaded shard {at}" for at in range(8_000)]
    said = ["[rank3]: Traceback (most recent call last):", '[rank3]:   File "/opt/train.py", line 8, in step',
            "[rank3]: ValueError: wrong shape"]  # fmt: skip
    (tmp_path / "train.log").write_text(
        "\n".join([*words, *attempt_lines(0, 10), *said, *attempt_lines(30, 160)]) + "\n"
    )
    assert [one.code for one in read_events([str(tmp_path)]).table.observed.listed] == ["python_error"]
    assert len(examined_lines) <= 100


def test_storm_of_one_failure_is_one_observation(tmp_path: Path) -> None:
    with (tmp_path / "train.log").open("w") as file:
        file.write("\n".join(attempt_lines(0, 10)) + "\n")
        for at in range(5_000):
            file.write(
                f"[rank{at % 1024}]:[E301 10:20:50.{at % 999:03d}000123 ProcessGroupNCCL.cpp:616] [Rank {at % 1024}] "
                f"Watchdog caught collective operation timeout: WorkNCCL(SeqNum={at}, OpType=ALLREDUCE, "
                "Timeout(ms)=600000) ran for 600060 milliseconds before timing out.\n"
            )
    (one,) = read_events([str(tmp_path)]).table.observed.listed
    assert (one.count, len(one.ranks), one.code) == (5_000, 1024, "collective_timeout")


def storm(lines: int) -> list[str]:
    """Return the line of one failure for 64 ranks, repeated."""
    return [
        f"[rank{at % 64}]:[E301 10:20:{50 + at // 8000}.{at % 999:03d}000123 ProcessGroupNCCL.cpp:616] "
        f"[Rank {at % 64}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={1000 + at % 9000}, "
        f"OpType=ALLREDUCE, Timeout(ms)=600000) ran for {600000 + at % 99} milliseconds before timing out."
        for at in range(lines)
    ]  # fmt: skip


def test_storm_does_not_increase_the_work(tmp_path: Path, examined_lines: list[int]) -> None:
    def work(lines: int) -> int:
        examined_lines.clear()
        (tmp_path / "train.log").write_text("\n".join([*attempt_lines(0, 10), *storm(lines)]) + "\n")
        (one,) = read_events([str(tmp_path)]).table.observed.listed
        assert (one.count, len(one.ranks)) == (lines, 64)
        return len(examined_lines)

    assert work(6_000) <= work(2_000) + 2 * 64


def test_storm_gives_the_same_as_its_lines_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each known failure message comes three times with other numbers, in random order, with steps between."""
    rng = random.Random(3)
    words = [line for one in wordings("failures") if not one.host_log for line in one.text.split("\n")]
    said = [re.sub(r"\d", lambda _: str(rng.randrange(10)), line) for line in words for _ in range(3)]
    said += words + storm(300)
    rng.shuffle(said)
    steps = list(attempt_lines(0, 10))
    (tmp_path / "train.log").write_text(
        "\n".join([*steps, *said[: len(said) // 2], *attempt_lines(30, 160), *said[len(said) // 2 :]]) + "\n"
    )
    monkeypatch.setattr(observing, "_ALIKE", 2)
    seen = read_events([str(tmp_path)]).table.observed
    monkeypatch.setattr(scan, "BEGINS", 1 << 60)
    assert seen == read_events([str(tmp_path)]).table.observed


def test_first_and_last_of_many_failures_are_kept(tmp_path: Path) -> None:
    words = ["alpha", "beta", "gamma", "delta", "eps", "zeta", "eta", "theta", "iota", "kappa", "lam", "mu"]
    with (tmp_path / "train.log").open("w") as file:
        file.write("\n".join(attempt_lines(0, 10)) + "\n")
        for at in range(10_500):
            name = "-".join(words[at // 12**place % 12] for place in range(4))
            file.write(f"OSError: [Errno 28] No space left on device: '/ckpt/{name}'\n")
    observed = read_events([str(tmp_path)]).table.observed
    assert len(observed.rows) == 10_000
    assert len(observed.listed) + observed.dropped[str(tmp_path / "train.log")] == 10_500


def test_automaton_of_many_literals_is_kept(capfd: pytest.CaptureFixture[str]) -> None:
    literals = [f"{anchor}~" for anchor in shipped_rows().anchors]
    text = " ".join(literal[:-1] for literal in literals)
    assert any_of(literals).search(text.encode()) is None
    assert capfd.readouterr().err == ""
