"""The reimplemented rules of the reference library against the library itself: on generated logs, the amounts agree to
the microsecond. So `goodput reconcile` explains all of a difference or reports that it does not."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.compat.library import ELASTIC, answer_of, entries
from goodput_cli.compat.library_worker import compute
from goodput_cli.compat.reconcile import Reconciliation, events_seen, reconcile
from goodput_cli.compat.rules import RULES
from tests.accounting.test_properties import analyse, slowly
from tests.strategies import any_logs, messy_logs, step_logs

Lines = Sequence[str]
CLOSE = 100_000
"""ns. The library adds floats of seconds since 1970, each off by up to a quarter of a microsecond."""


WITHOUT_EFFECT = (
    "checkpointer_blocking_duration_secs", "checkpointer_duration_secs", "wait_for_prev_duration_secs",
    "get_old_steps_duration_secs",
)  # fmt: skip
"""Fields of Orbax' lines that the library requires, although they do not affect the comparison."""


def whole(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the entry with the fields that the library requires, so that more than half of the logs are compared."""
    return {**dict.fromkeys(WITHOUT_EFFECT, 0.0), **entry} if "event_type" in entry else entry


def in_process(analysis: Analysis) -> Reconciliation:
    """Return the comparison with the library in this process, because starting one for each of hundreds of logs takes
    too long."""
    table = events_seen(analysis.timeline)
    elastic = any(bool((table.kind == kind).any()) for kind in ELASTIC)
    question = {"elastic": elastic, "asked_at": analysis.timeline.end / 1e9}
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            said: dict[str, Any] = compute([whole(entry) for entry in entries(table, "job")], question, folder)
        except Exception as error:
            said = {"failed": f"{type(error).__name__}: {error}"}
    return reconcile(analysis, answer_of({"version": "0", **said}))


@slowly
@given(st.one_of(step_logs(), any_logs(), messy_logs()), st.sampled_from([{}, {"as_of": 40}, {"stall_factor": 2.0}]))
def test_every_difference_is_explained(lines: Lines, question: dict[str, Any]) -> None:
    analysis = analyse(lines, **question)
    if analysis is None:
        return
    found = in_process(analysis)
    assert {one.rule for one in found.movements} <= RULES.keys()
    if found.answer.failed is None:
        for row in found.rows:
            assert abs(row.not_explained_ns or 0) < CLOSE, row
        assert found.answer.disruptions == found.disruptions_there
