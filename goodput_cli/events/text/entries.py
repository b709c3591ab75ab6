"""Convert records to log lines: pod output and ML Diagnostics metrics in Cloud Logging, and rows of `sacct`. Entries
that gcloud printed as YAML are rejected with a tip."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goodput_cli.arrays import I64, Mask
from goodput_cli.events.accelerators.samples import TABLE, Device, DevicePart, Quantity
from goodput_cli.events.evidence import ALLOCATED, UntimedEvidence, quoted
from goodput_cli.events.formats.base import (
    CONFIGS,
    HOST,
    PROCESS,
    RUNS,
    SACCT,
    STEP,
    UNIT,
    VALUES,
    Entry,
    Output,
    Records,
    labels_of,
)
from goodput_cli.events.inside import safe_name
from goodput_cli.events.schema import ACCELERATORS, BATCH_SIZE, SAMPLES, SIZES
from goodput_cli.events.signs import RecoveryPhase, UntimedRecoveryEvent
from goodput_cli.events.text.causes import by_exit
from goodput_cli.events.text.collector import TextPart
from goodput_cli.events.text.evidence_lines import EntryObserver, may_contain_evidence
from goodput_cli.events.text.line_timestamps import (
    Timestamp,
    TimestampError,
    Zone,
    read_dated,
    strip_prefixes,
    timestamp_or_none,
)
from goodput_cli.events.text.lines import LONGEST, LineRules
from goodput_cli.events.text.log_lines import (
    BadValueError,
    CollectedLine,
    EventType,
    LineRule,
    LogLine,
    ParsedEvent,
    pattern,
    timed,
)
from goodput_cli.events.text.observed_line import Line, LineCollector
from goodput_cli.events.text.sign_lines import sign, signs_in
from goodput_cli.events.timestamps import PRINTED_AS_YAML, labels_in
from goodput_cli.events.values import NOT_FINITE, number, whole_number
from goodput_cli.sources.cloud_logging_pages import SYSTEM_METRICS
from goodput_cli.vocabulary.categories import UNKNOWN_CAUSE
from goodput_cli.vocabulary.when import NS_PER_SECOND

_JOB_LABELS = ("k8s-pod/jobset_sigs_k8s_io/jobset-name", "k8s-pod/job-name", "k8s-pod/batch_kubernetes_io/job-name")
"""Labels in which GKE names the job of a pod."""
_HOST_LABELS = ("compute.googleapis.com/resource_name", "kubernetes.io/hostname", "node_name")
_STREAM_LABELS = ("pod_name", "instance_id", "container_name")


def collect(
    records: Records, entries: Sequence[Entry], key: str, stamps: I64, codes: NDArray[np.int32],
    output: Output, rules: LineRules,
) -> Mask:  # fmt: skip
    """Collect events from lines. Return True for entries with a line that a rule matches, bool[n].

    key: of the text in a record. stamps: times of the entries, ns. codes: of the entries' identities.
    """
    used = np.zeros(len(records), dtype=np.bool_)
    log_lines: list[LogLine] = []
    printed: list[tuple[Line, list[ParsedEvent]]] = []
    signs: list[UntimedRecoveryEvent] = []
    alive: dict[str, tuple[LogLine, LogLine]] = {}  # The first and the last line without an event.
    for at, (record, entry) in enumerate(zip(records.records, entries, strict=True)):
        text, stamp = record.get(key), int(stamps[at])
        if not isinstance(text, str) or stamp < 0:
            continue
        line, stream, job = int(records.origin.line[at]), _stream(entry), _job(entry)
        collected = Timestamp(stamp, Zone.EXACT, False)
        lines = text[:LONGEST].split("\n")
        parts = [(part, events_in_line(part, rules)) for part in lines]
        found = [one for _, read in parts for one in read]
        about = (line, stream, collected, int(codes[at]), job, _host(entry))
        printed += [(_line(part, *about), [said for _, said in read]) for part, read in parts]
        for own, said in found:
            used[at] = True
            said.job = said.job or job
            log_lines.append(timed(LogLine(line, stream, own, said, entry=int(codes[at])), collected))
            signs += signs_in(log_lines[-1:])
        signs += signs_in(
            timed(LogLine(line, stream, own, said, entry=int(codes[at])), collected)
            for part in (lines if rules.signs else ())
            for own, said in moments_of_line(part, rules)
        )
        if not found:
            silent = LogLine(line, stream, collected, entry=int(codes[at]))
            first, last = alive.get(stream, (silent, silent))
            alive[stream] = (min(first, silent, key=_time), max(last, silent, key=_time))
    log_lines = sorted(
        [*log_lines, *(log_line for seen in alive.values() for log_line in seen)], key=lambda log_line: log_line.line
    )
    seen = _observed(records.origin.source, printed, rules, output)
    part = TextPart(log_lines if used.any() else [], seen=seen, signs=signs)
    part.collected = _collected(records.origin.source, printed, rules, output)
    output.texts.add(records.origin.source, part)
    return used


def _collected(
    source: int, printed: Sequence[tuple[Line, object]], rules: LineRules, output: Output
) -> list[CollectedLine]:
    """Return the lines that capabilities read, in the order of entries."""
    if not rules.collected:
        return []
    collector = output.texts.line_collectors.setdefault(source, LineCollector(rules.collected))
    return [found for line, _ in printed for found in collector.take(line)]


def _line(raw: str, number: int, stream: str, collected: Timestamp, entry: int, job: str, host: str) -> Line:
    inner = Line.of(raw, number)
    streams = "/".join(part for part in (stream, inner.stream) if part)
    return Line(number, inner.text, raw, streams, inner.collected or collected, entry, job, host)


def _observed(
    source: int, printed: list[tuple[Line, list[ParsedEvent]]], rules: LineRules, output: Output
) -> list[UntimedEvidence]:
    """Return evidence of failures in lines; entries may contain them in any order."""
    causes = rules.causes
    worth = [causes.may_read(one.raw.encode(errors="replace")) for one, _ in printed]
    observer = output.texts.observers.get(source)
    if observer is None:
        if not any(worth):
            return []
        observer = output.texts.observers[source] = EntryObserver(causes)

    def order(at: int) -> tuple[int, int, int]:
        line = printed[at][0]
        return -1 if line.collected is None else line.collected.ns, line.number, at

    for at in sorted(range(len(printed)), key=order):
        line, said = printed[at]
        observer.take(line, worth[at] and may_contain_evidence(said, bool(said)), said)
    return observer.fresh()


def _host(entry: Entry) -> str:
    """Return the machine or node of an entry; empty if unknown."""
    labels = labels_in(entry)
    return next((str(labels[key]) for key in _HOST_LABELS if labels.get(key)), "")


def _time(log_line: LogLine) -> int:
    return -1 if log_line.stamp is None else log_line.stamp.ns


def events_in_line(line: str, rules: LineRules) -> list[tuple[Timestamp | None, ParsedEvent]]:
    """Return the events of a line with its own timestamp."""
    if not rules.reads_all and not rules.anchors.search(line.encode(errors="replace")):
        return []
    text = strip_prefixes(line).text
    found, _, _ = rules.read(text)
    own = timestamp_or_none(text) if found else None
    return [(own, said) for said in found if said.type is not EventType.IGNORE]


def moments_of_line(line: str, rules: LineRules) -> list[tuple[Timestamp | None, ParsedEvent]]:
    """Return the moments of a recovery in a line without other events, with its own timestamp."""
    if not rules.reads_all and not rules.anchors.search(line.encode(errors="replace")):
        return []
    text = strip_prefixes(line).text
    found = rules.signs_in(text)
    own = timestamp_or_none(text) if found else None
    return [(own, said) for said in found]


def _job(entry: Entry) -> str:
    labels = labels_in(entry)
    return next((labels[key] for key in _JOB_LABELS if isinstance(labels.get(key), str)), "")


def _stream(entry: Entry) -> str:
    labels = labels_in(entry.get("resource"))
    return next((str(labels[key]) for key in _STREAM_LABELS if labels.get(key)), "")


_STARTED = "mlrun_configs"
STEP_TIME = "step_time"
OF_NUMBERS = ("loss", "gradient_norm")
"""Metrics that end training if their value is not finite."""
_RESERVED = frozenset({*SIZES, *SAMPLES, *ACCELERATORS})
"""Names of the size of a job: a user's metric of that name may be something else."""
_SETTINGS = {
    "global_batch_size": BATCH_SIZE, "global_batch_size_to_train_on": BATCH_SIZE, "sequence_length": "sequence_length",
    "seq_length": "sequence_length", "max_target_length": "sequence_length", "total_steps": "total_steps",
    "max_steps": "total_steps", "num_train_steps": "total_steps", "train_iters": "total_steps",
}  # fmt: skip
"""Settings with the size of a job. `steps` and `batch_size` are ambiguous."""


