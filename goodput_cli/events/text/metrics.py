"""Collect the measurements of programs: MFU, TFLOP/s, throughput, reported step time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from goodput_cli.arrays import F64, I64
from goodput_cli.events.schema import NO_STEP, Metric
from goodput_cli.events.text.log_lines import BEYOND_ALL, LogLine, Stretch, event_of

_UNITS = {"tflops": "TFLOP/s", "mfu": "%"}
"""Units of metrics defined by their names."""


def metrics_of(job: str, log_lines: Sequence[LogLine]) -> list[Metric]:
    """Return the metrics in log lines of a job, each in order of time and without duplicates."""
    found: defaultdict[str, dict[tuple[int, int, float], None]] = defaultdict(dict)
    units: defaultdict[str, Counter[str]] = defaultdict(Counter)
    inner: defaultdict[str, list[tuple[I64, I64, F64]]] = defaultdict(list)
    for log_line in log_lines:
        one = event_of(log_line)
        if abs(log_line.time) >= BEYOND_ALL:
            continue
        if log_line.inner is not None:
            for name, columns in _measured(log_line.inner, log_line.inner.begins(log_line.end)):
                inner[name].append(columns)
                units[name][str(dict(one.detail).get("unit", _UNITS.get(name, "")))] += len(columns[0])
        step = NO_STEP if one.step is None or abs(one.step) >= BEYOND_ALL else one.step
        sizes = {} if not one.total else {"total_steps": float(one.total)}
        for name, value in {**sizes, **one.metrics}.items():
            found[name][log_line.time, step, value] = None
            units[name][str(dict(one.detail).get("unit", _UNITS.get(name, "")))] += 1
    return [
        Metric(job, name, units[name].most_common(1)[0][0], *_columns(sorted(found[name]), inner.get(name, ())))
        for name in sorted({*found, *inner})
    ]


def _measured(inner: Stretch, times: I64) -> Iterator[tuple[str, tuple[I64, I64, F64]]]:
    """Yield the metrics of the records of a stretch, each with its times, steps and values."""
    sizes = {} if not inner.event.total else {"total_steps": np.full(len(inner), float(inner.event.total))}
    steps = inner.steps
    for name, values in {**sizes, **inner.metrics}.items():
        some = ~np.isnan(values)
        yield name, (times, steps, values) if some.all() else (times[some], steps[some], values[some])


def _columns(rows: Sequence[tuple[int, int, float]], inner: Sequence[tuple[I64, I64, F64]]) -> tuple[I64, I64, F64]:
    """Return values with their times and steps, each once, in order. rows: in order. inner: those of stretches."""
    time, step, value = zip(*rows, strict=True) if rows else ((), (), ())
    whole = np.array(time, dtype=np.int64), np.array(step, dtype=np.int64), np.array(value, dtype=np.float64)
    if not inner:
        return whole
    times, steps, values = (np.concatenate(columns) for columns in zip(whole, *inner, strict=True))
    order = np.argsort(times, kind="stable")  # Quick for few stretches, each in order.
    if not _is_rising(times[order]):
        order = np.lexsort((values, steps, times))
    columns = times[order], steps[order], values[order]
    if _is_rising(columns[0]):
        return columns
    first = np.append(True, np.any([one[1:] != one[:-1] for one in columns], axis=0))
    return columns[0][first], columns[1][first], columns[2][first]


def _is_rising(times: I64) -> bool:
    """Return True if no time occurs twice and none is after a later one."""
    return bool((times[1:] > times[:-1]).all())
