"""Templates of lines: literal text with fields such as `{step:int}`, as patterns."""

from __future__ import annotations

import re
from re import _constants, _parser  # type: ignore[attr-defined]  # what literals a pattern needs is asked nowhere else
from typing import Any

TYPES = {
    "int": r"[+-]?\d[\d,]*",
    "float": r"[+-]?(?:\d[\d,]*\.?\d*(?:[eE][+-]?\d+)?|\.\d+|nan|inf)",
    "word": r"\S+?",
    "time": r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?Z|[+-]\d\d:?\d\d)?",
    "rest": r".*",
}
_ANY = r".*?"
_PART = re.compile(
    r"\{(?P<name>\w+)(?::(?P<type>\w+))?\}|(?P<opens>\[\?)|(?P<closes>\?\])|(?P<blank>\s+)|(?P<text>.)", re.DOTALL
)


class TemplateError(ValueError):
    """A template or pattern that cannot be used; args: a sentence."""


def as_pattern(template: str) -> str:
    """The regular expression of a template. Raises TemplateError."""
    parts: list[str] = []
    names: set[str] = set()
    depth = 0
    for part in _PART.finditer(template):
        if part["name"]:
            parts.append(_field(part["name"], part["type"], names))
        elif part["opens"]:
            depth += 1
            parts.append("(?:")
        elif part["closes"]:
            depth -= 1
            if depth < 0:
                raise TemplateError("`?]` closes no `[?`")
            parts.append(")?")
        elif part["blank"]:
            parts.append(r"\s+")
        else:
            parts.append(re.escape(part["text"]))
    if depth:
        raise TemplateError("`[?` is not closed by `?]`")
    whole = "".join(parts)
    return whole + (r"\s*$" if template.endswith("}") else "")


def _field(name: str, kind: str | None, names: set[str]) -> str:
    if kind is not None and kind not in TYPES:
        raise TemplateError(f"`{kind}` is no type of a field; write one of {', '.join(TYPES)}")
    pattern = TYPES[kind] if kind else _ANY if name == "_" else TYPES["word"]
    if name == "_":
        return f"(?:{pattern})"
    if name in names:
        raise TemplateError(f"the field `{name}` stands twice in the template")
    names.add(name)
    return f"(?P<{name}>{pattern})"


def literal_of(pattern: str) -> str:
    """The longest text that is in every line that the pattern matches; "" if there is none. Raises TemplateError."""
    try:
        parsed = _parser.parse(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise TemplateError(f"no regular expression: {error}") from None
    return max(_literals(parsed), key=len, default="")


def nested_repeat(pattern: str) -> bool:
    """Whether a repeat without a bound stands in another: `(a+)+`."""
    return _nests(_parser.parse(pattern), False)


def _literals(parsed: Any) -> list[str]:
    found: list[str] = []
    run = ""
    for kind, value in parsed:
        if kind is _constants.LITERAL:
            run += chr(value)
            continue
        found.append(run)
        run = ""
        if kind is _constants.SUBPATTERN:
            found += _literals(value[3])
        elif kind is _constants.MAX_REPEAT and value[0] > 0:
            found += _literals(value[2])
    return [*found, run]


def _nests(parsed: Any, inside: bool) -> bool:
    for kind, value in parsed:
        parts: list[tuple[Any, bool]] = []
        if kind in (_constants.MAX_REPEAT, _constants.MIN_REPEAT):
            endless = value[1] is _constants.MAXREPEAT
            if endless and inside:
                return True
            parts = [(value[2], inside or endless)]
        elif kind is _constants.SUBPATTERN:
            parts = [(value[3], inside)]
        elif kind is _constants.BRANCH:
            parts = [(branch, inside) for branch in value[1]]
        if any(_nests(part, within) for part, within in parts):
            return True
    return False