def _settings(configs: Any) -> dict[str, float]:
    """Return the sizes of work in a configuration."""
    if not isinstance(configs, dict):
        return {}
    found = {_SETTINGS[key]: number(value) for key, value in configs.items() if key in _SETTINGS}
    return {name: float(value) for name, value in found.items() if value is not None and 0 < value < _LARGEST}


RUN_NAME = "run_name"
"""Setting with the name of a run."""


def _identity(configs: Any) -> tuple[tuple[str, Any], ...]:
    """Return the name of a run and its whole configuration as JSON with sorted keys; () for none."""
    if not isinstance(configs, dict) or not configs:
        return ()
    try:
        whole = json.dumps(configs, sort_keys=True)
    except RecursionError:  # No program nests its settings that deep.
        return ()
    name = configs.get(RUN_NAME)
    return (CONFIGS, whole), (RUN_NAME, name if isinstance(name, str) else "")


_LARGEST = 1e15


def _is_not_finite(values: Any) -> bool:
    """Return True if any value is NaN or infinite, as a number or as a JSON string."""
    if not isinstance(values, list):
        return False
    return any(isinstance(one, float | str) and str(one).strip("+-").lower() in NOT_FINITE for one in values)


def _not_finite(record: Mapping[str, Any], said: ParsedEvent, stamp: int, line: int) -> UntimedEvidence | None:
    """Return evidence for a loss or norm that is not a number, which may have ended training; otherwise None."""
    if said.type is not EventType.STEP or said.name not in OF_NUMBERS or not _is_not_finite(record.get(VALUES)):
        return None
    text = f"{said.name} {record[VALUES][0]} at step {said.step}"
    one = UntimedEvidence(
        "not_finite", "root", quoted(text), _NO_NUMBER, "process", line, "", Timestamp(stamp, Zone.EXACT, False)
    )
    one.last_line = line
    return one


