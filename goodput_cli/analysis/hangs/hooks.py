"""What hangs add to the answers about a job."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from goodput_cli.analysis.capability import AnswerField, By, Capability

if TYPE_CHECKING:
    from collections.abc import Iterable

    from goodput_cli.analysis.analysis_data import AnalysisData
    from goodput_cli.analysis.hangs.hang import Hang, HungNow
    from goodput_cli.analysis.hangs.report import SliceCapacity, Stragglers
    from goodput_cli.analysis.insights.kinds import Candidate
    from goodput_cli.analysis.sheet import Family, Sheet


def _kind() -> type:
    from goodput_cli.analysis.hangs.hang import Hang

    return Hang


def _now_kind() -> type:
    from goodput_cli.analysis.hangs.hang import HungNow

    return HungNow


def _now(analysis: AnalysisData) -> HungNow | None:
    hang = _last(analysis) if analysis.job.ending == "not_logged" else None
    if hang is None:
        return None
    from goodput_cli.analysis.hangs.hang import HungNow

    return HungNow(hang)


def _hangs(analysis: AnalysisData) -> dict[int, Hang]:
    from goodput_cli.analysis.hangs.report import hangs_of

    return analysis.part(hangs_of)


def _last(analysis: AnalysisData) -> Hang | None:
    return _hangs(analysis).get(len(analysis.timeline.attempts) - 1)


def _sections(analysis: AnalysisData) -> Iterable[Sheet]:
    from goodput_cli.analysis.hangs.report import sheets

    numbers = analysis.timeline.attempts.number
    return (sheet for at, hang in sorted(_hangs(analysis).items()) for sheet in sheets(hang, int(numbers[at])))


def _notes(analysis: AnalysisData) -> Iterable[str]:
    from goodput_cli.analysis.hangs.hang import sentence

    numbers = analysis.timeline.attempts.number
    for at, hang in sorted(_hangs(analysis).items()):
        yield f"end of attempt {numbers[at]}: {sentence(hang)}"


def _completed(analysis: AnalysisData, candidate: Candidate) -> Candidate:
    if candidate.code == "slow_steps":
        from goodput_cli.analysis.hangs.report import slow_words

        found = _stragglers(analysis)
        words = "" if found is None else slow_words(found, candidate.start_ns, candidate.end_ns)
        return replace(candidate, text=f"{candidate.text}; {words}") if words else candidate
    if candidate.code not in ("hang", "hung_now", "last_end"):
        return candidate
    from goodput_cli.analysis.hangs.report import completed_candidate

    return completed_candidate(analysis, candidate, _hangs(analysis))


def _capacity_kind() -> type:
    from goodput_cli.analysis.hangs.report import SliceCapacity

    return SliceCapacity


def _capacity(analysis: AnalysisData) -> SliceCapacity | None:
    from goodput_cli.analysis.hangs.report import capacity_of

    return capacity_of(analysis)


def _report_lines(analysis: AnalysisData) -> Iterable[str]:
    from goodput_cli.analysis.hangs.report import capacity_text

    text = capacity_text(_capacity(analysis))
    return () if text is None else (text,)


def _straggler_kind() -> type:
    from goodput_cli.analysis.hangs.report import Stragglers

    return Stragglers


def _stragglers(analysis: AnalysisData) -> Stragglers | None:
    from goodput_cli.analysis.hangs.report import stragglers_of

    return analysis.part(stragglers_of)


def _step_sections(analysis: AnalysisData, by: By) -> Iterable[Sheet]:
    from goodput_cli.analysis.hangs.report import straggler_sheets

    return straggler_sheets(_stragglers(analysis)) if by == "rank" else ()


def _families(analysis: AnalysisData) -> Iterable[Family]:
    from goodput_cli.analysis.hangs.report import families

    return families(_last(analysis))


HANGS = Capability(
    name="hangs",
    about="which rank held the job up",
    disruption_notes=_notes,
    disruption_sections=_sections,
    families=_families,
    report_lines=_report_lines,
    completed_insight=_completed,
    step_sections=_step_sections,
    steps_answer=(
        AnswerField(
            key="stragglers", kind=_straggler_kind, words="slow ranks by reports; null without reports", of=_stragglers
        ),
    ),
    answer=(
        AnswerField(
            key="hung_now", kind=_now_kind, words="the wait of a job whose end is not logged; null otherwise", of=_now
        ),
        AnswerField(
            key="capacity",
            kind=_capacity_kind,
            words="slices that trained; null if their number is not logged",
            of=_capacity,
        ),
    ),
    last_end=(
        AnswerField(
            key="hang", kind=_kind, words="who held the job up when ranks waited; null without a wait", of=_last
        ),
    ),
)
