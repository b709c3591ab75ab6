"""Where reports go: checked before any work, written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import click

from goodput_cli.cli.console import is_terminal, page_of_terminal, write_output
from goodput_cli.errors import GoodputError, UsageError
from goodput_cli.report.base import Page, draws, format_of, is_binary
from goodput_cli.report.whole_file import exists, write_whole

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


def plan_outputs(
    format_name: str | None,
    paths: Sequence[str],
    sources: Sequence[str],
    load: Callable[[str], AnswerRenderer[Answer]],
    *,
    force: bool,
    charts: bool = False,
) -> Outputs[Answer]:
    """What will be written where: standard output gets the format asked for, or the table if nothing else is asked.
    force: as in `replaces`.

    load: from a format's name to the function that writes it; `UsageError` if there is none for this answer.
    charts: whether the answer has one; what draws it is started, if a format shows it.
    `UsageError`: an ending that names no format, a file that exists (without `force`) or is itself a source, a file
    named twice, bytes for a terminal. `GoodputError`: a folder that does not exist or cannot be written to.
    """
    force = replaces(force)
    files = [(Path(path), format_of(path)) for path in paths]
    if len({writable(path, sources, force).resolve() for path, _ in files}) < len(files):
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


def writable(path: Path, sources: Sequence[str], force: bool) -> Path:
    """The same path, if a file can be written there. Raises as `plan_outputs`."""
    folder = path.parent
    if path.is_dir():
        raise UsageError(f"{path}: is a folder; name a file in it")
    if not folder.is_dir():
        raise UsageError(f"{path}: the folder {folder} does not exist; create it first")
    if path.exists():
        from goodput_cli.sources.files import source_behind

        if source_behind(path, sources) is not None:
            raise UsageError(f"{path}: is one of the logs to be read; choose another file for the report")
    if path.exists() and not force:
        raise exists(path)
    if not os.access(folder, os.W_OK):
        raise GoodputError(f"{path}: no permission to write in {folder}")
    return path
