"""An event file as a document. Its events are kept unchanged and interpreted when all have been read.

The scalars of an event file show completed steps, evaluations and the end (docs/formats.md, TensorBoard).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

from goodput_cli.errors import UsageError
from goodput_cli.events.event_files import BrokenFrameError, FileEvent, frames, parse
from goodput_cli.events.formats.base import ParsedPart, without_records
from goodput_cli.events.text.collector import TextPart
from goodput_cli.events.text.line_timestamps import Timestamp, Zone
from goodput_cli.events.text.log_lines import EventType, LogLine, ParsedEvent, event_of
from goodput_cli.events.values import MAX_SECONDS, counts_from_0, round_to_us
from goodput_cli.sources.base import RawBatch
from goodput_cli.vocabulary.text import safe
from goodput_cli.vocabulary.when import NS_PER_SECOND


class EventFile:
    """Reader of an event file (see `DocumentReader`). The number of an event replaces its line."""

    by_line = False

    def __init__(self) -> None:
        self._rest = b""
        self._number = 0
        self._broken = False

    def feed(self, batch: RawBatch) -> ParsedPart:
        """Return the events that end in the next bytes."""
        if self._broken:
            return without_records(TextPart())
        data = self._rest + batch.data
        events: list[tuple[int, FileEvent]] = []
        damaged: list[int] = []
        at = 0
        broken: int | None = None
        try:
            for frame, end in frames(data):
                at = end
                self._number += 1
                event = None if frame.data is None else parse(frame.data)
                if event is None:
                    damaged.append(self._number)
                else:
                    events.append((self._number, event))
        except BrokenFrameError:
            self._broken, broken = True, self._number + 1
        self._rest = b"" if self._broken else data[at:]
        return without_records(TextPart(events=events, damaged=damaged, broken=broken))

    def finish(self) -> ParsedPart:
        """End the document. A truncated last record is still being written, or its writer died."""
        return without_records(TextPart())


NAME = "tensorboard"

_PREFERRED = (
    "train/loss", "train_loss", "loss", "lm_loss", "learning/loss", "reduced_train_loss", "train/global_step",
)  # fmt: skip
_OTHER_COUNT = re.compile(r"_vs_(?:samples|tokens)$|^Train/Samples/", re.IGNORECASE)
_NO_TRAINING = re.compile(r"^(?:eval|val|valid|validation|test)(?:[/_. ]|$)|validation|^epoch$|/epoch", re.IGNORECASE)
_EVALUATION = re.compile(r"^(?:eval|val|valid|validation|test)[/_. ]|validation", re.IGNORECASE)
_MEANS = ("iteration-time", "train_step_timing_in_s", "time_metrics/end_to_end_s_")
"""Plain tags with the mean time of one step, in seconds."""
_COUNTED_FROM_0 = "perf/step_time_seconds"
_EVAL_SECONDS, _END = "eval/runtime", "train/train_runtime"
_NAMED = 12
_ONE_START = 600 * NS_PER_SECOND
_DATED = re.compile(
    r"version_\d+|[A-Z][a-z]{2}\d\d_\d\d-\d\d-\d\d(?:_.+)?|\d{8}-\d{4,6}|\d{10}\.\d+|train|validation|eval"
    r"|\d{4}-\d\d-\d\d[_T-]\d\d[-_:]?\d\d(?:[-_:]?\d\d)?.*"
)
"""Folders that a writer creates for each process."""


def plain(tag: str) -> str:
    """Return a tag as some writers spell it: characters that are not allowed in a path become an underscore."""
    return re.sub(r"[^-/\w.]", "_", tag).lstrip("/")


def step_tags(files: Sequence[Sequence[tuple[int, FileEvent]]], asked: str | None) -> list[str | None]:
    """Return the tag whose steps are those of training for each file of a job: mostly that of the longest file. Raises
    UsageError if no file has the requested tag."""
    if asked is not None:
        known = {plain(scalar.tag) for events in files for _, event in events for scalar in event.scalars}
        if plain(asked) not in known:
            some = ", ".join(safe(tag) for tag in sorted(known)[:_NAMED])
            raise UsageError(
                f"--tensorboard-tag {asked}: no event file contains this scalar. Available: {some or 'none'}"
            )
        return [plain(asked)] * len(files)
    longest = max(files, key=len)
    usual = _step_tag(longest)
    return [usual if events is longest else _step_tag(events, usual) for events in files]


def _step_tag(events: Sequence[tuple[int, FileEvent]], usual: str | None = None) -> str | None:
    """Return the tag whose steps are those of training; None if there is none. usual: that of the job's other files."""
    steps: defaultdict[str, dict[int, None]] = defaultdict(dict)
    for _, event in events:
        for scalar in event.scalars:
            steps[plain(scalar.tag)].setdefault(event.step)
    likely = {
        tag: tuple(found)
        for tag, found in steps.items()
        if not _OTHER_COUNT.search(tag) and not _NO_TRAINING.search(tag) and tag != _END
    }
    if usual in likely:
        return usual
    several = {tag: found for tag, found in likely.items() if len(found) > 1} or likely
    if not several:
        return None
    sequences = Counter(several.values())
    return min(several, key=lambda tag: (-sequences[several[tag]], -len(several[tag]), _rank(tag), tag))


