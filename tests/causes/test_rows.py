"""Each row of evidence reads its sample and gives the declared result."""

from __future__ import annotations

import pytest

from goodput_cli.events.text.causes import CauseRow, shipped_rows
from goodput_cli.vocabulary.categories import CAUSES, GROUPS, PEER_LOST, ROLES

ROWS = shipped_rows().rows
TOO_COMMON = ("Error", "WARN", "Killed", "rank")
"""Words of healthy logs: an anchor must be rarer."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_row_reads_its_sample(row: CauseRow) -> None:
    rows = shipped_rows()
    found = rows.read_exception(row.sample, [row.sample_frame]) if row.of_exceptions else rows.read(row.sample)
    assert found is not None
    assert found.row == row.name
    assert found.code in {*CAUSES, PEER_LOST}
    assert found.role in ROLES


@pytest.mark.parametrize("row", [row for row in ROWS if row.of_exceptions], ids=lambda row: row.name)
def test_exception_row_reads_no_other_line(row: CauseRow) -> None:
    found = shipped_rows().read(row.sample)
    assert found is None or found.row != row.name
    assert not row.anchors
    assert bool(row.frames) == bool(row.sample_frame)


@pytest.mark.parametrize("row", [row for row in ROWS if not row.of_exceptions], ids=lambda row: row.name)
def test_anchor_is_rare_and_in_the_sample(row: CauseRow) -> None:
    assert any(anchor in row.sample for anchor in row.anchors)
    is_whole_line = row.regex.startswith("^") and row.regex.endswith("$")
    assert all(len(anchor) >= 4 and (is_whole_line or anchor not in TOO_COMMON) for anchor in row.anchors)


def test_row_names_are_unique() -> None:
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)


def test_causes_are_26_in_nine_groups() -> None:
    assert len(CAUSES) == 26
    assert {row.group for row in CAUSES.values()} == set(GROUPS)
    assert len(GROUPS) == 9


@pytest.mark.parametrize(
    "line",
    [
        "if you see CUDA out of memory, use a smaller batch",
        "    raise RuntimeError('DataLoader worker (pid(s) {}) exited unexpectedly'.format(pids))",
        "CUDA kernel errors might be asynchronously reported at some other API call",
        "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
        "There are some potential root causes: (1) The process is killed by SIGKILL by OOM killer",
        "Either the leader task was preempted/died/restarted unexpectedly",
        "GPU 0: uncorrectable ECC errors: 0",
        "srun: error: node-3: tasks 0-7: Exited with exit code 0",
    ],
)
def test_guesses_and_source_words_are_not_evidence(line: str) -> None:
    assert shipped_rows().read(line) is None
