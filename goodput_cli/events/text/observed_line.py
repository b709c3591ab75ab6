"""Prepare a line for reading evidence: remove prefixes of launchers and collectors, and find the reason of an abort."""

from __future__ import annotations

import re
from dataclasses import dataclass

from goodput_cli.events.text.line_timestamps import Timestamp, strip_prefixes, timestamp_or_none

_RAY = re.compile(r"\((?P<name>raylet|\w[^\s()]{0,80})(?: pid=(?P<pid>\d{1,9}))?(?:, ip=(?P<host>[\w.:]+))?\) ")
"""Prefix that Ray adds to lines of its processes."""
_NESTED = re.compile(r"^(?:\[[^\]]*\] ?)(?=\[(?:rank|default)\d+\]:)")
_ENTRY = re.compile(r"\[\d+\]:\s*$")
_ABORTS = re.compile(
    r"(?:\s*what\(\):\s+|.*\bthread terminated with exception: |Exception in device=\w+:\d+: "
    r"|F\d{4} [\d:.]+ +\d+ \S+:\d+\] |.*\b[Uu]n(?:caught|handled) exception(?: \w+){0,2}: (?:: )?)(?P<what>.+)"
)
"""Reason of an abort: an uncaught C++ exception, a fatal line of glog."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line prepared for reading evidence."""

    number: int
    text: str
    """Text without prefixes of launchers and collectors."""
    raw: str
    stream: str
    collected: Timestamp | None
    entry: int = -1
    job: str = ""
    host: str = ""
    pid: int | None = None

    @classmethod
    def of(cls, raw: str, number: int) -> Line:
        """Return a line of a document. A timestamp in brackets may precede the rank."""
        found = strip_prefixes(raw)
        entry = _ENTRY.search(raw) if not found.text.strip() else None
        if entry is not None:  # This is an entry of an agent's block, not a rank.
            return cls(number, entry[0], raw, found.stream.rpartition("/")[0], found.collected)
        ray = _RAY.match(found.text)
        if ray is not None and (ray["pid"] or ray["name"] == "raylet"):
            stream = "/".join(part for part in (found.stream, ray["name"], ray["pid"]) if part)
            pid = int(ray["pid"]) if ray["pid"] else None
            return cls(number, found.text[ray.end() :], raw, stream, found.collected, host=ray["host"] or "", pid=pid)
        nested = _NESTED.match(found.text)
        if nested is None:
            return cls(number, found.text, raw, found.stream, found.collected)
        inner = strip_prefixes(found.text[nested.end() :])
        stream = "/".join(part for part in (found.stream, inner.stream) if part)
        return cls(number, inner.text, raw, stream, found.collected)

    @property
    def stamp(self) -> Timestamp | None:
        """Return the timestamp of the line; None if it has none."""
        if self.collected is not None:
            return self.collected
        return timestamp_or_none(_RAY.sub("", strip_prefixes(self.raw).text, count=1))


def abort_reason(text: str) -> str:
    """Return the reason in a line of an abort; empty for other lines."""
    said = _ABORTS.match(text)
    return said["what"] if said is not None else ""
