"""Dumps of PyTorch's flight recorder (docs/hangs.md): positions of a rank in all of its groups, and their members; and
stacks that `py-spy dump` printed, which are shown next to a rank that is named for other reasons.

A dump is a pickle or JSON. Of its entries, those from the first unfinished one on are read, and the last one of each
group, so that all ranks of a large job are compared in little time. Its `pg_status` has ids that each rank gives its
groups, so an id is understood only from the entries of the same rank, or from ranks with the same groups that agree on
it. Dumps are compared if they are of one wait: a directory may also contain those of an earlier one, or of a job that
ran on between them.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Generic, TypeVar

import msgspec

from goodput_cli.diagnostics.diagnostic import DiagnosticCollector
from goodput_cli.events.capability import CollectedInputs, job_of_source, jobs_of_sources
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
from goodput_cli.events.hangs.positions import DEFAULT_GROUP, Position, kind_of, needs_all
from goodput_cli.sources.base import RawBatch
from goodput_cli.vocabulary.when import NS_PER_MINUTE, NS_PER_MS

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
"""Number of dumps of which the most are read: they show what all groups run at the number at which two ranks differ."""
_FLAGS = ("retired", "is_p2p", "pg_id")
"""Items of entries that decide which of them are read."""
_USUAL_TIMEOUT_NS = 10 * NS_PER_MINUTE
"""The default of PyTorch."""
_SEVERAL_MOMENTS = (
    "dumps of different moments: a rank finished an operation that another one, which takes part in it, has not "
    "begun; ignored. Dump all ranks while the job hangs"
)
_Read = TypeVar("_Read")


@dataclass(frozen=True)
class Membership:
    """Members of a process group."""

    job: str
    time: int | None
    """Time of the dumps, as in their positions."""
    group: str
    about: str
    ranks: tuple[int, ...]
    """Global ranks in the order of ranks in the group."""


@dataclass(frozen=True)
class Disagreement:
    """The first unfinished operation of a group at which its members differ."""

    job: str
    time: int | None
    group: str
    sequence: int
    kinds: tuple[tuple[int, str], ...]
    """What each rank runs."""
    usual: str = ""
    """What all other groups of its description run at this number; "" if they differ, or are fewer than two dumps."""


@dataclass
class _Entry:
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
    entries: list[_Entry] = field(default_factory=list)
    """Operations in the order in which the program enqueued them."""
    frame: str | None = None
    """Innermost function outside of PyTorch of the first unfinished operation; None if all are finished."""
    written: int | None = None
    """Time (ns) of the last change of its file; None if unknown."""
    note: str = ""
    """What is not read of it."""
    is_refused: bool = False

    def __len__(self) -> int:
        return 1


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
    """Number of its bytes, of which a large one has only some here."""
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
        return found[:256] if isinstance(found, list | tuple) else ()


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
        flags = [re.findall(rf'"{key}"\s*:\s*(true|false|\d+)'.encode(), listed) for key in _FLAGS]
        return _Contents(value, [msgspec.json.decode(parts[at]) for at in _chosen(least, len(parts), *flags)])
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
    places = _chosen(least, len(pickled), *map(pickled.values_of, _FLAGS))
    return _Contents(pickled.value, [ends[0], *map(pickled.entry, places), ends[1]], pickled, places)


def _chosen(
    least: int, count: int, done: Sequence[bytes], p2p: Sequence[bytes], local: Sequence[bytes]
) -> Sequence[int]:
    """Return which entries are read: the first unfinished one and those after it, the last ones, and the last one of
    each group before them. All are read if one of their items is not found in each.

    done, p2p, local: bytes that show whether each entry is finished, whether it is a point-to-point operation, and the
    id of its group.
    """
    if not len(done) == len(p2p) == len(local) == count:
        return range(count)
    first = next((at for at, one in enumerate(done) if not one.startswith((b"true", b"\x88"))), count)
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


@dataclass(frozen=True)
class RankFunction:
    """The function in which a rank is."""

    job: str
    rank: int
    function: str
    """Untrusted."""


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
    elements = _OncePerObject(lambda sizes: _elements(sizes, resolved))
    seen = set[int]()
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
        found.entries.append(_Entry(
            name, _whole(_get(one, "pg_id")), sequence, operation,
            elements(resolved(_get(one, "input_sizes"))), is_done, _whole(_get(one, "timeout_ms")),
            _whole(_get(one, "time_created_ns")) or None, is_p2p,
        ))  # fmt: skip
        if not is_done and found.frame is None:
            found.frame = _frame(map(resolved, contents.frames(at)), resolved)
    return found


class _OncePerObject(Generic[_Read]):
    """A function of an object in a dump, called once for each."""

    def __init__(self, function: Callable[[Any], _Read]) -> None:
        self._function = function
        self._known: dict[int, _Read] = {}

    def __call__(self, value: Any) -> _Read:
        if id(value) not in self._known:
            self._known[id(value)] = self._function(value)
        return self._known[id(value)]


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


def rows_of(inputs: CollectedInputs) -> Iterator[Position | Membership | Disagreement | RankFunction]:
    """Yield the rows of all dumps, each with the job of the logs next to it."""
    if inputs.parts is None:
        return
    table, by_source, notes = inputs.table, jobs_of_sources(inputs.table), inputs.notes
    of_job: defaultdict[str, list[tuple[str, Dump]]] = defaultdict(list)
    for source, dump in inputs.parts.dumps.items():
        job = job_of_source(source, table.sources, by_source)
        if isinstance(dump, Dump) and dump.note:
            notes.add("unusable_dump", notes.bounded("unusable_dump", dump.note), source, [1])
        if isinstance(dump, Dump) and dump.is_refused:
            continue
        if job is None:
            notes.add("unusable_dump", "a dump next to logs of several jobs, or of none; ignored", source, [1])
        elif isinstance(dump, Dump):
            of_job[job].append((table.sources[source], dump))
        elif dump.function:
            yield RankFunction(job, dump.rank, dump.function)
    for job, dumps in of_job.items():
        yield from _rows_of_job(job, dumps, inputs)


def _rows_of_job(
    job: str, dumps: Sequence[tuple[str, Dump]], inputs: CollectedInputs
) -> Iterator[Position | Membership | Disagreement]:
    """Yield the rows of the waits of a job. Dumps have UTC times: if those of the log have no zone, only the last wait
    is known to be the job's last one."""
    waits = _waits(dumps)
    is_dated = not inputs.notes.has_code("naive_timestamps")
    for time, some in waits if is_dated else [(None, waits[-1][1])]:
        if _is_one_moment([dump for _, dump in some]):
            yield from _rows_of_wait(job, time, some)
        else:
            inputs.notes.add("unusable_dump", _SEVERAL_MOMENTS, inputs.table.sources.index(some[0][0]), [1])


