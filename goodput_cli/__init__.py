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
    from goodput_cli.analysis.advice.results import Advice
    from goodput_cli.analysis.check.check import CheckReport
    from goodput_cli.analysis.compare.compare import Comparison
    from goodput_cli.analysis.jobs.summarise import JobList
    from goodput_cli.analysis.reconcile.checkpoints import CheckpointReconciliation
    from goodput_cli.analysis.reconcile.reconcile import Reconciliation
    from goodput_cli.analysis.results import Analysis
    from goodput_cli.api.advise import advise
    from goodput_cli.api.analyze import analyze
    from goodput_cli.api.check import check
    from goodput_cli.api.compare import compare
    from goodput_cli.api.fetch import fetch
    from goodput_cli.api.reconcile import reconcile
    from goodput_cli.api.watch import Update, watch
    from goodput_cli.diagnostics.diagnostic import Diagnostic
    from goodput_cli.errors import (
        GoodputError,
        NotEnoughData,
        ProblemsFound,
        SourceError,
        ThresholdNotMet,
        UsageError,
    )
    from goodput_cli.fleet.jobs import jobs
    from goodput_cli.fleet.report.report import FleetReport
    from goodput_cli.fleet.run import fleet_report
    from goodput_cli.sources.snapshot import Manifest

__version__ = "0.1.0"

_PLACES = {
    "analyze": "api.analyze",
    "advise": "api.advise",
    "compare": "api.compare",
    "jobs": "fleet.jobs",
    "fleet_report": "fleet.run",
    "check": "api.check",
    "reconcile": "api.reconcile",
    "fetch": "api.fetch",
    "watch": "api.watch",
    "Analysis": "analysis.results",
    "Advice": "analysis.advice.results",
    "Comparison": "analysis.compare.compare",
    "JobList": "analysis.jobs.summarise",
    "FleetReport": "fleet.report.report",
    "CheckReport": "analysis.check.check",
    "Reconciliation": "analysis.reconcile.reconcile",
    "CheckpointReconciliation": "analysis.reconcile.checkpoints",
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

__all__ = [
    "__version__",
    "analyze",
    "advise",
    "compare",
    "jobs",
    "fleet_report",
    "check",
    "reconcile",
    "fetch",
    "watch",
    "Analysis",
    "Advice",
    "Comparison",
    "JobList",
    "FleetReport",
    "CheckReport",
    "Reconciliation",
    "CheckpointReconciliation",
    "Manifest",
    "Update",
    "Diagnostic",
    "GoodputError",
    "UsageError",
    "SourceError",
    "NotEnoughData",
    "ThresholdNotMet",
    "ProblemsFound",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
