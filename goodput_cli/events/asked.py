"""What was asked about logs that do not say everything themselves: text, event files, and formats of one's own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from goodput_cli.events.formats.base import Format
    from goodput_cli.events.mappings.registry import MappingFile, Mappings
    from goodput_cli.vocabulary.when import When


@dataclass(frozen=True)
class Asked:
    """What the person who asks knows and the log does not say."""

    job_name: str | None = None
    """What text, which names no job, is called."""
    year: int | None = None
    """Of stamps without one."""
    tensorboard_tag: str | None = None
    """The scalar of event files whose steps count."""
    clock_start: When | None = None
    """When text without any time began."""
    exact_run_name: bool = False
    """Whether runs of ML Diagnostics whose names differ are jobs of their own."""
    mapping: tuple[MappingFile, ...] = ()
    """Files that declare formats, as they were read."""
    samples: bool = True
    """Whether the samples of mappings have to be read as they say."""
    now_ns: int = field(default_factory=time.time_ns)
    """Where nobody knows when a source was last written to; ns since 1970 UTC."""

    @cached_property
    def mappings(self) -> Mappings:
        """The formats that the files declare, and those that are shipped. Raises UsageError for a mistake."""
        from goodput_cli.events.mappings.registry import load_mappings  # few logs need one

        return load_mappings(self.mapping, samples=self.samples)

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs: the files, not what was made of them."""
        return {name: value for name, value in self.__dict__.items() if name != "mappings"}

    @property
    def first_formats(self) -> Sequence[Format]:
        """Formats of records that a user declared."""
        return self.mappings.first_formats if self.mapping else ()

    @property
    def last_formats(self) -> Sequence[Format]:
        """Formats of records that shipped mappings declare."""
        return self.mappings.last_formats

    def about(self, job_name: str | None) -> Asked:
        """The same of a job."""
        return replace(self, job_name=self.job_name or job_name)


def asked(
    mapping: Sequence[str] = (),
    year: int | None = None,
    tensorboard_tag: str | None = None,
    clock_start: When | None = None,
    exact_run_name: bool = False,
    *,
    samples: bool = True,
) -> Asked:
    """What the options of these names say. samples: whether those of mappings have to be read as they say. Raises
    UsageError for a mapping with a mistake."""
    made = Asked(None, year, tensorboard_tag, clock_start, exact_run_name)
    if not mapping:
        return made
    from goodput_cli.events.mappings.registry import read_files  # few logs need one

    made = replace(made, mapping=read_files(mapping), samples=samples)
    made.mappings  # noqa: B018 - a mistake is said before anything is read
    return made
