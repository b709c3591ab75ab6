"""Lines of logs that rules are inferred from, and mappings that a log contradicts, by what its lines and the analysis
with the mapping show.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, BinaryIO

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.order import in_order
from goodput_cli.analysis.account import account_for, earlier_runs, pick_job
from goodput_cli.analysis.goodput.analyse import kept_steps
from goodput_cli.analysis.question import Question
from goodput_cli.analysis.rolling import as_known_at
from goodput_cli.analysis.timeline.rows import segment_rows
from goodput_cli.api.options import changed_at, is_local, names_of
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import NotEnoughData, UsageError
from goodput_cli.events.formats.collected import SACCT_HEADER
from goodput_cli.events.mappings.draft.contradicted import contradictions
from goodput_cli.events.mappings.draft.expected import Whole
from goodput_cli.events.mappings.draft.lines import HEAD_LINES, LinesCollector, LogLines, batches_of, lines_of_texts
from goodput_cli.events.mappings.draft.words import plain, reports_save
from goodput_cli.events.mappings.explained import lines_of
from goodput_cli.events.mappings.rules import Mapped
from goodput_cli.events.schema import EventLog, Kind
from goodput_cli.events.text.date_positions import masked
from goodput_cli.events.text.folders import launch_of
from goodput_cli.events.text.line_timestamps import is_kernel_log, strip_prefixes
from goodput_cli.events.text.log_lines import linear
from goodput_cli.vocabulary.categories import Category
from goodput_cli.vocabulary.secrets import without_secrets
from goodput_cli.vocabulary.text import plural, safe

_MOST_BYTES, _MOST_LINES = 64 << 20, 1_000_000
"""Upper limits for the part of a log that rules are inferred from. The rules are then used to read the whole log."""
_KINDS = (("PK\x03\x04", "a zip (as docx, xlsx, npz and PyTorch's checkpoints are)"), ("%PDF-", "a PDF"))
"""First characters of files that are mistaken for logs, and the type of each."""
_HEAD, _ODD = 4096, 10
"""Characters of the head that is examined. A file is binary if more than one in `_ODD` of them cannot occur in UTF-8
text, and one is a control character: text in another encoding has none."""
_CONTROLS = "\t\r\n\x08\x0c\x1b"
_BAR = rb"[0-9]it/s|s/it|\|[^|\n]*\| *[0-9]+/[0-9]+ \["
_SAVING = rb"(?i)sav|writ|wrote|dump|stor|ckpt|checkpoint|snapshot"


def lines_of_logs(names: Sequence[str], stdin: BinaryIO | None) -> LogLines:
    """Return the lines of logs, up to the limit, except kernel logs, which are about hosts."""
    collected = LinesCollector(_MOST_BYTES, _MOST_LINES)
    for batch in batches_of(names, stdin=stdin):
        collected.add(batch.source, batch.first_line, batch.data)
        if not collected.whole:
            break
    return lines_of_job(collected.lines())


def lines_of_job(lines: LogLines) -> LogLines:
    """Return lines without those of kernel logs and schedulers; all of them if there are no others."""
    others = []
    for number, first, count in zip(*np.unique(lines.source, return_index=True, return_counts=True), strict=True):
        texts = [lines.text(at) for at in range(first, first + min(count, HEAD_LINES))]
        others += [number] if _is_of_kernel(texts) or _is_of_scheduler(texts) else []
    kept = ~np.isin(lines.source, others)
    return lines.take(kept) if kept.any() else lines


def _is_of_scheduler(texts: Sequence[str]) -> bool:
    """Return True for the accounting of a scheduler, which the built-in formats read."""
    return {*texts[0].split("|")} >= SACCT_HEADER


def _is_of_kernel(texts: Sequence[str]) -> bool:
    return is_kernel_log("\n".join(texts))


def kind_of_other(lines: Sequence[str]) -> str:
    """Return the file type of the first lines if they are not text; empty for text."""
    head = "".join(lines)[:_HEAD]
    kind = next((kind for begin, kind in _KINDS if head.startswith(begin)), "")
    controls = sum(char < " " and char not in _CONTROLS for char in head)
    odd = controls + head.count("\N{REPLACEMENT CHARACTER}")
    return kind or ("binary" if controls and _ODD * odd > len(head) else "")


def saves_in_bars(names: Sequence[str], stdin: BinaryIO | None) -> Diagnostic | None:
    """Return the warning that progress bars count saves as training: lines between their states that no format reads
    seem to report saves. None without such lines."""
    lines = lines_of_logs(names, stdin)
    known: dict[str, bool] = {}
    saves = []
    for at in _saving_between_bars(lines):
        text = strip_prefixes(lines.text(at)).text.strip()
        key = masked(text)
        if key not in known:
            known[key] = reports_save(plain(text))
        saves += [(at, text)] if known[key] else []
    if not saves:
        return None
    at, text = saves[0]
    told = f'{plural(len(saves), "line")} like "{safe(without_secrets(text[:80]))}"'
    said = f"a progress bar counts time of saves as training: {told} may show saves"
    return Diagnostic.of("saves_in_bars", said, len(saves), (lines.where(at),))


def _saving_between_bars(lines: LogLines) -> list[int]:
    """Return the lines with a word about saving from the first to the last state of a progress bar, found in one pass
    over all of them."""
    bar = linear().compile(_BAR)
    first = bar.search(lines.data)
    if first is None:
        return []
    places = np.array([one.start() for one in linear().compile(_SAVING).finditer(lines.data)], dtype=np.int64)
    rows = np.searchsorted(lines.begin, places, side="right") - 1
    rows = np.unique(rows[(rows >= 0) & (places < lines.end[rows])])
    rows = rows[lines.end[rows] >= first.start()]
    ended = bisect_left(rows.tolist(), True, key=lambda at: bar.search(lines.data, int(lines.end[at])) is None)
    found: list[int] = rows[:ended].tolist()
    return found


_SHORT = {
    Category.SAVE: "save", Category.RESTORE: "restore", Category.CUSTOM: "evaluation",
    Category.DATA_LOADING_SYNC: "data load",
}  # fmt: skip
"""Segments that should be short compared with training. Others may take any time: the time between two attempts,
planned stops, program start-up, and time that the log does not explain, as a hang."""


def contradicted(
    sources: Any, mappings: Sequence[Mapped], log: EventLog, question: Question, job: str | None = None
) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each rule of a mapping that a log, or the analysis with the mapping, contradicts. The
    tests are those for inferred rules. log: as read with the mappings; job: its name if the log contains several
    jobs."""
    names = names_of(sources)
    if not mappings or not names or not all(map(is_local, names)):
        return
    try:
        whole = whole_of(log, question, job)
    except (NotEnoughData, UsageError):
        whole = None
    texts = ((one.source, one.number, one.text) for one in lines_of(names, mappings))
    lines = lines_of_job(lines_of_texts(texts))
    for made in mappings:
        for number, wrong in contradictions(made, lines, changed_at(names), whole):
            event, line = made.declared.rule[number].event.value, made.location_of(number).line
            rule = f"the {event} rule of {made.name} in line {line}"
            where = (wrong.where,) if wrong.where else ()
            yield Diagnostic.of("mapping_contradicted", safe(f"{rule}: {wrong.reason}"), 1, where)


