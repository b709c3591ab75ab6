"""The interface of targets, and parsing of their addresses. Each target has a thread: one that hangs or fails delays
neither reading the log nor another target. Also shared parts of all targets: the health of the monitor, and its state
across restarts, in a small file that is replaced as a whole."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import SplitResult, parse_qsl, urlsplit

from goodput_cli.errors import GoodputError, UsageError
from goodput_cli.monitor.snapshot import Update
from goodput_cli.record.queues import SAY_AGAIN_SECONDS, pause_of_delivery
from goodput_cli.vocabulary.text import safe
from goodput_cli.whole_file import replace_file


@dataclass
class _DeliveryCounts:
    last_success: float | None = None
    """Seconds since 1970 UTC."""
    failures: int = 0


@dataclass
class Health:
    """State of the monitor and its targets: set by the threads that read logs and publish, read by those that answer
    Prometheus and health checks. Safe to use from several threads."""

    interval: float
    """Seconds between two polls."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _targets: dict[str, _DeliveryCounts] = field(default_factory=dict)
    _looked: float | None = None
    _looked_at: float | None = None
    _failing: bool = False

    def expect(self, target: str) -> None:
        """Count the deliveries of a target from now on; before the first one, it has neither succeeded nor failed."""
        with self._lock:
            self._targets.setdefault(target, _DeliveryCounts())

    def looked(self, failing: bool) -> None:
        """Record a poll of the sources; failing: True if one of them could not be read."""
        with self._lock:
            self._failing = failing
            self._looked = time.monotonic()
            if not failing:
                self._looked_at = time.time()

    def published(self, target: str) -> None:
        """Record that a target accepted an update."""
        with self._lock:
            self._targets[target].last_success = time.time()

    def failed(self, target: str) -> None:
        """Record that a target did not accept an update."""
        with self._lock:
            self._targets[target].failures += 1

    def is_well(self) -> bool:
        """Return True if the last poll is less than three intervals ago."""
        with self._lock:
            return self._looked is not None and time.monotonic() - self._looked < 3 * max(self.interval, 1.0)

    def state(self) -> tuple[bool, float | None, dict[str, tuple[float | None, int]]]:
        """Return True if a source fails, the time of the last complete reading (s since 1970 UTC), and for each target
        the time of its last accepted update and its number of failures."""
        with self._lock:
            targets = {name: (one.last_success, one.failures) for name, one in self._targets.items()}
            return self._failing, self._looked_at, targets


class TargetFailedError(Exception):
    """Raised if a target did not accept an update. lasting: True if an early retry is useless. wait: minimum seconds
    before a retry."""

    def __init__(self, sentence: str, *, lasting: bool = False, wait: float | None = None) -> None:
        super().__init__(sentence)
        self.lasting = lasting
        self.wait = wait


class Target(Protocol):
    """A target of publishing, used by a separate thread: it may block."""

    def publish(self, update: Update, final: bool) -> None:
        """Publish an update of all jobs; `final`: True for the last one. Raises TargetFailedError."""

    def close(self) -> None:
        """Close open files and connections."""


HURRY_SECONDS = 0.5
"""Maximum wait for the last update."""