_NO_NUMBER = "loss of a metric"


MEASURED = ("step_time", "mfu", "tflops", "throughput", "latency")
"""Metrics that are shown even without a step."""
_EVERY_NS = 10 * NS_PER_SECOND
"""Minimum time between recorded activity of one host."""


def collect_metrics(records: Records, output: Output, alive: dict[tuple[str, str], int]) -> Mask:
    """Collect events from metrics. Return True for entries of the format, bool[n]. alive: time of the last recorded
    activity of each host."""
    log_lines: list[LogLine] = []
    devices = DevicePart()
    seen: list[UntimedEvidence] = []
    assert records.entries is not None
    used = np.zeros(len(records), dtype=np.bool_)
    for at, (record, entry) in enumerate(zip(records.records, records.entries, strict=True)):
        used[at] = VALUES in record or CONFIGS in record
        if not used[at]:
            continue
        labels = labels_of(entry)
        stamp = int(records.stamp[at])
        if (quantity := _QUANTITIES.get(str(labels["namespace"]))) is not None and stamp >= 0:
            _take_devices(record, quantity, str(labels["node_id"]), stamp, int(records.origin.line[at]), devices)
        said, reason = _event_of(record, str(labels["namespace"]), str(labels["node_id"]), stamp, alive)
        if said is not None and (why := _not_finite(record, said, stamp, int(records.origin.line[at]))) is not None:
            seen.append(why)
        if reason:
            output.report("bad_value", reason, records, [at])
        elif said is not None:
            line, of = int(records.origin.line[at]), int(records.origin.entry[at])
            log_lines.append(LogLine(line, said.job, Timestamp(stamp, Zone.EXACT, False), said, stamp, stamp, entry=of))
    output.texts.add(records.origin.source, TextPart(log_lines, seen=seen))
    output.take_input(TABLE, records.origin.source, devices)
    return used


