"""A sheet: rows and columns that any format can show. What commands other than `analyze` answer with.

A command makes a `Sheet`; one renderer a format shows it. The sheet holds exact values (ns, percent), never text made
from them. Each column is declared once: its name, what it holds and who sees it give the head in the terminal, the key
in JSON, the head in CSV, the type in Parquet and the entry in docs/schema.json.

What a session or a notebook shows of an answer: the same table that its command writes.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Flag
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from goodput_cli.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from goodput_cli.analysis.threshold import Threshold
    from goodput_cli.diagnostics.diagnostic import Diagnostic


SCHEMA_VERSION: Literal[2] = 2
"""The version of what programs read: JSON answers (docs/schema.json) and what Parquet files say of themselves."""
READ_VERSIONS = (1, SCHEMA_VERSION)
"""Versions of saved answers that are read, and that the schema takes: those of version 1 have no bounds."""
Cell = str | int | float | None
ColumnKind = Literal["text", "count", "number", "duration", "change", "instant", "percent", "points", "share"]
"""What a cell holds. `text`; `count` an int; `number` a float; `duration` ns (int); `change` ns (int) that were gained
(+) or lost (-); `instant` ns since 1970 UTC (int); `percent` a float; `points` a float, percentage points that were
gained or lost; `share` a float 0..1 that is drawn as a bar, for people only."""
SECONDS = {"duration": "_seconds", "change": "_seconds", "percent": "_percent", "points": "_points"}
"""What follows a column's name where amounts of time are written in seconds."""
NS = {"duration": "_ns", "change": "_ns", "percent": "_percent", "points": "_points"}
"""The same where they are written in ns."""


Tone = Literal["good", "bad"]


class Audience(Flag):
    """Who sees a column."""

    PEOPLE = 1
    """Readers of the terminal, Markdown and HTML."""
    TABLES = 2
    """Programs that read CSV or Parquet."""
    JSON = 4
    """Programs that read JSON."""
    PROGRAMS = TABLES | JSON
    ALL = PEOPLE | PROGRAMS


Item = TypeVar("Item")


