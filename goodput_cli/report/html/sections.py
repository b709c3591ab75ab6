"""What stands in each section of a report, in words: made from the analysis for templates that only lay it out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice

from goodput_cli import __version__
from goodput_cli.analysis.goodput import phrases as facts
from goodput_cli.analysis.picture.picture import tiled_windows
from goodput_cli.analysis.results import Analysis, Method, Saves
from goodput_cli.analysis.rolling import rolling_sheet
from goodput_cli.analysis.steps.sheet import REGIMES, metric_sheet, steps_sheet
from goodput_cli.analysis.steps.statistics import StepReport, falls_of_mfu, measured, step_report
from goodput_cli.analysis.table import DEFINITIONS
from goodput_cli.diagnostics.codes import code_texts
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import NotEnoughData
from goodput_cli.report.html.proof import MOST_ROWS, Link, Proof, insight_links, threshold_target
from goodput_cli.report.html.sheet import HtmlTable, html_table, with_ids
from goodput_cli.report.insight_lines import amount_text, cost_text
from goodput_cli.vocabulary.categories import Category, Look
from goodput_cli.vocabulary.option import declared
from goodput_cli.vocabulary.text import duration, duration_of_seconds, iso, percent, period, plural

_MOST_PLACES = 20
_MOST_SOURCES = 20
_LOOKS_OF_VERDICTS = {"failed": "bad", "passed": "good"}
_MARKS_OF_VERDICTS = {"failed": "\N{BALLOT X}", "passed": "\N{CHECK MARK}", "warning": "!"}


@dataclass(frozen=True)
class Fact:
    """A fact beside the headline. target: the id of what shows it."""

    name: str
    text: str
    target: str | None = None


@dataclass(frozen=True)
class Judgement:
    """A threshold in words. look: a class of the style sheet. mark: says without a colour what it says. target: the id
    of what shows the value."""

    expression: str
    look: str
    mark: str
    verdict: str
    value: str
    limit: str
    target: str | None


@dataclass(frozen=True)
class Finding:
    """A diagnostic with the registry's words about it."""

    diagnostic: Diagnostic
    places: list[str]
    more: int
    effect: str
    advice: str


@dataclass(frozen=True)
class InsightText:
    """An insight in words. id: in the page, of the first one of its kind. links: to the rows that show it; more: how
    many the page does not link."""

    id: str
    time: str
    share: str
    cost: str
    text: str
    advice: str
    command: str
    links: list[Link]
    more: int
    evidence: tuple[str, ...]


def insights(analysis: Analysis, proof: Proof) -> list[InsightText]:
    """All insights, the most costly first."""
    return [
        InsightText(
            f"insight-{one.code}",
            duration(one.ns),
            percent(one.percent),
            cost_text(one),
            one.text,
            f"{one.advice[:1].upper()}{one.advice[1:]}.",
            one.command_line(),
            *insight_links(one, proof),
            one.evidence,
        )
        for one in analysis.insights
    ]


def lost(analysis: Analysis) -> tuple[str, str]:
    """What was lost: share, and amount with its cost."""
    ns = sum(row.ns for row in analysis.badput)
    return percent(100 * ns / analysis.window.counted_ns), amount_text(analysis.price, ns)


def key_facts(analysis: Analysis, proof: Proof) -> list[Fact]:
    """What stands beside the headline: a few short facts."""
    job, reliability = analysis.job, analysis.reliability
    attempts = "attempts in the whole job" if facts.is_part(analysis) else "attempts"
    rows = [Fact(attempts, str(job.attempts)), Fact("disruptions", str(job.disruptions), "disruptions")]
    if reliability is not None and reliability.mtbf_seconds is not None:
        rows.append(Fact("MTBF", duration_of_seconds(reliability.mtbf_seconds), "disruptions"))
    rows.append(Fact("steps kept", facts.kept_text(analysis), proof.ledger.get(Category.PRODUCTIVE.id)))
    if analysis.saves is not None:
        rows.append(Fact("saves", _saves_text(analysis.saves), proof.ledger.get(Category.SAVE.id)))
    if analysis.steps.ideal_seconds is not None:
        rows.append(Fact("ideal step time", duration_of_seconds(analysis.steps.ideal_seconds), "step-time"))
    if facts.has_ending(analysis):
        rows.append(Fact("ending", facts.ending_text(job)))
    return rows


