"""What a target is, and how one is found by what a person types. A thread for each: one that hangs or fails delays
neither the look at the log nor another target. Also what all targets share: how the
monitor itself fares, and what it must remember over a restart, in a small file that is written whole."""

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
class _Counts:
    last_success: float | None = None
    """Seconds since 1970 UTC."""
    failures: int = 0


@dataclass
class Health:
    """The state of the monitor and its targets: set by the thread that reads logs and by those of the targets, read by
    those that answer Prometheus and health checks. Safe to use from several threads."""

    interval: float
    """Seconds between two looks."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _targets: dict[str, _Counts] = field(default_factory=dict)
    _looked: float | None = None
    _looked_at: float | None = None
    _failing: bool = False

    def expect(self, target: str) -> None:
        """Count the deliveries of a target from now on; until its first one, none has succeeded or failed."""
        with self._lock:
            self._targets.setdefault(target, _Counts())

    def looked(self, failing: bool) -> None:
        """The sources were looked at; failing: one of them could not be read."""
        with self._lock:
            self._failing = failing
            self._looked = time.monotonic()
            if not failing:
                self._looked_at = time.time()

    def published(self, target: str) -> None:
        """A target took an update."""
        with self._lock:
            self._targets[target].last_success = time.time()

    def failed(self, target: str) -> None:
        """A target did not take an update."""
        with self._lock:
            self._targets[target].failures += 1

    def is_well(self) -> bool:
        """Whether the last look is younger than three intervals."""
        with self._lock:
            return self._looked is not None and time.monotonic() - self._looked < 3 * max(self.interval, 1.0)

    def state(self) -> tuple[bool, float | None, dict[str, tuple[float | None, int]]]:
        """Whether a source fails, when all could be read (s since 1970 UTC), and of each target when it last took an
        update and how often it did not."""
        with self._lock:
            targets = {name: (one.last_success, one.failures) for name, one in self._targets.items()}
            return self._failing, self._looked_at, targets


class TargetFailed(Exception):
    """A target did not take an update. lasting: trying again soon is of no use. wait: not before so many seconds."""

    def __init__(self, sentence: str, *, lasting: bool = False, wait: float | None = None) -> None:
        super().__init__(sentence)
        self.lasting = lasting
        self.wait = wait


class Target(Protocol):
    """A place to publish at, used by one thread of its own: it may block."""

    def publish(self, update: Update, final: bool) -> None:
        """Publish an update of all jobs; `final`: none follows. Raises TargetFailed."""

    def close(self) -> None:
        """Let go of what is open."""


HURRY_SECONDS = 0.5
"""Longest wait for the last update."""


class TargetWorker:
    """A target and the newest update that it has not taken. Older ones are let go: values are of the whole job, and
    every update is of all jobs."""

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
        """Publish this update as soon as the target can take it; `final`: it is the last one."""
        with self._change:
            self._waiting, self._final = update, final
            if final:
                self._retry_at = 0.0
            self._change.notify_all()

    def finish(self, deadline: float) -> bool:
        """Wait until the last update was taken; False if it was not before `deadline` (monotonic, s)."""
        with self._change:
            self._change.wait_for(lambda: self._delivered, max(0.0, deadline - time.monotonic()))
            return self._delivered

    def _run(self) -> None:
        while not (self._delivered or self._closed):
            self._try()  # in a call of its own: no update is held while the next one is waited for

    def _try(self) -> None:
        """Publish the newest update, once it is time for it."""
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
        """The newest update, once it is time for it; None once this is closed."""
        with self._change:
            while not self._closed and (self._waiting is None or time.monotonic() < self._retry_at):
                self._change.wait(None if self._waiting is None else self._retry_at - time.monotonic())
            self._busy = not self._closed
            return None if self._closed else self._waiting, self._final

    def _publish(self, update: Update, final: bool) -> TargetFailed | None:
        try:
            self._target.publish(update, final)
            return None
        except TargetFailed as failure:
            return failure
        except GoodputError as error:
            return TargetFailed(str(error), lasting=True)
        except Exception as error:  # no target may end the others
            return TargetFailed(f"{type(error).__name__}: {error}")

    def _failed(self, failure: TargetFailed) -> None:
        self._failures += 1
        wait = max(pause_of_delivery(self._failures, lasting=failure.lasting), failure.wait or 0.0)
        self._retry_at = time.monotonic() + (min(wait, HURRY_SECONDS) if self._final else wait)
        if time.monotonic() >= self._said_at + SAY_AGAIN_SECONDS:
            self._said_at = time.monotonic()
            self._say(f"{self.name}: {failure} (retrying)")

    def close(self) -> None:
        """Close the target, unless a delivery is still hanging in it: then it ends with the process."""
        with self._change:
            busy, self._closed = self._busy, True
            self._change.notify_all()
        if not busy:
            self._target.close()


def finish_all(workers: Sequence[TargetWorker], update: Update, grace: float) -> list[str]:
    """Give every target the last update, all at once; the names of those that did not take it within `grace` s."""
    for worker in workers:
        worker.offer(update, final=True)
    deadline = time.monotonic() + grace
    return [worker.name for worker in workers if not worker.finish(deadline)]


@dataclass(frozen=True)
class Address:
    """A target as it was typed: `scheme:place?parameter=value`."""

    text: str
    scheme: str
    place: str
    parameters: Mapping[str, str] = field(default_factory=dict)

    def switch(self, name: str) -> bool:
        """A parameter that is yes (the default) or no."""
        return self.parameters.get(name, "yes") == "yes"

    @property
    def shown(self) -> str:
        """As people and metrics see it: of a URL, which may hold an account or a token, only the host."""
        return f"{self.scheme}:{safe(self.url.hostname or '')}" if _KINDS[self.scheme].wants == _URL else self.text

    @property
    def url(self) -> SplitResult:
        """The place where that is a URL."""
        return web_address(self.place, self.scheme)


@dataclass(frozen=True)
class MonitorContext:
    """What targets are told about the monitor that opens them."""

    health: Health
    interval: float
    """Seconds between two updates."""
    job_name: str | None = None
    """Where the user named it."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What the user says of the machine for Cloud Monitoring: location, accelerator, replica, cluster."""
    say: Callable[[str], None] = lambda _: None
    """Tells the person who runs the monitor something."""
    check: Callable[[Path], None] = lambda _: None
    """Raises UsageError for a file that the monitor reads: it is never written. Any thread may call it."""


