"""Disruptions as a DataFrame."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from goodput_cli.analysis.disruptions.rows import COLUMNS, EVIDENCE_COLUMNS, Disruptions
from goodput_cli.analysis.sheet import Audience, Column
from goodput_cli.analysis.table import UNKNOWN

_SHOWN = tuple(one for one in COLUMNS if one.audience & Audience.TABLES)
_PLACES = tuple(one for one in EVIDENCE_COLUMNS if one.audience & Audience.TABLES)


def disruption_frame(disruptions: Disruptions) -> pd.DataFrame:
    """A row for each: what CSV has, and the lines that show it as `evidence_NAME`."""
    columns = {one.head(): one for one in _SHOWN}
    columns |= {f"evidence_{one.head()}": one for one in _PLACES}
    parts = list(disruptions.parts())
    return pd.DataFrame({name: _series(one, [_values(one, part) for part in parts]) for name, one in columns.items()})


def _values(one: Column, part: Any) -> Any:
    assert one.values is not None
    return one.values(part)


def _series(one: Column, parts: list[Any]) -> pd.Series[Any]:
    """The values of all parts with the type of the column; what is not known is missing."""
    if one.kind == "text":
        return pd.Series([value for part in parts for value in part], dtype=object)
    values = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
    known = pd.Series(values, dtype="Int64").mask(pd.Series(values == UNKNOWN, dtype=bool))
    match one.kind:
        case "instant":
            return pd.to_datetime(known, unit="ns", utc=True)
        case "duration":
            return known.astype("Float64") / 1e9
        case _:
            return known
