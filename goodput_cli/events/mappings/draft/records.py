"""Drafts the rules of a log of JSON objects, or of a table."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from goodput_cli.events.mappings.draft import words
from goodput_cli.events.mappings.draft.lines import Clock, entry_of
from goodput_cli.events.mappings.draft.steps import Candidate, Column, Lines, candidates, epochs_as_steps
from goodput_cli.events.mappings.draft.text import (
    Draft,
    DraftedRule,
    assumptions,
    contradictions,
    expected_steps,
    goes_on_from,
    quoted,
    remarks,
    step_of,
    text_draft,
)
from goodput_cli.events.mappings.draft.words import Attempts, Chosen, Thing, phases
from goodput_cli.events.mappings.times import read_time
from goodput_cli.events.text.log_lines import BadValueError
from goodput_cli.events.text.stamps import StampError
from goodput_cli.events.values import number

_DEPTH = 3
_KINDS = 40
_MOST = 500
_LOOKED_AT = 600
"""Characters of a value, as of a line of text."""
_TIME_NAME = re.compile(r"\b(?:time|timestamp|ts|date|datetime|asctime|created|wall|when|t)\b")
_PART = re.compile(r"\d+ ?/ ?\d+")
"""A step and how many there are."""
_RANK_NAME = re.compile(r"\b(?:rank|process index|process id|worker|host|hostname|node|pid)$")
_MOST_RANKS = 40
_OF_TRAINING = re.compile(
    r"\b(?:train\w*|steps?|iter\w*|epochs?|batch\w*|loss\w*|lr|learning rate|grad\w*|optim\w*|tokens?|reward|episode"
    r"|ckpt\w*|checkpoint\w*|eval\w*|val|acc\w*|ppl|perplexity|mfu|tput|throughput|updates?|rounds?)\b"
)
_STARTS = "several starts with no step between them are one: a start that died at once is not told"
_OF_A_PROCESS = re.compile(r"\b(?:pid|attempt|restart|session|boot|launch|start\w*|uuid|host\w*|node|version|commit)\b")
_TEXT_NAMES = ("message", "msg", "event", "text", "log", "body", "content")
_SIZES = ((1e18, "epoch_ns"), (1e15, "epoch_us"), (1e12, "epoch_ms"), (1e9, "epoch_s"))


@dataclass(frozen=True)
class Row:
    """A record with its place in the log, its values by path, and its line."""

    place: int
    values: Mapping[str, Any]
    line: str


@dataclass(frozen=True)
class TimeKey:
    """The key that says when a record was written."""

    path: str
    format: str

    def read(self, row: Row) -> int | None:
        """ns; None if it says none."""
        try:
            return read_time(str(row.values[self.path]), self.format).ns if self.path in row.values else None
        except (BadValueError, StampError):
            return None


Group = tuple[str | None, list[Row], Lines]
"""Similar records: their kind, where a key says it, themselves, and their values as columns."""


def flat(record: Mapping[str, Any], above: str = "", depth: int = _DEPTH) -> Iterator[tuple[str, Any]]:
    """The values of a record that are no containers, by their paths."""
    for key, value in record.items():
        path = f"{above}{key}"
        if isinstance(value, Mapping) and depth > 1:
            yield from flat(value, f"{path}.", depth - 1)
        elif value is not None and not isinstance(value, list | Mapping):
            yield path, value


def records_draft(rows: Sequence[Row]) -> Draft:
    """The rules of records."""
    draft = Draft()
    time = _time_key(rows)
    if time is None:
        draft.notes.append("no key holds a time: say which one does, and how it is written")
    elif time.format:
        draft.top.append(f'time = {{ format = "{time.format}" }}')
    parted = _parted(rows, time)
    if not parted.steps:
        of_text = _of_text(rows, time)
        if of_text is not None:
            of_text.top = [*draft.top, *of_text.top]
            return of_text
        parted.steps.extend(
            (at, one) for at, (_, _, lines) in enumerate(parted.groups) for one in epochs_as_steps(lines)
        )
    if not parted.steps:
        draft.refused.append("no key has a number that goes up from record to record: say what a step looks like")
        return draft
    draft.assumed += parted.assumed
    _add_rules(draft, rows, parted, time)
    return draft


@dataclass(frozen=True)
class _Parted:
    """Records, parted by what they are about. kind: the key that says it. steps: what may count steps, each with the
    place of its group. assumed: what the parting rests on."""

    kind: str | None
    groups: Sequence[Group]
    steps: list[tuple[int, Candidate]]
    assumed: Sequence[str] = ()


def _parted(rows: Sequence[Row], time: TimeKey | None) -> _Parted:
    """By their kind or keys; where several processes write the same steps, by process, of which the first is read."""
    kind = _kind_key(rows, time)
    groups = _groups(rows, kind, time)
    named = [(at, one) for at, (_, _, lines) in enumerate(groups) for one in candidates(lines, ())]
    rank = _rank_key(rows)
    if rank is not None and all(_repeats(one.done) for _, one in named):
        own = sorted(_groups(rows, rank, time), key=lambda group: str(group[0]))
        steps = [(0, one) for one in candidates(own[0][2], ())]
        if steps:
            assumed = f"of {len(own)} processes by `{rank}` the steps of {str(own[0][0])[:80]} are read"
            return _Parted(rank, own, steps, (assumed,))
    return _Parted(kind, groups, named)


def _repeats(done: Sequence[int]) -> bool:
    """Whether a step comes again at once, as where several processes write it."""
    return 5 * sum(a == b for a, b in pairwise(done)) > len(done)


def _add_rules(draft: Draft, rows: Sequence[Row], parted: _Parted, time: TimeKey | None) -> None:
    """The rule of the best candidate, those of what goes on beside it, and what speaks against them."""
    kind, groups = parted.kind, parted.groups
    at, chosen = max(parted.steps, key=lambda pair: pair[1].score)
    draft.top.append(f'steps = "{"index" if chosen.index else "done"}"')
    wheres = [_where(kind, value, group, rows) for value, group, _ in groups]
    draft.rules.append(_step_rule(groups[at], chosen, time, wheres[at]))
    draft.notes += remarks(chosen)
    draft.assumed += assumptions(chosen)
    draft.expected = [
        (row.place, row.line, step) for row, step in zip(groups[at][1], expected_steps(chosen), strict=False)
    ]
    times = [] if time is None else [one for row in rows if (one := time.read(row)) is not None]
    draft.refused += [*contradictions(chosen, times), *_stages(chosen), *_no_training(chosen, rows)]
    found = [] if kind is None else _phases(groups, at, chosen, timed=time is not None)
    for phase in found:
        if phase.event == "start" and phase.once and groups[phase.at][2].count > 1 + len(chosen.falls):
            draft.assumed.append(_STARTS)
        draft.rules.append(_phase_rule(groups[phase.at], phase, chosen, time, wheres[phase.at]))
    if time is not None:
        read = {at, *(phase.at for phase in found)}
        draft.rules += _alive([group for number_, group in enumerate(groups) if number_ not in read], time)


def _no_training(chosen: Candidate, rows: Sequence[Row]) -> Iterator[str]:
    """Why a number that goes up is not taken for a step: nothing names it so, and nothing else is about training."""
    column = chosen.lines.columns[chosen.step]
    if words.step_likeness(column.name) > 0 or column.of is not None:
        return
    said = (one for row in rows[:_MOST] for path, value in row.values.items() for one in (path, value))
    if not any(isinstance(one, str) and _OF_TRAINING.search(words.plain(one[:_LOOKED_AT])) for one in said):
        yield (
            f"no key and no value speaks of training: `{column.name}` goes up from record to record, and may count "
            "anything; if it counts steps, take the rule below as it stands"
        )


def _stages(chosen: Candidate) -> Iterator[str]:
    """What says that steps which begin anew are those of another stage or run, and that nothing was restarted."""
    done = chosen.done
    falls = [at for at in range(1, len(done)) if done[at] <= done[at - 1]]
    if not falls or any(done[at] > done[0] for at in falls):
        return
    for column in chosen.lines.columns:
        texts = column.texts
        changes = [at for at in range(1, len(texts)) if texts[at] != texts[at - 1]]
        if changes == falls and number(texts[0]) is None and not _OF_A_PROCESS.search(words.plain(column.name)):
            before, behind = (texts[at][:80] for at in (falls[0] - 1, falls[0]))
            yield (
                f"its steps begin anew where `{column.name}` changes from {before} to {behind}: these are "
                "stages or runs of their own, and nothing was restarted; say by hand which of them is meant, "
                f"`where = {{ {column.name} = {quoted(before)} }}` in the rule for steps"
            )
            return


def _phases(groups: Sequence[Group], steps: int, chosen: Candidate, *, timed: bool) -> list[Chosen]:
    """What goes on beside the steps. steps: the place of their group."""
    attempts = Attempts(list(chosen.lines.places), frozenset(chosen.falls))
    things = [
        Thing(number_, words.plain((value or "")[:_LOOKED_AT]), lines.places, lines.count, _took(lines) is not None)
        for number_, (value, _, lines) in enumerate(groups)
        if number_ != steps
    ]
    return phases(things, attempts, timed)


def _alive(groups: Sequence[Group], time: TimeKey) -> list[DraftedRule]:
    """The rule of records that say nothing else."""
    alive = [row for _, group, _ in groups for row in group if time.path in row.values]
    note = "any other record shows that the process was alive"
    keys = f"keys = {{ time = {quoted(time.path)} }}"
    return [DraftedRule("alive", [keys], alive[0].line, len(alive), note)] if alive else []


def _of_text(rows: Sequence[Row], time: TimeKey | None) -> Draft | None:
    """The rules of a text that stands in each record."""
    paths = Counter(
        path
        for row in rows
        for path, value in row.values.items()
        if isinstance(value, str) and (" " in value or _PART.fullmatch(value))
    )
    likely = [path for path in paths if path.rpartition(".")[2].lower() in _TEXT_NAMES]
    path = max(likely or paths, key=lambda one: paths[one], default=None)
    if path is None:
        return None
    entries = []
    for row in rows:
        entry = entry_of(str(row.values.get(path, "")), Clock())
        if entry is not None:
            ns = None if time is None else time.read(row)
            entries.append(
                type(entry)(row.line, entry.text, entry.begin, ns if ns is not None else entry.ns, entry.stamp)
            )
    draft = text_draft(entries, Clock())
    keys = {"text": path, **({"time": time.path} if time is not None else {})}
    for rule in draft.rules:
        rule.keys.append(f"keys = {{ {', '.join(f'{name} = {quoted(one)}' for name, one in keys.items())} }}")
    return draft


def _time_key(rows: Sequence[Row]) -> TimeKey | None:
    """The key that most records have and whose values are times."""
    counts: Counter[TimeKey] = Counter()
    for row in rows[:_MOST]:
        for path, value in row.values.items():
            written = _written(value)
            if written is not None:
                counts[TimeKey(path, written)] += 1
    if not counts:
        return None
    return max(counts, key=lambda one: counts[one] + len(rows) * bool(_TIME_NAME.search(words.plain(one.path))))


def _written(value: Any) -> str | None:
    """How a value that is a time is written; None if it is none."""
    plain = number(value) if not isinstance(value, bool) else None
    if plain is not None:
        return next((name for size, name in _SIZES if size <= plain < 4 * size), None)
    if not isinstance(value, str) or not any(log_line in value for log_line in ":-"):
        return None
    try:
        read_time(value, "iso")
    except (BadValueError, StampError):
        return None
    return ""


def _kind_key(rows: Sequence[Row], time: TimeKey | None) -> str | None:
    """The key whose few values say what a record is about."""
    values: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in rows[: 20 * _MOST]:
        for path, value in row.values.items():
            if isinstance(value, str) and _is_word(value) and len(values[path]) <= _KINDS:
                values[path][value] += 1
    fitting = {
        path: counts
        for path, counts in values.items()
        if 1 < len(counts) <= min(_KINDS, len(rows) / 2)
        and (time is None or path != time.path)
        and sum(counts.values()) >= 0.8 * min(len(rows), 20 * _MOST)
    }
    said = {path: sum(_says_something(value) for value in counts) for path, counts in fitting.items()}
    best = max(said, key=lambda path: said[path], default=None)
    return best if best is not None and said[best] else None  # a host or a level parts records, but names no kinds


def _is_word(value: str) -> bool:
    """Whether a value can name a kind: no number, and none with its unit (`6.95s`)."""
    return len(value) <= 80 and not value[:1].isdigit() and number(value) is None


def _rank_key(rows: Sequence[Row]) -> str | None:
    """The key that says which process a record is of, where several write the same steps."""
    for path in rows[0].values:
        if _RANK_NAME.search(words.plain(path)):
            values = {str(row.values.get(path)) for row in rows[:_MOST]}
            if 1 < len(values) <= _MOST_RANKS and all(path in row.values for row in rows[:_MOST]):
                return path
    return None


def _says_something(value: str) -> bool:
    plain = words.plain(value[:_LOOKED_AT])
    return any(
        re.search(pattern, plain)
        for pattern in (
            words.START,
            words.SAVE,
            words.EVAL,
            words.FINISHED,
            words.RESUME,
            r"\b(?:step|train|iter\w*)\b",
        )
    )


def _groups(rows: Sequence[Row], kind: str | None, time: TimeKey | None) -> list[Group]:
    """Similar records: of one kind where a key says it, else with the same keys."""
    groups: defaultdict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        key = str(row.values.get(kind)) if kind is not None else frozenset(row.values)
        if key in groups or len(groups) < _KINDS:
            groups[key].append(row)
    return [
        (key if kind is not None else None, group, _lines(group, time, "" if kind is None else words.plain(key)))
        for key, group in sorted(groups.items(), key=lambda pair: -len(pair[1]))
    ]


def _lines(rows: Sequence[Row], time: TimeKey | None, kind: str) -> Lines:
    some = rows[:_MOST]
    paths = [path for path in some[0].values if all(path in row.values for row in some)]
    columns = [
        _column(path, [str(row.values[path]) for row in some]) for path in paths if time is None or path != time.path
    ]
    times = [None if time is None else time.read(row) for row in some]
    other = re.search(f"{words.EVAL}|{words.SAVE}|{words.RESUME}|^test$", kind[:60])
    return Lines(columns, [row.place for row in some], times, len(rows), 2.0 if other else 0.0)


def _column(path: str, texts: Sequence[str]) -> PathColumn:
    return PathColumn(
        words.plain(path.rpartition(".")[2].rpartition("/")[2]), texts, words.unit_of_key(path), path=path
    )


@dataclass(frozen=True)
class PathColumn(Column):
    """A column with its path in records."""

    path: str = ""


def _where(kind: str | None, value: str | None, group: Sequence[Row], rows: Sequence[Row]) -> str:
    """What tells records of a group from the others."""
    if kind is not None:
        said = group[0].values.get(kind)  # a rank is a number, `true` is none
        return f"{{ {_key(kind)} = {said if type(said) is int else quoted(str(value))} }}"
    if len(group) == len(rows):
        return ""
    own = frozenset(group[0].values)
    others = {path for row in rows if frozenset(row.values) != own for path in row.values}
    telling = sorted(own - others, key=lambda path: ("loss" not in path, path))
    return f'{{ {_key(telling[0])} = "any" }}' if telling else ""


def _step_rule(group: Group, one: Candidate, time: TimeKey | None, where: str) -> DraftedRule:
    _, rows, lines = group
    paths = {"step": _path(lines, one.step)}
    more = []
    if one.epochs is not None and one.epochs.column is not None:
        paths["epoch"] = _path(lines, one.epochs.column)
        more.append(f"epoch = {{ first = {one.epochs.first}, steps = {one.epochs.steps} }}")
    if one.elapsed is not None:
        paths["elapsed"] = _path(lines, one.elapsed)
        more.append(f'elapsed = {{ unit = "{one.unit}", begins = true }}')
    elif one.each is not None:
        paths["each"] = _path(lines, one.each)
        more.append(f'each = {{ unit = "{one.unit}"{", of = " + quoted("last") if one.of_last else ""} }}')
    return _rule("step", paths, time, where, more, rows)


def _phase_rule(group: Group, phase: Chosen, steps: Candidate, time: TimeKey | None, where: str) -> DraftedRule:
    _, rows, lines = group
    paths: dict[str, str] = {}
    more = [f'edge = "{phase.edge}"'] if phase.edge else []
    took = _took(lines) if phase.uses_took else None
    if took is not None:
        paths["took"] = _path(lines, took)
        more.append(f'took = {{ unit = "{(lines.columns[took].unit or ("s", False))[0]}" }}')
    step = step_of(lines, steps) if phase.event in ("save", "resume") else None
    if step is not None:
        paths["step"] = _path(lines, step)
        if phase.event == "resume" and goes_on_from(lines, step, steps):
            more.append("step = { add = -1 }     # the number is that of the next step")
    if phase.once:
        more.append("once = true")
    return _rule(phase.event, paths, time, where, more, rows)


def _rule(
    event: str, paths: Mapping[str, str], time: TimeKey | None, where: str, more: Iterable[str], rows: Sequence[Row]
) -> DraftedRule:
    named = {**paths, **({"time": time.path} if time is not None else {})}
    keys = [f"keys = {{ {', '.join(f'{name} = {quoted(path)}' for name, path in named.items())} }}"]
    keys += [f"where = {where}"] if where else []
    return DraftedRule(event, [*keys, *more], rows[0].line, len(rows))


def _took(lines: Lines) -> int | None:
    found = [at for at, column in enumerate(lines.columns) if column.unit is not None and column.unit[0] != "per_s"]
    return next(iter(sorted(found, key=lambda at: (lines.columns[at].unit or ("", True))[1])), None)


def _path(lines: Lines, at: int) -> str:
    column = lines.columns[at]
    assert isinstance(column, PathColumn)
    return column.path


def _key(path: str) -> str:
    return path if re.fullmatch(r"[A-Za-z0-9_-]+", path) else json.dumps(path)
