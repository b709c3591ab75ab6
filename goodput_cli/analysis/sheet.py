"""Sheets: rows and columns that any format can show. Commands other than `analyze` return one.

A command makes a `Sheet`, and one renderer per format shows it. The sheet contains exact values (ns, percent), never
text made from them. Each column is declared once: its name, kind and audience give the heading in the terminal, the key
in JSON, the heading in CSV, the type in Parquet and the entry in docs/schema.json.

Sessions and notebooks show the same table that the command writes.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Flag
from io import BytesIO
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast, overload

from goodput_cli.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from goodput_cli.analysis.threshold import Threshold
    from goodput_cli.diagnostics.diagnostic import Diagnostic


RenderAnalysis = Callable[[Any, str], str]
"""Writes an `Analysis` in a format, by its name."""
RenderSheet = Callable[[Any, str, int], str | bytes]
"""Writes a `Sheet` in a format, by its name. The number is the width in columns."""

_registered: list[tuple[RenderAnalysis, RenderSheet]] = []


def register_renderers(analysis: RenderAnalysis, sheet: RenderSheet) -> None:
    """Set the renderers of all results."""
    _registered[:] = [(analysis, sheet)]


def render_analysis(analysis: Any, format_name: str) -> str:
    """Return an `Analysis` in a format."""
    return _registered[0][0](analysis, format_name)


def render_sheet(sheet: Any, format_name: str, width: int) -> str | bytes:
    """Return a `Sheet` in a format. width: in columns."""
    return _registered[0][1](sheet, format_name, width)


SCHEMA_VERSION: Literal[2] = 2
"""Version of machine-readable output: JSON answers (docs/schema.json) and the metadata of Parquet files."""
READ_VERSIONS = (1, SCHEMA_VERSION)
"""Versions of saved answers that are read and that the schema accepts. Answers of version 1 have no bounds."""
Cell = str | int | float | None
ColumnKind = Literal["text", "count", "number", "duration", "change", "instant", "percent", "points", "share"]
"""Kind of the values in a cell. `text`; `count` an int; `number` a float; `duration` ns (int); `change` ns (int) gained
(+) or lost (-); `instant` ns since 1970 UTC (int); `percent` a float; `points` a float, percentage points gained or
lost; `share` a float 0..1 that is drawn as a bar, for people only."""
SECONDS = {"duration": "_seconds", "change": "_seconds", "percent": "_percent", "points": "_points"}
"""Suffix of a column's name, by kind, where amounts of time are written in seconds."""
NS = {"duration": "_ns", "change": "_ns", "percent": "_percent", "points": "_points"}
"""Suffix of a column's name, by kind, where amounts of time are written in ns."""


Tone = Literal["good", "bad"]


