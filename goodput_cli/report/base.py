"""The one registry of output formats, and the plug-in point for those of other packages.

A package registers a format under the entry-point group `goodput_cli.renderers`: the entry point's name is the name of
the format, its object an `OutputFormat`, or just a function that writes an analysis. Modules are imported only when
their format is asked for.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, Protocol

from goodput_cli.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from goodput_cli.analysis.document import Document
    from goodput_cli.analysis.goodput.analysis import Analysis
    from goodput_cli.analysis.sheet import Sheet

ENTRY_POINT_GROUP = "goodput_cli.renderers"
Offer = Literal["chart", "published"]
"""What only some answers have, by its name in a `Sheet`: a chart, gates and figures."""
Depth = Literal["standard", "256", "truecolor"]
"""Colours of a terminal: 16, 256 or all."""


@dataclass(frozen=True)
class Page:
    """Where the text will be read."""

    width: int = 80
    """In columns."""
    colour: bool = False
    """Whether escape sequences may be used."""
    unicode: bool = True
    """Whether bars and rules may use more than ASCII."""
    depth: Depth = "standard"
    """How many colours there are, where there are any."""
    back: str = ""
    """Of a page in a site: where the page is that led to it. Its charts are drawn by its script alone."""
    which: str = ""
    """Of a page in a site: `run 2 of 3`, where the job has several."""
    others: tuple[tuple[str, str], ...] = ()
    """The other runs of that job: what each is called, and where its page is."""
    height: int = 24
    """Lines of the terminal."""


class Renderer(Protocol):
    """An analysis as text, ending with a newline, or as bytes. Only formats for people look at the page; the function
    of a plug-in may leave it out.

    `UsageError` where the analysis has nothing that the format could show.
    """

    def __call__(self, analysis: Analysis, page: Page) -> str | bytes: ...


class SheetRenderer(Protocol):
    """The answer of any other command, a table, as text or bytes; otherwise as `Renderer`."""

    def __call__(self, sheet: Sheet, page: Page) -> str | bytes: ...


@dataclass(frozen=True)
class OutputFormat:
    """What a format can write. A function may be given as `package.module:function`, which is imported when the format
    is asked for and not before."""

    analysis: Callable[..., str | bytes] | str | None = None
    """Writes what `analyze` answers: a `Renderer`. None: the format is not for it."""
    sheet: Callable[..., str | bytes] | str | None = None
    """Writes what every other command answers: a `SheetRenderer`. None: the format is for `analyze` only."""
    endings: tuple[str, ...] = ()
    """Of the files that `-o` writes in this format, without the first dot; the format's name where none is given."""
    binary: bool = False
    """Whether it writes bytes, which no terminal should see."""
    needs: Offer | None = None
    """What a sheet must have for it; None: any sheet will do."""
    fleet: Callable[..., str | bytes] | str | None = None
    """Writes what `fleet` answers, a `FleetSheet`, where that is more than a table. None: as `sheet` does."""
    draws: bool = False
    """Whether our charts are drawn for it, where an answer has one."""


@dataclass(frozen=True)
class _OwnFormat(OutputFormat):
    """One of ours, by names of modules in `goodput_cli.report`. Most write what every answer offers; some write an
    answer as it is, for what a page of its own shows of it."""

    document: str | None = None
    """Writes any `Document`, unless one of the other functions is for it."""


_BUILT_IN = {
    "table": _OwnFormat(document="table:render", endings=("txt",)),
    "json": _OwnFormat(document="json:render", endings=("json",)),
    "csv": _OwnFormat(document="csv:render", endings=("csv",)),
    "markdown": _OwnFormat(document="markdown:render", endings=("md", "markdown")),
    "html": _OwnFormat(
        "html.analysis:render", "html.sheet:render", ("html", "htm"), fleet="html.fleet:render", draws=True
    ),
    "svg": _OwnFormat("html.charts:svg", "html.sheet:svg", ("svg",), needs="chart", draws=True),
    "png": _OwnFormat("html.charts:png", "html.sheet:png", ("png",), binary=True, needs="chart", draws=True),
    "junit": _OwnFormat(document="junit:render", endings=("xml",), needs="published"),
    "openmetrics": _OwnFormat(document="openmetrics:render", endings=("prom", "om"), needs="published"),
    "parquet": _OwnFormat(
        "parquet:segments", document="parquet:render", endings=("parquet", "segments.parquet"), binary=True
    ),
    "parquet-events": _OwnFormat("parquet:events", endings=("events.parquet",), binary=True),
}


def format_names() -> list[str]:
    """Every format that can be asked for, our own first."""
    return [*_BUILT_IN, *(name for name in sorted(_plug_ins()) if name not in _BUILT_IN)]


def no_such_format(name: str) -> UsageError:
    """What to say of a format that there is not, which may be called by the ending of its files."""
    meant = next((own for own, known in _BUILT_IN.items() if name.lower() in known.endings), None)
    hint = f"did you mean {meant}?" if meant else f"use one of {', '.join(format_names())}"
    return UsageError(f"unknown format {name!r}; {hint}")


