"""One command line in a process of its own that has everything imported already: exit code, and both streams."""

from __future__ import annotations

import hashlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path

import goodput_cli.__main__ as entry
import goodput_cli.cli.main
import goodput_cli.report.base  # noqa: F401 - what most cases import anyway, once for all of them

ROOT = Path(__file__).parents[2]
DIGESTS = Path(__file__).parent / "digests.json"
_SETTINGS = {"COLUMNS": "80", "TZ": "UTC", "NO_COLOR": "1", "LANG": "C.UTF-8", "TERM": "dumb"}


def output_of(arguments: tuple[str, ...]) -> str:
    """What the command line gives, as text: Parquet and pictures by what they hold."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = os.fork()
        if process == 0:
            _become(arguments, out.fileno(), err.fileno())
        _, status = os.waitpid(process, 0)
        out.seek(0)
        err.seek(0)
        return f"exit {os.waitstatus_to_exitcode(status)}\n{_text(out.read())}\n--- standard error\n{_text(err.read())}"


def digest_of(arguments: tuple[str, ...]) -> str:
    """Of exit code, standard output and standard error."""
    return hashlib.sha256(output_of(arguments).encode()).hexdigest()[:16]


def _become(arguments: tuple[str, ...], out: int, err: int) -> None:
    os.chdir(ROOT)
    os.environ.update(_SETTINGS)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False))
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), encoding="utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), encoding="utf-8", write_through=True)
    sys.argv = ["goodput", *arguments]
    try:
        entry.main()
    finally:
        os._exit(99)


def _text(data: bytes) -> str:
    if data.startswith(b"PAR1"):
        return _parquet(data)
    if data.startswith(b"\x89PNG"):
        return f"a picture of {int.from_bytes(data[16:20], 'big')} x {int.from_bytes(data[20:24], 'big')}"
    text = data.decode("utf-8", "surrogateescape").encode("utf-8", "backslashreplace").decode()
    text = re.sub(r"\b(clip|gradient|legend|aria|id|view)[-_]?\d+\b", "ID", text)
    text = re.sub(r'"version": "[^"]+"', '"version": "V"', text)
    return re.sub(r"\b\d+(\.\d+)? (s|ms) of reading\b", "SOME TIME", text)


def _parquet(data: bytes) -> str:
    import pyarrow.parquet as parquet

    table = parquet.read_table(io.BytesIO(data))
    return "\n".join([str(table.schema), *map(str, table.slice(0, 500).to_pylist())])
