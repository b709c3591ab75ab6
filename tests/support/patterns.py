"""Models of code: the number of steps of a backtracking matcher, and the import statements of a module.

The matcher tries the same alternatives as Python's, in the same order.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

BOUND = 6
MOST_STEPS = 300_000
CHARACTERS = [chr(code) for code in (32, 9, 10, 13, 27, *range(33, 127))] + ["█", "ä", "٣"]
_ONE = frozenset((ops.LITERAL, ops.NOT_LITERAL, ops.ANY, ops.IN))
_REPEATS = frozenset((ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT))
_CATEGORIES = {
    ops.CATEGORY_DIGIT: r"\d", ops.CATEGORY_NOT_DIGIT: r"\D", ops.CATEGORY_SPACE: r"\s",
    ops.CATEGORY_NOT_SPACE: r"\S", ops.CATEGORY_WORD: r"\w", ops.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip
_WORD = (ops.IN, [(ops.CATEGORY, ops.CATEGORY_WORD)])
_MULTILINE, _DOTALL, _ASCII, _IGNORECASE = map(int, (re.MULTILINE, re.DOTALL, re.ASCII, re.IGNORECASE))
Then = Callable[[int], int | None]


class TooManySteps(Exception):
    """More than `MOST_STEPS`."""


class Steps:
    """A pattern, read by Python's own parser. exact: whether bounds are taken as they are."""

    def __init__(self, pattern: re.Pattern[Any], *, exact: bool = False) -> None:
        text = pattern.pattern
        self.is_bytes = isinstance(text, bytes)
        self._flags = pattern.flags & ~int(re.DEBUG)  # operations on `re.RegexFlag` take four times as long
        self.tree = _parser.parse(text, self._flags)
        self._bound = ops.MAXREPEAT if exact else BOUND
        self._known: dict[tuple[int, str, int], bool] = {}
        self._text = ""
        self.taken = 0

    def found(self, text: str, method: str) -> list[tuple[int, int]]:
        """Return the positions of the matches; `taken` keeps counting. method: of `re.Pattern`. Raises TooManySteps."""
        self._text, begin, spans = text, 0, []
        whole = method == "fullmatch"
        while begin <= len(text):
            end = self._run(self.tree, 0, begin, lambda at: at if not whole or at == len(text) else None, self._flags)
            if end is not None:
                spans.append((begin, end))
            if method in ("match", "fullmatch") or (method == "search" and spans):
                break
            begin = end if end is not None and end > begin else begin + 1
        return spans

    def _step(self, count: int = 1) -> None:
        self.taken += count
        if self.taken > MOST_STEPS:
            raise TooManySteps

    def _run(self, items: Any, first: int, at: int, then: Then, flags: int) -> int | None:
        """Return the end of a match of the items; None without a match."""
        items = getattr(items, "data", items)  # a list is much quicker than Python's `SubPattern`
        for place in range(first, len(items)):
            self._step()
            op, value = item = items[place]
            if op in _ONE:
                if at == len(self._text) or not self.reads(item, self._text[at], flags):
                    return None
                at += 1
            elif op is ops.AT:
                if not self._at(value, at, flags):
                    return None
            elif op in (ops.ASSERT, ops.ASSERT_NOT):
                if self._looks(value, at, flags) != (op is ops.ASSERT):
                    return None
            elif op is ops.ATOMIC_GROUP:
                end = self._run(value, 0, at, lambda end: end, flags)
                if end is None:
                    return None
                at = end
            else:
                after = partial(self._run, items, place + 1, then=then, flags=flags)
                return self._group(op, value, at, after, flags)
        return then(at)

    def _group(self, op: Any, value: Any, at: int, then: Then, flags: int) -> int | None:
        if op is ops.SUBPATTERN:
            _, added, removed, inside = value
            return self._run(inside, 0, at, then, (flags | added) & ~removed)
        if op is ops.BRANCH:
            return next((end for one in value[1] if (end := self._run(one, 0, at, then, flags)) is not None), None)
        assert op in _REPEATS, f"{op} is not counted"
        least, most, inside = value
        if most is not ops.MAXREPEAT:
            most = min(most, self._bound)
        least = min(least, self._bound)
        if len(inside) == 1 and inside[0][0] in _ONE:
            return self._characters(op, least, most, inside[0], at, then, flags)
        return self._repeat(op, least, most, inside, 0, at, then, flags)

    def _characters(self, op: Any, least: int, most: int, one: Any, at: int, then: Then, flags: int) -> int | None:
        """Match a repeat of one character, which has no separate frames."""
        count, room = 0, min(len(self._text) - at, most)
        most_at_first = room if op is not ops.MIN_REPEAT else min(room, least)
        while count < most_at_first and self.reads(one, self._text[at + count], flags):
            count += 1
        self._step(count)
        if count < least:
            return None
        if op is ops.POSSESSIVE_REPEAT:
            return then(at + count)
        while op is ops.MAX_REPEAT and count >= least:
            self._step()
            if (end := then(at + count)) is not None:
                return end
            count -= 1
        while op is ops.MIN_REPEAT:
            self._step()
            if (end := then(at + count)) is not None:
                return end
            if count == room or not self.reads(one, self._text[at + count], flags):
                return None
            count += 1
        return None

    def _repeat(
        self, op: Any, least: int, most: int, inside: Any, count: int, at: int, then: Then, flags: int
    ) -> int | None:
        self._step()

        def again(end: int) -> int | None:
            if end == at and count >= least:
                return None
            return self._repeat(op, least, most, inside, count + 1, end, then, flags)

        if op is ops.POSSESSIVE_REPEAT:
            while count < most and (end := self._run(inside, 0, at, lambda end: end, flags)) is not None and end > at:
                at, count = end, count + 1
            return then(at) if count >= least else None
        if op is ops.MIN_REPEAT and count >= least and (found := then(at)) is not None:
            return found
        if count < most and (found := self._run(inside, 0, at, again, flags)) is not None:
            return found
        return then(at) if op is ops.MAX_REPEAT and count >= least else None

    def _looks(self, value: tuple[int, Any], at: int, flags: int) -> bool:
        way, inside = value
        begin = at if way > 0 else at - inside.getwidth()[0]
        end = (
            None if begin < 0 else self._run(inside, 0, begin, lambda end: end if way > 0 or end == at else None, flags)
        )
        return end is not None

    def _at(self, value: Any, at: int, flags: int) -> bool:
        text = self._text
        if value in (ops.AT_BOUNDARY, ops.AT_NON_BOUNDARY):
            sides = [0 <= one < len(text) and self._word(text[one], flags) for one in (at - 1, at)]
            return (sides[0] != sides[1]) == (value is ops.AT_BOUNDARY)
        lines = bool(flags & _MULTILINE)
        if value in (ops.AT_BEGINNING, ops.AT_BEGINNING_STRING):
            return at == 0 or (value is ops.AT_BEGINNING and lines and text[at - 1] == "\n")
        last = at == len(text)
        if value is ops.AT_END_STRING:
            return last
        return last or (text[at] == "\n" and (lines or at == len(text) - 1))

    def _word(self, character: str, flags: int) -> bool:
        return self.reads(_WORD, character, flags)

    def reads(self, item: Any, character: str, flags: int | None = None) -> bool:
        """Return True if an item of one character matches this one."""
        key = (id(item), character, self._flags if flags is None else flags)  # the tree keeps its items in memory
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._reads(item[0], item[1], character, key[2])
        return known

    def _reads(self, op: Any, value: Any, character: str, flags: int) -> bool:
        if op is ops.ANY:
            return bool(flags & _DOTALL) or character != "\n"
        codes = _cases(character, flags)
        if op in (ops.LITERAL, ops.NOT_LITERAL):
            return (value in codes) == (op is ops.LITERAL)
        negated = value[0][0] is ops.NEGATE
        return any(self._in(part, one, flags) for part in value[negated:] for one in codes) != negated

    def _in(self, part: Any, code: int, flags: int) -> bool:
        op, value = part
        if op is ops.LITERAL:
            return bool(code == value)
        if op is ops.RANGE:
            return bool(value[0] <= code <= value[1])
        return _is_of_category(value, code, bool(self.is_bytes or flags & _ASCII))


