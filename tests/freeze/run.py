"""A case: command lines in separate processes that have already imported everything. Its output is the exit codes,
both streams, and the written files."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import sys
import tempfile
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import goodput_cli
import goodput_cli.__main__ as entry
from goodput_cli.compat import library
from tests.freeze.surface import public_names
from tests.support.differences import import_library, run_here

ROOT = Path(__file__).parents[2]
DIGESTS = Path(__file__).parent / "digests.json"
FOLDER = "FOLDER"
"""Placeholder of an empty directory in a command line. The files in it at the end are part of the output."""
THEN = "&&"
"""Separator of the command lines of a case."""
NAMES = "public-names"
"""Command of cases whose output is the public names of a module."""
_SETTINGS = {"COLUMNS": "80", "TZ": "UTC", "NO_COLOR": "1", "LANG": "C.UTF-8", "TERM": "dumb"}
_OTHER_PROGRAMS = re.compile(r"\.(callbacks|drop_in)(\.|$)|__main__$")
"""Modules that import a framework, or replace another library."""
_PASSING = (
    (r"\b(clip|gradient|legend|aria|id|view)[-_]?\d+\b", "ID"),
    (r'"version": "[^"]+"', '"version": "V"'),
    (r"\b\d+(\.\d+)? (s|ms) of reading\b", "SOME TIME"),
    (r'"fetched_(at|ns)": [^,]+,', r'"fetched_\1": NOW,'),
    (r"(_since_last_(?:event|step)|_last_look_timestamp_seconds)(\{.*\}) [\d.e+]+", r"\1\2 NOW"),
    (r"(?m)^\S+\.py:\d+: (\w+Warning: .*)\n  .*$", r"\1"),
)
"""Patterns of text that differs between runs, or that depends on the location of code."""


@cache
def import_all() -> None:
    """Import the whole package once for all cases, and read log output once, which compiles patterns: both are most of
    the cost of a small command."""
    for module in walk_packages(goodput_cli.__path__, "goodput_cli."):
        if not _OTHER_PROGRAMS.search(module.name):
            import_module(module.name)
    for name in ("pandas", "pyarrow.parquet", "vl_convert"):
        import_module(name)
    import_library()
    goodput_cli.analyze(ROOT / "sample_logs" / "trainers" / "torchtitan" / "train.log")


def output_of(arguments: tuple[str, ...]) -> str:
    """Return the output of the case as text. Parquet, packed files and pictures are shown by their contents."""
    if arguments[0] == NAMES:
        return public_names(arguments[1])
    import_all()
    with tempfile.TemporaryDirectory(prefix="frozen-") as folder:
        given = " ".join(arguments).replace(FOLDER, folder).split(f" {THEN} ") if THEN in arguments else None
        lines = [line.split() for line in given] if given else [[one.replace(FOLDER, folder) for one in arguments]]
        parts = [_run(line) for line in lines]
        for file in sorted(path for path in Path(folder).rglob("*") if path.is_file()):
            if "store" not in file.relative_to(folder).parts:  # The contents of a store count, not its layout.
                parts.append(f"--- {file.relative_to(folder)}\n{_text(file.read_bytes())}")
        return "\n".join(parts).replace(folder, FOLDER)


def digest_of(arguments: tuple[str, ...]) -> str:
    """Return the digest of the whole output."""
    return hashlib.sha256(output_of(arguments).encode()).hexdigest()[:16]


def _run(arguments: list[str]) -> str:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = os.fork()
        if process == 0:
            _become(arguments, out.fileno(), err.fileno())
        _, status = os.waitpid(process, 0)
        out.seek(0)
        err.seek(0)
        return f"exit {os.waitstatus_to_exitcode(status)}\n{_text(out.read())}\n--- standard error\n{_text(err.read())}"


def _become(arguments: list[str], out: int, err: int) -> None:
    os.chdir(ROOT)
    os.environ.update(_SETTINGS)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False))
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), encoding="utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), encoding="utf-8", write_through=True)
    sys.argv = ["goodput", *arguments]
    library._run = run_here
    try:
        entry.main()
    finally:
        os._exit(99)


def _text(data: bytes) -> str:
    if data.startswith(b"PAR1"):
        return _parquet(data)
    if data.startswith(b"\x89PNG"):
        return f"a picture of {int.from_bytes(data[16:20], 'big')} x {int.from_bytes(data[20:24], 'big')}"
    if data.startswith(b"\x1f\x8b"):
        data = gzip.decompress(data)
    text = data.decode("utf-8", "surrogateescape").encode("utf-8", "backslashreplace").decode()
    for pattern, word in _PASSING:
        text = re.sub(pattern, word, text)
    return _rounded(text)


def _rounded(text: str) -> str:
    """Round numbers: logarithms and exponentials differ in the last bit between processors with different vector
    units."""
    return re.sub(r"\b\d+\.\d{9,}(e[-+]?\d+)?\b", lambda number: f"{float(number[0]):.9g}", text)


def _parquet(data: bytes) -> str:
    import pyarrow.parquet as parquet

    table = parquet.read_table(io.BytesIO(data))
    return _rounded("\n".join([str(table.schema), *map(str, table.slice(0, 500).to_pylist())]))
