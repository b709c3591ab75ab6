"""Causes in output for programs: columns of CSV and Parquet, and metrics."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics

import goodput_cli
from goodput_cli.cli.main import run
from tests.causes.wordings import OTHER_END, attempt_lines

EXAMPLES = Path(__file__).parent / "examples"
EXPECTED: dict[str, Any] = json.loads((EXAMPLES / "expected.json").read_text())
JOBS = [name for name in EXPECTED if EXPECTED[name]["disruptions"]]
FAMILY = "goodput_disruptions_by_cause"
OF_CAUSE = (
    "cause", "cause_group", "cause_certainty", "cause_text", "first_rank", "first_host", "first_device", "also",
    "silent_ranks", "evidence_cause",
)  # fmt: skip


def outputs(name: str, to: Path) -> tuple[list[dict[str, str]], Any, list[dict[str, Any]]]:
    """Return the disruptions of an example: rows of CSV, the table of Parquet, objects of JSON."""
    files = [to / f"out.{ending}" for ending in ("csv", "parquet", "json")]
    asked = ["disruptions", str(EXAMPLES / name), "-j", "job", "-q"]
    assert run([*asked, *(word for file in files for word in ("-o", str(file)))]) == 0
    rows = list(csv.DictReader(io.StringIO(files[0].read_text("utf-8"))))
    return rows, parquet.read_table(files[1]), json.loads(files[2].read_text("utf-8"))["disruptions"]


@pytest.mark.parametrize("name", JOBS)
def test_tables_contain_cause_location_and_line(name: str, tmp_path: Path) -> None:
    rows, table, answer = outputs(name, tmp_path)
    assert len(rows) == len(answer) == table.num_rows == len(EXPECTED[name]["disruptions"])
    for row, columns, said in zip(rows, table.to_pylist(), answer, strict=True):
        flat = said | {
            "also": " ".join(said["also"]) or None,
            "silent_ranks": " ".join(map(str, said["silent_ranks"])) or None,
            "evidence_cause": said["evidence"]["cause"],
        }
        assert {key: columns[key] for key in OF_CAUSE} == {key: flat[key] for key in OF_CAUSE}
        assert {key: row[key] for key in OF_CAUSE} == {
            key: "" if flat[key] is None else str(flat[key]) for key in OF_CAUSE
        }


def test_unknown_values_are_empty_or_null_but_not_zero(tmp_path: Path) -> None:
    (row,), table, _ = outputs("06-caught", tmp_path)
    assert (row["cause"], row["cause_group"]) == ("unknown", "unknown")
    rest = [key for key in OF_CAUSE if key not in ("cause", "cause_group")]
    assert {row[key] for key in rest} == {""}
    assert {table.to_pylist()[0][key] for key in rest} == {None}


def test_parquet_ranks_are_numbers_from_0(tmp_path: Path) -> None:
    (row,), table, _ = outputs("12-hostile-words", tmp_path)
    assert row["first_rank"] == "0"
    assert table["first_rank"].to_pylist() == [0]
    assert str(table.schema.field("first_rank").type).startswith("int")
    assert "***" in row["cause_text"]


def metrics(log: Path, to: Path) -> tuple[str, dict[tuple[str, str], float]]:
    """Return the text of the metrics, and the number of disruptions by cause and group."""
    assert run(["analyze", str(log), "-q", "-o", str(to / "m.prom")]) == 0
    text = (to / "m.prom").read_text("utf-8")
    parse: Any = parse_openmetrics
    found = [family for family in parse(text) if family.name == FAMILY]
    return text, {(one.labels["cause"], one.labels["group"]): one.value for family in found for one in family.samples}


@pytest.mark.parametrize("name", ["02-killed-by-the-kernel", "07-next-start-fails", "11-same-step"])
def test_metrics_by_cause_add_up(name: str, tmp_path: Path) -> None:
    text, found = metrics(EXAMPLES / name, tmp_path)
    causes = [row["cause"] for row in EXPECTED[name]["disruptions"]]
    assert {cause: value for (cause, _), value in found.items() if value} == {one: causes.count(one) for one in causes}
    (total,) = (line.rpartition(" ")[2] for line in text.splitlines() if line.startswith("goodput_disruptions{"))
    assert sum(found.values()) == float(total)
    assert ("unknown", "unknown") in found


def test_metric_names_the_group_of_its_cause(tmp_path: Path) -> None:
    _, found = metrics(EXAMPLES / "07-next-start-fails", tmp_path)
    assert found == {("environment", "software"): 1, ("unknown", "unknown"): 1}


def test_metrics_have_no_causes_if_none_is_known(tmp_path: Path) -> None:
    log = Path(__file__).parent.parent.parent / "sample_logs" / "primer-50-percent.jsonl"
    for one in (EXAMPLES / "06-caught", log):
        text, found = metrics(one, tmp_path)
        assert "goodput_disruptions{" in text
        assert found == {}
        assert FAMILY not in text
        (tmp_path / "m.prom").unlink()


def test_timeline_shows_causes_of_attempts(capsys: pytest.CaptureFixture[str]) -> None:
    examples = Path(__file__).parent / "examples"
    assert run(["timeline", str(examples / "02-killed-by-the-kernel"), "--job-name", "job", "-q"]) == 0
    assert "disruption 1: host_oom (dmesg-node-02.log:1)\n" in capsys.readouterr().out
    assert run(["timeline", str(examples / "06-caught"), "--job-name", "job", "-q"]) == 0
    assert "disruption 1:" not in capsys.readouterr().out


@pytest.mark.parametrize("name", JOBS)
def test_without_quotes_only_quotes_are_missing(name: str, tmp_path: Path) -> None:
    with_words, without_words = (
        goodput_cli.analyze(str(EXAMPLES / name), job_name="job", quotes=quotes).disruptions for quotes in (True, False)
    )
    assert [replace(one, cause_text=None) for one in with_words] == list(without_words)
    assert any(one.cause_text for one in with_words) or name == "06-caught"


@pytest.mark.parametrize("command", ["analyze", "disruptions", "timeline", "check"])
def test_without_quotes_no_output_contains_log_lines(command: str, tmp_path: Path) -> None:
    asked = [command, str(EXAMPLES / "12-hostile-words"), "-j", "job", "-q"]
    endings = ("txt", "json", "csv", "md", "html") if command != "analyze" else ("txt", "json", "html", "xml")
    for more in ((), ("--no-quotes",)):
        files = [tmp_path / f"{len(more)}.{ending}" for ending in endings]
        run([*asked, *more, *(word for file in files for word in ("-o", str(file)))])
        texts = [file.read_text("utf-8") for file in files]
        held = [file.suffix for file, text in zip(files, texts, strict=True) if "ValueError" in text]
        assert bool(held) == (not more and command != "timeline"), held


def crashed_at_the_end(to: Path) -> Path:
    """Write the example whose process the kernel killed, without the following start."""
    folder = to / "crashed"
    folder.mkdir()
    for file in (EXAMPLES / "02-killed-by-the-kernel").iterdir():
        (folder / file.name).write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:39]))
    return folder


def test_crash_at_the_end_has_its_cause_in_watch_and_gates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = str(crashed_at_the_end(tmp_path))
    assert run(["watch", log, "-q", "--updates", "1"]) == 0
    assert "crashed (host_oom)" in capsys.readouterr().out
    assert run(["analyze", log, "-q", "--format", "junit"]) == 0
    suite = capsys.readouterr().out
    assert 'name="job.ending.cause" value="host_oom"' in suite
    assert "Crashed at the end, rank 10, node-02, host_oom: `Out of memory: Killed process 4242" in suite
    assert run(["analyze", log, "-q", "--format", "junit", "--no-quotes"]) == 0
    assert "Killed process" not in capsys.readouterr().out


def test_uncaught_exception_ends_a_job_without_an_end_event(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The log of a job without a restart often ends with its exception: 100 % goodput needs that warning."""
    log = tmp_path / "train.log"
    steps = "".join(
        f"[2026-03-01 10:{at // 12:02d}:{at % 12 * 5:02d}] iteration {at:8d}/ 100 | consumed samples: {at * 8} | "
        f"elapsed time per iteration (ms): 5000.0 | global batch size: 8 | lm loss: 2.0 |\n"
        for at in range(1, 61)
    )
    died = '[rank3]: Traceback (most recent call last):\n[rank3]:   File "train.py", line 9, in main\n'
    died += (
        "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. [x](http://a.example) <b>\n"
    )
    log.write_text(steps + died)
    said = "crashed at the end, rank 3, likely device_oom: `torch.OutOfMemoryError: CUDA out of memory."
    for command, shown in (("analyze", said), ("disruptions", said), ("analyze", "crashed (likely device_oom)")):
        assert run([command, str(log), "-q"]) == 0
        assert shown in " ".join(capsys.readouterr().out.split())
    assert run(["analyze", str(log), "-q", "--format", "markdown"]) == 0
    shown = capsys.readouterr().out
    assert "<b>" not in shown
    assert "[x](http://" not in shown
    page = tmp_path / "page.html"
    assert run(["analyze", str(log), "-q", "-o", str(page)]) == 0
    assert "device_oom: `torch.OutOfMemoryError: CUDA out of memory." in page.read_text("utf-8")
    assert "a.example) <b>" not in page.read_text("utf-8")
    assert run(["analyze", str(log), "-q", "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["job"]["ending"], answer["last_end"]["cause"], answer["last_end"]["where"]) == (
        "crashed", "device_oom", f"{log}:63",
    )  # fmt: skip
    log.write_text(steps)
    assert run(["analyze", str(log), "-q", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["last_end"] is None


def page_of(name: str, to: Path) -> str:
    assert run(["analyze", str(EXAMPLES / name), "-j", "job", "-q", "-o", str(to / "page.html")]) == 0
    return (to / "page.html").read_text("utf-8")


def test_page_adds_disruptions_up_by_known_cause(tmp_path: Path) -> None:
    page = page_of("07-next-start-fails", tmp_path)
    by_cause = page.partition('id="by-cause"')[2].partition("</table>")[0]
    rows = [re.sub(r"<[^>]+>", " ", row).split() for row in by_cause.split("<tr>")[1:]]
    assert [row[:2] for row in rows[1:]] == [["environment", "1"], ["unknown", "1"], ["total", "2"]]
    assert "ModuleNotFoundError: No module named" in page


def test_page_has_no_table_of_causes_if_none_is_known(tmp_path: Path) -> None:
    page = page_of("06-caught", tmp_path)
    assert "by-cause" not in page
    assert "why it died" not in page


def test_page_escapes_words_of_a_log(tmp_path: Path) -> None:
    page = page_of("12-hostile-words", tmp_path)
    assert "log line" in page
    assert "<script>alert(1)" not in page


def test_silent_job_shows_its_last_lines(tmp_path: Path) -> None:
    """The job has no end, and the question comes much later than its last line."""
    (tmp_path / "train.log").write_text("\n".join([*attempt_lines(0, 10), *OTHER_END]) + "\n")
    asked = {one.code: one.text for one in goodput_cli.analyze(str(tmp_path), as_of="2026-03-05").insights}
    assert "the job may be dead; its last lines report likely disk_full" in asked["dead_job"]
    (tmp_path / "train.log").write_text("\n".join(attempt_lines(0, 10)) + "\n")
    asked = {one.code: one.text for one in goodput_cli.analyze(str(tmp_path), as_of="2026-03-05").insights}
    assert asked["dead_job"].endswith("the job may be dead")
