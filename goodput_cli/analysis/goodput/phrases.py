"""Wording of reports for people, shared by all such formats.

The strings contain unescaped text of the log: each renderer escapes it for its format (`safe`, Markdown escapes). Only
the lines for standard error, diagnostics and thresholds, are made safe here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from os.path import commonprefix
from typing import TYPE_CHECKING

from goodput_cli.accounting.options import Limits, question_of
from goodput_cli.analysis.document import LedgerRow
from goodput_cli.analysis.goodput.thresholds import INSIGHT, parse_threshold
from goodput_cli.analysis.sheet import Family
from goodput_cli.analysis.threshold import INCONCLUSIVE, Threshold, Verdict
from goodput_cli.diagnostics.diagnostic import Diagnostic, problems, worst_first
from goodput_cli.vocabulary.categories import OVERLAPPED_REMARK, Category, cause_text, title
from goodput_cli.vocabulary.text import (
    duration,
    duration_of_seconds,
    exact,
    finite,
    number,
    percent,
    period,
    plural,
    safe,
    shorten,
    telling_decimals,
)

if TYPE_CHECKING:
    from goodput_cli.accounting.attempts.failure_cause import FailureCause
    from goodput_cli.analysis.analysis_data import AnalysisData
    from goodput_cli.analysis.results import CategoryTime, InferredRules, Job, SliceEfficiency, StepStatistics

DRAFTED = "drafted"
"""Value in the category column of a table row that reports inferred rules."""
PLACES = 3
"""Number of locations of a diagnostic that are shown by default."""
_LONGEST = 400
"""Maximum length of a shown message or location, in characters."""
_FEW = 10
"""Steps: smaller numbers are shown with tenths."""
_UNKNOWN = "unknown"
DOUBTS = (
    "same_steps_in_files",
    "several_runs_in_file",
    "clock_jumps",
    "clock_begins_anew",
    "saves_in_bars",
    "day_assumed",
    "allocation_clock",
    "view_not_joined",
    "earlier_runs",
    "restarted_from_scratch",
    "planned_or_not",
    "restart_or_rollback",
    "long_gap",
    "not_drafted",
)
"""Diagnostics shown next to the share of goodput: it may be that of another job, or of two."""
_ENDINGS = {
    "clean": "clean end",
    "cancelled": "cancelled",
    "terminated": "terminated",
    "crashed": "crashed",
    "not_logged": "end not logged",
}

_VERDICTS: dict[Verdict, str] = {
    "failed": "FAILED",
    "warning": "warning",
    "passed": "passed",
    "not_recorded": "inconclusive",
}

LimitsByCategory = dict[tuple[str, str | None], list[float]]
"""Limits in percent, by category and label."""


def category_rows(analysis: AnalysisData) -> list[LedgerRow]:
    """Return every category that is not zero, with goodput, the largest first."""
    amounts = sorted((analysis.goodput, *analysis.badput), key=lambda row: -row.ns)
    limits = _limits(analysis)
    return [_row(analysis, amount, limits) for amount in amounts]


def headline(analysis: AnalysisData) -> tuple[str, str]:
    """Return goodput in percent and its base: `50.00 %`, `1 h 40 min of 3 h 20 min`.

    If goodput is unknown: `unknown` and the reason, `no step was logged in 3 h 20 min`. If only bounds are known:
    `50.00 to 60.00 %`.
    """
    share = _percent(analysis.goodput, _limits(analysis))
    whole = duration(analysis.window.counted_ns)
    if analysis.goodput_unknown and not analysis.is_bounded:
        return _UNKNOWN, f"{analysis.unavailable_reason} in {whole}"
    if analysis.is_bounded:
        share, amount = goodput_text(analysis), f"{limits_text(analysis.goodput_limits)} of {whole}"
    else:
        amount = f"{duration(analysis.goodput.ns)} of {whole}"
    if not analysis.has_steps and analysis.job.ending == "crashed":
        return share, f"{amount}; {analysis.timeline.no_training} before the crash"
    if analysis.is_too_short or analysis.timeline.few_records is not None:
        return share, f"{amount}; too few steps to judge: {kept_text(analysis, ' steps').partition(' (')[0]}"
    return share, amount


def goodput_text(analysis: AnalysisData) -> str:
    """Return goodput in percent, its bounds, or `unknown`: `50.00 %`, `50.00 to 60.00 %`, `<= 60.00 %`."""
    if analysis.goodput_percent is not None:
        return percent(analysis.goodput_percent)
    if not analysis.is_bounded:
        return _UNKNOWN
    return limits_text(analysis.goodput_limits, analysis.window.counted_ns)


def limits_text(limits: Limits, whole_ns: int | None = None) -> str:
    """Return limits in words: `1 h to 2 h`, `<= 2 h`, `>= 1 h`. whole_ns: the base of shares: `50.00 to 60.00 %`."""
    low, high = (
        None if ns is None else duration(ns) if whole_ns is None else percent(100 * ns / whole_ns)
        for ns in (limits.at_least, limits.at_most)
    )
    if low is None or high is None:
        return "unknown" if low is high else f">= {low}" if high is None else f"<= {high}"
    return f"{low.removesuffix(' %')} to {high}"


def open_question(analysis: AnalysisData) -> str | None:
    """Return why only bounds of goodput are known, and what decides it; None if goodput is a number or unknown."""
    return question_of(analysis.bounds) if analysis.is_bounded else None


def headline_warnings(analysis: AnalysisData) -> tuple[str, ...]:
    """Return the warnings next to the share of goodput: why it may be that of another job."""
    noticed = tuple(one.message for one in analysis.diagnostics if one.code in DOUBTS)
    if (question := open_question(analysis)) is not None:
        noticed = (question, *noticed)
    drafted = analysis.inferred_rules
    return noticed if drafted is None else (drafted.sentence(analysis.options), *drafted.doubts, *noticed)


def drafted_rules(drafted: InferredRules, asked: Sequence[str]) -> Family:
    """Return the number of inferred rules as a metric whose comment explains how to keep them. asked: see
    `InferredRules.sentence`."""
    said = drafted.sentence(asked)
    return Family("goodput_drafted_rules", f"{said[:1].upper()}{said[1:]}.", [({}, str(drafted.rules))])


def all_headline_warnings(analysis: AnalysisData) -> tuple[str, ...]:
    """Return the warnings of `headline_warnings`, after the reasons for which the share is not meaningful."""
    _, amount = headline(analysis)
    unknown = f"goodput is unknown: {amount}" if analysis.goodput_unknown and not analysis.is_bounded else ""
    little = amount.partition("; ")[2] if analysis.is_too_short and not unknown else ""
    return tuple(one for one in (unknown or little, *headline_warnings(analysis)) if one)


def window_text(analysis: AnalysisData) -> str:
    """Return the window of the question and its length."""
    window = analysis.window
    return f"{period(window.start_ns, window.end_ns)} ({duration(window.ns)})"


def location_text(where: str, sources: Sequence[str]) -> str:
    """Return a location without the common part: without its file, or without the directory of all files."""
    line = where.rpartition(":")[2]
    return line if len(sources) == 1 and line.isdigit() else where.removeprefix(folder_of(sources))


def folder_of(sources: Sequence[str]) -> str:
    """Return the common directory of all files, with a final slash; "" for one file, or without such a directory."""
    folder = "" if len(sources) < 2 else commonprefix(list(sources)).rpartition("/")[0]  # noqa: RUF071
    return f"{folder}/" if folder and not folder.endswith("/") else ""  # `gs://` is none


def evidence_text(sources: Sequence[str]) -> str | None:
    """Return the part that `location_text` omits: `evidence: lines of night/`."""
    left_out = sources[0] if len(sources) == 1 else folder_of(sources)
    return f"evidence: lines of {left_out}" if left_out else None


def attempts_text(analysis: AnalysisData) -> str:
    """Return the number of attempts of the job, and that it is the whole job's if the window is a part of it."""
    return plural(analysis.job.attempts, "attempt") + (" in the whole job" if is_part(analysis) else "")


