"""Writer of `.wandb` files in the format of Weights & Biases, so that tests can choose their records."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any

_BLOCK = 1 << 15
NS = 10**9


def run_record(run_id: str, start: float, name: str = "", host: str = "node0") -> bytes:
    parts = _text(1, run_id) + _text(3, "project") + _text(13, host) + _bytes(17, _timestamp_bytes(start))
    return _record(17, parts + (_text(8, name) if name else b""))


def row(timestamp: float, runtime: float | None = None, **values: Any) -> bytes:
    """Return a row of the history; `__` in a name stands for a slash."""
    values = {name.replace("__", "/"): value for name, value in values.items()}
    values["_timestamp"] = timestamp
    if runtime is not None:
        values["_runtime"] = runtime
    items = (_bytes(1, _text(2, key) + _text(16, json.dumps(value))) for key, value in values.items())
    return _record(2, b"".join(items))


def printed(time: float, text: str) -> bytes:
    return _record(13, _bytes(2, _timestamp_bytes(time)) + _text(3, text))


def stats(time: float) -> bytes:
    return _record(7, _bytes(2, _timestamp_bytes(time)))


def exit_record(code: int, runtime: int) -> bytes:
    return _record(18, (_varint(1 << 3) + _varint(code) if code else b"") + _varint(2 << 3) + _varint(runtime))


def run_file(*records: bytes) -> bytes:
    """The bytes of a file of these records."""
    data = b":W&B\xe1\xbe\x00"
    for record in records:
        rest, first = record, True
        while rest or first:
            left = _BLOCK - len(data) % _BLOCK
            if left < 7:
                data += bytes(left)
                left = _BLOCK
            piece, rest = rest[: left - 7], rest[left - 7 :]
            kind = (1 if not rest else 2) if first else (3 if rest else 4)
            check = zlib.crc32(bytes([kind]) + piece)
            data += struct.pack("<IHB", check, len(piece), kind) + piece
            first = False
    return data


def run_folder(
    root: Path, stamp: str, run_id: str, data: bytes, internal: str = "", local: str = "", output: str = ""
) -> Path:
    """A folder of a run below `root/wandb`, with its two logs and its output where they are given."""
    folder = root / "wandb" / f"run-{stamp}-{run_id}"
    (folder / "logs").mkdir(parents=True)
    (folder / "files").mkdir()
    (folder / f"run-{run_id}.wandb").write_bytes(data)
    (folder / "files" / "wandb-summary.json").write_text('{\n "_step": 3\n}\n')
    for name, text in (("logs/debug-internal.log", internal), ("logs/debug.log", local), ("files/output.log", output)):
        if text:
            (folder / name).write_text(text)
    return folder


def _record(number: int, message: bytes) -> bytes:
    return _varint(1 << 3) + _varint(7) + _bytes(number, message)


def _timestamp_bytes(time: float) -> bytes:
    ns = round(time * 10**6) * 1000
    return _varint(1 << 3) + _varint(ns // NS) + _varint(2 << 3) + _varint(ns % NS)


def _text(number: int, value: str) -> bytes:
    return _bytes(number, value.encode())


def _bytes(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    parts = bytearray()
    while True:
        value, low = value >> 7, value & 127
        parts.append(low | (128 if value else 0))
        if not value:
            return bytes(parts)
