"""Patterns of rules: what they need, and what refuses them. None of them can be slow on a line that a log holds: RE2
takes time that grows with the line and with the size of the pattern, and both are bounded."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from goodput_cli.events.mappings.declared import FIELDS, Declared, DeclaredRule
from goodput_cli.events.mappings.places import Place
from goodput_cli.events.mappings.templates import TemplateError, as_pattern, endless_in_endless, literal_of
from goodput_cli.events.text.marks import What
from goodput_cli.events.text.scan import linear
from goodput_cli.vocabulary.likely import did_you_mean

LITERAL = 4
"""A rule is asked about a line only if a text of at least this length stands in it."""
LONGEST = 4000
"""Characters of a pattern."""
LARGEST = 2000
"""Instructions of a compiled pattern: some 1 ms for a line of 1,000 characters at the worst."""


class Compiled(NamedTuple):
    """A compiled pattern of a rule."""

    pattern: Any
    anchor: str
    """A text that is in every line that it reads; "" where it is tried on every line."""


def compiled(rule: DeclaredRule) -> Compiled:
    """The pattern of a rule that has a `line` or `regex`. Raises UsageError with its place."""
    way = "line" if rule.line else "regex"
    place = rule.place.of(way)
    text = rule.line or rule.regex
    if not text.strip():
        raise place.error(f"`{way}` is empty")
    try:
        pattern = as_pattern(text) if rule.line else text
        if len(pattern) > LONGEST:
            raise place.error(f"a pattern of {len(pattern)} characters; at most {LONGEST} are tried on lines")
        anchor = literal_of(pattern)
        if rule.regex and endless_in_endless(pattern):
            raise place.error("a repeat of a repeat, such as (a+)+: write it with one")
    except TemplateError as error:
        raise place.error(str(error)) from None
    if len(anchor) < LITERAL and not rule.slow and "text" not in rule.keys:
        raise place.error(
            f"no text of {LITERAL} characters stands in every line of this rule, so that it would be tried on every "
            "line; write more of the line, or `slow = true`"
        )
    try:
        made = _compiled(pattern)
    except Exception as error:  # of a module that is loaded when needed
        raise place.error(f"no regular expression that takes linear time (RE2): {_reason(error)}") from None
    if made.programsize > LARGEST:
        raise place.error(
            f"a pattern of {made.programsize} instructions would be slow; at most {LARGEST} are tried on lines: repeat "
            "less, or let `.` and `\\S` stand for long lists of characters"
        )
    if made.search("") is not None:
        raise place.error("the rule matches an empty line")
    _check_fields(rule, way, frozenset(made.groupindex))
    return Compiled(made, anchor)


def _check_fields(rule: DeclaredRule, way: str, named: frozenset[str]) -> None:
    place = rule.place.of(way)
    given = named | rule.keys.keys()
    if rule.event in (What.STEP, What.STEP_START) and "step" not in given:
        close = did_you_mean("step", sorted(named))
        hint = f" ({close})" if close else ", such as {step:int}" if way == "line" else r", such as (?P<step>\d+)"
        raise place.error(f"a `{rule.event}` rule needs a field `step`{hint}")
    check_rule(rule, given)


def check_rule(rule: DeclaredRule, given: frozenset[str]) -> None:
    """What every rule needs, of lines and of records. given: its fields. Raises UsageError with the place."""
    if rule.cursor and not {"each", "took", "elapsed"} & given:
        raise rule.place.of("time").error('`time = "cursor"` needs a field `each`, `took` or `elapsed`')
    if rule.event is What.CUSTOM and not rule.label and "label" not in given:
        raise rule.place.error("a `custom` rule needs a `label`")
    for field in rule.units:
        if field not in given:
            raise rule.place.of(field).error(f"`{field}` says the unit of a field that the rule does not have")
    if rule.time.field not in (*FIELDS, *given):
        raise rule.place.of("time", "field").error(f"the rule has no field `{rule.time.field}`")
    counts = rule.epochs is not None and rule.epochs.steps is not None
    if rule.event in (What.STEP, What.STEP_START) and "epoch" in given and not counts and "of" not in given:
        raise rule.place.of("epoch").error(
            "how many steps has an epoch? A field `of` says it, or `epoch = { first = 1, steps = 500 }`; if steps do "
            "not begin anew with each epoch, leave the field `epoch` out"
        )


def job_pattern(declared: Declared) -> Any:
    """Finds the name of a job in the path of a source. Raises UsageError with the place of a mistake in it."""
    place = Place(declared.place.file, (*declared.place.path[:-1], "job"))
    try:
        made = _kept(declared.job.path or "(?P<job>)")
    except Exception as error:  # of a module that is loaded when needed
        raise place.error(f"no regular expression that takes linear time (RE2): {_reason(error)}") from None
    if "job" not in made.groupindex:
        raise place.error("the path of a job needs a group `job`, such as 'runs/(?P<job>[^/]+)/'")
    return made


@cache
def _kept(pattern: str) -> Any:
    return _compiled(pattern)


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else error
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)


def _compiled(pattern: str) -> Any:
    re2 = linear()
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)