class Audience(Flag):
    """Readers for which a column is shown."""

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
    """A sequence whose items are made again at each read. A format costs only what it shows, and a million rows need
    not be in memory at once. size: the number of items that `make` returns."""

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
        """Return items by making all of them; meant for tests and short answers."""
        return list(self)[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Column:
    """Declaration of a table column."""

    name: str
    """The name in the vocabulary; the heading of the column in every format, with the unit where programs read it."""
    kind: ColumnKind
    """Kind of the values."""
    audience: Audience = Audience.ALL
    """Readers for which the column is shown."""
    values: Callable[[Any], Any] | None = None
    """Function from a part of the rows to the cells of this column: a list, or int64 with `UNKNOWN` (analysis/table.py)
    for unknown values. The table defines its parts. None if the rows are filled by hand."""
    words: str = ""
    """Description for the JSON schema."""
    key: str | None = None
    """Key in JSON if it differs from the name with the unit."""
    json: Mapping[str, Any] | None = None
    """JSON schema of the values if the kind does not determine it: for lists, objects, choices. They are written
    unchanged."""
    json_values: Callable[[Any], Any] | None = None
    """Like `values`, where JSON differs from tables."""
    nullable: bool = False
    """True if a value may be unknown."""
    least: int | None = None
    """Smallest allowed value."""
    later: bool = False
    """True if the column was added later: answers saved earlier have no such key."""
    people_values: Callable[[Any], Any] | None = None
    """Like `values`, where people see something other than programs."""
    title: str | None = None
    """Heading for people, from `analysis/table.py`, if it differs from the name."""
    brief: Callable[[str], str] | None = None
    """Function that shortens a cell of text, for tables that have no room for it."""

    spare: bool = False
    """True if tables omit the column first when there is no room for all columns."""

    wraps: bool = False
    """True if long text wraps onto a further line instead of being cut in the middle."""

    tone: Callable[[Cell], Tone | None] | None = None
    """Function that rates a cell as good or bad news, for tables in color; None if no cell is either."""

    @property
    def heading(self) -> str:
        """Return the heading for people."""
        return self.name if self.title is None else self.title

    def head(self, units: Mapping[str, str] = SECONDS) -> str:
        """Return the name for programs: `down time` as `down_time_seconds`. units: the suffix by kind."""
        unit = units.get(self.kind, "")
        name = self.name.replace(" ", "_")
        return name if f"_{name}".endswith(unit) else name + unit

    @property
    def json_key(self) -> str:
        """Return the key in JSON."""
        return self.head() if self.key is None else self.key


@dataclass(frozen=True)
class Chart:
    """Data of a sheet's chart. Each kind of chart has its own class, which `report/html` draws."""

    words: str
    """Text alternative, for people who do not see the chart."""


@dataclass(frozen=True)
class Card:
    """An answer at a glance, at the top of a page for people."""

    figure: str
    """A few characters, shown large: `-1.08 points`."""
    words: tuple[str, ...]
    """Description of the figure, one line each."""
    facts: tuple[tuple[str, str], ...]
    """Facts shown next to it: a name, and a few words."""
    tone: Tone | None = None
    """`good` or `bad` news; None for neither."""
    covers: tuple[str, ...] = ()
    """Lines of the summary that the card repeats."""


Outcome = Literal["passed", "failed", "not_judged"]
Labels = dict[str, str]
"""Labels of a sample, in addition to the job's name."""


@dataclass(frozen=True)
class Family:
    """A metric."""

    name: str
    meaning: str
    """Description for people who read the metrics."""
    samples: list[tuple[Labels, str]]
    """Labels in addition to the job's name, and the value as text. Empty if the metric is not recorded."""


def family_of(name: str, meaning: str, value: str | None) -> Family:
    """Return a family of one sample, or of none."""
    return Family(name, meaning, [] if value is None else [({}, value)])


@dataclass(frozen=True)
class PublishedAnswer:
    """An answer as gates and metrics."""

    job: str
    """The job's name, as in the log."""
    end_ns: int
    """End of the window, ns since 1970 UTC: the time of the answer."""
    headline: str
    """The answer in one line."""
    said: tuple[str, ...]
    """Further lines, above those of the thresholds."""
    properties: tuple[tuple[str, str], ...]
    """Names and values of every known figure."""
    thresholds: tuple[Threshold, ...]
    diagnostics: tuple[Diagnostic, ...]
    """Possible problems of the log."""
    families: tuple[Family, ...] = ()
    """The figures as metrics, without those of thresholds and diagnostics, which every answer has."""
    verdict: tuple[str, ...] = ()
    """Lines of a failed gate in addition to its numbers: the largest cost and its cause, what to do, and the command
    that shows more. Empty if `said` contains them."""

    @property
    def outcome(self) -> Outcome:
        """Return the worst outcome of all thresholds: one that could not be judged also fails a run."""
        verdicts = {one.verdict for one in self.thresholds if one.fails}
        return "failed" if "failed" in verdicts else "not_judged" if "not_recorded" in verdicts else "passed"


@dataclass(frozen=True)
class Sheet:
    """A table with the text above and below it."""

    title: str
    """The heading."""
    columns: tuple[Column, ...]
    """Columns, in the order of the cells of a row."""
    rows: Sequence[tuple[Cell, ...]]
    """All rows, one cell per column; None means "not recorded"."""
    answer: Callable[[], object] | None = None
    """Function that makes the whole answer for JSON; None for a sheet that is only a section of another."""
    summary: tuple[str, ...] = ()
    """Lines above the rows."""
    notes: tuple[str, ...] = ()
    """Lines below the rows."""
    details: tuple[tuple[str, ...], ...] = ()
    """Lines that belong to the first rows, for people: a terminal shows them below each row."""
    grouped_rows: Sequence[tuple[Cell, ...]] | None = None
    """Rows for people if some are grouped, otherwise None."""
    sections: tuple[Sheet, ...] = ()
    """Further tables below, for people."""
    folded: bool = False
    """True if Markdown folds the sections."""
    chart: Chart | None = None
    """Chart in HTML, SVG and PNG; None if there is none."""
    card: Card | None = None
    """Card at the top of the page; None if the summary is enough."""
    published: Callable[[], PublishedAnswer] | None = None
    """Function that makes gates and figures for JUnit and OpenMetrics; None for answers without them."""
    remark: str = ""
    """Last line of CSV, after a `#`: CSV has no headline."""

    @property
    def every_note(self) -> tuple[str, ...]:
        """Return the notes, and the details of each row after its number, for formats that show all of them below the
        rows."""
        rows = enumerate(self.details, 1)
        return (*self.notes, *(f"no. {number}: {line}" for number, lines in rows for line in lines))

    def tables(self) -> tuple[Sheet, ...]:
        """Return the tables, as `document.Document` does. The methods below follow it, too."""
        return (self,)

    def gates(self) -> PublishedAnswer | None:
        """Return the thresholds; None if there are none."""
        return None if self.published is None else self.published()

    def figures(self) -> tuple[Family, ...]:
        """Return the metrics."""
        gates = self.gates()
        return () if gates is None else gates.families

    def blocks(self) -> tuple[Sheet, ...]:
        """Return the sheet itself, a block with the tables below it."""
        return (self,)

    def json_answer(self) -> object:
        """Return the whole answer. Raise `UsageError` for a sheet that has none."""
        if self.answer is None:
            raise UsageError(f"{self.title}: this table is a part of an answer and cannot be written as JSON")
        return self.answer()


_WIDTH = 100
_MOST_LINES = 14
_MOST_IN_A_NOTEBOOK = 60


class Displayable(ABC):
    """An answer that displays itself: a mixin of frozen dataclasses, which are declared with `repr=False`."""

    @abstractmethod
    def sheet(self) -> Sheet:
        """Return the answer as a table, made on demand."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}:\n{self._text(_MOST_LINES)}\n more: .to_frame(), {self._more()}>"

    def _repr_html_(self) -> str:
        """Return the text of `repr` with more lines. It has no style and no script; text of the log is escaped."""
        from html import escape  # Only notebooks need it, and it loads a table of all entities.

        return f"<pre>{escape(self._text(_MOST_IN_A_NOTEBOOK))}</pre>"

    def to_frame(self) -> pd.DataFrame:
        """Return all rows as a DataFrame with the columns of the Parquet file: exact values, times in UTC."""
        import pandas as pd

        return pd.read_parquet(BytesIO(cast(bytes, render_sheet(self.rows_sheet(), "parquet", _WIDTH))))

    def rows_sheet(self) -> Sheet:
        """Return the table of which `to_frame` makes a DataFrame."""
        return self.sheet()

    def _more(self) -> str:
        return "and its attributes"

    def _text(self, most: int) -> str:
        lines = str(render_sheet(self.sheet(), "table", _WIDTH)).strip("\n").splitlines()
        rest = len(lines) - most
        return "\n".join(lines if rest <= 1 else [*lines[:most], f" ({rest} more lines)"])


class DisplayableAnswer(Displayable):
    """A whole answer that displays itself."""

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as `--format json` writes it (docs/schema.json)."""
        answer: dict[str, Any] = json.loads(render_sheet(self.sheet(), "json", _WIDTH))
        return answer

    def _more(self) -> str:
        return ".to_dict()"
