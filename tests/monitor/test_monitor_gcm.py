"""Cloud Monitoring: the series of the existing dashboards, and a server that rejects data."""

from __future__ import annotations

import json
import re
import time
from collections import Counter, defaultdict
from pathlib import Path

import ml_goodput_measurement
import numpy as np
import pytest

from goodput_cli.api.options import Plan
from goodput_cli.api.watch import WatchedLog
from goodput_cli.monitor.run import Monitor, Stop
from goodput_cli.monitor.snapshot import Snapshot
from goodput_cli.monitor.targets.base import Health, MonitorContext, TargetFailedError, parse_target
from goodput_cli.monitor.targets.cloud_monitoring import CloudMonitoring, accelerator_of, step_time_deviation
from tests.monitor.monitoring_server import Server
from tests.monitor.monitors import Job, ended, monitor, monitor_job, started
from tests.support.commands import until
from tests.support.logs import EPOCH, Recorder

NS = 10**9
MACHINE = {"location": "us-central1-a", "accelerator": "TPU-v5p"}
HERE = ["--gcm-location", "us-central1-a"]


class Time:
    """A fast clock for tests, an hour back so that no time is in the future."""

    def __init__(self) -> None:
        self.ns = time.time_ns() - 3600 * NS

    def __call__(self) -> int:
        return self.ns

    def sleep(self, seconds: float) -> None:
        self.ns += round(seconds * NS)


def target(time: Time, text: str = "gcm:my-project", **labels: str) -> CloudMonitoring:
    place = MonitorContext(Health(60), 60, labels={**MACHINE, **labels})
    return CloudMonitoring(parse_target(text), place, time, time.sleep)


def snapshot(path: Path, windows: tuple[int, ...] = (), as_of: float | None = None) -> Snapshot:
    """Return the snapshot of a log, as of its last event or of some seconds after its beginning."""
    options = {} if as_of is None else {"as_of": round((EPOCH + as_of) * NS)}
    watched = WatchedLog(str(path), **options)  # type: ignore[arg-type]
    watched.look()
    monitor = Monitor(
        lambda: watched, (), Plan(windows=windows, settle=1e9), health=Health(60), stop=Stop(),
        tell=lambda _: None, say=print,
    )  # fmt: skip
    (analysis,) = monitor.account()
    watched.close()
    return Snapshot(analysis, time.time_ns())


@pytest.fixture
def elastic(folder: Path) -> Path:
    """Write a log with a custom event in two spellings, slices and a restart."""
    log = Recorder().start(0).slices(1, 2, 4, 4).steps(0, 9, 20, 10).start(200).steps(8, 20, 220, 10)
    for begin, name in ((331, "eval"), (343, "Eval")):
        for edge, at in (("start", begin), ("end", begin + 5)):
            log.add(**{"custom_badput_event_type": name, f"custom_badput_event_{edge}_time": EPOCH + at})
    log.steps(21, 21, 350, 10).end(360)
    path = folder / "run.jsonl"
    path.write_text("".join(f"{line}\n" for line in log.lines), encoding="utf-8")
    return path