@dataclass(frozen=True)
class _Kind:
    """A kind of target: the module that opens it, and the parameters that it takes, each with its values."""

    module: str
    wants: str
    parameters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


_URL, _FILE = "URL", "FILE"
_YES_NO = ("yes", "no")
_PARTS = ("totals", "windows", "step_deviation")
"""What can be left out: values of the whole job, those of rolling windows, deviations of steps."""
_KINDS = {
    "prom": _Kind("files:PrometheusFile", _FILE),
    "json": _Kind("files:JsonLines", _FILE),
    "http": _Kind("http:Endpoint", "//HOST:PORT"),
    "otlp": _Kind("http:OpenTelemetry", _URL),
    "webhook": _Kind("webhook:Webhook", _URL),
    "tensorboard": _Kind("tensorboard:TensorBoard", "DIR", dict.fromkeys((*_PARTS, "badput"), _YES_NO)),
    "gcm": _Kind(
        "cloud_monitoring:CloudMonitoring",
        "PROJECT",
        {"prefix": (), **dict.fromkeys((*_PARTS, "slices"), _YES_NO)},
    ),
}
FORMS = ", ".join(f"{scheme}:{kind.wants}" for scheme, kind in _KINDS.items())


def parse_target(text: str) -> Address:
    """A target from what was typed. `UsageError` if it names none."""
    scheme, colon, rest = text.partition(":")
    kind = _KINDS.get(scheme) if colon else None
    if kind is None:
        known = scheme if colon else text  # a URL that lacks its `webhook:` is a secret as well
        raise UsageError(f"{known!r} is not a publish target; use one of {FORMS}")
    place, parameters = _parameters(rest, kind, text) if kind.parameters else (rest, {})
    if not place and scheme != "gcm":
        raise UsageError(f"{text!r} is incomplete; use {scheme}:{kind.wants}")
    if scheme == "http":
        host_and_port(place, text)
    if kind.wants == _URL:
        web_address(place, scheme)
    return Address(text, scheme, place, parameters)


