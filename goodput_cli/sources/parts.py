"""Logs that consist of several files, such as the parts of a rotated log: which names may be parts of one log, and in
which order.

Names only suggest it: `events.joined_logs` compares the contents.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol, runtime_checkable

from goodput_cli.errors import SourceError
from goodput_cli.sources.base import Batch, RawBatch, ReadContext, SourceDocument
from goodput_cli.sources.blocks import BLOCK_BYTES, LOG_ENDINGS, PACKED_ENDINGS, count_lines, is_event_file
from goodput_cli.vocabulary.text import FilePart, JoinedName

ENDS_BYTES = 1 << 16
"""Bytes at the begin and at the end of a file that show what it continues."""


class Member(NamedTuple):
    """A file that may be part of a log."""

    name: str
    """The name shown in `file:line`."""
    read: Callable[[], Iterator[Batch]]
    """Returns its lines."""
    ends: Callable[[], tuple[bytes, bytes]] | None
    """Returns its first and last bytes, unpacked; None if it cannot be read twice."""


@runtime_checkable
class HasMembers(Protocol):
    """Optional interface of a source that reads several files: they can be read in another order."""

    def members(self, uri: str, context: ReadContext, /) -> list[Member]:
        """Return the files that `read` would read, in the same order. Raises SourceError as `read` does."""

    def member(self, document: SourceDocument, context: ReadContext, /) -> Member:
        """Return one of the files that it listed (see `Listing`)."""


def ends_of_batches(batches: Iterator[Batch]) -> tuple[bytes, bytes]:
    """Return the first and last bytes of a document; none of records of an API, or of unreadable data."""
    head = tail = b""
    try:
        for batch in batches:
            data = batch.data if isinstance(batch, RawBatch) else b""
            head = head if len(head) >= ENDS_BYTES else (head + data)[:ENDS_BYTES]
            tail = data[-ENDS_BYTES:] if len(data) >= ENDS_BYTES else (tail + data)[-ENDS_BYTES:]
    except SourceError:
        return b"", b""
    return head, tail


class PartCandidate(NamedTuple):
    """Files whose names suggest that they are parts of one log."""

    name: str
    """The name of the whole log."""
    orders: tuple[tuple[str, ...], ...]
    """The names in each possible order, oldest part first; the usual order first."""
    is_certain: bool
    """True if such names are not usual for logs of several processes or attempts."""


_ENDING = "|".join(map(re.escape, LOG_ENDINGS))
_PACKED = tuple(ending for ending in PACKED_ENDINGS if ending)
_NUMBERED = re.compile(r"\.(?P<key>\d{1,4})$")
_MORE = r"(?:[-_T.]\d{1,10}){0,4}"
_DATED = re.compile(rf"[-._](?P<key>\d{{4}}-\d\d-\d\d{_MORE}|\d{{8}}{_MORE})$")
_DATE_INSIDE = re.compile(rf"[-._](?P<key>(?:\d{{4}}-\d\d-\d\d|\d{{8}})(?:\.\d{{1,4}})?)(?P<ending>{_ENDING})$")
_PART = re.compile(r"[-._]?part[-._]?(?P<key>\d{1,4}|[a-z]{2})$")
_LETTERS = re.compile(rf"(?:(?:{_ENDING})\.?|^x)(?P<key>[a-z]{{2}}|(?<=^x)\d\d)$")
"""Names that `split` gives to the parts of a file: `xaa`, `train.log.aa`, `train.logaa`, `x00`."""


def candidates(names: Sequence[str]) -> list[PartCandidate]:
    """Return the groups of files of which some may be parts of one log."""
    found: list[PartCandidate] = []
    by_folder: defaultdict[str, list[str]] = defaultdict(list)
    for name in dict.fromkeys(names):
        if not is_event_file(name):
            by_folder[name[: _base_at(name)]].append(name)
    for some in by_folder.values():
        if len(some) > 1:
            found += _in_folder(some)
    return found


def _in_folder(names: Sequence[str]) -> Iterator[PartCandidate]:
    plain = defaultdict[str, list[str]](list)
    for name in names:
        plain[unpacked(name)].append(name)
    if any(len(copies) > 1 for copies in plain.values()):  # one is a packed copy, or is being packed
        plain = defaultdict(list, {name: copies for name, copies in plain.items() if len(copies) == 1})
    files = {name: copies[0] for name, copies in plain.items()}
    name_of = {file: name for name, file in files.items()}
    taken: set[str] = set()
    for of_names in (_by_letters, _by_date, _by_number, _by_date_inside):
        for one in of_names({name: file for name, file in files.items() if name not in taken}):
            taken.update(name_of[file] for file in one.orders[0])
            yield one


def _by_letters(files: dict[str, str]) -> Iterator[PartCandidate]:
    """Yield the parts that a tool cut a file into, if none is missing in between."""
    for pattern in (_PART, _LETTERS):
        for stem, keyed in _grouped(files, pattern).items():
            ordered = sorted((_ordinal(key), name) for key, name in keyed)
            whole = stem.rstrip(".")
            numbers = [number for number, _ in ordered]
            is_first = numbers[0] == 0 or (numbers[0] == 1 and keyed[0][0].isdecimal())
            if len(ordered) > 1 and is_first and _are_consecutive(numbers) and whole not in files:
                yield PartCandidate(whole, (tuple(files[name] for _, name in ordered),), True)


def _by_date(files: dict[str, str]) -> Iterator[PartCandidate]:
    """Yield logs rotated by date, `train.log-20260301`; the file without a date is the newest."""
    for stem, keyed in _grouped(files, _DATED).items():
        if stem not in files and not _is_log(stem):
            continue
        names = [name for _, name in sorted((_numbers(key), name) for key, name in keyed)]
        names += [stem] if stem in files else []
        if len(names) > 1:
            yield PartCandidate(stem, (tuple(files[name] for name in names),), True)


def _by_number(files: dict[str, str]) -> Iterator[PartCandidate]:
    """Yield logs rotated by number, `train.log.2`: the highest number is the oldest, and the file without a number the
    newest. Without that file, `split` may have counted upwards, and processes may be numbered."""
    for stem, keyed in _grouped(files, _NUMBERED).items():
        if stem not in files and not _is_log(stem):
            continue
        ordered = sorted(((int(key), name) for key, name in keyed), reverse=True)
        numbers = [number for number, _ in reversed(ordered)]
        down = tuple(files[name] for _, name in ordered)
        is_whole = numbers[0] in (0, 1) and _are_consecutive(numbers)
        if stem in files:
            yield PartCandidate(stem, ((*down, files[stem]), (files[stem], *reversed(down))), is_whole)
        elif len(down) > 1:
            orders = (down[::-1], down) if numbers[0] == 0 else (down, down[::-1])
            is_padded = is_whole and numbers[0] == 0 and all(len(key) > 1 for key, _ in keyed)  # as `split -d` writes
            yield PartCandidate(stem, orders, is_padded)


def _by_date_inside(files: dict[str, str]) -> Iterator[PartCandidate]:
    """Yield logs with a date before the ending, `train-2026-03-01.log`: also a usual name of a run."""
    groups: defaultdict[str, list[tuple[tuple[int, ...], str]]] = defaultdict(list)
    for name in files:
        at = _base_at(name)
        found = _DATE_INSIDE.search(name[at:])
        if found is not None and found.start():
            stem = f"{name[: at + found.start()]}{found['ending']}"
            groups[stem].append((_numbers(found["key"]), name))
    for stem, keyed in groups.items():
        names = [name for _, name in sorted(keyed)] + ([stem] if stem in files else [])
        if len(names) > 1:
            yield PartCandidate(stem, (tuple(files[name] for name in names),), False)


def _grouped(files: Iterable[str], pattern: re.Pattern[str]) -> dict[str, list[tuple[str, str]]]:
    """Return key and name of the files that match a pattern, by stem with its folder."""
    groups: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for name in files:
        at = _base_at(name)
        found = pattern.search(name[at:])
        if found is not None and found.start("key"):
            end = found.start("key") if pattern is _LETTERS or not found.start() else found.start()
            groups[name[: at + end]].append((found["key"], name))
    return groups


def _base_at(name: str) -> int:
    return max(name.rfind("/"), name.rfind("\\")) + 1


def unpacked(name: str) -> str:
    """Return a name without the ending of a packed file."""
    return next((name.removesuffix(ending) for ending in _PACKED if name.endswith(ending)), name)


def _is_log(stem: str) -> bool:
    return stem.lower().endswith(LOG_ENDINGS)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)))


def _ordinal(key: str) -> int:
    """Return the position of a part: of `ab`, 1."""
    return int(key) if key.isdecimal() else (ord(key[0]) - ord("a")) * 26 + ord(key[1]) - ord("a")


def _are_consecutive(numbers: Sequence[int]) -> bool:
    return all(after == before + 1 for before, after in pairwise(numbers))


def read_joined(name: JoinedName, members: Sequence[Member]) -> Iterator[Batch]:
    """Yield the lines of several files as one document. A line may begin in one file and end in the next."""
    waiting: list[bytes] = []
    line, size = 1, 0
    for member in members:
        is_first, modified_ns = True, None
        for batch in member.read():
            assert isinstance(batch, RawBatch)
            data, modified_ns = batch.data, batch.modified_ns
            if is_first:
                is_first = False
                goes_on = bool(waiting) and not waiting[-1].endswith(b"\n")  # within a line
                ends = sum(map(count_lines, waiting))
                name.parts.append(FilePart(line + ends + goes_on, member.name, 1 + goes_on))
            waiting.append(data)
            size += len(data)
            if size < BLOCK_BYTES // 2:
                continue
            block = waiting[0] if len(waiting) == 1 else b"".join(waiting)
            end = block.rfind(b"\n") + 1
            if not end:
                waiting = [block]
                continue
            rest = block[end:]
            block = block[:end] if rest else block
            yield RawBatch(name, line, block, modified_ns)
            line += count_lines(block)
            waiting, size = [rest] if rest else [], len(rest)
    if waiting:
        yield RawBatch(name, line, b"".join(waiting), modified_ns)
