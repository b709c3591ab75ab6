"""Read MLPerf lines, `:::MLLOG` and the older `:::MLPv0.5.0` and `:::MLL`. A run is a file, and its blocks between
evaluations are records. Times are exact.

Programs count steps, samples, tokens or epochs, under keys whose meaning varies: `_counted` selects the counter of a
run (docs/formats.md, MLPerf).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import ceil
from typing import Any

from goodput_cli.events.schema import BEGINS_RUN, Edge
from goodput_cli.events.text.line_timestamps import Timestamp, Zone
from goodput_cli.events.text.log_lines import (
    ENDS,
    MAX_STEP,
    BadValueError,
    EventType,
    LineRule,
    LogLine,
    ParsedEvent,
    event_of,
    pattern,
)
from goodput_cli.events.values import MAX_SECONDS, number, round_to_us, whole_number
from goodput_cli.vocabulary.when import NS_PER_SECOND

NAME = "mllog"
SAMPLES = "samples"
"""Name of records whose steps are samples, if the number of samples per step is unknown."""
_NO_PROGRESS = ("block_start", "epoch_start", "run_start", "init_start", "init_stop")
"""Log lines whose counters are a plan, a length, or meaningless."""
_COUNTS = (
    "step_num", "curr_global_step", "step", "samples_count", "epoch_num", "epoch_count", "first_epoch_num",
)  # fmt: skip
_ENDED_EPOCH = "ended_epoch"
"""Number of an ended epoch; some programs count from 0."""
_BLOCKS = ("block_start", "epoch_start")
"""Log lines at which training continues."""
_ENDS_BLOCK = ("block_stop", "epoch_stop", "eval_start")
"""Log lines at which training stops."""
_BEGINS = ("cache_clear", "init_start", "run_start", "block_start", "epoch_start")
"""Log lines that may begin a run; the first of them does. A file that begins with neither of the first three is cut."""
_SETTINGS = ("global_batch_size", "train_samples", "max_sequence_length", "submission_benchmark", "submission_platform")
_STATS, _THROUGHPUT = "tracked_stats", "throughput"
"""Measurements by programs: samples per second."""
_MOST_EPOCHS = 10_000
"""A counter of epochs is lower; a higher one counts samples or tokens."""
_SOON = 5 * NS_PER_SECOND
_LONG_BEFORE = 3600 * NS_PER_SECOND
"""A setting written this long before a run is not part of it."""

Count = Callable[[LogLine], float | None]
"""Returns the number of completed steps at a log line; None if unknown."""


def _read(found: Any) -> ParsedEvent | None:
    try:
        entry = json.loads(found["json"])
    except (ValueError, RecursionError):
        raise BadValueError("`:::MLLOG` without a JSON object after it") from None
    scale, written = (1000, entry.get("time_s")) if "time_ms" not in entry else (1, entry["time_ms"])
    milliseconds = number(written)
    if milliseconds is None or not 0 <= milliseconds * scale < MAX_SECONDS * 1000:
        raise BadValueError("`time_ms` is not a time between 1970 and 2255")
    metadata = entry.get("metadata") if isinstance(entry.get("metadata"), dict) else {}
    detail: list[tuple[str, Any]] = [(name, _count(metadata[name])) for name in _COUNTS if name in metadata]
    detail.append(("status", str(metadata.get("status", ""))))
    value = entry.get("value")
    if entry.get("key") == _STATS and isinstance(value, dict):
        detail.append((_THROUGHPUT, _count(value.get(_THROUGHPUT))))
    detail.append(("value", value if isinstance(value, str | int | float) else None))
    return _event_at(int(milliseconds * scale * 1_000_000), str(entry.get("key", "")), detail)


def _event_at(ns: int, key: str, detail: list[tuple[str, Any]]) -> ParsedEvent:
    if key == "epoch_stop":
        detail += [(_ENDED_EPOCH, value) for name, value in detail if name == "epoch_num"]
    return ParsedEvent(NAME, EventType.ALIVE, at=Timestamp(ns, Zone.EXACT, False), name=key, detail=tuple(detail))


def _read_second_year(found: Any) -> ParsedEvent | None:
    """Read a line of v0.6. Its JSON is often invalid, so numbers are read one by one."""
    counts = {one["name"]: _count(one["number"]) for one in _NUMBER.finditer(found["rest"])}
    detail: list[tuple[str, Any]] = [(name, counts[name]) for name in _COUNTS if name in counts]
    words = {one["name"]: one["word"] for one in _WORD.finditer(found["rest"])}
    detail.append(("status", words.get("status", "")))
    detail.append(("value", counts.get("value", words.get("value"))))
    return _event_at(_epoch_ns(found["at"]), found["key"], detail)


def _epoch_ns(seconds: str) -> int:
    """Convert epoch seconds as written to ns."""
    if float(seconds) >= MAX_SECONDS:
        raise BadValueError("the line's time is not between 1970 and 2255")
    return round_to_us(float(seconds))


_NUMBER = re.compile(r"""["'](?P<name>\w{1,40})["']: ?["']?(?P<number>\d{1,15}(?:\.\d{1,20})?)["']?[,}]""", re.ASCII)
_WORD = re.compile(r"""["'](?P<name>status|value)["']: ?["'](?P<word>[^"']{1,200})["']""", re.ASCII)
_FIRST_YEAR = {
    "run_clear_caches": "cache_clear", "train_loop": "block_start", "train_epoch": "epoch_start",
    "input_batch_size": "global_batch_size", "preproc_num_train_examples": "train_samples",
}  # fmt: skip
"""Current names of words in v0.5."""