_QUANTITIES = {
    "tpu_duty_cycle": Quantity.BUSY, "gpu_duty_cycle": Quantity.BUSY, "gpu_utilization": Quantity.BUSY,
    "tpu_tensorcore_utilization": Quantity.CORE, "gpu_tensorcore_utilization": Quantity.CORE,
    "hbm_utilization": Quantity.MEMORY, "vram_utilization": Quantity.MEMORY,
    "host_cpu_utilization": Quantity.HOST_CPU, "host_memory_utilization": Quantity.HOST_MEMORY,
}  # fmt: skip
"""Quantity by host metric; it has one value per device, in the host's device order."""
_LABELS = "accelerator_labels"
_LAST_DIGITS = re.compile(r"(\d+)\D*$")
_MOST_OF_HOST = 1024


def _take_devices(
    record: Mapping[str, Any], quantity: Quantity, run: str, stamp: int, line: int, part: DevicePart
) -> None:
    """Add the device values of a host; invalid values are reported when the entry is read."""
    values = record.get(VALUES)
    if not isinstance(values, list):
        return
    index = whole_number(record.get(PROCESS))
    host = str(record.get(HOST, "")) or str(record.get(PROCESS, ""))
    names = _names(record.get(_LABELS), len(values))
    for name, value in zip(names, values[:_MOST_OF_HOST], strict=False):
        found = None if isinstance(value, bool) else number(value)
        if found is not None and abs(found) < _NO_VALUE:
            part.add(line, Device(host, name, index, run), quantity, stamp, float(found))


_NO_VALUE = 1e300


def _names(labels: Any, size: int) -> list[str]:
    """Return the number of each device on its host: the end of its label if there is a label per device, otherwise its
    index."""
    if isinstance(labels, list) and len(labels) == size:
        ends = [_LAST_DIGITS.search(str(label)[-64:]) for label in labels]
        found = [one[1] for one in ends if one is not None]
        if len(set(found)) == size:
            return found
    return [str(at) for at in range(size)]


def _event_of(
    record: Mapping[str, Any], metric: str, run: str, stamp: int, alive: dict[tuple[str, str], int]
) -> tuple[ParsedEvent | None, str]:
    """Return the event of an entry, or the reason why it has none."""
    if stamp < 0:
        return None, "an entry of a metric without a timestamp; dropped"
    if metric == _STARTED:
        configs = record.get(CONFIGS)
        return ParsedEvent(
            RUNS, EventType.START, job=run, name=metric, metrics=_settings(configs), detail=_identity(configs)
        ), ""
    rank = str(record.get(PROCESS, ""))
    host = str(record.get(HOST, "")) or rank
    value = _value(record.get(VALUES))
    broken = value is None and metric in OF_NUMBERS and STEP in record and _is_not_finite(record.get(VALUES))
    if value is None and not broken:
        return None, f"`{VALUES}` contains no numbers; dropped"
    if metric in SYSTEM_METRICS or STEP not in record:
        if metric in MEASURED and value is not None:
            return ParsedEvent(RUNS, EventType.ALIVE, job=run, name=metric, metrics={metric: value}), ""
        last = alive.get((run, rank or host))
        if last is not None and last <= stamp < last + _EVERY_NS:
            return None, ""
        alive[run, rank or host] = stamp
        return ParsedEvent(RUNS, EventType.ALIVE, job=run, rank=rank or host), ""
    if metric == "step":
        return None, ""
    step = whole_number(record[STEP])
    if step is None or step < 0:
        return None, f"`{STEP}` is not a step number; dropped"
    shown = {} if value is None or metric in _RESERVED else {safe_name(metric): value}
    unit = record.get(UNIT)
    detail = (("unit", unit),) if isinstance(unit, str) and shown else ()
    return ParsedEvent(RUNS, EventType.STEP, step, job=run, name=metric, metrics=shown, detail=detail), ""


