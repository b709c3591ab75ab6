"""Recovery phases of outages (accounting §10, Links), calculated by hand from logs in the format of real programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import goodput_cli
from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.disruptions.find import last_failure
from goodput_cli.analysis.disruptions.sheet import disruptions_sheet
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.recovery.chain import OutageTimeline, chains_of
from goodput_cli.analysis.recovery.columns import recoveries_of
from goodput_cli.analysis.recovery.links import TOTAL, chain_sheets, link_totals, order_notes
from goodput_cli.analysis.recovery.points import standby_ns
from goodput_cli.events.signs import Cycle, RecoveryEvent, RecoveryPhase
from tests.support.story import (
    BASE,
    Lines,
    account,
    crashed,
    end,
    finished,
    loaded,
    saved,
    scheduled,
    start,
    steps,
    with_signs,
)

SECOND = 10**9
RANK = "[INFO] [node-03] [workload:None(None) infra:0(0)] profiling.py:93   -"


def at(seconds: float) -> int:
    """Return the time in ns of a position in the log."""
    return round((BASE + seconds) * SECOND)


def clock(seconds: int, dot: str = ".") -> str:
    """Return a time on the first of March: `2026-03-01 10:00:00.000`."""
    return f"2026-03-01 {10 + seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{dot}000"


def iteration(seconds: int, number: int, ms: int = 10_000) -> str:
    """Return a line of Megatron-LM."""
    return (
        f" [{clock(seconds)}] iteration {number:8d}/     400 | consumed samples: {64 * number:12d} | elapsed time per "
        f"iteration (ms): {ms}.0 | learning rate: 1.0E-04 | global batch size:    64 | lm loss: 2.0E+00 |"
    )


def iterations(begin: int, first: int, last: int, *, every: int = 10) -> list[str]:
    """Return lines of steps of `every` seconds; the first one ends at `begin`."""
    return [
        iteration(begin + every * place, number, 1000 * every) for place, number in enumerate(range(first, last + 1))
    ]


def cycle(seconds: int, number: int, event: str, node: str = "node-03") -> str:
    """Return a line of the NVRx launcher."""
    host = RANK.replace("node-03", node)
    return (
        f"{clock(seconds, ',')} {host} Cycle: {number} Event: {event} Node: {node}_4100_0 Rank: 0 "
        f"Time: {clock(seconds)} UTC"
    )


def agent(seconds: int, words: str) -> str:
    """Return a line of the torchrun agent."""
    return f"[{clock(seconds, ',')}] torch.distributed.elastic.agent.server.api: [INFO] [default] {words}"


def analysis_of(folder: Path, lines: Sequence[str], **files: Sequence[str]) -> Analysis:
    for name, some in {"slurm-7001.out": lines, **{f"{name}.txt": more for name, more in files.items()}}.items():
        (folder / name).write_text("\n".join(some) + "\n", encoding="utf-8")
    return goodput_cli.analyze(folder)


def chains(timeline: Timeline) -> list[OutageTimeline]:
    return chains_of(timeline, last=last_failure(timeline) is not None)


def seconds(chain: OutageTimeline) -> dict[str, float]:
    """Return the length of each recovery phase in seconds."""
    return {one.point.words: one.ns / SECOND for one in chain.links}


def lost(chain: OutageTimeline) -> dict[str, float]:
    return {one.point.words: one.lost_ns / SECOND for one in chain.links}


HANG = [
    *(cycle(0, 0, name) for name in ("rendezvous_started", "rendezvous_completed")),
    cycle(5, 0, "worker_start_started"),
    *iterations(70, 1, 30),
    cycle(960, 1, "failure_detected"),
    cycle(972, 1, "worker_terminated"),
    cycle(980, 1, "rendezvous_started"),
    cycle(1010, 1, "health_check_completed"),
    cycle(1018, 1, "rendezvous_completed"),
    cycle(1019, 1, "worker_start_started"),
    cycle(1021, 1, "worker_start_completed"),
    *iterations(1120, 21, 60),
]
"""Steps 1 to 30 end every 10 s from 70 s on. After 10 min without lines the launcher restarts from step 20."""


def test_hang_detected_by_launcher_has_all_phases(tmp_path: Path) -> None:
    analysis = analysis_of(tmp_path, HANG)
    (chain,) = chains(analysis.timeline)
    assert chain.redone_ns == 100 * SECOND
    assert seconds(chain) == {
        "detected": 600, "terminated": 12, "rendezvous begun": 8, "health checked": 30, "rendezvous done": 8,
        "workers started": 3, "training again": 89, "caught up": 100,
    }  # fmt: skip
    assert lost(chain) == {**seconds(chain), "caught up": 0}
    workers = chain.link(RecoveryPhase.WORKERS_STARTED)
    assert workers is not None
    assert (workers.downtime_ns, workers.restart_ns) == (1 * SECOND, 2 * SECOND)
    assert chain.lost_ns == analysis.disruptions[0].lost_ns == 850 * SECOND
    assert (chain.detect_ns, chain.recover_ns, chain.failed_is_known) == (600 * SECOND, 750 * SECOND, False)
    assert (chain.recovery, chain.by, chain.budget) == ("automatic", "launcher", None)
    detected = chain.link(RecoveryPhase.DETECTED)
    assert detected is not None
    assert detected.missing == (RecoveryPhase.FAILED,)
    assert not detected.alone


def test_hang_is_shown_phase_by_phase(tmp_path: Path) -> None:
    analysis = analysis_of(tmp_path, HANG)
    (sheet,) = chain_sheets(analysis)
    assert sheet.title == "Disruption 1, 2026-03-01: 14 min 10 s lost"
    assert [row[:4] for row in sheet.rows] == [
        ("redone work", "1 min 40 s", "1 min 40 s", "wasted: steps 21 to 30 again"),
        ("last progress", "10:06:00", "", ""),
        ("detected", "+ 10 min 00 s", "10 min 00 s", "wasted; failed: not logged"),
        ("terminated", "+ 12.0 s", "12.0 s", "downtime; decided: not logged"),
        ("rendezvous begun", "+ 8.00 s", "8.00 s", "downtime"),
        ("health checked", "+ 30.0 s", "30.0 s", "restart"),
        ("rendezvous done", "+ 8.00 s", "8.00 s", "restart"),
        ("workers started", "+ 3.00 s", "3.00 s", "1.00 s downtime, 2.00 s restart"),
        ("training again", "+ 1 min 29 s", "1 min 29 s", "restart"),
        ("caught up", "+ 1 min 40 s", "", "see redone work"),
        ("total", "", "14 min 10 s", ""),
    ]
    assert sheet.notes[-1] == (
        "10 min 00 s of 14 min 10 s passed before the failure was detected: a watchdog of 2 min 00 s would have saved "
        "8 min 00 s"
    )


@pytest.mark.parametrize(
    "event",
    ["failure_detected", "worker_terminated", "rendezvous_started", "health_check_completed", "rendezvous_completed"],
)
def test_missing_sign_adds_its_phase_to_the_next(tmp_path: Path, event: str) -> None:
    """Only the signs are removed: an end or a start in the same line stays."""
    timeline = analysis_of(tmp_path, HANG).timeline
    (whole,) = chains(timeline)
    place = next(n for n, line in enumerate(HANG, 1) if event in line and "Cycle: 1" in line)
    signs = [one for one in timeline.table.observed.signs if not one.where.endswith(f":{place}")]
    (less,) = chains(with_signs(timeline, *signs))
    gone = next(one.point for one in timeline.table.observed.signs if one.where.endswith(f":{place}"))
    behind = next(one.point for one in whole.links if one.point > gone)
    grown = less.link(behind)
    assert less.link(gone) is None
    assert grown is not None
    assert gone in grown.missing
    expected = {name: took for name, took in seconds(whole).items() if name != gone.words}
    assert seconds(less) == {**expected, behind.words: seconds(whole)[gone.words] + seconds(whole)[behind.words]}
    assert (less.lost_ns, less.redone_ns) == (whole.lost_ns, whole.redone_ns)


def test_clock_ahead_moves_phases_and_is_reported(tmp_path: Path) -> None:
    """Four nodes; node-04's clock is 3 s ahead."""
    timeline = analysis_of(tmp_path, HANG).timeline
    told = [one for one in timeline.table.observed.signs if one.facts.get("cycle") == 1]
    (alone,) = chains(with_signs(timeline, *told))

    def nodes(ahead: int) -> list[RecoveryEvent]:
        hosts = {"node-01": 0, "node-02": 0, "node-03": 0, "node-04": ahead}
        return [replace(one, host=host, time=one.time + by * SECOND) for one in told for host, by in hosts.items()]

    (right,) = chains(with_signs(timeline, *nodes(0)))
    (wrong,) = chains(with_signs(timeline, *nodes(3)))
    assert seconds(right) == seconds(alone)
    assert list(order_notes([right])) == []
    assert all(abs(took - seconds(right)[name]) <= 3 for name, took in seconds(wrong).items())
    assert next(iter(order_notes([wrong]))) == (
        "the clock of node-04 is 3.00 s ahead of the other hosts; phases are accurate to that amount"
    )


