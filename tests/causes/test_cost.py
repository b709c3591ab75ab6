"""What watching for deaths costs: of a healthy log no line is looked at by itself; a storm is kept as one."""

from __future__ import annotations

from pathlib import Path

import pytest

from goodput_cli.events.read import read_events
from goodput_cli.events.text.observer import Line, Observer
from tests.causes.wordings import life


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the lines that were looked at one by one."""
    seen: list[int] = []
    take = Observer.take

    def counted(self: Observer, line: Line, back: object) -> object:
        seen.append(line.number)
        return take(self, line, back)  # type: ignore[arg-type]

    monkeypatch.setattr(Observer, "take", counted)
    return seen


def test_no_line_of_a_healthy_log_is_looked_at(tmp_path: Path, looked_at: list[int]) -> None:
    words = [f"[rank{at % 8}] INFO loaded shard {at} with 4096 documents, no error, 0 timeouts" for at in range(20_000)]
    (tmp_path / "train.log").write_text("\n".join([*life(0, 10), *words, *life(30, 160)]) + "\n")
    assert not read_events([str(tmp_path)]).table.observed.listed
    assert len(looked_at) <= 2  # where NCCL says on which host it runs


def test_only_what_stands_with_a_death_is_looked_at(tmp_path: Path, looked_at: list[int]) -> None:
    words = [f"[rank{at % 8}] INFO loaded shard {at}" for at in range(20_000)]
    said = ["[rank3]: Traceback (most recent call last):", '[rank3]:   File "/opt/train.py", line 8, in step',
            "[rank3]: ValueError: wrong shape"]  # fmt: skip
    (tmp_path / "train.log").write_text("\n".join([*words, *life(0, 10), *said, *life(30, 160)]) + "\n")
    assert [one.code for one in read_events([str(tmp_path)]).table.observed.listed] == ["python_error"]
    assert len(looked_at) <= 100


def test_a_storm_of_one_failure_is_one_observation(tmp_path: Path) -> None:
    with (tmp_path / "train.log").open("w") as file:
        file.write("\n".join(life(0, 10)) + "\n")
        for at in range(20_000):
            file.write(
                f"[rank{at % 1024}]:[E301 10:20:50.{at % 999:03d}000123 ProcessGroupNCCL.cpp:616] [Rank {at % 1024}] "
                f"Watchdog caught collective operation timeout: WorkNCCL(SeqNum={at}, OpType=ALLREDUCE, "
                "Timeout(ms)=600000) ran for 600060 milliseconds before timing out.\n"
            )
    (one,) = read_events([str(tmp_path)]).table.observed.listed
    assert (one.count, len(one.ranks), one.code) == (20_000, 1024, "collective_timeout")


def test_of_very_many_failures_the_first_and_the_last_are_kept(tmp_path: Path) -> None:
    words = ["alpha", "beta", "gamma", "delta", "eps", "zeta", "eta", "theta", "iota", "kappa", "lam", "mu"]
    with (tmp_path / "train.log").open("w") as file:
        file.write("\n".join(life(0, 10)) + "\n")
        for at in range(12_000):
            name = "-".join(words[at // 12**place % 12] for place in range(4))
            file.write(f"OSError: [Errno 28] No space left on device: '/ckpt/{name}'\n")
    observed = read_events([str(tmp_path)]).table.observed
    assert len(observed.rows) == 10_000
    assert len(observed.listed) + observed.dropped[str(tmp_path / "train.log")] == 12_000