def _parameters(rest: str, kind: _Kind, text: str) -> tuple[str, dict[str, str]]:
    """The place, and what stands behind its last `?` where that is of parameters that are known."""
    place, mark, query = rest.rpartition("?")
    if not mark:
        return rest, {}
    given = dict(parse_qsl(query, keep_blank_values=True))
    for name, value in given.items():
        values = kind.parameters.get(name)
        if values is None or (values and value not in values):
            known = ", ".join(f"{one}={'|'.join(choices) or 'TEXT'}" for one, choices in kind.parameters.items())
            raise UsageError(f"{text!r}: unknown parameter {name}={value}; use {known}")
    return place, given


def host_and_port(place: str, text: str) -> tuple[str, int]:
    """Where to listen: `//:9464` is this machine alone. `UsageError` if it is no address."""
    host, _, port = place.removeprefix("//").rstrip("/").rpartition(":")
    good = place.startswith("//") and "@" not in host and port.isascii() and port.isdigit() and int(port) <= 65_535
    if not good:
        shown = "/".join(text.split("/")[:3]).rpartition("@")[2]  # it may be meant for a webhook
        raise UsageError(f"{shown!r} is not an address to listen on; use http://127.0.0.1:9464 or http://:9464")
    return host.strip("[]") or "127.0.0.1", int(port)


def web_address(place: str, scheme: str) -> SplitResult:
    """The parts of a URL. `UsageError` if it is none, which does not repeat what may be a secret."""
    with suppress(ValueError):
        parts = urlsplit(place)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return parts
    raise UsageError(
        f"{scheme}: expected a URL, such as {scheme}:https://HOST/PATH (write % as %25 and @ in a password as %40)"
    )


def check_apart(addresses: Sequence[Address]) -> None:
    """`UsageError` for a file that two targets write: each would spoil what the other one wrote."""
    files = [(one, os.path.realpath(one.place)) for one in addresses if _KINDS[one.scheme].wants == _FILE]
    for at, (address, path) in enumerate(files):
        other = next((one for one, before in files[:at] if before == path), None)
        if other is not None:
            raise UsageError(
                f"{other.text} and {address.text} write the same file; use a different file for each target"
            )


def open_target(address: Address, place: MonitorContext) -> Target:
    """Open a target. Raises GoodputError if it cannot be, with what to install where a package is missing."""
    module, _, name = _KINDS[address.scheme].module.partition(":")
    try:
        kind = getattr(import_module(f"goodput_cli.monitor.targets.{module}"), name)
        target: Target = kind(address, place)
    except OSError as error:
        raise GoodputError(f"{address.text}: {error.strerror or error}") from error
    return target


def load_state(path: Path) -> dict[str, Any]:
    """What was kept; {} where nothing was, or where it cannot be read."""
    try:
        state = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return state if isinstance(state, dict) else {}


def kept_number(state: Mapping[str, Any], name: str, otherwise: int) -> int:
    """A whole number that was kept; `otherwise` where there is none of 64 bits."""
    number = state.get(name)
    return number if type(number) is int and 0 <= number < 1 << 62 else otherwise


def keep_state(path: Path, state: dict[str, Any]) -> None:
    """Keep it. Raises OSError."""
    with replace_file(path) as stream:
        stream.write(json.dumps(state).encode())


def state_folder() -> Path:
    """Where state is kept that has no place of its own: $XDG_STATE_HOME/goodput. Raises OSError."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "goodput"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