def _read_first_year(found: Any) -> ParsedEvent | None:
    """Read a line of v0.5: an epoch that begins or was evaluated, or a setting."""
    key = _FIRST_YEAR.get(found["key"], found["key"])
    value = (found["value"] or "").strip()
    numbers = {one["name"]: _count(one["number"]) for one in _NUMBER.finditer(value)}
    detail: list[tuple[str, Any]] = []
    if key == "epoch_start":
        detail.append(("epoch_num", _count(value)))
    elif key in ("eval_accuracy", "eval_start", "eval_stop"):
        detail.append((_ENDED_EPOCH, numbers.get("epoch", _count(value))))
    elif key in ("run_stop", "run_final"):
        detail.append(("status", "aborted" if "false" in value.lower() else ""))
    detail.append(("value", numbers.get("value", _count(value))))
    return _event_at(_epoch_ns(found["at"]), key, detail)


def _count(value: Any) -> float | None:
    """Return a counter, which may be fractional for epochs; None if invalid."""
    plain = None if isinstance(value, bool) else number(value)
    return None if plain is None or not 0 <= plain <= MAX_STEP else float(plain)


RULES = (
    LineRule(NAME, ":::MLLOG ", pattern(r":::MLLOG (?P<json>\{.*\})\s*$"), _read, "mllog"),
    LineRule(NAME, ":::MLL ", pattern(r":::MLL (?P<at>\d+(?:\.\d+)?) (?P<key>\w+): (?P<rest>\{.*)$"), _read_second_year,
             "mllog 0.6"),
    LineRule(NAME, ":::MLPv0.",
             pattern(r":::MLPv0\.5\.\d+ \w+ (?P<at>\d+(?:\.\d+)?) \([^)]*\) (?P<key>\w+)(?::(?P<value>.*))?$"),
             _read_first_year, "mllog 0.5"),
)  # fmt: skip


def alone(log_lines: Sequence[LogLine]) -> list[LogLine]:
    """Drop other log lines of a source with an MLPerf run, whose times are exact while theirs are mostly local; keep a
    death during a run, at its last line. log_lines: in line order, without times."""
    own = [log_line for log_line in log_lines if log_line.event is not None and log_line.event.format == NAME]
    if not any(event_of(log_line).name in ("run_start", "run_stop") for log_line in own):
        return list(log_lines)
    kept: list[LogLine] = []
    stops = [log_line.line for log_line in own if event_of(log_line).name == "run_stop"]
    last: LogLine | None = None
    for log_line in log_lines:
        if log_line.event is None:
            continue
        if log_line.event.format == NAME:
            last = log_line
            kept.append(log_line)
        elif log_line.event.type in ENDS and last is not None and all(line < last.line for line in stops):
            kept.append(replace(log_line, stamp=event_of(last).at))
    return kept


