"""What the commands share: from the options as typed to an answer, and from there to where it is written.

What a command says on standard error beside its answer: composed here, in one order, by how much is wanted.

Where reports go: checked before any work, written whole or not at all.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Generic, TypeVar

import click

from goodput_cli.analysis.goodput.phrases import diagnostic_lines, explaining_line, strict_lines
from goodput_cli.analysis.sheet import Sheet
from goodput_cli.cli.console import (
    is_terminal,
    page_of_terminal,
    print_message,
    print_messages,
    print_safely,
    raise_what_was_lost,
    reading_progress,
    write_output,
)
from goodput_cli.cli.group import FileName
from goodput_cli.cli.options import CommandLine
from goodput_cli.cli.settings import NAME, SETTINGS, every_mapping
from goodput_cli.diagnostics.diagnostic import Diagnostic, problems
from goodput_cli.errors import GoodputError, NotEnoughData, ProblemsFound, SourceError, ThresholdNotMet, UsageError
from goodput_cli.report.base import Offer, Page, draws, format_of, is_binary, load_sheet_renderer
from goodput_cli.vocabulary.text import safe
from goodput_cli.whole_file import exists, write_whole

if TYPE_CHECKING:
    from goodput_cli.analysis.goodput.analysis import Analysis
    from goodput_cli.analysis.question import Price
    from goodput_cli.analysis.threshold import Expression, Threshold
    from goodput_cli.api.keywords import JobOptions


DEFAULT_FORMAT = "table"
Answer = TypeVar("Answer")
AnswerRenderer = Callable[[Answer, Page], str | bytes]
"""What writes an answer (an `Analysis`, a `Sheet`) in one format."""


@dataclass(frozen=True)
class OutputFile(Generic[Answer]):
    """One `-o`: the file, and what writes it."""

    path: Path
    renderer: AnswerRenderer[Answer]


@dataclass(frozen=True)
class Outputs(Generic[Answer]):
    """Everything one command writes. stdout: None where standard output stays empty."""

    stdout: AnswerRenderer[Answer] | None
    files: tuple[OutputFile[Answer], ...]
    force: bool

    def write(self, answer: Answer) -> None:
        """Render and write; `GoodputError` if a file cannot be written, `UsageError` if one appeared meanwhile."""
        for file in self.files:
            write_whole(file.path, file.renderer(answer, Page()), force=self.force)
        if self.stdout is not None:
            write_output(self.stdout(answer, page_of_terminal()))


_LOGS = ("source", "log_file", "baseline", "history")
"""Parameters that name logs."""


@dataclass(frozen=True)
class FilesRead:
    """All files that a command reads: it writes over none of them, whatever they are called where it would."""

    logs: tuple[str, ...]
    others: tuple[tuple[str, str], ...]
    """What else it reads: the option that names it, and the file."""

    @classmethod
    def of_command(cls) -> FilesRead:
        """Those of the command that runs: by its parameters, the settings that count and the mappings among them."""
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
        """`UsageError` for a file that is read."""
        from goodput_cli.sources.files import source_behind

        if source_behind(path, self.logs) is not None:
            raise UsageError(f"{path}: is one of the logs to be read; choose another file to write")
        self.check_others(path)

    def check_others(self, path: Path) -> None:
        """The same, but for logs."""
        from goodput_cli.sources.files import source_behind

        for option, name in self.others:
            if source_behind(path, [name]) is not None:
                raise UsageError(f"{path}: is read, as {option} says; choose another file to write")


def plan_outputs(
    format_name: str | None,
    paths: Sequence[str],
    load: Callable[[str], AnswerRenderer[Answer]],
    *,
    force: bool,
    charts: bool = False,
) -> Outputs[Answer]:
    """What will be written where: standard output gets the format asked for, or the table if nothing else is asked.
    force: as in `replaces`.

    load: from a format's name to the function that writes it; `UsageError` if there is none for this answer.
    charts: whether the answer has one; what draws it is started, if a format shows it.
    `UsageError`: an ending that names no format, a file that exists (without `force`) or is itself read, a file
    named twice, bytes for a terminal. `GoodputError`: a folder that does not exist or cannot be written to.
    """
    force = replaces(force)
    files = [(Path(path), format_of(path)) for path in paths]
    if len({writable(path, force).resolve() for path, _ in files}) < len(files):
        raise UsageError("two --output options name the same file")
    name = format_name or (None if files else DEFAULT_FORMAT)
    if name and is_binary(name) and is_terminal():
        raise UsageError(f"{name} is not for a terminal; write a file with -o, or pipe it into one")
    if charts and any(map(draws, (*(file_format for _, file_format in files), *([name] if name else [])))):
        start_to_draw()
    written = tuple(OutputFile(path, load(file_format)) for path, file_format in files)
    return Outputs(load(name) if name else None, written, force)


def start_to_draw() -> None:
    """Start what draws charts, until the command ends: while logs are read, nobody waits for it."""
    from goodput_cli.report.html import drawing_process

    drawing_process.start()
    click.get_current_context().call_on_close(drawing_process.stop)


def replaces(force: bool) -> bool:
    """Whether reports that exist are written anew: with `--force`, and in continuous integration, where a step that
    runs a second time finds what it left: GitHub, GitLab and most others set `CI`. A log that is read never is."""
    return force or os.environ.get("CI", "").strip().lower() not in ("", "0", "false", "no")


def writable(path: Path, force: bool) -> Path:
    """The same path, if a file can be written there. Raises as `plan_outputs`."""
    folder = path.parent
    if path.is_dir():
        raise UsageError(f"{path}: is a folder; name a file in it")
    if not folder.is_dir():
        raise UsageError(f"{path}: the folder {folder} does not exist; create it first")
    if path.exists():
        FilesRead.of_command().check(path)
    if path.exists() and not force:
        raise exists(path)
    if not os.access(folder, os.W_OK):
        raise GoodputError(f"{path}: no permission to write in {folder}")
    return path


@dataclass(frozen=True)
class Verbosity:
    """How much to say."""

    quiet: bool = False
    """Only what fails the run."""
    verbose: bool = False
    """Every place of every diagnostic."""
    strict: bool = False
    """What looks wrong fails the run."""


class Once:
    """Lets each diagnostic through once: an answer that is given again and again finds the same ones."""

    def __init__(self) -> None:
        self._known: set[tuple[str, str]] = set()

    def new(self, diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
        """Those that were not there before."""
        new = [one for one in diagnostics if (one.code, one.message) not in self._known]
        self._known.update((one.code, one.message) for one in new)
        return new


def remarks(
    volume: Verbosity,
    diagnostics: Sequence[Diagnostic],
    cautions: Iterable[str] = (),
    thresholds: Callable[[bool], Iterable[str]] = lambda _: (),
) -> Iterator[str]:
    """Diagnostics, cautions about how thresholds are judged, and the thresholds, each as lines that are safe to show.

    thresholds: the lines of them, called with whether those that passed are said too.
    """
    if not volume.quiet:
        yield from diagnostic_lines(diagnostics, every_place=volume.verbose)
        yield from explaining_line(diagnostics)
        yield from cautions
    yield from strict_lines(diagnostics, quiet=volume.quiet) if volume.strict else ()
    yield from thresholds(not volume.quiet)


CLOUD_LOGGING = "cloud-logging://"


@dataclass(frozen=True)
class Session(Generic[Answer]):
    """One run of a command: what to read, where to write, how much to say."""

    sources: list[str]
    outputs: Outputs[Answer]
    options: JobOptions
    """How to read and how to account, as arguments of the library's functions."""
    volume: Verbosity
    shows_progress: bool

    @contextmanager
    def reading(self, then: str = "accounting") -> Iterator[JobOptions]:
        """The options with what reading needs: standard input, and a line that shows how far it is (and `then`)."""
        with reading_progress(wanted=self.shows_progress, then=then) as progress:
            yield {**self.options, "stdin": self.stdin, "progress": progress, "notice": print_safely}

    def analyze(
        self,
        *,
        thresholds: Sequence[Expression] = (),
        window: Sequence[str | int] = (),
        every: int | None = None,
        price: Price | None = None,
    ) -> Analysis:
        """Read the sources and analyse one job."""
        from goodput_cli.api.analyze import analyze

        priced = {} if price is None else {"accelerators": price.accelerators, "price_per_hour": price.per_hour}
        with self.reading() as options:
            return analyze(self.sources, thresholds=thresholds, window=window, every=every, **priced, **options)

    def finish(
        self,
        answer: Answer,
        diagnostics: Sequence[Diagnostic] = (),
        *,
        thresholds: Iterable[Threshold] = (),
        threshold_lines: Callable[[bool], Iterable[str]] = lambda _: (),
        cautions: Iterable[str] = (),
    ) -> int:
        """Write the answer, say what there is to say about it (see `remarks`), and return the exit code.

        A threshold that failed comes before one that could not be judged, and both before what `--strict` finds.
        """
        raise_what_was_lost()
        self.outputs.write(answer)
        print_messages(remarks(self.volume, diagnostics, cautions, threshold_lines))
        binding = [threshold.met for threshold in thresholds if threshold.fails]
        if True in binding:
            return ThresholdNotMet.exit_code
        if None in binding:
            return NotEnoughData.exit_code
        return ProblemsFound.exit_code if self.volume.strict and problems(diagnostics) else 0

    @property
    def stdin(self) -> BinaryIO | None:
        """What stands behind `-`; None where that is not among the sources."""
        if "-" not in self.sources:
            return None
        if sys.stdin is None:
            raise SourceError("-: standard input is closed; pipe a log into it, or name a file")
        return sys.stdin.buffer


