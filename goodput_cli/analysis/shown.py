"""What a session or a notebook shows of an answer: the same table that its command writes."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from html import escape
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from goodput_cli.analysis.sheet import Sheet

_WIDTH = 100
_MOST_LINES = 14
_MOST_IN_A_NOTEBOOK = 60


class Shown(ABC):
    """An answer that shows itself. It is a mixin of frozen dataclasses, which are declared with `repr=False`."""

    @abstractmethod
    def sheet(self) -> Sheet:
        """The answer as a table, made when somebody looks at it."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}:\n{self._text(_MOST_LINES)}\n more: .to_frame(), {self._more()}>"

    def _repr_html_(self) -> str:
        """The same with more lines. No style, no script; text of the log is escaped."""
        return f"<pre>{escape(self._text(_MOST_IN_A_NOTEBOOK))}</pre>"

    def to_frame(self) -> pd.DataFrame:
        """Every row as a DataFrame, with the columns that Parquet has: exact, instants in UTC."""
        import pandas as pd

        return pd.read_parquet(BytesIO(_written(self.rows_sheet(), "parquet")))

    def rows_sheet(self) -> Sheet:
        """The table that a DataFrame has."""
        return self.sheet()

    def _more(self) -> str:
        return "and its attributes"

    def _text(self, most: int) -> str:
        lines = str(_written(self.sheet(), "table")).strip("\n").splitlines()
        rest = len(lines) - most
        return "\n".join(lines if rest <= 1 else [*lines[:most], f" ({rest} more lines)"])


class Answered(Shown):
    """One that is a whole answer."""

    def to_dict(self) -> dict[str, Any]:
        """The answer as `--format json` writes it (docs/schema.json)."""
        answer: dict[str, Any] = json.loads(_written(self.sheet(), "json"))
        return answer

    def _more(self) -> str:
        return ".to_dict()"


def _written(sheet: Sheet, format_name: str) -> Any:
    """As a renderer writes it. It is looked up by its name, as a plug-in is: results know none."""
    registry = import_module("goodput_cli.report.base")
    return registry.load_sheet_renderer(format_name)(sheet, registry.Page(width=_WIDTH))