def _value(values: Any) -> float | None:
    """Return the mean of the values, usually one per device; None if any is not a number."""
    if not isinstance(values, list) or not values:
        return None
    numbers = [number(value) for value in values if not isinstance(value, bool)]
    if len(numbers) != len(values) or any(one is None for one in numbers):
        return None
    try:
        return float(np.mean([float(one) for one in numbers if one is not None]))
    except OverflowError:  # An int too large for a float.
        return None


ALLOCATION = "sacct"
_STATES: Mapping[str, tuple[EventType, str]] = {
    "COMPLETED": (EventType.FINISHED, ""),
    "CANCELLED": (EventType.STOPPED, "cancelled"),
    "PREEMPTED": (EventType.PREEMPTED, "preempted"),
    "TIMEOUT": (EventType.TERMINATED, "time_limit"),
    "REQUEUED": (EventType.TERMINATED, ""),
    "DEADLINE": (EventType.TERMINATED, "time_limit"),
    "REVOKED": (EventType.TERMINATED, ""),
    "SUSPENDED": (EventType.TERMINATED, ""),
    "FAILED": (EventType.CRASHED, ""),
    "NODE_FAIL": (EventType.CRASHED, "node_failure"),
    "OUT_OF_MEMORY": (EventType.CRASHED, "host_oom"),
    "BOOT_FAIL": (EventType.CRASHED, "node_failure"),
}
"""By state of an ended allocation: the event and the cause; an empty cause if unknown."""
_LIST = re.compile(r"([\w.-]++)(?:\[([\d,-]+)\]([\w.-]*))?(?:,|$)")
_MOST_NODES, _NODE_DIGITS = 65_536, 18


def nodes_in(text: str) -> tuple[str, ...]:
    """Return the hosts of Slurm's NodeList: `node[01-03,7],big` -> node01, node02, node03, node7, big. Empty for any
    other form: a partial list would be wrong."""
    found: list[str] = []
    at = 0
    while at < len(text):
        match = _LIST.match(text, at)
        if match is None:
            return ()
        at = match.end()
        for part in match[2].split(",") if match[2] else ("",):
            low, _, high = part.partition("-")
            if max(len(low), len(high)) > _NODE_DIGITS:
                return ()
            last = int(high or low or 0)
            if high and not int(low) <= last < int(low) + _MOST_NODES:
                return ()
            numbers = [str(one).zfill(len(low)) for one in range(int(low), last + 1)] if high else [low]
            found += [f"{match[1]}{number}{match[3] or ''}" for number in numbers]
    return tuple(dict.fromkeys(found)) if len(found) <= _MOST_NODES else ()


def nodes_of_allocation(record: Mapping[str, Any], line: int, started: Timestamp | None) -> UntimedEvidence | None:
    """Return the hosts of a Slurm allocation, as evidence of location only; None if unknown."""
    hosts = nodes_in(str(record.get("NodeList", "")))
    if not hosts or started is None or hosts[0].lower() in ("none", "unknown"):
        return None
    one = UntimedEvidence(UNKNOWN_CAUSE, "context", "", ALLOCATED, "scheduler", line, "", started)
    one.hosts, one.last_line = dict.fromkeys(hosts, line), line
    return one


def state_of(record: Mapping[str, Any]) -> str:
    """Return the state of a row: `CANCELLED` for `CANCELLED by 1000` and `CANCELLED+`."""
    return str(record.get("State", "")).upper().split(" ", 1)[0].rstrip("+")


