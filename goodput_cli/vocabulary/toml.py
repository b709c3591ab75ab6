"""TOML of people and of strangers, in bounded time."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from typing import Any

MOST_PARTS = 100
_LONG_KEY = re.compile(rf"(?:^|[\[,{{\s])(?:[\w-]+[ \t]*\.[ \t]*){{{MOST_PARTS}}}")
"""A dotted key of so many parts: the time that `tomllib` takes grows with their square."""


def read_toml(text: str, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """What a text of TOML says. Raises tomllib.TOMLDecodeError, for what is nested too deep too."""
    if _LONG_KEY.search(text):
        raise tomllib.TOMLDecodeError(f"a key of more than {MOST_PARTS} parts")
    try:
        return tomllib.loads(text, parse_float=parse_float)
    except RecursionError:
        raise tomllib.TOMLDecodeError("nested too deep") from None
