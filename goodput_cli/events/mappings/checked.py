"""The file of a mapping, or of settings with mappings in them, checked: every mistake is said with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime, time
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from msgspec import Meta, Struct, ValidationError, convert
from msgspec.structs import fields

from goodput_cli.events.mappings.declared import Declared, DeclaredAt
from goodput_cli.events.mappings.places import Mistake, Place, TomlFile
from goodput_cli.vocabulary.text import did_you_mean

Kind = TypeVar("Kind", bound=Struct)
_WRITTEN = {
    str: "a text, in quotes",
    bool: "true or false, without quotes",
    int: "a whole number",
    float: "a number",
}


def mappings_in(name: str, text: str) -> Iterator[DeclaredAt]:
    """The mappings in the text of a file: the one that it is, or those in `[mapping.NAME]` of settings, which are in
    `[tool.goodput]` of a pyproject.toml. Raises UsageError with file, line and column."""
    file = TomlFile(name, text)
    above = _settings_above(file.content, name)
    if above is None:
        yield _declared(file.content, Place(file))
        return
    tables: Any = file.content
    for key in above:
        tables = tables.get(key, {}) if isinstance(tables, dict) else {}
    place = Place(file, above)
    if not isinstance(tables, dict):
        raise place.error("`mapping` holds a table for each mapping, such as [mapping.NAME]")
    if not tables:
        raise Place(file).error("holds no mapping: neither `[[rule]]` tables nor settings with `[mapping.NAME]`")
    for own, content in tables.items():
        if not isinstance(content, dict):
            raise place.of(own).error(f"`mapping.{own}` is a table")
        yield _declared({"name": own, **content}, place.of(own))


def _settings_above(content: dict[str, Any], name: str) -> tuple[str, ...] | None:
    """The keys above the mappings in a file of settings; None for a mapping."""
    if re.split(r"[/\\]", name)[-1] == "pyproject.toml" or ("tool" in content and "rule" not in content):
        return ("tool", "goodput", "mapping")
    return ("mapping",) if isinstance(content.get("mapping"), dict) and "rule" not in content else None


def _declared(content: Any, place: Place) -> DeclaredAt:
    return DeclaredAt(converted(Declared, content, place, "a mapping"), place)


def converted(kind: type[Kind], content: Any, place: Place, holder: str) -> Kind:
    """A table of TOML as its type declares it. holder: what it is, such as `a mapping`. Raises UsageError with the
    place of the first mistake."""
    try:
        table: Kind = _convert(content, kind)
    except ValidationError as error:
        raise place.error_of(_mistake(kind, content, error, holder)) from None
    return table


def _convert(content: Any, kind: Any) -> Any:
    return convert(content, kind, builtin_types=(datetime, date, time))


def _mistake(hint: Any, content: Any, error: ValidationError, holder: str, key: str = "", words: str = "") -> Mistake:
    """What is wrong with content that is not as a type says. holder: what has its keys, such as `a rule`; key: whose
    value it is; words: what that should be. msgspec says only the first, and its path without the names of keys."""
    words = _description(hint) or words
    for kind in _alternatives(hint):
        inside = _inside(kind, content)
        present: dict[Any, Any] = {}
        if inside:
            present = content if isinstance(content, dict) else dict(enumerate(content))
        unknown = next((at for at in present if at not in inside), None)
        if unknown is not None:
            known = sorted(inside)
            close = did_you_mean(unknown, known, f"{holder} has {', '.join(known)}")
            return Mistake(f"unknown key `{unknown}`; {close}", unknown)
        for at, value in present.items():
            try:
                _convert(value, inside[at])
            except ValidationError as deeper:
                about = (f"`{at}`", str(at)) if _is_table(kind) else (f"a {key}", key, words)
                found = _mistake(inside[at], value, deeper, *about)
                return Mistake(str(found), at, *found.path)
        missing = next((one for one in _needed(kind) if one not in present), "") if inside else ""
        if missing:
            part = inside[missing]
            sentence = _description(part) or f"{holder} needs `{missing}`; {_sentence(missing, part, None)}"
            return Mistake(sentence, missing)
    return error.__cause__ if isinstance(error.__cause__, Mistake) else Mistake(words or _sentence(key, hint, content))


def _inside(kind: Any, content: Any) -> dict[Any, Any]:
    """Which keys or places content may have, and the type of each; empty for what is not of this kind or holds none."""
    inner = get_args(kind)
    if isinstance(content, dict) and _is_table(kind):
        hints = get_type_hints(kind, include_extras=True)
        return {one.encode_name: hints[one.name] for one in fields(kind)}
    if isinstance(content, dict) and get_origin(kind) is dict:
        return dict.fromkeys(get_args(inner[0]) or content, inner[1])
    if isinstance(content, list) and get_origin(kind) is tuple:
        return dict.fromkeys(range(len(content)), inner[0])
    return {}


def _needed(kind: Any) -> list[str]:
    return [one.encode_name for one in fields(kind) if one.required] if _is_table(kind) else []


def _is_table(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


def _alternatives(hint: Any) -> list[Any]:
    """The types of which a value has one."""
    if get_origin(hint) is Annotated:
        return _alternatives(get_args(hint)[0])
    return [kind for one in get_args(hint) for kind in _alternatives(one)] if _is_union(hint) else [hint]


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, UnionType)


def _metas(hint: Any) -> list[Meta]:
    """What is said of a type, the outermost first."""
    if get_origin(hint) is Annotated:
        return [*(one for one in get_args(hint)[1:] if isinstance(one, Meta)), *_metas(get_args(hint)[0])]
    return [meta for one in get_args(hint) for meta in _metas(one)] if _is_union(hint) else []


def _description(hint: Any) -> str:
    return next((meta.description for meta in _metas(hint) if meta.description), "")


def _sentence(key: str, hint: Any, content: Any) -> str:
    """What a value of a type is written as."""
    for kind in _alternatives(hint):
        if get_origin(kind) is Literal or (isinstance(kind, type) and issubclass(kind, Enum)):
            choices = [str(one) for one in get_args(kind) or kind]
            close = did_you_mean(content, choices) if isinstance(content, str) else ""
            return f"`{key}` is one of {', '.join(choices)}{'; ' if close else ''}{close}"
        if kind in _WRITTEN:
            least = next((f" from {meta.ge}" for meta in _metas(hint) if meta.ge is not None), "")
            return f"`{key}` is {_WRITTEN[kind]}{least}"
        if _is_table(kind):
            return f"`{key}` is a table such as {{ {fields(kind)[0].encode_name} = … }}"
    return f"`{key}` is a table"
