"""A package as a third party writes it against `goodput_cli.plugins`: a log format, a source and two renderers.

It imports nothing else of goodput. test_third_party.py installs it next to the command. It stays unchanged when the
internals of goodput change.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from goodput_cli.plugins import (
    Analysis,
    Batch,
    Diagnostic,
    Edge,
    Format,
    GoodputError,
    Kind,
    Output,
    OutputFormat,
    Page,
    RawBatch,
    ReadContext,
    RecordBatch,
    Records,
    Renderer,
    Sheet,
    SheetRenderer,
    Source,
    SourceError,
    UsageError,
    safe,
    safe_lines,
)

_KINDS = {"boot": Kind.START, "step": Kind.STEP, "save": Kind.SAVE, "eval": Kind.CUSTOM, "bye": Kind.JOB_FINISHED}
_EDGES = {"save": Edge.INTERVAL, "eval": Edge.BEGIN}


class AcmeLog:
    """Lines such as {"acme_job": "x", "acme": "save", "began": 1767225600, "ended": 1767225604, "n": 7}."""

    name = "acme"
    keys = frozenset({"acme_job", "acme", "began", "ended", "n", "label"})
    job_key = "acme_job"

    def recognises(self, record: Mapping[str, Any]) -> bool:
        return "acme" in record

    def translate(self, records: Records, output: Output) -> Any:
        records = records.parsed()
        words = records.column("acme")
        known = np.array([word in _KINDS for word in words])
        output.report("unknown_event", "a word that Acme's log has not", records, ~known)
        began, good = output.times(records, "began")
        ended, _ = output.times(records, "ended") if "ended" in records.keys else (began, good)
        step, whole = output.whole(records, "n") if "n" in records.keys else (None, records.every())
        label, named = output.names(records, "label") if "label" in records.keys else (None, records.every())
        good = good & whole & named & known
        for word in _KINDS:
            chosen = good & np.array([one == word for one in words])
            edge = _EDGES.get(word, Edge.POINT)
            output.rows.add(
                records.origin, chosen, _KINDS[word], edge, began, end=ended if edge is Edge.INTERVAL else None,
                step=step, label=label,
            )  # fmt: skip
            if edge is Edge.BEGIN:
                output.rows.add(records.origin, chosen, _KINDS[word], Edge.END, ended, label=label)
        return records.every()


class AcmeSource:
    """acme://PATH: the lines of a file, after a line that Acme's server adds; acme-api://PATH: its records."""

    def read(self, uri: str, context: ReadContext) -> Iterator[Batch]:
        scheme, _, path = uri.partition("://")
        if not path:
            raise UsageError(f"{uri}: name what to read, as acme://PATH")
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError as error:
            raise SourceError(f"{safe(uri)}: {error.strerror}", tip="look whether it is there") from error
        context.report(Diagnostic("acme_greeting", "info", "Acme's server says good day", 1, (uri,)))
        context.expect(len(data))
        return self._batches(scheme, uri, data, context)

    def _batches(self, scheme: str, uri: str, data: bytes, context: ReadContext) -> Iterator[Batch]:
        lines = data.splitlines(keepends=True)
        if scheme == "acme-api":
            yield RecordBatch(uri, [{"insertId": f"acme-{at}", "jsonPayload": json.loads(one)} for at, one in
                                    enumerate(lines)])  # fmt: skip
        else:
            for first in range(0, len(lines), 7):
                yield RawBatch(source=uri, first_line=first + 1, data=b"".join(lines[first : first + 7]))
        context.took(data)


def short(analysis: Analysis) -> str:
    """What a function that looks at no page writes."""
    return f"{safe(analysis.job.name)}: {analysis.goodput_percent:.2f} %\n"


def report(analysis: Analysis, page: Page) -> bytes:
    """Every second of an analysis."""
    if analysis.rolling is not None:
        raise GoodputError("Acme's report has no windows")
    rows = [f"{one.category} {one.ns}" for one in (analysis.goodput, *analysis.badput)]
    told = [f"{one.code} {one.severity} {one.count}" for one in analysis.diagnostics]
    head = f"{analysis.job.name}\nwidth {page.width} colour {page.colour} counted {analysis.window.counted_ns}"
    return safe_lines("\n".join([head, *rows, *told])).encode() + b"\n"


def table(sheet: Sheet, page: Page) -> bytes:
    """Any other answer, as bytes."""
    assert page.width > 0
    lines = [sheet.title, "|".join(["columns", *(f"{one.head()}:{one.kind}" for one in sheet.columns)])]
    lines += ["|".join(["row", *map(str, row)]) for row in sheet.rows]
    lines += [*sheet.summary, *sheet.notes, *(below.title for below in sheet.sections)]
    return safe_lines("\n".join(lines)).encode() + b"\n"


acme = OutputFormat(analysis=report, sheet=table, endings=("acme", "acme.dat"), binary=True)
_format: Format = AcmeLog()
_source: Source = AcmeSource()
_renderer: Renderer = report
_sheet_renderer: SheetRenderer = table
