"""JUnit XML: a test case a threshold, so that CI systems show a gate where they show tests.

What failed is a failure, what a failing threshold could not judge an error, what only would have warned is skipped; a
warning passes and is said in `system-out`, with all other thresholds. The figures of the analysis are properties. The
document keeps the order and the attributes of the strict schema (Ant's), which the looser ones take as well. What may
be wrong with the log is in `system-err`: a gate that passes on half a log should be seen to.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from goodput_cli.analysis.goodput import phrases
from goodput_cli.analysis.published import Published
from goodput_cli.analysis.results import Analysis, CategoryTime
from goodput_cli.analysis.threshold import Threshold
from goodput_cli.diagnostics.diagnostic import problems
from goodput_cli.report.base import Page
from goodput_cli.report.messages import diagnostic_lines
from goodput_cli.vocabulary.text import finite, iso, iso_to_the_second, safe, seconds_text

_NAME = "goodput"
_NO_TIME = "0"
"""A threshold is judged in no time; how long the job took is a property."""


def render(analysis: Analysis, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """The analysis as a JUnit document."""
    return document(_published(analysis))


def document(answer: Published) -> str:
    """An answer as a JUnit document. XML cannot hold every character, escaped or not: `safe` shows those that it
    cannot hold (and those that act on a terminal) as `\\x1b`."""
    root = Element("testsuites")
    suite = SubElement(root, "testsuite", _attributes(answer))
    properties = SubElement(suite, "properties")
    for name, value in answer.properties:
        SubElement(properties, "property", name=safe(name), value=safe(value))
    classname = f"{_NAME}.{safe(answer.job)}"
    for threshold in answer.thresholds:
        name = safe(threshold.expression) + ("" if threshold.fails else " (only warns)")
        _outcome(_case(suite, classname, name), threshold)
    if not answer.thresholds:
        _case(suite, classname, safe(answer.headline))
    SubElement(suite, "system-out").text = "".join(f"{safe(line)}\n" for line in _said(answer))
    wrong = diagnostic_lines(problems(answer.diagnostics))
    SubElement(suite, "system-err").text = "".join(f"{line}\n" for line in wrong)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _attributes(answer: Published) -> dict[str, str]:
    """Counts of the suite. timestamp: the end of the window, UTC (the schema allows no zone): nobody asked for now."""
    kinds = [_kind(threshold) for threshold in answer.thresholds]
    return {
        "name": _NAME,
        "package": _NAME,
        "id": "0",
        "hostname": "localhost",
        "timestamp": iso_to_the_second(answer.end_ns).removesuffix("Z"),
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


def _said(answer: Published) -> Iterator[str]:
    """What the command says of the gate."""
    yield f"{answer.job}: {answer.headline}"
    yield from answer.said
    yield from (f"threshold {phrases.threshold_line(threshold)}" for threshold in answer.thresholds)


def _published(analysis: Analysis) -> Published:
    share, amount = phrases.headline(analysis)
    return Published(
        job=analysis.job.name,
        end_ns=analysis.window.end_ns,
        headline=f"goodput {share}, {amount}",
        said=(phrases.window_text(analysis),),
        properties=tuple(_properties(analysis)),
        thresholds=analysis.thresholds,
        diagnostics=analysis.diagnostics,
    )
