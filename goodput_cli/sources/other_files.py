"""Descriptions of files that users pass instead of a log, and names similar to a missing one."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from itertools import islice

from goodput_cli.vocabulary.text import plural, safe

_PRINTED = "pass the stdout of the training as a file"
_KINDS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    ((".py",), "a Python program, not its output", "run `python {name} 2>&1 | tee train.log` and pass train.log, or "
     "use the recorder (docs/record.md)"),
    ((".ipynb",), "a notebook, which has no timestamps", "write its output to a file, or use the recorder "
     "(docs/record.md)"),
    ((".sh", ".bash", ".sbatch", ".slurm"), "a job script, not its output",
     "pass its stdout (slurm-JOBID.out)"),
    ((".pt", ".pth", ".ckpt", ".safetensors", ".bin", ".npy", ".npz", ".pkl", ".h5", ".gguf", ".onnx", ".msgpack"),
     "a checkpoint or weights", _PRINTED),
    ((".yaml", ".yml", ".ini", ".cfg", ".toml"), "a settings file", f"{_PRINTED}; pass a mapping with --mapping"),
    ((".md", ".rst"), "a document", _PRINTED),
    ((".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".mp4"), "a picture", _PRINTED),
)  # fmt: skip
"""By ending of the name: the kind of file, and what to do."""
_NAMES = (("requirements", ".txt", "a list of packages"), ("config", ".json", "a settings file"),
          ("package", ".json", "a settings file"), ("tokenizer", ".json", "a part of a tokenizer"))  # fmt: skip
_MOST = 3


def describe_other_file(name: str) -> str | None:
    """Return what a file is that is not a log, and what to do; None if its name does not show it."""
    plain = name.rpartition("/")[2].lower()
    for endings, what, advice in _KINDS:
        if plain.endswith(endings):
            return f"is {what}; {advice.format(name=name)}"
    found = next((what for begin, end, what in _NAMES if plain.startswith(begin) and plain.endswith(end)), None)
    return None if found is None else f"is {found}; {_PRINTED}"


_SACCT = "`sacct -P -o JobID,JobName,Submit,Start,End,State,ExitCode,NNodes,NodeList`"
_RULER = re.compile(r"-{3,}(?: +-{3,})+ *")
_SACCT_ROW = re.compile(r"\d{1,20}[\w.+]{0,60}\|[^|]*\|.*\b(?:COMPLETED|FAILED|CANCELLED|TIMEOUT|RUNNING|NODE_FAIL)\b")


def scheduler_table(lines: Sequence[str]) -> str | None:
    """Return what an unreadable Slurm table is, and the command that prints a readable one; None for others.

    lines: the first lines of a file; two of them are used.
    """
    first, second = (line.strip()[:500] for line in (*lines[:2], "", "")[:2])
    columns = {word.casefold() for word in first.split()}
    if "jobid" in columns and _RULER.fullmatch(second):
        return f"is a human-readable table of sacct with shortened names and times; create it with {_SACCT}"
    if {"jobid", "partition"} <= columns:
        return f"is a table of squeue, which does not contain the ends of jobs; create one with {_SACCT}"
    if _SACCT_ROW.match(first):
        return f"has rows of sacct without a header; remove `-n`: {_SACCT}"
    return None


def folder_contents(folder: str) -> str:
    """Return the contents of a folder without a log: `it is empty`, `it holds 2 *.png, 1 *.jpg`."""
    found = Counter(os.path.splitext(name)[1] for _, _, names in os.walk(folder) for name in names)
    if not found:
        return "it is empty"
    kinds = found.most_common()
    named = [(f"*{safe(ending)}" if ending else "without an extension", count) for ending, count in kinds[:_MOST]]
    shown = ", ".join(f"{count:,} {ending}" for ending, count in named)
    rest = sum(count for _, count in kinds[_MOST:])
    return f"it contains {shown}" + (f" and {plural(rest, 'other file')}" if rest else "")


def describe_files_without_log(names: Sequence[str]) -> str | None:
    """Return `gen.py is a Python program, …` if none of these files is a log; None if one may be."""
    found = [describe_other_file(name) for name in names]
    if not found or None in found:
        return None
    more = f" (and {plural(len(names) - 1, 'file')} like it)" if len(names) > 1 else ""
    return f"{names[0]} {found[0]}{more}"


def shown_path(path: str) -> str:
    """Return a path for display: bytes of a name that are not UTF-8 are escaped."""
    return path.encode("utf-8", "backslashreplace").decode()


_ALIKE = 0.85
"""Minimum similarity of a name that is suggested for a missing one."""
_MOST_NAMES = 10_000
"""Maximum size of a folder that is searched for similar names."""


def similar_path(path: str) -> str:
    """Return the file of the same folder with the most similar name, for display; "" if none is similar. Transposed
    letters count as equal, because otherwise `nigth` is less similar to `night` than `run-1` to `run-2`."""
    folder, name = os.path.split(path.rstrip("/"))
    try:
        with os.scandir(folder or ".") as entries:
            names = [one.name for one in islice(entries, _MOST_NAMES + 1)]
    except OSError:
        return ""
    if len(names) > _MOST_NAMES or not name:
        return ""
    begun = [one for one in names if one.startswith(name)]
    moved = [one for one in names if len(one) == len(name) and sorted(one) == sorted(name)]
    likely = next((some for some in (begun, moved) if len(some) == 1), [])
    close = likely or get_close_matches(name, names, n=1, cutoff=_ALIKE)
    return shown_path(os.path.join(folder, close[0])) if close else ""
