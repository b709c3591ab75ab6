"""Read a pickle without unpickling it: walk its opcodes and accept those that make plain data.

Nothing is imported or called, whatever the file contains. The size of everything that is made is bounded.
"""

from __future__ import annotations

import pickle
import pickletools
import struct
from struct import Struct
from typing import Any

MOST_ITEMS = 1_000_000
"""Maximum number of items in all containers."""
_MOST_DEPTH = 8
_LONGEST = 1 << 16
"""Maximum length of a text."""
_CONTAINERS = (dict, list, tuple)
_BYTE, _WORD = Struct("<B"), Struct("<I")
# Codes of the four commonest kinds are numbers, which the loop over all opcodes compares fastest.
_STOP, _BINGET, _BINPUT = ord(pickle.STOP), ord(pickle.BINGET), ord(pickle.BINPUT)
_CONSTANTS = {ord(pickle.NONE): None, ord(pickle.NEWTRUE): True, ord(pickle.NEWFALSE): False}
_NUMBERS = {
    ord(pickle.BININT): Struct("<i"), ord(pickle.BININT1): _BYTE, ord(pickle.BININT2): Struct("<H"),
    ord(pickle.BINFLOAT): Struct(">d"),
}  # fmt: skip
_TEXTS = {pickle.BINUNICODE: _WORD, pickle.SHORT_BINUNICODE: _BYTE}
_SKIPPED = {pickle.PROTO: 1, pickle.FRAME: 8}
"""Number of bytes after them."""
_EMPTY = {pickle.EMPTY_DICT: dict, pickle.EMPTY_LIST: list, pickle.EMPTY_TUPLE: tuple}
_TUPLES = {pickle.TUPLE1: 1, pickle.TUPLE2: 2, pickle.TUPLE3: 3}


class RefusedPickleError(ValueError):
    """Raised for a pickle that is not plain data, or too large; args: a sentence."""


class CutPickleError(RefusedPickleError):
    """Raised for a pickle without an end."""


def plain_data(data: bytes) -> Any:
    """Return the value of a pickle of dicts, lists, tuples, texts and numbers. Raises RefusedPickleError."""
    return _Machine(data).run()


def first_items(data: bytes) -> dict[str, Any]:
    """Return the first items of the dict of a pickle, of which only the begin is given. Raises RefusedPickleError."""
    machine = _Machine(data)
    try:
        machine.run()
    except CutPickleError:
        return machine.items()
    raise RefusedPickleError("damaged pickle (it ends early)")


class _Machine:
    """The stack and the memo of one pickle."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._stack: list[Any] = []
        self._below: list[list[Any]] = []
        """The stacks below each mark."""
        self._memo: dict[int, Any] = {}
        self._depth: dict[int, int] = {}
        """Nesting of each container, by its identity."""
        self._kept: list[Any] = []
        """All containers: their identities stay in use."""
        self._items = 0

    def run(self) -> Any:
        """Return the value."""
        data, memo, stack, at = self._data, self._memo, self._stack, 0
        try:
            while (code := data[at]) != _STOP:
                if code == _BINGET:
                    stack.append(memo[data[at + 1]])
                    at += 2
                elif code == _BINPUT:
                    memo[data[at + 1]] = stack[-1]
                    at += 2
                elif code in _NUMBERS:
                    form = _NUMBERS[code]
                    stack.append(form.unpack_from(data, at + 1)[0])
                    at += 1 + form.size
                elif code in _CONSTANTS:
                    stack.append(_CONSTANTS[code])
                    at += 1
                else:
                    self._at = at + 1
                    self._take(data[at : at + 1])
                    at, stack = self._at, self._stack
            return stack.pop()
        except (IndexError, struct.error):
            raise CutPickleError("damaged pickle (no end)") from None
        except (KeyError, TypeError, OverflowError, UnicodeError) as error:
            raise RefusedPickleError(f"damaged pickle ({type(error).__name__})") from None

    def items(self) -> dict[str, Any]:
        """Return the complete items of the outermost dict, while it is being filled."""
        found: dict[str, Any] = {}
        _, first, *_ = [*self._below, self._stack, []]
        for key, value in zip(first[::2], first[1::2], strict=False):
            if not isinstance(key, str):
                break
            found[key] = value
        return found

    def _number(self, form: Struct) -> Any:
        at = self._at
        self._at += form.size
        return form.unpack_from(self._data, at)[0]

    def _bytes(self, count: int) -> bytes:
        found = self._data[self._at : self._at + count]
        if len(found) < count:
            raise CutPickleError("damaged pickle (no end)")
        self._at += count
        return found

    def _take(self, code: bytes) -> None:
        """Take an opcode that `run` does not take itself."""
        if code in _TEXTS:
            size = self._number(_TEXTS[code])
            if size > _LONGEST:
                raise RefusedPickleError(f"text of more than {_LONGEST:,} bytes")
            self._stack.append(self._bytes(size).decode("utf-8", "surrogatepass"))
        elif code == pickle.LONG1:
            self._stack.append(int.from_bytes(self._bytes(self._number(_BYTE)), "little", signed=True))
        elif code in _SKIPPED:
            self._bytes(_SKIPPED[code])
        elif code == pickle.MARK:
            if len(self._below) >= 2 * _MOST_DEPTH:
                raise RefusedPickleError(f"more than {_MOST_DEPTH} levels")
            self._below.append(self._stack)
            self._stack = []
        elif code in (pickle.MEMOIZE, pickle.LONG_BINPUT):
            index = len(self._memo) if code == pickle.MEMOIZE else int(self._number(_WORD))
            self._memo[index] = self._stack[-1]
            if len(self._memo) > MOST_ITEMS:
                raise RefusedPickleError(f"more than {MOST_ITEMS:,} items")
        elif code == pickle.LONG_BINGET:
            self._stack.append(self._memo[self._number(_WORD)])
        else:
            self._contain(code)

    def _contain(self, code: bytes) -> None:
        """Make or fill a container."""
        if code in _EMPTY:
            self._push(_EMPTY[code]())
        elif code in _TUPLES:
            self._push(tuple([self._stack.pop() for _ in range(_TUPLES[code])][::-1]))
        elif code == pickle.TUPLE:
            self._push(tuple(self._since_mark()))
        elif code in (pickle.APPEND, pickle.APPENDS):
            added = [self._stack.pop()] if code == pickle.APPEND else self._since_mark()
            self._into(list).extend(added)
            self._count(self._stack[-1], added)
        elif code in (pickle.SETITEM, pickle.SETITEMS):
            pairs = [self._stack.pop(), self._stack.pop()][::-1] if code == pickle.SETITEM else self._since_mark()
            if len(pairs) % 2:
                raise RefusedPickleError("damaged pickle (a key without a value)")
            self._into(dict).update(zip(pairs[::2], pairs[1::2], strict=True))
            self._count(self._stack[-1], pairs)
        else:
            known = pickletools.code2op.get(code.decode("latin-1"))  # type: ignore[attr-defined]
            name = f"opcode {known.name}" if known else f"byte {code.hex()}"
            raise RefusedPickleError(f"{name}, which is not plain data")

    def _into(self, kind: type) -> Any:
        if type(self._stack[-1]) is not kind:
            raise RefusedPickleError("damaged pickle (wrong container)")
        return self._stack[-1]

    def _push(self, container: Any) -> None:
        self._kept.append(container)
        self._stack.append(container)
        self._count(container, container)

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

    def _since_mark(self) -> list[Any]:
        items = self._stack
        self._stack = self._below.pop()
        return items
