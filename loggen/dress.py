"""Changes to lines after they are written: Cloud Logging envelopes, shuffling, bad lines."""

from __future__ import annotations

import json
import mmap
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from loggen.block import Block
from loggen.chance import Chance
from loggen.resiliency import iso
from loggen.scenario import Model, Scenario

_SHUFFLE_SEED, _BAD_SEED = 2, 3
_BATCH = 32_768
_WRONG_TYPE = {
    Model.RECORDER: {"step_count": "twelve", "step_start_time": "soon"},
    Model.RESILIENCY: {"timestamp": "soon", "event_type": "checkpoint_saved", "step": "twelve"},
}


@dataclass(frozen=True)
class BadLine:
    """A line that no reader can use.

    line: its number in the log, from 1.
    why: `cut`, `not_json`, `not_utf8`, `not_object`, `wrong_type` or `unrecognised`.
    """

    line: int
    why: str


def wrapped(blocks: Iterable[Block], scenario: Scenario) -> Iterator[list[bytes]]:
    """Yield the lines as bytes, without newline; as Cloud Logging entries if the scenario requests it."""
    count = 0
    for block in blocks:
        lines = _entries(block, scenario, count) if scenario.envelopes else block.lines
        count += len(lines)
        yield [line.encode() for line in lines]


def _entries(block: Block, scenario: Scenario, count: int) -> list[str]:
    """Return the lines as entries of a log sink; the insertId gives the line's position in the log."""
    name = f"goodput_{scenario.job_name}"
    if scenario.model == Model.RESILIENCY:
        name = f"{scenario.job_name}-goodput"
    tail = json.dumps({
        "logName": f"projects/example-project/logs/{name}", "severity": "INFO",
        "resource": {"type": "global", "labels": {"project_id": "example-project"}},
    })[1:]  # fmt: skip
    return [
        f'{{"insertId": "{scenario.seed:x}-{number:08x}", "timestamp": "{time}Z", "jsonPayload": {line}, {tail}'
        for number, (time, line) in enumerate(zip(iso(block.times), block.lines, strict=True), start=count)
    ]


def shuffled(batches: Iterable[list[bytes]], scenario: Scenario) -> Iterator[list[bytes]]:
    """Yield the lines in random order. They wait in a temporary file, so that memory holds 16 bytes per line."""
    lengths: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
    with tempfile.TemporaryFile() as file:
        for batch in batches:
            file.write(b"".join(batch))
            lengths.append(np.fromiter(map(len, batch), dtype=np.int64, count=len(batch)))
        file.flush()
        ends = np.cumsum(np.concatenate(lengths)) if lengths else np.empty(0, dtype=np.int64)
        if not len(ends):
            return
        order = np.argsort(Chance(scenario.seed, _SHUFFLE_SEED).uniform(len(ends)), kind="stable")
        starts = np.concatenate([[0], ends[:-1]])
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            for first in range(0, len(order), _BATCH):
                rows = order[first : first + _BATCH]
                pairs = zip(starts[rows].tolist(), ends[rows].tolist(), strict=True)
                yield [text[start:end] for start, end in pairs]


def spoiled(batches: Iterable[list[bytes]], scenario: Scenario, bad: list[BadLine]) -> Iterator[list[bytes]]:
    """Yield the lines with bad ones between them, `bad_share` of all; append each to `bad`."""
    chance = Chance(scenario.seed, _BAD_SEED)
    junk = _junk(scenario)
    chosen = scenario.bad_share / (1.0 - scenario.bad_share)
    written = 0
    for batch in batches:
        rows = np.flatnonzero(chance.uniform(len(batch)) < chosen).tolist()
        mixed: list[bytes] = []
        done = 0
        for row in rows:
            mixed += batch[done:row]
            done = row
            why = list(junk)[chance.below(len(junk))]
            bad.append(BadLine(written + len(mixed) + 1, why))
            mixed.append(junk[why] or batch[row][: len(batch[row]) // 2])
        mixed += batch[done:]
        written += len(mixed)
        yield mixed


def _junk(scenario: Scenario) -> dict[str, bytes]:
    """Return one line of each bad sort; empty: half of the next good line."""
    job = json.dumps(scenario.job_name)
    return {
        "cut": b"",
        "not_json": b"step 1200 loss 2.31 lr 3.0e-4",
        "not_utf8": b'{"message": "caf\xe9"}',
        "not_object": b"[1, 2, 3]",
        "wrong_type": json.dumps({"job_name": scenario.job_name} | _WRONG_TYPE[scenario.model]).encode(),
        "unrecognised": f'{{"job_name": {job}, "message": "checkpoint queue is empty"}}'.encode(),
    }