def is_part(analysis: AnalysisData) -> bool:
    """Return True if the window is shorter than the job."""
    job, window = analysis.job, analysis.window
    return (job.start_ns, job.end_ns) != (window.start_ns, window.end_ns)


def progress_text(analysis: AnalysisData) -> str:
    """Return disruptions, kept steps, the end of the job if it is in the window, runs and log formats."""
    job = analysis.job
    parts = [
        plural(job.disruptions, "disruption"),
        kept_text(analysis, " steps kept") if analysis.has_steps else "no steps logged",
    ]
    if has_ending(analysis):
        parts.append(ending_text(job) + last_cause_text(analysis))
    if (left := restarts_left_text(analysis)) is not None:
        parts.append(left)
    if job.runs > 1:
        parts.append(plural(job.runs, "run"))
    if job.formats:
        parts.append(f"format: {' + '.join(job.formats)}")
    return ", ".join(parts)


_FEW_RESTARTS = 1


def restarts_left_text(analysis: AnalysisData) -> str | None:
    """Return the last logged number of restarts left, `1 restart left`, for a job that continues. None if there are
    more, or if they are not logged."""
    left = [one.left_after for one in analysis.disruptions.chains if one is not None and one.left_after is not None]
    if not left or left[-1] > _FEW_RESTARTS or analysis.job.ending != "not_logged":
        return None
    return f"{plural(left[-1], 'restart')} left" if left[-1] else "no restarts left"


