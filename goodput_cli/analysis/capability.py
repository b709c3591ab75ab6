"""What a capability adds to the answers about a job: its hooks.

A capability is one folder per layer with a module `hooks`, which declares one `Capability`. A hook yields nothing for a
log without its inputs, and imports what it needs when it is called: few logs have the inputs of every capability.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from goodput_cli.analysis.analysis_data import AnalysisData
    from goodput_cli.analysis.insights.kinds import Candidate
    from goodput_cli.analysis.sheet import Family, Sheet
    from goodput_cli.diagnostics.diagnostic import Diagnostic
    from goodput_cli.events.schema import EventTable

By = Literal["phase", "rank", "host", "device"]
"""What the rows of `goodput steps --by` are about."""


def _nothing(*_: object) -> tuple[()]:
    return ()


def _unchanged(_: object, candidate: Candidate) -> Candidate:
    return candidate


@dataclass(frozen=True, kw_only=True)
class AnswerField:
    """A field that a capability adds to the JSON answer of a command."""

    key: str
    """Its key in JSON."""
    kind: Callable[[], type]
    """Returns its type, a `written` dataclass."""
    words: str
    """Its description in the schema."""
    of: Callable[[AnalysisData], object | None]
    """Returns its value; None: null."""


@dataclass(frozen=True, kw_only=True)
class Capability:
    """What one capability adds. A hook that is not given adds nothing."""

    name: str
    """Name of its folder in each layer."""
    about: str
    """Its subject, in a few words."""
    has_inputs: Callable[[EventTable], bool] = lambda _: False
    """Whether a log contains anything that only this capability reads."""
    report_lines: Callable[[AnalysisData], Iterable[str]] = _nothing
    """Sentences of the full report, after the step times. They may contain text of the log."""
    screen_lines: Callable[[AnalysisData, int], Iterable[str]] = _nothing
    """Lines of the first screen, by its width in columns. They may contain text of the log."""
    facts: Callable[[AnalysisData], Iterable[tuple[str, str]]] = _nothing
    """Name and text of facts next to the headline of the HTML report."""
    families: Callable[[AnalysisData], Iterable[Family]] = _nothing
    """Metrics, also those without a sample (docs/ci.md)."""
    step_sections: Callable[[AnalysisData, By], Iterable[Sheet]] = _nothing
    """Tables of `goodput steps`."""
    disruption_notes: Callable[[AnalysisData], Iterable[str]] = _nothing
    """Sentences below the list of `goodput disruptions`. They may contain text of the log."""
    disruption_sections: Callable[[AnalysisData], Iterable[Sheet]] = _nothing
    """Tables of `goodput disruptions --full`."""
    insights: Callable[[AnalysisData, int], Iterable[Candidate]] = _nothing
    """Candidates of insights, by the time inside kept training (ns) that insights about slow steps contain."""
    diagnostics: Callable[[AnalysisData], Iterable[Diagnostic]] = _nothing
    """Problems of the log that only the analysis shows."""
    completed_insight: Callable[[AnalysisData, Candidate], Candidate] = _unchanged
    """Completes the text and advice of an insight that another finder found"""
    hang_note: Callable[[AnalysisData, int, int, int], str] = lambda *_: ""
    """Text about the likely cause of a hang in [start, end) (ns); "" if unknown. Last argument: usual step time (ns)"""
    answer: tuple[AnswerField, ...] = ()
    """Fields of the JSON answer of `goodput analyze`"""
    last_end: tuple[AnswerField, ...] = ()
    """Fields of `last_end` in that answer"""
    steps_answer: tuple[AnswerField, ...] = ()
    """Fields of the JSON answer of `goodput steps`"""


HOOKS = tuple(one.name for one in fields(Capability) if one.name not in ("name", "about"))
"""Names of all hooks."""