def test_joined_lost_and_standby_nodes_are_counted(tmp_path: Path) -> None:
    timeline = analysis_of(tmp_path, HANG).timeline
    begin = timeline.start
    job = timeline.table.jobs[0]
    cycles = (
        Cycle(job, "4100", 0, 0, begin, begin + 955 * SECOND, ("a", "b", "c"), ("d", "e")),
        Cycle(job, "4100", 0, 1, begin + 1013 * SECOND, None, ("a", "b", "d"), ("e",)),
    )
    observed = replace(timeline.table.observed, cycles=cycles)
    timeline = replace(timeline, table=replace(timeline.table, observed=observed))
    (chain,) = chains(timeline)
    assert chain.nodes is not None
    assert chain.nodes.words == "c left, d joined, 1 standby node"
    assert chain.nodes.standby_text == "2 standby nodes, 1 used"
    rest = timeline.end - begin - 1013 * SECOND
    assert standby_ns(timeline) == 2 * 955 * SECOND + rest


WATCHDOG = (
    "[rank3]:[E0301 10:48:46.000000000 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=120, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800000 "
    "milliseconds before timing out."
)
CANCELLED = (
    "*** JOB 7001 ON node-01 CANCELLED AT 2026-03-01T10:49:20 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***"
)
SACCT = [
    "JobID|JobName|User|Account|Partition|State|ExitCode|Submit|Eligible|Start|End|AllocTRES|NNodes|NodeList",
    "7001|llm|u1|pre|gpu|REQUEUED|0:0|2026-03-01T09:59:00|2026-03-01T09:59:00|2026-03-01T10:00:00|2026-03-01T10:49:20|"
    "gres/gpu=16|2|node-[01-02]",
    "7001|llm|u1|pre|gpu|COMPLETED|0:0|2026-03-01T10:49:20|2026-03-01T10:51:20|2026-03-01T10:57:20|2026-03-01T11:20:45|"
    "gres/gpu=16|2|node-[02-03]",
]
REQUEUE = [*iterations(140, 1, 50, every=20), WATCHDOG, CANCELLED, *iterations(3660, 41, 95, every=20)]


