"""Time zones, by the names that logs and command lines use."""

from __future__ import annotations

import re
from datetime import UTC, timedelta, timezone, tzinfo

from goodput_cli.errors import UsageError

_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})")


AUTO = "auto"
"""In place of a zone: what the log itself shows, else UTC."""


def load_zone(name: str) -> tzinfo:
    """The zone behind a name such as `Europe/Berlin`, `UTC` or `+05:30`. Raises UsageError if there is none."""
    from zoneinfo import ZoneInfo

    if name.upper() in ("UTC", "Z", AUTO.upper()):
        return UTC
    offset = _OFFSET.fullmatch(name)
    try:
        if offset:
            sign = -1 if offset[1] == "-" else 1
            return timezone(sign * timedelta(hours=int(offset[2]), minutes=int(offset[3])))
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        hint = "use a name such as UTC, Europe/Berlin or America/Los_Angeles, or an offset such as +05:30"
        raise UsageError(f"unknown time zone {name!r}; {hint}") from error
