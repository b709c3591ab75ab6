"""A stdout of gigabytes with one record in a thousand lines, compared with `grep -cF` of the same literals."""

from __future__ import annotations

import random
from pathlib import Path

from benchmarks.setup import FOLDER
from goodput_cli.events.mappings.registry import Mappings

_WORDS = "the NCCL INFO Channel loss tokens model parameters building shard reading 0x7f rank attention linear".split()
_RECORD_EVERY = 1000


def stdout_log(megabytes: int) -> Path:
    """Return a log of NeMo's logger and others, every line with a timestamp, with a record of Megatron every thousand
    lines."""
    path = FOLDER / f"stdout-{megabytes}.out"
    if path.exists():
        return path
    FOLDER.mkdir(exist_ok=True)
    words = random.Random(7)
    part = path.with_suffix(".part")
    number, size = 0, 0
    with part.open("w", encoding="utf-8") as file:
        while size < megabytes << 20:
            number += 1
            size += file.write(_line(number, words))
    part.rename(path)
    return path


def _line(number: int, words: random.Random) -> str:
    second = number // 100
    stamp = f"2026-03-{1 + second // 86_400:02d} {second // 3600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
    if number % _RECORD_EVERY == 0:
        step = number // _RECORD_EVERY
        return (
            f" [{stamp}] iteration {step:8d}/ 1000000 | elapsed time per iteration (ms): 10000.0 | loss scale: 1.0 |\n"
        )
    return f"[NeMo I {stamp} nemo_logger:145] {' '.join(words.choices(_WORDS, k=14))}\n"


def literals() -> Path:
    """Return a file of the literals that log output is searched for, one per line."""
    path = FOLDER / "literals.txt"
    FOLDER.mkdir(exist_ok=True)
    anchors = sorted({rule.anchor for rule in Mappings().ruleset.rules})
    path.write_text("".join(f"{anchor}\n" for anchor in anchors), encoding="utf-8")
    return path