def test_failed_node_and_wait_in_the_queue_are_phases(tmp_path: Path) -> None:
    """The time of the failure is the time of the watchdog's line minus its timeout of 30 min."""
    analysis = analysis_of(tmp_path, REQUEUE, sacct=SACCT)
    (chain,) = chains(analysis.timeline)
    assert chain.redone_ns == 200 * SECOND
    took = seconds(chain)
    assert (took["failed"], took["detected"], took["terminated"]) == (6, 1800, 34)
    assert (took["requeued"], took["allocated"]) == (120, 360)
    allocated = chain.link(RecoveryPhase.ALLOCATED)
    assert allocated is not None
    assert (allocated.lost_ns, allocated.queued_ns) == (0, 360 * SECOND)
    assert chain.link(RecoveryPhase.WORKERS_STARTED) is None  # the start of the allocation does not start processes
    assert (chain.detect_ns, chain.failed_is_known) == (1800 * SECOND, True)
    assert (chain.recovery, chain.timeout_ns) == ("by the scheduler", 1800 * SECOND)
    assert chain.lost_ns == analysis.disruptions[0].lost_ns
    assert chain.recover_ns == sum(
        one.ns for one in chain.links if RecoveryPhase.FAILED < one.point < RecoveryPhase.CAUGHT_UP
    )


