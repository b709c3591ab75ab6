"""Insights on a terminal: cost, description, advice, and the command that shows more."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.text import Text

from goodput_cli.accounting.options import Limits
from goodput_cli.analysis.document import Loss, Losses
from goodput_cli.analysis.goodput.phrases import limits_text
from goodput_cli.analysis.question import Price
from goodput_cli.report.base import Page
from goodput_cli.vocabulary.categories import Category, brief_name
from goodput_cli.vocabulary.text import duration, number, percent, safe, shorten, wrapped

_INDENT = 3
_GAP = "  "
_LONGEST_TEXT = 200
_LEAST_TEXT = 28
"""Minimum width of text next to the numbers; with less room it is below them."""
_LOGS = "LOG"
_ROOM_FOR_ALL = 98
_MOST_CATEGORIES = 3
_LOST = "LOST     "
_WITHIN, _NOT_LOST = "WITHIN GOODPUT", " (kept training, not part of LOST)"
_WHERE_TO_LOOK = (("timeline", "find when it was lost", ""), ("disruptions", "find what each disruption cost", ""))
_PLANNED = ("analyze", "exclude planned stops between attempts", " --exclude-stopped")
_MUCH = 0.1
"""Share of the window from which losses are worth a closer look."""


def insight_lines(
    losses: Losses, width: int, page: Page, *, most: int | None = None, commands: int | None = None
) -> Iterator[Text]:
    """Yield the losses in lines of at most `width` columns, the largest first, then time within goodput. Without
    insights, yield the largest categories in a line.

    most: maximum number of rows. commands: maximum number of rows with the command that shows more. None: all.
    """
    lost = losses.lost if losses.insights else ()
    rows = (*lost, *losses.within)[:most]
    rest = _rest(losses, len(rows)) if lost else ()
    *heads, last = [*_heads((*rows, *rest), width), ""][: len(rows) + 1]
    with_command = [one for one in rows if commands is None or one.insight is not None][:commands]
    typed = [safe(one.command) if one in with_command else "" for one in rows]
    under = max(map(cell_len, (*heads, last))) + len(_GAP)
    beside = all(cell_len(command) <= width - under for command in typed)
    lines = [
        _row(row, head, _command(command), (width, under if beside else _INDENT), page)
        for row, head, command in zip(rows, heads, typed, strict=True)
    ]
    if lost:
        yield _title(losses)
        for one in lines[: len(lost)]:
            yield from one
        yield from (Text(f"{last}{_GAP}{one.text}", style="dim") for one in rest)
    else:
        yield from _most_lost(losses, width, page)
    if not losses.within:
        return
    slow = max(one.ns for one in losses.within)  # Two kinds may cover the same time.
    is_whole = len(rows) == len(lost) + len(losses.within)
    yield Text.assemble((_WITHIN, "bold"), _NOT_LOST if is_whole else f"{_GAP}{duration(slow)} of slower training")
    for one in lines[len(lost) :]:
        yield from one


def _rest(losses: Losses, shown: int) -> tuple[Loss, ...]:
    """Return the loss that no row shows; nothing if its amount is unknown. shown: number of rows."""
    limits, ns = losses.limits, losses.ns - sum(one.ns for one in losses.lost[:shown])
    if ns <= 0 or limits.at_least is None or limits.at_least != limits.at_most:
        return ()
    return (Loss(ns, 100 * ns / losses.counted_ns, "all other losses", "", "", losses.price),)


def _most_lost(losses: Losses, width: int, page: Page) -> Iterator[Text]:
    """Yield the largest categories; and where to look, if they are large."""
    if losses.ns <= 0:
        return
    largest = sorted(losses.badput, key=lambda row: -row.ns)[:_MOST_CATEGORIES]
    named = [f"{safe(brief_name(row.name))} {duration(row.ns)}" for row in largest if row.ns > 0]
    line, between = _title(losses), ": "
    for words in named:
        if line.cell_len + len(between) + cell_len(words) >= width:
            yield line.append(between.rstrip())
            line, between = Text(" " * len(_LOST)), ""
        line.append(between + words, style="dim")
        between = ", "
    yield line
    if losses.ns < _MUCH * losses.counted_ns:
        return
    sign = "\N{RIGHTWARDS ARROW} " if page.unicode else "-> "
    name, advice, options = _WHERE_TO_LOOK[losses.disrupted]
    if largest[0].category == Category.STOPPED.id:
        name, advice, options = _PLANNED
    said, logs = " " * len(_LOST) + sign + advice, safe(shlex.join(losses.asked)) or _LOGS
    command = f"goodput {name} {logs}{options}"
    if cell_len(said + _GAP + command) <= width:
        yield Text.assemble(said, _GAP, (command, "cyan"))
        return
    yield from (Text(said), _command(command, _INDENT))


def _title(losses: Losses) -> Text:
    limits = losses.limits
    if limits == Limits(None, None):
        return Text.assemble((_LOST, "bold"), ("unknown", "bold red"), "; known losses")
    share, amount = percent(100 * losses.ns / losses.counted_ns), amount_text(losses.price, losses.ns)
    if limits.at_least != limits.at_most:
        share, amount = limits_text(limits, losses.counted_ns), limits_text(limits)
    return Text.assemble((_LOST, "bold"), (share, "bold red"), _GAP, amount)


def cost_text(loss: Loss, *, words: bool = True) -> str:
    """Return money if the price is known, else accelerator hours; empty if neither is known. words: True to name the
    unit, if no line above does."""
    if loss.cost is not None:
        return f"cost {loss.cost:,.2f}" if words else f"{loss.cost:,.2f}"
    hours, unit = loss.accelerator_hours, "accelerator h" if words else "h"
    return "" if hours is None else f"{number(round(hours, 2))} {unit}"


def _row(loss: Loss, head: str, command: Text, place: tuple[int, int], page: Page) -> Iterator[Text]:
    """Yield the lines of a loss. place: the width, and the column where commands begin."""
    width, begin = place
    under = cell_len(head) + len(_GAP)
    if width - under < _LEAST_TEXT:
        yield Text(head)
        head, under = " " * (_INDENT - len(_GAP)), _INDENT
    what = shorten(safe(loss.text), _LONGEST_TEXT, "...")
    sign = "\N{RIGHTWARDS ARROW} " if page.unicode else "-> "
    first, *more = wrapped(what, width - under)
    yield Text.assemble(head + _GAP, (first, "bold"))
    yield from (Text.assemble(" " * under, (line, "bold")) for line in more)
    if not loss.advice:
        if command.plain:
            yield _command(command.plain, begin)
        return
    *others, last = wrapped(sign + safe(loss.advice), width - under)
    yield from (Text(" " * under + line) for line in others)
    room = width - under - cell_len(last) - len(_GAP)
    if not command.plain:
        yield Text(" " * under + last)
        return
    if cell_len(command.plain) <= room:
        yield Text.assemble(" " * under + last + _GAP, command)
        return
    yield Text(" " * under + last)
    yield _command(command.plain, begin)


def _heads(losses: Sequence[Loss], width: int) -> list[str]:
    """Return share, time and cost, aligned. With a cost, the share is left out if there is little room."""
    columns, costs = [[duration(one.ns) for one in losses]], [cost_text(one, words=False) for one in losses]
    columns += [costs] if any(costs) else []
    if not any(costs) or width >= _ROOM_FOR_ALL:
        columns.insert(0, [percent(one.percent) for one in losses])
    widths = [max(map(cell_len, column), default=0) for column in columns]
    rows = zip(*columns, strict=True)
    return [_GAP.join(cell.rjust(most) for cell, most in zip(row, widths, strict=True)) for row in rows]


def _command(command: str, indent: int = 0) -> Text:
    """Return a command on one line, which may be longer than the terminal is wide."""
    return Text(" " * indent + command, style="cyan", overflow="ignore") if indent else Text(command, style="cyan")


def amount_text(price: Price | None, ns: int) -> str:
    """Return lost time with its cost as far as known."""
    parts = [duration(ns)]
    if price is not None:
        parts.append(f"{number(round(price.hours(ns), 2))} accelerator hours")
        money = price.money(ns)
        parts += [] if money is None else [f"cost {money:,.2f}"]
    return ", ".join(parts)