def _saves_text(saves: Saves) -> str:
    if saves.interval_seconds is None:
        return str(saves.count)
    return f"{saves.count} ({duration_of_seconds(saves.interval_seconds)} apart)"


def rolling_windows(analysis: Analysis) -> HtmlTable:
    """The windows that were asked for, else some that tile the window of the question."""
    return html_table(rolling_sheet(tiled_windows(analysis)), MOST_ROWS)


def find_steps(analysis: Analysis) -> StepReport | str:
    """The step times of the window, or why there are none."""
    try:
        return step_report(analysis)
    except NotEnoughData as reason:
        return str(reason)


def step_tables(analysis: Analysis, report: StepReport | str) -> HtmlTable | str:
    """The step statistics as `goodput steps` shows them, or why there are none."""
    if isinstance(report, str):
        return report
    table = html_table(steps_sheet(analysis, report, with_metrics=False))
    parts = (with_ids(part, "slow") if part.title == REGIMES else part for part in table.more)
    return replace(with_ids(table, "step"), more=tuple(parts))


def metric_table(analysis: Analysis, report: StepReport | str) -> HtmlTable | None:
    """What the program measured; None where it recorded nothing."""
    metrics = measured(analysis)
    regimes = () if isinstance(report, str) else report.regimes
    return html_table(metric_sheet(metrics, falls_of_mfu(analysis, regimes))) if metrics else None


def thresholds(analysis: Analysis, proof: Proof) -> list[Judgement]:
    """The thresholds as they were asked and judged."""
    codes = frozenset(one.code for one in analysis.insights) if analysis.thresholds else frozenset()
    return [
        Judgement(
            threshold.expression,
            _LOOKS_OF_VERDICTS.get(threshold.verdict, "warn"),
            _MARKS_OF_VERDICTS.get(threshold.verdict, "?"),
            facts.threshold_verdict(threshold),
            facts.threshold_value(threshold),
            facts.threshold_limit(threshold),
            threshold_target(threshold, proof, codes),
        )
        for threshold in analysis.thresholds
    ]


def diagnostics(analysis: Analysis) -> list[Finding]:
    """What was found, with what it does to the numbers."""
    findings = []
    for one in analysis.diagnostics:
        code = code_texts(one.code)
        places = list(islice(one.where, _MOST_PLACES))
        more = max(one.count, len(one.where)) - len(places)
        findings.append(Finding(one, places, more if places else 0, code.effect, code.advice_for(analysis.job.formats)))
    return findings


def definitions() -> list[tuple[str, Look | None, str]]:
    """Every number that a report can hold in a sentence, categories first."""
    categories = [(category.id, category.look, category.row.meaning) for category in Category]
    return [*categories, *((name, None, meaning) for name, meaning in DEFINITIONS.items())]


def method(analysis: Analysis) -> list[tuple[str, str]]:
    """Which question was asked, with which options, of which logs."""
    job, window = analysis.job, analysis.window
    choices = [(one.option, getattr(analysis.method, one.name)) for one in declared(Method)]
    reference = facts.reference_text(analysis)
    rows = [
        ("window", f"{iso(window.start_ns)} to {iso(window.end_ns)}"),
        ("job", f"{iso(job.start_ns)} to {iso(job.end_ns)}"),
        ("log formats", " + ".join(job.formats) or "none"),
        ("progress from", "steps" if analysis.timeline.records is not None else "checkpoints"),
        ("reference", reference or "none"),
        *((one.label, text) for one, value in choices if (text := one.phrase(value))),
    ]
    rows += [("excluded", period(start, end)) for start, end in analysis.timeline.rules.exclusions]
    sources = analysis.table.sources
    rows += [("source", source) for source in sources[:_MOST_SOURCES]]
    if len(sources) > _MOST_SOURCES:
        rows.append(("source", f"and {plural(len(sources) - _MOST_SOURCES, 'more')}"))
    return [*rows, ("made by", f"goodput-cli {__version__}")]
