"""`log_event` of `resiliency.goodput_measure.logging`; for a file, it imports no Google library."""

from __future__ import annotations

import json
import os
import threading

from ...of_recorder import VITAL, Writer, in_path, known_project, print_to_stderr

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_DEFAULT_JOB = "training-job"
_TAIL = 64 << 10
_lock = threading.Lock()
_logs: dict[tuple[str, bool], _Log] = {}


def log_event(event_type: str, **kwargs: Any) -> None:
    """Write an event with the current time.

    The job is JOB_IDENTIFIER. With GOODPUT_USE_FILE_TRACKING the line goes to `<job>-goodput.log` in the working
    folder, otherwise to the log `<job>-goodput` of Cloud Logging. It never raises.
    """
    try:
        job_name = os.environ.get("JOB_IDENTIFIER") or _DEFAULT_JOB
        key = (job_name, bool(os.environ.get("GOODPUT_USE_FILE_TRACKING")))
        with _lock:
            log = _logs.get(key)
            if log is None or log.closed:
                log = _logs[key] = _Log(*key)
        log.write(str(event_type), kwargs)
    except Exception as error:
        print_to_stderr(f"{event_type} is not recorded ({type(error).__name__})")


class _Log:
    """The log of one job. A file that began with timestamps without an offset is continued in the same way, because the
    library's own calculator cannot compare the two kinds."""

    def __init__(self, job_name: str, to_file: bool) -> None:
        self._job_name = job_name
        project = None if to_file else known_project()
        if not to_file and project is None:
            print_to_stderr("no Google Cloud project found: events are written to a file in the working folder")
        name = f"{job_name}-goodput"
        path = f"{in_path(job_name)}-goodput.log"
        target = path if project is None else f"cloud-logging://{project}/{name}"
        self._naive = project is None and _ends_without_offset(path)
        self._writer = Writer(job_name, os.path.join(".", target) if project is None else target)

    @property
    def closed(self) -> bool:
        """Return True if another log must be created: this process was forked, or is ending."""
        return self._writer.closed

    def write(self, event_type: str, more: dict[str, Any]) -> None:
        us = self._writer.now_us()
        fields = {"timestamp": _iso(us, self._naive), "job_name": self._job_name, "event_type": event_type, **more}
        line = json.dumps(fields, default=_plain) + "\n"
        self._writer.write(line.encode(), VITAL, us)


def _iso(us: int, naive: bool) -> str:
    from datetime import datetime, timedelta, timezone

    moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=us)
    if naive:
        moment = moment.astimezone().replace(tzinfo=None)
    return moment.isoformat(timespec="microseconds")


def _ends_without_offset(path: str) -> bool:
    """Return True if the last event of a file has a timestamp without an offset."""
    try:
        with open(path, "rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - _TAIL))
            lines = stream.read().splitlines()
    except OSError:
        return False
    for line in reversed(lines):
        try:
            time = json.loads(line)["timestamp"].partition("T")[2]
        except (ValueError, LookupError, TypeError, AttributeError):
            continue
        return not any(sign in time for sign in "Zz+-")
    return False


def _plain(value: Any) -> object:
    """Return a step as a plain value; it may be a number of NumPy, or a tensor of one element."""
    item = getattr(value, "item", None)
    return item() if callable(item) else str(value)
