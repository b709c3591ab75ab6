"""Translation of blocks of records into rows: unwraps envelopes, finds the format of each record shape, and lets it
translate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from goodput_cli.arrays import I64, Mask
from goodput_cli.diagnostics.diagnostic import DiagnosticCollector
from goodput_cli.events.capabilities import INPUT_TABLES
from goodput_cli.events.capability import CollectedInputs, InputLine
from goodput_cli.events.evidence import NO_EVIDENCE, DeathsAtEnd, EvidenceOfLog
from goodput_cli.events.fast_json import Columns, EnvelopeColumns
from goodput_cli.events.formats.base import Entry, Format, InputCollectors, Output, ParsedPart, Records
from goodput_cli.events.formats.registry import FormatDispatcher, take
from goodput_cli.events.inside import RankSteps
from goodput_cli.events.json_documents import as_entries, collected_at, json_in, wrapped_line
from goodput_cli.events.reading_options import ReadingOptions
from goodput_cli.events.rows import DetailCollector, Interner, Origin, RowBuilder, build_table, constant, joined
from goodput_cli.events.schema import NONE, Announcement, EventLog, EventTable, Kind, LogFormat, Metric
from goodput_cli.events.signs import RecoveryEvent, RecoveryPhase
from goodput_cli.events.timestamps import (
    GENERIC_NAMES,
    INSERT_ID,
    MESSAGE,
    NO_STAMP,
    PAYLOAD,
    TEXT_PAYLOAD,
    EntryZones,
    Identity,
    TimestampReader,
    Writer,
    character_timestamps,
    entry_timestamps,
    identities,
    identities_of,
    named_writer,
    numbered_writer,
    numbered_writers,
)
from goodput_cli.sources.base import Record
from goodput_cli.vocabulary.text import file_line
from goodput_cli.vocabulary.when import AUTO, load_zone

if TYPE_CHECKING:
    from goodput_cli.events.text.log_lines import LogLine
    from goodput_cli.events.text.passes import Trace
    from goodput_cli.events.text.source_clocks import FoundZone


def without_nulls(records: Sequence[Record], nulls: bool) -> Sequence[Record]:
    """Return the records without `null` values, which count as absent."""
    if not nulls:
        return records
    return [
        {key: value for key, value in record.items() if value is not None} if None in record.values() else record
        for record in records
    ]


def same_name(names: Sequence[Any]) -> str:
    """Return the name that all values have; "" if they differ."""
    first = names[0] if names else ""
    return first if isinstance(first, str) and names.count(first) == len(names) else ""


_OF_CLUSTER = frozenset({"kind", "message"})
"""A record of a cluster has one of these keys."""
_LOOKED_AT = 100
"""Number of records of a shape that are checked for a cluster's format."""
_STRAY = ("unrecognised_lines", "lines that match no log format; ignored")
_OTHER_LINES = ("other_output", "container output without information about time")
_MOST_STEPS = 1_000_000_000
_OTHER = ("other_output", "JSON objects in a text log that match no log format")


