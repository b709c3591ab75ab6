"""JUnit XML: a test case a threshold, so that CI systems show a gate where they show tests.

What failed is a failure, what a failing threshold could not judge an error, what only would have warned is skipped; a
warning passes and is said in `system-out`, with all other thresholds. The figures of the analysis are properties. The
document keeps the order and the attributes of the strict schema (Ant's), which the looser ones take as well. What may
be wrong with the log is in `system-err`: a gate that passes on half a log should be seen to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from goodput_cli.analysis.goodput import phrases
from goodput_cli.analysis.results import Analysis, CategoryTime, Threshold
from goodput_cli.diagnostics.diagnostic import problems
from goodput_cli.fleet.report import FleetReport
from goodput_cli.fleet.sheet import FleetSheet
from goodput_cli.report.base import Page
from goodput_cli.report.messages import diagnostic_lines
from goodput_cli.vocabulary.text import finite, iso, iso_to_the_second, safe, seconds_text

_NAME = "goodput"
_NO_TIME = "0"
"""A threshold is judged in no time; how long the job took is a property."""


def render(analysis: Analysis, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """The analysis as a JUnit document. XML cannot hold every character, escaped or not: `safe` shows those that it
    cannot hold (and those that act on a terminal) as `\\x1b`."""
    root = Element("testsuites")
    suite = SubElement(root, "testsuite", _attributes(analysis.thresholds, analysis.window.end_ns))
    properties = SubElement(suite, "properties")
    for name, value in _properties(analysis):
        SubElement(properties, "property", name=safe(name), value=safe(value))
    classname = f"{_NAME}.{safe(analysis.job.name)}"
    for threshold in analysis.thresholds:
        name = safe(threshold.expression) + ("" if threshold.fails else " (only warns)")
        _outcome(_case(suite, classname, name), threshold)
    if not analysis.thresholds:
        _case(suite, classname, _headline(analysis))
    SubElement(suite, "system-out").text = "".join(f"{safe(line)}\n" for line in _said(analysis))
    wrong = diagnostic_lines(problems(analysis.diagnostics))
    SubElement(suite, "system-err").text = "".join(f"{line}\n" for line in wrong)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def render_fleet(sheet: FleetSheet, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """The thresholds of a fleet as a JUnit document."""
    report = sheet.report
    assert report is not None
    root = Element("testsuites")
    suite = SubElement(root, "testsuite", _attributes(sheet.thresholds, report.end_ns))
    properties = SubElement(suite, "properties")
    for name, value in _fleet_properties(report):
        SubElement(properties, "property", name=name, value=safe(value))
    for threshold in sheet.thresholds:
        name = safe(threshold.expression) + ("" if threshold.fails else " (only warns)")
        _outcome(_case(suite, f"{_NAME}.fleet", name), threshold)
    if not sheet.thresholds:
        _case(suite, f"{_NAME}.fleet", safe(sheet.title))
    said = [sheet.title, *sheet.summary, *(f"threshold {phrases.threshold_line(one)}" for one in sheet.thresholds)]
    SubElement(suite, "system-out").text = "".join(f"{safe(line)}\n" for line in said)
    wrong = diagnostic_lines(problems(report.diagnostics))
    SubElement(suite, "system-err").text = "".join(f"{line}\n" for line in wrong)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _fleet_properties(report: FleetReport) -> Iterator[tuple[str, str]]:
    """Name and value of the figures; what is not known is left out."""
    yield "window.start", iso(report.start_ns)
    yield "window.end", iso(report.end_ns)
    yield "runs", str(report.coverage.runs)
    yield "not_analysed", str(report.coverage.not_analysed)
    if report.total.goodput_percent is not None:
        yield "goodput.percent", repr(report.total.goodput_percent)
    if report.total.lost_hours is not None:
        yield "lost_hours", repr(report.total.lost_hours)
    yield "failures", str(report.sums.failures)


def _attributes(thresholds: Sequence[Threshold], end_ns: int) -> dict[str, str]:
    """Counts of the suite. timestamp: the end of the window, UTC (the schema allows no zone): nobody asked for now."""
    kinds = [_kind(threshold) for threshold in thresholds]
    return {
        "name": _NAME,
        "package": _NAME,
        "id": "0",
        "hostname": "localhost",
        "timestamp": iso_to_the_second(end_ns).removesuffix("Z"),
        "tests": str(len(kinds) or 1),
        "failures": str(kinds.count("failure")),
        "errors": str(kinds.count("error")),
        "skipped": str(kinds.count("skipped")),
        "time": _NO_TIME,
    }


def _case(suite: Element, classname: str, name: str) -> Element:
    return SubElement(suite, "testcase", name=name, classname=classname, time=_NO_TIME)


def _kind(threshold: Threshold) -> str | None:
    """The element inside the test case; None where it passed."""
    if threshold.verdict == "not_recorded":
        return "error" if threshold.fails else "skipped"
    return "failure" if threshold.verdict == "failed" else None


def _outcome(case: Element, threshold: Threshold) -> None:
    kind = _kind(threshold)
    if kind is not None:
        reason = phrases.threshold_reason(threshold)
        outcome = SubElement(case, kind, message=reason, type=threshold.verdict)
        outcome.text = safe(phrases.threshold_line(threshold))


def _properties(analysis: Analysis) -> Iterator[tuple[str, str]]:
    """Name and value of every figure; what is not known is left out."""
    job, window = analysis.job, analysis.window
    yield "job.name", job.name
    yield "job.ending", job.ending
    yield "job.attempts", str(job.attempts)
    yield "job.disruptions", str(job.disruptions)
    yield "window.start", iso(window.start_ns)
    yield "window.end", iso(window.end_ns)
    yield "window.seconds", seconds_text(window.ns)
    yield "window.excluded_seconds", seconds_text(window.excluded_ns)
    yield from _amount("goodput", analysis.goodput)
    for row in analysis.badput:
        yield from _amount(f"badput.{row.name}", row)
    if analysis.not_recorded:
        yield "not_recorded", " ".join(analysis.not_recorded)


def _amount(name: str, amount: CategoryTime) -> Iterator[tuple[str, str]]:
    yield f"{name}.seconds", seconds_text(amount.ns)
    if finite(amount.percent) is not None:
        yield f"{name}.percent", repr(amount.percent)


def _headline(analysis: Analysis) -> str:
    share, amount = phrases.headline(analysis)
    return f"goodput {share}, {amount}"


def _said(analysis: Analysis) -> Iterator[str]:
    """What the command says of the gate."""
    yield f"{analysis.job.name}: {_headline(analysis)}"
    yield phrases.window_text(analysis)
    yield from (f"threshold {phrases.threshold_line(threshold)}" for threshold in analysis.thresholds)
