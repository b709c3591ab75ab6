"""docs/schema.json, generated from the declarations of the answers and of the columns of their tables."""

from __future__ import annotations

from typing import Any

from goodput_cli.analysis.advice.results import AdviceAnswer
from goodput_cli.analysis.check import CheckReport
from goodput_cli.analysis.compare.compare import CompareAnswer
from goodput_cli.analysis.disruptions.sheet import DisruptionsAnswer
from goodput_cli.analysis.goodput.answer import AnalysisAnswer
from goodput_cli.analysis.jobs import JobList
from goodput_cli.analysis.rolling import RollingAnswer
from goodput_cli.analysis.sheet import SCHEMA_VERSION
from goodput_cli.analysis.steps.sheet import StepsAnswer
from goodput_cli.analysis.timeline.sheet import TimelineAnswer
from goodput_cli.analysis.to_json import Schema, json_type
from goodput_cli.compat.answer import ReconcileAnswer
from goodput_cli.compat.api import ReconcileCheckpointsAnswer
from goodput_cli.fleet.report import FleetReport

ANSWERS: tuple[type, ...] = (
    AnalysisAnswer, RollingAnswer, TimelineAnswer, DisruptionsAnswer, StepsAnswer, AdviceAnswer, CompareAnswer,
    JobList, FleetReport, CheckReport, ReconcileAnswer, ReconcileCheckpointsAnswer,
)  # fmt: skip
"""All JSON documents of the commands; each has a unique `kind`."""


def schema() -> Schema:
    """Return the JSON schema of every answer; `kind` selects one of them."""
    definitions: dict[str, Schema] = {}
    answers = [_apart(json_type(answer).schema(), definitions) for answer in ANSWERS]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:goodput-cli:schema:{SCHEMA_VERSION}",
        "title": "goodput --format json",
        "description": "The JSON output of every command; `kind` names the command's answer.",
        "oneOf": answers,
        "$defs": dict(sorted(definitions.items())),
    }


def _apart(value: Any, definitions: dict[str, Schema]) -> Any:
    """Return the schema with a separate definition for each part with a title. Objects accept no other keys."""
    if isinstance(value, list):
        return [_apart(item, definitions) for item in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("$ref"), dict):
        return {**value, **_apart(value["$ref"], definitions)}
    plain = {key: _apart(item, definitions) for key, item in value.items()}
    if len(plain.get("enum", ())) == 1:
        (plain["const"],) = plain.pop("enum")
    if "properties" in plain:
        plain = {**plain, "required": plain.get("required", list(plain["properties"])), "additionalProperties": False}
    title = plain.get("title")
    if not isinstance(title, str):
        return plain
    del plain["title"]
    known = definitions.setdefault(title, plain)
    words = plain.get("description")
    return {"$ref": f"#/$defs/{title}", **({} if words in (None, known.get("description")) else {"description": words})}
