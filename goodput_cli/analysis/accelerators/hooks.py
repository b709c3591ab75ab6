"""What accelerators add to the answers about a job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from goodput_cli.analysis.capability import By, Capability
from goodput_cli.events.accelerators.hooks import DEVICE_SAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from goodput_cli.analysis.analysis_data import AnalysisData
    from goodput_cli.analysis.insights.kinds import Candidate
    from goodput_cli.analysis.sheet import Family, Sheet
    from goodput_cli.diagnostics.diagnostic import Diagnostic


def _lines(analysis: AnalysisData) -> Iterable[str]:
    from goodput_cli.analysis.accelerators.devices import devices_lines, devices_of

    return devices_lines(analysis.part(devices_of), analysis.diagnostics)


def _families(analysis: AnalysisData) -> Iterable[Family]:
    from goodput_cli.analysis.accelerators.devices import device_families

    return device_families(analysis)


def _sections(analysis: AnalysisData, by: By) -> Iterable[Sheet]:
    from goodput_cli.analysis.accelerators.devices import device_sheets

    return device_sheets(analysis, by)


def _insights(analysis: AnalysisData, explained: int) -> Iterable[Candidate]:
    if not DEVICE_SAMPLES.of(analysis.table):
        return ()
    from goodput_cli.analysis.accelerators.insights import find_idle_devices

    return find_idle_devices(analysis, explained)


def _hang_note(analysis: AnalysisData, start: int, end: int, usual: int) -> str:
    if not DEVICE_SAMPLES.of(analysis.table):
        return ""
    from goodput_cli.analysis.accelerators.insights import idle_device_in_hang

    return idle_device_in_hang(analysis, start, end, usual)


def _diagnostics(analysis: AnalysisData) -> Iterator[Diagnostic]:
    if not DEVICE_SAMPLES.of(analysis.table):
        return
    from goodput_cli.analysis.accelerators.devices import more_than_expected
    from goodput_cli.diagnostics.diagnostic import Diagnostic

    if text := more_than_expected(analysis):
        yield Diagnostic.of("more_devices", text)


ACCELERATORS = Capability(
    name="accelerators",
    about="how busy the devices of a job were, and their energy",
    has_inputs=lambda table: bool(DEVICE_SAMPLES.of(table)),
    report_lines=_lines,
    screen_lines=lambda analysis, _: _lines(analysis),
    families=_families,
    step_sections=_sections,
    insights=_insights,
    diagnostics=_diagnostics,
    hang_note=_hang_note,
)
