"""The first screen of `analyze`, in at most as many lines as the terminal has. It shows if the job ended or failed and
why, how much became progress, the largest losses, and advice. Everything else is in `--full`."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.text import Text

from goodput_cli.analysis.capabilities import CAPABILITIES
from goodput_cli.analysis.check import counts_in_words, noticed_in
from goodput_cli.analysis.document import Block, CategoryLedger, Losses, Picture
from goodput_cli.analysis.goodput import phrases
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.goodput.document import AnalysisDocument
from goodput_cli.report.base import Page
from goodput_cli.report.insight_lines import insight_lines
from goodput_cli.report.terminal import (
    LONGEST_NAME,
    MOST_OF_NAME,
    NARROWEST,
    WIDEST_TEXT,
    bar,
    collected,
    collecting_console,
    colour_of,
    put,
    strip_lines,
)
from goodput_cli.vocabulary.categories import UNCOUNTED, UNKNOWN_CAUSE, brief_name, with_certainty
from goodput_cli.vocabulary.text import clock, duration, plural, safe, shorten, wrapped

LINES = 24
"""Lines of the smallest terminal that the screen is made for."""
_PROMPT = 1
"""A free line for the next command."""
_MOST_CAUSES = 4
_MOST_OF_NAME = 3
"""Maximum number of lines for the name of a job."""
_MOST, _MOST_ON_TALL = 5, 12
"""Insights on the smallest terminal, and on a tall one."""
_ENDS = {
    "clean": "ended clean", "cancelled": "cancelled", "terminated": "terminated", "crashed": "crashed at the end",
    "not_logged": "no end logged",
}  # fmt: skip


def first_screen(analysis: Analysis, page: Page) -> str:
    """Return the screen, which leaves one line of the terminal free."""
    room = max(page.height, LINES) - _PROMPT
    blocks = tuple(AnalysisDocument(analysis).blocks())
    for less in range(room):  # wrapped lines may need further rounds
        shown, rows = _screen(analysis, blocks, page, room - less)
        if rows <= room:
            break
    return shown


def _screen(analysis: Analysis, blocks: Sequence[Block], page: Page, room: int) -> tuple[str, int]:
    """Return the screen and how many rows of the terminal it takes. room: rows that it should take at most."""
    width = max(page.width, NARROWEST)
    head, foot = [*_head(analysis, width)], [*_foot(analysis, width)]
    room -= len(head) + _rows(foot, width)
    strip = _strip(blocks, width, page)
    losses = _losses(blocks, width, page, room - len(strip))
    if _rows(losses, width) > room - len(strip):  # the chart is shown with its whole legend, or not at all
        strip, losses = [], _losses(blocks, width, page, room)
    ledger = _ledger(blocks, width, page)
    if _rows(losses, width) + len(strip) + len(ledger) > room:
        ledger = []
    console = collecting_console(width, page)
    for line in (*head, *losses, *strip, *ledger, *foot):
        put(console, line)
    shown = collected(console)
    more = sum(_rows([line], width) - 1 for line in (*losses, *foot))
    return shown, shown.count("\n") + more


def _rows(lines: Sequence[Text], width: int) -> int:
    """Return how many rows of a terminal the lines take; a long command goes on in the next row."""
    return sum(-(-(cell_len(line.plain) + 1) // width) if line.overflow == "ignore" else 1 for line in lines)


def _head(analysis: Analysis, width: int) -> Iterator[Text]:
    """Yield job, window and end; the share of progress; and the number of failures with their causes."""
    room = width - 2
    name = safe(analysis.job.name)
    ended = _ENDS[analysis.job.ending] if phrases.has_ending(analysis) else "part of the job"
    rest = f"{_window(analysis)}   {ended}"
    if cell_len(f"{name}  {rest}") <= room:
        yield Text.assemble((name, "bold"), f"  {rest}")
    else:
        yield from (Text(line, style="bold") for line in wrapped(shorten(name, _MOST_OF_NAME * room, "..."), room))
        yield from (Text(line) for line in wrapped(rest, room))
    whole = phrases.outside_window_text(analysis)
    if whole:
        yield Text(shorten(whole, room, "..."), style="dim")
    share, amount = phrases.headline(analysis)
    kept = f", {phrases.kept_text(analysis, ' steps kept')}"
    beside = amount + kept * (analysis.job.first_step is not None and not analysis.is_too_short)
    lines = [*wrapped(beside, room - len("GOODPUT    ") - len(share))]
    yield Text.assemble(("GOODPUT", "bold"), "  ", (share, "bold green"), "  ", lines[0])
    yield from (Text(" " * (11 + len(share)) + line) for line in lines[1:])
    yield from (Text(line) for line in wrapped(_deaths(analysis), room))
    for said in (said for capability in CAPABILITIES for said in capability.screen_lines(analysis, room)):
        yield from (Text(line) for line in wrapped(safe(said), room))
    for doubt in phrases.headline_warnings(analysis):
        yield from (Text(line, style="yellow") for line in wrapped(f"warning: {safe(doubt)}", room))
    if (why := phrases.last_cause(analysis)) is not None:
        yield Text(shorten(f"`{safe(why.text)}`" if why.text else safe(why.where or ""), room, "..."), style="dim")
        yield from (Text(line) for line in wrapped(f"what to do: {safe(why.advice)}", room))


def _window(analysis: Analysis) -> str:
    window = analysis.window
    (first_day, first), (last_day, last) = clock(window.start_ns), clock(window.end_ns)
    day = last_day[5:] if last_day[:4] == first_day[:4] else last_day
    until = last[:5] if last_day == first_day else f"{day} {last[:5]}"
    return f"{first_day} {first[:5]} - {until} UTC"


def _deaths(analysis: Analysis) -> str:
    """Return `5 disruptions: 3 device_oom, 1 preempted, 1 unknown`, and the cause of the last attempt's failure."""
    job, rows = analysis.job, analysis.disruptions
    words = f"{plural(job.attempts, 'attempt')}, {plural(job.disruptions, 'disruption')}"
    counted = [one for one in rows if one.ended not in UNCOUNTED]
    known = Counter(one.cause for one in counted if one.cause not in (None, UNKNOWN_CAUSE))
    if known:
        named = [
            f"{count} {with_certainty(str(cause), (one.cause_certainty for one in counted if one.cause == cause))}"
            for cause, count in known.most_common(_MOST_CAUSES)
        ]
        more = len(known) - len(named)
        named += [f"{more} other causes"] if more > 0 else []
        unknown = len(counted) - known.total()
        words += f": {', '.join(named)}" + (f", {unknown} of unknown cause" if unknown else "")
    elif counted:
        ended = Counter(one.ended.replace("_", " ") for one in counted)
        words += f" ({', '.join(f'{count} {how}' for how, count in ended.most_common())}), cause unknown"
    if (phrases.has_ending(analysis) and job.ending == "crashed") or phrases.last_cause(analysis) is not None:
        words += f", {phrases.at_the_end(analysis)}{phrases.last_cause_text(analysis)}"
    return words + (f", {plural(job.runs, 'run')} with this name" if job.runs > 1 else "")


