"""Files of a folder that are plainly no logs: what lies beside the logs of a run, such as the settings of a model."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from goodput_cli.diagnostics.diagnostic import Diagnostic

_HEAD_BYTES = 1 << 16
_TEXT = (".log", ".out", ".err", ".txt")
_LINES_OF_JSON = (".jsonl", ".ndjson")
_HINTS = (b'"job_name"', b'"jsonPayload"', b'"textPayload"', b'"schema_version"')
"""What stands in any log of ours, in any entry of Cloud Logging, and in any saved answer."""


def told_apart(paths: Sequence[str], is_log: Callable[[bytes], bool] | None = None) -> tuple[list[str], list[str]]:
    """The paths that may be logs, and those that are plainly none. All of them where nothing else would be left.
    is_log: whether text that begins like this is a log."""
    others = [path for path in paths if _is_plainly_none(path, is_log)]
    if len(others) == len(paths):
        return list(paths), []
    left_out = set(others)
    return [path for path in paths if path not in left_out], others


def said_of(names: Sequence[str]) -> Diagnostic:
    """What is said of files that were left out."""
    return Diagnostic.of(
        "not_a_log", "files of a folder that are plainly no logs; not read", len(names), tuple(sorted(names))
    )


def _is_plainly_none(path: str, is_log: Callable[[bytes], bool] | None) -> bool:
    """One JSON value over several lines that names no job, or text in which no line says anything. A file of lines of
    JSON, long text, a packed file and one that cannot be read are for the reader to judge."""
    if path.lower().endswith(_LINES_OF_JSON) or not path.lower().endswith((".json", *_TEXT)):
        return False
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return False
    if not head.strip() or any(hint in head for hint in _HINTS):
        return False
    if not any(line.lstrip().startswith((b"{", b"[")) for line in head.splitlines()):
        return is_log is None or (len(head) < _HEAD_BYTES and not is_log(head))
    return len(head) < _HEAD_BYTES and b"\n" in head.strip() and _is_one_value(head)


def _is_one_value(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
