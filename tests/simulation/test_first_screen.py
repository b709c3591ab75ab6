"""First screen for jobs with a known cause and cost: it shows both, and reports no problem for healthy jobs. Each kind
is tested with one job; `python -m tests.simulation.score 5` measures all."""

from __future__ import annotations

import pytest

from tests.simulation.kinds import KINDS, Kind
from tests.simulation.score import run_job


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_first_screen_shows_cause_and_cost(kind: Kind) -> None:
    one = run_job(kind, seed=7)
    assert one.verdict == "right", f"{one.truth}\n{one.screen}"
