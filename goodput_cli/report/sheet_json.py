"""A sheet as JSON, `schema_version` 1: docs/schema.json describes every key.

Lists are written with one item a line, so that a long answer is quick to write and `grep` is of use. Text is ASCII with
JSON escapes: nothing in a log can act on a terminal that shows it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from goodput_cli.analysis.saved import SCHEMA_VERSION
from goodput_cli.report.base import Page
from goodput_cli.report.sheet import Lazy, Sheet
from goodput_cli.report.text import finite, well_formed


def render(sheet: Sheet, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """`Sheet.data` as one JSON object, `schema_version` before it."""
    pairs = {"schema_version": SCHEMA_VERSION, **sheet.data}
    lines = ",\n".join(f"  {json.dumps(key)}: {_value(value)}" for key, value in pairs.items())
    return f"{{\n{lines}\n}}\n"


def _value(value: Any) -> str:
    if not isinstance(value, list | tuple | Lazy):
        return _encoded(value)
    if not value:
        return "[]"
    return "[\n    " + ",\n    ".join(_encoded(item) for item in value) + "\n  ]"


def _encoded(value: Any) -> str:
    """JSON in one line; NaN and lone surrogates, which JSON cannot hold, are rare and replaced only where they are."""
    try:
        text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    except ValueError:
        return json.dumps(_clean(value), ensure_ascii=True, allow_nan=False)
    return json.dumps(_clean(value), ensure_ascii=True, allow_nan=False) if "\\ud" in text else text


def _clean(value: Any) -> Any:
    """The same value with text that can be encoded and with null for what is not a number."""
    match value:
        case str():
            return well_formed(value)
        case float():
            return finite(value)
        case Mapping():
            return {well_formed(str(key)): _clean(item) for key, item in value.items()}
        case list() | tuple():
            return [_clean(item) for item in value]
        case _:
            return value
