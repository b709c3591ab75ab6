"""`cycle_info.JOB.ATTEMPT.CYCLE` of NVRx: active and standby nodes, only in addition to the log of a job.

The files have the keys that NVRx writes; the expected values were worked out by hand.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import goodput_cli
from goodput_cli.errors import GoodputError
from goodput_cli.events.read import read_events
from goodput_cli.events.schema import EventLog
from goodput_cli.events.signs import RecoveryPhase
from goodput_cli.sources.layouts import home_of, is_cycle_file
from tests.text.test_signs_of_recovery import NVRX, ledger, noticed, signs, steps


def cycle_info(number: int, begin: str, end: str, active: str, standby: str = "", **more: Any) -> str:
    told = {
        "job_id": "812", "attempt_index": 0, "cycle_number": number, "cycle_start_time": begin, "cycle_end_time": end,
        "cycle_log_file": f"/logs/job_cycle{number}.log", "active_nodes": active, "standby_nodes": standby,
        "active_ranks": "0-3", "generation": 1,
    }  # fmt: skip
    return json.dumps(told | more, indent=2)


FIRST = cycle_info(0, "2026-05-01T10:00:05Z", "2026-05-01T10:09:00Z", "node-[01-02,07]", "node-[08-09]")
SECOND = cycle_info(1, "2026-05-01T10:09:50Z", "", "node-[01-02],node-08", "node-09")


def written(folder: Path, text: str = NVRX, **files: str) -> Path:
    """Return a folder with a log and, in `nvrx/`, cycle files by number."""
    (folder / "nvrx").mkdir()
    (folder / "job.log").write_text(text)
    for number, content in (files or {"0": FIRST, "1": SECOND}).items():
        (folder / "nvrx" / f"cycle_info.812.0.{number}").write_text(content)
    return folder


def read(*sources: Path) -> EventLog:
    return read_events([str(source) for source in sources])


def test_cycles_show_lost_new_and_standby_nodes(tmp_path: Path) -> None:
    first, second = read(written(tmp_path)).table.observed.cycles
    assert (first.job, first.allocation, first.attempt, first.number) == ("job", "812", 0, 0)
    assert ({*first.active} ^ {*second.active}) == {"node-07", "node-08"}
    assert (first.standby, first.standby_ns) == (("node-08", "node-09"), 2 * 535 * 10**9)
    assert (second.end, second.standby_ns) == (None, None)
    assert second.where.endswith("cycle_info.812.0.1:1")


def test_cycle_files_do_not_change_the_accounting(tmp_path: Path) -> None:
    folder = written(tmp_path)
    with_them, without = read(folder), read(folder / "job.log")
    assert ledger(with_them) == ledger(without)
    assert signs(with_them) == signs(without)  # The log has its own lines about each rendezvous.


def test_cycle_begin_ends_a_rendezvous_without_a_line(tmp_path: Path) -> None:
    found = signs(read(written(tmp_path, steps(10, 1, 1, 12) + steps(10, 12, 9, 20))))
    assert [(one.point, dict(one.facts)) for one in found] == [
        (RecoveryPhase.RENDEZVOUS_DONE, {"cycle": 0}),
        (RecoveryPhase.RENDEZVOUS_DONE, {"cycle": 1, "by": "launcher"}),
    ]


def test_links_and_unfinished_cycle_files_are_skipped(tmp_path: Path) -> None:
    folder = written(tmp_path)
    (folder / "nvrx" / "cycle_info.812.current").symlink_to("cycle_info.812.0.1")
    (folder / "nvrx" / "cycle_info.812.0.1.tmp").write_text(SECOND[:50])
    (folder / "nvrx" / "again").symlink_to("..")  # A circular link.
    log = read(folder)
    assert len(log.table.observed.cycles) == 2
    assert "malformed_lines" not in noticed(log)
    named = read(folder / "job.log", folder / "nvrx" / "cycle_info.812.current", folder / "nvrx" / "cycle_info.812.0.1")
    assert len(named.table.observed.cycles) == 1


def test_latest_file_of_a_cycle_counts(tmp_path: Path) -> None:
    folder = written(tmp_path)
    (folder / "copy").mkdir()
    over = cycle_info(1, "2026-05-01T10:09:50Z", "2026-05-01T10:20:00Z", "node-01", generation=2)
    (folder / "copy" / "cycle_info.812.0.1").write_text(over)
    assert [len(one.active) for one in read(folder).table.observed.cycles] == [3, 1]


@pytest.mark.parametrize("cut", [20, 150, len(SECOND) - 1])
def test_truncated_cycle_file_is_reported_and_others_are_read(tmp_path: Path, cut: int) -> None:
    log = read(written(tmp_path, **{"0": FIRST, "1": SECOND[:cut]}))
    assert "malformed_lines" in noticed(log)
    assert [one.number for one in log.table.observed.cycles] == [0]


def test_cycle_files_alone_are_refused_with_a_tip(tmp_path: Path) -> None:
    folder = written(tmp_path) / "nvrx"
    for source in (folder, folder / "cycle_info.812.0.0"):
        with pytest.raises(GoodputError) as refused:
            goodput_cli.analyze(str(source))
        assert "cycle_info.812.0.0" in str(refused.value)
        assert "job_cycle0.log" in str(refused.value)


@pytest.mark.parametrize(
    ("key", "value", "kept"),
    [
        ("cycle_start_time", "", 0),
        ("cycle_start_time", "soon", 0),
        ("cycle_start_time", 7, 0),
        ("cycle_number", -1, 0),
        ("attempt_index", "1e9", 0),
        ("attempt_index", "3", 1),
        ("cycle_end_time", "2020-01-01T00:00:00Z", 1),
        ("active_nodes", "node-[1-99999999]", 1),
        ("active_nodes", None, 0),
        ("standby_nodes", ["node-1"], 1),
    ],
)
def test_invalid_values_of_cycle_files_are_rejected(tmp_path: Path, key: str, value: object, kept: int) -> None:
    wrong = cycle_info(1, "2026-05-01T10:09:50Z", "2026-05-01T10:20:00Z", "node-01", **dict[str, Any]({key: value}))
    found = read(written(tmp_path, **{"1": wrong})).table.observed.cycles
    assert len(found) == kept
    assert all(one.end is None or one.end >= one.begin for one in found)


def test_cycles_in_a_folder_of_two_jobs_match_by_number(tmp_path: Path) -> None:
    folder = written(tmp_path, "")
    os.remove(folder / "job.log")
    begin = '{"job_name": "llm-%s", "goodput_event": "%s", "goodput_time": %d, "step": %d}\n'
    for job in ("812", "813"):
        lines = [begin % (job, "step_finished", 1777629600 + 60 * step, step) for step in range(1, 5)]
        (folder / f"llm-{job}.jsonl").write_text("".join(lines))
    assert {one.job for one in read(folder).table.observed.cycles} == {"llm-812"}
    os.rename(folder / "nvrx" / "cycle_info.812.0.0", folder / "nvrx" / "cycle_info.9.0.0")
    (folder / "nvrx" / "cycle_info.9.0.0").write_text(FIRST.replace('"812"', '"9"'))
    log = read(folder)
    assert [one.number for one in log.table.observed.cycles] == [1]
    assert "cycles_alone" in noticed(log)


def test_cycle_file_names_are_recognized() -> None:
    assert is_cycle_file("run/nvrx/cycle_info.812.0.17")
    assert is_cycle_file("cycle_info..0.0")  # Without a scheduler.
    assert is_cycle_file("cycle_info.a.b.0.1.gz")
    for name in ("cycle_info.812.current", "cycle_info.812.0.1.tmp", "cycle_info.812.0", "my_cycle_info.1.2.3.log"):
        assert not is_cycle_file(name)
    assert home_of("run/nvrx/cycle_info.812.0.1") == "run"
    assert home_of("run/cycles/cycle_info.812.0.1") == "run/cycles"