def _rank(tag: str) -> int:
    return _PREFERRED.index(tag) if tag in _PREFERRED else len(_PREFERRED)


def marks_of(events: Sequence[tuple[int, FileEvent]], name: str, tag: str | None, from_0: bool) -> list[LogLine]:
    """Return the log lines of a file. name: of the file. tag: the one whose steps count. from_0: the number of
    completed steps is one more than the step."""
    process = _process(name)
    means = _means(events)
    out: list[LogLine] = []
    last: int | None = None
    for number, event in events:
        if not 0 <= event.wall_time < MAX_SECONDS:
            continue
        stamp = Timestamp(round_to_us(event.wall_time), Zone.EXACT, False)

        def add(what: EventType, at: int = number, when: Timestamp = stamp, **more: object) -> None:
            out.append(LogLine(at, process, when, ParsedEvent(NAME, what, **more)))  # type: ignore[arg-type]

        if event.opens:
            add(EventType.START)
            continue
        tags = {plain(scalar.tag): scalar.value for scalar in event.scalars}
        if _END in tags:
            add(EventType.FINISHED)
        elif tag in tags and event.step != last and event.step >= 0:
            last = event.step
            add(EventType.STEP, step=event.step + from_0, step_time=means.get(event.step))
        elif _EVAL_SECONDS in tags and tags[_EVAL_SECONDS] >= 0:
            add(EventType.EVAL, took=_ns(tags[_EVAL_SECONDS]))
        elif any(map(_EVALUATION.search, tags)):
            add(EventType.EVAL)
        elif tags and tag not in tags:
            add(EventType.ALIVE)
    return _one_evaluation_each(out)


def steps_count_from_0(files: Sequence[Sequence[tuple[int, FileEvent]]], tags: Sequence[str | None]) -> bool:
    """Return True if steps are numbered from 0, so that n + 1 steps are done at step n: their numbers show it, or a tag
    of a writer that counts so exists."""
    steps: list[int] = []
    for events, tag in zip(files, tags, strict=True):
        for _, event in events:
            names = {plain(scalar.tag) for scalar in event.scalars}
            if _COUNTED_FROM_0 in names:
                return True
            if tag in names:
                steps.append(event.step)
    return counts_from_0(steps)


def _means(events: Sequence[tuple[int, FileEvent]]) -> dict[int, int]:
    """Return ns of one step, by step, from the tags that contain it."""
    means: dict[int, int] = {}
    for _, event in events:
        for scalar in event.scalars:
            if plain(scalar.tag) in _MEANS and 0 < scalar.value < 1e9:
                means[event.step] = _ns(scalar.value)
    return means


def _ns(seconds: float) -> int:
    """Return ns of a float32: seven digits are exact, the others are noise."""
    return round_to_us(float(f"{seconds:.7g}"))


def _one_evaluation_each(log_lines: list[LogLine]) -> list[LogLine]:
    """Keep one scalar of each evaluation: the one with its duration, otherwise the last."""
    out: list[LogLine] = []
    for log_line in log_lines:
        if not out or not event_of(out[-1]).type is event_of(log_line).type is EventType.EVAL:
            out.append(log_line)
        elif event_of(log_line).took is not None or event_of(out[-1]).took is None:
            out[-1] = log_line
    return out


def one_start_each(parts: Sequence[list[LogLine]]) -> None:
    """Merge the starts of a process that opened several files: within ten minutes and without a step in between."""
    log_lines = sorted(
        (log_line for part in parts for log_line in part if event_of(log_line).format == NAME),
        key=lambda log_line: (log_line.time, log_line.line),
    )
    begun: dict[str, int] = {}
    for log_line in log_lines:
        if event_of(log_line).type is EventType.STEP:
            begun.pop(log_line.stream, None)
        elif event_of(log_line).type is EventType.START:
            first = begun.get(log_line.stream)
            if first is not None and log_line.time - first <= _ONE_START:
                log_line.event = replace(event_of(log_line), type=EventType.ALIVE)
            else:
                begun[log_line.stream] = log_line.time


def _process(name: str) -> str:
    """Return host and process of `events.out.tfevents.1772359200.host1.101.0`."""
    found = re.search(r"tfevents\.\d+\.(?P<host>.+?)(?:\.(?P<pid>\d+)\.\d+)?(?:\.v2)?$", name.rpartition("/")[2])
    return "" if found is None else f"{found['host']} {found['pid'] or ''}".strip()


def folder_of(name: str) -> str:
    """Return the folder of a job, without folders that a writer creates for each process."""
    folder = name.rpartition("/")[0]
    while folder and _DATED.fullmatch(folder.rpartition("/")[2]):
        above = folder.rpartition("/")[0]
        if not above:
            break
        folder = above
    return folder


def may_lose_tails(parts: Sequence[list[LogLine]]) -> bool:
    """Return True if a process of these files ended without a logged end, and another one followed."""
    starts = sorted(log_line.time for part in parts for log_line in part if _is(log_line, EventType.START))
    ends = sorted(log_line.time for part in parts for log_line in part if _is(log_line, EventType.FINISHED))
    return len(starts) - 1 > sum(end <= starts[-1] for end in ends) if starts else False


def _is(log_line: LogLine, what: EventType) -> bool:
    return event_of(log_line).format == NAME and event_of(log_line).type is what