def kept_text(analysis: AnalysisData, words: str = "") -> str:
    """Return the kept steps for people, with the first and the last.

    Over a whole job without exclusions a last step that ended early counts as a step. Otherwise steps count in part
    (docs/accounting.md, Stretches of step logs), and their sum is rounded.
    """
    job = analysis.job
    whole = not is_part(analysis) and not analysis.window.excluded_ns
    kept = math.ceil(round(job.kept_steps, 6)) if whole else round(job.kept_steps, 6)
    shown = round(kept, 1 if kept < _FEW else None)
    about = "" if shown == kept else "about " if shown else "less than "
    kept_range = "" if job.kept_range is None else " ({} to {})".format(*job.kept_range)
    words = words.replace("steps", "step") if shown == 1 else words
    return f"{about}{number(shown or (0.1 if kept else 0))}{words}{kept_range}"


def has_ending(analysis: AnalysisData) -> bool:
    """Return True if the window reaches the end of the job."""
    return analysis.window.end_ns >= analysis.job.end_ns


def ending_text(job: Job) -> str:
    """Return the end of the job in words."""
    return _ENDINGS.get(job.ending, job.ending)


def last_cause(analysis: AnalysisData) -> FailureCause | None:
    """Return the logged cause of the last attempt's end; None if it is unknown, outside the window, or for a clean
    end."""
    return analysis.timeline.last_cause if has_ending(analysis) else None


def last_cause_text(analysis: AnalysisData) -> str:
    """Return the cause of the last end to append: ` (host_oom)`, ` (likely host_oom)`; "" if unknown."""
    why = last_cause(analysis)
    return "" if why is None else f" ({cause_text(why.code, why.certainty)})"


def at_the_end(analysis: AnalysisData) -> str:
    """Return how the job ended, as words before the cause."""
    ending = analysis.job.ending
    return "end not logged, after the last step" if ending == "not_logged" else f"{ending} at the end"


def outside_window_text(analysis: AnalysisData) -> str | None:
    """Return the figures of the whole job if the question was about a part of it."""
    job = analysis.job
    if not is_part(analysis):
        return None
    return f"of the job {period(job.start_ns, job.end_ns)} ({duration(job.end_ns - job.start_ns)})"


def step_text(analysis: AnalysisData) -> str | None:
    """Return the step times in one line; None without any."""
    known = step_times_text(analysis.steps)
    return f"{analysis.steps.count} timed: {known}" if known else None


def step_times_text(steps: StepStatistics) -> str:
    """Return the known step times: `mean 2 s, p99 5 s`."""
    return ", ".join(f"{name} {duration_of_seconds(value)}" for name, value in steps.known.items())


