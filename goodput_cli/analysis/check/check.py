"""A linter for event logs (`goodput check`): what is wrong, what that does to the numbers, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.order import in_order
from goodput_cli.analysis.check.clocks import check_clocks, far_times
from goodput_cli.analysis.check.coverage import check_coverage
from goodput_cli.analysis.check.hosts import check_hosts
from goodput_cli.analysis.check.names import check_names
from goodput_cli.analysis.check.skew import check_skew
from goodput_cli.analysis.goodput.findings import findings
from goodput_cli.diagnostics.codes import CODES, code_texts
from goodput_cli.diagnostics.diagnostic import Diagnostic, Severity, merge
from goodput_cli.events.schema import EventTable

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
"""The gravest first."""


@dataclass(frozen=True)
class Finding:
    """One thing that a check found. job: None where it is about the log as a whole (its lines). count, message and
    where: as in `Diagnostic`. effect: what it does to the numbers. advice: what to do."""

    code: str
    severity: Severity
    job: str | None
    count: int
    message: str
    where: tuple[str, ...]
    effect: str
    advice: str


@dataclass(frozen=True)
class CheckReport:
    """What was checked (jobs, their runs, events), and every finding: the gravest first, then by code and job."""

    jobs: int
    runs: int
    events: int
    findings: tuple[Finding, ...]

    def count(self, severity: Severity) -> int:
        """How many findings are of a severity."""
        return sum(found.severity == severity for found in self.findings)

    @property
    def has_problems(self) -> bool:
        """Whether anything looks wrong: what only informs does not count."""
        return any(found.severity != "info" for found in self.findings)


def check_job(timeline: Timeline, now_ns: int) -> Iterator[Diagnostic]:
    """What the accounting noticed about a job and what the checks find. now_ns: the present, ns since 1970 UTC."""
    yield from merge(findings(timeline))
    yield from check_clocks(timeline, now_ns)
    yield from check_skew(timeline)
    yield from check_hosts(timeline)
    yield from check_coverage(timeline)


def check_unaccountable(table: EventTable, now_ns: int, reason: str) -> Iterator[Diagnostic]:
    """The same for a job whose events span no time."""
    ordered = in_order(table).table
    place = ordered.where(0)
    yield Diagnostic("job_without_duration", CODES["job_without_duration"].severity, reason, len(ordered), (place,))
    yield from far_times(ordered, now_ns)


def report(
    reading: Iterable[Diagnostic],
    names: Sequence[str],
    of_jobs: Iterable[tuple[str, Diagnostic]],
    runs: int,
    events: int,
) -> CheckReport:
    """All findings in order. reading: what was noticed while reading; names: of the jobs checked."""
    about_logs = [_finding(one, None) for one in merge([*reading, *check_names(names)])]
    about_jobs = [_finding(one, job) for job, one in of_jobs]
    order = {severity: place for place, severity in enumerate(SEVERITIES)}
    found = sorted(
        [*about_logs, *about_jobs],
        key=lambda one: (order[one.severity], one.code, one.job or "", one.message),
    )
    return CheckReport(len(names), runs, events, tuple(found))


def _finding(one: Diagnostic, job: str | None) -> Finding:
    texts = code_texts(one.code)
    return Finding(one.code, one.severity, job, one.count, one.message, one.where, texts.effect, texts.advice)
