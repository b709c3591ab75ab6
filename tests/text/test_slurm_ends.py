"""Deaths as launchers, Slurm and collective libraries write them into the same stdout as a trainer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.text.support import analysed, codes, seconds, written

TRAINED = """\
[before the start of training step] datetime: 2026-03-01 10:00:00
 [2026-03-01 10:01:00] iteration       10/     100 | elapsed time per iteration (ms): 4000.0 |
 [2026-03-01 10:01:40] iteration       20/     100 | elapsed time per iteration (ms): 4000.0 |
"""


@pytest.mark.parametrize(
    "line",
    [
        "srun: error: node-3: task 24: Out Of Memory",
        "srun: error: node-3: tasks 24-31: Killed",
        "srun: error: node-3: task 24: Exited with exit code 1",
    ],
)
def test_a_death_without_a_time_is_at_the_last_time(tmp_path: Path, line: str) -> None:
    analysis = analysed(written(tmp_path / "run", a_out=TRAINED + line + "\n"))
    assert analysis.job.ending == "crashed"
    assert seconds(analysis) == {"productive": 80, "program_startup": 20}


def test_records_with_times_of_their_own_are_never_missing(tmp_path: Path) -> None:
    log = TRAINED.replace("      10/", "       1/").replace("      20/", "      60/")
    assert "missing_records" not in codes(analysed(written(tmp_path / "run", a_out=log)))
