"""Which logs keep their stretches: those whose records are compared with nothing but the records next to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from goodput_cli.events.formats.base import RUNS
from goodput_cli.events.text.collector import CollectedSource
from goodput_cli.events.text.line_timestamps import have_one_fraction
from goodput_cli.events.text.log_lines import EventType, LogLine, Running
from goodput_cli.events.text.programs import mllog
from goodput_cli.events.text.programs.launcher import SACCT
from goodput_cli.events.text.programs.megatron import NAME as MEGATRON
from goodput_cli.events.text.programs.progress_bars import bar_of
from goodput_cli.events.text.programs.runs import RUN_LINES
from goodput_cli.events.text.stretches import apart_from_lines, expanded, has_stretches
from goodput_cli.vocabulary.when import NS_PER_SECOND

_OF_OTHERS = (SACCT, mllog.NAME, RUNS, RUN_LINES)
"""Formats whose lines are compared with records of steps of others."""


def with_stretches(sources: Mapping[int, CollectedSource], is_text: bool) -> dict[int, CollectedSource]:
    """Return sources without the stretches whose records are compared with other lines than those next to them.

    is_text: whether nothing but text contains events.
    """
    keep = is_text and not any(_is_compared_with_text(one) for one in sources.values())
    return {code: _with_stretches(one, keep) for code, one in sources.items()}


def _with_stretches(source: CollectedSource, keep: bool) -> CollectedSource:
    if not has_stretches(source.log_lines):
        return source
    source = replace(source, log_lines=[_as_read(one) for one in source.log_lines])
    if keep and _keeps_stretches(source):
        return replace(source, log_lines=apart_from_lines(source.log_lines, [one.line for one in source.seen]))
    return replace(source, log_lines=expanded(source.log_lines))


def _as_read(log_line: LogLine) -> LogLine:
    """Return a log line whose stretch contains nothing that its lines do not: a growing log is settled again."""
    inner = log_line.inner
    if inner is None or not inner.event.usual:
        return log_line
    return replace(log_line, inner=replace(inner, step_time=None))


def _is_compared_with_text(source: CollectedSource) -> bool:
    """Return True if records of other sources are compared with what a source contains."""
    if source.events or source.tracked or source.processes:
        return True
    events = [one.event for one in source.log_lines if one.event is not None]
    # a rank of Megatron without iterations borrows the times of those of the last rank
    return any(one.format == MEGATRON for one in events) and not any(one.type is EventType.STEP for one in events)


def _keeps_stretches(source: CollectedSource) -> bool:
    """Return True if one format, with timestamps, counts steps, and no other line is about these."""
    events = [one.event for one in source.log_lines if one.event is not None]
    if len({one.format for one in events if one.type is EventType.STEP}) != 1:
        return False
    if _has_one_fraction(source.log_lines):
        return False
    if any(_is_counted(one.running) or one.format in _OF_OTHERS or one.type is EventType.STAGE for one in events):
        return False
    # Megatron counts its first iteration twice, at a distance that its arguments name
    interval = next((one.job for one in events if one.name == "log_interval"), "")
    return not any(bar_of(one) is not None or _is_compared(one, interval) for one in source.log_lines)


def _is_counted(running: Running | None) -> bool:
    """Return True if the step or time of a line depends on other lines."""
    return running is not None and running != Running(running.epoch or 0, running.of)


def _is_compared(log_line: LogLine, interval: str) -> bool:
    inner = log_line.inner
    return inner is not None and (inner.event.common or str(inner.stride + 1) == interval)


def _has_one_fraction(log_lines: list[LogLine]) -> bool:
    """Return True if the fractions of seconds may be invented."""
    times = [one.stamp.ns for one in log_lines if one.stamp is not None]
    return have_one_fraction(times) and times[0] % NS_PER_SECOND != 0
