"""Compile and check the patterns of rules, and convert line templates (literal text with fields such as `{step:int}`)
to patterns.

The time of a match is bounded: RE2 is linear in the length of the line and the size of the pattern, and both are
limited.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from itertools import islice
from re import _constants, _parser  # type: ignore[attr-defined]  # what literals a pattern needs is asked nowhere else
from typing import Any

from goodput_cli.events.mappings.declared import AMOUNTS, FIELDS, DeclaredCause, DeclaredRule, Time
from goodput_cli.events.mappings.toml import Mistake
from goodput_cli.events.text.causes import CauseRow, shipped_values
from goodput_cli.events.text.log_lines import EventType, linear
from goodput_cli.vocabulary.text import did_you_mean

TYPES = {
    "int": r"[+-]?\d[\d,]*",
    "float": r"[+-]?(?:\d[\d,]*\.?\d*(?:[eE][+-]?\d+)?|\.\d+|nan|inf)",
    "word": r"\S+?",
    "time": r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?Z|[+-]\d\d:?\d\d)?",
    "clock": r"(?:(?:\d+ ?d(?:ays?)?,? )?\d+:)?\d{1,2}:\d\d(?:\.\d+)?"
    r"|(?:\d+ ?d[a-z]*[ ,]*)?(?:\d+ ?h[a-z]*[ ,]*)?(?:\d+ ?m[a-z]*[ ,]*)?\d+(?:\.\d+)? ?[dhms](?:[a-z]+)?\b",
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
    """Raised for an unusable template or pattern; args: a sentence."""


def as_pattern(template: str) -> str:
    """Return the regular expression of a template. Raises TemplateError."""
    parts: list[str] = []
    names: set[str] = set()
    depth = 0
    part: re.Match[str] | None = None
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
    # A lazy field at the end has to take the whole word.
    ends_in_a_word = part is not None and part["name"] not in (None, "_") and part["type"] in (None, "word")
    return "".join(parts) + (r"(?:\s|$)" if ends_in_a_word else "")


def _field(name: str, kind: str | None, names: set[str]) -> str:
    if kind is not None and kind not in TYPES:
        raise TemplateError(f"`{kind}` is not a field type; write one of {', '.join(TYPES)}")
    pattern = TYPES[kind] if kind else _ANY if name == "_" else TYPES["word"]
    if name == "_":
        return f"(?:{pattern})"
    if name in names:
        raise TemplateError(f"the field `{name}` appears twice in the template")
    names.add(name)
    return f"(?P<{name}>{pattern})"


@lru_cache(maxsize=1024)
def examples_of(template: str) -> tuple[str, ...]:
    """Return lines that match a template: with very different values, with and without the optional parts. A pattern
    that matches all of them very likely matches every line of the template."""
    found = []
    for number in range(len(_EXAMPLES["_"])):
        for optional in (True, False):
            kept = template if optional else re.sub(r"\[\?.*?\?\]", "", template)
            parts = (_example(part, number) for part in _PART.finditer(kept))
            found.append("".join(parts))
    return tuple(found)


def _example(part: re.Match[str], number: int) -> str:
    if part["name"]:
        kind = part["type"] or ("_" if part["name"] == "_" else "word")
        return _EXAMPLES.get(kind, _EXAMPLES["word"])[number]
    if part["opens"] or part["closes"]:
        return ""
    return " " if part["blank"] else part["text"]


def _parsed(pattern: str) -> Any:
    try:
        with warnings.catch_warnings():  # A FutureWarning about [[a-z]].
            warnings.simplefilter("ignore")
            return _parser.parse(pattern)
    except (re.error, OverflowError, ValueError) as error:
        raise TemplateError(f"invalid regular expression: {error}") from None


def _literals(parsed: Any) -> list[str]:
    """Return texts that are in every line that a pattern matches."""
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
    """Return True if an unbounded repeat contains only unbounded repeats: `(a+)+`."""
    return any(
        (_is_endless(kind, value) and _only_endless(value[2])) or any(map(_nests, _inside(kind, value)))
        for kind, value in parsed
    )


def _only_endless(parsed: Any) -> bool:
    """Return True if a pattern is an unbounded repeat, possibly in groups or as an alternative."""
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


LITERAL = 4
"""Minimum length of a rule's literal text; other lines are not matched with the rule."""
LONGEST = 4000
"""Maximum number of characters of a pattern."""
LARGEST = 2000
"""Maximum number of instructions of a compiled pattern: at most about 1 ms for a line of 1,000 characters."""


