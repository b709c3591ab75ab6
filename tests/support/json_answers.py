"""Use of docs/schema.json in tests: reads it and validates answers."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.report.base import Page
from tests.support.rendered import as_json as render

SCHEMA_FILE = Path(__file__).parent.parent.parent / "docs" / "schema.json"


def check_answer(answer: Any, kind: str) -> None:
    """Check that the answer is of this kind and valid."""
    assert answer["kind"] == kind
    _validator(kind).validate(answer)


def check_any_answer(answer: Any) -> None:
    """Against the root, which takes the answer of any command."""
    _validator(None).validate(answer)


def json_of(analysis: Analysis) -> Any:
    """Return the JSON of an analysis."""
    return json.loads(render(analysis, Page()))


@cache
def schema() -> Any:
    """The schema as the file has it."""
    return json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))


@cache
def _validator(kind: str | None) -> Any:
    """Return the validator of one kind of answer, or of any: made once, because checking the schema itself takes longer
    than any answer."""
    if kind is None:
        return jsonschema.Draft202012Validator(schema())
    (definition,) = (one for one in schema()["$defs"].values() if _kind(one) == kind)
    return jsonschema.Draft202012Validator(definition | {"$defs": schema()["$defs"]})


def _kind(definition: Any) -> Any:
    return definition.get("properties", {}).get("kind", {}).get("const")