def _waits(dumps: Sequence[tuple[str, Dump]]) -> list[tuple[int | None, list[tuple[str, Dump]]]]:
    """Return the dumps of each wait with its time, in order of time. Dumps whose last operations are further apart than
    a wait may last are of several waits. Those without times are of the last one."""
    times = [max((entry.created or 0 for entry in dump.entries), default=0) for _, dump in dumps]
    limits = [entry.timeout_ms or 0 for _, dump in dumps for entry in dump.entries[-1:]]
    limit = max(limits, default=0) * NS_PER_MS or _USUAL_TIMEOUT_NS
    found: list[tuple[int | None, list[tuple[str, Dump]]]] = []
    for time, one in sorted(zip(times, dumps, strict=True), key=lambda row: row[0]):
        if not time:
            continue
        if not found or time - (found[-1][0] or 0) > limit:
            found.append((time, []))
        found[-1][1].append(one)
        found[-1] = time, found[-1][1]
    undated = [one for time, one in zip(times, dumps, strict=True) if not time]
    if not found:
        return [(None, undated)]
    found[-1][1].extend(undated)
    return found


def _is_one_moment(dumps: Sequence[Dump]) -> bool:
    """Return True unless a rank finished an operation that another member of its group has not enqueued."""
    last: defaultdict[str, dict[int, int]] = defaultdict(dict)
    done: dict[str, int] = {}
    worlds = {ranks for dump in dumps for about, ranks in dump.groups.values() if about == DEFAULT_GROUP}
    for dump in dumps:
        for one in dump.entries:
            if one.is_p2p:
                continue
            last[one.group][dump.rank] = max(one.sequence, last[one.group].get(dump.rank, 0))
            if one.done and needs_all(one.operation):
                done[one.group] = max(one.sequence, done.get(one.group, 0))
    return len(worlds) < 2 and all(min(last[group].values()) >= number for group, number in done.items())


def _rows_of_wait(
    job: str, time: int | None, dumps: Sequence[tuple[str, Dump]]
) -> Iterator[Position | Membership | Disagreement]:
    groups: dict[str, tuple[str, tuple[int, ...]]] = {}
    unclear = set[str]()
    """Names of several groups, and groups of which `pg_status` also counts point-to-point operations."""
    with_p2p = {one.group for _, dump in dumps for one in dump.entries if one.is_p2p}
    for _, dump in dumps:
        for name, about_and_ranks in dump.groups.items():
            if groups.setdefault(name, about_and_ranks)[1] != about_and_ranks[1]:
                unclear.add(name)
    for name, (about, ranks) in groups.items():
        if ranks and name not in unclear:
            yield Membership(job, time, name, about, ranks)
    learned = [(set(dump.groups), _ids_of(dump)) for _, dump in dumps]
    last = max((one.created or 0 for _, dump in dumps for one in dump.entries), default=0)
    first = min((dump.written for _, dump in dumps if dump.written is not None), default=None)
    still = first - last if first is not None and last and first - last > -NS_PER_MINUTE else None
    for source, dump in dumps:
        ids = {local: name for local, name in _ids_from_peers(dump, learned).items() if name not in with_p2p}
        yield from (replace(one, time=time, still_ns=still) for one in _positions(job, source, dump, ids, unclear))
    yield from _disagreements(job, time, [dump for _, dump in dumps], unclear)


