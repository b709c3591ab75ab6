"""Sources of accelerator samples: trackers, exporters and tools, each next to a log or inside one."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from goodput_cli.events.accelerators.hooks import DEVICE_SAMPLES
from goodput_cli.events.accelerators.samples import Device, DeviceSamples, Quantity, quantity_of_metric
from goodput_cli.events.read import read_events
from goodput_cli.events.schema import EventLog
from tests.support.clouds import Bucket, bucket_server
from tests.support.logs import T0

REAL = Path(__file__).parents[1] / "real"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    with bucket_server() as running:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", running.url)
        yield running


EVENTS = [
    {"job_name": "j", "job_start_time": T0},
    *({"job_name": "j", "step_count": step, "step_start_time": T0 + step} for step in range(60)),
    {"job_name": "j", "job_end_time": T0 + 60},
]


def samples_of_file(folder: Path, name: str, text: str) -> dict[tuple[str, str, str], list[float]]:
    """Return the values of a file next to a log, by host, device and quantity."""
    return by_device(log_with_file(folder, name, text))


def read(folder: Path) -> EventLog:
    return read_events([str(folder)])


def log_with_file(folder: Path, name: str, text: str) -> EventLog:
    (folder / "log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in EVENTS), encoding="utf-8")
    (folder / name).write_text(text, encoding="utf-8")
    return read(folder)


def by_device(log: EventLog) -> dict[tuple[str, str, str], list[float]]:
    assert {one.job for one in DEVICE_SAMPLES.of(log.table)} <= set(log.table.jobs)
    return {(one.host, one.device, one.quantity.name): one.value.tolist() for one in DEVICE_SAMPLES.of(log.table)}


def joules(one: DeviceSamples) -> float:
    return float((one.value * one.held).sum()) / 1e9


def timestamp(second: float, form: str) -> str:
    return datetime.fromtimestamp(T0 + second, UTC).strftime(form)


def test_dmon(tmp_path: Path) -> None:
    heads = (
        "#Date       Time        gpu    pwr  gtemp     sm    mem     fb\n"
        "#YYYYMMDD   HH:MM:SS    Idx      W      C      %      %     MB\n"
    )
    rows = "".join(
        f" {timestamp(second, '%Y%m%d   %H:%M:%S')}      {gpu}    {300 + gpu}     60     9{gpu}     50    100\n"
        for second in (0, 1, 2)
        for gpu in (0, 1)
    )
    found = samples_of_file(tmp_path, "dmon-node-a.log", heads + rows + heads + " 20260101 00:00:09 0 - 60 - - -\n")
    assert found == {
        ("node-a", "0", "BUSY"): [90] * 3, ("node-a", "1", "BUSY"): [91] * 3,
        ("node-a", "0", "POWER"): [300] * 3, ("node-a", "1", "POWER"): [301] * 3,
        ("node-a", "0", "MEMORY_BYTES"): [100 * 2**20] * 3, ("node-a", "1", "MEMORY_BYTES"): [100 * 2**20] * 3,
    }  # fmt: skip


ROWS = """\
{0}#Entity   TMPTR        POWER             TOTEC                   GPUTL             FBUSD
{0}ID         C            W                 mJ
{0}GPU 7     45           57.430            1000000                 99                58122
{0}GPU-I 3   45           57.430            1000000                 99                58122
{1}GPU 7     45           57.430            2000000                 N/A               58122
"""
"""Output of `dcgmi dmon -e 150,155,156,203,252` (DCGM 4)."""


@pytest.mark.parametrize(
    ("form", "zone"),
    [
        ("%Y-%m-%dT%H:%M:%S+0000", "UTC"),
        ("[%Y-%m-%d %H:%M:%S] ", "UTC"),
        ("%s.000 ", "Asia/Tokyo"),
        ("%b %d %H:%M:%S ", "UTC"),
        ("%a %b %d %H:%M:%S UTC %Y\n", "Asia/Tokyo"),
        ("%s\n", "Asia/Tokyo"),
    ],
)
def test_dcgmi_dmon_is_read_after_times_of_ts_and_date(tmp_path: Path, form: str, zone: str) -> None:
    text = ROWS.format(*(f"{timestamp(at, form)} ".replace("\n ", "\n") for at in (0, 10)))
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in EVENTS), encoding="utf-8")
    (tmp_path / "dcgmi-dmon-node-a.txt").write_text(text, encoding="utf-8")
    os.utime(tmp_path / "dcgmi-dmon-node-a.txt", (T0 + 60, T0 + 60))
    log = read_events([str(tmp_path)], timezone=zone)
    assert by_device(log) == {
        ("node-a", "7", "BUSY"): [99], ("node-a", "7", "POWER"): [pytest.approx(57.43)] * 2,
        ("node-a", "7", "METER"): [100], ("node-a", "7", "MEMORY_BYTES"): [58122 * 2**20] * 2,
    }  # fmt: skip
    assert {int(one.time[0]) for one in DEVICE_SAMPLES.of(log.table)} == {T0 * 10**9}
    assert "malformed_lines" not in {one.code for one in log.diagnostics}


def test_rows_without_a_time_suggest_a_command(tmp_path: Path) -> None:
    for name, rows in (
        ("dcgmi.log", ROWS.format("", "")),
        ("dmon.log", "# gpu   pwr    sm\n# Idx     W     %\n    0    43    35\n"),
    ):
        log = log_with_file(tmp_path, name, rows)
        assert DEVICE_SAMPLES.of(log.table) == ()
        assert "-o DT`, or pipe dcgmi dmon through `ts" in " ".join(one.message for one in log.diagnostics)
        (tmp_path / name).unlink()


def test_bucket_is_searched_like_a_folder(bucket: Bucket) -> None:
    table = f"timestamp, index, utilization.gpu [%]\n{timestamp(0, '%Y/%m/%d %H:%M:%S')}.000, 0, 97 %\n"
    bucket.put("run/log.jsonl", "".join(json.dumps(one) + "\n" for one in EVENTS).encode())
    bucket.put("run/nvidia-smi-node-a.csv", table.encode())
    bucket.put("run/other.csv", b"a,b\n1,2\n")
    bucket.put("run/dcgmi-node-b.txt", ROWS.format(*(f"{T0 + at} " for at in (0, 10))).encode())
    bucket.put("run/gpu.json", answer(series("DCGM_FI_DEV_GPU_UTIL", (0, "97"))).encode())
    found = by_device(read_events(["gs://logs/run"], timezone="UTC"))
    assert [found[one] for one in (("node-a", "0", "BUSY"), ("node-b", "7", "BUSY"), ("node-a", "3", "BUSY"))] == [
        [97], [99], [97],
    ]  # fmt: skip


@pytest.mark.parametrize("of", ["wandb", "mlflow"])
def test_samples_next_to_a_tracker_run_are_read(tmp_path: Path, of: str) -> None:
    shutil.copytree(REAL / ("wandb-0.31" if of == "wandb" else "mlflow-3.17"), tmp_path / of)
    first = read(tmp_path)
    begin = int(first.table.time.min()) / 1e9
    (tmp_path / "gpu-x.csv").write_text(
        f"timestamp, index, utilization.gpu [%]\n{datetime.fromtimestamp(begin, UTC):%Y/%m/%d %H:%M:%S}.000, 0, 97 %\n"
    )
    log = read(tmp_path)
    assert ("x", "0", "BUSY") in by_device(log)
    assert len(log.table) == len(first.table)


def series(name: str, *pairs: tuple[float, str], **labels: str) -> dict[str, object]:
    metric = {"__name__": name, "gpu": "3", "Hostname": "node-a", **labels}
    return {"metric": metric, "values": [[T0 + at, value] for at, value in pairs]}


def answer(*result: object) -> str:
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [*result]}})


def test_prometheus_response_is_read(tmp_path: Path) -> None:
    text = answer(
        series("DCGM_FI_DEV_GPU_UTIL", (0, "97"), (15, "98"), (30, "NaN")),
        series("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", (0, "0.4")),
        series("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", (0, "1000000"), (15, "7000000"), (30, "500"), (45, "6000500")),
        series("up", (0, "1")),
    )
    log = log_with_file(tmp_path, "gpu.json", text)
    found = by_device(log)
    assert found["node-a", "3", "BUSY"] == [97, 98]
    assert found["node-a", "3", "CORE"] == [40]
    assert found["node-a", "3", "METER"] == [400, 400]
    assert joules(next(one for one in DEVICE_SAMPLES.of(log.table) if one.quantity is Quantity.METER)) == 12_000
    assert {one.code for one in log.diagnostics} == {"bad_sample"}


def test_system_rows_of_a_wandb_export_are_read(tmp_path: Path) -> None:
    rows = [
        {"_timestamp": T0 + at, "_runtime": at, "system.gpu.0.gpu": 90 + at, "system.gpu.0.powerWatts": 300.5}
        for at in range(3)
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    assert samples_of_file(tmp_path, "events.jsonl", text) == {
        ("", "0", "BUSY"): [90, 91, 92], ("", "0", "POWER"): [300.5] * 3,
    }  # fmt: skip


def test_mlflow_files_are_read(tmp_path: Path) -> None:
    run = tmp_path / "mlruns" / "0" / ("a" * 32)
    (run / "metrics" / "system").mkdir(parents=True)
    lines = [f"{1000 * (T0 + at)} {{}} {at}" for at in range(1, 31)]
    (run / "metrics" / "loss").write_text("".join(line.format(0.5) + "\n" for line in lines), encoding="utf-8")
    for name, value in (("gpu_0_utilization_percentage", 88), ("gpu_0_power_usage_watts", -1)):
        path = run / "metrics" / "system" / name
        path.write_text("".join(line.format(value) + "\n" for line in lines), encoding="utf-8")
    log = read(tmp_path)
    assert by_device(log) == {("", "0", "BUSY"): [88] * 30}
    assert {one.job for one in DEVICE_SAMPLES.of(log.table)} == {"a" * 32}
    assert sum(one.count for one in log.diagnostics if one.code == "bad_sample") == 30


def test_logs_of_real_libraries_without_accelerators() -> None:
    """20 s each, sampled every 2 s on the host. MLflow's files contain their own description."""
    wandb, mlflow = (by_device(read(REAL / name)) for name in ("wandb-0.31-system", "mlflow-3.17-system"))
    assert {key: len(values) for key, values in wandb.items()} == {
        ("node-a", "0", "HOST_CPU"): 10, ("node-a", "0", "HOST_MEMORY"): 11,
    }  # fmt: skip
    assert wandb["node-a", "0", "HOST_CPU"][0] == pytest.approx(4.156479)
    (node,) = (REAL / "mlflow-3.17-system").glob("**/node-a")
    for quantity, name in (("HOST_CPU", "cpu_utilization"), ("HOST_MEMORY", "system_memory_usage")):
        lines = (node / f"{name}_percentage").read_text(encoding="utf-8").splitlines()
        assert mlflow["node-a", "0", quantity] == pytest.approx([float(line.split()[1]) for line in lines])


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("gpu.1.gpu", ("h", "1", Quantity.BUSY)),
        ("gpu.1.memoryAllocated", ("h", "1", Quantity.MEMORY)),
        ("gpu.process.1.gpu", None),
        ("gpu.1.temp", None),
        ("system.gpu.0.powerWatts/l:node-b", ("node-b", "0", Quantity.POWER)),
        ("system/gpu_3_memory_usage_percentage", ("h", "3", Quantity.MEMORY)),
        ("system/n7/gpu_3_power_usage_watts", ("n7", "3", Quantity.POWER)),
        ("system/n7/cpu_utilization_percentage", ("n7", "0", Quantity.HOST_CPU)),
        ("loss", None),
    ],
)
def test_tracker_names_are_known(name: str, found: tuple[str, str, Quantity] | None) -> None:
    named = quantity_of_metric(name, "h")
    expected = None if found is None else (Device(found[0], found[1]), found[2])
    assert (named and (named.device, named.quantity)) == expected


def test_samples_next_to_several_jobs_are_unassigned(tmp_path: Path) -> None:
    other = json.dumps({"job_name": "k", "job_start_time": T0}) + "\n"
    (tmp_path / "other.jsonl").write_text(other, encoding="utf-8")
    log = log_with_file(tmp_path, "gpu.json", answer(series("DCGM_FI_DEV_GPU_UTIL", (0, "97"))))
    assert DEVICE_SAMPLES.of(log.table) == ()
    assert "devices_of_no_job" in {one.code for one in log.diagnostics}
