"""Diagnostics and thresholds as lines for standard error. Everything in them may come from a log: it is made safe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from goodput_cli.analysis.goodput.phrases import pin_option, threshold_line
from goodput_cli.analysis.results import Analysis, Threshold
from goodput_cli.diagnostics.diagnostic import Diagnostic, problems
from goodput_cli.vocabulary.text import safe, shorten

PLACES = 3
"""How many places of a diagnostic are shown if not all are asked for."""
_LONGEST = 400
_SEVERITIES = {"error": 0, "warning": 1, "info": 2}


def diagnostic_lines(diagnostics: Iterable[Diagnostic], *, every_place: bool = False) -> Iterator[str]:
    """`severity: code (count): message`, the worst first, the places under it."""
    for found in worst_first(diagnostics):
        count = f" ({found.count})" if found.count != 1 else ""
        message = safe(found.message)
        yield f"{found.severity}: {found.code}{count}: {message if every_place else shorten(message, _LONGEST, '...')}"
        places = places_text(found, len(found.where) if every_place else PLACES)
        if places:
            yield f"    {places}"


def worst_first(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Errors, then warnings, then what only informs."""
    return sorted(diagnostics, key=lambda one: _SEVERITIES.get(one.severity, 0))


def places_text(found: Diagnostic, most: int = PLACES) -> str:
    """The first places of a diagnostic and how many more there are."""
    shown = [shorten(safe(place), _LONGEST, "...") for place in found.where[:most]]
    more = max(found.count, len(found.where)) - len(shown)
    if shown and more > 0:
        shown.append(f"+{more} more")
    return ", ".join(shown)


def strict_lines(diagnostics: Iterable[Diagnostic]) -> Iterator[str]:
    """Why `--strict` fails a run whose diagnostics are kept quiet; nothing where it does not."""
    codes = dict.fromkeys(found.code for found in worst_first(problems(diagnostics)))
    if codes:
        yield f"--strict: something looks wrong: {', '.join(codes)} (the same without --quiet says more)"


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
