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
from goodput_cli.analysis.sheet import Sheet
from goodput_cli.analysis.shown import Answered
from goodput_cli.diagnostics.codes import Severity, code_texts
from goodput_cli.diagnostics.diagnostic import Diagnostic, merge, problems, worst_first
from goodput_cli.events.schema import EventTable


@dataclass(frozen=True)
class Finding:
    """A diagnostic, with what it does to the numbers and what to do about it."""

    code: str
    """Code of the diagnostic."""
    severity: Severity
    """How grave it is."""
    job: str | None
    """None where it is about the log as a whole (its lines)."""
    count: int
    """How often it was seen."""
    message: str
    """What was seen, in a sentence."""
    where: tuple[str, ...]
    """`file:line` or insertId of the first places."""
    effect: str
    """What it does to the numbers."""
    advice: str
    """What to do."""


@dataclass(frozen=True, repr=False)
class CheckReport(Answered):
    """What was checked, and every finding."""

    jobs: int
    """How many jobs were checked."""
    runs: int
    """How many runs these jobs had."""
    events: int
    """How many events these jobs had."""
    findings: tuple[Finding, ...]
    """The gravest first, then by code and job."""

    def count(self, severity: Severity) -> int:
        """How many findings are of a severity."""
        return sum(finding.severity == severity for finding in self.findings)

    @property
    def has_problems(self) -> bool:
        """Whether anything looks wrong: what only informs does not count."""
        return bool(problems(self.findings))

    def sheet(self) -> Sheet:
        from goodput_cli.analysis.check.sheet import check_sheet

        return check_sheet(self)


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
    yield Diagnostic.of("job_without_duration", reason, len(ordered), (place,))
    yield from far_times(ordered, now_ns)


def report(
    reading: Iterable[Diagnostic],
    names: Sequence[str],
    of_jobs: Iterable[tuple[str, Sequence[str], Diagnostic]],
    runs: int,
    events: int,
) -> CheckReport:
    """All findings in order. reading: what was noticed while reading; names: of the jobs checked. of_jobs: what was
    noticed in each, with its name and those of its log formats."""
    of_logs = [_finding(diagnostic, None, ()) for diagnostic in merge([*reading, *check_names(names)])]
    every = [*of_logs, *(_finding(diagnostic, job, formats) for job, formats, diagnostic in of_jobs)]
    every.sort(key=lambda finding: (finding.code, finding.job or "", finding.message))
    return CheckReport(len(names), runs, events, tuple(worst_first(every)))


def _finding(diagnostic: Diagnostic, job: str | None, formats: Sequence[str]) -> Finding:
    texts = code_texts(diagnostic.code)
    return Finding(
        diagnostic.code,
        diagnostic.severity,
        job,
        diagnostic.count,
        diagnostic.message,
        diagnostic.where,
        texts.effect,
        texts.advice_for(formats),
    )