class Lazy(Sequence[Item], Generic[Item]):
    """A sequence whose items are made when they are read, each time anew: a format costs only what it shows, and a
    million rows need not be in memory at once. size: how many `make` gives."""

    def __init__(self, size: int, make: Callable[[], Iterable[Item]]) -> None:
        self._size = size
        self._make = make

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Item]:
        return iter(self._make())

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | Sequence[Item]:
        """By making all of them: meant for tests and short answers."""
        return list(self)[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Column:
    """A column of a table, as it is declared."""

    name: str
    """As in the vocabulary; the head of the column in every format, with the unit where programs read it."""
    kind: ColumnKind
    """What a cell holds."""
    audience: Audience = Audience.ALL
    """Who sees it."""
    values: Callable[[Any], Any] | None = None
    """From a part of the rows to the cells of this column: a list, or int64 with `UNKNOWN` (analysis/table.py) for what
    is not known. What a part is, the table says. None where the rows are filled by hand."""
    words: str = ""
    """What it means, for the schema of JSON."""
    key: str | None = None
    """Its key in JSON, where that is not the name with the unit."""
    json: Mapping[str, Any] | None = None
    """The JSON schema of its values where the kind does not say it: of lists, objects, choices. They are written as
    they are."""
    json_values: Callable[[Any], Any] | None = None
    """As `values`, where JSON has something else than tables."""
    nullable: bool = False
    """Whether a value may be unknown."""
    least: int | None = None
    """What no value is below."""
    later: bool = False
    """Whether it came later: answers that were saved before have no such key."""
    people_values: Callable[[Any], Any] | None = None
    """As `values`, where people see something else than programs."""
    title: str | None = None
    """The heading that people read, one of `analysis/table.py`, where it is not the name."""
    brief: Callable[[str], str] | None = None
    """From a cell of text to a shorter one, for tables that have no room for it."""

    spare: bool = False
    """Whether tables leave it out first where there is no room for all columns."""

    wraps: bool = False
    """Whether a cell of text goes on in a further line where there is no room, instead of losing its middle."""

    tone: Callable[[Cell], Tone | None] | None = None
    """Whether a cell is good news or bad, for tables in colour; None where no cell is either."""

    @property
    def heading(self) -> str:
        """What people read above it."""
        return self.name if self.title is None else self.title

    def head(self, units: Mapping[str, str] = SECONDS) -> str:
        """The name as programs read it, `down time` as `down_time_seconds`. units: by kind, what follows the name."""
        unit = units.get(self.kind, "")
        name = self.name.replace(" ", "_")
        return name if f"_{name}".endswith(unit) else name + unit

    @property
    def json_key(self) -> str:
        """The name as JSON has it."""
        return self.head() if self.key is None else self.key


@dataclass(frozen=True)
class Chart:
    """What a chart of a sheet shows, as data. Each kind of chart is a class of its own, which `report/html` draws."""

    words: str
    """What is to be seen, for those who do not see it."""


@dataclass(frozen=True)
class Card:
    """An answer at a glance: what a page for people opens with."""

    figure: str
    """A few characters, shown large: `-1.08 points`."""
    words: tuple[str, ...]
    """What the figure is, a line each."""
    facts: tuple[tuple[str, str], ...]
    """What stands beside it: a name, and a few words."""
    tone: Tone | None = None
    """Whether it is good news or bad; None for neither."""
    covers: tuple[str, ...] = ()
    """Lines of the summary that it says as well."""


Outcome = Literal["passed", "failed", "not_judged"]
Labels = dict[str, str]
"""Of a sample, beside the job's name."""


@dataclass(frozen=True)
class Family:
    """A metric."""

    name: str
    meaning: str
    """A sentence for people who read the metrics."""
    samples: list[tuple[Labels, str]]
    """Labels beside the job's name, and the value as text; none where it is not recorded."""


@dataclass(frozen=True)
class Published:
    """An answer as gates and metrics."""

    job: str
    """The job's name, as in the log."""
    end_ns: int
    """End of the window, since 1970 UTC: when the answer holds."""
    headline: str
    """The answer in a line."""
    said: tuple[str, ...]
    """Further lines, above those of the thresholds."""
    properties: tuple[tuple[str, str], ...]
    """Names and values of every figure that is known."""
    thresholds: tuple[Threshold, ...]
    diagnostics: tuple[Diagnostic, ...]
    """What may be wrong with the log."""
    families: tuple[Family, ...] = ()
    """The figures as metrics, without those of thresholds and diagnostics, which every answer has."""
    verdict: tuple[str, ...] = ()
    """What a gate that failed should say beside its numbers, in lines: what cost most and why, what to do, and the
    command that shows more. None where `said` says it."""

    @property
    def outcome(self) -> Outcome:
        """What all thresholds together come to, the worst first: one that could not be judged fails a run too."""
        verdicts = {one.verdict for one in self.thresholds if one.fails}
        return "failed" if "failed" in verdicts else "not_judged" if "not_recorded" in verdicts else "passed"


@dataclass(frozen=True)
class Sheet:
    """A table with what stands above and below it."""

    title: str
    """The heading."""
    columns: tuple[Column, ...]
    """Of every row, in the order of its cells."""
    rows: Sequence[tuple[Cell, ...]]
    """Every row, a cell a column; None is "not recorded"."""
    answer: Callable[[], object] | None = None
    """Makes the whole answer as JSON writes it; None for a sheet that is only a section of another."""
    summary: tuple[str, ...] = ()
    """Lines above the rows."""
    notes: tuple[str, ...] = ()
    """Lines below the rows."""
    details: tuple[tuple[str, ...], ...] = ()
    """Lines that belong to the first rows for people: a terminal shows them below each row."""
    grouped_rows: Sequence[tuple[Cell, ...]] | None = None
    """Rows for people where they are shown fewer than there are, else None."""
    sections: tuple[Sheet, ...] = ()
    """Further tables below, for people."""
    chart: Chart | None = None
    """The picture of it, in HTML, SVG and PNG; None where there is none."""
    card: Card | None = None
    """What its page opens with; None where the summary is enough."""
    published: Callable[[], Published] | None = None
    """Its gates and figures for JUnit and OpenMetrics; None for answers that have none."""
    remark: str = ""
    """What a last line of CSV says, behind a `#`: it has no headline beside which it could stand."""

    @property
    def every_note(self) -> tuple[str, ...]:
        """The notes, and the details of each row after its number, for formats that show all of them below the rows."""
        rows = enumerate(self.details, 1)
        return (*self.notes, *(f"no. {number}: {line}" for number, lines in rows for line in lines))

    def tables(self) -> tuple[Sheet, ...]:
        """As `document.Document` has it, and so are the others."""
        return (self,)

    def gates(self) -> Published | None:
        """Its thresholds, if it has any."""
        return None if self.published is None else self.published()

    def figures(self) -> tuple[Family, ...]:
        """Its metrics."""
        gates = self.gates()
        return () if gates is None else gates.families

    def blocks(self) -> tuple[Sheet, ...]:
        """It is a block itself, with the tables below it."""
        return (self,)

    def json_answer(self) -> object:
        """The whole answer. `UsageError` for a sheet that has none."""
        if self.answer is None:
            raise UsageError(f"{self.title}: this table is a part of an answer and cannot be written as JSON")
        return self.answer()


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
        from html import escape  # with a table of all entities, for notebooks alone

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