def _ids_of(dump: Dump) -> dict[int, str]:
    return {one.local: one.group for one in dump.entries if one.local is not None}


def _ids_from_peers(dump: Dump, learned: Sequence[tuple[set[str], dict[int, str]]]) -> dict[int, str]:
    """Return the group of each local id: from the dump's own entries, otherwise from the dumps that share most groups
    with it; ids on which these disagree are left out."""
    own = _ids_of(dump)
    left = [local for local in dump.status if local not in own]
    if not left:
        return own
    names = set(dump.groups)
    shared = [len(names & groups) for groups, ids in learned if ids]
    most = max(shared, default=0)
    peers = [ids for groups, ids in learned if ids and len(names & groups) == most] if most else []
    for local in left:
        said = Counter(ids[local] for ids in peers if local in ids)
        if len(said) == 1 and (name := next(iter(said))) in names and name not in own.values():
            own[local] = name
    return own


def _positions(job: str, source: str, dump: Dump, ids: Mapping[int, str], unclear: set[str]) -> Iterator[Position]:
    """Yield the position of a rank in each of its groups: it waits in its earliest pending operation. It names no group
    if that is a point-to-point operation."""
    pending = next((one for one in dump.entries if not one.done), None)
    last: dict[str, tuple[int | None, int | None]] = {}
    for one in dump.entries:
        if not one.is_p2p:
            enqueued, completed = last.get(one.group, (None, None))
            last[one.group] = one.sequence, one.sequence if one.done else completed
    for local, name in ids.items():
        if local in dump.status:
            enqueued, completed = dump.status[local]
            before = last.get(name, (None, None))
            last[name] = _largest(enqueued, before[0]), _largest(completed, before[1])
    if pending is not None and (pending.is_p2p or pending.group in unclear):
        yield Position(
            job, f"{source}:1", None, dump.rank, "", None, sequence=pending.sequence, operation=pending.operation,
            from_dump=True, phase=dump.frame or "",
        )  # fmt: skip
    for name, (enqueued, completed) in last.items():
        if name in unclear:
            continue
        about, ranks = dump.groups.get(name, ("", ()))
        waits = pending is not None and pending.group == name and not pending.is_p2p
        is_open = not waits and pending is None and not dump.entries and (enqueued or 0) > (completed or 0)
        sequence = pending.sequence if waits and pending is not None else (completed or 0) + 1 if is_open else None
        yield Position(
            job, f"{source}:1", None, dump.rank, "", name, about,
            ranks.index(dump.rank) if dump.rank in ranks else dump.rank if about == DEFAULT_GROUP else None,
            sequence, pending.operation if waits and pending is not None else "",
            pending.elements if waits and pending is not None else None, enqueued, completed,
            timeout_ns=None if not waits or pending is None or pending.timeout_ms is None
            else pending.timeout_ms * NS_PER_MS,
            from_dump=True, phase=(waits and dump.frame) or "",
        )  # fmt: skip


def _largest(one: int | None, other: int | None) -> int | None:
    return max((value for value in (one, other) if value is not None), default=None)


def _disagreements(job: str, time: int | None, dumps: Sequence[Dump], unclear: set[str]) -> Iterator[Disagreement]:
    """Yield the first unfinished operation of each group at which dumps differ."""
    about = {name: words for dump in dumps for name, (words, _) in dump.groups.items()}
    unfinished = {
        (one.group, one.sequence) for dump in dumps for one in dump.entries if not one.done and not one.is_p2p
    }
    places = {(about.get(group, ""), number) for group, number in unfinished}
    runs: defaultdict[tuple[str, int], dict[int, str]] = defaultdict(dict)
    for dump in dumps:
        for one in dump.entries:
            if (about.get(one.group, ""), one.sequence) in places and not one.is_p2p:
                operation, elements = kind_of(one.operation, one.elements)
                before = runs[one.group, one.sequence].get(dump.rank, "")  # Coalesced operations have one number.
                runs[one.group, one.sequence][dump.rank] = f"{before} {operation} {elements}"
    first: dict[str, int] = {}
    for group, number in sorted(unfinished):
        if group not in unclear and len({*runs[group, number].values()}) > 1:
            first.setdefault(group, number)
    for group, number in first.items():
        others = Counter(
            kind for (name, at), kinds in runs.items()
            if at == number and name != group and about.get(group) and about.get(name) == about[group]
            for kind in kinds.values()
        )  # fmt: skip
        usual = next(iter(others)) if len(others) == 1 and others.total() > 1 else ""
        yield Disagreement(job, time, group, number, tuple(sorted(runs[group, number].items())), usual)
