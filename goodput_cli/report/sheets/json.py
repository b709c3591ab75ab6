"""A sheet as JSON, `schema_version` 1: docs/schema.json describes every key.

Lists are written with one item a line, so that a long answer is quick to write and `grep` is of use. Text is ASCII with
JSON escapes: nothing in a log can act on a terminal that shows it.
"""

from __future__ import annotations

from typing import Any

from goodput_cli.analysis.compare.saved_analysis import SCHEMA_VERSION
from goodput_cli.analysis.sheet import Lazy, Sheet
from goodput_cli.report.base import Page
from goodput_cli.vocabulary.json_text import one_line


def render(sheet: Sheet, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """`Sheet.data` as one JSON object, `schema_version` before it."""
    pairs = {"schema_version": SCHEMA_VERSION, **sheet.data}
    lines = ",\n".join(f"  {one_line(key)}: {_value(value)}" for key, value in pairs.items())
    return f"{{\n{lines}\n}}\n"


def _value(value: Any) -> str:
    if not isinstance(value, list | tuple | Lazy):
        return one_line(value)
    if not value:
        return "[]"
    return "[\n    " + ",\n    ".join(map(one_line, value)) + "\n  ]"
