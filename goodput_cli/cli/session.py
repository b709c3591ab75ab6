"""What the commands share: from the options as parsed to an analysis, and from an answer to where it is written."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, TypeVar

import click

from goodput_cli.analysis.sheet import Sheet
from goodput_cli.cli.console import say, tell
from goodput_cli.cli.memory import keep_freed_memory
from goodput_cli.cli.options import method_options, output_options, source_options, time_options
from goodput_cli.cli.outputs import AnswerRenderer, Outputs, plan_outputs
from goodput_cli.cli.progress import reading_progress
from goodput_cli.diagnostics.diagnostic import Diagnostic, problems
from goodput_cli.errors import NotEnoughData, ProblemsFound, SourceError, ThresholdNotMet
from goodput_cli.report.messages import diagnostic_lines, strict_lines
from goodput_cli.report.sheets.registry import load_sheet_renderer
from goodput_cli.vocabulary.text import safe

if TYPE_CHECKING:
    from goodput_cli.analysis.compare.compare import Comparison
    from goodput_cli.analysis.results import Analysis, Threshold
    from goodput_cli.events.schema import EventLog

Answer = TypeVar("Answer")
CLOUD_LOGGING = "cloud-logging://"
_OF_SESSION = ("source", "log_file", "format_", "output", "force", "quiet", "verbose", "no_progress", "strict")


def question_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command that asks something about one job: what, how, when and where to."""
    for options in (output_options, time_options, method_options, source_options):
        command = options(command)
    return command


@dataclass(frozen=True)
class Session(Generic[Answer]):
    """One run of a command: where to read, where to write, how much to say.

    question: the options that are left, as keyword arguments of `goodput_cli.analyze`.
    """

    sources: tuple[str, ...]
    outputs: Outputs[Answer]
    question: Mapping[str, Any]
    quiet: bool
    verbose: bool
    no_progress: bool
    strict: bool

    def analyze(self, **more: Any) -> Analysis:
        """Read the sources and analyse one job; `more` are further arguments of `goodput_cli.analyze`."""
        from goodput_cli.api.analyze import analyze

        with reading_progress(wanted=self._shows_progress, then="accounting") as progress:
            question = {**self.question, **more}
            return analyze(list(self.sources), stdin=self._stdin(), progress=progress, notice=tell, **question)

    def compare(self, **more: Any) -> Comparison:
        """Read every side and hold them against each other; `more` are further arguments of `sides.compare`."""
        from goodput_cli.api.compare import compare

        with reading_progress(wanted=self._shows_progress, then="accounting") as progress:
            question = {**self.question, **more}
            return compare(list(self.sources), stdin=self._stdin(), progress=progress, notice=tell, **question)

    def read(self) -> EventLog:
        """Read the sources, for commands that ask about all jobs in them."""
        from goodput_cli.events.read import read_events
        from goodput_cli.sources.base import Wanted

        wanted = Wanted(*(self.question[name] for name in ("job_name", "log_name", "lookback_days", "use_cache")))
        with reading_progress(wanted=self._shows_progress, then="accounting") as progress:
            zone = self.question.get("timezone", "UTC")
            stdin = self._stdin()
            return read_events(self.sources, timezone=zone, stdin=stdin, progress=progress, wanted=wanted, notice=tell)

    def answer(self, answer: Answer, diagnostics: Iterable[Diagnostic] = ()) -> int:
        """Write the answer, say the diagnostics, and return the exit code: 5 where `--strict` finds a problem."""
        found = list(diagnostics)
        self.outputs.write(answer)
        self.say_diagnostics(found)
        return self.exit_code(found)

    def exit_code(self, diagnostics: Sequence[Diagnostic], thresholds: Iterable[Threshold] = ()) -> int:
        """What the command exits with once all is said: a threshold that failed comes before one that could not be
        judged, and both before what `--strict` finds."""
        binding = [threshold.met for threshold in thresholds if threshold.fails]
        if True in binding:
            return ThresholdNotMet.exit_code
        if None in binding:
            return NotEnoughData.exit_code
        return ProblemsFound.exit_code if self.strict and problems(diagnostics) else 0

    def say_diagnostics(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Diagnostics on standard error, as far as the options ask for them."""
        say_diagnostics(diagnostics, quiet=self.quiet, strict=self.strict, every_place=self.verbose)

    @property
    def _shows_progress(self) -> bool:
        return not (self.no_progress or self.quiet)

    def _stdin(self) -> BinaryIO | None:
        if "-" not in self.sources:
            return None
        if sys.stdin is None:
            raise SourceError("-: standard input is closed; pipe a log into it, or name a file")
        return sys.stdin.buffer


def open_session(given: Mapping[str, Any], load: Callable[[str], AnswerRenderer[Answer]]) -> Session[Answer]:
    """A session from a command's parsed options; nothing is read yet, but where to write is checked.

    load: from a format's name to the function that writes the command's answer in it.
    """
    keep_freed_memory()
    question = {name: value for name, value in given.items() if name not in _OF_SESSION}
    sources = _sources([*given["source"], *given["log_file"]], question.get("job_name"))
    return Session(
        sources=tuple(sources),
        outputs=plan_outputs(given["format_"], given["output"], sources, load, force=given["force"]),
        question=question,
        quiet=given["quiet"],
        verbose=given["verbose"],
        no_progress=given["no_progress"],
        strict=given["strict"],
    )


def open_sheet_session(given: Mapping[str, Any]) -> Session[Sheet]:
    """A session of a command that answers with a `Sheet`."""
    return open_session(given, load_sheet_renderer)


def say_diagnostics(diagnostics: Iterable[Diagnostic], *, quiet: bool, strict: bool, every_place: bool = False) -> None:
    """Diagnostics on standard error; of what `--quiet` leaves out only why `--strict` fails."""
    if not quiet:
        say_all(diagnostic_lines(diagnostics, every_place=every_place))
    elif strict:
        say_all(strict_lines(diagnostics))


def say_all(lines: Iterable[str]) -> None:
    """Lines on standard error."""
    for line in lines:
        say(line)


def _sources(named: list[str], job_name: str | Sequence[str] | None) -> list[str]:
    """The sources named; with none, Cloud Logging for a job (or, in comparisons, several) that is named."""
    if named:
        return named
    if not job_name:
        context = click.get_current_context()
        raise click.UsageError(
            f"no SOURCE: name a log file, a folder, or - for standard input, as in '{context.command_path} run.jsonl'",
            context,
        )
    jobs = job_name if isinstance(job_name, str) else ", ".join(job_name)
    say(f"No SOURCE: looking for the job {safe(jobs)} in Cloud Logging.")
    return [CLOUD_LOGGING]
