"""A full queue: dropped lines, and their count."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput_cli.record import Recorder
from goodput_cli.record.lines import LOADING, PHASE_LINE, SPARE, STEP_LINE, VITAL, LineSerializer
from goodput_cli.record.queues import Queue, UnavailableError
from goodput_cli.record.writer import Writer
from tests.record.record_programs import lines, run

LINES = LineSerializer("j")
BEGIN, END = LINES.fact("data_loading_start_time", 1), LINES.fact("data_loading_end_time", 1)


def put(queue: Queue, *kinds: int) -> None:
    for kind in kinds:
        queue.put(b"%d\n" % kind, kind, queue.number)


def taken(queue: Queue) -> list[int]:
    return [item[2] for item in queue.take(1000, 10**9)]


def test_newest_least_important_lines_are_dropped_first() -> None:
    queue = Queue(4, 10**6)
    put(queue, STEP_LINE, SPARE, STEP_LINE, VITAL)
    put(queue, STEP_LINE)  # the heartbeat is dropped
    put(queue, STEP_LINE)  # no more important than the others: the new line is dropped
    put(queue, PHASE_LINE, VITAL)  # steps are dropped, the newest first
    assert (queue.drops.lines, queue.drops.steps) == (4, 3)
    items = queue.take(1000, 10**9)
    assert [(item[1], item[2]) for item in items] == [(0, STEP_LINE), (3, VITAL), (5, PHASE_LINE), (6, VITAL)] or [
        item[2] for item in items
    ] == [STEP_LINE, VITAL, PHASE_LINE, VITAL]


def test_vital_lines_are_dropped_last() -> None:
    queue = Queue(2, 10**6)
    put(queue, VITAL, VITAL, PHASE_LINE, STEP_LINE, VITAL)
    assert taken(queue) == [VITAL, VITAL]
    assert queue.drops.lines == 3


def test_loads_are_dropped_in_pairs() -> None:
    queue = Queue(4, 10**6)
    for line in (BEGIN, END, BEGIN):
        queue.put(line, LOADING, 1)
    put(queue, STEP_LINE, STEP_LINE)  # one line too many: the open load is dropped, and later its end
    queue.put(END, LOADING, 1)
    assert taken(queue) == [LOADING, LOADING, STEP_LINE, STEP_LINE]
    assert queue.drops.lines == 2


def test_end_of_a_sent_load_is_kept() -> None:
    queue = Queue(2, 10**6)
    queue.put(BEGIN, LOADING, 1)
    queue.done(queue.take(1, 1000))
    queue.put(END, LOADING, 1)
    put(queue, STEP_LINE, STEP_LINE)
    assert taken(queue) == [LOADING, STEP_LINE]


@given(st.lists(st.sampled_from(["begin", "end", "step", "vital", "take"]), max_size=200))
def test_every_loss_is_counted_and_no_load_is_halved(story: list[str]) -> None:
    queue = Queue(5, 10**6)
    written = opened = 0
    delivered: list[tuple[int, int, int, bytes]] = []
    for what in story:
        if what == "take":
            items = queue.take(2, 10**6)
            queue.done(items)
            delivered += items
            continue
        if what == "end" and not opened:
            continue
        opened += {"begin": 1, "end": -1}.get(what, 0)
        line, kind = {"begin": (BEGIN, LOADING), "end": (END, LOADING), "step": (b"s\n", STEP_LINE)}.get(
            what, (b"v\n", VITAL)
        )
        queue.put(line, kind, written)
        written += 1
        assert queue.lines <= 5 + opened + 1
    items = queue.take(1000, 10**6)
    queue.done(items)
    delivered += items
    assert len(delivered) + queue.drops.lines == written
    assert [item[0] for item in delivered] == sorted(item[0] for item in delivered)
    assert (queue.lines, queue.bytes) == (0, 0)
    depth = 0
    for *_, line in delivered:
        depth += {BEGIN: 1, END: -1}.get(line, 0)
        assert depth >= 0
    assert depth <= opened


class Gate:
    """A sink that fails while it is closed."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.lines: list[dict[str, Any]] = []

    def write(self, line: bytes) -> None:
        if not self.open.is_set():
            raise UnavailableError("shut")
        self.lines.append(json.loads(line))


