"""A log is read in blocks of lines, and those in parts of some thousand lines. The borders make no difference, and only
one block is in memory."""

from __future__ import annotations

import weakref
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from goodput_cli.events import fast_json
from goodput_cli.events import fast_json as block_reading
from goodput_cli.events.fast_json import Block, Columns, FastJson
from goodput_cli.events.read import read_events
from goodput_cli.events.schema import COLUMNS, EventTable
from goodput_cli.sources import files
from loggen.scenario import Scenario
from loggen.write import log_bytes


def log_file(folder: Path, **scenario: object) -> str:
    path = folder / "run.jsonl"
    path.write_bytes(log_bytes(Scenario(lines=1200, seed=3, bad_share=0.01, **scenario))[0])  # type: ignore[arg-type]
    return str(path)


def contents(table: EventTable, name: str) -> list[object]:
    """Return a column, or details and entries themselves, because their codes depend on the order of the shapes."""
    values = {"detail": table.details, "entry": table.entries}.get(name)
    codes = getattr(table, name).tolist()
    return codes if values is None else [values[code] if code >= 0 else None for code in codes]


@pytest.mark.parametrize("wrapped", [False, True])
def test_lines_are_independent_of_part_and_block_borders(
    wrapped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = log_file(tmp_path, envelopes=wrapped)
    whole = read_events([path])
    monkeypatch.setattr(fast_json, "_AT_ONCE", 50)
    monkeypatch.setattr(block_reading, "PIECE", 1000)
    monkeypatch.setattr(files, "BLOCK_BYTES", 1 << 14)
    parts = read_events([path])
    assert parts.diagnostics == whole.diagnostics
    for name in COLUMNS:
        assert contents(parts.table, name) == contents(whole.table, name), name


def test_only_one_block_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BLOCK_BYTES", 1 << 14)
    made: list[weakref.ref[Block]] = []
    alive: list[int] = []
    read = FastJson.read

    def watched(known: FastJson, block: Block) -> tuple[list[Columns], NDArray[np.int64]]:
        made.append(weakref.ref(block))
        alive.append(sum(one() is not None for one in made))
        return read(known, block)

    monkeypatch.setattr(FastJson, "read", watched)
    assert len(read_events([log_file(tmp_path)]).table) > 1150
    assert len(made) > 5
    assert max(alive) == 1
