"""A JSON value in one line of ASCII: what lists of a JSON answer have for each of their items."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import orjson

from goodput_cli.vocabulary.text import finite, well_formed

_DELETE = b"\x7f"


def one_line(value: Any) -> str:
    """JSON in one line, without blanks; null for NaN and infinities.

    Text is ASCII with JSON escapes, so that nothing in a log can act on a terminal that shows it. What the quick way
    cannot write so is rare: text beyond ASCII, lone surrogates (written as U+FFFD), integers of more than 64 bits.
    """
    try:
        text = orjson.dumps(value)
    except TypeError:
        return _carefully(value)
    return text.decode() if text.isascii() and _DELETE not in text else _carefully(value)


def _carefully(value: Any) -> str:
    return json.dumps(written_safely(value), ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def written_safely(value: Any) -> Any:
    """The same value with text that can be encoded, and None for NaN and infinities."""
    match value:
        case str():
            return well_formed(value)
        case float():
            return finite(value)
        case Mapping():
            return {well_formed(str(key)): written_safely(item) for key, item in value.items()}
        case list() | tuple():
            return [written_safely(item) for item in value]
        case _:
            return value
