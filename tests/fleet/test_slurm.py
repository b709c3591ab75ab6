"""Output of a real Slurm (`tests/real/slurm`): `sacct` rows as allocations, and folders of its jobs' output."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.cli.main import run
from goodput_cli.fleet.labels import STILL_HELD, read_allocations
from goodput_cli.vocabulary.when import load_zone
from tests.support.fleets import HOUR, fleet, put, text_of, training
from tests.text.support import seconds

Output = pytest.CaptureFixture[str]
SLURM = Path(__file__).parent.parent / "real" / "slurm"
TRAINERS = Path(__file__).parent.parent.parent / "sample_logs" / "trainers"
HEADER = "JobIDRaw|JobName|Account|User|Partition|Cluster|State|Submit|Eligible|Start|End|AllocTRES|NNodes"
pytestmark = pytest.mark.usefixtures("folder")


def test_rows_of_a_real_sacct_are_allocations() -> None:
    """Requeued and preempted jobs have a row for each time they ran; arrays and the parts of a job have one each. A
    name may contain the column separator, or a line break. Rows that never started, or had no accelerator, are omitted.
    """
    found = read_allocations((), (str(SLURM / "allocations.txt"),), load_zone("UTC"))
    times = {
        job: [(one.accelerators, None if one.end == STILL_HELD else (one.end - one.start) // 10**9) for one in held]
        for job, held in found.items()
    }
    assert times == {
        "llm-a": [(8, 31)], "llm-fails": [(4, 8)], "vit-timeout": [(2, 70)], "vit-cancel": [(1, 38)],
        "odd|name": [(1, 7)], "llm-requeue": [(1, 38), (1, 1)], "vit-array": [(1, 7), (1, 7), (1, 1)],
        "vit-preempted": [(8, 20), (8, 19)], "het": [(1, 8), (2, 8)], "urgent": [(8, 5)], "llm-deadline": [(1, 7)],
        "vit-nodefail": [(8, 56), (8, 1)], "vit-lowprio": [(8, 16)], "llm-suspended": [(2, 25)],
        "llm-runs": [(6, None)], "llm-urgent": [(8, 5)],
        "new\nline": [(1, 2)], "`quoted": [(1, 2)], "naïve Größe,x": [(1, 2)],
    }  # fmt: skip
    assert found["het"][0].texts == {"team": "search", "cluster": "west", "user": "ann", "accelerator": "h100"}
    waited = [(one.start - (one.waiting_since or 0)) // 10**9 for one in found["vit-preempted"]]
    assert waited == [0, 9]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (["JobID           JobName      State"], "no column jobname; run sacct with --parsable2"),
        (["7|a|search|ann|gpu|west|COMPLETED||||||1"], "no column jobname"),
        ([HEADER, "7|a|search|ann"], "line 2 is truncated"),
        ([HEADER, "7|a|search|ann|gpu|west|COMPLETED|x|x|then|now|gres/gpu=8|1"], "rows.txt:2: start: "),
    ],
)
def test_file_that_is_not_sacct_output_is_reported(rows: list[str], words: str, capsys: Output) -> None:
    put(Path("a.jsonl"), training("a", 1, 0.5))
    Path("rows.txt").write_text(text_of(*rows))
    assert run(["fleet", "a.jsonl", "--sacct", "rows.txt", "--workers", "1"]) == 2
    assert words in capsys.readouterr().err


def test_running_job_is_allocated_until_the_last_fleet_event() -> None:
    """a has 8 until its log ends, and b, without a log, 4 from 02:00 on: both end at 10:00, as a does."""
    put(Path("a.jsonl"), training("a", 10, 6))
    rows = [
        f"{number}|{job}|search|ann|gpu|west|RUNNING|{at}|{at}|{at}|Unknown|gres/gpu={count}|1"
        for number, job, at, count in ((7, "a", "2026-01-01T00:00:00", 8), (8, "b", "2026-01-01T02:00:00", 4))
    ]
    Path("rows.txt").write_text(text_of(HEADER, *rows))
    answer = fleet("a.jsonl", "--sacct", "rows.txt", "--to", "2026-02-01")
    assert answer["mpg"]["allocated_chip_ns"] == str(10 * 8 * HOUR * 10**9)
    assert (answer["runs"][0]["accelerators"], answer["mpg"]["runtime_percent"]) == (8, 60)
    assert answer["coverage"]["allocations_without_logs_hours"] == 8 * 4


def test_training_outside_allocations_is_not_allocated_time() -> None:
    """6 of 10 h are kept, the last 2 of them after the node was lost: 4 of 8 allocated hours, and not 6 of 8."""
    put(Path("a.jsonl"), training("a", 10, 6))
    at, end = "2026-01-01T00:00:00", "2026-01-01T08:00:00"
    Path("rows.txt").write_text(text_of(HEADER, f"7|a|x|y|g|w|NODE_FAIL|{at}|{at}|{at}|{end}|gres/gpu=8|1"))
    answer = fleet("a.jsonl", "--sacct", "rows.txt")
    assert answer["mpg"]["runtime_percent"] == 50
    assert answer["totals"]["goodput_percent"] == 60
    assert answer["coverage"]["assumed_chip_ns"] == str(2 * 8 * HOUR * 10**9)


def test_slurm_actions_appear_in_output_and_sacct() -> None:
    """Failed, preempted and requeued, cancelled by its user, out of time. The user's stop is in the second in which the
    job still wrote a step."""
    analysis = goodput_cli.analyze(SLURM / "llm-20b", timezone="UTC")
    assert [one.ended for one in analysis.disruptions] == ["crashed", "preempted", "terminated"]
    assert (analysis.job.attempts, analysis.job.ending) == (5, "crashed")
    assert round(seconds(analysis)["stopped"]) == 4


def test_each_task_of_an_array_has_its_own_allocation() -> None:
    listed = goodput_cli.jobs(SLURM / "sweep", timezone="UTC")
    assert [(one.name, one.attempts) for one in listed.jobs] == [("arr-1", 1), ("arr-2", 1), ("arr-3", 1)]
    waited = goodput_cli.analyze(SLURM / "sweep", job_name="arr-3", timezone="UTC")
    assert seconds(waited)["queued"] == 16


@pytest.mark.parametrize("name", sorted(path.name for path in TRAINERS.iterdir() if path.is_dir()))
def test_text_files_of_a_folder_give_the_same_job_in_a_list(name: str) -> None:
    folder = TRAINERS / name
    for line in goodput_cli.jobs(folder).jobs:
        analysis = goodput_cli.analyze(folder, job_name=line.name)
        assert (line.goodput_ns, line.attempts) == (analysis.goodput.ns, analysis.job.attempts)


def test_text_of_two_folders_is_two_stored_jobs(read: list[str]) -> None:
    """Neither output names its job; both folders contain files of the same names. A new file is read with
    its folder."""
    for name in ("run-a", "run-b"):
        shutil.copytree(SLURM / "llm-20b", name, ignore=shutil.ignore_patterns("sacct.txt"))
        for path in Path(name).iterdir():
            path.write_text(path.read_text().replace("  save .....", "  keep ....."))
    alone = goodput_cli.analyze("run-a", timezone="UTC")
    asked = ("run-a", "run-b", "--timezone", "UTC", "--store", "store")
    answer = fleet(*asked)
    assert [(one["job"], one["goodput_ns"]) for one in answer["runs"]] == [
        ("run-a", alone.goodput.ns), ("run-b", alone.goodput.ns)
    ]  # fmt: skip
    assert answer["runs"][0]["documents"] == [f"run-a/slurm-{number}.out" for number in (32, 37, 42, 43)]
    read.clear()
    assert fleet(*asked) == answer
    assert read == []
    shutil.copy(SLURM / "llm-20b" / "sacct.txt", "run-b")
    changed = fleet(*asked)
    assert read == ["run-b/sacct.txt", "run-b/ (5 files of text)"]
    of_folder = {one["documents"][0].partition("/")[0]: one for one in changed["runs"]}
    assert of_folder["run-a"] == answer["runs"][0]
    assert (of_folder["run-b"]["job"], of_folder["run-b"]["disruptions"]) == ("llm-20b", 3)  # sacct names it
    assert changed == fleet(*asked[:-2])


def test_a_job_of_text_in_two_folders_is_one_job() -> None:
    """Its output names it: the facts in the two folders are joined, the lines of each file at their position."""
    shutil.copytree(SLURM / "llm-20b", "all")
    shutil.copytree(SLURM / "llm-20b", "parts/one", ignore=shutil.ignore_patterns("slurm-4*", "sacct.txt"))
    shutil.copytree(SLURM / "llm-20b", "parts/two", ignore=shutil.ignore_patterns("slurm-3*", "sacct.txt"))
    answer = fleet("parts", "--timezone", "UTC")
    (found,) = answer["runs"]
    assert (found["job"], found["attempts"], len(found["documents"])) == ("llm-20b", 5, 4)
    places = {one["evidence"].rpartition(":")[0] for one in answer["disruptions"]}
    assert places <= set(found["documents"])
    assert any("one/slurm-37.out" in place for place in places)


def test_slurm_outputs_are_named_after_their_folders() -> None:
    for number in (1, 2):
        folder = Path(f"runs/run-{number}")
        folder.mkdir(parents=True)
        text = (SLURM / "llm-20b" / "slurm-42.out").read_text().replace("  save .....", "  keep .....")
        (folder / f"slurm-{number}.out").write_text(text)
    assert [one.name for one in goodput_cli.jobs("runs", timezone="UTC").jobs] == ["run-1", "run-2"]
