"""What is asked of Cloud Logging, as text of its query language. A value from a person is a value, never language."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

from goodput_cli.vocabulary.text import iso_of_nine_digits

METRICS_LOG = "ml_diagnostics_metric"
"""The log whose entries name their job in the labels of the resource, not in the payload (formats D)."""

SYSTEM_METRICS = (
    "tpu_duty_cycle", "tpu_tensorcore_utilization", "hbm_utilization", "host_cpu_utilization",
    "host_memory_utilization",
)  # fmt: skip
"""Written by every host each 10 s, whether steps go on or not."""
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


@dataclass(frozen=True)
class LogQuery:
    """Entries of one log of a project. All times in ns since 1970 UTC; None: no bound.

    job_name: only entries of this job (Cloud Logging compares without regard to case; the analysis picks exactly).
    since_ns (included), before_ns (excluded): the entry's timestamp. received_ns: when Cloud Logging got it.
    """

    project: str
    log_id: str
    job_name: str | None = None
    since_ns: int | None = None
    before_ns: int | None = None
    received_ns: int | None = None
    heartbeats: bool = True
    """Whether system metrics are asked for, which are 99 in 100 entries of the log of metrics."""

    @property
    def log_name(self) -> str:
        """`projects/PROJECT/logs/LOG_ID`, the identifier escaped as Cloud Logging has it."""
        return f"projects/{self.project}/logs/{quote(self.log_id, safe='')}"

    def text(self) -> str:
        """The filter: clauses that all must hold."""
        clauses = [f"logName={quoted(self.log_name)}"]
        if self.job_name is not None:
            clauses.append(_of_job(self.log_id, self.job_name))
        if not self.heartbeats and self.log_id == METRICS_LOG:
            names = " OR ".join(map(quoted, SYSTEM_METRICS))
            clauses.append(f"NOT resource.labels.namespace=({names})")
        if self.since_ns is not None:
            clauses.append(f'timestamp>="{rfc3339(self.since_ns)}"')
        if self.before_ns is not None:
            clauses.append(f'timestamp<"{rfc3339(self.before_ns)}"')
        if self.received_ns is not None:
            clauses.append(f'receiveTimestamp>="{rfc3339(self.received_ns)}"')
        return " AND ".join(clauses)


def _of_job(log_id: str, job: str) -> str:
    """The clause for entries of a job. Runs of metrics are named by the job and what its start adds to it, or by a hash
    of which nobody knows the job."""
    if log_id != METRICS_LOG:
        return f"jsonPayload.job_name={quoted(job)}"
    field = "resource.labels.node_id"
    name = re.sub(r"[^a-z0-9]+", "-", job.lower()).strip("-")
    patterns = [f"{field}={quoted(job)}", f'{field}=~"^[0-9a-f]{{64}}$"']
    if name:
        patterns.insert(1, f'{field}=~"^{name}(-|$)"')
    return f"({' OR '.join(patterns)})"


def quoted(value: str) -> str:
    """A string of the query language that means exactly `value`."""
    return '"' + "".join(_ESCAPES.get(one) or _plain(one) for one in value) + '"'


def _plain(character: str) -> str:
    """A character as it is, or escaped where it is a control character or half of a pair."""
    return character if character.isprintable() or ord(character) > 0xFFFF else f"\\u{ord(character):04x}"


def rfc3339(ns: int) -> str:
    """An instant as filters and entries of Cloud Logging hold it, of 1970 at the earliest; such texts sort as the
    instants do."""
    return iso_of_nine_digits(max(ns, 0))


def log_ids(job_name: str | None, log_id: str, log_name: str | None) -> tuple[str, ...]:
    """The logs to look in: the one that is named, or both that the libraries write a job to by convention."""
    named = log_name or log_id
    if named:
        return (_identifier(named),)
    return (f"{job_name}-goodput", f"goodput_{job_name}")


def _identifier(name: str) -> str:
    """The log's identifier, also where the whole `projects/P/logs/ID` was given."""
    _, separator, identifier = name.partition("/logs/")
    return unquote(identifier) if separator else name
