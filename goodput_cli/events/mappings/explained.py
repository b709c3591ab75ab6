"""What rules make of lines: each rule's matches over a log, and everything about one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from goodput_cli.events.mappings.registry import Mappings
from goodput_cli.events.mappings.rules import Mapped, shown
from goodput_cli.events.text.prefixes import bare
from goodput_cli.events.text.rules import BadValueError
from goodput_cli.events.text.stamps import StampError, stamp_of

_RESULTS = 3
_SHAPE_DIGITS = str.maketrans("0123456789", "##########")


@dataclass
class RuleMatches:
    """What one rule of a mapping read."""

    rule: str
    event: str
    lines: int = 0
    first: int | None = None
    last: int | None = None
    results: list[str] = field(default_factory=list)
    """The first three, as `step=101 each=0.25`."""
    refused: list[tuple[int, str]] = field(default_factory=list)
    """Lines whose values are wrong: number and reason."""


def matches(made: Mapped, lines: Iterable[str]) -> tuple[list[RuleMatches], Counter[str]]:
    """What each rule of a mapping reads of a log, and how often each shape of line occurs that none does."""
    found = [
        RuleMatches(rule.line or rule.regex or ", ".join(rule.keys), rule.event.value) for rule in made.declared.rules
    ]
    order = [at for at, rule in enumerate(made.declared.rules) if not rule.keys]
    rest: Counter[str] = Counter()
    for number, line in enumerate(lines, 1):
        text = bare(line.rstrip("\n")).text
        for at, rule in zip(order, made.lines, strict=True):
            match = rule.pattern.search(text) if rule.anchor in text else None
            if match is None:
                continue
            _add(found[at], number, text, rule.read, match)
            break
        else:
            if text.strip() and len(rest) < 10_000:
                rest[text.strip()[:100].translate(_SHAPE_DIGITS)] += 1
    return found, rest


def _add(row: RuleMatches, number: int, text: str, read: object, match: object) -> None:
    try:
        said = read(match)  # type: ignore[operator]
        stamp = None if said is None else said.at or stamp_of(text)
    except (BadValueError, StampError) as error:
        row.refused.append((number, str(error)))
        return
    row.lines += 1
    row.first, row.last = row.first or number, number
    if said is not None and len(row.results) < _RESULTS:
        values = {name: value for name, value in shown(said, stamp).items() if value is not None and name != "event"}
        row.results.append(" ".join(f"{name}={value}" for name, value in values.items()))


def explain(line: str, mappings: Mappings) -> Iterator[str]:
    """Everything about one line of text, a sentence each."""
    taken = bare(line.rstrip("\n"))
    yield f"line: {taken.text}"
    if taken.text != line.rstrip("\n"):
        yield f"taken off before it: {line.rstrip(chr(10))[: len(line.rstrip(chr(10))) - len(taken.text)]!r}"
    if taken.stream:
        yield f"written by: {taken.stream}"
    try:
        stamp = taken.collected or stamp_of(taken.text)
    except StampError as error:
        yield f"time: {error}"
        stamp = None
    tried: list[str] = []
    for rule in mappings.ruleset.rules:
        found = rule.pattern.search(taken.text) if rule.anchor in taken.text else None
        if found is None:
            tried += [f"{rule.format}: {rule.name}"] if rule.anchor in taken.text else []
            continue
        yield f"read by: {rule.format}, rule {rule.name!r}"
        try:
            said = rule.read(found)
        except (BadValueError, StampError) as error:
            yield f"refused: {error}"
            return
        yield from _gives(shown(said, said.at or stamp)) if said is not None else ["gives: nothing, though it is known"]
        break
    else:
        yield "read by: no rule"
    if tried:
        yield f"tried before, since their text stands in the line: {'; '.join(tried)}"


def _gives(values: dict[str, object]) -> Sequence[str]:
    return [f"{name}: {value}" for name, value in values.items() if value is not None]
