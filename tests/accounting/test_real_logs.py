"""Logs of real programs, compared with the programs' own clocks (tests/real/README.md)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.analysis.disruptions.sheet import disruptions_sheet
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.vocabulary.text import iso

REAL = Path(__file__).parent.parent / "real"


@dataclass(frozen=True)
class Truth:
    """Measurements of a program. goodput: percent; within: tolerance of the answer in points."""

    attempts: int
    disruptions: int
    steps: int
    goodput: float
    within: float = 0.1


TRUTHS = {
    # An exception with a job end during the exit, a start that was killed before it sent a line, a SIGKILL.
    "recorder-s2": Truth(3, 2, 300, 31.86),
    # A planned stop that waits for its last asynchronous save. The program counts its one hang of 0.3 s in part, and
    # the two waits for saves: 45.53 % by its clock.
    "recorder-s4": Truth(2, 0, 260, 45.29),
    # A slice was lost, and another came: the second passage was planned.
    "recorder-s6": Truth(3, 1, 220, 65.34),
    # Four processes write, and no line names its process: 45 and 39 steps, 4 of them done twice.
    "recorder-m_all_small": Truth(2, 1, 80, 26.1, within=1),
}


@cache
def analysed(name: str, form: str) -> Analysis:
    return goodput_cli.analyze(str(REAL / name / f"{form}.jsonl.gz"))


@pytest.mark.parametrize("form", ["bare", "envelope"])
@pytest.mark.parametrize("name", TRUTHS)
def test_answer_matches_the_clock_of_the_program(name: str, form: str) -> None:
    truth, analysis = TRUTHS[name], analysed(name, form)
    assert (analysis.job.attempts, analysis.job.disruptions) == (truth.attempts, truth.disruptions)
    assert analysis.job.kept_steps == pytest.approx(truth.steps, abs=0.1)
    assert analysis.goodput_percent == pytest.approx(truth.goodput, abs=truth.within)


@pytest.mark.parametrize("name", TRUTHS)
def test_bare_lines_and_entries_give_the_same_answer(name: str) -> None:
    bare, wrapped = analysed(name, "bare"), analysed(name, "envelope")
    assert bare.goodput.ns == wrapped.goodput.ns
    assert {row.name: row.ns for row in bare.badput} == {row.name: row.ns for row in wrapped.badput}


@pytest.mark.parametrize("name", TRUTHS)
def test_real_logs_have_no_warnings(name: str) -> None:
    assert "unrecognised_lines" not in {one.code for one in analysed(name, "envelope").diagnostics}


def test_slice_loss_and_scale_up_are_distinguished() -> None:
    analysis = analysed("recorder-s6", "bare")
    assert [row.ended for row in analysis.disruptions] == ["slice_down", "scale_up"]
    assert analysis.reliability is not None
    assert analysis.reliability.disruptions == 1


def test_scale_up_is_not_counted_as_failure() -> None:
    log = str(REAL / "recorder-s6" / "bare.jsonl.gz")
    record = goodput_cli.advise(log).record
    assert (record.failures, record.disruptions, record.kinds.stop) == (1, 1, 1)
    notes = disruptions_sheet(analysed("recorder-s6", "bare"), None).notes
    assert any("1 disruption and 1 planned scale-up in" in line for line in notes)


def test_wait_for_the_last_save_is_not_recovery() -> None:
    amounts = {row.name: row.ns for row in analysed("recorder-s4", "bare").badput}
    assert amounts.get("infrastructure_recovery_from_disruption", 0) == 0


def test_local_times_use_the_zone_of_their_entries() -> None:
    name = "resiliency-cloud-naive-times"
    assert iso(analysed(name, "envelope").job.start_ns).startswith("2026-11-21T22:53:22")
    assert iso(analysed(name, "bare").job.start_ns).startswith("2026-11-21T14:53:22")
