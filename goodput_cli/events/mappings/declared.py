"""What a mapping declares, once its file has been checked (`checked`)."""

from __future__ import annotations

from collections.abc import Mapping as Keys
from dataclasses import dataclass, field
from typing import Any

from goodput_cli.events.mappings.places import Place
from goodput_cli.events.text.marks import What

STEPS = ("done", "index", "start")
FIELDS = ("step", "epoch", "of", "time", "end", "each", "took", "elapsed", "rank", "job", "label")
"""What fields of a line or record mean something."""
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0, "per_s": -1.0}
"""Seconds a unit; -1: it is a rate, of which one over it is meant."""
AMOUNTS = ("each", "took", "elapsed")
"""The fields that have a unit."""


@dataclass(frozen=True)
class Time:
    """How a time is written, and where."""

    field: str = "time"
    format: str = ""
    offset: float = 0.0
    """Seconds that are added."""


@dataclass(frozen=True)
class Epochs:
    """How steps are counted that begin anew in each epoch."""

    first: int = 1
    """The number of the first epoch."""
    steps: int | None = None
    """How many steps an epoch has, where no field `of` says it."""


@dataclass(frozen=True)
class DeclaredRule:
    """One `[[rule]]`."""

    event: What
    place: Place
    line: str = ""
    regex: str = ""
    keys: Keys[str, tuple[str, ...]] = field(default_factory=dict)
    where: Keys[str, Any] = field(default_factory=dict)
    units: Keys[str, float] = field(default_factory=dict)
    epochs: Epochs | None = None
    add: int = 0
    cursor: bool = False
    time: Time = Time()
    edge: str = "point"
    begins: bool = False
    label: str = ""
    also: bool = False
    slow: bool = False
    once: bool = False
    last: bool = False
    """Whether `each` is the time of the last step alone, and no mean."""
    clock_begins: bool = False
    """Whether `elapsed` is the time since a process began."""

    @property
    def of_records(self) -> bool:
        """Whether it reads JSON objects and rows of tables, and no lines of text."""
        return bool(self.keys)

    @property
    def name(self) -> str:
        """What it is called where its matches are shown."""
        if self.line or self.regex:
            return self.line or self.regex
        where = [f"{key} = {value}" if not isinstance(value, dict) else key for key, value in self.where.items()]
        return ", ".join([*where, *(f"{key}: {paths[0]}" for key, paths in self.keys.items())])


@dataclass(frozen=True)
class DeclaredSample:
    """One `[[sample]]`."""

    line: str
    gives: Keys[str, Any]
    place: Place


@dataclass(frozen=True)
class JobName:
    """Where the name of a job comes from; nothing: from its files, as that of all text."""

    fixed: str = ""
    field: str = ""
    """A field of the lines."""
    path: str = ""
    """A pattern with a group `job`, found in the path of a source."""


@dataclass(frozen=True)
class Declared:
    """A mapping."""

    name: str
    rules: tuple[DeclaredRule, ...]
    samples: tuple[DeclaredSample, ...]
    place: Place
    job: JobName = JobName()
    zone: str = ""
    steps: str = "done"
    delimiter: str = ""
    """Of the tables that it reads; "": none."""
    split: bool = False
    """Whether what a carriage return overwrote counts too."""
    assumed: tuple[str, ...] = ()
    """What whoever drafted it did not know: said under each answer."""
