"""docs/schema.json in tests: one place that reads it and holds answers against it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

from goodput_cli.analysis.results import Analysis
from goodput_cli.report.base import Page
from goodput_cli.report.formats.json import render

SCHEMA_FILE = Path(__file__).parent.parent.parent / "docs" / "schema.json"


def check_answer(answer: Any, kind: str) -> None:
    """The answer is of this kind, and as the schema says."""
    assert answer["kind"] == kind
    (definition,) = (one for one in schema()["$defs"].values() if _kind(one) == kind)
    jsonschema.validate(answer, definition | {"$defs": schema()["$defs"]}, cls=jsonschema.Draft202012Validator)


def json_of(analysis: Analysis) -> Any:
    """What JSON says of an analysis."""
    return json.loads(render(analysis, Page()))


@cache
def schema() -> Any:
    """The schema as the file has it."""
    return json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))


def _kind(definition: Any) -> Any:
    return definition.get("properties", {}).get("kind", {}).get("const")
