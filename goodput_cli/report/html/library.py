"""The JavaScript that makes charts move, to be held by a page: it defines `vegaEmbed`.

Putting it together takes longer than all else of a report. It is the same for every page that a version of vl-convert
makes.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version

import vl_convert

from goodput_cli.report.html import ready_made

_CODE = "window.vegaEmbed = vegaEmbed;"


@cache
def library(vl_version: str) -> str:
    """The script, for a version of Vega-Lite."""
    try:
        name = f"vega-{vl_version}-{version('vl-convert-python')}.js"
    except PackageNotFoundError:  # a frozen program knows no versions
        return _made(vl_version)
    kept = ready_made.read(name)
    if kept is not None:
        return kept.decode()
    made = _made(vl_version)
    ready_made.keep(name, made.encode())
    return made


def _made(vl_version: str) -> str:
    bundle: str = vl_convert.javascript_bundle(_CODE, vl_version=vl_version)
    return bundle
