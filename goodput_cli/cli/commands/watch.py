"""`goodput watch`: the analysis of a running job, drawn again as its log grows."""

from __future__ import annotations

import json
import shutil
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from goodput_cli.analysis.goodput.phrases import diagnostic_lines
from goodput_cli.api.options import Following
from goodput_cli.cli.console import (
    page_of_terminal,
    print_messages,
    print_safely,
    raise_again,
    raise_what_was_lost,
    write_output,
)
from goodput_cli.cli.options import FORMAT, CommandLine, GroupedCommand, option, options_of, shared_options
from goodput_cli.cli.session import Once, Verbosity, remarks, sources_of
from goodput_cli.diagnostics.diagnostic import problems
from goodput_cli.errors import ProblemsFound, UsageError
from goodput_cli.report.base import is_binary, load_renderer
from goodput_cli.vocabulary.text import safe, safe_lines

if TYPE_CHECKING:
    from goodput_cli.api.keywords import JobOptions
    from goodput_cli.api.watch import Update

_ENTER, _LEAVE, _HOME, _CLEAR_LINE, _CLEAR_REST = "\x1b[?1049h", "\x1b[?1049l", "\x1b[H", "\x1b[K", "\x1b[J"
_LAST_NOTICES = 3


class _NobodyReads(Exception):
    """The reader of standard output closed it (as `head` does)."""


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput watch run.jsonl
      goodput watch logs/ -j llm-7b --interval 10
      goodput watch gs://bucket/logs/llm-7b --format json >> goodput.jsonl
      goodput watch run.jsonl --updates 1 --as-of now

    Ends with Ctrl-C. Without a terminal, each update is written below the one before,
    whenever lines arrived; --format json writes one line an update.""",
)
@shared_options(output=False)
@options_of(Following, "following")
@option("Out", "--updates", metavar="N", type=click.IntRange(min=1), help="End after N updates.")
@option("Out", "--format", "format_", metavar="FORMAT", type=FORMAT, default="table", help="table, json, markdown …")
@option("Out", "--quiet", "-q", is_flag=True, help="No diagnostics.")
def watch(line: CommandLine, following: Following, updates: int | None, format_: str, quiet: bool) -> int:
    """Follow a running job: the answer is redrawn as it grows.

    SOURCE is a file, a glob, a folder, gs:// or cloud-logging://. Only what is new is read; a file may be truncated,
    renamed or replaced meanwhile. Unless --as-of says otherwise, time in which nothing was logged counts.
    """
    from goodput_cli.api.watch import watch as watch_logs

    sources = sources_of(line, hint="name the log to follow")
    notices: deque[str] = deque(maxlen=_LAST_NOTICES)
    on_screen = sys.stdout.isatty() and format_ == "table"
    options: JobOptions = {**line.library, "notice": notices.append if on_screen else print_safely}
    options["as_of"] = options.get("as_of") or "now"
    answers = watch_logs(sources, interval=following.interval, **options)
    raise_again()
    show = _screen(notices, ", ".join(sources), quiet) if on_screen else _stream(format_, quiet)
    with suppress(_NobodyReads), show as showing:
        shown = 0
        for update in answers:
            raise_what_was_lost()
            shown += showing(update)
            diagnostics = update.analysis.diagnostics if update.analysis is not None else ()
            if line.strict and problems(diagnostics):
                print_messages(remarks(Verbosity(quiet=True, strict=quiet), diagnostics))
                return ProblemsFound.exit_code
            if updates is not None and shown >= updates:
                break
    return 0


@contextmanager
def _stream(format_: str, quiet: bool) -> Iterator[Callable[[Update], bool]]:
    """Updates one below the other where something is new, diagnostics once on standard error."""
    if is_binary(format_):
        raise UsageError(f"watch writes text, and {format_} is not; use goodput analyze -o FILE for it")
    render = load_renderer(format_)
    once, waiting, written = Once(), "", False

    def show(update: Update) -> bool:
        nonlocal waiting, written
        if written and not update.changed:
            return False
        if update.analysis is None:
            if update.waiting != waiting:
                print_safely(f"Waiting: {update.waiting}")
            waiting = update.waiting
            return False
        text = render(update.analysis, page_of_terminal())
        if not write_output(json.dumps(json.loads(text)) + "\n" if format_ == "json" else text):
            raise _NobodyReads
        written = True
        print_messages(remarks(Verbosity(quiet=quiet), once.new(update.analysis.diagnostics)))
        return True

    yield show


@contextmanager
def _screen(notices: Iterable[str], named: str, quiet: bool) -> Iterator[Callable[[Update], bool]]:
    """Updates in place, on the other screen of the terminal; the last one stays when it is left."""
    render = load_renderer("table")
    last, below = "", f"watching {safe(named)}; Ctrl-C ends"

    def show(update: Update) -> bool:
        nonlocal last
        page = page_of_terminal()
        analysis = update.analysis
        last = str(render(analysis, page)) if analysis is not None else f"Waiting: {safe_lines(update.waiting)}\n"
        findings = [] if quiet or analysis is None else list(diagnostic_lines(analysis.diagnostics))
        write_output(_frame(f"{last}\n" + "\n".join(findings), "\n".join([*map(safe_lines, notices), below])))
        return True

    write_output(_ENTER + _frame("Reading\n", below))
    try:
        yield show
    finally:
        write_output(_LEAVE + last)


def _frame(text: str, foot: str) -> str:
    """The text from the top of the screen, as much of it as fits above the foot, without a flicker."""
    height = shutil.get_terminal_size((80, 24)).lines
    lines, last = text.splitlines(), foot.splitlines()
    room = max(height - len(last), 1)
    if len(lines) > room:
        lines = [*lines[: room - 1], "… (the terminal is too small for the rest)"]
    return _HOME + "\n".join(line + _CLEAR_LINE for line in (lines + last)[:height]) + _CLEAR_REST
