"""How JSON writes a result: said once, at its fields, beside what they hold.

A result is a frozen dataclass. Amounts of time are ns in it, and instants ns since 1970 UTC; what JSON has instead, a
field's annotation says (`Annotated[int, Json("seconds")]`), and what its values are held to (`Bounds(ge=0)`). The
string under a field is what docs/schema.json says of it. `wire.py` reads all this once per class, to write an answer,
to read a saved one, and for the schema.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

Class = TypeVar("Class", bound=type)
Unit = Literal["seconds", "seconds and ns", "percent", "instant", "whole"]
"""What JSON has in the place of a number. `seconds`: ns in seconds, `lost_ns` as `lost_seconds`; `seconds and ns`: in
both, and a bound holds for the ns; `percent`: of a share, exact or not, `runtime` as `runtime_percent`; `instant`: ns
since 1970 UTC as ISO 8601, `start_ns` as `start`; `whole`: a number that is an integer where it is whole, and null
where it is none."""


@dataclass(frozen=True)
class Json:
    """How JSON has a field, where it does not have it as it is."""

    unit: Unit | None = None
    """What it has of a number."""
    key: str | None = None
    """The field's name in JSON, where that is another one."""
    ns: str = ""
    """What the schema says of the ns beside the seconds."""
    made: Callable[[Any], Any] | None = None
    """From the value to what is written of it."""
    kind: Any = None
    """The type of that."""
    back: Callable[[Any], Any] | None = None
    """From what was written to the value, for a saved answer; None: that stays what was written."""
    missing: Any = ...
    """What an object of nulls, or a saved answer without the key, has in its place; `...` for nothing."""
    optional: bool = False
    """Whether JSON leaves the field out where it is None."""
    later: bool = False
    """Whether answers of older versions of the schema lack the key, so that the schema does not require it."""


@dataclass(frozen=True)
class Bounds:
    """What the values of a field are held to, in the words of `msgspec.Meta`, which is loaded for JSON alone."""

    ge: int | None = None
    """The least."""
    min_length: int | None = None
    """So many items at least."""
    pattern: str | None = None
    """Text that fits this regular expression."""
    enum: tuple[str, ...] = ()
    """One of these; only the schema says it."""


Instant = Annotated[int, Json("instant")]
Count = Annotated[int, Bounds(ge=0)]
FromOne = Annotated[int, Bounds(ge=1)]
Amount = Annotated[float, Bounds(ge=0)]
"""A number that is not below 0."""


@dataclass(frozen=True)
class SchemaEntry:
    """What is said of a class."""

    name: str
    """What the schema calls it."""
    words: str = ""
    """What the schema says of it."""
    keys: tuple[str, ...] = ()
    """The fields and properties that JSON has, in its order; none: all fields in theirs."""
    kind: str | None = None
    """Of a whole answer, what JSON has under `kind`; None for a part of one."""
    indented: bool = False
    """Whether an answer's objects and short lists are spread over several lines."""
    nulls: bool = False
    """Whether JSON has an object of nulls where there is no such result; a saved answer may be without it."""


def written(name: str, words: str = "", *, keys: str = "", **more: Any) -> Callable[[Class], Class]:
    """A dataclass that JSON writes. The arguments are the fields of `SchemaEntry`; keys: with blanks between them."""

    def mark(cls: Class) -> Class:
        cls.__written__ = SchemaEntry(name, words, tuple(keys.split()), **more)  # type: ignore[attr-defined]
        return cls

    return mark