def outside_ledger_texts(analysis: AnalysisData) -> Iterator[tuple[str, str]]:
    """Yield (name, words) of everything reported outside the ledger."""
    if analysis.window.excluded_ns:
        yield title(Category.EXCLUDED.id), f"{duration(analysis.window.excluded_ns)}, not part of the 100 %"
    for row in analysis.overlapped:
        yield title(row.category), f"{duration(row.ns)}, {OVERLAPPED_REMARK}"
    if analysis.elastic.stepping is not None:
        yield "slices", elastic_text(analysis.elastic)
    risk = analysis.at_risk
    if risk is not None and (risk.ns or risk.steps):
        steps = plural(round(risk.steps, 3), "step")
        bound, save = ("at most ", "checkpoint known to be complete") if risk.is_bound else ("", "completed checkpoint")
        yield "at risk", f"{bound}{steps}, {duration(risk.ns)} of progress after the last {save}"
    amounts = {row.category: row.ns for row in analysis.badput if row.label is None}
    if amounts.get(Category.SLOWDOWN.id, 0) < 0:
        yield title(Category.SLOWDOWN.id), "negative: training was faster than the reference step time"
    if amounts.get(Category.UNDETERMINED.id):
        least = amounts.get(Category.WASTED.id, 0)
        most = least + amounts[Category.UNDETERMINED.id]
        yield title(Category.UNDETERMINED.id), f"wasted progress is between {duration(least)} and {duration(most)}"
    if amounts.get(Category.RESTORE.id) and _restores_are_inferred(analysis):
        yield title(Category.RESTORE.id), "inferred, including start-up"


def elastic_text(elastic: SliceEfficiency) -> str:
    """Return slice efficiency, goodput times it, and the part of the window for which it is unknown."""
    parts = [f"{percent(100 * (elastic.stepping or 0.0))} stepping"]
    if elastic.available is not None:
        parts.append(f"{percent(100 * elastic.available)} available")
    if elastic.goodput_percent is not None:
        parts.append(f"goodput x stepping {percent(elastic.goodput_percent)}")
    if elastic.unknown_ns:
        parts.append(f"{duration(elastic.unknown_ns)} without a slice count")
    return ", ".join(parts)


def reference_text(analysis: AnalysisData) -> str | None:
    """Return the reference step time and its origin; None without one."""
    reference = analysis.reference
    if reference.step_time_seconds is None:
        return None
    origin = "auto: taken from this log" if reference.origin == "auto" else "given"
    return f"Reference step time {exact(reference.step_time_seconds)} s ({origin})"


def pin_option(analysis: AnalysisData) -> str | None:
    """Return the option that pins a reference step time taken from the log itself; None otherwise."""
    reference = analysis.reference
    if reference.origin != "auto" or reference.step_time_seconds is None:
        return None
    return f"--reference-step-time {exact(reference.step_time_seconds)}"


def reference_rows(analysis: AnalysisData) -> list[tuple[str, str]]:
    """Return the resiliency calculator's table, with its names (accounting §6); empty without a reference."""
    reference = analysis.reference
    if reference.step_time_seconds is None or reference.effective_computation_ns is None:
        return []
    return [
        ("Total Events", str(reference.total_events)),
        ("Job Started Count", str(reference.job_started_count)),
        ("Checkpoints Loaded", str(reference.checkpoints_loaded)),
        ("Checkpoints Saved", str(reference.checkpoints_saved)),
        ("Total Runtime (hours)", _hours(analysis.window.counted_ns)),
        ("Min Loaded Step", _step(reference.min_loaded_step)),
        ("Max Saved Step", _step(reference.max_saved_step)),
        ("Step Difference", _step(reference.step_difference)),
        ("Effective Computation Time (hours)", _hours(reference.effective_computation_ns)),
        ("Goodput Percentage", headline(analysis)[0]),
    ]


def threshold_verdict(threshold: Threshold) -> str:
    """Return `FAILED`, `warning`, `passed` or `inconclusive`."""
    return _VERDICTS[threshold.verdict]


