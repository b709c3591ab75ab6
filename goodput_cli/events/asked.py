"""What was asked about logs that do not say everything themselves: text, event files, and formats of one's own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from goodput_cli.events.mappings.registry import Mappings, load_mappings


@dataclass(frozen=True)
class Asked:
    """What the person who asks knows and the log does not say."""

    job_name: str | None = None
    """What text, which names no job, is called."""
    year: int | None = None
    """Of stamps without one."""
    tensorboard_tag: str | None = None
    """The scalar of event files whose steps count."""
    mappings: Mappings = field(default_factory=Mappings)
    """Formats that a user declared."""
    now_ns: int = field(default_factory=time.time_ns)
    """Where nobody knows when a source was last written to; ns since 1970 UTC."""

    def about(self, job_name: str | None) -> Asked:
        """The same of a job."""
        return replace(self, job_name=self.job_name or job_name)


def asked(mapping: Sequence[str] = (), year: int | None = None, tensorboard_tag: str | None = None) -> Asked:
    """What the options of these names say. Raises UsageError for a mapping with a mistake."""
    return Asked(None, year, tensorboard_tag, load_mappings(mapping) if mapping else Mappings())
