"""Parts of documents that capabilities read: each capability has a collector, which is created when it is needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from goodput_cli.diagnostics.diagnostic import DiagnosticCollector


class PartCollector(Protocol):
    """Collector of the parts of all sources of one capability, in bounded memory."""

    def add(self, source: int, part: Any, notes: DiagnosticCollector, /) -> None:
        """Add a part of a source. source: its code. notes: receives what is wrong with the part."""

    def __bool__(self) -> bool:
        """Return True if anything was collected."""


class InputCollectors:
    """Collectors of the parts of documents, by capability."""

    def __init__(self, made_by: Mapping[str, Callable[[], PartCollector]]) -> None:
        """made_by: by the name of a capability: creates its collector."""
        self._made_by = made_by
        self._collectors: dict[str, PartCollector] = {}

    def take(self, name: str, source: int, part: Any, notes: DiagnosticCollector) -> None:
        """Add a part of a source to the inputs of a capability. source: its code."""
        if name not in self._collectors:
            self._collectors[name] = self._made_by[name]()
        self._collectors[name].add(source, part, notes)

    def collected(self, name: str) -> Any:
        """Return the collector of a capability; None if it collected nothing."""
        return self._collectors.get(name) or None
