"""docs/monitoring.md and docs/dashboards: the metrics and options that they name exist."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from goodput_cli.cli.commands.live import monitor as command
from goodput_cli.monitor.targets.base import parse_target
from tests.monitor.monitors import Samples, monitor, samples
from tests.support.documents import (
    DASHBOARDS,
    MONITORING,
    alert_rules,
    dashboard_queries,
    documented_queries,
    labels_of,
    metrics_of,
)
from tests.support.logs import EPOCH, Recorder

OF_PROMETHEUS = {"job", "instance"}
"""Labels that Prometheus sets itself."""


@pytest.fixture
def served_metrics(folder: Path) -> Samples:
    """Return the metrics of the endpoint for a job with all measures."""
    log = Recorder().start(0).slices(1, 2, 4, 4).steps(0, 9, 20, 10)
    log.add(goodput_event="checkpoint_saved", goodput_time=EPOCH + 95, step=7)
    log.start(200).steps(8, 20, 220, 10).end(360)
    Path("run.jsonl").write_text("".join(f"{line}\n" for line in log.lines), encoding="utf-8")
    twice = ["--forever", "--interval", "0.1", "--updates", "2"]  # The second poll reports the first.
    assert (
        monitor("run.jsonl", "--publish", "prom:m.prom", "--window", "1m", "--fail-if", "goodput<1", "-q", *twice) == 0
    )
    return samples(Path("m.prom").read_text(encoding="utf-8"))


def test_every_metric_and_label_in_use_is_served(served_metrics: Samples) -> None:
    names = {name for name, _ in served_metrics}
    labels = {label for _, pairs in served_metrics for label, _ in pairs} | OF_PROMETHEUS
    queries = [*dashboard_queries(), *documented_queries(), *(rule["expr"] for rule in alert_rules())]
    assert len(queries) > 20
    for query in queries:
        assert metrics_of(query) <= names, query
        assert labels_of(query) <= labels, query


def test_every_metric_of_the_monitor_is_described(served_metrics: Samples) -> None:
    text = MONITORING.read_text(encoding="utf-8") + (DASHBOARDS.parent / "ci.md").read_text(encoding="utf-8")
    assert {name for name, _ in served_metrics if f"`{name}`" not in text} == set()


def test_alerts_name_the_fault_and_each_has_a_test() -> None:
    tested = (DASHBOARDS / "alerts.test.yaml").read_text(encoding="utf-8")
    for rule in alert_rules():
        assert rule["annotations"]["summary"]
        assert f"alertname: {rule['alert']}\n        exp_alerts" in tested, rule["alert"]


def test_sidecar_command_is_valid() -> None:
    job = yaml.safe_load((DASHBOARDS / "kubernetes.yaml").read_text(encoding="utf-8"))
    pod = job["spec"]["template"]["spec"]
    (sidecar,) = pod["initContainers"]
    assert sidecar["restartPolicy"] == "Always"
    parsed = _parse(sidecar["args"])
    assert [target.scheme for target in parsed["targets"]] == ["http"]
    (port,) = sidecar["ports"]
    assert parsed["targets"][0].place.endswith(f":{port['containerPort']}")
    assert sidecar["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert pod["terminationGracePeriodSeconds"] > 2 * parsed["grace"]
    docker = (DASHBOARDS / "Dockerfile").read_text(encoding="utf-8").splitlines()
    assert docker[-1] == 'ENTRYPOINT ["goodput", "monitor"]'
    assert f"USER {sidecar['securityContext']['runAsUser']}:65532" in docker


def test_every_command_line_of_the_document_is_valid() -> None:
    text = MONITORING.read_text(encoding="utf-8").replace("\\\n", " ").replace("$SLACK_URL", "https://example.com/hook")
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith("goodput monitor ")]
    assert len(lines) > 3
    for line in lines:
        assert _parse(shlex.split(line.partition(" > ")[0].removesuffix("&"))[2:])["targets"], line


def _parse(arguments: list[str]) -> dict[str, Any]:
    with click.Context(command, info_name="monitor") as context:
        command.parse_args(context, ["--no-config", *arguments])
        return dict(context.params)


def test_every_kind_of_target_is_described() -> None:
    text = MONITORING.read_text(encoding="utf-8")
    for target in ("prom:FILE", "json:FILE", "http://HOST:PORT", "tensorboard:DIR", "gcm:PROJECT"):
        assert f"`{target}`" in text
        assert parse_target(target.replace("HOST:PORT", "h:1")).text
