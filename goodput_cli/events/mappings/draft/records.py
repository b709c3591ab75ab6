"""Split any log into entries: JSON objects, table rows, texts in these, or lines of text."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from goodput_cli.arrays import I64, Rows
from goodput_cli.events.documents import cells
from goodput_cli.events.mappings.draft.entries import NO_TIME, Group, Log, ValueColumn, quoted
from goodput_cli.events.mappings.draft.guess import PhaseGuess, StepGuess, clocks_of_process
from goodput_cli.events.mappings.draft.lines import LogLines
from goodput_cli.events.mappings.draft.record_entries import RecordEntries, records_of_lines, texts_of
from goodput_cli.events.mappings.draft.text_entries import (
    LONGEST,
    log_of_text,
    text_between,
    text_entries,
    text_groups,
    texts_in_bytes,
)
from goodput_cli.events.mappings.draft.words import is_other, plain, unit_of_key
from goodput_cli.events.mappings.record_columns import Values, read_times
from goodput_cli.events.mappings.times import read_time
from goodput_cli.events.text.line_timestamps import TimestampError
from goodput_cli.events.text.log_lines import BadValueError
from goodput_cli.events.values import number

_DELIMITERS = ",\t;|"
_KINDS, _MOST, _MOST_RANKS = 40, 500, 40
_MOSTLY = 0.8
_TIME_NAME = re.compile(r"\b(?:time|timestamp|ts|date|datetime|asctime|created|wall|when|t)\b")
_RANK_NAME = re.compile(r"\b(?:rank|process index|process id|worker|host|hostname|node|pid)$")
_KIND_WORDS = re.compile(
    r"\b(?:step|train\w*|iter\w*|start\w*|begin\w*|launch\w*|init\w*|sav\w+|checkpoint|ckpt|eval\w*|val\w*|test|finish\w*"
    r"|done|complete\w*|resum\w*|restor\w*|load\w*|boot)\b"
)
_TEXT_NAMES = ("message", "msg", "event", "text", "log", "body", "content")
_SIZES = ((1e18, "epoch_ns"), (1e15, "epoch_us"), (1e12, "epoch_ms"), (1e9, "epoch_s"))

FirstValues = Mapping[str, list[Any]]
"""Values of the first records, by path."""


class _Key(NamedTuple):
    """Key of the process of a record, the process whose records are used, and the number of processes."""

    path: str
    process: str
    processes: int


def taken_apart(lines: LogLines, changed: int, *, split: bool = False) -> Log:
    """Return a log of lines. changed: modification time of its file (ns). split: True if text overwritten after a
    carriage return counts too."""
    lines = lines.full()
    if split:
        return log_of_text(lines, changed, split=True)
    entries = records_of_lines(lines)
    top, entries = ([], entries) if entries is not None else _table(lines)
    if entries is None:
        return log_of_text(lines, changed, split=False)
    is_table = bool(top)
    values: defaultdict[str, list[Any]] = defaultdict(list)
    for record in entries.records(_MOST):
        for path, value in record.items():
            values[path].append(value)
    few, every = min(len(entries), _MOST), np.arange(len(entries))
    time, written = _time_key(values, few)
    top += [f'time = {{ format = "{written}" }}'] if written else []
    entries.ns = _all_ns(entries.column(time, every), written)
    message = _message_key(values, few)
    if message is not None:
        return _of_messages(entries, message, time, top, changed)
    rank = _rank_key(entries)
    own = every
    assumed: tuple[str, ...] = ()
    if rank is not None:
        own = every[[str(one) == rank.process for one in entries.column(rank.path, every)]]
        assumed = (f"only the steps of `{rank.path}` {rank.process[:80]} are read ({rank.processes} processes)",)
    groups = _groups(entries, own, rank, _kind_key(entries, time), time)
    between = () if is_table else text_between(lines, entries.places, changed)
    return Log(entries, groups, tuple(top), (), time, True, assumed, between)


def _of_messages(entries: RecordEntries, message: str, time: str, top: Sequence[str], changed: int) -> Log:
    """Return a log of texts in records."""

    def line(row: int) -> tuple[str, str]:
        return entries[row].line, entries[row].where

    messages = list(map(str, entries.column(message, np.arange(len(entries)), "")))
    texts = texts_in_bytes(messages, entries.processes, line, message)
    found = text_entries(texts, "", changed)
    ns = entries.ns[found.places]
    found.ns = np.where(ns == NO_TIME, found.ns, ns)
    keys = {"text": message, **({"time": time} if time else {})}
    beside = f"keys = {{ {', '.join(f'{name} = {quoted(path)}' for name, path in keys.items())} }}"
    return Log(found, text_groups(found), tuple(top), (beside,), time)


def _table(lines: LogLines) -> tuple[list[str], RecordEntries | None]:
    """Return the declaration of a table with a header, and its rows; None for other logs."""
    head = lines.text(0) if len(lines) else ""
    for delimiter in _DELIMITERS:
        columns = cells(head, delimiter)
        if len(columns) < 2 or not all(re.fullmatch(r"[A-Za-z_@][\w /.@()-]*", column) for column in columns):
            continue
        rows = [(at, cells(text, delimiter)) for at, text in enumerate(lines.texts()) if text != head]
        whole = [(at, row) for at, row in rows if len(row) == len(columns)]
        if rows and len(whole) > 0.9 * len(rows):
            top = "csv = true" if delimiter == "," else f"csv = {{ delimiter = {quoted(delimiter)} }}"
            places = np.array([at for at, _ in whole], dtype=np.int64)
            records = [{key: value for key, value in zip(columns, row, strict=True) if value} for _, row in whole]
            return [top], RecordEntries(lines, [(places, records)], columns)
    return [], None


def _all_ns(column: Values, written: str) -> I64:
    """Return times in ns, int64[n]; NO_TIME for other values."""
    values = column.tolist() if isinstance(column, np.ndarray) else column
    times = read_times(values, written)
    if times is None:
        return np.array([_ns(one, written) for one in values], dtype=np.int64)
    ns, known, _ = times
    for at in np.flatnonzero(~known).tolist():
        ns[at] = _ns(values[at], written)
    return ns


def _ns(value: Any, written: str) -> int:
    try:
        return NO_TIME if value is None else read_time(str(value), written).ns
    except (BadValueError, TimestampError):
        return NO_TIME


def _time_key(values: FirstValues, few: int) -> tuple[str, str]:
    """Return the key whose values are times in most records, and their format; ("", "") if there is none."""
    written = ((path, _written(value)) for path, found in values.items() for value in found)
    counts = Counter((path, form) for path, form in written if form is not None)
    return max(counts, key=lambda one: counts[one] + few * bool(_TIME_NAME.search(plain(one[0]))), default=("", ""))


def _written(value: Any) -> str | None:
    """Return the format of a time; None for other values."""
    size = number(value) if not isinstance(value, bool) else None
    if size is not None:
        return next((name for least, name in _SIZES if least <= size < 4 * least), None)
    return "" if isinstance(value, str) and re.search("[:-]", value) and _ns(value, "iso") != NO_TIME else None


def _message_key(values: FirstValues, few: int) -> str | None:
    """Return the key of the message in records; None if their other keys contain the facts."""
    texts: dict[str, int] = {}
    for path, found in values.items():
        others = [one for one in found if not isinstance(one, bool) and _written(one) is None]
        said = [
            one for one in others if isinstance(one, str) and number(one) is None and re.search(r" |^\d+/\d+$", one)
        ]
        named = path.rpartition(".")[2].lower() in _TEXT_NAMES
        texts[path] = sum(named or re.search(r"\d", one) is not None for one in said)
        if (
            re.search(r"step|iter|batch|epoch|update|round", path.lower())
            and sum(number(one) is not None for one in others) > 1
        ):
            return None
    best = max(texts, key=lambda path: texts[path], default=None)
    return best if best is not None and 2 * texts[best] >= few else None


def _groups(entries: RecordEntries, own: Rows, rank: _Key | None, kind: str | None, time: str) -> list[Group]:
    """Return records grouped by kind, otherwise by their keys. own: their rows. rank, kind: keys of their process and
    kind."""
    by_key: defaultdict[str | frozenset[str], list[I64]] = defaultdict(list)
    for shape in entries.shapes:
        rows = np.intersect1d(shape.rows, own, assume_unique=True)
        if kind is None or kind not in shape.columns:
            by_key[frozenset(shape.columns)].append(rows)
            continue
        kinds: defaultdict[str, list[int]] = defaultdict(list)
        for row, value in zip(rows.tolist(), entries.column(kind, rows), strict=True):
            kinds[str(value)].append(row)
        for name, some in kinds.items():
            by_key[name].append(np.array(some, dtype=np.int64))
    joined = [(key, np.sort(np.concatenate(parts))) for key, parts in by_key.items()]
    joined = sorted([one for one in joined if len(one[1])], key=lambda one: int(one[1][0]))[:_KINDS]
    names = {frozenset(entries.record(int(rows[0]))) for _, rows in joined}
    found = []
    for key, rows in sorted(joined, key=lambda pair: -len(pair[1])):
        first = entries.record(int(rows[0]))
        conditions = [_is(rank.path, first[rank.path])] if rank is not None else []
        of_kind = kind if isinstance(key, str) else None
        own_keys = _own_keys(frozenset(first), names)
        if of_kind is not None:
            conditions.append(_is(of_kind, first[of_kind]))
        elif own_keys:
            conditions.append(f'{_key_of(own_keys[0])} = "any"')
        group = Group(entries, rows)
        group.columns = [
            ValueColumn(plain(path.rpartition(".")[2].rpartition("/")[2]), texts_of(entries.column(path, rows)),
                        unit_of_key(path), path=path)
            for path in entries.common_paths(rows) if path != time
        ]  # fmt: skip
        group.about = _about_keys(first, own_keys) if of_kind is None else plain(str(key)[:LONGEST])
        group.where = f"{{ {', '.join(conditions)} }}" if conditions else ""
        found.append(group)
    return found


def _own_keys(keys: frozenset[str], groups: Collection[frozenset[str]]) -> list[str]:
    """Return the keys that records of other groups do not have, a loss first. groups: the keys of each."""
    others = {path for other in groups if other != keys for path in other}
    return sorted(keys - others, key=lambda path: ("loss" not in path, path)) if len(groups) > 1 else []


def _about_keys(keys: Iterable[str], own: Sequence[str]) -> str:
    """Return the keys that only some records have as words, if they are about a save or an evaluation and no key is a
    loss of training; "" for other records. own: these keys."""
    losses = [plain(path) for path in keys if "loss" in path.lower()]
    words = " ".join(map(plain, own))[:LONGEST]
    return words if is_other(words) and all(map(is_other, losses)) else ""


def _is(path: str, value: Any) -> str:
    """Return the condition that a key has a value: a rank is a number, `true` is not."""
    return f"{_key_of(path)} = {value if type(value) is int else quoted(str(value))}"


def _key_of(path: str) -> str:
    return path if re.fullmatch(r"[A-Za-z0-9_-]+", path) else json.dumps(path)


def _kind_key(entries: RecordEntries, time: str) -> str | None:
    """Return the key whose few values are kinds of records; hosts and levels are not kinds. None if there is none.
    Records of steps may have none."""
    values: defaultdict[str, Counter[str]] = defaultdict(Counter)
    few = min(len(entries), 20 * _MOST)
    for record in entries.records(few):
        for path, value in record.items():
            if isinstance(value, str) and _is_word(value) and len(values[path]) <= _KINDS:
                values[path][value] += 1
    said = {
        path: sum(_KIND_WORDS.search(plain(value)) is not None for value in counts)
        for path, counts in values.items()
        if len(counts) + (counts.total() < few) > 1 and len(counts) <= min(_KINDS, len(entries) / 2) and path != time
    }
    said = {
        path: count for path, count in said.items()
        if values[path].total() >= _MOSTLY * few or 2 * count >= len(values[path])
    }  # fmt: skip
    best = max(said, key=lambda path: said[path], default=None)
    return best if best is not None and said[best] else None


def _is_word(value: str) -> bool:
    """Return True if a value may name a kind: it is not a number, with or without a unit (`6.95s`)."""
    return len(value) <= 80 and not value[:1].isdigit() and number(value) is None


def _rank_key(entries: RecordEntries) -> _Key | None:
    """Return the key of the process of a record, with the first process, if several processes write the same steps;
    None otherwise."""
    records = list(entries.records(_MOST))
    for path in records[0] if records else ():
        if _RANK_NAME.search(plain(path)) and all(path in one for one in records):
            ranks: defaultdict[str, set[str]] = defaultdict(set)
            for one in records:
                steps = (f"{key}={value}" for key, value in one.items() if re.search("step|iter|batch", key))
                ranks[str(one[path])].update(steps)
            pairs = list(pairwise(ranks.values()))
            shared = sum(len(a & b) for a, b in pairs)  # Most values of one are also values of another.
            if len(ranks) <= _MOST_RANKS and 2 * shared > sum(min(len(a), len(b)) for a, b in pairs) > 0:
                return _Key(path, min(ranks), len(ranks))
    return None


def without_clocks(phase: PhaseGuess, guess: StepGuess, log: Log) -> PhaseGuess:
    """Return a guess about records without durations in keys that are clocks of the process in the records of steps."""
    if not log.records or not phase.took or not guess.group.has_times(0.8):
        return phase
    clocks = {guess.group.columns[at].name for at in clocks_of_process(guess)}
    return replace(phase, took=tuple(one for one in phase.took if phase.group.columns[one[0]].name not in clocks))
