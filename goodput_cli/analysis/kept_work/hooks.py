"""What the work of kept steps adds to the answers about a job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from goodput_cli.analysis.capability import By, Capability

if TYPE_CHECKING:
    from collections.abc import Iterable

    from goodput_cli.analysis.analysis_data import AnalysisData
    from goodput_cli.analysis.sheet import Family, Sheet


def _lines(analysis: AnalysisData) -> Iterable[str]:
    from goodput_cli.analysis.kept_work.sheet import work_lines

    return work_lines(analysis)


def _screen_lines(analysis: AnalysisData, width: int) -> Iterator[str]:
    from goodput_cli.analysis.kept_work.sheet import work_line

    if (line := work_line(analysis, width)) is not None:
        yield line


def _facts(analysis: AnalysisData) -> Iterable[tuple[str, str]]:
    from goodput_cli.analysis.kept_work.sheet import work_facts

    return work_facts(analysis)


def _families(analysis: AnalysisData) -> Iterator[Family]:
    from goodput_cli.analysis.kept_work.sheet import eta_of
    from goodput_cli.analysis.sheet import family_of
    from goodput_cli.vocabulary.text import seconds_text

    eta = analysis.part(eta_of)
    done = None if eta is None else seconds_text(eta.done_ns)
    yield family_of("goodput_eta_timestamp_seconds", "When the job will be done at this goodput, since 1970 UTC.", done)


def _sections(analysis: AnalysisData, _: By) -> Iterator[Sheet]:
    from goodput_cli.analysis.kept_work.sheet import work_sheet

    if (sheet := work_sheet(analysis)) is not None:
        yield sheet


KEPT_WORK = Capability(
    name="kept_work",
    about="tokens, MFU and cost of the kept steps, and when the job will be done",
    report_lines=_lines,
    screen_lines=_screen_lines,
    facts=_facts,
    families=_families,
    step_sections=_sections,
)
