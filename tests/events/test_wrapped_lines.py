"""Lines of a program as launchers and collectors wrap them: the same result for each kind of wrapping."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from goodput_cli.cli.main import run
from goodput_cli.errors import NotEnoughData
from goodput_cli.events.json_documents import collected_at
from goodput_cli.events.timestamps import NO_STAMP
from tests.support.story import SECOND, start, step, steps, story_lines
from tests.text.support import analysed, seconds

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
RECORDED = story_lines(start(0), steps(0, 10, at=10), start(300), steps(5, 11, at=310), step(16, 420))
PRINTED = (
    "[before the start of training step] datetime: 2026-01-01 00:00:00",
    " [2026-01-01 00:01:00] iteration       10/     100 | elapsed time per iteration (ms): 4000.0 |",
    " [2026-01-01 00:01:40] iteration       20/     100 | elapsed time per iteration (ms): 4000.0 |",
)
AT = (0, 60, 100)


def iso(at: float) -> str:
    return (BEGIN + timedelta(seconds=at)).strftime("%Y-%m-%dT%H:%M:%S.%f") + "Z"


def epoch(at: float) -> float:
    return (BEGIN + timedelta(seconds=at)).timestamp()


def wrapped(**record: object) -> str:
    return json.dumps(record)


WRAPPINGS: dict[str, Callable[[str, float], str]] = {
    "docker": lambda line, at: wrapped(log=f"{line}\n", stream="stdout", time=iso(at)),
    "fluent bit": lambda line, at: wrapped(date=epoch(at), log=line, kubernetes={"pod_name": "train-0"}),
    "elastic": lambda line, at: wrapped(**{"@timestamp": iso(at), "message": line}),
    "journald": lambda line, at: wrapped(__REALTIME_TIMESTAMP=str(round(epoch(at) * 10**6)), MESSAGE=line),
    "cloudwatch": lambda line, at: wrapped(timestamp=round(epoch(at) * 1000), message=line, eventId=str(at)),
    "loki": lambda line, at: wrapped(timestamp=iso(at), line=line, labels={"pod": "train-0"}),
    "cloud logging": lambda line, at: wrapped(textPayload=line, timestamp=iso(at), insertId=str(at), logName="l"),
    "a logger's message": lambda line, at: wrapped(
        jsonPayload={"message": line}, timestamp=iso(at), insertId=str(at), logName="l"
    ),
    "cri": lambda line, at: f"{iso(at)} stdout F {line}",
    "kubectl": lambda line, _: f"[pod/train-0/main] {line}",
    "colours": lambda line, _: f"\x1b[32m{line}\x1b[0m",
}


def written(path: Path, lines: Sequence[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", WRAPPINGS)
def test_printed_log_is_read_like_a_file(tmp_path: Path, name: str) -> None:
    wrap = WRAPPINGS[name]
    plain = analysed(written(tmp_path / "plain.jsonl", RECORDED))
    found = analysed(written(tmp_path / "found.log", [wrap(line, at) for at, line in enumerate(RECORDED)]))
    assert seconds(found) == seconds(plain)
    assert found.job.name == plain.job.name
    assert [row.evidence.next_start.rpartition(":")[2] for row in found.disruptions if row.evidence.next_start] == [
        "12"
    ]


@pytest.mark.parametrize("name", WRAPPINGS)
def test_printed_text_gets_the_collector_time(tmp_path: Path, name: str) -> None:
    found = analysed(
        written(tmp_path / "found.log", [WRAPPINGS[name](line, at) for line, at in zip(PRINTED, AT, strict=True)])
    )
    assert seconds(found) == {"productive": 80, "program_startup": 20}


def test_event_after_logger_prefix_counts(tmp_path: Path) -> None:
    plain = analysed(written(tmp_path / "plain.jsonl", RECORDED))
    found = analysed(written(tmp_path / "found.log", [f"INFO:goodput:{line}" for line in RECORDED]))
    assert seconds(found) == seconds(plain)


def test_times_of_collectors() -> None:
    second = round(epoch(0)) * SECOND
    of_units = [epoch(0), epoch(0) * 10**3, str(second // 10**3), second, iso(0)]
    assert collected_at(of_units).tolist() == [second] * 5
    assert collected_at([None, "soon", "2026-01-01 00:00:00", -1, True, 10**30]).tolist() == [NO_STAMP] * 6


def test_yaml_entries_suggest_the_json_command(tmp_path: Path) -> None:
    entry = "---\ninsertId: a\njsonPayload:\n  job_name: j\n  job_start_time: 1767225600.0\nlogName: l\n"
    with pytest.raises(NotEnoughData, match="--format=json"):
        analysed(written(tmp_path / "found.yaml", [entry]))


@pytest.mark.parametrize("name", ["docker", "journald", "cri"])
def test_check_explains_wrapped_lines(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (RECORDED[0], PRINTED[1])
    log = written(tmp_path / "found.log", [WRAPPINGS[name](line, 0) for line in lines])
    assert run(["check", "--explain", f"{log}:1"]) == run(["check", "--explain", f"{log}:2"]) == 0
    said = capsys.readouterr().out
    assert "read by: recorder, a format that needs no mapping" in said
    assert "read by: megatron, rule 'iteration'" in said
