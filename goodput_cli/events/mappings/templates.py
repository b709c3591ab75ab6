"""Templates of lines: literal text with fields such as `{step:int}`, as patterns."""

from __future__ import annotations

import re
import warnings
from re import _constants, _parser  # type: ignore[attr-defined]  # what literals a pattern needs is asked nowhere else
from typing import Any

TYPES = {
    "int": r"[+-]?\d[\d,]*",
    "float": r"[+-]?(?:\d[\d,]*\.?\d*(?:[eE][+-]?\d+)?|\.\d+|nan|inf)",
    "word": r"\S+?",
    "time": r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?Z|[+-]\d\d:?\d\d)?",
    "clock": r"(?:(?:\d+ ?d(?:ays?)?,? )?\d+:)?\d{1,2}:\d\d(?:\.\d+)?",
    "rest": r".*",
}
_EXAMPLES = {
    "int": ("7", "30412", "1,250"),
    "float": ("0.75", "nan", "3e-05"),
    "word": ("w", "/a/b-c_7.pt", "(x=1)"),
    "time": ("2026-03-01 10:00:00", "1999-12-31T23:59:59.5Z", "2026-03-01 10:00:00,123+02:00"),
    "clock": ("00:07", "1:02:03", "12 days, 11:22:33"),
    "rest": ("", "two words", "9: |"),
    "_": ("", "two words", "9: |"),
}
_ANY = r".*?"
_REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT)
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
    return "".join(parts) + (r"(?:\s|$)" if _ends_in_a_word(template) else "")


def _ends_in_a_word(template: str) -> bool:
    """Whether a field that takes as little as it can is the last of a template: it takes the whole word."""
    parts = list(_PART.finditer(template))
    last = parts[-1] if parts else None
    return last is not None and bool(last["name"]) and last["name"] != "_" and last["type"] in (None, "word")


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


def examples_of(template: str) -> list[str]:
    """Lines that a template reads: with values as different as its fields allow, with what may be missing and without.
    A pattern that reads all of them reads, as far as anybody can tell, every line of the template."""
    found = []
    for number in range(len(_EXAMPLES["_"])):
        for optional in (True, False):
            kept = template if optional else re.sub(r"\[\?.*?\?\]", "", template)
            parts = (_example(part, number) for part in _PART.finditer(kept))
            found.append("".join(parts))
    return found


def _example(part: re.Match[str], number: int) -> str:
    if part["name"]:
        kind = part["type"] or ("_" if part["name"] == "_" else "word")
        return _EXAMPLES.get(kind, _EXAMPLES["word"])[number]
    if part["opens"] or part["closes"]:
        return ""
    return " " if part["blank"] else part["text"]


def literal_of(pattern: str) -> str:
    """The longest text that is in every line that the pattern matches; "" if there is none. Raises TemplateError."""
    parsed = _parsed(pattern)
    return "" if parsed.state.flags & re.IGNORECASE else max(_literals(parsed), key=len, default="")


def endless_in_endless(pattern: str) -> bool:
    """Whether a repeat without a bound repeats nothing but repeats without a bound: `(a+)+`. Raises TemplateError."""
    return _nests(_parsed(pattern))


def _parsed(pattern: str) -> Any:
    try:
        with warnings.catch_warnings():  # that [[a-z]] may mean something else one day
            warnings.simplefilter("ignore")
            return _parser.parse(pattern)
    except (re.error, RecursionError, OverflowError, ValueError) as error:
        raise TemplateError(f"no regular expression: {error}") from None


def _literals(parsed: Any) -> list[str]:
    found: list[str] = []
    run = ""
    for kind, value in parsed:
        if kind is _constants.LITERAL:
            run += chr(value)
            continue
        found.append(run)
        run = ""
        if kind is _constants.SUBPATTERN and not value[1] & re.IGNORECASE:
            found += _literals(value[3])
        elif kind in _REPEATS and value[0] > 0:
            found += _literals(value[2])
    return [*found, run]


def _nests(parsed: Any) -> bool:
    return any(_repeats_repeats(kind, value) or any(map(_nests, _inside(kind, value))) for kind, value in parsed)


def _repeats_repeats(kind: Any, value: Any) -> bool:
    return _is_endless(kind, value) and _only_endless(value[2])


def _only_endless(parsed: Any) -> bool:
    """Whether a pattern is a repeat without a bound, perhaps one of several and in groups."""
    if len(parsed) != 1:
        return False
    kind, value = parsed[0]
    return _is_endless(kind, value) or any(map(_only_endless, _inside(kind, value, repeats=False)))


def _is_endless(kind: Any, value: Any) -> bool:
    return kind in _REPEATS and value[1] is _constants.MAXREPEAT


def _inside(kind: Any, value: Any, repeats: bool = True) -> list[Any]:
    if kind is _constants.SUBPATTERN:
        return [value[3]]
    if kind is _constants.BRANCH:
        return list(value[1])
    return [value[2]] if repeats and kind in _REPEATS else []
