"""JSON, `schema_version` 1: docs/schema.json describes every key.

Every key is always there; what does not apply is null. Text is written in ASCII with JSON escapes, so that nothing in
a log can act on a terminal that shows it. A window or a disruption takes one line: there may be thousands, which are
quick to write so, and `grep` is of use.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from goodput_cli.analysis.compare.saved_analysis import SCHEMA_VERSION
from goodput_cli.analysis.disruptions.as_json import disruption_dicts, reliability_dict
from goodput_cli.analysis.results import (
    Analysis,
    CategoryTime,
    Elastic,
    Job,
    Reference,
    Saves,
    StepStatistics,
    Threshold,
)
from goodput_cli.analysis.rolling.sheet import rolling_dicts
from goodput_cli.analysis.sheet import Lazy
from goodput_cli.diagnostics.diagnostic import diagnostic_dict
from goodput_cli.report.base import Page
from goodput_cli.vocabulary.json_text import one_line
from goodput_cli.vocabulary.text import finite, iso, well_formed

_INDENTED = json.JSONEncoder(indent=2, allow_nan=False)


def render(analysis: Analysis, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """The analysis as one JSON object. Lists that may be long have one item a line."""
    return "".join(_parts(analysis))


def _parts(analysis: Analysis) -> Iterator[str]:
    before = "{\n"
    for key, value in as_dict(analysis).items():
        yield f"{before}  {json.dumps(key)}: "
        yield from _list(value) if isinstance(value, Lazy) and value else (_indented(value),)
        before = ",\n"
    yield "\n}\n"


def _indented(value: Any) -> str:
    text = _INDENTED.encode([] if isinstance(value, Lazy) else value)
    return text.replace("\n", "\n  ")  # no text holds a line end: JSON escapes it


def _list(items: Iterable[Any]) -> Iterator[str]:
    before = "[\n    "
    for item in items:
        yield before + one_line(item)
        before = ",\n    "
    yield "\n  ]"


def as_dict(analysis: Analysis) -> dict[str, Any]:
    """The JSON object as Python values, keys in the order in which they are written; long lists are `Lazy`."""
    window, at_risk = analysis.window, analysis.at_risk
    return {
        "schema_version": SCHEMA_VERSION,
        "job": _job(analysis.job),
        "window": {
            "start": iso(window.start_ns),
            "end": iso(window.end_ns),
            "seconds": window.ns / 1e9,
            "ns": window.ns,
            "excluded_seconds": window.excluded_ns / 1e9,
            "excluded_ns": window.excluded_ns,
        },
        "goodput": _amount(analysis.goodput) | {"percent": finite(analysis.goodput.percent)},
        "badput": [_badput(row) for row in analysis.badput],
        "overlapped": [{"category": row.category} | _amount(row) for row in analysis.overlapped],
        "at_risk": {
            "steps": at_risk and _whole(at_risk.steps),
            "seconds": at_risk and at_risk.ns / 1e9,
        },
        "reference": _reference(analysis.reference),
        "method": asdict(analysis.method),
        "steps": _steps(analysis.steps),
        "saves": _saves(analysis.saves),
        "elastic": _elastic(analysis.elastic),
        "reliability": reliability_dict(analysis.reliability),
        "rolling": [] if analysis.rolling is None else rolling_dicts(analysis.rolling),
        "disruptions": Lazy(len(analysis.disruptions), lambda: disruption_dicts(analysis.disruptions)),
        "thresholds": [_threshold(threshold) for threshold in analysis.thresholds],
        "not_recorded": list(analysis.not_recorded),
        "diagnostics": [diagnostic_dict(found) for found in analysis.diagnostics],
    }


def _job(job: Job) -> dict[str, Any]:
    return {
        "name": well_formed(job.name),
        "start": iso(job.start_ns),
        "end": iso(job.end_ns),
        "ending": job.ending,
        "attempts": job.attempts,
        "runs": job.runs,
        "disruptions": job.disruptions,
        "first_step": job.first_step,
        "last_step": job.last_step,
        "kept_steps": _whole(job.kept_steps),
        "formats": list(job.formats),
    }


def _amount(row: CategoryTime) -> dict[str, Any]:
    return {"seconds": row.seconds, "ns": row.ns}


def _badput(row: CategoryTime) -> dict[str, Any]:
    label = None if row.label is None else well_formed(row.label)
    return {"category": row.category, "label": label} | _amount(row) | {"percent": finite(row.percent)}


def _reference(reference: Reference) -> dict[str, Any]:
    effective = reference.effective_computation_ns
    return {
        "step_time_seconds": finite(reference.step_time_seconds),
        "origin": reference.origin,
        "effective_computation_seconds": None if effective is None else effective / 1e9,
        "min_loaded_step": reference.min_loaded_step,
        "max_saved_step": reference.max_saved_step,
        "step_difference": reference.step_difference,
        "total_events": reference.total_events,
        "job_started_count": reference.job_started_count,
        "checkpoints_loaded": reference.checkpoints_loaded,
        "checkpoints_saved": reference.checkpoints_saved,
    }


def _steps(steps: StepStatistics) -> dict[str, Any]:
    return {
        "count": steps.count,
        "ideal_seconds": finite(steps.ideal_seconds),
        "mean_seconds": finite(steps.mean_seconds),
        "median_seconds": finite(steps.median_seconds),
        "p90_seconds": finite(steps.p90_seconds),
        "p99_seconds": finite(steps.p99_seconds),
    }


def _saves(saves: Saves | None) -> dict[str, Any]:
    return {
        "count": None if saves is None else saves.count,
        "interval_seconds": None if saves is None else finite(saves.interval_seconds),
    }


def _elastic(elastic: Elastic) -> dict[str, Any]:
    unknown = elastic.unknown_ns
    return {
        "stepping_slice_efficiency": finite(elastic.stepping),
        "available_slice_efficiency": finite(elastic.available),
        "unknown_seconds": None if unknown is None else unknown / 1e9,
        "goodput_x_stepping_percent": finite(elastic.goodput_percent),
    }


def _threshold(threshold: Threshold) -> dict[str, Any]:
    return {
        "expression": well_formed(threshold.expression),
        "met": threshold.met,
        "value": finite(threshold.value),
        "limit": threshold.limit,
        "unit": threshold.unit,
        "fails": threshold.fails,
        "verdict": threshold.verdict,
    }


def _whole(value: float) -> float | int | None:
    """An int where the number is whole: counts of steps are, but for shares."""
    if finite(value) is None:
        return None
    return int(value) if value == int(value) else float(value)