def translate(log_lines: Sequence[LogLine]) -> list[LogLine]:
    """Return the runs of a file. Ranks write the same phases within seconds and out of order: the first begin and the
    last end count."""
    ordered = sorted(_dated(log_lines), key=lambda log_line: (log_line.time, log_line.line))
    runs = _runs(ordered)
    return [one for number_, run in enumerate(runs) for one in _run(run, "" if number_ == 0 else f"{number_ + 1}")]


def _dated(log_lines: Sequence[LogLine]) -> list[LogLine]:
    """Return the log lines, with settings at time 0 moved to the first known time."""
    first = min((log_line.time for log_line in log_lines if log_line.time > 0), default=0)
    return [log_line if log_line.time > 0 else replace(log_line, time=first, end=first) for log_line in log_lines]


def job_of(log_lines: Sequence[LogLine], source: str) -> str:
    """Return `benchmark/platform` or the file name, and the number of the result: each file is a separate run."""
    settings = {one.name: dict(one.detail).get("value") for one in map(event_of, log_lines) if one.name in _SETTINGS}
    names = [settings.get(f"submission_{part}") for part in ("benchmark", "platform")]
    stem = source.rpartition("/")[2].partition(".")[0]
    number_ = re.search(r"(?<!\d)(\d+)$", stem)
    name = "/".join(map(str, names)) if all(names) else stem[: number_.start()].rstrip("-_") if number_ else stem
    return f"{name}#{number_[1]}" if number_ else str(name)


def _runs(ordered: Sequence[LogLine]) -> list[list[LogLine]]:
    """Split the log lines of a file into runs; lines between the end of one and the begin of the next are dropped."""
    runs: list[list[LogLine]] = [[]]
    stopped = False
    for log_line in ordered:
        key = event_of(log_line).name
        if stopped and key in _BEGINS[:3]:
            runs.append([])
            stopped = False
        if not stopped or key == "run_stop":  # Each rank logs its stop.
            runs[-1].append(log_line)
        stopped = stopped or key == "run_stop"
    return runs


def _run(ordered: Sequence[LogLine], job: str) -> Iterator[LogLine]:
    """Return the events of one run. Its first line is not a start, because the begin of training is logged; otherwise a
    slow first block would count as start-up. job: suffix of the run within its file."""
    records = list(_records(ordered, job))
    begin = next((log_line for log_line in ordered if event_of(log_line).name in _BEGINS), ordered[0])
    first = next(log_line for log_line in ordered if log_line.time >= begin.time - _LONG_BEFORE)
    whole = event_of(begin).name in _BEGINS[:3]
    yield _made(
        first, EventType.ALIVE if records else EventType.START, job, detail=BEGINS_RUN if records and whole else ()
    )
    yield from _phase(ordered, "init", EventType.PREP, job)
    yield from _phase(ordered, "eval", EventType.EVAL, job)
    yield from records
    stops = [log_line for log_line in ordered if event_of(log_line).name == "run_stop"]
    if stops:
        aborted = _values(stops[-1]).get("status") == "aborted"
        yield _made(stops[-1], EventType.STOPPED if aborted else EventType.FINISHED, job)
    yield _made(ordered[-1], EventType.ALIVE, job)


