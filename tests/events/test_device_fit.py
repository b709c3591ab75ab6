"""Samples of accelerators accuse only if they fit the job: same clock, named devices, not more devices than the job
has, values a device can have (docs/accelerators.md)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import goodput_cli
from goodput_cli.analysis.accelerators.devices import devices_lines
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.arrays import F64, I64
from goodput_cli.events.accelerators.jobs import Activity, DeviceClock, clock_of_samples
from goodput_cli.vocabulary.when import NS_PER_SECOND

S = NS_PER_SECOND
HOUR = 3600
OUTAGE = ((60, 5400), (7200, 12600))
"""s of training, with an outage of 30 min."""
STORIES = {
    "outage": OUTAGE,
    "two outages": ((60, 3000), (3600, 7000), (8000, 12000)),
    "long start": ((900, 7000),),
}


def samples(training: Sequence[tuple[int, int]], off: int, stuck: bool = False) -> list[tuple[I64, F64]]:
    """Return samples of two devices that are busy only in training, every 10 s, by a clock that is off (s)."""
    time = np.arange(0, training[-1][1], 10, dtype=np.int64)
    busy = 95.0 * np.logical_or.reduce([(time >= begin) & (time < end) for begin, end in training])
    return [((time + off) * S, busy), ((time + off) * S, busy * (not stuck))]


def activity(training: Sequence[tuple[int, int]]) -> Activity:
    begins, ends = (np.array([one[at] for one in training], dtype=np.int64) * S for at in (0, 1))
    return Activity(0, training[-1][1] * S, begins, ends, np.zeros(len(begins), dtype=np.bool_))


@pytest.mark.parametrize("off", [0, HOUR, 2 * HOUR, -7 * HOUR, 5 * HOUR + 1800])
@pytest.mark.parametrize("story", STORIES)
def test_clock_is_found_if_one_offset_fits(story: str, off: int) -> None:
    training = STORIES[story]
    assert clock_of_samples(activity(training), samples(training, off)) == DeviceClock(off * S)
    assert clock_of_samples(activity(training), samples(training, off, stuck=True)) == DeviceClock(off * S)


def test_clock_is_kept_if_nothing_shows_another() -> None:
    """Devices that are always busy, or never, fit every clock."""
    time = np.arange(0, 12600, 10, dtype=np.int64) * S
    for level in (0.0, 95.0):
        assert clock_of_samples(activity(OUTAGE), [(time, np.full(len(time), level))]) == DeviceClock()


def test_clock_is_kept_if_devices_spin_in_a_hang() -> None:
    """No start is logged after the gap, so a step may hang there, and devices that wait are busy."""
    hung = activity(((60, 3060), (3660, 7660)))._replace(unknown=np.array([True, False]))
    assert clock_of_samples(hung, samples(((60, 7660),), 0)) == DeviceClock()
    assert clock_of_samples(hung, samples(((60, 7660),), HOUR)) == DeviceClock(HOUR * S)


def test_clock_is_unclear_if_several_fit() -> None:
    hourly = tuple((at * HOUR + 900, (at + 1) * HOUR) for at in range(20))
    found = clock_of_samples(activity(hourly), samples(hourly, 1800))
    assert found.unclear
    assert found.ahead_ns == 0


def test_samples_of_another_day_do_not_overlap() -> None:
    found = clock_of_samples(activity(OUTAGE), samples(OUTAGE, 40 * HOUR))
    assert found == DeviceClock(overlaps=False)


T0 = int(datetime(2026, 3, 1, 10, tzinfo=UTC).timestamp())
HEADS = "timestamp, index, utilization.gpu [%], power.draw [W]"


def analyzed(folder: Path, *, accelerators: float | None = None, **files: str) -> Analysis:
    """Return the analysis of 300 steps of 1 s next to files of samples, by name (`_` for `.`)."""
    lines = [{"job_name": "j", "job_start_time": T0}]
    lines += [{"job_name": "j", "step_count": step, "step_start_time": T0 + step} for step in range(300)]
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return goodput_cli.analyze(str(folder), accelerators=accelerators, price_per_hour=1 if accelerators else None)


def rows(heads: str, *cells: str) -> str:
    """Return rows of nvidia-smi every 5 s; cells: of each device, after the time."""
    stamps = [datetime.fromtimestamp(T0 + at, UTC).strftime("%Y/%m/%d %H:%M:%S.000") for at in range(0, 300, 5)]
    return "".join([f"{heads}\n" * bool(heads), *(f"{stamp}, {cell}\n" for stamp in stamps for cell in cells)])


def codes(analysis: Analysis) -> dict[str, str]:
    return {one.code: one.message for one in analysis.diagnostics}


def is_accused(analysis: Analysis) -> bool:
    return any(one.code == "idle_accelerators" for one in analysis.insights)


def test_idle_devices_of_the_job_are_accused(tmp_path: Path) -> None:
    assert is_accused(analyzed(tmp_path, gpu_csv=rows(HEADS, "0, 0 %, 90.00 W", "1, 0 %, 90.00 W"), accelerators=2))


def test_rows_without_a_name_are_refused(tmp_path: Path) -> None:
    found = analyzed(tmp_path, gpu_csv=rows("timestamp, name, utilization.gpu [%]", "H100, 0 %", "H100, 100 %"))
    assert not is_accused(found)
    assert found.accelerators is None
    assert "add `index`" in codes(found)["unusable_samples"]


def test_one_device_needs_no_name(tmp_path: Path) -> None:
    found = analyzed(tmp_path, gpu_csv=rows("timestamp, utilization.gpu [%]", "97 %"))
    assert found.accelerators is not None
    assert found.accelerators.busy_percent == 97


def test_table_without_headings_is_reported(tmp_path: Path) -> None:
    found = analyzed(tmp_path, gpu_csv=rows("", "0, 0 %, 90.00 W", "1, 0 %, 90.00 W"))
    assert not is_accused(found)
    assert "`noheader`" in codes(found)["unusable_samples"]


def test_more_devices_than_the_job_has_are_not_accused(tmp_path: Path) -> None:
    cells = [f"{device}, {97 if device < 2 else 0} %, 90.00 W" for device in range(4)]
    found = analyzed(tmp_path, gpu_csv=rows(HEADS, *cells), accelerators=2)
    assert not is_accused(found)
    assert found.accelerators is not None
    assert (found.accelerators.seen, found.accelerators.idle_ns) == (4, None)
    assert "4 accelerators but the job has 2" in codes(found)["more_devices"]


def test_power_above_3_kw_is_rejected(tmp_path: Path) -> None:
    found = analyzed(tmp_path, gpu_csv=rows(HEADS, "0, 97 %, 60000.00 W", "1, 97 %, 600.00 W"))
    assert found.accelerators is not None
    assert found.accelerators.kwh == pytest.approx(0.6 * 300 / 3600, rel=0.02)
    assert codes(found)["bad_sample"] == "power is above 3000"


def test_samples_outside_of_the_job_are_reported(tmp_path: Path) -> None:
    text = rows(HEADS, "0, 0 %, 90.00 W").replace("2026/03/01", "2025/12/01")
    found = analyzed(tmp_path, gpu_csv=text)
    assert found.accelerators is None
    assert "outside the job's time" in codes(found)["device_clock"]


def series(name: str, value: float, **labels: str) -> dict[str, object]:
    pairs = [[T0 + at, str(value)] for at in range(0, 300, 5)]
    return {"metric": {"__name__": name, "Hostname": "a", "gpu": "0", **labels}, "values": pairs}


def prometheus(*results: dict[str, object]) -> str:
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": results}}) + "\n"


@pytest.mark.parametrize("active", [True, False])
def test_mig_instances_are_distinguished(active: bool, tmp_path: Path) -> None:
    """GPU_UTIL of MIG is 0 by design; power is that of the GPU, once for each instance."""
    every = [series("DCGM_FI_DEV_GPU_UTIL", 0)]
    for at, busy in ((1, 0.95), (2, 0.85)):
        every.append(series("DCGM_FI_DEV_GPU_UTIL", 0, GPU_I_ID=str(at)))
        every.append(series("DCGM_FI_DEV_POWER_USAGE", 600, GPU_I_ID=str(at)))
        every += [series("DCGM_FI_PROF_GR_ENGINE_ACTIVE", busy, GPU_I_ID=str(at))] * active
    found = analyzed(tmp_path, gpu_json=prometheus(*every))
    assert not is_accused(found)
    devices = found.accelerators
    assert devices is not None
    assert devices.kwh == pytest.approx(0.6 * 300 / 3600, rel=0.02)
    assert devices.busy_percent == (pytest.approx(90) if active else None)
    assert devices.seen == (2 if active else 1)


def test_moved_samples_are_shown_with_the_busy_share(tmp_path: Path) -> None:
    """An outage of 20 min; the file is 1 h ahead."""
    steps = [*range(60, 1800), *range(3000, 6000)]
    lines = [{"job_name": "j", "job_start_time": T0}, {"job_name": "j", "job_start_time": T0 + 2950}]
    lines += [{"job_name": "j", "step_count": number, "step_start_time": T0 + at} for number, at in enumerate(steps)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    trained = set(steps)
    stamps = ((at, datetime.fromtimestamp(T0 + at + HOUR, UTC)) for at in range(0, 6000, 10))
    cells = (f"{time:%Y/%m/%d %H:%M:%S}.000, 0, {97 * (at in trained)} %, 90.00 W" for at, time in stamps)
    (tmp_path / "gpu.csv").write_text("\n".join([HEADS, *cells]) + "\n")
    found = goodput_cli.analyze(str(tmp_path))
    said = list(devices_lines(found.accelerators, found.diagnostics))
    assert said[0].startswith("accelerators busy 97 %")
    assert "1 h 00 min ahead of the log's" in said[1]
    assert not is_accused(found)
    given = goodput_cli.analyze(str(tmp_path), timezone="Europe/London")
    assert "their clock is 1 h 00 min ahead of the log's; ignored" in codes(given)["unusable_samples"]