def is_format(name: str) -> bool:
    """Whether a format can be asked for. Plug-ins are looked for only where it is none of our own."""
    return name in _BUILT_IN or name in _plug_ins()


def format_of(path: str) -> str:
    """The format that a file's ending stands for: `report.json`, or a longer one such as `run.events.parquet` where a
    format claims it. `UsageError` if none does.

    A plug-in is loaded, to see which endings it has, only where neither ours nor the names of plug-ins fit.
    """
    file = PurePath(path).name.lower()
    ours = {ending: name for name, known in _BUILT_IN.items() for ending in known.endings}
    named = {**{name: name for name in _plug_ins()}, **ours}
    found = _longest_ending(file, named)
    if found is None:
        claimed = {ending: name for name in _plug_ins() for ending in _endings_of_plug_in(name)}
        named = {**claimed, **named}
        found = _longest_ending(file, named)
    if found is None:
        known_endings = ", ".join(f".{ending}" for ending in named)
        raise UsageError(f"{path}: unknown file extension; use one of {known_endings}")
    return found


def is_binary(name: str) -> bool:
    """Whether the format writes bytes. Errors as in `load_renderer`."""
    return _format(name).binary


def draws(name: str) -> bool:
    """Whether the format shows our charts. Errors as in `load_renderer`."""
    return _format(name).draws


def load_renderer(name: str) -> Renderer:
    """The function that writes an analysis in a format. `UsageError` if there is no such format, it is for other
    answers, or its plug-in cannot be loaded."""
    asked = _format(name)
    if isinstance(asked, _OwnFormat) and asked.analysis is None:
        write: Callable[[Document, Page], str | bytes] = _load(name, asked.document)

        def render(analysis: Analysis, page: Page) -> str | bytes:
            from goodput_cli.analysis.goodput.document import AnalysisDocument  # numpy, which --help does without

            return write(AnalysisDocument(analysis), page)

        return render
    if asked.analysis is None:
        raise UsageError(f"the format {name!r} is not available for analyze")
    renderer: Renderer = _load(name, asked.analysis)
    return renderer


def load_sheet_renderer(name: str, offers: Sequence[Offer] = ()) -> SheetRenderer:
    """The function that writes a table in a format. offers: what the sheets of this command have beside their rows.
    Errors as in `load_renderer`."""
    asked = _format(name)
    function = _of_sheets(asked)
    if function is None or asked.needs not in (None, *offers):
        able = (own for own, known in _BUILT_IN.items() if _of_sheets(known) and known.needs in (None, *offers))
        raise UsageError(f"the format {name!r} is not available for this command; use one of {', '.join(able)}")
    renderer: SheetRenderer = _load(name, function)
    return renderer


def load_fleet_renderer(name: str) -> SheetRenderer:
    """The function that writes what `fleet` answers in a format. Errors as in `load_renderer`."""
    function = _format(name).fleet
    if function is None:
        return load_sheet_renderer(name, ("published",))
    renderer: SheetRenderer = _load(name, function)
    return renderer


def _of_sheets(asked: OutputFormat) -> Callable[..., str | bytes] | str | None:
    """What writes a sheet: a sheet is a document too."""
    return asked.sheet or (asked.document if isinstance(asked, _OwnFormat) else None)


def _format(name: str) -> OutputFormat:
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    if name not in _plug_ins():
        raise no_such_format(name)
    return _loaded_plug_in(name)


def _load(name: str, function: Callable[..., str | bytes] | str | None) -> Any:
    if not isinstance(function, str):
        return function
    module, _, attribute = function.partition(":")
    if name in _BUILT_IN:
        return getattr(import_module(f"goodput_cli.report.{module}"), attribute)
    try:
        return getattr(import_module(module), attribute)
    except Exception as error:
        raise UsageError(f"cannot load the format {name!r} from {function}: {error}") from error


def _longest_ending(file: str, formats: dict[str, str]) -> str | None:
    matching = [ending for ending in formats if file.endswith(f".{ending}") and len(file) > len(ending) + 1]
    return formats[max(matching, key=len)] if matching else None


def _endings_of_plug_in(name: str) -> tuple[str, ...]:
    try:
        return _loaded_plug_in(name).endings
    except UsageError:  # said when that format itself is asked for
        return ()


@cache
def _loaded_plug_in(name: str) -> OutputFormat:
    point = _plug_ins()[name]
    try:
        loaded = point.load()
    except Exception as error:
        raise UsageError(f"cannot load the format {name!r} from {point.value}: {error}") from error
    if isinstance(loaded, OutputFormat):
        return loaded
    if callable(loaded):
        return OutputFormat(analysis=_taking_a_page(loaded))
    raise UsageError(f"the format {name!r} from {point.value} is neither an OutputFormat nor a function")


def _taking_a_page(function: Callable[..., str | bytes]) -> Renderer:
    """The function of a plug-in, which may take the analysis alone, as a `Renderer`."""
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        return lambda analysis, page: function(analysis)  # noqa: ARG005 - a renderer's signature
    except ValueError:  # a function without a signature: it takes what the protocol says
        pass
    return function


@cache
def _plug_ins() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # slow to import, and to ask: only if a plug-in may be meant

    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