def storm(deaths: int) -> list[str]:
    """Return attempts that fail 5 s after step 45, each from step 40."""
    lines = [agent(0, "Rendezvous'ing worker group"), agent(6, "Starting worker group"), *iterations(70, 1, 45)]
    for death in range(1, deaths + 1):
        died = 515 + 135 * (death - 1)
        pid = f"local_rank: 5 (pid: {900 + death}) of binary: /usr/bin/python"
        where = "torch.distributed.elastic.multiprocessing.api: [ERROR]"
        lines.append(f"[{clock(died, ',')}] {where} failed (exitcode: 1) {pid}")
        if death < deaths:
            left = f"{deaths - death}/{deaths - 1} attempts left"
            lines += [
                agent(died + 4, f"Worker group FAILED. {left}; will restart worker group"),
                agent(died + 20, "Rendezvous'ing worker group"),
                agent(died + 26, "Starting worker group"),
                *iterations(died + 90, 41, 45),
            ]
    return lines


def test_start_up_of_repeated_attempts_is_redone_work(tmp_path: Path) -> None:
    """The start-up of a redone attempt is wasted and belongs to the redone work of the next disruption."""
    found = chains(analysis_of(tmp_path, storm(6)).timeline)
    *some, last = found
    assert [one.redone_ns / SECOND for one in some] == [50, 104, 104, 104, 104]
    assert [one.lost_ns / SECOND for one in some] == [81, 135, 135, 135, 189]
    first = some[0]
    assert seconds(first) == {
        "detected": 5, "decided": 4, "rendezvous begun": 16, "workers started": 6, "training again": 54,
    }  # fmt: skip
    again = first.link(RecoveryPhase.TRAINING_AGAIN)
    assert again is not None
    assert (again.lost_ns, again.elsewhere_ns, again.uncategorized_ns) == (0, 54 * SECOND, 0)
    assert first.caught_up_later
    assert lost(some[-1])["training again"] == 54
    assert seconds(some[-1])["caught up"] == 50
    assert [one.budget for one in some] == [(5, 5), (4, 5), (3, 5), (2, 5), (1, 5)]
    assert [one.left_after for one in some] == [4, 3, 2, 1, 0]
    assert not last.followed
    assert seconds(last) == {"detected": 5}


def test_totals_by_phase_equal_losses_of_disruptions(tmp_path: Path) -> None:
    timeline = analysis_of(tmp_path, storm(6)).timeline
    some = [one for one in chains(timeline) if one.number is not None]
    rows = {one.link: one for one in link_totals(some)}
    assert rows[TOTAL].lost_ns == sum(one.lost_ns for one in some) == 675 * SECOND
    assert rows[TOTAL].lost_ns == sum(one.lost_ns for name, one in rows.items() if name != TOTAL)
    decided, detected = rows["decided"], rows["detected"]
    assert (decided.known, decided.of, decided.p50_ns, decided.several) == (5, 5, 4 * SECOND, 0)
    assert (detected.p50_ns, detected.several) == (None, 5)  # failed is not logged
    assert rows["redone work"].p90_ns == round(float(np.percentile([50, 104, 104, 104, 104], 90)) * SECOND)


def test_mean_time_to_recover_has_an_expected_value(tmp_path: Path) -> None:
    timeline = analysis_of(tmp_path, storm(4)).timeline
    one = recoveries_of([chain for chain in chains(timeline) if chain.number is not None])
    assert (one.mttr_seconds, one.p50_seconds, one.p90_seconds) == (85, 85, 85)
    assert (one.recovered, one.not_recovered, one.at_most) == (3, 0, True)
    assert (one.mean_time_to_detect_seconds, one.detected, one.automatic) == (5, 3, 3)


# Golden files of simulated jobs.


def story(*events: Lines, signs: Sequence[RecoveryEvent] = ()) -> list[OutageTimeline]:
    return chains(with_signs(account(*events).analysis.timeline, *signs))


def sign(point: RecoveryPhase, when: float, line: int = 900, **facts: str | int) -> RecoveryEvent:
    return RecoveryEvent("", point, at(when), f"agent.log:{line}", facts=facts)


def test_two_failures_before_any_step_have_separate_phases() -> None:
    """The phases of the first end when the next attempt is up; those of the second cover the rest."""
    found = story(
        start(0), steps(0, 6, at=10), crashed(70), start(100), crashed(130), start(160), crashed(190),
        start(250), steps(6, 4, at=300), end(340),
        signs=[sign(RecoveryPhase.DETECTED, 75, 1), sign(RecoveryPhase.DETECTED, 131, 2)],
    )  # fmt: skip
    first, second, third = found
    assert [(one.point.words, one.ns / SECOND) for one in first.links] == [("detected", 15), ("workers started", 25)]
    assert (first.trained, second.trained, third.trained) == (False, False, True)
    assert first.recover_ns is None
    assert seconds(second) == {"detected": 31, "workers started": 29}
    assert seconds(third)["workers started"] == 90
    one = recoveries_of(found)
    assert (one.recovered, one.not_recovered) == (1, 2)