def _losses(blocks: Sequence[Block], width: int, page: Page, room: int) -> list[Text]:
    """Return as many of the largest losses as fit, after a blank line, each with its command or only the first one."""
    losses = next(block for block in blocks if isinstance(block, Losses))
    narrow = min(width, WIDEST_TEXT) - 2
    tall, entries = page.height > LINES, len(losses.lost) + len(losses.within)
    for commands in (_MOST_ON_TALL, 1) if tall else (1,):
        for most in range(_MOST_ON_TALL if tall else _MOST, 0, -1):
            lines = [Text(), *insight_lines(losses, narrow, page, most=most, commands=commands)]
            if _rows(lines, width) <= room and (commands == 1 or most >= min(_MOST, entries)):
                return lines
    return lines


def _strip(blocks: Sequence[Block], width: int, page: Page) -> list[Text]:
    """Return the picture of the window after a blank line: strip, marks, clock and legend."""
    block = next((one for one in blocks if isinstance(one, Picture)), None)
    lines = [] if block is None else [*strip_lines(block, width - 2, page)]
    return [Text(), *lines] if lines else []


def _ledger(blocks: Sequence[Block], width: int, page: Page) -> list[Text]:
    """Return the categories with their shares, after a blank line, for a terminal that has room for them."""
    block = next((one for one in blocks if isinstance(one, CategoryLedger)), None)
    if block is None or page.height <= LINES:
        return []
    rows = [
        (shorten(safe(brief_name(row.name)), MOST_OF_NAME, "..."), row.percent, duration(row.ns), row)
        for row in block.rows
    ]
    if not rows:
        return []
    names, shares, times = (max(cell_len(str(row[at])) for row in rows) for at in range(3))
    names = min(names, LONGEST_NAME)
    drawn, lines = min(30, width - names - shares - times - 9), [Text()]
    for name, share, time_, row in rows:
        first, *more = wrapped(name, names)
        lines.append(
            Text.assemble(
                f"{first:<{names}}  {share:>{shares}}  {time_:>{times}}  ",
                (bar(row.share, drawn, page.unicode), colour_of(row.category, page)),
            )
        )
        lines += map(Text, more)
    return lines


def _foot(analysis: Analysis, width: int) -> Iterator[Text]:
    """Yield the counts of warnings with the command that lists them, and the way to see more."""
    logs = safe(shlex.join(analysis.options)) or "LOG"
    counts = counts_in_words(noticed_in(analysis, time.time_ns()))
    yield Text()
    words = f"{counts} in the log: goodput check {logs}" if counts else ""
    rest = "--full lists all categories"
    line = f"{words}; {rest}" if words else rest
    if cell_len(line) > width - 2 and words:
        yield from (Text(words, style="dim", overflow="ignore"), Text(rest, style="dim"))
    else:
        yield Text(line, style="dim")
