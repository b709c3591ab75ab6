"""Hints: what a person says about logs that do not say it themselves, such as the year of stamps without one."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from goodput_cli.errors import UsageError
from goodput_cli.vocabulary.option import option
from goodput_cli.vocabulary.when import When, parse_when

if TYPE_CHECKING:
    from goodput_cli.events.mappings.registry import MappingFile, Mappings

DRAFT = "the draft"
"""What stands for the file of a mapping that was drafted."""
WHAT = "Logs"
"""The heading in `--help` of options about reading logs."""


def _read_year(value: str | int) -> int:
    year = int(value) if str(value).isascii() and str(value).isdigit() else 0
    if not 1970 <= year < 2255:
        raise UsageError(f"--year {value}: is no year from 1970 to 2254")
    return year


def _read_start(value: str | When) -> When:
    """A time that needs no job to be one."""
    when = parse_when(value) if isinstance(value, str) else value
    if when.kind not in ("instant", "local"):
        raise UsageError(f"--start {when.text}: write a date and a time, such as 2026-01-31T14:05")
    return when


def _read_host(value: str) -> str:
    """A host's name, in which `*`, `?` and `[...]` stand for others."""
    if not value.strip():
        raise UsageError("--hosts-of-job: write a host, or a pattern such as node-*")
    return value.strip().lower()


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """What the person who asks knows and the log does not say."""

    mapping: tuple[str, ...] = option(
        (),
        WHAT,
        "A log format of your own: TOML (docs/mappings.md).",
        about="Files that declare log formats.",
        metavar="FILE",
        read=os.fspath,
    )
    year: int | None = option(
        None,
        WHAT,
        "The year of stamps that name none.",
        about="The year of stamps without one; None for that of stamps around them, or of the file's last change.",
        metavar="YYYY",
        read=_read_year,
    )
    clock_start: When | None = option(
        None,
        WHAT,
        "When a text without any time began.",
        about="When text in which no line has a time began; None: what it says ends when the file was last changed.",
        accepts="When | str | None",
        names=("--start",),
        metavar="TIME",
        read=_read_start,
    )
    tensorboard_tag: str | None = option(
        None,
        WHAT,
        "The scalar of event files whose steps count.",
        about="The scalar of TensorBoard's event files whose steps are those of training; None for the likeliest.",
        metavar="TAG",
        read=str,
    )
    exact_run_name: bool = option(
        False,
        WHAT,
        "Treat each run of ML Diagnostics or MLflow as a job.",
        about="Whether each run of ML Diagnostics or MLflow is a job, even if it likely continues another one.",
    )
    join: bool = option(
        False,
        WHAT,
        "Text files of a folder are one job, however far apart in time.",
        about="Whether files of text in one folder are one job, though the later begin anew weeks after the others.",
    )
    hosts_of_job: tuple[str, ...] = option(
        (),
        WHAT,
        "Hosts on which the job ran: kernel logs of these count.",
        about="Patterns of hosts on which the job ran, besides those that lines name: logs of their kernels count.",
        metavar="GLOB",
        read=_read_host,
    )
    quotes: bool = option(
        True,
        WHAT,
        "Quote no line that says why an attempt died.",
        about="Whether lines that say why an attempt died are quoted; their places are named either way.",
        names=("--no-quotes",),
    )
    job_name: str | None = None
    """What text, which names no job, is called."""
    shared_levels: int | None = None
    """How many levels of folders are those of all files, where these lie in several: then names of files that every
    program gives say nothing."""
    drafted: str = ""
    """The mapping that was drafted from the sources themselves (TOML), `DRAFT` of `mapping`."""
    samples: bool = True
    """Whether the samples of mappings have to be read as they say."""
    now_ns: int = field(default_factory=time.time_ns)
    """Where nobody knows when a source was last written to; ns since 1970 UTC."""

    @cached_property
    def files(self) -> tuple[MappingFile, ...]:
        """The files of mappings, as they are now. Raises UsageError for one that cannot be read."""
        from goodput_cli.events.mappings.registry import MappingFile, read_files  # few logs need one

        if not self.drafted:
            return read_files(self.mapping) if self.mapping else ()
        return (*read_files(one for one in self.mapping if one != DRAFT), MappingFile(DRAFT, self.drafted))

    @cached_property
    def mappings(self) -> Mappings:
        """The formats that the files declare, and those that are shipped. Raises UsageError for a mistake."""
        from goodput_cli.events.mappings.registry import load_mappings  # few logs need one

        return load_mappings(self.files, samples=self.samples)

    def with_draft(self, mapping: str) -> ReadingOptions:
        """The same, with a mapping that was drafted from the sources."""
        return replace(self, mapping=(*self.mapping, DRAFT), drafted=mapping)

    def checked(self) -> ReadingOptions:
        """The same, with mappings that hold. Raises UsageError for one with a mistake, before anything is read."""
        if self.mapping:
            self.mappings  # noqa: B018
        return self

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs: what is in the files, which it may not see, and not what was made of them."""
        return {"files": self.files, **{name: value for name, value in self.__dict__.items() if name != "mappings"}}

    def about(self, job_name: str | None) -> ReadingOptions:
        """The same of a job."""
        return replace(self, job_name=job_name) if job_name and not self.job_name else self
