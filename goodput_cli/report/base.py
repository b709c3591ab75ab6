"""The plug-in point for renderers: a name, the file endings it stands for, and a function `Analysis -> str` (or bytes).

A renderer of another package registers under the entry-point group `goodput_cli.renderers`: the entry point's name is
the format's name and its file ending, its object the function. Modules are imported only when their format is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from goodput_cli.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from goodput_cli.analysis.results import Analysis

ENTRY_POINT_GROUP = "goodput_cli.renderers"


Depth = Literal["standard", "256", "truecolor"]
"""Colours of a terminal: 16, 256 or all."""


@dataclass(frozen=True)
class Page:
    """Where the text will be read. width: columns. colour: whether escape sequences may be used. unicode: whether bars
    and rules may use more than ASCII. depth: how many colours there are, where there are any."""

    width: int = 80
    colour: bool = False
    unicode: bool = True
    depth: Depth = "standard"


class Renderer(Protocol):
    """An analysis as text, ending with a newline, or as bytes. Only formats for the eye look at the page.

    `UsageError` where an extra is missing or the analysis has nothing that the format could show.
    """

    def __call__(self, analysis: Analysis, page: Page) -> str | bytes: ...


class BuiltIn(NamedTuple):
    """module: holds `render`. endings: of files. binary: `render` gives bytes, which no terminal should see."""

    module: str
    endings: tuple[str, ...]
    binary: bool = False


_BUILT_IN = {
    "table": BuiltIn("goodput_cli.report.formats.table", ("txt",)),
    "json": BuiltIn("goodput_cli.report.formats.json", ("json",)),
    "csv": BuiltIn("goodput_cli.report.formats.csv", ("csv",)),
    "markdown": BuiltIn("goodput_cli.report.formats.markdown", ("md", "markdown")),
    "html": BuiltIn("goodput_cli.report.formats.html", ("html", "htm")),
    "svg": BuiltIn("goodput_cli.report.formats.svg", ("svg",)),
    "png": BuiltIn("goodput_cli.report.formats.png", ("png",), binary=True),
    "junit": BuiltIn("goodput_cli.report.formats.junit", ("xml",)),
    "openmetrics": BuiltIn("goodput_cli.report.formats.openmetrics", ("prom", "om")),
    "parquet": BuiltIn("goodput_cli.report.formats.parquet", ("parquet", "segments.parquet"), binary=True),
    "parquet-events": BuiltIn("goodput_cli.report.formats.parquet_events", ("events.parquet",), binary=True),
}


def format_names() -> list[str]:
    """Every format that can be asked for, our own first."""
    return [*_BUILT_IN, *(name for name in sorted(_plug_ins()) if name not in _BUILT_IN)]


def is_format(name: str) -> bool:
    """Whether a format can be asked for. Plug-ins are looked for only where it is none of our own."""
    return name in _BUILT_IN or name in _plug_ins()


def format_of(path: str) -> str:
    """The format that a file's ending stands for: `report.json`, or a longer one such as `run.events.parquet` where a
    format claims it. `UsageError` if none does."""
    file = PurePath(path).name.lower()
    by_ending = {ending: name for name, built_in in _BUILT_IN.items() for ending in built_in.endings}
    by_ending = {**{name: name for name in _plug_ins()}, **by_ending}
    matching = [ending for ending in by_ending if file.endswith(f".{ending}") and len(file) > len(ending) + 1]
    if not matching:
        known = ", ".join(f".{ending}" for ending in by_ending)
        raise UsageError(f"{path}: the file's ending does not say which format to write; use one of {known}")
    return by_ending[max(matching, key=len)]


def is_binary(name: str) -> bool:
    """Whether the format is one of ours that gives bytes."""
    return name in _BUILT_IN and _BUILT_IN[name].binary


def load_renderer(name: str) -> Renderer:
    """The function that writes a format. `UsageError` if there is no such format, or its plug-in cannot be loaded."""
    if name in _BUILT_IN:
        renderer: Renderer = import_module(_BUILT_IN[name].module).render
        return renderer
    plug_in = _plug_ins().get(name)
    if plug_in is None:
        raise UsageError(f"there is no format {name!r}; use one of {', '.join(format_names())}")
    try:
        loaded: Renderer = plug_in.load()
    except Exception as error:
        raise UsageError(f"the format {name!r} of {plug_in.value} cannot be loaded: {error}") from error
    return loaded


@cache
def _plug_ins() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # slow to import, and to ask: only if a plug-in may be meant

    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
