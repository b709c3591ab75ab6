"""How a check says what it found."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.columns import distinct
from goodput_cli.diagnostics.codes import CODES
from goodput_cli.diagnostics.diagnostic import MAX_PLACES, Diagnostic
from goodput_cli.events.schema import EventTable

_YEAR = 365.25 * 86_400
_UNITS = ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h"), (3 * _YEAR, 86_400, "days"))
"""Up to which number of seconds a unit is used, its seconds, and its name."""
NOBODY = np.zeros(0, dtype=np.intp)


def found(code: str, table: EventTable, rows: NDArray[np.intp], message: str, count: int | None = None) -> Diagnostic:
    """A finding at some rows of a table, with the severity of its code. count: where it is not that of the rows."""
    named = distinct(rows)[:MAX_PLACES].tolist()
    keys = sorted({(table.sources[table.source[row]], int(table.line[row]), table.where(row)) for row in named})
    number = len(rows) if count is None else count
    return Diagnostic(code, CODES[code].severity, message, number, tuple(place for _, _, place in keys))


def amount(ns: float) -> str:
    """An amount of time for a message: `12.5 s`, `25 min`, `3.2 h`, `40 days`, `55 years`."""
    value = abs(ns) / 1e9
    for limit, unit, name in _UNITS:
        if value < limit:
            return f"{value / unit:.3g} {name}"
    return f"{value / _YEAR:.3g} years"
