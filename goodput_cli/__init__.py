"""goodput: where every second of a training job went.

import goodput_cli
analysis = goodput_cli.analyze("run.jsonl", reference_step_time=8)
print(analysis.goodput_percent, analysis.segments)

The functions are those of the commands and take the same options by keyword. What goes wrong is a `GoodputError`.
Formats, sources and renderers of other packages are written against `goodput_cli.plugins`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from goodput_cli.analysis.advice.advise import Advice as Advice
    from goodput_cli.analysis.check import CheckReport as CheckReport
    from goodput_cli.analysis.compare.compare import Comparison as Comparison
    from goodput_cli.analysis.goodput.analysis import Analysis as Analysis
    from goodput_cli.analysis.jobs import JobList as JobList
    from goodput_cli.api.analyze import advise as advise
    from goodput_cli.api.analyze import analyze as analyze
    from goodput_cli.api.check import check as check
    from goodput_cli.api.compare import compare as compare
    from goodput_cli.api.fetch import fetch as fetch
    from goodput_cli.api.watch import Update as Update
    from goodput_cli.api.watch import watch as watch
    from goodput_cli.compat.api import CheckpointReconciliation as CheckpointReconciliation
    from goodput_cli.compat.api import reconcile as reconcile
    from goodput_cli.compat.reconcile import Reconciliation as Reconciliation
    from goodput_cli.diagnostics.diagnostic import Diagnostic as Diagnostic
    from goodput_cli.errors import GoodputError as GoodputError
    from goodput_cli.errors import NotEnoughData as NotEnoughData
    from goodput_cli.errors import ProblemsFound as ProblemsFound
    from goodput_cli.errors import SourceError as SourceError
    from goodput_cli.errors import ThresholdNotMet as ThresholdNotMet
    from goodput_cli.errors import UsageError as UsageError
    from goodput_cli.fleet.report import FleetReport as FleetReport
    from goodput_cli.fleet.run import fleet_report as fleet_report
    from goodput_cli.fleet.run import jobs as jobs
    from goodput_cli.sources.snapshot import Manifest as Manifest

__version__ = "0.2.0"

_PLACES = {
    "analyze": "api.analyze",
    "advise": "api.analyze",
    "compare": "api.compare",
    "jobs": "fleet.run",
    "fleet_report": "fleet.run",
    "check": "api.check",
    "reconcile": "compat.api",
    "fetch": "api.fetch",
    "watch": "api.watch",
    "Analysis": "analysis.goodput.analysis",
    "Advice": "analysis.advice.advise",
    "Comparison": "analysis.compare.compare",
    "JobList": "analysis.jobs",
    "FleetReport": "fleet.report",
    "CheckReport": "analysis.check",
    "Reconciliation": "compat.reconcile",
    "CheckpointReconciliation": "compat.api",
    "Manifest": "sources.snapshot",
    "Update": "api.watch",
    "Diagnostic": "diagnostics.diagnostic",
    "GoodputError": "errors",
    "UsageError": "errors",
    "SourceError": "errors",
    "NotEnoughData": "errors",
    "ThresholdNotMet": "errors",
    "ProblemsFound": "errors",
}
"""The module of each name, imported when it is asked for: `goodput --help` needs none of them."""

__all__ = ["__version__", *_PLACES]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import_module(f"{__name__}.report.base")  # registers the renderers with which results display themselves
    value = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