def test_hour_of_points_is_accepted_and_adds_up(server: Server, elastic: Path) -> None:
    clock = Time()
    updates = [snapshot(elastic, (60 * NS,), as_of) for as_of in (100, 210, 300, 360)]
    for number in range(240):
        if number % 40 == 0:
            monitor = target(clock)  # the monitor was restarted
        monitor.publish((updates[number * 4 // 240],), final=False)
        clock.sleep(17 if number % 3 else 4)  # every third comes too soon, and is left out
    points = server.points()
    assert server.refusals() == []
    assert len(points) > 3000
    sums: dict[float, float] = defaultdict(float)
    totals = {}
    for point in points:
        name = point["metric"].removeprefix("compute.googleapis.com/workload/")
        if name in ("goodput_time", "badput_time"):
            sums[point["end"]] += point["value"]
        elif name == "total_elapsed_time":
            totals[point["end"]] = point["value"]
    assert len(totals) == 160
    assert sums == pytest.approx(totals, abs=1e-6)


def test_job_has_the_expected_series(server: Server, elastic: Path) -> None:
    target(Time()).publish((snapshot(elastic, (86_400 * NS,)),), final=True)
    assert server.refusals() == []
    points = server.points()
    counts = Counter(point["metric"].rpartition("/")[2] for point in points)
    assert {name for name, count in counts.items() if count == 1} == {
        *("goodput_time", "disruptions", "max_productive_steps", "total_elapsed_time", "step_time_deviation"),
        *("performance", "interval_goodput", "available_slice_efficiency"),
    }
    assert counts["stepping_slice_efficiency"] == 2
    by_source = {point["labels"].get("badput_source"): point for point in points if "badput_time" in point["metric"]}
    assert by_source["CUSTOM_BADPUT_EVENTS.EVAL"]["value"] == 10  # both spellings
    assert by_source["STEP_STALL"]["value"] == 0  # recorded, but without time
    assert "DATA_LOADING_ASYNC" not in by_source
    (disruptions,) = [point for point in points if point["metric"].endswith("disruptions")]
    assert disruptions["labels"] == {"accelerator_type": "TPU-v5p", "window_type": "cumulative"}
    assert disruptions["resource"] == {
        "type": "compute.googleapis.com/Workload",
        "labels": {"location": "us-central1-a", "workload_id": "job", "replica_id": "0"},
    }
    (window,) = [point for point in points if point["metric"].endswith("interval_goodput")]
    assert window["labels"]["rolling_window_size"] == "86400"


def test_every_query_of_the_existing_dashboard_finds_its_series(server: Server, elastic: Path) -> None:
    folder = Path(ml_goodput_measurement.__file__).parent
    dashboard = (folder / "dashboards" / "goodput_dashboard.json").read_text(encoding="utf-8")
    asked = set(re.findall(r"compute.googleapis.com/workload/(\w+)", dashboard))
    asked |= set(re.findall(r"compute_googleapis_com:workload_(\w+)", dashboard))
    sizes = set(re.findall(r"rolling_window_size == (\d+)", dashboard))
    days = tuple(int(size) * NS for size in sizes)
    target(Time(), cluster="c").publish((snapshot(elastic, days),), final=True)
    points = server.points()
    assert asked <= {point["metric"].rpartition("/")[2] for point in points}
    assert {point["labels"].get("rolling_window_size", "0") for point in points} - {"0"} == sizes
    assert json.loads(dashboard)
    assert {point["labels"].get("cluster_name") for point in points if point["labels"]} == {"c"}


def test_parts_can_be_left_out_and_other_prefixes_are_taken(server: Server, elastic: Path) -> None:
    update = snapshot(elastic)
    target(Time(), "gcm:p?totals=no&slices=no").publish((update,), final=True)
    assert [point["metric"].rpartition("/")[2] for point in server.points()] == ["step_time_deviation"]
    server.forget()
    target(Time(), "gcm:q?prefix=custom.googleapis.com/goodput&step_deviation=no").publish((update,), final=True)
    assert server.refusals() == []
    assert {point["resource"]["type"] for point in server.points()} == {"generic_task"}


def test_each_job_is_a_workload_with_its_own_clock(server: Server, elastic: Path) -> None:
    first = snapshot(elastic)
    renamed = Path("other.jsonl")
    renamed.write_text(elastic.read_text(encoding="utf-8").replace('"job"', '"other"'), encoding="utf-8")
    second, clock = snapshot(renamed), Time()
    one = target(clock)
    one.publish((first,), False)
    clock.sleep(5)
    one.publish((first, second), False)  # too soon for the first one alone
    clock.sleep(60)
    target(clock).publish((first, second), True)  # the monitor was restarted
    ends: dict[str, set[float]] = defaultdict(set)
    for point in server.points():
        ends[point["resource"]["labels"]["workload_id"]].add(point["end"])
    assert {name: len(found) for name, found in ends.items()} == {"job": 2, "other": 2}
    assert server.refusals() == []


def test_only_newest_update_is_sent_after_an_outage(server: Server, elastic: Path) -> None:
    clock, update = Time(), snapshot(elastic)
    monitor = target(clock)
    server.fault("503", times=60)
    for _ in range(60):
        with pytest.raises(TargetFailedError, match="the server answers 503: out of order"):
            monitor.publish((update,), False)
        clock.sleep(10)
    monitor.publish((update,), False)
    points = server.points()
    assert len({point["end"] for point in points}) == 1
    assert server.refusals() == []


def test_clock_set_back_does_not_stop_sending(server: Server, elastic: Path) -> None:
    clock, update = Time(), snapshot(elastic)
    monitor = target(clock)
    for hours in (0, -1, 0):
        clock.ns += hours * 3600 * NS
        monitor.publish((update,), False)
        clock.sleep(60)
    assert server.refusals() == []
    assert len({point["end"] for point in server.points()}) == 3


def test_rejected_series_is_reported_only(server: Server, elastic: Path) -> None:
    assert monitor(elastic, "--publish", "gcm:p", "--publish", "prom:m.prom", *HERE, "--grace", "60") == 0
    assert len({point["end"] for point in server.points()}) == 1
    server.fault("403")
    assert monitor(elastic, "--publish", "gcm:p2", "--publish", "prom:m2.prom", *HERE, "--grace", "1") == 1
    until(Path("m2.prom").exists)


def test_hanging_server_delays_no_other_target(server: Server, folder: Path) -> None:
    job = Job(folder / "run.jsonl")
    job.start()
    job.steps(0, 3)
    server.fault("hang")
    targets = ["--publish", "gcm:p", "--publish", "json:m.json", *HERE]

    def updates() -> int:
        file = folder / "m.json"
        return file.read_bytes().count(b"\n") if file.exists() else 0

    def play() -> None:
        until(lambda: server.requests() == 1)
        before = updates()
        until(lambda: updates() > before)
        job.end()

    assert monitor_job(play, "run.jsonl", *targets, "--interval", "0.1", "--settle", "0.1", "--grace", "0.2") == 1
    assert server.requests() == 1


def test_project_zone_and_accelerator_come_from_the_machine(server: Server, folder: Path) -> None:
    ended(folder / "run.jsonl")
    host = server.url.removeprefix("http://")
    place = {"GCE_METADATA_HOST": host, "GCE_METADATA_IP": host, "NO_PROXY": "*", "CLOUDSDK_CONFIG": str(folder)}
    with started("run.jsonl", "--publish", "gcm:", cwd=folder, **place) as process:
        _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert server.projects() == ["meta-project"]
    assert server.refusals() == []
    point = server.points()[0]
    assert point["resource"]["labels"]["location"] == "europe-west4-a"
    assert point["labels"]["accelerator_type"] == "TPU-v5p"


def test_missing_zone_error_names_the_option(server: Server, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert monitor(ended(folder / "run.jsonl"), "--publish", "gcm:p", "--grace", "2") == 1
    assert "the zone of this machine is unknown: pass it with --gcm-location" in capsys.readouterr().err


def test_step_time_deviation_equals_the_original() -> None:
    original = ml_goodput_measurement.goodput_utils.compute_step_deviation_from_baseline
    away = np.random.default_rng(1).gamma(2.0, size=1500)
    for count in (1, 99, 100, 1099, 1100, 1500):
        expected = original(dict(enumerate(away[:count].tolist())))
        assert step_time_deviation(away[:count]) == pytest.approx(expected)


def test_accelerators_equal_the_original() -> None:
    table = ml_goodput_measurement.goodput_utils.MACHINE_TYPE_TO_ACCELERATOR_TYPE_MAPPING
    for machine in ("ct5lp-hightpu-4t", "ct6e-standard-8t", "a3-highgpu-8g", "a3-ultragpu-8g", "a2-highgpu-1g"):
        assert accelerator_of(machine) == next(name for prefix, name in table.items() if prefix in machine)
    assert accelerator_of("n2-standard-8") == "UNKNOWN"
