"""How the monitor itself fares: what a scrape and a health check tell, whatever the targets do."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field


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
