"""Lines of text inside entries of Cloud Logging: what a pod printed, with the time when it was collected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goodput_cli.arrays import I64, Mask
from goodput_cli.events.formats.base import Entry, Output, Records
from goodput_cli.events.text.block import LONGEST
from goodput_cli.events.text.marks import Mark, Said, What, timed
from goodput_cli.events.text.parts import TextPart
from goodput_cli.events.text.prefixes import bare
from goodput_cli.events.text.scan import Ruleset
from goodput_cli.events.text.stamps import Stamp, StampError, Zone, stamp_of

_JOB_LABELS = ("k8s-pod/jobset_sigs_k8s_io/jobset-name", "k8s-pod/job-name", "k8s-pod/batch_kubernetes_io/job-name")
"""What GKE says of the job that a pod is of."""
_STREAM_LABELS = ("pod_name", "instance_id", "container_name")


def collect(
    records: Records, entries: Sequence[Entry], key: str, stamps: I64, codes: NDArray[np.int32],
    output: Output, rules: Ruleset,
) -> Mask:  # fmt: skip
    """Collect what lines say; bool[n]: the entries of which a rule knows a line. key: of the text in a record. stamps:
    ns of each entry. codes: of the entries' identities."""
    used = np.zeros(len(records), dtype=np.bool_)
    marks: list[Mark] = []
    alive: dict[str, tuple[Mark, Mark]] = {}  # the first and the last that says nothing
    for at, (record, entry) in enumerate(zip(records.records, entries, strict=True)):
        text, stamp = record.get(key), int(stamps[at])
        if not isinstance(text, str) or stamp < 0:
            continue
        line, stream, job = int(records.origin.line[at]), _stream(entry), _job(entry)
        collected = Stamp(stamp, Zone.EXACT, False)
        found = [one for part in text[:LONGEST].split("\n") for one in _read(part, rules)]
        for own, said in found:
            used[at] = True
            said.job = said.job or job
            marks.append(timed(Mark(line, stream, own, said, entry=int(codes[at])), collected))
        if not found:
            silent = Mark(line, stream, collected, entry=int(codes[at]))
            first, last = alive.get(stream, (silent, silent))
            alive[stream] = (min(first, silent, key=_time), max(last, silent, key=_time))
    marks = sorted([*marks, *(mark for seen in alive.values() for mark in seen)], key=lambda mark: mark.line)
    output.texts.add(records.origin.source, TextPart(marks if used.any() else ()))
    return used


def _time(mark: Mark) -> int:
    return -1 if mark.stamp is None else mark.stamp.ns


def _read(line: str, rules: Ruleset) -> list[tuple[Stamp | None, Said]]:
    """The line's own time and what it says."""
    if not rules.reads_all and not rules.anchors.search(line.encode(errors="replace")):
        return []
    text = bare(line).text
    found, _, _ = rules.read(text)
    try:
        own = stamp_of(text) if found else None
    except StampError:
        own = None
    return [(own, said) for said in found if said.what is not What.IGNORE]


def _job(entry: Entry) -> str:
    labels = entry.get("labels")
    named = [labels[key] for key in _JOB_LABELS if isinstance(labels, dict) and isinstance(labels.get(key), str)]
    return named[0] if named else ""


def _stream(entry: Entry) -> str:
    resource = entry.get("resource")
    labels: Any = resource.get("labels") if isinstance(resource, dict) else None
    if not isinstance(labels, Mapping):
        return ""
    return next((str(labels[key]) for key in _STREAM_LABELS if labels.get(key)), "")
