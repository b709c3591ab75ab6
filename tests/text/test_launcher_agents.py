"""Launcher agents of several nodes: their start lines within one rendezvous are one start (accounting §3)."""

from __future__ import annotations

from pathlib import Path

import pytest

import goodput_cli
from tests.text.agent_logs import OUTAGE_SECONDS, RENDEZVOUS_SECONDS, AgentJob

LAUNCHERS = ("torchrun", "nvrx")
LAYOUTS = ("files", "prefixes", "merged")


@pytest.mark.parametrize("nodes", [2, 8, 64])
@pytest.mark.parametrize("apart", [0, 2, 12])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_one_outage_of_agents_is_one_disruption(
    tmp_path: Path, launcher: str, layout: str, apart: int, nodes: int
) -> None:
    AgentJob(nodes, launcher, apart).write(tmp_path, layout)
    analysis = goodput_cli.analyze(tmp_path)
    assert (analysis.job.attempts, analysis.job.disruptions) == (2, 1)
    # NVRx reports its rendezvous, which is elastic re-initialization and no downtime.
    rendezvous = 0 if launcher == "torchrun" else RENDEZVOUS_SECONDS
    assert analysis.disruptions[0].downtime_ns / 10**9 <= OUTAGE_SECONDS - rendezvous + apart
    assert analysis.disruptions[0].downtime_ns / 10**9 >= OUTAGE_SECONDS - rendezvous


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_two_quick_outages_of_agents_stay_two(tmp_path: Path, launcher: str, layout: str) -> None:
    AgentJob(4, launcher, 2, outages=(15, 15)).write(tmp_path, layout)
    analysis = goodput_cli.analyze(tmp_path)
    assert (analysis.job.attempts, analysis.job.disruptions) == (3, 2)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_first_start_of_agents_is_one_attempt(tmp_path: Path, launcher: str, layout: str) -> None:
    AgentJob(4, launcher, 12, outages=(), last=15).write(tmp_path, layout)
    assert goodput_cli.analyze(tmp_path).job.attempts == 1
