"""TensorBoard's event files, written by real writers, read without TensorFlow."""

from __future__ import annotations

import gzip
import shutil
import struct
from pathlib import Path

import google_crc32c
import pytest
from tensorboardX import SummaryWriter

from goodput_cli.errors import UsageError
from tests.text.support import SAMPLES, analysed, codes, seconds, written

T0 = 1_772_359_200
FIRST = SAMPLES / "tensorboard" / "events.out.tfevents.1772359200.host1.101.0"
SECOND = SAMPLES / "tensorboard" / "events.out.tfevents.1772360100.host1.202.0"
BOTH = {
    "productive": 80,
    "program_startup": 90,
    "wasted_progress_from_disruption": 55,
    "infrastructure_recovery_from_disruption": 765,
}


def test_a_run_of_hugging_faces_trainer() -> None:
    assert seconds(analysed(FIRST)) == {"productive": 80.8, "program_startup": 40, "EVAL_STEP": 14.2}


def test_a_run_that_was_killed_and_resumed_is_two_attempts(tmp_path: Path) -> None:
    for name, file in (("Mar01_10-00-00_host1", FIRST), ("Mar01_10-15-00_host1", SECOND)):
        (tmp_path / "llama" / "runs" / name).mkdir(parents=True)
        shutil.copy(file, tmp_path / "llama" / "runs" / name)
    analysis = analysed(tmp_path / "llama")
    assert seconds(analysis) == BOTH
    assert (analysis.job.name, analysis.job.attempts) == ("runs", 2)
    assert {"step_tag", "tail_may_be_lost"} <= codes(analysis)


def test_packed_and_doubled_files_are_the_same(tmp_path: Path) -> None:
    for file in (FIRST, SECOND):
        (tmp_path / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        shutil.copy(file, tmp_path)
    assert seconds(analysed(tmp_path)) == BOTH


def test_a_file_that_is_being_written_or_damaged(tmp_path: Path) -> None:
    data = FIRST.read_bytes()
    path = tmp_path / FIRST.name
    path.write_bytes(data[:-5])
    cut = analysed(path)
    assert seconds(cut) == {"productive": 60 - 40 + 40, "program_startup": 40, "EVAL_STEP": 14.2, "other": 0.8}
    assert "malformed_records" not in codes(cut)
    flipped = bytearray(data)
    flipped[-10] ^= 1
    path.write_bytes(flipped)
    assert "malformed_records" in codes(analysed(path))


@pytest.fixture
def megatron(tmp_path: Path) -> Path:
    """Write the scalars of Megatron's last rank: losses by iteration and by sample, and the mean time of an
    iteration."""
    folder = tmp_path / "tensorboard"
    writer = SummaryWriter(str(folder))
    for at in range(1, 6):
        wall = T0 + 60 + 40 * at + (10 if at > 3 else 0)
        writer.add_scalar("lm loss", 5.0 / at, 10 * at, walltime=wall)
        writer.add_scalar("lm loss vs samples", 5.0 / at, 80 * at, walltime=wall)
        writer.add_scalar("iteration-time", 4.0, 10 * at, walltime=wall)
        if at == 3:
            writer.add_scalar("lm loss validation", 4.0, 30, walltime=wall + 10)
    writer.close()
    return folder


def test_evaluation_takes_the_gap_left_by_the_mean(megatron: Path) -> None:
    analysis = analysed(megatron, start="2026-03-01T10:01:40Z")
    assert analysis.job.last_step == 50
    found = seconds(analysis)
    assert found["EVAL_STEP"] == 10


def test_another_scalar_can_be_named(megatron: Path) -> None:
    assert analysed(megatron, tensorboard_tag="lm loss vs samples").job.last_step == 400
    with pytest.raises(UsageError, match=r"no event file contains this scalar.*Available: iteration-time, lm_loss"):
        analysed(megatron, tensorboard_tag="loss")


def test_non_utf_8_tag_is_accepted(tmp_path: Path) -> None:
    """Programs in C++ may write one; the other tags count."""
    tag = b"loss \xff\xfe"
    value = b"\x0a" + bytes([len(tag)]) + tag + b"\x15" + struct.pack("<f", 0.5)
    summary = b"\x0a" + bytes([len(value)]) + value
    event = b"\x09" + struct.pack("<d", T0 + 1) + b"\x10\x01\x2a" + bytes([len(summary)]) + summary
    length = struct.pack("<Q", len(event))
    path = tmp_path / FIRST.name
    path.write_bytes(FIRST.read_bytes() + length + masked(length) + event + masked(event))
    assert seconds(analysed(path)) == seconds(analysed(FIRST))
    with pytest.raises(UsageError, match="loss___, train"):
        analysed(path, tensorboard_tag="none")


def masked(data: bytes) -> bytes:
    """Return the checksum of a part of a record."""
    plain = google_crc32c.value(data)
    return struct.pack("<I", (((plain >> 15) | (plain << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def test_random_bytes_with_the_name_of_an_event_file(tmp_path: Path) -> None:
    lines = '{"job_name": "j", "job_start_time": 1}\n{"job_name": "j", "step_count": 1, "step_start_time": 2}\n'
    folder = written(tmp_path / "a", run_jsonl=lines)
    (folder / "events.out.tfevents.1772359200.h").write_bytes(bytes(range(256)) * 20)
    assert analysed(folder).job.name == "j"