def test_recovered_sink_reports_its_lost_lines() -> None:
    gate = Gate()
    said: list[str] = []
    writer = Writer("j", gate, queue_lines=100, warn=said.append, grace=100)
    for step in range(1000):
        writer.write(writer.lines.step(step, step * 10**6), STEP_LINE, step * 10**6)
    writer.write(writer.lines.fact("job_end_time", 10**9), VITAL, 10**9)
    gate.open.set()
    assert writer.flush()
    writer.write(writer.lines.step(5000, 10**9), STEP_LINE, 10**9)
    writer.close()
    steps = [line["step_count"] for line in gate.lines if "step_count" in line]
    (dropped,) = [line for line in gate.lines if "goodput_event" in line]
    assert steps == [*range(99), 5000]
    assert (dropped["lines"], dropped["steps"], dropped["sink"]) == (901, 901, "Gate")
    assert (dropped["from"], dropped["to"]) == (99, 999)
    assert dropped["reason"] == "queue full"
    assert gate.lines.index(dropped) < len(gate.lines) - 1
    assert any("queue is full" in sentence for sentence in said)


def test_raising_sink_delays_no_other() -> None:
    class Raises:
        def write(self, _line: bytes) -> None:
            raise ValueError("no")

    gate = Gate()
    gate.open.set()
    writer = Writer("j", [Raises(), gate], warn=lambda _: None, grace=0.2)
    for step in range(1000):
        writer.write(writer.lines.step(step, 1), STEP_LINE, 1)
    limit = time.monotonic() + 120
    while len(gate.lines) < 1000 and time.monotonic() < limit:
        time.sleep(0.01)
    assert len(gate.lines) == 1000
    writer.close()


ENDS_PROGRAMS = """
from goodput_cli.record import Recorder

class Sink:
    def write(self, line):
        raise {"SystemExit": SystemExit, "KeyboardInterrupt": KeyboardInterrupt}[sys.argv[1]](7)

recorder = Recorder("j", [Sink(), "log.jsonl"], grace=2.0)
with recorder.run():
    recorder.begin_step(0)
    recorder.flush(0.1)
print("went on")
"""
NO_THREADS = """
import resource, threading
threading.stack_size(1 << 30)
resource.setrlimit(resource.RLIMIT_AS, (1 << 29, resource.RLIM_INFINITY))
"""


@pytest.mark.parametrize("threads", ["", NO_THREADS])
@pytest.mark.parametrize("kind", ["SystemExit", "KeyboardInterrupt"])
def test_sink_raising_system_exit_ends_nothing(tmp_path: Path, kind: str, threads: str) -> None:
    out, said = run(tmp_path, threads + ENDS_PROGRAMS, kind)
    assert out == "went on\n"
    assert f"Sink: {kind}; lines are kept and sent again later" in said
    assert "Traceback" not in said
    *_, last = lines(tmp_path / "log.jsonl")
    assert (last["goodput_event"], last["sink"], last["lines"]) == ("dropped", "Sink", 4)


def test_without_threads_only_heartbeats_are_missing(tmp_path: Path) -> None:
    program = "from goodput_cli.record import Recorder\nwith Recorder('j', 'log.jsonl').run() as run: pass\n"
    _, said = run(tmp_path, NO_THREADS + program)
    assert "heartbeats are not recorded: can't start new thread" in said
    assert "nothing is recorded" not in said
    assert "job_end_time" in lines(tmp_path / "log.jsonl")[-1]


def test_failing_warn_callback_has_no_effect(tmp_path: Path) -> None:
    def refuse(_sentence: str) -> None:
        raise ValueError

    recorder = Recorder("j", "/dev/full", heartbeat=0, warn=refuse)
    with recorder.run():
        recorder.begin_step("none")
    assert tmp_path.exists()
