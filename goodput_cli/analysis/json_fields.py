"""Annotations that declare, once per field, how JSON writes a result.

A result is a frozen dataclass. It has amounts of time in ns, and times in ns since 1970 UTC. A field's annotation
declares what JSON has instead (`Annotated[int, Json("seconds")]`), and the limits of its values (`Bounds(ge=0)`). The
string under a field is its description in docs/schema.json. `to_json.py` reads these once per class: to write an
answer, to read a saved one, and for the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

Class = TypeVar("Class", bound=type)
Unit = Literal["seconds", "seconds and ns", "percent", "instant", "whole"]
"""Form of a number in JSON. `seconds`: ns in seconds, `lost_ns` as `lost_seconds`; `seconds and ns`: both, and a bound
applies to the ns; `percent`: a share, exact or not, `runtime` as `runtime_percent`; `instant`: ns since 1970 UTC as ISO
8601, `start_ns` as `start`; `whole`: an integer if the number is whole, and null if it is not a number."""


@dataclass(frozen=True)
class Json:
    """JSON form of a field that is not written as it is."""

    unit: Unit | None = None
    """Form of a number."""
    key: str | None = None
    """The field's name in JSON, if it differs."""
    ns: str = ""
    """Description in the schema of the value in ns, next to the one in seconds."""
    made: Callable[[Any], Any] | None = None
    """Function from the value to the written value."""
    kind: Any = None
    """Type of the written value."""
    back: Callable[[Any], Any] | None = None
    """Function from the written value to the value, for a saved answer; None keeps the written value."""
    missing: Any = ...
    """Replacement for an object of nulls, or for a missing key in a saved answer; `...` for none."""
    optional: bool = False
    """True if JSON omits the field when it is None."""
    later: bool = False
    """True if answers of older schema versions lack the key, so that the schema does not require it."""
    spread: Callable[[], Sequence[tuple[str, Any, str]]] | None = None
    """For a mapping whose items are fields of the object: returns the key, type and description of each. A saved answer
    keeps none of them."""


@dataclass(frozen=True)
class Bounds:
    """Limits of a field's values, named as in `msgspec.Meta`, which is loaded for JSON alone."""

    ge: int | None = None
    """Smallest allowed value."""
    min_length: int | None = None
    """Minimum number of items."""
    pattern: str | None = None
    """Regular expression that text must match."""
    enum: tuple[str, ...] = ()
    """Allowed values; only the schema lists them."""


Instant = Annotated[int, Json("instant")]
Count = Annotated[int, Bounds(ge=0)]
FromOne = Annotated[int, Bounds(ge=1)]
Amount = Annotated[float, Bounds(ge=0)]
"""A number of at least 0."""


@dataclass(frozen=True)
class SchemaEntry:
    """Schema entry of a class."""

    name: str
    """Name in the schema."""
    words: str = ""
    """Description in the schema."""
    keys: tuple[str, ...] = ()
    """Fields and properties in JSON, in this order; empty for all fields in their order."""
    kind: str | None = None
    """Value of `kind` in JSON for a whole answer; None for a part of one."""
    indented: bool = False
    """True if an answer's objects and short lists are spread over several lines."""
    nulls: bool = False
    """True if JSON has an object of nulls for a missing result; a saved answer may lack it."""


def written(name: str, words: str = "", *, keys: str = "", **more: Any) -> Callable[[Class], Class]:
    """Mark a dataclass that JSON writes. The arguments are the fields of `SchemaEntry`; keys: separated by blanks."""

    def mark(cls: Class) -> Class:
        cls.__written__ = SchemaEntry(name, words, tuple(keys.split()), **more)  # type: ignore[attr-defined]
        return cls

    return mark
