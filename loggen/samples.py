"""Generated sample logs: each is a scenario with a fixed seed and planned attempts."""

from __future__ import annotations

from datetime import UTC, datetime

from loggen.scenario import Ending, Entry, PlannedAttempt, Scenario

_NIGHT = (
    # Dies right after the checkpoint of step 800: no step is redone, but the outage is still a disruption.
    PlannedAttempt(loaded=0, last_step=800, slices=4, down_seconds=210.0),
    # Crashes 90 steps after its last checkpoint and writes a job end during the exit.
    PlannedAttempt(loaded=800, last_step=1290, slices=4, cut=0.4, ending=Ending.LOGGED, down_seconds=150.0),
    # A start that dies during device initialization.
    PlannedAttempt(loaded=1200, last_step=-1, slices=4, down_seconds=90.0),
    # Hangs for 25 minutes inside step 1503 and goes on. Later the loss diverges and the process is killed.
    PlannedAttempt(
        loaded=1200, last_step=1850, slices=4, cut=0.6, hang_step=1503, hang_seconds=1500.0, down_seconds=600.0
    ),
    # Goes back to step 1400 on purpose: the checkpoints of 1600 and 1800 are abandoned. Then loses a slice.
    PlannedAttempt(loaded=1400, last_step=2230, slices=4, cut=0.3),
    # Three slices, slower; until the fourth comes back right after a checkpoint.
    PlannedAttempt(loaded=2200, last_step=2600, entry=Entry.SLICE_DOWN, slices=3),
    PlannedAttempt(loaded=2600, last_step=3400, entry=Entry.SCALE_UP, slices=4, ending=Ending.CLEAN),
)  # fmt: skip

_MORNING = (
    # Goes on under a new name, with a save every 100 steps, so that a failure costs fewer of them.
    PlannedAttempt(loaded=3400, last_step=3760, slices=4, cut=0.5, down_seconds=540.0),
    PlannedAttempt(loaded=3700, last_step=4100, slices=4, ending=Ending.CLEAN),
)

SAMPLES = {
    "llm-pretrain": Scenario(
        seed=20260112,
        job_name="llm-pretrain-7b",
        start=datetime(2026, 1, 12, 20, 30, tzinfo=UTC),
        save_every=200,
        eval_every=100,
        data_loading_every=50,
        ranks=4,
        slices=4,
        attempts=_NIGHT,
    ),
    "llm-pretrain-r2": Scenario(
        seed=20260113,
        job_name="llm-pretrain-7b-r2",
        start=datetime(2026, 1, 13, 9, 0, tzinfo=UTC),
        save_every=100,
        eval_every=50,
        eval_seconds=60.0,
        data_loading_every=50,
        ranks=4,
        slices=4,
        attempts=_MORNING,
    ),
}
"""Scenarios by the name of their file in sample_logs/, without `.jsonl`."""