def compiled(rule: DeclaredRule, time: Time) -> tuple[LinearPattern, str]:
    """Return the pattern of a rule with `line` or `regex`, and a text that each matching line contains; empty if it is
    tried on every line. time: format of its times. Raises Mistake."""
    way = "regex" if rule.line is None else "line"
    _, made, anchor = _checked(rule.text, way, anywhere=rule.slow or rule.of_records)
    named = frozenset(made.groupindex)
    if rule.event in (EventType.STEP, EventType.STEP_START) and "step" not in named | rule.keys.keys():
        close = did_you_mean("step", sorted(named))
        hint = f" ({close})" if close else ", such as {step:int}" if way == "line" else r", such as (?P<step>\d+)"
        raise Mistake(f"a `{rule.event}` rule needs a field `step`{hint}", way)
    check_rule(rule, time, named | rule.keys.keys())
    return made, anchor


def cause_row(name: str, cause: DeclaredCause) -> CauseRow:
    """Return a user's row of evidence, in the form of shipped ones. Raises Mistake."""
    way = "regex" if cause.line is None else "line"
    pattern, made, anchor = _checked(cause.line or cause.regex or "", way, anywhere=cause.slow)
    if anchor in TOO_COMMON and not cause.slow:
        raise Mistake(f"`{anchor}` appears in too many healthy lines; write more of the line, or `slow = true`", way)
    anchors = (anchor,) if len(anchor) >= LITERAL and anchor not in TOO_COMMON else ()
    values = cause.codes_by_value or shipped_values().get(cause.by, {})
    if cause.by and cause.by not in made.groupindex:
        named = sorted(made.groupindex)
        raise Mistake(f"the row has no field `{cause.by}`; {did_you_mean(cause.by, named, 'name one in it')}", "by")
    if cause.by and not values:
        raise Mistake(f"`by` needs `values`: what `{cause.by}` may be, and the cause of each", "by")
    return CauseRow(name, anchors, pattern, "process", cause.code, cause.role, cause.by, values)


TOO_COMMON = ("Error", "error", "WARN", "WARNING", "Killed", "rank", "ERROR")


@lru_cache(maxsize=1024)
def _checked(text: str, way: str, *, anywhere: bool) -> tuple[str, LinearPattern, str]:
    """Return a pattern, also compiled, and its longest literal. way: key of the pattern. anywhere: True if it may be
    tried on every line. Raises Mistake."""
    if not text.strip():
        raise Mistake(f"`{way}` is empty", way)
    try:
        pattern = as_pattern(text) if way == "line" else text
        if len(pattern) > LONGEST:
            raise TemplateError(f"a pattern of {len(pattern)} characters; the limit is {LONGEST}")
        parsed = _parsed(pattern)
        anchor = "" if parsed.state.flags & re.IGNORECASE else max(_literals(parsed), key=len, default="")
        if way == "regex" and _nests(parsed):
            raise TemplateError("a repeat of a repeat, such as (a+)+: write it with one")
        if len(anchor) < LITERAL and not anywhere:
            raise TemplateError(
                f"no text of {LITERAL} characters is in every line of this rule, so it would be tried on every line; "
                "write more of the line, or `slow = true`"
            )
        made = linear_pattern(pattern)
        if made.programsize > LARGEST:
            raise TemplateError(
                f"a pattern of {made.programsize} instructions would be slow; at most {LARGEST} are tried on lines: "
                "repeat less, or replace long lists of characters by `.` and `\\S`"
            )
        if made.search("") is not None:
            raise TemplateError("the rule matches an empty line")
    except TemplateError as error:
        raise Mistake(str(error), way) from None
    except RecursionError:
        raise Mistake("invalid regular expression: its groups are nested too deep", way) from None
    return pattern, made, anchor


