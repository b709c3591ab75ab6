"""A source that is one JSON object of ours and no log: told from its first block, so that a log is read once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

import orjson

from goodput_cli.errors import SourceError
from goodput_cli.sources.base import Batch, RawBatch

MAX_BYTES = 1 << 28
"""An answer that is longer is not read."""

_BEGINS = re.compile(rb'\s*\{\s*"schema_version"\s*:')
_HAS_VERSION = b'"schema_version"'


def single_answer(batches: Iterator[Batch]) -> tuple[dict[str, Any] | None, Iterator[Batch]]:
    """The one JSON object with the key `schema_version` that a source holds, or None, and its batches as they were.

    Raises SourceError where it looks like one and cannot be read: cut off, too long, or one file among others.
    """
    first = next(batches, None)
    if first is None:
        return None, iter(())
    whole = chain([first], batches)
    if not isinstance(first, RawBatch) or not _may_be_answer(first.data):
        return None, whole
    held, total = [first], len(first.data)
    for batch in batches:
        if not isinstance(batch, RawBatch) or batch.first_line == 1:
            raise SourceError(f"{first.source}: is a saved answer among other files; name it alone, as one side")
        held.append(batch)
        total += len(batch.data)
        if total > MAX_BYTES:
            raise SourceError(f"{first.source}: is longer than {MAX_BYTES >> 20} MiB, too long for a saved answer")
    try:
        value = orjson.loads(b"".join(batch.data for batch in held))
    except orjson.JSONDecodeError as error:
        if _BEGINS.match(first.data):
            raise SourceError(
                f"{first.source}: looks like a saved answer and is no whole JSON object ({error}); save it anew"
            ) from None
        return None, iter(held)
    return (value if isinstance(value, dict) else None), iter(held)


def _may_be_answer(data: bytes) -> bool:
    """Whether a document that begins like this can be one object with the key: printed over lines, or all in one."""
    if not data.lstrip().startswith(b"{") or _HAS_VERSION not in data:
        return False
    line, _, rest = data.lstrip().partition(b"\n")
    try:
        first = orjson.loads(line)
    except orjson.JSONDecodeError:
        return True
    return not rest.strip() and isinstance(first, dict) and "schema_version" in first
