"""`goodput check --suggest`, `--explain` and the matches of a mapping: what helps to write one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from goodput_cli.errors import UsageError

if TYPE_CHECKING:
    from goodput_cli.analysis.sheet import Sheet

MOST_LINES = 1_000_000
"""So many lines of a log are looked at."""


def suggest_mapping(source: str) -> str:
    """A mapping of a text that no format reads, drafted from its lines: TOML to edit. Raises SourceError."""
    from goodput_cli.events.mappings.suggest import suggest

    stem = source.rpartition("/")[2].partition(".")[0]
    return suggest(_lines(source), "my-log" if source == "-" else stem)


def explain_line(place: str, mapping: Sequence[str] = ()) -> str:
    """Everything about one line of text, `FILE:LINE`: what was taken off, which rule read it, what it gives."""
    from goodput_cli.events.mappings.explained import explain
    from goodput_cli.events.mappings.registry import load_mappings

    file, _, number = place.rpartition(":")
    if not file or not number.isdecimal() or int(number) < 1:
        raise UsageError(f"--explain {place}: is written FILE:LINE, such as train.log:120")
    mappings = load_mappings(mapping)
    line = next((line for at, line in enumerate(_lines(file), 1) if at == int(number)), None)
    if line is None:
        raise UsageError(f"--explain {place}: {file} has no line {number}")
    return "".join(f"{sentence}\n" for sentence in explain(line, mappings))


def mapping_sheets(mapping: Sequence[str], sources: Sequence[str]) -> list[Sheet]:
    """What each rule of each mapping read of the sources that are files of text."""
    from goodput_cli.analysis.check.mapped import mapping_sheet, unread_sheet
    from goodput_cli.events.mappings.explained import matches
    from goodput_cli.events.mappings.registry import load_mappings

    sheets = []
    for made in load_mappings(mapping).named:
        rows, rest = matches(made, (line for source in sources for line in _lines(source)))
        sheets += [mapping_sheet(made.name, rows), *([unread_sheet(rest)] if rest else [])]
    return sheets


def _lines(source: str) -> Iterator[str]:
    """The lines of a source, as text; at most `MOST_LINES`."""
    from goodput_cli.sources.base import RawBatch, ReadContext, source_for

    context = ReadContext(lambda _: None, is_log=lambda _: True)
    count = 0
    for batch in source_for(source).read(source, context):
        if not isinstance(batch, RawBatch):
            continue
        for line in batch.data.decode(errors="replace").split("\n"):
            count += 1
            if count > MOST_LINES:
                return
            yield line