def test_crash_at_the_end_of_a_job_has_only_its_end() -> None:
    (chain,) = story(
        start(0),
        steps(0, 6, at=10),
        crashed(75),
        signs=[sign(RecoveryPhase.DETECTED, 80), sign(RecoveryPhase.WORKERS_STARTED, 90)],
    )
    assert (chain.number, chain.followed, chain.lost_ns) == (None, False, 0)
    assert seconds(chain) == {"detected": 20}


def test_planned_stop_has_phases_but_is_in_no_total() -> None:
    planned = account(start(0), steps(0, 6, at=10), end(75), start(100), steps(6, 6, at=110), end(180))
    (chain,) = chains(planned.analysis.timeline)
    assert (chain.number, chain.followed) == (None, True)
    assert planned.analysis.disruptions.chains == ()
    assert planned.analysis.reliability is not None
    assert planned.analysis.reliability.recoveries is None


def test_checkpoint_log_has_unknown_end_of_progress() -> None:
    (chain,) = story(
        start(0), loaded(10, 0), finished(60, 5), saved(62, 5), start(200), loaded(230, 5), finished(290, 10),
        saved(292, 10), signs=[sign(RecoveryPhase.DETECTED, 120)],
    )  # fmt: skip
    detected = chain.link(RecoveryPhase.DETECTED)
    assert detected is not None
    assert detected.at_most
    assert detected.undetermined_ns == detected.downtime_ns > 0
    assert chain.at_most


def test_hundred_disruptions_are_all_counted_and_shown() -> None:
    lives = [(start(1000 * n), steps(6 * n, 6, at=1000 * n + 10)) for n in range(101)]
    analysis = account(*(line for life in lives for line in life), end(100_080)).analysis
    found = [one for one in analysis.disruptions.chains if one is not None]
    assert len(found) == 100
    assert {one.number for one in found} == set(range(1, 101))
    assert len(disruptions_sheet(analysis, None, full=True).sections) == 100
    assert analysis.reliability is not None
    recoveries = analysis.reliability.recoveries
    assert recoveries is not None
    times = [one.recover_ns for one in found]
    assert recoveries.p90_seconds == float(np.percentile(np.array(times, dtype=np.int64), 90)) / 1e9


def test_queue_time_is_not_a_loss() -> None:
    (chain,) = story(
        start(0), steps(0, 6, at=10), crashed(70), scheduled(80), start(200), steps(6, 6, at=210), end(280),
        signs=[sign(RecoveryPhase.ALLOCATED, 190)],
    )  # fmt: skip
    assert chain.queued_ns == 120 * SECOND
    assert chain.recover_ns == 150 * SECOND


@pytest.mark.parametrize(
    ("by", "recovery"),
    [
        ("launcher", "automatic"),
        ("agent", "automatic"),
        ("scheduler", "by the scheduler"),
        ("hand", "by hand"),
        ("", None),
    ],
)
def test_recovery_shows_the_component_that_restarted(by: str, recovery: str | None) -> None:
    facts: dict[str, str | int] = {"by": by} if by else {}
    (chain,) = story(
        start(0), steps(0, 6, at=10), crashed(70), start(200), steps(6, 6, at=210), end(280),
        signs=[replace(sign(RecoveryPhase.DECIDED, 100), facts=facts)],
    )  # fmt: skip
    assert chain.recovery == recovery


def test_line_before_an_earlier_point_is_moved_and_reported() -> None:
    (chain,) = story(
        start(0), steps(0, 6, at=10), crashed(70), start(200), steps(6, 6, at=210), end(280),
        signs=[sign(RecoveryPhase.DETECTED, 100, 1), sign(RecoveryPhase.TERMINATED, 96, 2)],
    )  # fmt: skip
    terminated = chain.link(RecoveryPhase.TERMINATED)
    assert terminated is not None
    assert (terminated.ns, terminated.moved_ns) == (0, 4 * SECOND)
    assert list(order_notes([chain])) == [
        "1 event logged out of order, by up to 4.00 s: moved to the time of the preceding event; host clocks may differ"
    ]