class Decoder:
    """Decoder of blocks of records in order of arrival; `finish` returns the log."""

    def __init__(self, timezone: str, hints: ReadingOptions | None = None, trace: Trace | None = None) -> None:
        """timezone: of timestamps without a zone; `AUTO` infers it from the surrounding entries, with UTC as the
        default. trace: follows the passes over text."""
        self._trace = trace
        self._hints = hints or ReadingOptions()
        self._earlier: frozenset[str] = frozenset()
        self._former: Mapping[str, str] = {}
        self._runs: Mapping[str, str] = {}
        self._found_zones: Mapping[str, FoundZone] = {}
        self.notes = DiagnosticCollector()
        self.sources: Interner[str] = Interner()
        self._jobs: Interner[str] = Interner()
        self._entries: Interner[Identity] = Interner()
        self._rows = RowBuilder()
        self._zones = EntryZones() if timezone == AUTO else None
        clock = TimestampReader(load_zone(timezone))
        inputs = InputCollectors({one.name: one.collector for one in INPUT_TABLES})
        self._output = Output(
            self._rows, self.notes, Interner(), DetailCollector(), clock, zones=self._zones, inputs=inputs
        )
        self._lines: Mapping[str, Sequence[InputLine]] = {}
        self._recogniser = FormatDispatcher(self._hints, self.notes)
        self._stray = _STRAY
        self._formats_of_job: defaultdict[str, dict[str, LogFormat]] = defaultdict(dict)

    def add(self, source: str, parsed: ParsedPart) -> None:
        """Decode the records of a block."""
        code = self.sources.code(source)
        self._stray = _STRAY if parsed.text is None or parsed.bad else _OTHER  # bad: of a document of JSON lines
        if parsed.text is not None:
            self._output.texts.add(code, parsed.text)
        elif parsed.modified_ns is not None:
            self._output.texts.written(code, parsed.modified_ns)
        for name, part in parsed.inputs:
            self._output.take_input(name, code, part)
        for line, reason in parsed.bad:
            self.notes.add("malformed_lines", f"lines without a valid record ({reason}); ignored", code, [line])
        for columns in parsed.columns:
            self._decode_columns(code, columns)
        if parsed.records:
            size = len(parsed.records)
            order = parsed.lines if parsed.columns else np.arange(size, dtype=np.int64)
            origin = Origin(code, order, parsed.lines, constant(size, NONE), constant(size, NONE))
            records = without_nulls(parsed.records, parsed.nulls)
            self._decode_block(Records(records, frozenset(), origin, constant(size, NO_STAMP, np.int64)), parsed.nulls)
        self._rows.end_block()

    def text_lines(self) -> list[LogLine]:
        """Return the lines of text that were added, as they were read."""
        return [log_line for one in self._output.texts.every for log_line in one.log_lines]

    def rows(self) -> Mapping[str, NDArray[Any]]:
        """Return the columns of all other events that were added."""
        return self._rows.columns()

    def _with_inputs(self, table: EventTable, notes: DiagnosticCollector) -> EventTable:
        """Return the table with the tables of capabilities."""
        tables: dict[str, tuple[Any, ...]] = {}
        for one in INPUT_TABLES:
            names = {rule.name for rule in one.lines}
            lines = [line for name in names for line in self._lines.get(name, ())]
            parts = self._output.inputs.collected(one.name)
            if lines or parts is not None:
                from goodput_cli.events.tensorboard import folder_of

                lines.sort(key=lambda line: (line.source, line.line))
                inputs = CollectedInputs(
                    lines, parts, table, notes, self._runs, self._clock_of,
                    has_zone=lambda source: folder_of(source) in self._found_zones,
                    zone=str(self._output.clock.zone),
                    may_move=self._output.zones is not None,
                )  # fmt: skip
                tables[one.name] = tuple(one.rows(inputs))
        return replace(table, tables=tables) if tables else table

    def _clock_of(self, source: str) -> Callable[[int], int]:
        """Return the conversion of local times of a source to UTC: as text logs next to it show, otherwise the user's
        zone."""
        from goodput_cli.events.tensorboard import folder_of

        found = self._found_zones.get(folder_of(source))
        return self._output.clock.from_local if found is None else found.from_local

    def _decode_columns(self, source: int, columns: Columns) -> None:
        """Decode lines that were read as columns."""
        lines, entries, wrapping = columns.lines, columns.entries, columns.wrapping
        size = len(lines)
        entry, stamp = constant(size, NONE), constant(size, NO_STAMP, np.int64)
        if wrapping is not None:
            stamp = character_timestamps(wrapping.stamps)
            entry = self._entries.codes(identities_of(wrapping.log_name, stamp, wrapping.stamps, wrapping.ids))
        writer = None if wrapping is None or entries is None else self._writers_of(wrapping, entries[0])
        origin = Origin(source, lines, lines, entry, constant(size, NONE), writer)
        self._decode_shape(Records(columns.records, columns.keys, origin, stamp, False, columns, entries))

    def _writers_of(self, wrapping: EnvelopeColumns, entry: Entry) -> NDArray[np.int32]:
        """Return the writers of lines of one template, which differ only in time and identity. entry: one of the
        lines."""
        named = named_writer(entry)
        if named is not None:
            return constant(len(wrapping.ids), self._writer(named))
        writers, which = numbered_writers(wrapping.ids)
        codes = np.array([self._writer(one) for one in writers], dtype=np.int32)
        return constant(len(which), int(codes[0])) if len(codes) == 1 else codes[which]

    def _writer(self, writer: Writer | None) -> int:
        return NONE if writer is None else self._output.writers.code(writer)

    def _decode_block(self, block: Records, nulls: bool) -> None:
        wrapped = [group for group in self._recogniser.by_shape(block) if not self._decode_bare(group)]
        for group in wrapped:
            for inner in self._recogniser.by_shape(self._unwrap(group, nulls)):
                self._decode_shape(inner)

    def finish(self, deaths: Mapping[str, DeathsAtEnd] | None = None) -> EventLog:
        """Return everything that was added so far as one log. deaths: by source, if it may grow but ends there."""
        output, sources, entries = self._output, self.sources.values(), self._entries.values()
        columns, notes = self._rows.columns(), DiagnosticCollector()
        recorded = len(columns["time"])
        metrics: tuple[Metric, ...] = ()
        inside: tuple[RankSteps, ...] = ()
        observed = NO_EVIDENCE
        if output.texts:
            of_text, metrics, inside, observed = self._text_columns(sources, columns, notes, deaths or {})
            columns = joined(columns, of_text)
        if output.texts.objects:
            columns, observed = self._add_cluster_events(columns, observed, notes)
        if output.texts.cycles:
            observed = self._add_cycles(columns, observed, notes)
        _note_counters(columns, notes)
        table = build_table(
            columns,
            jobs=self._jobs.values(),
            labels=output.labels.values(),
            sources=sources,
            details=output.details.values(),
            entries=entries,
            writers=output.writers.values(),
        )
        metrics = (*metrics, *output.measured.metrics(self._jobs.values()))
        inside = (*inside, *output.recorded_steps.tables(self._jobs.values(), sources))
        if metrics or inside or observed:
            table = replace(table, metrics=metrics, inside=inside, observed=observed)
        if output.announced or output.bad_losses:
            jobs = self._jobs.values()
            announced = tuple(Announcement(jobs[job], sources[source], ns) for job, source, ns in output.announced)
            bad_losses = tuple((jobs[job], np.sort(times)) for job, times in output.bad_losses.items())
            table = replace(table, announced=announced, bad_losses=bad_losses)
        table = self._with_inputs(table, notes)
        formats = tuple(tuple(sorted(self._formats_of_job[job].values())) for job in table.jobs)
        diagnostics = (*self.notes.diagnostics(sources, entries), *notes.diagnostics(sources, entries))
        if len(table) == 0 and not diagnostics and any(one.noise or one.log_lines for one in output.texts.every):
            notes.add("unrecognised_lines", "no line is read as an event", 0, [1])
            diagnostics = notes.diagnostics(sources, entries)
        if self._zones is not None:
            table, diagnostics = self._zones.applied(table, diagnostics)
        signs = (*observed.signs, *self._recorded_signs(table, recorded))
        if signs:
            more = DiagnosticCollector()
            table = replace(table, observed=replace(observed, signs=_few_in_order(signs, sources, more)))
            diagnostics = (*diagnostics, *more.diagnostics(sources, entries))
        return EventLog(table, formats, diagnostics, output.texts.of_files, self._earlier, self._former)

    def _text_columns(
        self, sources: Sequence[str], recorded: Mapping[str, NDArray[Any]], notes: DiagnosticCollector,
        deaths: Mapping[str, DeathsAtEnd],
    ) -> tuple[dict[str, NDArray[Any]], tuple[Metric, ...], tuple[RankSteps, ...], EvidenceOfLog]:  # fmt: skip
        """Return the columns of text sources, their metrics and their observations of failures. recorded: the columns
        of all other lines."""
        # imported late: few logs have text
        from goodput_cli.events.text.passes import evidence_of, input_lines, rows_of, run_passes
        from goodput_cli.events.text.text_log import TextLog

        output, texts = replace(self._output, notes=notes), self._output.texts
        every = {
            code: one.ended(deaths[sources[code]]) if sources[code] in deaths else one
            for code, one in texts.sources.items()
        }
        log = TextLog(sources, self._hints, output, self._jobs, recorded, every)
        run_passes(log, self._trace)
        rows, formats = rows_of(log)
        self._earlier, self._former = log.earlier, log.former
        self._runs, self._found_zones = log.jobs_of_runs, log.zones
        self._lines = input_lines(log)
        for job, names in formats.items():
            for name in names:
                self._formats_of_job[job].setdefault(name, LogFormat(name))
        return rows.columns(), tuple(log.metrics), tuple(log.inside), evidence_of(log, self._entries.values())

    def _add_cluster_events(
        self, columns: dict[str, NDArray[Any]], observed: EvidenceOfLog, notes: DiagnosticCollector
    ) -> tuple[dict[str, NDArray[Any]], EvidenceOfLog]:
        """Return the columns with the events of Kubernetes objects, and the observations with their jobs."""
        from goodput_cli.events.cluster import signs_of_objects
        from goodput_cli.events.cluster_rows import (
            KUBERNETES,
            cluster_events,
            merged,  # imported late: few logs contain objects
        )
        from goodput_cli.events.text.to_rows import add_rows

        output, jobs = replace(self._output, notes=notes), self._jobs.values()
        beside = cluster_events(self._output.texts.objects, columns, jobs, notes)
        kind, time, end = (np.array(columns[name]) for name in ("kind", "time", "end"))
        rows = RowBuilder()
        for job, asked, begin, until in beside.begun:
            own = (columns["job"] == job) & np.isin(kind, (Kind.START, Kind.HEARTBEAT))
            kind[own & (time >= asked) & (time <= until)] = Kind.HEARTBEAT
            early = own & (time >= asked) & (time < begin)
            time[early] = end[early] = begin
        for (source, job), log_lines in beside.log_lines.items():
            add_rows(rows, source, job, log_lines, output, self.sources.values()[source])
            self._formats_of_job[jobs[job]].setdefault(KUBERNETES, LogFormat(KUBERNETES))
        named = {name: jobs[job] for name, job in beside.jobs.items()}
        seen = tuple(
            replace(one, job=named[one.identity]) if one.speaker == "pod" and one.identity in named else one
            for one in observed.rows
        )
        columns = {**columns, "kind": kind, "time": time, "end": end}
        signs = signs_of_objects(merged(self._output.texts.objects), named, self.sources.values())
        return joined(columns, rows.columns()), replace(observed, rows=seen, signs=(*observed.signs, *signs))

    def _add_cycles(
        self, columns: Mapping[str, NDArray[Any]], observed: EvidenceOfLog, notes: DiagnosticCollector
    ) -> EvidenceOfLog:
        """Return the observations with the cycles from NVRx files."""
        # imported late: few logs contain cycles
        from goodput_cli.events.text.allocation_signs import cycles_of, signs_of_cycles

        cycles = cycles_of(self._output.texts.cycles, columns, self._jobs.values(), self.sources.values(), notes)
        more = signs_of_cycles(cycles, observed.signs)
        return replace(observed, cycles=cycles, signs=(*observed.signs, *more))

    def _recorded_signs(self, table: EventTable, recorded: int) -> list[RecoveryEvent]:
        """Return the recovery events from a recorder's events: a crash was detected. recorded: the number of events,
        from the first on, that do not come from text."""
        sources, jobs = self.sources.values(), self._jobs.values()
        crashed = np.flatnonzero(table.kind[:recorded] == Kind.CRASHED).tolist()
        found = [
            RecoveryEvent(
                table.jobs[table.job[row]],
                RecoveryPhase.DETECTED,
                int(table.time[row]),
                table.where(row),
                rank=_rank(table, row),
            )
            for row in crashed
        ]
        for one in self._output.texts.recorded:
            said, where = one.said, file_line(sources[one.source], one.line)
            found.append(RecoveryEvent(jobs[one.job], said.point, one.ns, where, said.host, said.rank, said.facts))
        return found

    def _decode_bare(self, group: Records) -> bool:
        """Decode a group unless its records are envelopes; return True if it was decoded."""
        if PAYLOAD in group.keys:
            return False
        if self._observe(group):
            return True
        if TEXT_PAYLOAD in group.keys:
            stamps = entry_timestamps(group.records)
            codes = self._codes_of_entries(group.records, stamps)
            read = self._decode_lines(group, group.records, TEXT_PAYLOAD, stamps, codes)
            self._unrecognised(group, np.flatnonzero(~read))
            return True
        self._decode_shape(group)
        return True

    def _observe(self, group: Records) -> bool:
        """Collect the records of a cluster about pods and exceptions; return False for other records."""
        if _OF_CLUSTER.isdisjoint(group.keys) or not len(group):
            return False
        from goodput_cli.events.cluster import is_of_cluster, observe  # imported late: few logs contain any

        if not any(is_of_cluster(group.keys, one) for one in group.records[:_LOOKED_AT]):
            return False
        observe(group, self._output, self._hints.mappings.ruleset.causes)
        return True

    def _unwrap(self, group: Records, nulls: bool) -> Records:
        """Return the payloads of a group of envelopes, with the envelopes' timestamps and identities."""
        is_object = np.array([isinstance(entry[PAYLOAD], dict) for entry in group.records], dtype=np.bool_)
        self._unrecognised(group, np.flatnonzero(~is_object))
        group = take(group, np.flatnonzero(is_object), group.keys)
        stamps = entry_timestamps(group.records)
        codes = self._codes_of_entries(group.records, stamps)
        writers = [named_writer(entry) or numbered_writer(entry.get(INSERT_ID)) for entry in group.records]
        writer = np.array([self._writer(one) for one in writers], dtype=np.int32)
        origin = structs.replace(group.origin, entry=codes, writer=writer)
        payloads = without_nulls([entry[PAYLOAD] for entry in group.records], nulls)
        return Records(payloads, frozenset(), origin, stamps, entries=group.records)

    def _codes_of_entries(self, entries: Sequence[Record], stamps: I64) -> NDArray[np.int32]:
        names = identities(entries, stamps)
        return np.array([NONE if name is None else self._entries.code(name) for name in names], dtype=np.int32)

    def _decode_lines(
        self, group: Records, entries: Sequence[Entry], key: str, stamps: I64, codes: NDArray[np.int32]
    ) -> Mask:
        """Read the lines inside records: JSON as records, the rest as text. Return bool[n]: True for records that were
        read."""
        from goodput_cli.events.text.entries import collect  # imported late: few logs contain text

        inner = [json_in(record.get(key)) for record in group.records]
        objects = np.array([one is not None for one in inner], dtype=np.bool_)
        if objects.any():
            rows = np.flatnonzero(objects)
            origin = structs.replace(group.origin, entry=codes).take(rows)
            found = [one for one in inner if one is not None]
            self._decode_block(Records(without_nulls(found, True), frozenset(), origin, stamps[rows]), True)
            group = take(group, np.flatnonzero(~objects), group.keys)
            entries = [entry for entry, one in zip(entries, inner, strict=True) if one is None]
            stamps, codes = stamps[~objects], codes[~objects]
        read = collect(group, entries, key, stamps, codes, self._output, self._hints.mappings.ruleset)
        objects[~objects] = read
        return objects

    def _decode_wrapped_lines(self, group: Records) -> bool:
        """Read lines that a collector other than Cloud Logging wrapped in JSON; return False for other records."""
        keys = wrapped_line(group.keys)
        if keys is None or group.entries is not None:
            return False
        text, time = keys
        stamps, codes = collected_at(group.column(time)), constant(len(group), NONE)
        read = self._decode_lines(group, as_entries(group.records), text, stamps, codes)
        kind = _OTHER_LINES if read.any() else self._stray
        self._output.report(*kind, group, np.flatnonzero(~read).tolist())
        return True

    def _decode_shape(self, group: Records) -> None:
        for log_format, records in self._recogniser.by_format(group):
            if log_format is None:
                if self._decode_wrapped_lines(records):
                    continue
                unknown = np.full(len(records), not records.keys & GENERIC_NAMES)
                if records.entries is not None and MESSAGE in records.keys:
                    codes = records.origin.entry
                    unknown &= ~self._decode_lines(records, records.entries, MESSAGE, records.stamp, codes)
                self._unrecognised(records, np.flatnonzero(unknown))
                continue
            named = self._with_jobs(records, log_format)
            if not len(named):
                continue
            self._note_unknown_keys(named, log_format)
            used = log_format.translate(named, self._output)
            if not used.all():
                self._unrecognised(named, np.flatnonzero(~used))

    def _with_jobs(self, records: Records, log_format: Format) -> Records:
        """Return the records with a job name, with its code; report the others."""
        traits = self._recogniser.traits(log_format)
        names = traits.job_names(records)
        same = names if isinstance(names, str) else same_name(names)
        if same:
            self._seen(same, log_format)
            return records.of_job(constant(len(records), self._jobs.code(same)))
        if set(map(type, names)) != {str} or "" in names:
            self._report_nameless(records, names, traits.job_key)
            named = [at for at, name in enumerate(names) if isinstance(name, str) and name]
            names = [names[at] for at in named]
            records = take(records, named, records.keys)
        for name in set(names):
            self._seen(name, log_format)
        if not names:
            return records
        return records.of_job(self._jobs.codes(names))

    def _seen(self, job: str, log_format: Format) -> None:
        formats, name = self._formats_of_job[job], log_format.name
        if name not in formats:
            traits = self._recogniser.traits(log_format)
            formats[name] = LogFormat(name, traits.restores_are_inferred, traits.other_system)

    def _report_nameless(self, records: Records, names: Sequence[Any], key: str) -> None:
        missing = [at for at, name in enumerate(names) if name == ""]
        wrong = [at for at, name in enumerate(names) if not isinstance(name, str)]
        message = f"events without `{key}` belong to no job; dropped"
        self._output.report("missing_job_name", message, records, missing)
        self._output.report("bad_value", f"`{key}` is not a string; dropped", records, wrong)

    def _note_unknown_keys(self, records: Records, log_format: Format) -> None:
        any_key = self._recogniser.traits(log_format).any_key
        if any_key is not None and any_key(records):
            return
        places: Mapping[str, Sequence[int]] = {key: range(len(records)) for key in records.keys - log_format.keys}
        if records.loose:
            found: defaultdict[str, list[int]] = defaultdict(list)
            for at, record in enumerate(records.records):
                for key in record.keys() - log_format.keys:
                    found[key].append(at)
            places = found
        for key in sorted(places):
            name = self.notes.bounded("unknown_keys", key)
            self._output.report("unknown_keys", f"unknown key {name}; ignored", records, places[key])

    def _unrecognised(self, records: Records, places: Sequence[int] | I64) -> None:
        self._output.report(*self._stray, records, list(places))


def _rank(table: EventTable, row: int) -> int | None:
    return None if table.rank[row] == NONE else int(table.rank[row])


def _few_in_order(
    signs: Sequence[RecoveryEvent], sources: Sequence[str], notes: DiagnosticCollector
) -> tuple[RecoveryEvent, ...]:
    from goodput_cli.events.text.sign_lines import few_signs  # imported late: few logs contain any

    return few_signs(signs, sources, notes)


def _note_counters(columns: Mapping[str, NDArray[Any]], notes: DiagnosticCollector) -> None:
    """Report step numbers that no job can reach: they count tokens, samples or time."""
    step = columns["step"]
    if len(step) and step.max() > _MOST_STEPS:
        message = f"step numbers above {_MOST_STEPS:,}: they count something else, such as samples, tokens or times"
        high = np.flatnonzero(step > _MOST_STEPS)
        for source in np.unique(columns["source"][high]).tolist():
            rows = high[columns["source"][high] == source]
            notes.add("counter_is_no_step", message, source, np.sort(columns["line"][rows])[:1].tolist(), (), len(rows))
