"""Analyses with thresholds, and with hostile text, for the tests of formats that machines read."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import xmlschema

from goodput_cli.analysis.goodput.analyse import evaluate
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.goodput.thresholds import parse_threshold
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.report.base import Page, load_renderer
from tests.support.analyses import MINUTE, amount, primer

SAMPLES = Path(__file__).parent.parent.parent / "sample_logs"
EVIL = [
    "<script>alert(1)</script>", "]]>", "=cmd|'/C calc'!A0", "[red]x[/red]", "\x1b[31m", "\u202egnp.exe", "a\nb\r\nc",
    "\ud800", "\x00", "\ufffe", '"}\n# EOF\nevil 1', "\\", "</details></testsuite>", "```\n# x", "&amp;", "|",
    "L" * 10_000,
]  # fmt: skip


def render(name: str, analysis: Analysis) -> str:
    text = load_renderer(name)(analysis, Page())
    assert isinstance(text, str)
    return text


def gated(*fail_if: str, warn_if: tuple[str, ...] = (), analysis: Analysis | None = None) -> Analysis:
    analysis = analysis or primer(not_recorded=("queued", "training_prep"))
    asked = [*map(parse_threshold, fail_if), *(parse_threshold(text, fails=False) for text in warn_if)]
    return replace(analysis, thresholds=evaluate(asked, analysis))


def all_verdicts() -> Analysis:
    return gated("goodput<90", "disruptions>3", "queued>1h", warn_if=("goodput<60", "goodput<10", "queued>5%"))


def evil(text: str) -> Analysis:
    """The text wherever a log or a person can put it."""
    total = 200 * MINUTE
    rows = (amount("custom_badput_events", 100 * MINUTE, total, text), amount("other", MINUTE, total, text + "2"))
    job = replace(primer().job, name=text)
    found = (Diagnostic("x", "warning", text, 1, (text,)),)
    asked = evaluate([parse_threshold(f"custom:x{text[:900]}x>5", fails=True)], primer())
    return primer(job=job, badput=rows, diagnostics=found, thresholds=asked)


@cache
def schema() -> xmlschema.XMLSchema:
    return xmlschema.XMLSchema(SAMPLES.parent / "tests" / "report" / "junit.xsd")


def junit(analysis: Analysis) -> Element:
    """The suite of a valid document."""
    text = render("junit", analysis)
    schema().validate(text)
    (suite,) = ElementTree.fromstring(text)
    return suite
