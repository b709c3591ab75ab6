"""Events that a program has: records in a list or a DataFrame become the lines that a recorder would have written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from goodput_cli.errors import UsageError
from goodput_cli.sources.base import RawBatch

NAME = "records"
"""What stands for the file in `file:line`: the line is the number of the record, from 1."""


def is_table(source: object) -> bool:
    """Whether it is a DataFrame of pandas or polars."""
    return hasattr(source, "columns") and (hasattr(source, "to_dicts") or hasattr(source, "to_dict"))


def is_records(source: object) -> bool:
    """Whether it is a list of dicts."""
    return isinstance(source, Sequence) and len(source) > 0 and all(isinstance(one, Mapping) for one in source)


def batch_of(source: Any) -> RawBatch:
    """The records as lines. What is missing (None, NaN, NaT) is left out: formats are known by their keys.

    `UsageError`: a record holds what JSON cannot.
    """
    import orjson

    lines = []
    for number, record in enumerate(_records(source), 1):
        try:
            kept = {str(key): value for key, value in record.items() if not _is_missing(value)}
            lines.append(orjson.dumps(kept, default=_plain, option=orjson.OPT_SERIALIZE_NUMPY))
        except (TypeError, ValueError) as error:
            raise UsageError(f"record {number} is no event: {error}") from error
    return RawBatch(NAME, 1, b"\n".join([*lines, b""]))


def _records(source: Any) -> Iterable[Mapping[str, Any]]:
    if not is_table(source):
        return source  # type: ignore[no-any-return]
    records = source.to_dicts() if hasattr(source, "to_dicts") else source.to_dict("records")
    return map(_whole_numbers, records)


def _whole_numbers(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Whole numbers as such: a column with gaps holds them as floats."""
    return dict(_narrowed(record.items()))


def _narrowed(items: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    for key, value in items:
        whole = isinstance(value, float) and math.isfinite(value) and value == int(value)
        yield key, int(value) if whole else value


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)  # NaN and NaT
    except (TypeError, ValueError):
        return False


def _plain(value: Any) -> Any:
    """What JSON has for a value that it does not know."""
    if isinstance(value, date):  # a pandas Timestamp is a datetime
        return value.isoformat()
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
