"""The common part of all commands: from typed options to an answer, its output files, and messages on standard error.

Output files are checked before any work, and written completely or not at all.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Generic, TypeVar

import click

from goodput_cli.analysis.goodput.phrases import (
    diagnostic_lines,
    explaining_line,
    strict_lines,
    threshold_lines,
)
from goodput_cli.analysis.sheet import Sheet
from goodput_cli.api.options import CLOUD_LOGGING
from goodput_cli.cli.console import (
    page_of_terminal,
    print_message,
    print_messages,
    print_safely,
    raise_what_was_lost,
    reading_progress,
    write_output,
)
from goodput_cli.cli.group import FileName, UsageErrorWithTip
from goodput_cli.cli.options import CommandLine
from goodput_cli.cli.settings import NAME, SETTINGS, every_mapping
from goodput_cli.diagnostics.diagnostic import Diagnostic, problems
from goodput_cli.errors import GoodputError, ProblemsFound, SourceError, UsageError, code_of_gates
from goodput_cli.report.base import Offer, Page, draws, format_of, is_binary, load_sheet_renderer
from goodput_cli.vocabulary.text import safe
from goodput_cli.whole_file import file_exists_error, write_whole

if TYPE_CHECKING:
    from goodput_cli.analysis.goodput.analysis import Analysis
    from goodput_cli.analysis.question import Price
    from goodput_cli.analysis.threshold import Expression, Threshold
    from goodput_cli.api.keywords import JobOptions


DEFAULT_FORMAT = "table"
Answer = TypeVar("Answer")
AnswerRenderer = Callable[[Answer, Page], str | bytes]
"""A function that renders an answer (an `Analysis`, a `Sheet`) in one format."""


_LOGS = ("source", "log_file", "baseline", "history")
"""Parameters that name logs."""


@dataclass(frozen=True)
class FilesRead:
    """All files that a command reads. It never overwrites them, under whatever path they are given."""

    logs: tuple[str, ...]
    others: tuple[tuple[str, str], ...]
    """Other input files, with their options."""

    @classmethod
    def of_command(cls) -> FilesRead:
        """Return the files of the running command, from its parameters, the active settings and the mappings."""
        context = click.get_current_context()
        logs: list[str] = []
        others = [("--mapping", one) for one in every_mapping(context.params.get(NAME) or ())[1]]
        others += [("--config", context.meta[SETTINGS])] if SETTINGS in context.meta else []
        for param in context.command.params:
            if not isinstance(param.type, FileName) or param.type.written or param.name is None:
                continue
            value = context.params.get(param.name) or ()
            names = [value] if isinstance(value, str) else value
            if param.name in _LOGS:
                logs += names
            else:
                others += [(max(param.opts, key=len), param.type.file_of(one)) for one in names]
        return cls(tuple(logs), tuple(others))

    def check(self, path: Path) -> None:
        """Raise UsageError for a file that is read."""
        from goodput_cli.sources.files import source_of_path

        if source_of_path(path, self.logs) is not None:
            raise UsageError(f"{path}: is one of the input logs", tip="choose another output file")
        self.check_others(path)

    def check_others(self, path: Path) -> None:
        """Raise UsageError for an input file other than a log."""
        from goodput_cli.sources.files import source_of_path

        for option, name in self.others:
            if source_of_path(path, [name]) is not None:
                raise UsageError(f"{path}: is an input ({option})", tip="choose another output file")


def start_to_draw() -> None:
    """Start the chart renderer while logs are read, so that charts do not wait for it."""
    from goodput_cli.report.html import drawing_process

    drawing_process.start()
    click.get_current_context().call_on_close(drawing_process.stop)


def writable(path: Path, *, force: bool) -> Path:
    """Return the path if a file can be written there. Existing files need `force`. Raises UsageError, and GoodputError
    for a directory that is not writable."""
    folder = path.parent
    if path.is_dir():
        raise UsageError(f"{path}: is a folder", tip="use a file in it")
    if not folder.is_dir():
        raise UsageError(f"{path}: the folder {folder} does not exist", tip="create it first")
    if path.exists():
        FilesRead.of_command().check(path)
    if path.exists() and not force:
        raise file_exists_error(path)
    if not os.access(folder, os.W_OK):
        raise GoodputError(f"{path}: no permission to write in {folder}")
    return path


class NewDiagnostics:
    """Filter that lets each diagnostic through once. Repeated answers find the same ones."""

    def __init__(self) -> None:
        self._known: set[tuple[str, str]] = set()

    def new(self, diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
        """Return those that were not there before."""
        new = [one for one in diagnostics if (one.code, one.message) not in self._known]
        self._known.update((one.code, one.message) for one in new)
        return new


def remarks(
    diagnostics: Sequence[Diagnostic],
    cautions: Iterable[str] = (),
    thresholds: Callable[[bool], Iterable[str]] = lambda _: (),
    *,
    quiet: bool = False,
    verbose: bool = False,
    strict: bool = False,
) -> Iterator[str]:
    """Yield diagnostics, cautions about how thresholds are judged, and the thresholds, each as lines that are safe to
    show.

    thresholds: returns their lines, called with True to include those that passed. quiet: only what fails the run.
    verbose: every location of every diagnostic. strict: warnings fail the run.
    """
    if not quiet:
        yield from diagnostic_lines(diagnostics, every_place=verbose)
        yield from explaining_line(diagnostics)
        yield from cautions
    yield from strict_lines(diagnostics, quiet=quiet) if strict else ()
    yield from thresholds(not quiet)


@dataclass(frozen=True)
class Session(Generic[Answer]):
    """One run of a command: what was typed, what to read, and where to write."""

    line: CommandLine
    sources: list[str]
    stdout: AnswerRenderer[Answer] | None
    """The renderer for standard output; None if it stays empty."""
    files: tuple[tuple[Path, AnswerRenderer[Answer]], ...]
    """Each file to write, with its renderer."""

    @property
    def shows_progress(self) -> bool:
        """Return True if a progress line is shown."""
        return not (self.line.output.no_progress or self.line.output.quiet)

    @contextmanager
    def reading(self, then: str = "accounting") -> Iterator[JobOptions]:
        """Yield the options for reading: with standard input, and a progress line (which shows `then` after
        reading)."""
        with reading_progress(wanted=self.shows_progress, then=then) as progress:
            yield {**self.line.library, "stdin": self.stdin, "progress": progress, "notice": print_safely}

    def analyze(
        self,
        *,
        thresholds: Sequence[Expression] = (),
        window: Sequence[str | int] = (),
        every: int | None = None,
        price: Price | None = None,
    ) -> Analysis:
        """Read the sources and analyze one job."""
        from goodput_cli.api.analyze import analyze

        priced = {} if price is None else {"accelerators": price.accelerators, "price_per_hour": price.per_hour}
        with self.reading() as options:
            draft = self.line.draft
            return analyze(
                self.sources, thresholds=thresholds, window=window, every=every, draft=draft, **priced, **options
            )

    def finish(
        self,
        answer: Answer,
        diagnostics: Sequence[Diagnostic] = (),
        *,
        thresholds: Sequence[Threshold] = (),
        lines_of_thresholds: Callable[[bool], Iterable[str]] | None = None,
        cautions: Iterable[str] = (),
    ) -> int:
        """Write the answer, print its messages (see `remarks`), and return the exit code.

        lines_of_thresholds: as in `remarks`; None: those of `thresholds`. Lines of thresholds come before findings of
        `--strict`. Raises `GoodputError` if a file cannot be written, `UsageError` if one appeared meanwhile.
        """
        raise_what_was_lost()
        output, strict = self.line.output, self.line.strict
        for file, render in self.files:
            write_whole(file, render(answer, Page()), force=output.replaces)
        if self.stdout is not None:
            write_output(self.stdout(answer, page_of_terminal()))
        lines = lines_of_thresholds or (lambda with_passes: threshold_lines(thresholds, with_passes=with_passes))
        said = remarks(diagnostics, cautions, lines, quiet=output.quiet, verbose=output.verbose, strict=strict)
        print_messages(said)
        code = code_of_gates([threshold.met for threshold in thresholds if threshold.fails])
        return code or (ProblemsFound.exit_code if strict and problems(diagnostics) else 0)

    @property
    def stdin(self) -> BinaryIO | None:
        """Return the stream of the source `-`; None if it is not among the sources."""
        if "-" not in self.sources:
            return None
        if sys.stdin is None:
            raise SourceError("-: standard input is closed", tip="pipe a log into it, or pass a file")
        return sys.stdin.buffer


def open_session(
    line: CommandLine,
    load: Callable[[str], AnswerRenderer[Answer]],
    jobs: Sequence[str] = (),
    *,
    charts: bool = False,
) -> Session[Answer]:
    """Open a session from a command line. Nothing is read yet, but the outputs are checked. Standard output gets the
    requested format, or the table if no output is requested, else nothing.

    load: returns the function that writes the answer in a format; raises `UsageError` if there is none. jobs: those
    named, in comparisons. charts: True if the answer has one; the chart renderer is started if a format shows it.
    Raises `UsageError` also for an unknown file extension, a file that exists (without `force`) or is read, a file
    named twice, or bytes for a terminal. Raises `GoodputError` for a directory that does not exist or is not writable.
    """
    sources, output = sources_of(line, jobs), line.output
    files = [(Path(path), format_of(path)) for path in output.output]
    if len({writable(path, force=output.replaces).resolve() for path, _ in files}) < len(files):
        raise UsageError("two --output options name the same file")
    name = output.format_ or (None if files else DEFAULT_FORMAT)
    if name and is_binary(name) and sys.stdout.isatty():
        raise UsageError(f"{name} cannot be shown on a terminal", tip="write a file with -o, or use a pipe")
    if charts and any(map(draws, (*(file_format for _, file_format in files), *([name] if name else [])))):
        start_to_draw()
    written = tuple((path, load(file_format)) for path, file_format in files)
    return Session(line, sources, load(name) if name else None, written)


def is_brief(line: CommandLine, *, full: bool) -> bool:
    """Return True if the answer is only shown as a table on a terminal, without --full."""
    output = line.output
    return sys.stdout.isatty() and output.format_ in (None, "table") and not (output.output or output.verbose or full)


def open_sheet_session(line: CommandLine, jobs: Sequence[str] = (), *, offers: Sequence[Offer] = ()) -> Session[Sheet]:
    """Open the session of a command that answers with a `Sheet`. offers: its optional parts besides rows."""
    return open_session(line, lambda name: load_sheet_renderer(name, offers), jobs, charts="chart" in offers)


def sources_of(
    line: CommandLine, jobs: Sequence[str] = (), hint: str = "pass a log file, a folder, or - for standard input"
) -> list[str]:
    """Return the named sources; without any, Cloud Logging for the named job (or, in comparisons, for several).

    hint: advice if neither is named.
    """
    if line.sources:
        return list(line.sources)
    job = line.library.get("job_name") or ", ".join(jobs)
    if not job:
        context = click.get_current_context()
        raise UsageErrorWithTip("no SOURCE", f"{hint}, for example `{context.command_path} run.jsonl`", context)
    print_message(f"No SOURCE: looking for the job {safe(job)} in Cloud Logging.")
    return [CLOUD_LOGGING]
