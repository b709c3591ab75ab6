"""Options with information that the logs do not contain, such as the year of timestamps without one."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from goodput_cli.errors import UsageError
from goodput_cli.vocabulary.option import option
from goodput_cli.vocabulary.when import TimeArgument, parse_when

if TYPE_CHECKING:
    from goodput_cli.events.mappings.registry import MappingFile, Mappings

DRAFT = "the draft"
"""Replaces the file name of an inferred mapping."""
WHAT = "Logs"
"""The heading in `--help` of options about reading logs."""


def _read_year(value: str | int) -> int:
    year = int(value) if str(value).isascii() and str(value).isdigit() else 0
    if not 1970 <= year < 2255:
        raise UsageError(f"--year {value}: out of range", tip="use a year from 1970 to 2254")
    return year


def _read_start(value: str | TimeArgument) -> TimeArgument:
    """Return a time that does not depend on the job."""
    when = parse_when(value) if isinstance(value, str) else value
    if when.kind not in ("instant", "local"):
        raise UsageError(
            f"--start {when.text}: not a date and a time", tip="use a date and a time, such as 2026-01-31T14:05"
        )
    return when


def _read_host(value: str) -> str:
    """Return a host name or a glob pattern of host names."""
    if not value.strip():
        raise UsageError("--hosts-of-job: not a host name", tip="use a host name, or a pattern such as node-*")
    return value.strip().lower()


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """Information from the user that the logs do not contain."""

    mapping: tuple[str, ...] = option(
        (),
        WHAT,
        "Read a log format from a TOML file (docs/mappings.md). Repeatable.",
        about="TOML files that declare log formats.",
        metavar="FILE",
        read=os.fspath,
    )
    year: int | None = option(
        None,
        WHAT,
        "Year of timestamps without one.",
        about="Year of timestamps without one. None: that of nearby timestamps, or of the file's last change.",
        metavar="YYYY",
        read=_read_year,
    )
    clock_start: TimeArgument | None = option(
        None,
        WHAT,
        "Start time of a log without timestamps.",
        about="Start time of a log without timestamps. None: it ends when the file was last changed.",
        accepts="TimeArgument | str | None",
        names=("--start",),
        metavar="TIME",
        read=_read_start,
    )
    tensorboard_tag: str | None = option(
        None,
        WHAT,
        "TensorBoard scalar whose steps are the training steps.",
        about="TensorBoard scalar whose steps are the training steps. None: the most likely one.",
        metavar="TAG",
        read=str,
    )
    exact_run_name: bool = option(
        False,
        WHAT,
        "Treat each run of ML Diagnostics or MLflow as a job.",
        about="Treat each run of ML Diagnostics or MLflow as a job, even if it continues another run.",
    )
    join: bool = option(
        False,
        WHAT,
        "Treat all text files in a folder as one job, whatever the gap between them.",
        about="Treat all text files in a folder as one job, whatever the gap between them.",
    )
    hosts_of_job: tuple[str, ...] = option(
        (),
        WHAT,
        "Use kernel logs of hosts that match GLOB. Repeatable.",
        about="Patterns of more hosts of the job, whose kernel logs count.",
        metavar="GLOB",
        read=_read_host,
    )
    quotes: bool = option(
        True,
        WHAT,
        "Do not quote the log lines that show failure causes.",
        about="Quote the log lines that show failure causes. Their locations are always shown.",
        names=("--no-quotes",),
    )
    job_name: str | None = None
    """The job name of text logs, which contain none."""
    shared_levels: int | None = None
    """The number of folder levels that all files share, if they are in several folders. Usual file names then do not
    identify a job."""
    drafted: tuple[str, ...] = ()
    """The mappings (TOML) that were inferred from the sources, `DRAFT` in `mapping`."""
    samples: bool = True
    """Check the samples of mappings."""
    now_ns: int = field(default_factory=time.time_ns)
    """Replaces an unknown modification time of a source; ns since 1970 UTC."""

    @cached_property
    def files(self) -> tuple[MappingFile, ...]:
        """Return the mapping files as they are now. Raises UsageError for one that cannot be read."""
        from goodput_cli.events.mappings.registry import MappingFile, read_files  # imported late: few logs need it

        if not self.drafted:
            return read_files(self.mapping) if self.mapping else ()
        drafted = (MappingFile(DRAFT, one) for one in self.drafted)
        return (*read_files(one for one in self.mapping if one != DRAFT), *drafted)

    @cached_property
    def mappings(self) -> Mappings:
        """Return the formats of the files and the shipped ones. Raises UsageError for a mistake."""
        from goodput_cli.events.mappings.registry import load_mappings  # imported late: few logs need it

        return load_mappings(self.files, samples=self.samples)

    def with_draft(self, mapping: str) -> ReadingOptions:
        """Return a copy with one more mapping that was inferred from the sources."""
        return replace(self, mapping=(*self.mapping, DRAFT), drafted=(*self.drafted, mapping))

    def checked(self) -> ReadingOptions:
        """Check the mappings before anything is read. Raises UsageError for a mistake."""
        if self.mapping:
            self.mappings  # noqa: B018
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for another process: the contents of the files, without the parsed mappings."""
        return {"files": self.files, **{name: value for name, value in self.__dict__.items() if name != "mappings"}}

    def about(self, job_name: str | None) -> ReadingOptions:
        """Return a copy for a job."""
        return replace(self, job_name=job_name) if job_name and not self.job_name else self