def _records(ordered: Sequence[LogLine], job: str) -> Iterator[LogLine]:
    """Yield a record per progress number above all earlier ones, after the begin of training."""
    count, name = _counted(ordered)
    evaluating: LogLine | None = None
    block: LogLine | None = None  # The first one after the last record.
    found: list[LogLine] = []
    highest, measured = 0, {} if name == SAMPLES else _sizes(ordered)
    for log_line in ordered:
        key = event_of(log_line).name
        if key in _BLOCKS:
            block = block or log_line
        rate = _values(log_line).get(_THROUGHPUT)
        measured |= {"samples_per_second": rate} if rate else {}
        evaluating = log_line if key == "eval_start" else evaluating
        done = None if key in _NO_PROGRESS else count(log_line)
        step = None if done is None else round(done)
        if step is not None and highest < step <= MAX_STEP:
            at = log_line if evaluating is None else evaluating  # No step is completed during an evaluation.
            mean = None
            if block is not None and event_of(at).name in _ENDS_BLOCK:
                mean = ceil(max(at.time - block.time, 0) / (step - highest))
            found.append(_made(at, EventType.STEP, job, step=step, step_time=mean, name=name, metrics=measured))
            highest, measured, block = step, {}, None
        evaluating = None if key == "eval_stop" else evaluating
    if found:
        yield _begin(ordered, found[0], count, job)
    yield from found


def _sizes(ordered: Sequence[LogLine]) -> dict[str, float]:
    """Return the sizes of a step's work as metrics."""
    said_of = {"samples_per_step": "global_batch_size", "sequence_length": "max_sequence_length"}
    found = {name: _setting(ordered, key) for name, key in said_of.items()}
    return {name: float(value) for name, value in found.items() if value}


def _begin(ordered: Sequence[LogLine], first: LogLine, count: Count, job: str) -> LogLine:
    """Return the begin of training: the first block or epoch, or the begin of the run if a record precedes them."""
    starts = {name: [log_line for log_line in ordered if event_of(log_line).name == name] for name in _NO_PROGRESS}
    blocks = sorted([*starts["block_start"], *starts["epoch_start"]], key=lambda log_line: log_line.time)
    begin = blocks[0] if blocks and blocks[0].time < first.time else next(iter(starts["run_start"]), ordered[0])
    step = 0
    if _values(begin).get("first_epoch_num") and first.event is not None:
        step = round(count(begin) or 0)  # Of a run that continues from a checkpoint.
    return _made(begin, EventType.RESUME, job, step=step if step < (event_of(first).step or 0) else 0)


def _counted(ordered: Sequence[LogLine]) -> tuple[Count, str]:
    """Return the counter of completed steps, and `SAMPLES` if it counts these: the first rising counter in an order
    that suits the results of many submitters."""
    batch = _setting(ordered, "global_batch_size")
    blocks = [_values(log_line) for log_line in ordered if event_of(log_line).name == "block_start"]
    plain = ["step_num", "curr_global_step", *(["step"] if any("step" in one for one in blocks) else [])]
    kinds: list[tuple[Count, str]] = [(_value_of(key), "") for key in plain]
    kinds += [_samples(ordered, batch, "step" not in plain), _epochs(ordered, batch)]
    rising = [kind for kind in kinds if len(_distinct(ordered, kind[0])) > 1]
    any_ = [kind for kind in kinds if _distinct(ordered, kind[0])]
    return next(iter([*rising, *any_, *kinds]))


def _distinct(ordered: Sequence[LogLine], count: Count) -> set[float]:
    values = (count(log_line) for log_line in ordered if event_of(log_line).name not in _NO_PROGRESS)
    return {value for value in values if value}


def _value_of(key: str) -> Count:
    return lambda log_line: _values(log_line).get(key)


def _samples(ordered: Sequence[LogLine], batch: int | None, steps_are_samples: bool) -> tuple[Count, str]:
    """Count by samples and batch size; numbers below the batch size are steps."""
    wrong = _other_counts(ordered)
    keys = ("samples_count", *(["step"] if steps_are_samples else []))

    def samples(log_line: LogLine) -> float | None:
        return (
            None if id(log_line) in wrong else next((one for key in keys if (one := _values(log_line).get(key))), None)
        )

    least = min(_distinct(ordered, samples), default=0.0)
    if batch is None or least < batch:
        return samples, SAMPLES if batch is None else ""
    return lambda log_line: _divided(samples(log_line), batch), ""