def whole_of(log: EventLog, question: Question, job: str | None) -> Whole:
    """Return the part of an analysis that is used to check rules. job: its name. Raises NotEnoughData and
    UsageError."""
    events, name, _ = pick_job(log, job)
    ordered = in_order(events)
    question = replace(question, now_ns=max(question.now_ns, int(ordered.table.end.max())))
    timeline, start, end = account_for(ordered, question, name)
    timeline = timeline if question.method.hindsight else as_known_at(timeline, end)
    start, end = max(start, timeline.start), min(end, timeline.end)
    amounts = timeline.ledger.in_window(start, end)
    excluded, productive = (amounts.get((of, -1), 0) for of in (Category.EXCLUDED, Category.PRODUCTIVE))
    counted = end - start - excluded
    if counted <= 0:
        raise NotEnoughData("the whole window is excluded")
    return Whole(
        timeline.attempts.count, kept_steps(timeline, start, end), 100 * productive / counted, counted,
        timeline.shows_training, _longest(timeline, start, end),
        start if any(earlier_runs(ordered, question)) else None,
        len({launch_of(one) for one in timeline.table.sources} - {""}),
    )  # fmt: skip


def most_trained(log: EventLog) -> str | None:
    """Return the job with most step records, by which rules are judged if the log has several jobs; None for one job or
    without steps."""
    jobs = log.table.job[log.table.kind == Kind.STEP]
    if len(jobs) == 0 or len(log.table.jobs) < 2:
        return None
    return str(log.table.jobs[int(np.bincount(jobs).argmax())])


def _longest(timeline: Timeline, start: int, end: int) -> tuple[str, int]:
    """Return the longest segment that should be short, with its length in ns."""
    rows = segment_rows(timeline, start, end)
    is_short = np.isin(rows.category, [*_SHORT])
    is_short[:-1] &= rows.attempt[1:] == rows.attempt[:-1]  # The last one of an attempt is between two of them.
    length = np.where(is_short, rows.end - rows.start, 0)
    if not length.any():
        return "", 0
    at = int(length.argmax())
    return _SHORT[Category(rows.category[at])], int(length[at])
