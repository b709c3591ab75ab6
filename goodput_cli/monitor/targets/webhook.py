"""`webhook:URL`: a message when a threshold is violated, and one when it recovers: JSON with `text`, as Slack accepts
it.

The last message is saved, so that a restarted monitor does not repeat it.
"""

from __future__ import annotations

import json
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from goodput_cli.analysis.goodput.phrases import restarts_left_text
from goodput_cli.analysis.threshold import Threshold
from goodput_cli.monitor.snapshot import Snapshot, Update
from goodput_cli.monitor.targets.base import (
    Address,
    MonitorContext,
    TargetFailedError,
    keep_state,
    load_state,
    state_folder,
)
from goodput_cli.record.queues import UnavailableError
from goodput_cli.record.sinks.http import post
from goodput_cli.vocabulary.text import safe

_FALLEN = ("failed", "warning")


_MOST_LINES = 50
"""Maximum number of lines per message, because chats cut longer ones."""


class Webhook:
    """Sender of changes since the previous update, job by job; nothing without a change. A category that is not
    recorded counts as neither."""

    def __init__(self, address: Address, place: MonitorContext) -> None:  # noqa: ARG002 - a target's signature
        self._host = address.url.hostname or ""
        self._url = address.place
        self._fallen: dict[str, set[str]] = {}
        """The expressions that were reported as violated, by job."""

    def publish(self, update: Update, final: bool) -> None:  # noqa: ARG002 - the last one may change something too
        """Publish (see `Target`). Changes of several jobs are one message."""
        fallen: dict[str, set[str]] = {}
        lines: list[str] = []
        for snapshot in update:
            job = snapshot.analysis.job.name
            known = self._fallen[job] if job in self._fallen else self._reported_expressions(job)
            verdicts = {one.expression: one for one in snapshot.analysis.thresholds if one.verdict != "not_recorded"}
            now = {name for name, one in verdicts.items() if one.verdict in _FALLEN} | (known - verdicts.keys())
            lines += [_line(snapshot, verdicts[name], "fell") for name in sorted(now - known)]
            lines += [_line(snapshot, verdicts[name], "recovered") for name in sorted(known - now)]
            fallen[job] = now
        if lines:
            more = [f"and {len(lines) - _MOST_LINES} more"] if len(lines) > _MOST_LINES else []
            self._send("\n".join([*lines[:_MOST_LINES], *more]))
            for job, now in fallen.items():
                self._keep(job, now)
        self._fallen = fallen

    def close(self) -> None:
        """Close (see `Target`)."""

    def _reported_expressions(self, job: str) -> set[str]:
        """Return the expressions that an earlier monitor, or this one when it followed the job before, reported as
        violated."""
        try:
            fallen = load_state(self._state_of(job)).get("fallen", ())
            return {one for one in fallen if isinstance(one, str)}
        except (OSError, RuntimeError, TypeError):  # without a home folder, the message is repeated after a restart
            return set()

    def _keep(self, job: str, fallen: set[str]) -> None:
        with suppress(OSError, RuntimeError):
            if fallen != self._reported_expressions(job):
                keep_state(self._state_of(job), {"fallen": sorted(fallen)})

    def _state_of(self, job: str) -> Path:
        name = sha256(f"{self._url}\0{job}".encode("utf-8", "replace")).hexdigest()[:16]
        return state_folder() / f"webhook-{name}.json"

    def _send(self, text: str) -> None:
        """Send a message. The URL is a secret: messages contain only its host."""
        try:
            post(self._url, json.dumps({"text": text}).encode(), "application/json", "")
        except UnavailableError as error:
            raise TargetFailedError(f"webhook at {safe(self._host)}: {error}", lasting=error.lasting) from error


def _line(snapshot: Snapshot, threshold: Threshold, what: str) -> str:
    value = f"{float(threshold.value):.4g}{threshold.unit}" if threshold.value is not None else "not recorded"
    left = restarts_left_text(snapshot.analysis)
    more = f"; {left}" if left is not None else ""
    return f"{_plain(snapshot.shown)}: {_plain(safe(threshold.expression))}: {what}, {value}{more}"


def _plain(text: str) -> str:
    """Return text that a chat shows unchanged: `<!channel>` and `@here` in a job's name notify no one, and it contains
    no link."""
    for mark, shown in {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "@\u2060"}.items():
        text = text.replace(mark, shown)
    return text
