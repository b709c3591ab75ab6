"""`webhook:URL`: a message when a threshold falls, and one when it recovers: JSON with `text`, as Slack takes it.

What was said last is kept, so that a monitor that was started again does not say it again.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from goodput_cli.analysis.threshold import Threshold
from goodput_cli.errors import UsageError
from goodput_cli.monitor.snapshot import Snapshot
from goodput_cli.monitor.targets.base import (
    Address,
    MonitorContext,
    TargetFailed,
    keep_state,
    load_state,
    state_folder,
)
from goodput_cli.record.queues import Unavailable
from goodput_cli.record.sinks.http import post
from goodput_cli.vocabulary.text import safe

_FALLEN = ("failed", "warning")


class Webhook:
    """Says what changed since the update before; nothing while nothing changes. Not recorded is neither."""

    def __init__(self, address: Address, place: MonitorContext) -> None:  # noqa: ARG002 - a target's signature
        parts = urlsplit(address.place)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{address.scheme}: wants the URL of a webhook, https://…, and {address.place!r} is none")
        self._url = address.place
        self._host = parts.hostname
        self._state: Path | None = None
        self._fallen: set[str] | None = None

    def publish(self, snapshot: Snapshot, final: bool) -> None:  # noqa: ARG002 - the last one may change something too
        """See `Target`."""
        job = snapshot.analysis.job.name
        known = self._known(job)
        verdicts = {one.expression: one for one in snapshot.analysis.thresholds if one.verdict != "not_recorded"}
        now = {name for name, one in verdicts.items() if one.verdict in _FALLEN} | (known - verdicts.keys())
        lines = [f"{safe(job)}: {safe(name)}: fell, {_value(verdicts[name])}" for name in sorted(now - known)]
        lines += [f"{safe(job)}: {safe(name)}: recovered, {_value(verdicts[name])}" for name in sorted(known - now)]
        if lines:
            self._send("\n".join(lines))
            self._fallen = now
            self._keep(sorted(now))

    def close(self) -> None:
        """See `Target`."""

    def _known(self, job: str) -> set[str]:
        """The expressions that were said to have fallen."""
        if self._fallen is None:
            self._fallen = set()
            try:
                name = sha256(f"{self._url}\0{job}".encode("utf-8", "replace")).hexdigest()[:16]
                self._state = state_folder() / f"webhook-{name}.json"
                self._fallen |= {one for one in load_state(self._state).get("fallen", ()) if isinstance(one, str)}
            except (OSError, RuntimeError, TypeError):  # no home: it is said again after a restart
                self._state = None
        return self._fallen

    def _keep(self, fallen: list[str]) -> None:
        if self._state is not None:
            try:
                keep_state(self._state, {"fallen": fallen})
            except OSError:
                self._state = None

    def _send(self, text: str) -> None:
        """The URL is a secret: no message names more of it than its host."""
        try:
            post(self._url, json.dumps({"text": text}).encode(), "application/json", "")
        except Unavailable as error:
            raise TargetFailed(f"webhook at {safe(self._host)}: {error}", lasting=error.lasting) from error


def _value(threshold: Threshold) -> str:
    return f"{float(threshold.value):.4g}{threshold.unit}" if threshold.value is not None else "not recorded"
