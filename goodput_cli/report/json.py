"""A JSON answer as text; docs/schema.json describes every key.

Every key is always present; null if it does not apply. Text is ASCII with JSON escapes, so that nothing in a log can
control a terminal. Each row of a long list is one line: thousands are written quickly, and `grep` works.

Also a JSON value in one line of ASCII, used for the items of lists.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson
from msgspec import to_builtins

from goodput_cli.accounting.options import RULES
from goodput_cli.analysis.document import Document
from goodput_cli.analysis.json_fields import SchemaEntry
from goodput_cli.analysis.sheet import SCHEMA_VERSION, Lazy
from goodput_cli.analysis.to_json import json_type
from goodput_cli.report.base import Page
from goodput_cli.vocabulary.text import finite, well_formed

_DELETE = b"\x7f"


def one_line(value: Any) -> str:
    """Return JSON in one line, without blanks; null for NaN and infinities.

    Text is ASCII with JSON escapes, so that nothing in a log can control a terminal. The fast encoder handles all but
    rare values: text beyond ASCII, lone surrogates (written as U+FFFD), and integers of more than 64 bits.
    """
    try:
        text = orjson.dumps(value, default=list)
    except TypeError:
        return _carefully(value)
    return text.decode() if text.isascii() and _DELETE not in text else _carefully(value)


def _carefully(value: Any) -> str:
    return json.dumps(written_safely(value), ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def written_safely(value: Any) -> Any:
    """Return the value with encodable text, and None for NaN and infinities."""
    match value:
        case str():
            return well_formed(value)
        case float():
            return finite(value)
        case Mapping():
            return {well_formed(str(key)): written_safely(item) for key, item in value.items()}
        case list() | tuple() | Lazy():
            return [written_safely(item) for item in value]
        case _:
            return value


_INDENTED = json.JSONEncoder(indent=2, allow_nan=False)


def render(document: Document, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """Return the whole answer as one JSON object. Raises UsageError if there is only a part of an answer."""
    return json_text(document.json_answer())


def json_text(answer: Any) -> str:
    """Return the answer as one JSON object with one key per line. answer: a `written` result, or a value that msgspec
    writes as an object."""
    about: SchemaEntry | None = getattr(type(answer), "__written__", None)
    if about is None:
        return "".join(_parts(to_builtins(answer, enc_hook=list), indented=False))
    of_all = {"schema_version": SCHEMA_VERSION, "kind": about.kind, "rules": RULES}
    written = {**of_all, **json_type(type(answer)).write(answer)}
    return "".join(_parts(written, indented=about.indented))


def _parts(answer: Mapping[str, Any], *, indented: bool) -> Iterator[str]:
    before = "{\n"
    for key, value in answer.items():
        yield f"{before}  {json.dumps(key)}: "
        if isinstance(value, Lazy) or (isinstance(value, list | tuple) and not indented):
            yield from _lines(value)
        elif indented:
            text = _INDENTED.encode(written_safely(value))
            yield text.replace("\n", "\n  ")  # JSON escapes line ends in text
        else:
            yield one_line(value)
        before = ",\n"
    yield "\n}\n"


def _lines(items: Iterable[Any]) -> Iterator[str]:
    """Yield a list with one item per line."""
    before = "[\n    "
    for item in items:
        yield before + one_line(item)
        before = ",\n    "
    yield "\n  ]" if before[0] == "," else "[]"
