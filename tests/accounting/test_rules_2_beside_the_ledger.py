"""Accounting §2: values outside of the ledger. Progress at risk, and categories that were not recorded."""

from __future__ import annotations

import pytest

from tests.support.story import (
    account,
    custom,
    end,
    finished,
    init,
    loaded,
    loading,
    prep,
    reinit,
    restore,
    save,
    saved,
    scheduled,
    start,
    started,
    steps,
    story_lines,
    terminated,
    wait,
)

PLAIN = story_lines(start(0), steps(0, 6, at=10), end(70))
"""10 s until the first step, then six steps of 10 s."""


# Outside of the ledger: at risk


def at_risk(*events: str | list[str], as_of: float | None = None) -> tuple[float, float] | None:
    risk = account(*events, as_of=as_of).analysis.at_risk
    return None if risk is None else (risk.steps, risk.ns / 1e9)


def test_at_risk_is_progress_since_the_last_complete_save() -> None:
    assert at_risk(start(0), steps(0, 6, at=10), save(38, 2, number=2)) == (2, 20)


def test_incomplete_save_does_not_reduce_at_risk() -> None:
    # Step 4 is in flight from 50 to 60, half of it in a save that is still going on.
    log = story_lines(start(0), steps(0, 6, at=10), save(38, 2, number=2), save(55, 20, number=4))
    assert at_risk(log, as_of=60) == (2, 15)


def test_checkpoint_saved_is_a_complete_save() -> None:
    assert at_risk(started(0), loaded(0, 10), saved(20, 30), finished(40, 50), terminated(60)) == (20, 20)


def test_at_risk_is_0_after_a_clean_end() -> None:
    assert at_risk(PLAIN, save(38, 2, number=2)) in (None, (0, 0))


def test_at_risk_is_unknown_without_saves() -> None:
    assert at_risk(PLAIN[:-1]) is None


# Not recorded


def test_category_without_evidence_is_not_recorded() -> None:
    missing = set(account(PLAIN).analysis.not_recorded)
    assert missing == {
        "tpu_initialization", "training_prep", "data_loading_sync",
        "unproductive_checkpoint_save_time", "unproductive_checkpoint_restore_time",
        "custom_badput_events", "elastic_slice_down", "elastic_scale_up", "elastic_reinitialization",
        "training_slowdown", "queued",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("category", "events"),
    [
        ("tpu_initialization", init(2, 2)),
        ("training_prep", prep(2, 2)),
        ("data_loading_sync", loading(12, 14)),
        ("unproductive_checkpoint_save_time", [save(32, 0)]),
        ("unproductive_checkpoint_restore_time", [restore(2, 0)]),
        ("custom_badput_events", custom("eval", 22, 22)),
        ("elastic_slice_down", wait("slice_down", 2, 2)),
        ("elastic_scale_up", wait("scale_up", 2, 2)),
        ("elastic_reinitialization", reinit(2, 2)),
        ("queued", [scheduled(0)]),
    ],
)
def test_one_line_makes_its_category_recorded(category: str, events: list[str]) -> None:
    assert category in account(PLAIN).analysis.not_recorded
    assert category not in account(PLAIN, events).analysis.not_recorded


def test_stalls_are_not_recorded_if_switched_off() -> None:
    assert "step_stall" in account(PLAIN, stall_factor=0).analysis.not_recorded
    assert "step_stall" not in account(PLAIN).analysis.not_recorded
