"""The registry of output formats, and the plug-in point for formats of other packages.

A package registers a format under the entry-point group `goodput_cli.renderers`: the name of the entry point is the
name of the format, its object an `OutputFormat` or a function that writes an analysis. Modules are imported only when
their format is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, Protocol

from goodput_cli.analysis.sheet import register_renderers
from goodput_cli.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from goodput_cli.analysis.document import Document
    from goodput_cli.analysis.goodput.analysis import Analysis
    from goodput_cli.analysis.sheet import Sheet

ENTRY_POINT_GROUP = "goodput_cli.renderers"
Offer = Literal["chart", "published"]
"""Optional parts of answers by their name in a `Sheet`: a chart, or gates and figures."""
Depth = Literal["standard", "256", "truecolor"]
"""Colors of a terminal: 16, 256 or all."""


@dataclass(frozen=True)
class Page:
    """Properties of the output device or page."""

    width: int = 80
    """In columns."""
    colour: bool = False
    """True if escape sequences may be used."""
    unicode: bool = True
    """True if bars and rules may use characters outside ASCII."""
    depth: Depth = "standard"
    """The number of colors, if there are any."""
    back: str = ""
    """For a page in a site: the address of the page that links to it. Only its script draws its charts."""
    which: str = ""
    """For a page in a site: `run 2 of 3`, if the job has several runs."""
    others: tuple[tuple[str, str], ...] = ()
    """The other runs of that job: name and address of the page of each."""
    height: int = 24
    """Lines of the terminal."""


class Renderer(Protocol):
    """Function that returns an analysis as text ending with a newline, or as bytes. Only formats for people use the
    page; the function of a plug-in may omit it.

    Raises UsageError if the analysis has nothing that the format could show.
    """

    def __call__(self, analysis: Analysis, page: Page) -> str | bytes: ...


class SheetRenderer(Protocol):
    """Function that returns the answer of any other command, a table, as text or bytes. Otherwise like `Renderer`."""

    def __call__(self, sheet: Sheet, page: Page) -> str | bytes: ...


@dataclass(frozen=True)
class OutputFormat:
    """Functions of a format. A function may be given as `package.module:function`, which is imported when the format is
    used."""

    analysis: Callable[..., str | bytes] | str | None = None
    """Writes the answer of `analyze`: a `Renderer`. None: not supported."""
    sheet: Callable[..., str | bytes] | str | None = None
    """Writes the answer of every other command: a `SheetRenderer`. None: the format is for `analyze` only."""
    endings: tuple[str, ...] = ()
    """File extensions of the format for `-o`, without the first dot; the name of the format by default."""
    binary: bool = False
    """True if it writes bytes, which must not go to a terminal."""
    needs: Offer | None = None
    """Required part of a sheet; None: every sheet will do."""
    fleet: Callable[..., str | bytes] | str | None = None
    """Writes the answer of `fleet`, a `FleetSheet`, if that is more than a table. None: uses `sheet`."""
    draws: bool = False
    """True if it shows the charts of an answer."""


@dataclass(frozen=True)
class _OwnFormat(OutputFormat):
    """Built-in format, by names of modules in `goodput_cli.report`. Most write the common parts of every answer; some
    write an answer itself, to show more on a page of their own."""

    document: str | None = None
    """Writes any `Document`, unless one of the other functions does."""


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
    """Return the names of all formats, built-in ones first."""
    return [*_BUILT_IN, *(name for name in sorted(_plug_ins()) if name not in _BUILT_IN)]


def no_such_format(name: str) -> UsageError:
    """Return the error for an unknown format name, with a hint if it is a file extension of a format."""
    meant = next((own for own, known in _BUILT_IN.items() if name.lower() in known.endings), None)
    hint = f"did you mean {meant}?" if meant else f"use one of {', '.join(format_names())}"
    return UsageError(f"unknown format {name!r}", tip=hint)


def is_format(name: str) -> bool:
    """Return True if a format exists. Plug-ins are searched only if it is not built in."""
    return name in _BUILT_IN or name in _plug_ins()


def format_of(path: str) -> str:
    """Return the format of a file extension: `report.json`, or a longer one such as `run.events.parquet` if a format
    claims it. Raises UsageError if no format does.

    Plug-ins are loaded for their extensions only if neither a built-in extension nor the name of a plug-in matches.
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
        raise UsageError(f"{path}: unknown file extension", tip=f"use one of {known_endings}")
    return found


def is_binary(name: str) -> bool:
    """Return True if the format writes bytes. Errors as in `load_renderer`."""
    return _format(name).binary


def draws(name: str) -> bool:
    """Return True if the format shows charts. Errors as in `load_renderer`."""
    return _format(name).draws


def load_renderer(name: str) -> Renderer:
    """Return the function that writes an analysis in a format. Raises UsageError if the format does not exist, is for
    other answers, or its plug-in cannot be loaded."""
    asked = _format(name)
    if isinstance(asked, _OwnFormat) and asked.analysis is None:
        write: Callable[[Document, Page], str | bytes] = _load(name, asked.document)

        def render(analysis: Analysis, page: Page) -> str | bytes:
            from goodput_cli.analysis.goodput.document import AnalysisDocument  # imports numpy; --help does without

            return write(AnalysisDocument(analysis), page)

        return render
    if asked.analysis is None:
        raise UsageError(f"the format {name!r} is not available for analyze")
    renderer: Renderer = _load(name, asked.analysis)
    return renderer


def load_sheet_renderer(name: str, offers: Sequence[Offer] = ()) -> SheetRenderer:
    """Return the function that writes a table in a format. offers: optional parts of the sheets of this command. Errors
    as in `load_renderer`."""
    asked = _format(name)
    function = _of_sheets(asked)
    if function is None or asked.needs not in (None, *offers):
        able = (own for own, known in _BUILT_IN.items() if _of_sheets(known) and known.needs in (None, *offers))
        raise UsageError(f"the format {name!r} is not available for this command", tip=f"use one of {', '.join(able)}")
    renderer: SheetRenderer = _load(name, function)
    return renderer


def load_fleet_renderer(name: str) -> SheetRenderer:
    """Return the function that writes the answer of `fleet` in a format. Errors as in `load_renderer`."""
    function = _format(name).fleet
    if function is None:
        return load_sheet_renderer(name, ("published",))
    renderer: SheetRenderer = _load(name, function)
    return renderer


def _of_sheets(asked: OutputFormat) -> Callable[..., str | bytes] | str | None:
    """Return the function that writes a sheet: either its own or the one for documents."""
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
    except UsageError:  # reported when that format itself is used
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
    """Return the function of a plug-in as a `Renderer`. It may accept the analysis alone."""
    import inspect  # few programs have plug-ins

    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        return lambda analysis, page: function(analysis)  # noqa: ARG005 - a renderer's signature
    except ValueError:  # a function without a signature: assume that it follows the protocol
        pass
    return function


@cache
def _plug_ins() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # slow to import and to search: only if needed

    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def _render_analysis(analysis: Analysis, format_name: str) -> str:
    return str(load_renderer(format_name)(analysis, Page()))


def _render_sheet(sheet: Sheet, format_name: str, width: int) -> str | bytes:
    return load_sheet_renderer(format_name)(sheet, Page(width=width))


register_renderers(_render_analysis, _render_sheet)
