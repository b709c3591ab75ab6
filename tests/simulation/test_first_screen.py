"""Jobs whose cause and cost are known: the first screen says both, and blames no healthy job. A job a kind here;
`python -m tests.simulation.score 5` for the whole measure."""

from __future__ import annotations

import pytest

from tests.simulation.kinds import KINDS, Kind
from tests.simulation.score import seen


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_first_screen_says_cause_and_cost(kind: Kind) -> None:
    one = seen(kind, seed=7)
    assert one.verdict == "right", f"{one.truth}\n{one.screen}"