class TargetWorker:
    """A target and its latest pending update. Older ones are dropped, because every update contains the whole state of
    all jobs."""

    def __init__(self, name: str, target: Target, health: Health, say: Callable[[str], None]) -> None:
        self.name = name
        self._target = target
        self._health = health
        self._say = say
        self._change = threading.Condition()
        self._waiting: Update | None = None
        self._final = False
        self._delivered = self._closed = self._busy = False
        self._failures = 0
        self._retry_at = 0.0
        self._said_at = float("-inf")
        health.expect(name)
        threading.Thread(target=self._run, name=f"publish {name}", daemon=True).start()

    def offer(self, update: Update, *, final: bool = False) -> None:
        """Publish this update as soon as the target is ready; `final`: True for the last one."""
        with self._change:
            self._waiting, self._final = update, final
            if final:
                self._retry_at = 0.0
            self._change.notify_all()

    def finish(self, deadline: float) -> bool:
        """Wait until the last update was accepted; return False if that did not happen before `deadline` (monotonic,
        s)."""
        with self._change:
            self._change.wait_for(lambda: self._delivered, max(0.0, deadline - time.monotonic()))
            return self._delivered

    def _run(self) -> None:
        while not (self._delivered or self._closed):
            self._try()  # in a separate call, so that no update stays in memory while waiting for the next one

    def _try(self) -> None:
        """Publish the latest update, once it is due."""
        update, final = self._next()
        if update is None:
            return
        failure = self._publish(update, final)
        with self._change:
            self._busy = False
            if failure is not None:
                self._health.failed(self.name)
                self._failed(failure)
                return
            self._health.published(self.name)
            self._failures = 0
            if self._waiting is update:
                self._waiting = None
                self._delivered = final
                self._change.notify_all()

    def _next(self) -> tuple[Update | None, bool]:
        """Return the latest update, once it is due; None once this is closed."""
        with self._change:
            while not self._closed and (self._waiting is None or time.monotonic() < self._retry_at):
                self._change.wait(None if self._waiting is None else self._retry_at - time.monotonic())
            self._busy = not self._closed
            return None if self._closed else self._waiting, self._final

    def _publish(self, update: Update, final: bool) -> TargetFailedError | None:
        try:
            self._target.publish(update, final)
            return None
        except TargetFailedError as failure:
            return failure
        except GoodputError as error:
            return TargetFailedError(str(error), lasting=True)
        except Exception as error:  # an error of one target must not end the others
            return TargetFailedError(f"{type(error).__name__}: {error}")

    def _failed(self, failure: TargetFailedError) -> None:
        self._failures += 1
        wait = max(pause_of_delivery(self._failures, lasting=failure.lasting), failure.wait or 0.0)
        self._retry_at = time.monotonic() + (min(wait, HURRY_SECONDS) if self._final else wait)
        if time.monotonic() >= self._said_at + SAY_AGAIN_SECONDS:
            self._said_at = time.monotonic()
            self._say(f"{self.name}: {failure} (retrying)")

    def close(self) -> None:
        """Close the target, unless a delivery still hangs in it: then it ends with the process."""
        with self._change:
            busy, self._closed = self._busy, True
            self._change.notify_all()
        if not busy:
            self._target.close()


def finish_all(workers: Sequence[TargetWorker], update: Update, grace: float) -> list[str]:
    """Send the last update to all targets at once; return the names of those that did not accept it within `grace`
    s."""
    for worker in workers:
        worker.offer(update, final=True)
    deadline = time.monotonic() + grace
    return [worker.name for worker in workers if not worker.finish(deadline)]


@dataclass(frozen=True)
class Address:
    """A target in the form `scheme:place?parameter=value`."""

    text: str
    scheme: str
    place: str
    parameters: Mapping[str, str] = field(default_factory=dict)

    def switch(self, name: str) -> bool:
        """Return a parameter that is yes (the default) or no."""
        return self.parameters.get(name, "yes") == "yes"

    @property
    def shown(self) -> str:
        """Return the address for display: only the host of a URL, which may contain an account or a token."""
        return f"{self.scheme}:{safe(self.url.hostname or '')}" if _KINDS[self.scheme].wants == _URL else self.text

    @property
    def url(self) -> SplitResult:
        """Return the location as a URL."""
        return web_address(self.place, self.scheme)


@dataclass(frozen=True)
class MonitorContext:
    """Information about the monitor for its targets."""

    health: Health
    interval: float
    """Seconds between two updates."""
    job_name: str | None = None
    """The job name, if the user gave it."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The machine for Cloud Monitoring, from the user: location, accelerator, replica, cluster."""
    say: Callable[[str], None] = lambda _: None
    """Shows a message to the user of the monitor."""
    check: Callable[[Path], None] = lambda _: None
    """Raises UsageError for a file that the monitor reads, because it must not be written. Any thread may call it."""


@dataclass(frozen=True)
class _TargetKind:
    """A kind of target: the module that opens it, and its parameters, each with its values."""

    module: str
    wants: str
    parameters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


_URL, _FILE = "URL", "FILE"
_YES_NO = ("yes", "no")
_PARTS = ("totals", "windows", "step_deviation")
"""Optional parts: values of the whole job, those of rolling windows, deviations of steps."""
_KINDS = {
    "prom": _TargetKind("files:PrometheusFile", _FILE),
    "json": _TargetKind("files:JsonLinesTarget", _FILE),
    "http": _TargetKind("http:Endpoint", "//HOST:PORT"),
    "otlp": _TargetKind("http:OpenTelemetry", _URL),
    "webhook": _TargetKind("webhook:Webhook", _URL),
    "tensorboard": _TargetKind("tensorboard:TensorBoard", "DIR", dict.fromkeys((*_PARTS, "badput"), _YES_NO)),
    "gcm": _TargetKind(
        "cloud_monitoring:CloudMonitoring",
        "PROJECT",
        {"prefix": (), **dict.fromkeys((*_PARTS, "slices"), _YES_NO)},
    ),
}
FORMS = ", ".join(f"{scheme}:{kind.wants}" for scheme, kind in _KINDS.items())