def threshold_value(threshold: Threshold) -> str:
    """Return the value with enough digits to see on which side of the limit it is; empty if it is not recorded."""
    if threshold.value is None:
        return ""
    if (duration_text := _limit_as_duration(threshold)) is not None:
        return duration_text if threshold.value == threshold.limit else _as_duration(threshold.value)
    if threshold.unit == "" and threshold.value == int(threshold.value):
        return number(threshold.value)
    decimals = telling_decimals(threshold.value, threshold.limit)
    return f"{threshold.value:.{decimals}f} {threshold.unit}".rstrip()


def threshold_limit(threshold: Threshold) -> str:
    """Return the limit as exactly as it was given: `90 %`, `30 min`, `3`."""
    if (duration_text := _limit_as_duration(threshold)) is not None:
        return duration_text
    return f"{exact(threshold.limit)} {threshold.unit}".rstrip()


def _limit_as_duration(threshold: Threshold) -> str | None:
    """Return the limit as a duration; None if it is not a time, needs more digits, or looks like a different value."""
    if threshold.unit != "s":
        return None
    text = _as_duration(threshold.limit)
    exact_seconds = sum(float(amount) * _SECONDS[unit] for amount, unit in _AMOUNT.findall(text))
    is_rounded = abs(exact_seconds - abs(threshold.limit)) > 1e-9
    looks_same = threshold.value not in (None, threshold.limit) and text == _as_duration(threshold.value or 0.0)
    return None if looks_same or is_rounded else text


_AMOUNT = re.compile(r"([\d.]+) (d|h|min|s|ms)")
_SECONDS = {"d": 86_400, "h": 3600, "min": 60, "s": 1, "ms": 1e-3}


def _as_duration(seconds: float) -> str:
    """Return a duration without zeros at its end: `1 h 46 min`, `1 h`."""
    return duration_of_seconds(seconds).removesuffix(" 00 min").removesuffix(" 00 s")


def threshold_reason(threshold: Threshold) -> str:
    """Return the reason for the verdict: `70.43 %, limit 90 %`, or `1 h 46 min, limit 1 h`."""
    hint = f"; {threshold.hint}" if threshold.hint else ""
    if threshold.met is None and (threshold.hint or "").startswith(INCONCLUSIVE):
        return (threshold.hint or "").removeprefix(INCONCLUSIVE)
    if threshold.value is None:
        return f"no data in the log{hint}"
    return f"{threshold_value(threshold)}, limit {threshold_limit(threshold)}{hint}"


def threshold_line(threshold: Threshold) -> str:
    """Return a threshold in one line: `goodput<90: FAILED (70.43 %, limit 90 %)`."""
    return f"{threshold.expression}: {threshold_verdict(threshold)} ({threshold_reason(threshold)})"


def _restores_are_inferred(analysis: AnalysisData) -> bool:
    """Return True if restores are inferred: checkpoint logs have a restore's end but not its start (accounting §2).
    With the recorder's steps it is False."""
    from goodput_cli.events.schema import REFERENCE_LIBRARY  # This loads NumPy, which `--help` must not need.

    formats = analysis.job.log_formats
    recorded = any(one.other_system == REFERENCE_LIBRARY for one in formats)
    return not recorded and any(one.restores_are_inferred for one in formats)


_UNEXPLAINED = (Category.OTHER.id, Category.UNDETERMINED.id)


def may_be_training(analysis: AnalysisData, category: str) -> bool:
    """Return True if the time of a category may contain training, because goodput is unknown: what no line explains,
    and the start-up of a job whose step time is unknown. category: its name."""
    if not analysis.goodput_unknown or analysis.is_bounded:
        return False
    is_start_up = category == Category.PROGRAM_STARTUP.id and analysis.timeline.few_records is not None
    return is_start_up or category in _UNEXPLAINED


