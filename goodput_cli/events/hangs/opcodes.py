"""Read a pickle without unpickling it: walk its opcodes and accept those that make plain data.

Nothing is imported or called, whatever the file contains. The size of everything that is made is bounded.
"""

from __future__ import annotations

import pickletools
from typing import Any

MOST_ITEMS = 1_000_000
"""Maximum number of items in all containers."""
_MOST_DEPTH = 8
_LONGEST = 1 << 16
"""Maximum length of a text."""
_MARK = object()
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_VALUES = frozenset({"BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE"})
_SKIPPED = frozenset({"PROTO", "FRAME"})
_PUT, _GET = frozenset({"BINPUT", "LONG_BINPUT"}), frozenset({"BINGET", "LONG_BINGET"})
_CONTAINERS = (dict, list, tuple)
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class RefusedPickleError(ValueError):
    """Raised for a pickle that is not plain data, or too large; args: a sentence."""


class CutPickleError(RefusedPickleError):
    """Raised for a pickle without an end."""


def plain_data(data: bytes) -> Any:
    """Return the value of a pickle of dicts, lists, tuples, texts and numbers. Raises RefusedPickleError."""
    return _Machine().run(data)


def first_items(data: bytes) -> dict[str, Any]:
    """Return the first items of the dict of a pickle, of which only the begin is given. Raises RefusedPickleError."""
    machine = _Machine()
    try:
        machine.run(data)
    except CutPickleError:
        return machine.items()
    raise RefusedPickleError("damaged pickle (it ends early)")


class _Machine:
    """The stack and the memo of one pickle."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._depth: dict[int, int] = {}
        """Nesting of each container, by its identity: the stack and the memo keep all containers."""
        self._kept: list[Any] = []
        self._items = 0

    def run(self, data: bytes) -> Any:
        """Return the value."""
        opcodes = pickletools.genops(data)
        try:
            while True:
                try:
                    opcode, value, _ = next(opcodes)
                except (ValueError, StopIteration):
                    raise CutPickleError("damaged pickle (no end)") from None
                if opcode.name == "STOP":
                    return self._pop()
                self._take(opcode.name, value)
        except RefusedPickleError:
            raise
        except (ValueError, IndexError, KeyError, TypeError, OverflowError, UnicodeError) as error:
            raise RefusedPickleError(f"damaged pickle ({type(error).__name__})") from None

    def items(self) -> dict[str, Any]:
        """Return the complete items of the outermost dict, while it is being filled."""
        found: dict[str, Any] = {}
        for key, value in zip(self._stack[2::2], self._stack[3::2], strict=False):
            if key is _MARK or value is _MARK or not isinstance(key, str):
                break
            found[key] = value
        return found

    def _take(self, name: str, value: Any) -> None:
        if name in _SKIPPED:
            return
        if name == "MARK":
            self._stack.append(_MARK)
        elif name in _CONSTANTS:
            self._stack.append(_CONSTANTS[name])
        elif name in _VALUES:
            if isinstance(value, str) and len(value) > _LONGEST:
                raise RefusedPickleError(f"text of more than {_LONGEST:,} characters")
            self._stack.append(value)
        elif name == "MEMOIZE":
            self._memo[len(self._memo)] = self._stack[-1]
        elif name in _PUT:
            self._memo[int(value)] = self._stack[-1]
        elif name in _GET:
            self._stack.append(self._memo[int(value)])
        else:
            self._contain(name)

    def _contain(self, name: str) -> None:
        """Make or fill a container."""
        if name in ("EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE"):
            self._push({"EMPTY_DICT": {}, "EMPTY_LIST": [], "EMPTY_TUPLE": ()}[name], ())
        elif name in _TUPLES:
            count = _TUPLES[name]
            items = tuple(self._pop() for _ in range(count))[::-1]
            self._push(items, items)
        elif name == "TUPLE":
            items = tuple(self._since_mark())
            self._push(items, items)
        elif name in ("APPEND", "APPENDS"):
            added = [self._pop()] if name == "APPEND" else self._since_mark()
            self._into(list).extend(added)
            self._count(self._stack[-1], added)
        elif name in ("SETITEM", "SETITEMS"):
            pairs = [self._pop(), self._pop()][::-1] if name == "SETITEM" else self._since_mark()
            self._into(dict).update(zip(pairs[::2], pairs[1::2], strict=True))
            self._count(self._stack[-1], pairs)
        else:
            raise RefusedPickleError(f"opcode {name}, which is not plain data")

    def _into(self, kind: type) -> Any:
        if type(self._stack[-1]) is not kind:
            raise RefusedPickleError("damaged pickle (wrong container)")
        return self._stack[-1]

    def _push(self, container: Any, items: Any) -> None:
        self._kept.append(container)
        self._stack.append(container)
        self._count(container, items)

    def _count(self, container: Any, items: Any) -> None:
        """Count items, and the nesting of their container."""
        self._items += len(items) + 1
        depth = self._depth.get(id(container), 1)
        for one in items:
            if type(one) in _CONTAINERS:
                depth = max(depth, self._depth.get(id(one), 0) + 1)
        self._depth[id(container)] = depth
        if self._items > MOST_ITEMS or depth > _MOST_DEPTH:
            limit = f"{MOST_ITEMS:,} items" if self._items > MOST_ITEMS else f"{_MOST_DEPTH} levels"
            raise RefusedPickleError(f"more than {limit}")

    def _pop(self) -> Any:
        value = self._stack.pop()
        if value is _MARK:
            raise RefusedPickleError("damaged pickle (a mark as a value)")
        return value

    def _since_mark(self) -> list[Any]:
        at = len(self._stack) - 1
        while self._stack[at] is not _MARK:
            at -= 1
            if at < 0:
                raise RefusedPickleError("damaged pickle (no mark)")
        items = self._stack[at + 1 :]
        del self._stack[at:]
        return items
