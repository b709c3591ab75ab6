"""Samples of accelerators next to the ledger: named devices, sums of energy, and unchanged results."""

from __future__ import annotations

import json
import random
import re
import tracemalloc
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import goodput_cli
from goodput_cli.analysis.accelerators.devices import Devices, devices_line
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.picture import picture_of
from goodput_cli.cli.main import run
from goodput_cli.diagnostics.diagnostic import DiagnosticCollector
from goodput_cli.events.accelerators.hooks import DEVICE_SAMPLES
from goodput_cli.events.accelerators.samples import Device, DeviceCollector, DevicePart, Quantity
from tests.support.logs import T0, DeviceJob


def analyzed(folder: Path, job: DeviceJob) -> Analysis:
    return goodput_cli.analyze(str(job.write(folder)))


def found(analysis: Analysis) -> Devices:
    assert analysis.accelerators is not None
    return analysis.accelerators


def hang_text(analysis: Analysis) -> str:
    return next(one.text for one in analysis.insights if one.code == "hang")


def test_idle_device_is_named(tmp_path: Path) -> None:
    named = 0
    for seed in range(8):
        rng = random.Random(seed)
        stood = (rng.randrange(4), rng.randrange(4))
        job = DeviceJob(seed, hung_at=rng.randrange(50, 550), stood=frozenset({stood}))
        text = hang_text(analyzed(tmp_path / str(seed), job))
        named += f"accelerator {stood[1]} on node-{'abcd'[stood[0]]} was at 0 % while 15 others were at 100 %" in text
    assert named >= 7


def test_host_with_idle_devices_is_named(tmp_path: Path) -> None:
    job = DeviceJob(hung_at=300, stood=frozenset((2, device) for device in range(4)))
    assert "all 4 accelerators of node-c were at 0 % while 12 others were at 100 %" in hang_text(
        analyzed(tmp_path, job)
    )


def test_no_device_is_named_when_unclear(tmp_path: Path) -> None:
    """All spin, two on two hosts are idle, waiting devices do not spin, all are idle, or one is that was never busy."""
    for seed in range(20):
        unclear: list[DeviceJob] = [
            DeviceJob(seed, steps=150, hung_at=80),
            DeviceJob(seed, steps=150, hung_at=80, stood=frozenset({(0, 1), (3, 2)})),
            DeviceJob(seed, steps=150, hung_at=80, stood=frozenset({(0, 1)}), spins=False),
            DeviceJob(seed, steps=150, hung_at=80, stood=frozenset((a, b) for a in range(4) for b in range(4))),
            DeviceJob(seed, steps=150, hung_at=80, idle=frozenset({(1, 2)})),
        ]
        analysis = analyzed(tmp_path / str(seed), unclear[seed % len(unclear)])
        assert "check it first" not in hang_text(analysis)


def test_energy_is_what_the_devices_used(tmp_path: Path) -> None:
    for seed in range(3):
        job = DeviceJob(seed, throttled=frozenset({(1, 1)}), hung_at=200, missing=0.03)
        devices = found(analyzed(tmp_path / str(seed), job))
        assert devices.kwh == pytest.approx(job.joules / 3.6e6, rel=0.01)
        assert devices.lost_kwh == pytest.approx(job.joules / 3.6e6 * 240 / 840, rel=0.02)


def test_an_idle_device_is_an_insight_and_named(tmp_path: Path) -> None:
    analysis = analyzed(tmp_path, DeviceJob(idle=frozenset({(1, 3)}), steps=1200))
    (insight,) = (one for one in analysis.insights if one.code == "idle_accelerators")
    assert "accelerator 3 on node-b was idle (less than 20 % busy)" in insight.text
    assert insight.ns == pytest.approx(analysis.goodput.ns / 16, rel=0.02)
    row = found(analysis).devices[0]
    assert (row.host, row.device) == ("node-b", "3")
    assert row.busy_percent == pytest.approx(1, abs=0.2)
    assert row.little_percent == 100


def test_healthy_jobs_have_no_insight_of_devices(tmp_path: Path) -> None:
    for seed in range(5):
        analysis = analyzed(tmp_path / str(seed), DeviceJob(seed, throttled=frozenset({(0, 0)})))
        assert not [one for one in analysis.insights if one.code == "idle_accelerators"]
        assert "accelerators busy 9" in devices_line(found(analysis))


def test_the_ledger_is_the_same_bytes_with_and_without(tmp_path: Path) -> None:
    folder = DeviceJob(hung_at=100, stood=frozenset({(0, 0)})).write(tmp_path / "logs")
    both = [goodput_cli.analyze(str(folder)), goodput_cli.analyze(str(folder / "log.jsonl"))]
    texts = []
    for analysis in both:
        answer = analysis.to_dict()
        keys = ("job", "window", "goodput", "badput", "steps", "reference", "saves", "reliability")
        texts.append(json.dumps([answer[key] for key in keys]))
    assert texts[0] == texts[1]
    assert both[1].accelerators is None
    assert "accelerators" not in both[1].to_dict()