def open_session(
    line: CommandLine,
    load: Callable[[str], AnswerRenderer[Answer]],
    jobs: Sequence[str] = (),
    *,
    charts: bool = False,
    screen: AnswerRenderer[Answer] | None = None,
) -> Session[Answer]:
    """A session from a command line; nothing is read yet, but where to write is checked.

    load: from a format's name to the function that writes the command's answer in it.
    jobs: those named, in comparisons.
    charts: whether the answer has one.
    screen: what writes on standard output, if not a format.
    """
    output = line.output
    sources = sources_of(line, jobs)
    outputs = plan_outputs(output.format_, output.output, load, force=output.force, charts=charts)
    return Session(
        sources=sources,
        outputs=outputs if screen is None else replace(outputs, stdout=screen),
        options=line.library,
        volume=Verbosity(output.quiet, output.verbose, line.strict),
        shows_progress=not (output.no_progress or output.quiet),
    )


def is_brief(line: CommandLine, *, full: bool) -> bool:
    """Whether an answer goes to a terminal alone, as the table, and nobody asked for all of it."""
    output = line.output
    return is_terminal() and output.format_ in (None, "table") and not (output.output or output.verbose or full)


def open_sheet_session(line: CommandLine, jobs: Sequence[str] = (), *, offers: Sequence[Offer] = ()) -> Session[Sheet]:
    """A session of a command that answers with a `Sheet`. offers: what it has beside its rows."""
    return open_session(line, lambda name: load_sheet_renderer(name, offers), jobs, charts="chart" in offers)


def sources_of(
    line: CommandLine, jobs: Sequence[str] = (), hint: str = "name a log file, a folder, or - for standard input"
) -> list[str]:
    """The sources named; with none, Cloud Logging for the job that is named (or, in comparisons, for several).

    hint: what to do where neither is named.
    """
    if line.sources:
        return list(line.sources)
    job = line.library.get("job_name") or ", ".join(jobs)
    if not job:
        context = click.get_current_context()
        raise click.UsageError(f"no SOURCE: {hint}, as in '{context.command_path} run.jsonl'", context)
    print_message(f"No SOURCE: looking for the job {safe(job)} in Cloud Logging.")
    return [CLOUD_LOGGING]
