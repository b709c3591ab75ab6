"""Diagnostics and thresholds as lines for standard error. Everything in them may come from a log: it is made safe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from goodput_cli.analysis.goodput.phrases import pin_option, threshold_line
from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.threshold import Threshold
from goodput_cli.diagnostics.diagnostic import Diagnostic, problems, worst_first
from goodput_cli.vocabulary.text import safe, shorten

PLACES = 3
"""How many places of a diagnostic are shown if not all are asked for."""
_LONGEST = 400


def diagnostic_lines(diagnostics: Iterable[Diagnostic], *, every_place: bool = False) -> Iterator[str]:
    """`severity: code (count): message`, the worst first, the places under it."""
    for diagnostic in worst_first(diagnostics):
        count = f" ({diagnostic.count})" if diagnostic.count != 1 else ""
        message = safe(diagnostic.message)
        shown = message if every_place else shorten(message, _LONGEST, "...")
        yield f"{diagnostic.severity}: {diagnostic.code}{count}: {shown}"
        places = places_text(diagnostic, len(diagnostic.where) if every_place else PLACES)
        if places:
            yield f"    {places}"


def explaining_line(diagnostics: Iterable[Diagnostic]) -> Iterator[str]:
    """How to learn more about the worst of the diagnostics; nothing where there are none."""
    for worst in list(worst_first(diagnostics))[:1]:
        yield f"`goodput help {worst.code}` says what that does to the numbers, and what to do"


def places_text(diagnostic: Diagnostic, most: int = PLACES) -> str:
    """The first places of a diagnostic and how many more there are."""
    shown = [shorten(safe(place), _LONGEST, "...") for place in diagnostic.where[:most]]
    more = max(diagnostic.count, len(diagnostic.where)) - len(shown)
    if shown and more > 0:
        shown.append(f"+{more} more")
    return ", ".join(shown)


def strict_lines(diagnostics: Iterable[Diagnostic], *, quiet: bool) -> Iterator[str]:
    """Why `--strict` fails a run; nothing where it does not. quiet: whether the diagnostics are not said."""
    codes = dict.fromkeys(diagnostic.code for diagnostic in worst_first(problems(diagnostics)))
    if codes:
        more = " (the same without --quiet says more)" if quiet else ""
        yield f"--strict: something looks wrong: {', '.join(codes)}{more}"


def threshold_lines(thresholds: Iterable[Threshold], *, with_passes: bool = True) -> Iterator[str]:
    """One line per threshold: what was asked, how it ended, the value and the limit."""
    for threshold in thresholds:
        if with_passes or threshold.verdict != "passed":
            yield f"threshold {safe(threshold_line(threshold))}"


def reference_caution(analysis: Analysis) -> Iterator[str]:
    """A warning where thresholds were judged with a reference step time that the log itself gave (accounting §6)."""
    option = pin_option(analysis)
    if option and analysis.thresholds:
        yield f"warning: thresholds are judged by a reference step time that this log itself gave; pin it with {option}"
