"""The queries of docs/dashboards and docs/monitoring.md."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent.parent
DASHBOARDS = ROOT / "docs" / "dashboards"
MONITORING = ROOT / "docs" / "monitoring.md"


def dashboard_queries() -> list[str]:
    """Return the queries of the panels of the Grafana dashboard, for all jobs."""
    dashboard = json.loads((DASHBOARDS / "grafana.json").read_text(encoding="utf-8"))
    targets = [target for panel in dashboard["panels"] for target in panel["targets"]]
    return [target["expr"].replace("$job", ".+") for target in targets]


def alert_rules() -> list[dict[str, Any]]:
    """The alert rules."""
    (group,) = yaml.safe_load((DASHBOARDS / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def documented_queries() -> list[str]:
    """Return the queries of the blocks ```promql in the document."""
    blocks = re.findall(r"^```promql\n(.*?)^```", MONITORING.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines() if line and not line.startswith("#")]


def metrics_of(query: str) -> set[str]:
    """The metrics of ours that a query names."""
    return set(re.findall(r"\bgoodput_\w+", re.sub(r'"[^"]*"', "", query)))


def labels_of(query: str) -> set[str]:
    """The labels that its selectors and matchings name."""
    inside = re.findall(r"\{([^}]*)\}", query)
    named = {name for part in inside for name in re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*"', part)}
    grouped = re.findall(r"\b(?:by|on|ignoring|without|group_left)\s*\(([^)]*)\)", query)
    return named | {name.strip() for part in grouped for name in part.split(",") if name.strip()}
