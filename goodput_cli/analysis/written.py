"""How JSON writes a result: said once, at its fields, beside what they hold.

A result is a frozen dataclass. Amounts of time are ns in it, and instants ns since 1970 UTC; what JSON has instead, a
field's annotation says (`Annotated[int, Seconds()]`). The string under a field is what docs/schema.json says of it.
`wire.py` reads all this once per class, to write an answer, to read a saved one, and for the schema. Nothing here costs
a command that writes no JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, TypeVar

Class = TypeVar("Class", bound=type)
Method = TypeVar("Method", bound=Callable[..., Any])


@dataclass(frozen=True)
class Seconds:
    """ns that JSON has in seconds: `lost_ns` as `lost_seconds`, `ns` as `seconds`."""

    least: int | None = None
    """What no value is below."""


@dataclass(frozen=True)
class Both:
    """ns that JSON has in seconds and in ns: `lost_ns` as `lost_seconds` and `lost_ns`."""

    ns: str = ""
    """What the schema says of the ns."""
    least: int | None = None
    """What no number of ns is below."""


@dataclass(frozen=True)
class Percent:
    """A share, exact or not, that JSON has in percent: `runtime` as `runtime_percent`."""


@dataclass(frozen=True)
class InstantText:
    """ns since 1970 UTC that JSON has as text, in ISO 8601: `start_ns` as `start`."""


@dataclass(frozen=True)
class Least:
    """A number that is not below this."""

    value: int
    """no smaller number is written"""


@dataclass(frozen=True)
class Key:
    """The field's name in JSON, where that is another one."""

    name: str
    """the key in JSON"""


@dataclass(frozen=True)
class Pattern:
    """Text that fits a pattern."""

    pattern: str
    """regular expression that the text fits"""


@dataclass(frozen=True)
class OneOf:
    """Texts of which the field is one."""

    choices: Sequence[str]
    """All that it may be."""


@dataclass(frozen=True)
class After:
    """JSON has the field behind the one of this name."""

    field: str
    """name of the field behind which this one is written"""


@dataclass(frozen=True)
class Whole:
    """A number that is written as an integer where it is whole."""


@dataclass(frozen=True)
class Through:
    """Written as something made of it, where it is not None."""

    made: Callable[[Any], Any]
    """from the value to what is written of it"""
    kind: type
    """class of what is written; a `Pattern` or `Least` beside this one says more of it"""
    back: Callable[[Any], Any] | None = None
    """from what was written to the value, for a saved answer; None: that stays what was written"""


@dataclass(frozen=True)
class Each:
    """As `Through`, of each of several."""

    made: Callable[[Any], Any]
    """from an item to what is written of it"""
    kind: type
    """class of what is written"""
    back: Callable[[Any], Any] | None = None
    """from what was written of an item to the item, for a saved answer; None: that stays what was written"""


@dataclass(frozen=True)
class Nulls:
    """Where the field is None, JSON has an object of nulls. Its class is `written` with `nulls`."""


@dataclass(frozen=True)
class Unknown:
    """What such an object has for the field, in the place of null."""

    value: Any
    """what stands for: not known"""


@dataclass(frozen=True)
class Optional:
    """JSON leaves the field out where it is None."""


Exact = Annotated[Fraction, Through(float, float)]
"""A fraction; JSON has the nearest number."""
Instant = Annotated[int, InstantText()]
"""ns since 1970 UTC; JSON has text."""
Count = Annotated[int, Least(0)]
FromOne = Annotated[int, Least(1)]
Amount = Annotated[float, Least(0)]
"""A number that is not below 0."""


@dataclass(frozen=True)
class Written:
    """What is said of a class."""

    name: str
    """What the schema calls it."""
    words: str
    """What the schema says of it."""
    without: tuple[str, ...]
    """Fields that JSON does not have."""
    indented: bool
    """Whether an answer's objects and short lists are spread over several lines."""
    kind: str | None
    """Of a whole answer, what JSON has under `kind`; None for a part of one."""
    nulls: bool
    """Whether every value may be null: where there is no such result, and where a saved answer does not have it."""


def written(
    name: str,
    words: str = "",
    *,
    without: tuple[str, ...] = (),
    kind: str | None = None,
    indented: bool = False,
    nulls: bool = False,
) -> Callable[[Class], Class]:
    """A dataclass that JSON writes. The arguments are the fields of `Written`."""

    def mark(cls: Class) -> Class:
        cls.__written__ = Written(name, words, without, indented, kind, nulls)  # type: ignore[attr-defined]
        return cls

    return mark


def written_after(field: str) -> Callable[[Method], Method]:
    """A property that JSON has as it has fields, behind the field of this name. It stands under `@property`."""

    def mark(method: Method) -> Method:
        method.__written_after__ = field  # type: ignore[attr-defined]
        return method

    return mark