@cache
def _is_of_category(category: Any, code: int, only_ascii: bool) -> bool:
    return re.fullmatch(_CATEGORIES[category], chr(code), (re.ASCII if only_ascii else 0) | re.DOTALL) is not None


def _cases(character: str, flags: int) -> set[int]:
    both = (character.lower(), character.upper()) if flags & _IGNORECASE else ()
    return {ord(one) for one in (character, *both) if len(one) == 1}


class Attacks:
    """Texts made from a pattern: the text before each of its repeats, then the repeated text many times."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._ones = list(_items(steps.tree))
        kinds: dict[tuple[bool, ...], str] = {}
        for character in CHARACTERS:
            kinds.setdefault(tuple(steps.reads(one, character) for one in self._ones), character)
        self._kinds = [one for one in kinds.values() if not steps.is_bytes or one.isascii()]
        """A character of each kind that the pattern distinguishes."""

    def parts(self) -> list[tuple[str, str]]:
        """Return the text before each repeat, and the repeated text."""
        return list(dict.fromkeys([*(("", one) for one in self._kinds), *self._walk(self._steps.tree, "")]))

    def _walk(self, items: Any, before: str) -> Iterator[tuple[str, str]]:
        for item in items:
            op, value = item
            if op in _REPEATS:
                yield from self._of_repeat(value[2], value[1], before)
            elif op is ops.SUBPATTERN:
                yield from self._walk(value[3], before)
            elif op is ops.BRANCH:
                for one in value[1]:
                    yield from self._walk(one, before)
            elif op is ops.ATOMIC_GROUP:
                yield from self._walk(value, before)
            elif op in (ops.ASSERT, ops.ASSERT_NOT):
                yield from self._walk(value[1], before)
            before += self._example(item)
        if before:
            yield "", before

    def _of_repeat(self, inside: Any, most: int, before: str) -> Iterator[tuple[str, str]]:
        if most is ops.MAXREPEAT:
            if len(inside) == 1 and inside[0][0] in _ONE:
                units = [one for one in self._kinds if self._steps.reads(inside[0], one)]
            else:
                units = ["".join(map(self._example, inside))]
                units += [units[0] + one for one in self._kinds[:3]]
            yield from ((before, unit) for unit in units if unit)
            yield from ((before + unit, unit) for unit in units[:1] if unit)
        yield from self._walk(inside, before)

    def _example(self, item: Any) -> str:
        op, value = item
        if op is ops.LITERAL:
            return chr(value)
        if op in _ONE:
            return next((one for one in self._kinds if self._steps.reads(item, one)), "")
        if op is ops.SUBPATTERN:
            return "".join(map(self._example, value[3]))
        if op is ops.BRANCH:
            return "".join(map(self._example, value[1][0]))
        if op is ops.ATOMIC_GROUP:
            return "".join(map(self._example, value))
        if op in _REPEATS:
            return "".join(map(self._example, value[2])) * min(int(value[0]), BOUND)
        return ""


def _items(items: Any) -> Iterator[Any]:
    """Yield every item of one character, at every level."""
    for item in items:
        op, value = item
        if op in _ONE:
            yield item
        elif op in _REPEATS:
            yield from _items(value[2])
        elif op is ops.SUBPATTERN:
            yield from _items(value[3])
        elif op is ops.BRANCH:
            for one in value[1]:
                yield from _items(one)
        elif op in (ops.ASSERT, ops.ASSERT_NOT):
            yield from _items(value[1])
        elif op is ops.ATOMIC_GROUP:
            yield from _items(value)


BOTH_ENDS = ("\x00", "")


def worse_than_linear(
    pattern: re.Pattern[Any], method: str, length: int = 8, ends: tuple[str, ...] = BOTH_ENDS
) -> str | None:
    """Return an attack for which a third length of text takes more steps than the second; None if there is none.

    ends: what follows the attack. No repeat reads the first one, so a matcher goes back as far as it can.
    """
    steps = Steps(pattern)
    for before, unit in Attacks(steps).parts():
        for end in ends:
            counts = []
            for size in (length, 2 * length, 3 * length):
                steps.taken = 0
                try:
                    steps.found(before + unit * size + end, method)
                except TooManySteps:
                    return f"{before!r} + {unit!r} * n + {end!r}: more than {MOST_STEPS} steps for {size}"
                counts.append(steps.taken)
            if counts[2] - counts[1] > 1.2 * (counts[1] - counts[0]):
                return (
                    f"{before!r} + {unit!r} * n + {end!r}: {counts} steps for n = {length}, {2 * length}, {3 * length}"
                )
    return None


# --- The import statements of a module.


@cache
def imports_of(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """Return the import statements of a file, which is parsed once."""
    return tuple(imports_in(ast.parse(path.read_text(encoding="utf-8"))))


def imports_in(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the import statements in the blocks of a module or statement. No expression is visited."""
    for block in ("body", "handlers", "cases", "orelse", "finalbody"):
        for statement in getattr(node, block, ()):
            if isinstance(statement, ast.Import | ast.ImportFrom):
                yield statement
            else:
                yield from imports_in(statement)
