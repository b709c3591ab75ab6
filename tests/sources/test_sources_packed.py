"""Packed sources: gzip in one or several members, zstd; a truncated or damaged file keeps its earlier lines."""

from __future__ import annotations

import gzip
import importlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goodput_cli.errors import SourceError
from goodput_cli.events.read import read_events
from goodput_cli.sources.blocks import MAX_PIECE, unpack
from tests.support.logs import found, step, zstd
from tests.support.logs import recorded_steps_of as steps

LINES = [json.dumps(step(number, number)).encode() + b"\n" for number in range(5_000)]


def read_bytes(folder: Path, data: bytes, name: str) -> Any:
    (folder / name).write_bytes(data)
    return read_events([str(folder / name)])


@pytest.mark.parametrize("name", ["a.jsonl.gz", "misnamed.jsonl"])
def test_gzip(tmp_path: Path, name: str) -> None:
    log = read_bytes(tmp_path, gzip.compress(b"".join(LINES)), name)
    assert steps(log.table) == list(range(5_000))
    assert log.diagnostics == ()


def test_plain_lines_under_a_packed_name(tmp_path: Path) -> None:
    assert steps(read_bytes(tmp_path, b"".join(LINES[:3]), "a.jsonl.gz").table) == [0, 1, 2]


def test_gzip_with_several_members_and_padding(tmp_path: Path) -> None:
    members = [gzip.compress(line[:20]) + gzip.compress(line[20:]) for line in LINES[:50]]
    log = read_bytes(tmp_path, b"".join(members) + bytes(512), "a.log.gz")
    assert steps(log.table) == list(range(50))
    assert log.diagnostics == ()


def test_gzip_on_standard_input() -> None:
    assert len(read_events(["-"], stdin=io.BytesIO(gzip.compress(b"".join(LINES)))).table) == 5_000


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_truncated_gzip_keeps_earlier_lines(tmp_path: Path, share: float) -> None:
    packed = gzip.compress(b"".join(LINES), compresslevel=1)
    log = read_bytes(tmp_path, packed[: int(len(packed) * share)], "a.jsonl.gz")
    kept = steps(log.table)
    assert kept == list(range(len(kept)))
    assert len(kept) >= 5_000 * share * 0.8
    (cut,) = found(log, "truncated_file")
    assert cut.severity == "error"
    assert "cut off" in cut.message
    assert cut.where == (str(tmp_path / "a.jsonl.gz"),)


def test_damaged_gzip_keeps_earlier_lines(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(b"".join(LINES), compresslevel=1))
    middle = len(packed) // 2
    packed[middle : middle + 200] = b"\xff" * 200
    log = read_bytes(tmp_path, bytes(packed), "a.jsonl.gz")
    good = [number for number in steps(log.table) if number is not None]
    assert len(good) > 1_500
    assert found(log, "truncated_file")[0].count == 1


def test_garbage_after_gzip_is_reported(tmp_path: Path) -> None:
    log = read_bytes(tmp_path, gzip.compress(LINES[0]) + b"uncompressed data", "a.jsonl.gz")
    assert steps(log.table) == [0]
    assert "uncompressed data" in found(log, "truncated_file")[0].message


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_highly_packed_file_is_unpacked_in_pieces(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    packed = pack((b" " * 1_000_000 + b"\n") * 20 + LINES[7])
    assert max(map(len, unpack("a.jsonl", [packed]))) <= MAX_PIECE
    log = read_bytes(tmp_path, packed, "a.jsonl")
    assert steps(log.table) == [7]
    assert log.table.where(0).endswith(":21")


def test_zstd(tmp_path: Path) -> None:
    frames = [zstd(b"".join(LINES[at : at + 1_000])) for at in range(0, 5_000, 1_000)]
    assert steps(read_bytes(tmp_path, b"".join(frames), "a.jsonl.zst").table) == list(range(5_000))
    cut = read_bytes(tmp_path, b"".join(frames)[:-40], "b.jsonl.zst")
    assert steps(cut.table)[:4_000] == list(range(4_000))
    assert found(cut, "truncated_file")[0].count == 1
    damaged = read_bytes(tmp_path, frames[0] + b"\x28\xb5\x2f\xfd" + b"\xff" * 30, "c.jsonl.zst")
    assert steps(damaged.table) == list(range(1_000))
    assert found(damaged, "truncated_file")[0].count == 1


def test_missing_zstd_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(SourceError, match=r"pip install '\.\[zst\]'"):
        unpack("a.jsonl.zst", [b"\x28\xb5\x2f\xfd...."])
