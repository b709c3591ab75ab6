"""Parts of one log, such as rotated files, are read as one document; files of several processes never are."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.api.check import explain_line
from goodput_cli.api.watch import WatchedLog
from goodput_cli.sources.parts import candidates
from goodput_cli.vocabulary.text import FilePart, JoinedName, file_line
from tests.support.clouds import Bucket, bucket_server, log_lines

START = "2026-03-01 10:00:00,000 - INFO - train - Starting training: 60 steps on cuda:0\n"
MAPPING = """\
name = "mine"

[[rule]]
event = "step"
line = "step {step:int}/{of:int} | loss"
"""


def steps(first: int, last: int, *, minute: int = 0) -> str:
    """Return the lines of steps, 10 s each."""
    return "".join(
        f"2026-03-01 10:{minute + at // 6:02}:{at % 6}0,000 - INFO - train - step {at}/60 | loss {9 - at / 60:.4f}\n"
        for at in range(first, last + 1)
    )


def without_clock(first: int, last: int) -> str:
    return "".join(f"step {at}/60 | loss {9 - at / 60:.4f} | 1000.0 ms/step\n" for at in range(first, last + 1))


def write(folder: Path, **files: str) -> Path:
    """Write files; `__` in a name is a dot."""
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return folder


def analyze(source: Path) -> Analysis:
    return goodput_cli.analyze(str(source), timezone="UTC")


def codes(analysis: Analysis) -> set[str]:
    return {one.code for one in analysis.diagnostics}


@pytest.mark.parametrize(
    ("names", "orders", "is_certain"),
    [
        ("a.log a.log.1 a.log.2", ["a.log.2 a.log.1 a.log", "a.log a.log.1 a.log.2"], True),
        ("a.log a.log.0", ["a.log.0 a.log", "a.log a.log.0"], True),
        ("a.log a.log.3", ["a.log.3 a.log", "a.log a.log.3"], False),
        ("a.log a.log.10 a.log.9", ["a.log.10 a.log.9 a.log", "a.log a.log.9 a.log.10"], False),
        ("a.log.00 a.log.01", ["a.log.00 a.log.01", "a.log.01 a.log.00"], True),
        ("a.log.01 a.log.02", ["a.log.02 a.log.01", "a.log.01 a.log.02"], False),
        ("a.log.0 a.log.1", ["a.log.0 a.log.1", "a.log.1 a.log.0"], False),
        ("a.log.1.gz a.log", ["a.log.1.gz a.log", "a.log a.log.1.gz"], True),
        ("a.log a.log-20260302 a.log-20260301.gz", ["a.log-20260301.gz a.log-20260302 a.log"], True),
        ("a.log.2026-03-01_09 a.log.2026-03-01_10", ["a.log.2026-03-01_09 a.log.2026-03-01_10"], True),
        ("a-2026-03-01.log a-2026-03-02.log", ["a-2026-03-01.log a-2026-03-02.log"], False),
        ("a.2026-03-01.log a.log", ["a.2026-03-01.log a.log"], False),
        ("log.part2 log.part1 log.part10", [], None),
        ("log.part2 log.part1", ["log.part1 log.part2"], True),
        ("a.log.ab a.log.aa", ["a.log.aa a.log.ab"], True),
        ("a.logaa a.logab", ["a.logaa a.logab"], True),
        ("xab xaa", ["xaa xab"], True),
        ("x00 x01", ["x00 x01"], True),
        ("a.log.ab a.log.ac", [], None),
        ("a.log a.log.aa a.log.ab", [], None),
        ("a.log a.log.1 a.log.1.gz", [], None),
        ("attempt_0.log attempt_1.log", [], None),
        ("rank.0.log rank.1.log", [], None),
        ("worker-1.log worker-2.log", [], None),
        ("slurm-7_0.out slurm-7_1.out", [], None),
        ("run1.log run2.log", [], None),
        ("train.0.log train.1.log", [], None),
        ("a/t.log b/t.log.1", [], None),
        ("events.out.tfevents.1.host.1 events.out.tfevents.1.host.2", [], None),
    ],
)
def test_names_suggest_parts_and_their_order(names: str, orders: Sequence[str], is_certain: bool | None) -> None:
    found = candidates(names.split())
    assert [" ".join(order) for one in found for order in one.orders] == list(orders)
    assert [one.is_certain for one in found] == ([] if is_certain is None else [is_certain])


def test_locations_of_a_joined_document() -> None:
    name = JoinedName("t.log")
    name.parts += [FilePart(1, "t.log.1", 1), FilePart(11, "t.log", 2)]
    assert [file_line(name, line) for line in (1, 10, 11, 12)] == ["t.log.1:1", "t.log.1:10", "t.log:2", "t.log:3"]


def test_parts_are_reported_and_named_in_evidence(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", train__log__1=START + steps(1, 30), train__log=steps(31, 60))
    found = analyze(folder)
    assert (found.job.attempts, found.job.kept_steps, found.job.name) == (1, 60, "train")
    assert found.table.files == (f"{folder}/train.log.1", f"{folder}/train.log")
    assert found.events["evidence"].iloc[-1] == f"{folder}/train.log:30"
    assert found.events["line"].iloc[-1] == 30
    assert [one.where for one in found.diagnostics if one.code == "parts_joined"] == [found.table.files]
    assert "step: 31" in explain_line(f"{folder}/train.log:1")


def test_line_is_explained_within_the_joined_log(tmp_path: Path) -> None:
    """Alone, the second file begins a process, and contains a part of a traceback."""
    death = 'Traceback (most recent call last):\n  File "t.py", line 1, in <module>\nValueError: wrong shape\n'
    later = START.replace("10:00", "10:20") + steps(25, 60, minute=20)
    text = START + steps(1, 30) + death + later
    cut = text.index("  File")
    parts = write(tmp_path / "run", train__log__1=text[:cut], train__log=text[cut:])
    whole = write(tmp_path / "whole", train__log=text) / "train.log"
    for line in (1, 2, 3, 4, 20):
        assert explain_line(f"{parts}/train.log:{line}") == explain_line(f"{whole}:{text[:cut].count(chr(10)) + line}")
    assert explain_line(f"{parts}/train.log.1:5") == explain_line(f"{whole}:5")


def test_evidence_of_a_death_in_a_part(tmp_path: Path) -> None:
    death = 'Traceback (most recent call last):\n  File "t.py", line 1, in <module>\nValueError: wrong shape\n'
    text = START + steps(1, 30) + death
    for cut in (len(text) - 90, len(text) - 40, len(text) - 5):
        folder = write(tmp_path / str(cut), train__log__1=text[:cut], train__log=text[cut:])
        (why,) = analyze(folder).timeline.causes.why
        assert (why.code, why.evidence.text if why.evidence else "") == (
            "python_error",
            "ValueError: wrong shape",
        )


def test_line_cut_between_two_files_is_read(tmp_path: Path) -> None:
    text = START + steps(1, 60)
    cut = text.index("step 30/60") + 6
    found = analyze(write(tmp_path / "run", train__log__aa=text[:cut], train__log__ab=text[cut:]))
    assert found.job.kept_steps == 60
    assert [one.rpartition("/")[2] for one in found.events["evidence"].iloc[[30, 31]]] == [
        "train.log.aa:31", "train.log.ab:2",
    ]  # fmt: skip


def test_ranks_with_numbers_are_not_joined(tmp_path: Path) -> None:
    """Their times overlap."""
    rank = START + steps(1, 60)
    found = analyze(write(tmp_path / "ranks", train__log__0=rank, train__log__1=rank, train__log__2=rank))
    assert (found.job.attempts, found.job.kept_steps, found.goodput_percent) == (1, 60, 100)
    assert codes(found).isdisjoint({"parts_joined", "parts_not_joined"})
    found = analyze(write(tmp_path / "first", train__log=rank, train__log__1=rank))
    assert (found.job.attempts, found.job.kept_steps) == (1, 60)
    assert "parts_not_joined" in codes(found)


def test_attempts_with_numbers_are_not_joined(tmp_path: Path) -> None:
    """Each begins with a start line."""
    later = START.replace("10:00", "10:10") + steps(21, 60, minute=10)
    folder = write(tmp_path / "attempts", train__log__0=START + steps(1, 30), train__log__1=later)
    found = analyze(folder)
    assert codes(found).isdisjoint({"parts_joined", "parts_not_joined"})
    assert (found.job.attempts, found.job.kept_steps) == (2, 60)


def test_numbers_without_times_are_joined_only_if_steps_continue(tmp_path: Path) -> None:
    found = analyze(write(tmp_path / "rise", train__log__0=without_clock(1, 30), train__log__1=without_clock(31, 60)))
    assert "parts_joined" in codes(found)
    assert (found.job.attempts, found.job.last_step) == (1, 60)
    found = analyze(write(tmp_path / "fall", train__log__0=without_clock(1, 30), train__log__1=without_clock(2, 30)))
    assert "parts_not_joined" in codes(found)
    rank = "loading\n" + without_clock(1, 30)
    found = analyze(write(tmp_path / "ranks", train__log__00=rank, train__log__01=rank))
    assert "parts_not_joined" in codes(found)


def test_numbers_count_upwards_if_times_do(tmp_path: Path) -> None:
    files = {"train__log__1": START + steps(1, 20), "train__log__2": steps(21, 40), "train__log__3": steps(41, 60)}
    found = analyze(write(tmp_path / "up", **files))
    assert (found.job.attempts, found.job.kept_steps) == (1, 60)
    assert [one.rpartition(".")[2] for one in found.table.files] == ["1", "2", "3"]
    first = files.pop("train__log__1")
    found = analyze(write(tmp_path / "base", train__log=first, train__log__1=files["train__log__2"]))
    assert (found.job.attempts, found.job.kept_steps) == (1, 40)


def test_runs_of_two_days_are_not_joined(tmp_path: Path) -> None:
    runs = {f"train-2026-03-0{day}.log": (START + steps(1, 60)).replace("03-01", f"03-0{day}") for day in (1, 2)}
    folder = write(tmp_path / "runs", **runs)
    found = {one.code: one.message for one in goodput_cli.check(str(folder)).diagnostics}
    assert "parts_joined" not in found
    assert "a start or a pause separates them" in found["parts_not_joined"]


@pytest.mark.parametrize(
    ("second", "code"),
    [
        (steps(31, 60, minute=40), "parts_joined"),
        (START.replace("10:00", "10:40") + steps(25, 60, minute=40), "parts_joined"),
        (START.replace("10:00", "10:40") + steps(1, 60, minute=40), "parts_not_joined"),
    ],
    ids=["pause", "resumed", "from scratch"],
)
def test_dated_files_are_parts_if_steps_are_resumed(tmp_path: Path, second: str, code: str) -> None:
    files = {"train-2026-03-01.log": START + steps(1, 30), "train-2026-03-02.log": second}
    (tmp_path / "mine.toml").write_text(MAPPING + '[[rule]]\nevent = "start"\nline = "Starting training"\n')
    mapping = (str(tmp_path / "mine.toml"),)
    folders = (write(tmp_path / "parts", **files), write(tmp_path / "whole", train__log="".join(files.values())))
    parts, whole = (goodput_cli.analyze(str(one), timezone="UTC", mapping=mapping) for one in folders)
    assert codes(parts) & {"parts_joined", "parts_not_joined"} == {code}
    assert (parts.goodput_percent, parts.job.attempts) == (whole.goodput_percent, whole.job.attempts)


def test_part_without_a_recognized_line_is_read(tmp_path: Path) -> None:
    """The newest file contains nothing but a line that no rule reads."""
    folder = write(tmp_path / "run", train__log__1=START + steps(1, 60), train__log="loss 3.1\n")
    assert codes(analyze(folder)) & {"parts_joined", "not_a_log"} == {"parts_joined"}


def test_rotated_records_are_read_as_one(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "run.jsonl.1.gz").write_bytes(gzip.compress(log_lines(1, 2, 3)))
    (folder / "run.jsonl").write_bytes(log_lines(4, 5))
    table = goodput_cli.analyze(str(folder)).table
    assert len(table.sources) == 1
    assert [table.where(row).rpartition("/")[2] for row in (0, len(table) - 1)] == ["run.jsonl.1.gz:1", "run.jsonl:2"]


def test_rules_inferred_from_parts_quote_their_files(tmp_path: Path) -> None:
    def lines(first: int, last: int) -> str:
        return "".join(f"2026-03-01 10:{at // 6:02}:{at % 6}0 ### {at} of 60 done\n" for at in range(first, last + 1))

    found = analyze(write(tmp_path / "run", train__log__1=lines(1, 30), train__log=lines(31, 60)))
    assert found.job.last_step == 60
    assert all(place.rpartition(":")[0] in found.table.files for place in found.events["evidence"])


def test_fleet_reads_parts_as_one(tmp_path: Path) -> None:
    for job in ("a", "b"):
        write(tmp_path / job, train__log__1=START + steps(1, 30), train__log=steps(31, 60))
    found = goodput_cli.jobs(str(tmp_path), timezone="UTC")
    assert [(one.name, one.attempts, one.goodput_percent) for one in found.jobs] == [("a", 1, 100), ("b", 1, 100)]


@pytest.fixture(scope="module")
def server() -> Iterator[Bucket]:
    with bucket_server() as running:
        yield running


def test_parts_in_a_bucket_are_read_as_one(server: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
    server.put("run/train.log.1", (START + steps(1, 30)).encode())
    server.put("run/train.log", gzip.compress(steps(31, 60).encode()))
    server.put("run/other.jsonl", b"")
    (tmp_path / "mine.toml").write_text(MAPPING, encoding="utf-8")
    found = goodput_cli.analyze("gs://logs/run", timezone="UTC", mapping=(str(tmp_path / "mine.toml"),))
    assert (found.job.attempts, found.job.last_step, found.table.jobs) == (1, 60, ("train",))
    assert found.events["evidence"].iloc[-1] == "gs://logs/run/train.log:30"


def test_watched_log_is_rotated(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", train__log__1=START + steps(1, 10), train__log=steps(11, 20))
    watched = WatchedLog(str(folder))
    watched.look()
    with (folder / "train.log").open("a") as stream:
        stream.write(steps(21, 25))
    watched.look()
    with (folder / "train.log").open("a") as stream:
        stream.write(steps(26, 30))  # the last lines before the rotation
    os.rename(folder / "train.log.1", folder / "train.log.2")
    os.rename(folder / "train.log", folder / "train.log.1")
    write(folder, train__log=steps(31, 40))
    watched.look()
    with (folder / "train.log").open("a") as stream:
        stream.write(steps(41, 60))
    watched.look()
    watched.look()
    growing, whole = watched.analysis(None), analyze(folder)
    watched.close()
    assert (growing.job.attempts, growing.job.kept_steps) == (1, 60)
    assert growing.goodput.ns == whole.goodput.ns
    assert list(growing.events["evidence"]) == list(whole.events["evidence"])


def test_watched_file_is_rotated_away(tmp_path: Path) -> None:
    """Only `train.log` is watched: its first file gets another name."""
    log = tmp_path / "train.log"
    log.write_text(START + steps(1, 20), encoding="utf-8")
    (tmp_path / "mine.toml").write_text(MAPPING, encoding="utf-8")
    watched = WatchedLog(str(log), mapping=(str(tmp_path / "mine.toml"),))
    watched.look()
    os.rename(log, tmp_path / "train.log.1")
    log.write_text(steps(21, 60), encoding="utf-8")
    watched.look()
    found = watched.analysis(None)
    watched.close()
    assert (found.job.attempts, found.job.kept_steps) == (1, 59)  # the first line of a step begins the window
    assert [one.rpartition("/")[2] for one in found.table.files] == ["train.log (rotated)", "train.log"]


def test_watched_file_is_rotated_away_after_rules_were_inferred(tmp_path: Path) -> None:
    """Rules are not inferred again: the lines before the rotation could not be read with them."""
    log = tmp_path / "train.log"
    log.write_text(START + steps(1, 20), encoding="utf-8")
    watched = WatchedLog(str(log))
    watched.look()
    assert watched.analysis(None).job.last_step == 20
    os.rename(log, tmp_path / "train.log.1")
    log.write_text(steps(21, 60).replace("step", "at step"), encoding="utf-8")
    watched.look()
    found = watched.analysis(None)
    watched.close()
    assert (found.job.attempts, found.events["line"].iloc[0]) == (1, 1)
    assert found.table.files[0] == f"{log} (rotated)"


def test_watched_log_is_copied_and_truncated(tmp_path: Path) -> None:
    """`copytruncate` of logrotate: the copy has lines that were read, and some that were not."""
    folder = write(tmp_path / "run", train__log=START + steps(1, 20))
    (tmp_path / "mine.toml").write_text(MAPPING, encoding="utf-8")
    rules = (str(tmp_path / "mine.toml"),)
    watched = WatchedLog(str(folder), mapping=rules)
    watched.look()
    write(folder, train__log__1=START + steps(1, 25), train__log=steps(26, 40))
    watched.look()
    with (folder / "train.log").open("a") as stream:
        stream.write(steps(41, 60))
    watched.look()
    growing, whole = watched.analysis(None), goodput_cli.analyze(str(folder), timezone="UTC", mapping=rules)
    watched.close()
    assert list(growing.events["evidence"]) == list(whole.events["evidence"])
    assert (growing.job.attempts, growing.job.last_step) == (1, 60)