def parse_target(text: str) -> Address:
    """Return the target in a text. Raises UsageError if it is invalid."""
    scheme, colon, rest = text.partition(":")
    kind = _KINDS.get(scheme) if colon else None
    if kind is None:
        known = scheme if colon else text  # a URL without its `webhook:` is a secret, too
        raise UsageError(f"{known!r} is not a publish target", tip=f"use one of {FORMS}")
    place, parameters = _parameters(rest, kind, text) if kind.parameters else (rest, {})
    if not place and scheme != "gcm":
        raise UsageError(f"{text!r} is incomplete", tip=f"use {scheme}:{kind.wants}")
    if scheme == "http":
        host_and_port(place, text)
    if kind.wants == _URL:
        web_address(place, scheme)
    return Address(text, scheme, place, parameters)


def _parameters(rest: str, kind: _TargetKind, text: str) -> tuple[str, dict[str, str]]:
    """Return the location, and the parameters after its last `?` if all of them are known."""
    place, mark, query = rest.rpartition("?")
    if not mark:
        return rest, {}
    given = dict(parse_qsl(query, keep_blank_values=True))
    for name, value in given.items():
        values = kind.parameters.get(name)
        if values is None or (values and value not in values):
            known = ", ".join(f"{one}={'|'.join(choices) or 'TEXT'}" for one, choices in kind.parameters.items())
            raise UsageError(f"{text!r}: unknown parameter {name}={value}", tip=f"use {known}")
    return place, given


def host_and_port(place: str, text: str) -> tuple[str, int]:
    """Return the address to listen at: `//:9464` is this machine only. Raises UsageError if it is invalid."""
    host, _, port = place.removeprefix("//").rstrip("/").rpartition(":")
    good = place.startswith("//") and "@" not in host and port.isascii() and port.isdigit() and int(port) <= 65_535
    if not good:
        shown = "/".join(text.split("/")[:3]).rpartition("@")[2]  # it may be the address of a webhook
        raise UsageError(f"{shown!r} is not an address to listen on", tip="use http://127.0.0.1:9464 or http://:9464")
    return host.strip("[]") or "127.0.0.1", int(port)


def web_address(place: str, scheme: str) -> SplitResult:
    """Return the parts of a URL. Raises UsageError if it is invalid, with a message that does not repeat a possible
    secret."""
    with suppress(ValueError):
        parts = urlsplit(place)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return parts
    raise UsageError(
        f"{scheme}: expected a URL, such as {scheme}:https://HOST/PATH (write % as %25 and @ in a password as %40)"
    )


def check_apart(addresses: Sequence[Address]) -> None:
    """Raise UsageError for a file that two targets write: they would overwrite each other's output."""
    files = [(one, os.path.realpath(one.place)) for one in addresses if _KINDS[one.scheme].wants == _FILE]
    for at, (address, path) in enumerate(files):
        other = next((one for one, before in files[:at] if before == path), None)
        if other is not None:
            raise UsageError(
                f"{other.text} and {address.text} write the same file", tip="use a different file for each target"
            )


def open_target(address: Address, place: MonitorContext) -> Target:
    """Open a target. Raises GoodputError if that fails, with the command to install a missing package."""
    module, _, name = _KINDS[address.scheme].module.partition(":")
    try:
        kind = getattr(import_module(f"goodput_cli.monitor.targets.{module}"), name)
        target: Target = kind(address, place)
    except OSError as error:
        raise GoodputError(f"{address.text}: {error.strerror or error}") from error
    return target


def load_state(path: Path) -> dict[str, Any]:
    """Return the saved state; {} if there is none, or if it cannot be read."""
    try:
        state = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return state if isinstance(state, dict) else {}


def kept_number(state: Mapping[str, Any], name: str, otherwise: int) -> int:
    """Return a whole number of the saved state; `otherwise` if it has no such number of 64 bits."""
    number = state.get(name)
    return number if type(number) is int and 0 <= number < 1 << 62 else otherwise


def keep_state(path: Path, state: dict[str, Any]) -> None:
    """Save the state. Raises OSError."""
    with replace_file(path) as stream:
        stream.write(json.dumps(state).encode())


def state_folder() -> Path:
    """Return the default folder of states: $XDG_STATE_HOME/goodput. Raises OSError."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "goodput"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