def _other_counts(ordered: Sequence[LogLine]) -> set[int]:
    """Return block ends whose counter differs from that of the next evaluation: it is the length of the block."""
    wrong: set[int] = set()
    following: LogLine | None = None
    for log_line in reversed(ordered):
        key, samples = event_of(log_line).name, _values(log_line).get("samples_count")
        if key in ("eval_start", "eval_accuracy", "eval_stop"):
            following = log_line if samples is not None or following is None else following
        elif key == "block_stop" and following is not None:
            other = _values(following).get("samples_count")
            if samples != other and following.time - log_line.time < _SOON:
                wrong.add(id(log_line))
        elif key == "block_start":
            following = None
    return wrong


def _epochs(ordered: Sequence[LogLine], batch: int | None) -> tuple[Count, str]:
    """Count by epochs, or by the samples or tokens written as epochs."""
    firsts = [one for log_line in ordered if (one := _values(log_line).get("first_epoch_num")) is not None]
    base = 1 if min(firsts, default=0) == 1 else 0
    ended = [one for log_line in ordered if (one := _values(log_line).get(_ENDED_EPOCH)) is not None]
    from_zero = 1.0 if min(ended, default=1) == 0 else 0.0

    def epochs(log_line: LogLine) -> float | None:
        values = _values(log_line)
        if values.get(_ENDED_EPOCH) is not None:
            return float(values[_ENDED_EPOCH] + from_zero)
        if values.get("epoch_num") is not None or values.get("first_epoch_num") is None:
            return values.get("epoch_num")
        first, length = values["first_epoch_num"], values.get("epoch_count")
        if event_of(log_line).name in _NO_PROGRESS:
            return float(first - base)
        return None if length is None or (length == 1 and first >= _MOST_EPOCHS) else float(first - base + length)

    values = _distinct(ordered, epochs)
    if min(values, default=0) < _MOST_EPOCHS:
        samples = _setting(ordered, "train_samples")
        if batch is None or samples is None:
            return epochs, ""
        return lambda log_line: _divided(epochs(log_line), batch / samples), ""
    each = _a_step(ordered, batch, values)
    return (epochs, SAMPLES) if each is None else (lambda log_line: _divided(epochs(log_line), each), "")


def _a_step(ordered: Sequence[LogLine], batch: int | None, values: set[float]) -> float | None:
    """Return the number of samples or tokens per step; None if unknown."""
    for log_line in ordered:
        epochs, step = _values(log_line).get("epoch_num"), _values(log_line).get("step_num")
        if epochs and step:
            return float(epochs / step)
    length = _setting(ordered, "max_sequence_length")
    if batch is not None and length is not None and all(value % (batch * length) == 0 for value in values):
        return float(batch * length)
    return None if batch is None else float(batch)


def _divided(value: float | None, by: float) -> float | None:
    return None if value is None else value / by


def _setting(ordered: Sequence[LogLine], name: str) -> int | None:
    values = (whole_number(_values(log_line).get("value")) for log_line in ordered if event_of(log_line).name == name)
    return next((value for value in values if value), None)


def _phase(ordered: Sequence[LogLine], name: str, what: EventType, job: str) -> list[LogLine]:
    """Return the first begin and the last end before the next begin."""
    out: list[LogLine] = []
    begin: LogLine | None = None
    end: LogLine | None = None
    for log_line in [*ordered, None]:
        key = None if log_line is None else event_of(log_line).name
        if begin is not None and (log_line is None or (key == f"{name}_start" and end is not None)):
            out.append(_made(begin, what, job, edge=Edge.BEGIN))
            out += [_made(end, what, job, edge=Edge.END)] if end is not None else []
            begin = end = None
        if key == f"{name}_start" and begin is None:
            begin = log_line
        elif key == f"{name}_stop" and begin is not None:
            end = log_line
    return out


def _made(log_line: LogLine, what: EventType, job: str, **more: Any) -> LogLine:
    return LogLine(
        log_line.line, "", log_line.stamp, ParsedEvent(NAME, what, job=job, **more), log_line.time, log_line.time
    )


def _values(log_line: LogLine) -> dict[str, Any]:
    return dict(event_of(log_line).detail)
