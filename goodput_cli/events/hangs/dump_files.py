"""Files next to a log: dumps of PyTorch's flight recorder, and stacks that `py-spy dump` printed (docs/hangs.md).

A dump is a pickle or JSON. Of its entries, those from the first unfinished one on are read, and the last one of each
group, so that all ranks of a large job are compared in little time.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import msgspec

from goodput_cli.diagnostics.diagnostic import DiagnosticCollector
from goodput_cli.events.evidence import quoted
from goodput_cli.events.formats.base import NOTHING, ParsedPart
from goodput_cli.events.hangs.opcodes import (
    MOST_ITEMS,
    LongPickle,
    RefusedPickleError,
    first_items,
    long_pickle,
    plain_data,
)
from goodput_cli.sources.base import RawBatch

TABLE = "hangs"
_MOST_BYTES, _HEAD_BYTES = 16 << 20, 1 << 20
"""Maximum size of a dump that is read as a whole, and of the begin of a larger one."""
_MOST_RANKS, _MOST_GROUPS, _MOST_MEMBERS = 8192, 4096, 1 << 18
"""Maximum number of dumps; of groups of a dump, and of members of all of them."""
_LARGE = (
    f"a dump of {{}} MiB is above the limit of {_MOST_BYTES >> 20} MiB: its list of operations is not read; set "
    "TORCH_NCCL_TRACE_BUFFER_SIZE=2000"
)
_RANK = re.compile(r"(\d{1,8})(?:\.(?:json|pkl|pickle|txt|log|out))?$")
_THREAD = re.compile(r"^Thread .{1,100}: \"MainThread\"")
_FRAME = re.compile(r"^\s+(?P<name>\S{1,200}) \((?P<file>[^()]{1,1000}):(?P<line>\d{1,9})\)$")
_PICKLE = b"\x80\x02}"
_MOST_ENTRIES, _LAST_ENTRIES = 256, 32
"""Number of entries of a dump that are read at most, and of its last ones that are read although they are finished."""
_MOST_WHOLE = 32
"""Number of dumps with the most entries to read: they show what all groups run where two ranks differ."""
_FLAGS = ("retired", "is_p2p", "pg_id")
"""Items of entries that decide which of them are read."""


@dataclass
class DumpedOperation:
    """An operation in a dump."""

    group: str
    local: int | None
    sequence: int
    operation: str
    elements: int | None
    done: bool
    timeout_ms: int | None
    created: int | None
    is_p2p: bool = False
    """True for a point-to-point operation, which has a sequence number of its own."""


@dataclass
class Dump:
    """What a dump shows."""

    rank: int
    groups: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    """Description and members by group."""
    status: dict[int, tuple[int | None, int | None]] = field(default_factory=dict)
    """Last enqueued and completed operation, by local id."""
    entries: list[DumpedOperation] = field(default_factory=list)
    """Operations in the order in which the program enqueued them."""
    frame: str | None = None
    """Innermost function outside of PyTorch of the first unfinished operation; None if all are finished."""
    written: int | None = None
    """Time (ns) of the last change of its file; None if unknown."""
    note: str = ""
    """What is not read of it."""
    is_refused: bool = False


def rank_of(source: str) -> int | None:
    """Return the rank at the end of the name of a dump; None if there is none."""
    found = _RANK.search(source.replace("\\", "/").rpartition("/")[2])
    return None if found is None else int(found[1])


class DumpReader:
    """Reader of a dump (`DocumentReader`)."""

    by_line, written_at_once = False, True

    def __init__(self, source: str) -> None:
        self._source = source
        self._written: int | None = None
        self._data: list[bytes] = []
        self._end = b""
        self._size = 0

    def feed(self, batch: RawBatch) -> ParsedPart:
        """Keep the bytes: a dump is read as a whole, and the begin and the end of a large one."""
        if self._size < _HEAD_BYTES or self._size + len(batch.data) <= _MOST_BYTES:
            self._data.append(batch.data)
        else:
            self._end = (self._end + batch.data)[-_HEAD_BYTES:]
        self._size += len(batch.data)
        self._written = batch.modified_ns
        return NOTHING

    def finish(self) -> ParsedPart:
        """Return the dump."""
        part = DumpFile(rank_of(self._source) or 0, b"".join([*self._data, self._end]), self._size, self._written)
        return ParsedPart((), NOTHING.lines, inputs=((TABLE, part),))


@dataclass(frozen=True)
class DumpFile:
    """A dump that is not read yet."""

    rank: int
    data: bytes
    size: int
    """Number of its bytes. Only the begin of a large one is kept."""
    written: int | None

    def __len__(self) -> int:
        return 1

    def read(self, least: int) -> Dump:
        """Return what it shows, and why it cannot be read. least: number of its last entries that are read although
        they are finished."""
        try:
            part = _dump(self.rank, _contents(self.data, self.size, least))
            part.written = self.written
            part.note = "" if self.size <= _MOST_BYTES else _LARGE.format(self.size >> 20)
        except (RefusedPickleError, ValueError, RecursionError, msgspec.DecodeError) as error:
            reason = f"{error}"[:200] if not isinstance(error, RecursionError) else "nested too deep"
            part = Dump(self.rank, note=f"a dump of a flight recorder is not read: {quoted(reason)}", is_refused=True)
        return part


@dataclass(frozen=True)
class _Contents:
    """The items of a dump, and those of its entries that are read."""

    value: Any
    entries: Sequence[Any]
    pickled: LongPickle | None = None
    places: Sequence[int] = ()
    """Location of each entry but the first and the last one in its pickle."""

    def resolved(self, value: Any) -> Any:
        """Return a value of an entry."""
        return value if self.pickled is None else self.pickled.resolved(value)

    def frames(self, at: int) -> Sequence[Any]:
        """Return the stack of an entry."""
        one = self.entries[at]
        if self.pickled is not None and 0 < at <= len(self.places):
            one = self.pickled.entry(self.places[at - 1], is_whole=True)
        found = _get(one, "frames")
        return found[:64] if isinstance(found, list | tuple) else ()


def _contents(data: bytes, size: int, least: int) -> _Contents:
    """Return the items of a dump; see `DumpFile`."""
    if size > _MOST_BYTES:
        head = data[:_HEAD_BYTES]
        return _Contents(
            first_items(head) if head.startswith(_PICKLE) else _json_items(head + data[len(head) :][-_HEAD_BYTES:]), ()
        )
    if not data.startswith(_PICKLE):
        items = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        value = {key: msgspec.json.decode(raw) for key, raw in items.items() if key in ("pg_config", "pg_status")}
        listed = bytes(items.get("entries", msgspec.Raw(b"")))
        if listed.count(b",") > 2 * MOST_ITEMS:
            raise ValueError(f"more than {MOST_ITEMS:,} items")
        parts = list(map(bytes, msgspec.json.decode(listed, type=list[msgspec.Raw]))) if listed[:1] == b"[" else []
        done, p2p, local = (re.findall(rf'"{key}"\s*:\s*(true|false|\d+)'.encode(), listed) for key in _FLAGS)
        first = done.index(b"false") if b"false" in done else len(parts)
        is_known = len(done) == len(p2p) == len(local) == len(parts)
        chosen = _chosen(least, first, p2p, local) if is_known else range(len(parts))
        return _Contents(value, [msgspec.json.decode(parts[at]) for at in chosen])
    try:
        return _of_long(long_pickle(data, least), least) or _of_value(plain_data(data))
    except RefusedPickleError:
        return _of_value(plain_data(data))


def _of_value(value: Any) -> _Contents:
    entries = _get(value, "entries")
    return _Contents(value, entries if isinstance(entries, list | tuple) else ())


def _of_long(pickled: LongPickle | None, least: int) -> _Contents | None:
    if pickled is None:
        return None
    ends = _get(pickled.value, "entries")
    if not isinstance(ends, list) or len(ends) != 2:
        return None
    count, local = len(pickled), pickled.values_of("pg_id")
    p2p = [b""] * count if pickled.first("is_p2p", value=True) == count else pickled.values_of("is_p2p")
    first = pickled.first("retired", value=False)
    is_known = first is not None and len(local) == len(p2p) == count
    places = _chosen(least, first or 0, p2p, local) if is_known else range(count)
    return _Contents(pickled.value, [ends[0], *map(pickled.entry, places), ends[1]], pickled, places)


def _chosen(least: int, first: int, p2p: Sequence[bytes], local: Sequence[bytes]) -> Sequence[int]:
    """Return which entries are read: the first unfinished one and those after it, the last ones, and the last one of
    each group before them.

    p2p, local: bytes that differ between point-to-point operations and others, and between groups.
    """
    count = len(local)
    begin = max(min(first, count - least), count - _MOST_ENTRIES, 0)
    last = dict(zip(zip(local[:begin], p2p, strict=False), range(begin), strict=False))
    return sorted({*last.values(), *range(first, min(first + 1, begin)), *range(begin, count)})


def _json_items(data: bytes) -> dict[str, Any]:
    """Return the configuration and the state of the groups, from the begin or the end of a JSON dump."""
    found = {}
    for key in ("pg_config", "pg_status"):
        at = re.search(rf'"{key}"\s*:\s*'.encode(), data)
        if at is not None:
            found[key], _ = json.JSONDecoder().raw_decode(data[at.end() :].decode("utf-8", "replace"))
    return found


@dataclass
class StackDump:
    """The stack of a process."""

    rank: int
    function: str
    """Innermost function of its main thread outside of PyTorch and Python; "" if there is none."""

    def __len__(self) -> int:
        return 1


class StackReader:
    """Reader of the output of py-spy (`DocumentReader`)."""

    by_line, written_at_once = False, True

    def __init__(self, source: str) -> None:
        self._rank = rank_of(source) or 0
        self._text = b""

    def feed(self, batch: RawBatch) -> ParsedPart:
        """Keep the text."""
        self._text = (self._text + batch.data)[:_HEAD_BYTES]
        return NOTHING

    def finish(self) -> ParsedPart:
        """Return the function."""
        found = StackDump(self._rank, innermost(self._text.decode("utf-8", "replace")))
        return ParsedPart((), NOTHING.lines, inputs=((TABLE, found),))


def innermost(text: str) -> str:
    """Return the innermost function of the main thread outside of PyTorch and Python."""
    is_main = False
    for line in text.splitlines():
        frame = _FRAME.match(line)
        if frame is None:
            is_main = _THREAD.match(line) is not None
        elif is_main:
            top = frame["file"].partition("/")[0].removesuffix(".py")
            if top != "torch" and "/torch/" not in frame["file"] and top not in sys.stdlib_module_names:
                return quoted(f"{frame['name']} ({frame['file'].rpartition('/')[2]}:{frame['line']})")
    return ""


class DumpCollector:
    """Collector of the dumps of all ranks."""

    def __init__(self) -> None:
        self.dumps: dict[int, Dump | StackDump] = {}
        """By source."""

    def __bool__(self) -> bool:
        return bool(self.dumps)

    def add(self, source: int, part: DumpFile | StackDump, notes: DiagnosticCollector) -> None:
        """Add the dump of a source, which may be an earlier one that was still being written."""
        del notes  # See `rows_of`.
        if len(self.dumps) < _MOST_RANKS or source in self.dumps:
            least = _MOST_ENTRIES if len(self.dumps) < _MOST_WHOLE else _LAST_ENTRIES
            self.dumps[source] = part if isinstance(part, StackDump) else part.read(least)


def _dump(rank: int, contents: _Contents) -> Dump:
    """Return the plain facts of a dump; whatever has another type is left out."""
    found, value, resolved = Dump(rank), contents.value, contents.resolved
    members = 0
    for name, config in _pairs(_get(value, "pg_config"))[:_MOST_GROUPS]:
        ranks = _members(_get(config, "ranks")) if members < _MOST_MEMBERS else ()
        members += len(ranks)
        found.groups[_text(_get(config, "name")) or _text(name)] = _text(_get(config, "desc")), ranks
    for local, status in _pairs(_get(value, "pg_status"))[:_MOST_GROUPS]:
        number = _whole(local)
        if number is not None:
            numbers = (_whole(_get(status, f"last_{name}_collective")) for name in ("enqueued", "completed"))
            enqueued, completed = numbers
            found.status[number] = enqueued, completed
    # A pickle may contain one object many times: each is read once.
    seen, elements = set[int](), dict[int, int | None]()
    for at, one in enumerate(contents.entries):
        if id(one) in seen:
            continue
        seen.add(id(one))
        process_group, is_p2p = resolved(_get(one, "process_group")), _get(one, "is_p2p") is True
        sequence = _whole(_get(one, "p2p_seq_id" if is_p2p else "collective_seq_id"))
        name = _text(resolved(process_group[0])) if isinstance(process_group, list | tuple) and process_group else ""
        if not name or sequence is None:
            continue
        is_done = resolved(_get(one, "state")) == "completed" or _get(one, "retired") is True
        operation = _text(resolved(_get(one, "profiling_name"))).rpartition(":")[2]
        sizes = resolved(_get(one, "input_sizes"))
        if id(sizes) not in elements:
            elements[id(sizes)] = _elements(sizes, resolved)
        found.entries.append(DumpedOperation(
            name, _whole(_get(one, "pg_id")), sequence, operation,
            elements[id(sizes)], is_done, _whole(_get(one, "timeout_ms")),
            _whole(_get(one, "time_created_ns")) or None, is_p2p,
        ))  # fmt: skip
        if not is_done and found.frame is None:
            found.frame = _frame(map(resolved, contents.frames(at)), resolved)
    return found


def _members(listed: Any) -> tuple[int, ...]:
    """Return the ranks in `[0, 1]`, a text or a list of numbers."""
    if isinstance(listed, str):
        return tuple(map(int, re.findall(r"\d{1,8}", listed)))
    numbers = map(_whole, listed) if isinstance(listed, list | tuple) else ()
    return tuple(number for number in numbers if number is not None)


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _pairs(value: Any) -> list[tuple[Any, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


def _frame(frames: Iterable[Any], resolved: Callable[[Any], Any]) -> str:
    """Return the innermost function outside of PyTorch; "" if it is not recorded."""
    for one in frames:
        file, name = resolved(_get(one, "filename")), resolved(_get(one, "name"))
        if isinstance(file, str) and isinstance(name, str) and "/torch/" not in file and file.endswith(".py"):
            return quoted(f"{name[:128]} ({file[-128:].rpartition('/')[2]}:{_whole(_get(one, 'line')) or 0})")
    return ""


def _text(value: Any) -> str:
    return _shown(value[:256]) if isinstance(value, str) else str(value) if isinstance(value, int) else ""


@lru_cache(maxsize=4096)
def _shown(text: str) -> str:
    """Return a text as it may be shown: dumps repeat few texts in all of their entries."""
    return quoted(text)


def _whole(value: Any) -> int | None:
    """Return a number of 0 or more, also written as text; None for other values."""
    if isinstance(value, str) and len(value) < 20 and value.isascii() and value.isdigit():
        value = int(value)
    return value if type(value) is int and 0 <= value < 1 << 62 else None


def _elements(sizes: Any, resolved: Callable[[Any], Any]) -> int | None:
    """Return the number of elements of all inputs; None if unknown."""
    if not isinstance(sizes, list | tuple):
        return None
    total = 0
    for size in map(resolved, sizes[:1024]):
        product = 1
        for length in size[:16] if isinstance(size, list | tuple) else ():
            whole = _whole(length)
            if whole is None:
                return None
            product = min(product * whole, 1 << 62)
        total += product
    return total
