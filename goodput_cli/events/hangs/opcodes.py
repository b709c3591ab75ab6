"""Read a pickle without unpickling it: walk its opcodes and accept those that make plain data.

Nothing is imported or called, whatever the file contains. The size of everything that is made is bounded. Of a long
list of entries, only some are read: the others are found by the bytes between them, and are not walked.
"""

from __future__ import annotations

import pickle
import pickletools
import re
import struct
from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice
from struct import Struct
from typing import Any

MOST_ITEMS = 1_000_000
"""Maximum number of items in all containers."""
_MOST_DEPTH = 8
_LONGEST = 1 << 16
"""Maximum length of a text."""
_CONTAINERS = (dict, list, tuple)
_BYTE, _WORD = Struct("<B"), Struct("<I")
# Codes of the commonest kinds are numbers, which the loop over all opcodes compares fastest.
_STOP, _BINGET, _BINPUT, _LONG_BINGET = map(ord, (pickle.STOP, pickle.BINGET, pickle.BINPUT, pickle.LONG_BINGET))
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
_PUT_OF = {pickle.BINGET: pickle.BINPUT, pickle.LONG_BINGET: pickle.LONG_BINPUT}
_PUT = rb"(?:q.|r.{4})?"
_FIRST_ENTRY = re.compile(
    rb"(?s)X\x07\0\0\0entries" + _PUT + rb"\]" + _PUT + rb"\(\}" + _PUT + rb"\((?:(?P<get>h.|j.{4})|X(?P<size>.)\0\0\0)"
)
"""The begin of the list, and of its first dict up to its first key."""
_MOST_ENTRIES, _MOST_SEARCHES = 100_000, 256
"""Maximum number of entries, and of objects that are searched in the entries that were not walked."""


class RefusedPickleError(ValueError):
    """Raised for a pickle that is not plain data, or too large; args: a sentence."""


class CutPickleError(RefusedPickleError):
    """Raised for a pickle without an end."""


def plain_data(data: bytes) -> Any:
    """Return the value of a pickle of dicts, lists, tuples, texts and numbers. Raises RefusedPickleError."""
    return _Machine(data).run()


class UnreadObject:
    """An object in a part of a pickle that was not walked."""

    def __init__(self, index: int) -> None:
        self.index = index


class _PartialMemo(dict[int, Any]):
    """The memo of a pickle that is walked in parts."""

    def __missing__(self, index: int) -> UnreadObject:
        return UnreadObject(index)


class LongPickle:
    """A pickle of a dict whose item `entries` is a long list of dicts with the same first key. Its entries are walked
    on demand."""

    def __init__(self, data: bytes, starts: Sequence[int]) -> None:
        self._data = data
        self._starts = starts
        """Locations of all entries but the first."""
        self._memo: dict[int, Any] = _PartialMemo()
        self.value = _Machine(data[: starts[0]] + data[starts[-1] :], self._memo).run()
        """The dict, with only the first and the last entry."""
        self._indices = {text: index for index, text in self._memo.items() if isinstance(text, str)}
        frames = re.escape(_get(self._indices.get("frames", 0)))
        self._stack = re.compile(rb"(?s)(" + frames + rb"\]" + _PUT + rb")\((?:h.|j.{4})*+e")
        """A stack whose frames are all in the memo."""
        self._searched = set[int]()
        """Entries in which a reference was searched."""
        self._searches = 0

    def __len__(self) -> int:
        """Return the number of entries that are walked on demand: all but the first and the last one."""
        return len(self._starts) - 1

    def values_of(self, key: str) -> list[bytes]:
        """Return the opcodes of a key's values, numbers or booleans, in the other entries; fewer or more if they are
        not found by the bytes before them."""
        if key not in self._indices:
            return []
        found = re.compile(rb"(?s)" + re.escape(_get(self._indices[key])) + rb"(K.|M..|J.{4}|[\x88\x89])")
        values = found.finditer(self._data, self._starts[0], self._starts[-1])
        return [one[1] for one in islice(values, len(self._starts))]

    def first(self, key: str, *, value: bool) -> int | None:
        """Return the first of the other entries in which a key has a value; their number if there is none. None if
        entries do not have the key."""
        if key not in self._indices:
            return None
        item = _get(self._indices[key]) + (pickle.NEWTRUE if value else pickle.NEWFALSE)
        at = self._data.find(item, self._starts[0], self._starts[-1])
        return len(self) if at < 0 else bisect_right(self._starts, at) - 1

    def entry(self, at: int, *, is_whole: bool = False) -> Any:
        """Return one of the other entries. is_whole: False may leave its stack empty."""
        part = self._data[self._starts[at] : self._starts[at + 1]].removesuffix(pickle.APPENDS + pickle.MARK)
        part = part if is_whole else self._stack.sub(rb"\1", part)
        return _Machine(part + pickle.STOP, self._memo).run()

    def resolved(self, value: Any) -> Any:
        """Return an object in a part that was not walked; None if it is not found. Returns other values as they are."""
        if type(value) is not UnreadObject:
            return value
        if value.index not in self._memo:
            self._search(value.index)
        return self._memo.setdefault(value.index, None)

    def _search(self, index: int) -> None:
        """Walk entries until one sets an index of the memo."""
        self._searches += 1
        if self._searches > _MOST_SEARCHES:
            raise RefusedPickleError("entries that repeat too many objects")
        get = _get(index)
        put, at = _PUT_OF[get[:1]] + get[1:], self._starts[0]
        while index not in self._memo and (at := self._data.find(put, at, self._starts[-1])) >= 0:
            entry = bisect_right(self._starts, at) - 1
            if entry not in self._searched:
                self._searched.add(entry)
                self.entry(entry, is_whole=True)
            at = self._starts[entry + 1]


def _get(index: int) -> bytes:
    """Return the opcode that takes an object from the memo."""
    return pickle.BINGET + bytes([index]) if index < 256 else pickle.LONG_BINGET + _WORD.pack(index)


def long_pickle(data: bytes, least: int) -> LongPickle | None:
    """Return a pickle with at least this number of entries; None for any other one. Raises RefusedPickleError."""
    found = _FIRST_ENTRY.search(data)
    if found is None:
        return None
    get, at = found["get"], found.end()
    if get is None:
        put = re.compile(rb"(?s)q(?P<short>.)|r(?P<long>.{4})").match(data, at + found["size"][0])
        if put is None:
            return None
        get = _get(int.from_bytes(put["short"] or put["long"], "little"))
    following = re.compile(rb"(?s)\}" + _PUT + rb"\(" + re.escape(get))
    starts = [one.start() for one in islice(following.finditer(data, at), _MOST_ENTRIES)]
    return LongPickle(data, starts) if max(least, 2) <= len(starts) < _MOST_ENTRIES else None


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

    def __init__(self, data: bytes, memo: dict[int, Any] | None = None) -> None:
        self._data = data
        self._at = 0
        self._stack: list[Any] = []
        self._below: list[list[Any]] = []
        """The stacks below each mark."""
        self._memo: dict[int, Any] = {} if memo is None else memo
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
                elif code == _LONG_BINGET:
                    stack.append(memo[_WORD.unpack_from(data, at + 1)[0]])
                    at += 5
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