def _row(analysis: AnalysisData, amount: CategoryTime, limits: LimitsByCategory) -> LedgerRow:
    share = max(finite(amount.percent) or 0.0, 0.0)
    is_unknown = (amount is analysis.goodput and analysis.goodput_unknown) or may_be_training(analysis, amount.category)
    text = "unknown" if is_unknown else _percent(amount, limits)
    bounds = analysis.limits_of(amount)
    if bounds.at_least != bounds.at_most:  # The ledger contains one of them.
        text = f"{'>=' if bounds.at_least == amount.ns else '<='} {_percent(amount, limits)}"
    return LedgerRow(
        amount.category, amount.name, title(amount.category), amount.ns, text, share, amount is analysis.goodput
    )


def _percent(amount: CategoryTime, limits: LimitsByCategory) -> str:
    """Return percent with two decimals, or with as many as are needed to see why a threshold was met."""
    concerned = limits.get((amount.category, amount.label), [])
    return percent(amount.percent, max((telling_decimals(amount.percent, limit) for limit in concerned), default=2))


def _limits(analysis: AnalysisData) -> LimitsByCategory:
    """Return the limits in percent of all thresholds, by category and label."""
    limits: LimitsByCategory = {}
    for threshold in analysis.thresholds:
        asked = parse_threshold(threshold.expression)
        if threshold.unit == "%" and asked.name != INSIGHT:
            category = Category.PRODUCTIVE.id if asked.name == "goodput" else asked.name
            limits.setdefault((category, asked.label), []).append(threshold.limit)
    return limits


def _hours(ns: int) -> str:
    return f"{ns / 3.6e12:.4g}"


def _step(value: int | None) -> str:
    return "none" if value is None else str(value)


def diagnostic_lines(diagnostics: Iterable[Diagnostic], *, every_place: bool = False) -> Iterator[str]:
    """Yield `severity: code (count): message`, the worst first, each followed by its locations."""
    for diagnostic in worst_first(diagnostics):
        count = f" ({diagnostic.count})" if diagnostic.count != 1 else ""
        message = safe(diagnostic.message)
        shown = message if every_place else shorten(message, _LONGEST, "...")
        yield f"{diagnostic.severity}: {diagnostic.code}{count}: {shown}"
        places = locations_text(diagnostic, len(diagnostic.where) if every_place else PLACES)
        if places:
            yield f"    {places}"


def explaining_line(diagnostics: Iterable[Diagnostic]) -> Iterator[str]:
    """Yield how to learn more about the worst diagnostic; nothing without diagnostics."""
    for worst in list(worst_first(diagnostics))[:1]:
        yield f"Run `goodput help {worst.code}` for its effect on the numbers and how to fix it."


def locations_text(diagnostic: Diagnostic, most: int = PLACES) -> str:
    """Return the first locations of a diagnostic, each once, and how many more there are: `run.log:3, +2 more`."""
    shown = [shorten(safe(place), _LONGEST, "...") for place in list(dict.fromkeys(diagnostic.where))[:most]]
    more = max(diagnostic.count, len(diagnostic.where)) - len(shown)
    if shown and more > 0:
        shown.append(f"+{more} more")
    return ", ".join(shown)


def strict_lines(diagnostics: Iterable[Diagnostic], *, quiet: bool) -> Iterator[str]:
    """Yield why `--strict` fails a run; nothing if it does not. quiet: the diagnostics themselves are not printed."""
    codes = dict.fromkeys(diagnostic.code for diagnostic in worst_first(problems(diagnostics)))
    if codes:
        more = " (run without --quiet for details)" if quiet else ""
        yield f"--strict: problems found: {', '.join(codes)}{more}"


def threshold_lines(thresholds: Iterable[Threshold], *, with_passes: bool = True) -> Iterator[str]:
    """Yield one line per threshold: the expression, the verdict, the value and the limit."""
    for threshold in thresholds:
        if with_passes or threshold.verdict != "passed":
            yield f"threshold {safe(threshold_line(threshold))}"


def reference_caution(analysis: AnalysisData) -> Iterator[str]:
    """Yield a warning if thresholds were judged with a reference step time from the log itself (accounting §6)."""
    option = pin_option(analysis)
    if option and analysis.thresholds:
        yield f"warning: thresholds use a reference step time taken from this log; fix it with {option}"
