"""The public names of a module, with signatures, fields, defaults and docstrings.

The module that defines a name is omitted, also for nested classes, because definitions can move.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from typing import Any


def public_names(module: str) -> str:
    """Return all names in `__all__` of a module, as text."""
    found = import_module(module)
    lines = [str(inspect.getdoc(found))]
    for name in sorted(found.__all__):
        lines += ["", *_thing(name, getattr(found, name))]
    return re.sub(r"\bgoodput_cli(\.\w+)+|0x[0-9a-f]+", "PLACE", "\n".join(lines)) + "\n"


def _thing(name: str, thing: Any) -> Iterator[str]:
    if inspect.isclass(thing):
        errors = [base.__name__ for base in thing.__mro__[1:] if issubclass(base, Exception)]
        yield f"class {name}({', '.join(errors)})"
        yield from _docstring(thing)
        if dataclasses.is_dataclass(thing):
            yield from (f"  {one.name}: {one.type}{_default(one)}" for one in dataclasses.fields(thing))
        if issubclass(thing, Enum):
            yield from (f"  {one.name} = {one.value!r}" for one in thing)
        fields = getattr(thing, "__dataclass_fields__", ())
        ours = [vars(base) for base in reversed(thing.__mro__) if base.__module__.startswith("goodput_cli")]
        members = {at: one for own in ours for at, one in own.items() if not at.startswith("_") and at not in fields}
        for at, one in sorted(members.items()):
            if not (isinstance(one, Enum) or (hasattr(one, "__objclass__") and not callable(one))):
                yield from (f"  {line}" for line in _member(at, one))
    else:
        yield from _member(name, thing)


def _member(name: str, thing: Any) -> Iterator[str]:
    wrapped = getattr(thing, "fget", None) or getattr(thing, "func", None) or getattr(thing, "__func__", thing)
    if callable(wrapped):
        kind = type(thing).__name__
        yield f"{kind} {name}{inspect.signature(wrapped)}"
        yield from _docstring(wrapped)
    else:
        yield f"{name} = {thing!r}"


def _docstring(thing: Any) -> Iterator[str]:
    written = thing.__doc__ if isinstance(thing.__doc__, str) else None
    yield from (f"    {line}" for line in inspect.cleandoc(written or "no docstring").splitlines())


def _default(field: Any) -> str:
    if field.default is not dataclasses.MISSING:
        return f" = {field.default!r}"
    return " = made anew" if field.default_factory is not dataclasses.MISSING else ""