def check_rule(rule: DeclaredRule, time: Time, given: frozenset[str]) -> None:
    """Check the requirements of all rules, for lines and for records. given: its fields. Raises Mistake."""
    is_usual = rule.each is not None and rule.each.of == "usual"
    if rule.time == "cursor" and not (is_usual or {"each", "took", "elapsed"} & given):
        fields = 'a field `each`, `took` or `elapsed`, or `each = { of = "usual" }`'
        raise Mistake(f'`time = "cursor"` needs {fields}', "time")
    missing = [name for name in rule.amounts_inside if not rule.of_records and name not in given]
    if missing:
        raise Mistake(f"the rule has no field `{missing[0]}`, which its phases, work, size or facts use", "phases")
    if rule.phase_pattern is not None:
        try:
            phase_pattern(rule.phase_pattern)
        except TemplateError as error:
            raise Mistake(str(error), "phase_pattern") from None
    if rule.event is EventType.CUSTOM and not rule.label and "label" not in given:
        raise Mistake("a `custom` rule needs a `label`")
    for field in AMOUNTS:
        usual = field == "each" and rule.each is not None and rule.each.of == "usual"
        usual |= field == "took" and rule.took is not None and rule.took.since is not None
        if getattr(rule, field) is not None and (field in given) == usual:
            raise Mistake(f"`{field}` gives the unit of a field that the rule does not have", field)
    if time.field not in (*FIELDS, *given):
        raise Mistake(f"the rule has no field `{time.field}`", "time", "field")
    counts = (rule.epoch is not None and rule.epoch.steps is not None) or "epochs" in given
    if rule.event in (EventType.STEP, EventType.STEP_START) and "epoch" in given and not counts and "of" not in given:
        raise Mistake(
            "the number of steps per epoch is missing: add a field `of`, or `epoch = { first = 1, steps = 500 }`; if "
            "steps do not start again with each epoch, remove the field `epoch`",
            "epoch",
        )


@cache
def job_pattern(path: str) -> LinearPattern:
    """Return the pattern for the job name in the path of a source, its group `job`. Raises TemplateError."""
    made = linear_pattern(path)
    if "job" not in made.groupindex:
        raise TemplateError("the path of a job needs a group `job`, such as 'runs/(?P<job>[^/]+)/'")
    return made


@cache
def phase_pattern(text: str) -> LinearPattern:
    """Return the pattern for phases in a line, with groups `phase` and `value`. Raises TemplateError."""
    made = linear_pattern(text)
    if not {"phase", "value"} <= made.groupindex.keys():
        raise TemplateError(
            "`phase_pattern` needs groups `phase` and `value`, such as '(?P<phase>\\w+)=(?P<value>[\\d.]+)s'"
        )
    if made.programsize > LARGEST or made.search("") is not None:
        raise TemplateError("`phase_pattern` would be slow, or matches an empty line")
    return made


class LinearMatch:
    """A match of a pattern in a text."""

    __slots__ = ("_found", "_groups", "string")

    def __init__(self, found: Any, groups: Mapping[str, int], string: str) -> None:
        self._found = found
        self._groups = groups
        self.string = string
        """The whole text."""

    def __getitem__(self, name: str) -> str | None:
        value = self._found[self._groups[name]]
        return None if value is None else value.decode()

    def groupdict(self) -> dict[str, str | None]:
        """Return the texts of all named groups; None for unused ones."""
        return {name: self[name] for name in self._groups}

    def span(self, name: str) -> tuple[int, int]:
        """Return begin and end of a group in the text; (-1, -1) if it is unused."""
        begin, end = self._found.span(self._groups[name])
        if begin < 0:
            return -1, -1
        head, own = self._found.string[:begin], self._found.string[begin:end]
        return len(head.decode()), len(head.decode()) + len(own.decode())


class LinearPattern:
    """An RE2 pattern that matches bytes and looks up group names once.

    RE2's own module looks up names and counts characters at each match, which takes longer than the match.
    """

    __slots__ = ("_compiled", "flags", "groupindex", "pattern", "programsize")

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled
        self.pattern: str = compiled.pattern.decode()
        self.flags = 0
        self.groupindex: Mapping[str, int] = {name.decode(): at for name, at in compiled.groupindex.items()}
        self.programsize: int = compiled.programsize

    def search(self, text: str) -> LinearMatch | None:
        """Return the first match, or None."""
        found = self._compiled.search(text.encode())
        return None if found is None else LinearMatch(found, self.groupindex, text)

    def each(self, text: str, most: int) -> Iterator[LinearMatch]:
        """Yield up to `most` consecutive matches."""
        found = self._compiled.finditer(text.encode())
        return (LinearMatch(one, self.groupindex, text) for one in islice(found, most))


def linear_pattern(pattern: str) -> LinearPattern:
    """Return a regular expression with linear run time. Raises TemplateError with the reason."""
    re2 = linear()
    options = re2.Options()
    options.log_errors = False
    try:
        return LinearPattern(re2.compile(pattern.encode(), options))
    except Exception as error:  # The exception class is in a module that is loaded on demand.
        reason = error.args[0] if error.args else error
        words = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        raise TemplateError(f"invalid regular expression (RE2): {words}") from None