def of_allocation(record: Mapping[str, Any], line: int, ended: Timestamp | None) -> UntimedEvidence | None:
    """Return why a Slurm allocation ended: its state, otherwise the signal in its exit code; None if neither shows
    it."""
    state = str(record.get("State", "")).upper()
    _, code = _STATES.get(state_of(record), (None, ""))
    if code:
        one = UntimedEvidence(code, "root", quoted(state), ALLOCATION, "scheduler", line, "", ended)
    else:
        signal = str(record.get("ExitCode", "")).partition(":")[2]
        said = by_exit(-int(signal)) if signal.isdecimal() and signal != "0" and len(signal) < 4 else None
        if said is None:
            return None
        one = UntimedEvidence(
            *said, quoted(f"{state} {record.get('ExitCode')}"), ALLOCATION, "scheduler", line, "", ended
        )
        one.exit = -int(signal)
    one.identity, one.last_line = str(record.get("JobID", "")), line
    return one


_NO_TIME = ("Unknown", "None", "N/A", "")


def collect_allocations(records: Records, output: Output) -> None:
    """Collect the log lines of allocations, without job steps (`812.batch`), which are parts of one."""
    log_lines: list[LogLine] = []
    seen: list[UntimedEvidence] = []
    for at, record in enumerate(records.records):
        if "." in str(record["JobID"]):
            continue
        line = int(records.origin.line[at])
        try:
            log_lines += _marks(record, line)
            hosts = nodes_of_allocation(record, line, _time_allocations(record, "Start"))
            why = of_allocation(record, line, _time_allocations(record, "End"))
            seen += [one for one in (hosts, why) if one is not None]
        except TimestampError as error:
            output.report("bad_value", f"{output.notes.bounded('bad_value', str(error))}; dropped", records, [at])
    output.texts.add(records.origin.source, TextPart(log_lines, seen=seen))


def _marks(record: Mapping[str, Any], line: int) -> list[LogLine]:
    submitted = _time_allocations(record, "Eligible") or _time_allocations(record, "Submit")
    started, ended = _time_allocations(record, "Start"), _time_allocations(record, "End")
    state = state_of(record)
    found = [(EventType.SCHEDULED, submitted), (EventType.START, started)]
    if state in _STATES and started is not None:
        found.append((_STATES[state][0], ended))
    signs = (sign(RecoveryPhase.TERMINATED, by="hand"),) if _is_by_hand(record) else ()
    return [
        LogLine(line, "", stamp, ParsedEvent(SACCT, what, name=str(record["JobID"]), job=str(record.get("JobName", "")),
                                             detail=(("state", state),), signs=signs))
        for what, stamp in found
        if stamp is not None
    ]  # fmt: skip


def _is_by_hand(record: Mapping[str, Any]) -> bool:
    """Return True if a person ended an allocation: `CANCELLED by 1002`; user 0 is the scheduler or its
    administrator."""
    by = _CANCELLED_BY.fullmatch(str(record.get("State", "")).strip())
    return by is not None and int(by[1]) != 0


_EPOCH = re.compile(r"[1-9]\d{8,9}", re.ASCII)
_CANCELLED_BY = re.compile(r"CANCELLED by (\d{1,20})", re.ASCII)


def _time_allocations(record: Mapping[str, Any], key: str) -> Timestamp | None:
    text = str(record.get(key, "")).strip()
    if _EPOCH.fullmatch(text):  # SLURM_TIME_FORMAT=%s
        return Timestamp(int(text) * NS_PER_SECOND, Zone.EXACT, whole=True)
    return None if text in _NO_TIME else read_dated(text)


def _refuse(_found: Any) -> ParsedEvent:
    raise BadValueError(f"{PRINTED_AS_YAML}: ask gcloud for --format=json")


PRINTED_ENTRIES = (
    LineRule("cloud-logging", "jsonPayload:", pattern(r"^jsonPayload:\s*$"), _refuse, "YAML"),
    LineRule("cloud-logging", "textPayload:", pattern(r"^textPayload: "), _refuse, "YAML"),
)
