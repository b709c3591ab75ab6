"""docs/schema.json, made from the declarations of the answers and of the columns of their tables."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from textwrap import dedent
from typing import Any

import msgspec

from goodput_cli.analysis.advice.answer import AdviceAnswer
from goodput_cli.analysis.check import CheckReport
from goodput_cli.analysis.compare.compare import CompareAnswer
from goodput_cli.analysis.disruptions.sheet import DisruptionsAnswer
from goodput_cli.analysis.goodput.answer import AnalysisAnswer
from goodput_cli.analysis.jobs import JobList
from goodput_cli.analysis.rolling import RollingAnswer
from goodput_cli.analysis.steps.sheet import StepsAnswer
from goodput_cli.analysis.timeline.sheet import TimelineAnswer
from goodput_cli.analysis.wire import Instant, Wire, descriptions, wire_type
from goodput_cli.compat.answer import ReconcileAnswer
from goodput_cli.compat.checkpoints import ReconcileCheckpointsAnswer
from goodput_cli.fleet.report import FleetReport

Schema = dict[str, Any]
ANSWERS: tuple[type, ...] = tuple(map(wire_type, (
    AnalysisAnswer, RollingAnswer, TimelineAnswer, DisruptionsAnswer, StepsAnswer, AdviceAnswer, CompareAnswer,
    JobList, FleetReport, CheckReport, ReconcileAnswer, ReconcileCheckpointsAnswer,
)))  # fmt: skip
"""Everything that a command writes as JSON; each has a `kind` of its own."""
_ROOT = "#/$defs/"


def schema() -> Schema:
    """The JSON schema of every answer: what `kind` says is which of them."""
    refs, components = msgspec.json.schema_components(ANSWERS, ref_template=_ROOT + "{name}")
    definitions: dict[str, Schema] = {"instant": _plain(msgspec.json.schema(Instant) | {"title": None}, {})}
    for name, component in components.items():
        _describe(component, _declared(name))
        definitions[_snake(name)] = _plain(component, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:goodput-cli:schema:1",
        "title": "goodput --format json",
        "description": "What every command writes; kind says which.",
        "oneOf": [_plain(ref, definitions) for ref in refs],
        "$defs": dict(sorted(definitions.items())),
    }


def _declared(name: str) -> type:
    return next(kind for kind in _types() if kind.__name__ == name)


def _types() -> Iterator[type]:
    """The classes that answers are made of: structs, and results that are written as they are."""
    left = list(msgspec.inspect.multi_type_info(ANSWERS))
    seen: set[type] = set()
    while left:
        kind = left.pop()
        if isinstance(kind, msgspec.inspect.StructType | msgspec.inspect.DataclassType) and kind.cls not in seen:
            seen.add(kind.cls)
            yield kind.cls
            left += (field.type for field in kind.fields)
        left += _inside(kind)


def _inside(kind: msgspec.inspect.Type) -> Iterator[msgspec.inspect.Type]:
    """The types that a type of several is made of."""
    match kind:
        case msgspec.inspect.Metadata(type=inner):
            yield inner
        case msgspec.inspect.UnionType(types=inner):
            yield from inner
        case msgspec.inspect.TupleType(item_types=inner):
            yield from inner
        case msgspec.inspect.CollectionType(item_type=inner):
            yield inner
        case msgspec.inspect.DictType(value_type=inner):
            yield inner


def _describe(component: Schema, declared: type) -> None:
    """The strings under the class and under its fields as descriptions."""
    del component["title"]
    component["description"] = " ".join((inspect.cleandoc(declared.__doc__ or "")).split())
    if not component["description"]:
        del component["description"]
    for field, words in _described(declared):
        if field in component["properties"]:
            component["properties"][field]["description"] = words
    optional = []
    if issubclass(declared, msgspec.Struct):
        optional = [field.name for field in msgspec.structs.fields(declared) if field.default is msgspec.UNSET]
    component["required"] = [name for name in component["properties"] if name not in optional]


def _described(declared: type) -> Iterator[tuple[str, str]]:
    """Keys with what is said of each."""
    for base in (one for one in reversed(declared.__mro__) if one.__module__.startswith("goodput_cli.")):
        if "declared" in vars(base):
            yield from descriptions(base).items()
        elif base is not Wire:
            yield from _field_strings(base)


def _field_strings(declared: type) -> Iterator[tuple[str, str]]:
    """Each field of the class with the string that stands under it."""
    (definition,) = ast.parse(dedent(inspect.getsource(declared))).body
    assert isinstance(definition, ast.ClassDef)
    for field, below in zip(definition.body, definition.body[1:], strict=False):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(below, ast.Expr):
            yield field.target.id, " ".join(ast.literal_eval(below.value).split())


def _plain(value: Any, definitions: dict[str, Schema]) -> Any:
    """Without defaults; objects take no other keys; what has a title becomes a definition of its own."""
    if isinstance(value, list):
        return [_plain(item, definitions) for item in value]
    if not isinstance(value, dict):
        return value
    plain = {key: _plain(item, definitions) for key, item in value.items() if key not in ("default", "title")}
    if "properties" in value:  # whose keys are names of ours
        plain["properties"] = {key: _plain(item, definitions) for key, item in value["properties"].items()}
    if len(plain.get("enum", ())) == 1:
        (plain["const"],) = plain.pop("enum")
    if "anyOf" in plain:
        plain = _short_alternatives(plain)
    if "$ref" in plain:
        plain["$ref"] = _ROOT + _snake(plain["$ref"].removeprefix(_ROOT))
    if "properties" in plain:
        plain = {**plain, "required": plain.get("required", list(plain["properties"])), "additionalProperties": False}
    title = value.get("title")
    if not isinstance(title, str):
        return plain
    words = plain.get("description")
    known = definitions.setdefault(title, plain)
    return {"$ref": _ROOT + title, **({} if words in (None, known.get("description")) else {"description": words})}


def _short_alternatives(value: Schema) -> Schema:
    """`number or null` as two types of one schema."""
    first, *others = value["anyOf"]
    if others != [{"type": "null"}] or not isinstance(first.get("type"), str) or "properties" in first:
        return value
    merged = {key: item for key, item in value.items() if key != "anyOf"}
    if "enum" in first:
        first = {**first, "enum": [*first["enum"], None]}
    return {**first, "type": [first["type"], "null"], **merged}


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
