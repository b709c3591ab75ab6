"""JUnit XML with one test case per threshold, so that CI systems show gates with the tests.

A failed gate is a failure, an unjudged one an error, and an unjudged threshold that only warns is skipped. A warning
passes and is listed in `system-out`, like all other thresholds. The figures of the answer are properties. The document
keeps the order and the attributes of the strict schema (Ant's), which tolerant readers accept too. Possible problems of
the log are in `system-err`, because a gate that passes on half a log needs attention.
"""

from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from goodput_cli.analysis.document import Document
from goodput_cli.analysis.goodput import phrases
from goodput_cli.analysis.goodput.phrases import diagnostic_lines
from goodput_cli.analysis.sheet import PublishedAnswer
from goodput_cli.analysis.threshold import Threshold
from goodput_cli.diagnostics.diagnostic import problems
from goodput_cli.report.base import Page
from goodput_cli.vocabulary.text import iso_to_the_second, safe

_NAME = "goodput"
_NO_TIME = "0"
"""Judging a threshold takes no time; the duration of the job is a property."""


def render(document: Document, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """Return the gates of an answer as a JUnit document. XML cannot contain every character, even escaped: `safe` shows
    those (and control characters of terminals) as `\\x1b`."""
    answer = document.gates()
    assert answer is not None  # `report.base` has checked that the command offers them
    root = Element("testsuites")
    suite = SubElement(root, "testsuite", _attributes(answer))
    properties = SubElement(suite, "properties")
    for name, value in answer.properties:
        SubElement(properties, "property", name=safe(name), value=safe(value))
    classname = f"{_NAME}.{safe(answer.job)}"
    for threshold in answer.thresholds:
        name = safe(threshold.expression) + ("" if threshold.fails else " (only warns)")
        _outcome(_case(suite, classname, name), threshold, answer)
    if not answer.thresholds:
        _case(suite, classname, safe(answer.headline))
    judged = (f"threshold {phrases.threshold_line(threshold)}" for threshold in answer.thresholds)
    said = (f"{answer.job}: {answer.headline}", *answer.said, *judged)
    SubElement(suite, "system-out").text = "".join(f"{safe(line)}\n" for line in said)
    wrong = diagnostic_lines(problems(answer.diagnostics))
    SubElement(suite, "system-err").text = "".join(f"{line}\n" for line in wrong)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _attributes(answer: PublishedAnswer) -> dict[str, str]:
    """Return the counts of the suite. timestamp: the end of the window in UTC, not the current time (the schema allows
    no zone)."""
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
    """Return the element inside the test case; None if it passed."""
    if threshold.verdict == "not_recorded":
        return "error" if threshold.fails else "skipped"
    return "failure" if threshold.verdict == "failed" else None


def _outcome(case: Element, threshold: Threshold, answer: PublishedAnswer) -> None:
    """Add the reason why a threshold did not pass. CI systems show this text first."""
    kind = _kind(threshold)
    if kind is not None:
        reason = phrases.threshold_reason(threshold)
        outcome = SubElement(case, kind, message=reason, type=threshold.verdict)
        why = (answer.verdict or answer.said) if kind == "failure" else ()
        outcome.text = "\n".join(map(safe, (phrases.threshold_line(threshold), *why)))