def test_time_without_samples_is_in_no_mean(tmp_path: Path) -> None:
    folder = DeviceJob(hosts=1, per_host=1, missing=0, apart=0).write(tmp_path)
    path = folder / "nvidia-smi-node-a.csv"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(lines[:41]) + "\n", encoding="utf-8")
    row = found(goodput_cli.analyze(str(folder))).devices[0]
    assert row.seen_percent == pytest.approx(100 * 200 / 600, abs=0.3)
    assert row.memory_percent == 75


HOSTILE = """\
timestamp, index, utilization.gpu [%], power.draw [W]
2026/01/12 20:50:00.000, 0, 101 %, -3 W
2026/01/12 20:50:05.000, 0, nan %, 1e9 W
2026/01/12 20:50:10.000, \x1b[31m0, [N/A], [Not Supported]
2026/01/12 20:50:15.000, 0, 50 %
2026/13/41 20:50:15.000, 0, 50 %, 3 W
2026/01/12 20:50:20.000, 0, 50 %, 300 W
"""


def test_hostile_lines_give_diagnostics_and_lose_nothing(tmp_path: Path) -> None:
    folder = DeviceJob(hosts=1).write(tmp_path)
    (folder / "gpu-x.csv").write_text(HOSTILE, encoding="utf-8")
    analysis = goodput_cli.analyze(str(folder))
    noticed = Counter(code for one in analysis.diagnostics for code in [one.code] * one.count)
    assert noticed["bad_sample"] == 4
    assert noticed["malformed_lines"] == 2
    assert [one.device for one in DEVICE_SAMPLES.of(analysis.table) if one.host == "x"] == ["0", "0"]


def collected(parts: int) -> tuple[DeviceCollector, int]:
    """Collect this many parts of ten samples of 64 devices; return also the peak memory (bytes)."""
    found = DeviceCollector(most=20_000)
    tracemalloc.start()
    for at in range(parts):
        part = DevicePart()
        for device in range(64):
            for second in range(10):
                time = (at * 10 + second) * 10**10
                part.add(1, Device("h", str(device)), Quantity.POWER, time, 100.0 + device)
        found.add(0, part, DiagnosticCollector())
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found, most


def test_many_samples_are_kept_in_bounded_memory() -> None:
    """However many they are: means and energy stay exact."""
    (_, fewer), (found, most) = collected(50), collected(110)
    assert most < 1.2 * fewer
    tables = found.tables(lambda *_: "j", {}, {}, {})
    assert sum(map(len, tables)) <= 20_000
    assert len(tables) == 64
    for one in tables:
        joules = float((one.value * one.held).sum()) / 1e9
        assert joules == pytest.approx((100 + int(one.device)) * 11_000, rel=0.001)
        assert one.about
        assert (np.diff(one.time) > 0).all()


def test_energy_per_token_needs_complete_samples(tmp_path: Path) -> None:
    job = DeviceJob(missing=0, apart=0, hosts=2)
    folder = job.write(tmp_path)
    extra = [
        {"job_name": "j", "goodput_event": "phases", "goodput_time": T0 + 600, "run_id": "r", "rank": 0, "host": "h",
         "first_step": 0, "step": 599, "steps": 600, "step_seconds": 600.0, "tokens": 6_000_000},
    ]  # fmt: skip
    with (folder / "log.jsonl").open("a", encoding="utf-8") as file:
        file.write("".join(json.dumps(one) + "\n" for one in extra))
    unknown = goodput_cli.analyze(str(folder)).work  # their number is not logged
    assert unknown is not None
    assert unknown.kwh_per_million_tokens is None
    analysis = goodput_cli.analyze(str(folder), accelerators=8, price_per_hour=2)
    assert analysis.work is not None
    assert analysis.work.kwh_per_million_tokens == pytest.approx(job.joules / 3.6e6 / 6, rel=0.02)
    assert "samples of 8 of 8" in devices_line(found(analysis))


def test_the_band_of_the_page_and_the_column_of_the_timeline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = DeviceJob(hung_at=300, stood=frozenset((host, at) for host in range(4) for at in range(4))).write(tmp_path)
    picture = picture_of(goodput_cli.analyze(str(folder)), 84)
    assert picture.busy is not None
    in_hang = (picture.busy.time > (T0 + 310) * 10**9) & (picture.busy.time < (T0 + 520) * 10**9)
    assert float(picture.busy.value[in_hang].max()) < 1
    assert float(picture.busy.value[picture.busy.time < (T0 + 290) * 10**9].min()) > 85
    assert run(["timeline", str(folder), "--events"]) == 0
    out = capsys.readouterr().out
    assert "busy" in out
    assert re.search(r"step stall.*\b[0-3]\.\d\d %", out)


def test_samples_of_another_time_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = DeviceJob(hosts=1, steps=100).write(tmp_path)
    assert run(["steps", str(folder), "--by", "device", "--timezone", "Asia/Tokyo"]) == 0
    assert "outside the window. Check --timezone" in " ".join(capsys.readouterr().out.split())
