"""Make the diagnostics of text logs: bad values, lines that no rule reads, stamps without year or zone, silent
hosts."""

from __future__ import annotations

from collections.abc import Sequence

from goodput_cli.diagnostics.collector import DiagnosticCollector
from goodput_cli.events.formats.base import Output
from goodput_cli.events.text.jobs import Named
from goodput_cli.events.text.marks import Mark
from goodput_cli.events.text.parts import CollectedSource
from goodput_cli.events.text.place import Placed
from goodput_cli.events.text.programs.runs import Grouped, silent_hosts
from goodput_cli.events.text.zones import FoundZone


def note_source(
    name: str, code: int, source: CollectedSource, placed: Placed, output: Output, zone: FoundZone | None
) -> None:
    """What was noticed in one source. zone: of its stamps without one, where lines show it."""
    notes = output.notes
    for line, reason in source.bad:
        notes.add("bad_value", f"{notes.bounded('bad_value', reason)}; the line says nothing", code, [line])
    events = [mark for mark in source.marks if mark.said is not None]
    if not events and not source.events:
        if source.noise and not source.bad:
            message = f"text in which no line says anything: `goodput check --suggest {name}` drafts a mapping"
            notes.add("unrecognised_lines", message, code, [1], (), source.noise)
        return
    if source.noise:
        notes.add("other_output", "lines of text that say nothing about time", code, [], (), source.noise)
    _note_zone(code, placed, output, zone)
    if placed.without_year:
        message = "stamps without a year; --year says which it is"
        notes.add("assumed_year", message, code, list(placed.without_year), (), len(placed.without_year))
    if placed.no_clock:
        message = "no line has a time; counted back from when the file was last written, or from --start on"
        notes.add("no_clock", message, code, [events[0].line])
    if placed.back and not source.events:
        notes.add("stamps_go_back", "a clock goes back between two lines", code, list(placed.back))
    if placed.missing:
        message = "records without a time that follow a jump of the steps; the jump takes no time"
        notes.add("missing_records", message, code, list(placed.missing))


def _note_zone(code: int, placed: Placed, output: Output, zone: FoundZone | None) -> None:
    notes = output.notes
    if placed.naive and zone is not None:
        message = f"timestamps without a zone are of {zone}, as a collector's times beside them show, and are read so"
        notes.add("timezone_found", f"{message}; --timezone says otherwise", code, list(placed.naive))
    elif placed.naive:
        message = f"timestamps without a zone, read as {output.clock.zone}; --timezone says which zone they are in"
        notes.add("naive_timestamps", message, code, list(placed.naive), (), len(placed.naive))


def note_runs(grouped: Grouped, marks: Sequence[Mark], code: int, notes: DiagnosticCollector) -> None:
    first = [marks[0].line], [marks[0].entry]
    if grouped.together:
        notes.add("runs_grouped", "runs whose names differ in their time of start are one job", code, *first)
    if grouped.apart:
        message = "runs are named by numbers that do not say which are of one job; --job-name says that all are"
        notes.add("runs_not_grouped", message, code, *first)
    for host, mark in silent_hosts(marks):
        shown = notes.bounded("host_silent", host)
        notes.add(
            "host_silent", f"host {shown} gives no more signs of life while others do", code, [mark.line], [mark.entry]
        )


def note_damage(code: int, source: CollectedSource, notes: DiagnosticCollector) -> None:
    if source.damaged:
        message = "records of an event file whose checksum is wrong, or that hold no event; left out"
        notes.add("malformed_records", message, code, source.damaged)
    if source.broken is not None:
        message = "an event file is damaged here; nothing behind the place can be read"
        notes.add("malformed_records", message, code, [source.broken])


def note_jobs(named: Named, names: Sequence[str], notes: DiagnosticCollector, codes: Sequence[int]) -> None:
    for name in named.assumed:
        at = named.jobs.index(name)
        shown = notes.bounded("job_name_assumed", name)
        notes.add("job_name_assumed", f"text names no job; by its file or folder it is {shown}", codes[at], [1])
    for folder in named.disagreeing:
        at = next(at for at, name in enumerate(names) if (name.rpartition("/")[0] or ".") == folder)
        shown = notes.bounded("several_jobs_in_folder", folder)
        message = f"files of {shown} overlap and disagree about steps: they are different jobs, named by their files"
        notes.add("several_jobs_in_folder", message, codes[at], [1])
