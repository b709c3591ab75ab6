"""The dashboard, the alerts and the document in a real Prometheus, which scrapes a monitor (make test-prometheus)."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from goodput_cli.cli.main import run
from tests.fleet.test_scheduler_alone import table
from tests.monitor.monitors import Job, samples, started
from tests.support.commands import until
from tests.support.documents import DASHBOARDS, alert_rules, dashboard_queries, documented_queries
from tests.support.fleets import put, text_of, training

PROGRAMS = ("prometheus", "promtool")


@pytest.fixture(scope="module", autouse=True)
def programs() -> None:
    """Check that the programs are installed. Debian has them: apt-get install prometheus."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    assert not missing, f"{missing} are needed here: apt-get install prometheus"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class Prometheus:
    """A running Prometheus."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1"

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the series of the answer."""
        asked = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"{self._url}/query?{asked}", timeout=20) as answer:
            content = json.loads(answer.read())
        assert content["status"] == "success"
        return list(content["data"]["result"])

    def rules(self) -> list[dict[str, Any]]:
        """Return the rules with their results."""
        with urllib.request.urlopen(f"{self._url}/rules", timeout=20) as answer:
            groups = json.loads(answer.read())["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def answers(self, expression: str) -> bool:
        """Return True if a series exists; False also before the server listens."""
        try:
            return bool(self.query(expression))
        except OSError:
            return False


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("prometheus")


@pytest.fixture(scope="module")
def prometheus(folder: Path) -> Iterator[Prometheus]:
    """Start a server that scrapes a monitor of two running jobs, as docs/dashboards describes, but every second."""
    other = Job(folder / "other.jsonl", "other")
    other.start()
    other.steps(0, 20)
    job = Job(folder / "run.jsonl")
    job.start()
    job.add(active_slices=2, total_slices=4, available_slices=4, elastic_slice_counts_timestamp=1.7e9)
    job.steps(0, 20)
    ours, port = free_port(), free_port()
    config = yaml.safe_load((DASHBOARDS / "prometheus.yaml").read_text(encoding="utf-8"))
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["scrape_configs"][0]["static_configs"][0]["targets"] = [f"127.0.0.1:{ours}"]
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    shutil.copy(DASHBOARDS / "alerts.yaml", folder)
    targets = ["--publish", f"http://127.0.0.1:{ours}", "--publish", "prom:m.prom"]
    more = ["--window", "1h", "--window", "1d", "--interval", "0.5", "--fail-under", "99"]
    command = [
        *("prometheus", "--config.file=prometheus.yaml", "--storage.tsdb.path=data", "--log.level=error"),
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with started("run.jsonl", "other.jsonl", *targets, *more, cwd=folder) as monitor:
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            found = Prometheus(port)
            try:
                job.add(goodput_event="checkpoint_saved", goodput_time=_time(), step=10)
                job.steps(21, 30)
                until(lambda: found.answers('goodput_last_step{job="goodput", job_name="job"} == 30'))
                until(lambda: found.answers("count_over_time(goodput_last_step[5m]) > 2"))
                yield found
            finally:
                process.terminate()
        monitor.terminate()
        monitor.communicate()


def _time() -> float:
    import time

    return time.time()


def test_every_documented_query_has_an_answer(prometheus: Prometheus) -> None:
    quiet = {"topk"}  # nothing is lost yet
    for query in [*dashboard_queries(), *documented_queries()]:
        answer = prometheus.query(query)
        assert answer or any(name in query for name in quiet), query


def test_every_series_is_stored_as_served(prometheus: Prometheus, folder: Path) -> None:
    kept = prometheus.query('{job="goodput", __name__=~"goodput_.+"}')
    served = {name for name, _ in samples((folder / "m.prom").read_text(encoding="utf-8"))}
    assert {series["metric"]["__name__"] for series in kept} >= served
    ratios = [one["metric"] for one in prometheus.query("goodput_ratio")]
    assert sorted(one["job_name"] for one in ratios) == ["job", "other"]
    assert {one["job"] for one in ratios} == {"goodput"}
    parts = prometheus.query("sum(goodput_category_seconds) / sum(goodput_window_seconds)")
    assert float(parts[0]["value"][1]) == pytest.approx(1)


def test_rules_are_evaluated_without_an_error(prometheus: Prometheus) -> None:
    until(lambda: all(rule["health"] != "unknown" for rule in prometheus.rules()))
    rules = prometheus.rules()
    assert {rule["health"] for rule in rules} == {"ok"}
    assert {rule["name"] for rule in rules} == {rule["alert"] for rule in alert_rules()}
    gate = next(rule for rule in rules if rule["name"] == "GoodputGate")
    assert gate["state"] == "pending"  # The jobs have just started, so they are below 99 %.
    assert {one["labels"]["job_name"] for one in gate["alerts"]} == {"job", "other"}


@pytest.mark.parametrize(
    "arguments",
    [["check", "rules", "alerts.yaml"], ["test", "rules", "alerts.test.yaml"], ["check", "config", "prometheus.yaml"]],
    ids=" ".join,
)
def test_promtool_accepts_the_rules(arguments: list[str]) -> None:
    done = subprocess.run(["promtool", *arguments], cwd=DASHBOARDS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_finds_no_error_in_the_metrics(prometheus: Prometheus, folder: Path) -> None:
    text = (folder / "m.prom").read_bytes()
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")


WISHES = ('use base unit "seconds" instead of "hours"', 'non-summary metrics should not have "quantile" label')
"""Accepted complaints of the linter: people pay for hours, and percentiles do not belong to a summary."""


def test_promtool_reads_the_metrics_of_a_fleet(tmp_path: Path) -> None:
    """It parses every line (exit code 1 would be an error in the text) and reports no other problem."""
    held = table(path=str(tmp_path / "sacct.txt"))
    for number in range(3):
        put(tmp_path / f"logs/{number}.jsonl", training(f"j{number}", 12, 6, at=number * 86_400))
    (tmp_path / "labels.csv").write_text(text_of("job,team,accelerators,price", 'j[01],"a ""team""\\",8,2', "*,b,8,2"))
    sources = [str(tmp_path / "logs"), held, "--labels", str(tmp_path / "labels.csv"), "--by", "team"]
    asked = ["fleet", *sources, "--timezone", "UTC", "--workers", "1"]
    assert run([*asked, "-q", "-o", str(tmp_path / "fleet.prom")]) == 0
    text = (tmp_path / "fleet.prom").read_bytes()
    wanted = {b"goodput_fleet_cost{", b"goodput_fleet_cost_by_category{", b"goodput_fleet_held_hours{"}
    assert wanted <= set(re.findall(rb"goodput_fleet_[a-z_]+{", text))
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
    assert done.returncode in (0, 3)
    assert [one for one in done.stderr.decode().splitlines() if not one.endswith(WISHES)] == []
