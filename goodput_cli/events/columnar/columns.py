"""What lines of one template say, a column a key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from goodput_cli.arrays import I64, Characters, Mask
from goodput_cli.events.columnar.numbers import Numerals, joined_numerals


@dataclass(frozen=True)
class Wrapping:
    """The envelopes around n records: the name of the log, and uint8[n, width], timestamps and insertIds."""

    log_name: str
    stamps: Characters
    ids: Characters

    def take(self, chosen: Mask) -> Wrapping:
        """Some of them."""
        return replace(self, stamps=self.stamps[chosen], ids=self.ids[chosen])


@dataclass(frozen=True)
class Columns:
    """n lines of one template."""

    rows: I64
    """Their positions in the block."""
    keys: frozenset[str]
    constants: dict[str, Any]
    """What is the same in all of them."""
    numbers: dict[str, Numerals]
    texts: dict[str, Characters]
    """uint8[n, width]: the characters of timestamps."""
    wrapping: Wrapping | None = None
    """The envelopes, if they have some."""

    def take(self, chosen: Mask) -> Columns:
        """Some of the lines."""
        return replace(
            self,
            rows=self.rows[chosen],
            numbers={key: one.take(chosen) for key, one in self.numbers.items()},
            texts={key: one[chosen] for key, one in self.texts.items()},
            wrapping=self.wrapping and self.wrapping.take(chosen),
        )


def joined_columns(parts: Sequence[Columns]) -> Columns | None:
    """Lines of one template, one part behind the other; None if there are none."""
    if len(parts) < 2:
        return parts[0] if parts else None
    first = parts[0]
    wrappings = [part.wrapping for part in parts if part.wrapping is not None]
    return replace(
        first,
        rows=np.concatenate([part.rows for part in parts]),
        numbers={key: joined_numerals([part.numbers[key] for part in parts]) for key in first.numbers},
        texts={key: np.concatenate([part.texts[key] for part in parts]) for key in first.texts},
        wrapping=_joined_wrappings(wrappings) if wrappings else None,
    )


def _joined_wrappings(parts: Sequence[Wrapping]) -> Wrapping:
    stamps, ids = (np.concatenate([getattr(part, name) for part in parts]) for name in ("stamps", "ids"))
    return replace(parts[0], stamps=stamps, ids=ids)
