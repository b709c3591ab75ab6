"""docs/schema.json is generated from the declarations, and every answer of every command agrees with it.

`UPDATE_DOCS=1 pytest tests/report/test_schema.py` writes the file again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from goodput_cli.analysis.advice.results import AdviceAnswer
from goodput_cli.analysis.check import CheckReport
from goodput_cli.analysis.compare.compare import CompareAnswer
from goodput_cli.analysis.disruptions.sheet import DisruptionsAnswer
from goodput_cli.analysis.goodput.answer import AnalysisAnswer
from goodput_cli.analysis.jobs import JobList
from goodput_cli.analysis.rolling import RollingAnswer
from goodput_cli.analysis.sheet import SCHEMA_VERSION, Audience
from goodput_cli.analysis.steps.sheet import StepsAnswer
from goodput_cli.analysis.timeline.sheet import TimelineAnswer
from goodput_cli.analysis.to_json import Schema, json_type
from goodput_cli.cli.main import run
from goodput_cli.compat.answer import ReconcileAnswer
from goodput_cli.compat.api import ReconcileCheckpointsAnswer
from goodput_cli.fleet.report import FleetReport
from tests.support.answers import SCHEMA_FILE, check_answer, check_any_answer
from tests.support.documents import updating

ROOT = Path(__file__).parent.parent.parent
LOG = str(ROOT / "sample_logs" / "llm-pretrain.jsonl")
CHECKPOINTS = str(ROOT / "sample_logs" / "primer-50-percent.jsonl")
KINDS = {
    "analysis": ["analyze", LOG, "--window", "1h", "--fail-under", "1"],
    "rolling": ["rolling", LOG, "--window", "1h"],
    "timeline": ["timeline", LOG, "--events", "--from", "-2h"],
    "disruptions": ["disruptions", LOG, "--accelerators", "8"],
    "steps": ["steps", LOG],
    "advice": ["advise", LOG, "--fail-if", "advice.gain<0"],
    "comparison": ["compare", LOG, CHECKPOINTS],
    "jobs": ["jobs", LOG, CHECKPOINTS],
    "fleet": ["fleet", LOG, CHECKPOINTS, "--workers", "1", "--accelerators", "8", "--by", "week"],
    "check": ["check", LOG],
    "checkpoint_reconciliation": ["reconcile", CHECKPOINTS],
}
Output = pytest.CaptureFixture[str]
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


@pytest.fixture(scope="module")
def declared() -> Any:
    """Return the schema of the declarations."""
    return schema()


def test_schema_file_agrees_with_the_declarations(declared: Any) -> None:
    text = json.dumps(declared, indent=2, ensure_ascii=False) + "\n"
    if updating():
        SCHEMA_FILE.write_text(text, encoding="utf-8")
    assert SCHEMA_FILE.read_text(encoding="utf-8") == text, "UPDATE_DOCS=1 pytest tests/report/test_schema.py"


def test_schema_is_valid_and_names_every_kind(declared: Any) -> None:
    jsonschema.Draft202012Validator.check_schema(declared)
    definitions = declared["$defs"]
    answers = [definitions[one["$ref"].removeprefix("#/$defs/")] for one in declared["oneOf"]]
    kinds = [answer["properties"]["kind"]["const"] for answer in answers]
    assert len(kinds) == len(ANSWERS)
    assert sorted(kinds) == sorted({*KINDS, "reconciliation"})


@pytest.mark.parametrize("kind", KINDS)
def test_answer_of_every_command_agrees_with_the_schema(kind: str, capsys: Output) -> None:
    run([*KINDS[kind], "--format", "json", "--quiet"])
    answer = json.loads(capsys.readouterr().out)
    check_answer(answer, kind)
    check_any_answer(answer)
    assert list(answer)[:2] == ["schema_version", "kind"]


@pytest.mark.parametrize(
    "damage", [{"kind": "steps"}, {"kind": None}, {"more": 1}, {"window": {}}, {"schema_version": 3}]
)
def test_other_objects_are_rejected(damage: dict[str, Any], capsys: Output) -> None:
    run(["rolling", LOG, "--window", "1h", "--format", "json", "--quiet"])
    answer = json.loads(capsys.readouterr().out)
    check_any_answer(answer)
    with pytest.raises(jsonschema.ValidationError):
        check_any_answer({**answer, **damage})


def test_column_is_declared_once() -> None:
    """JSON and CSV have the same fields of a disruption, except for the pair and the objects."""
    from goodput_cli.analysis.disruptions.rows import DISRUPTIONS

    in_json = {column.json_key for column in DISRUPTIONS.columns if column.audience & Audience.JSON}
    in_tables = {column.head() for column in DISRUPTIONS.columns if column.audience & Audience.TABLES}
    in_tables = {name for name in in_tables if not name.startswith("evidence_")}  # the object of JSON, spread out
    assert in_json - in_tables == {"died_between", "also_seen", "echoes", "evidence", "hang", "links"}
    assert in_tables - in_json == {"died_before", "hang_verdict", "blocked_by_ranks", "blocked_by_host"}
