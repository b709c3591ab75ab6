"""No command overwrites a file that it reads, and output of a monitor is not a log."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest

from goodput_cli.cli.main import run
from tests.monitor.monitors import Job, ended, monitor, monitor_job
from tests.support.commands import until

pytestmark = pytest.mark.usefixtures("folder")
Output = pytest.CaptureFixture[str]
MAPPING = """
name = "mine"
[[rule]]
event = "step"
line = 'step {step:int}'
"""


@pytest.fixture
def log(folder: Path) -> Path:
    """Write `logs/run.jsonl`, with a symbolic link and a hard link next to its directory."""
    (folder / "logs").mkdir()
    path = ended(folder / "logs" / "run.jsonl")
    (folder / "link").symlink_to(path)
    (folder / "second").hardlink_to(path)
    (folder / "tb" / "goodput").mkdir(parents=True)
    (folder / "tb" / "goodput" / ".goodput-monitor.json").symlink_to(path)
    return path


@pytest.mark.parametrize("source", ["logs/run.jsonl", "logs", "logs/*.jsonl", "link", "{log}", "file://{log}"])
@pytest.mark.parametrize(
    "target", ["prom:logs/run.jsonl", "json:logs/run.jsonl", "prom:link", "json:link", "prom:second", "tensorboard:tb"]
)
def test_monitor_never_overwrites_a_followed_log(log: Path, source: str, target: str, capsys: Output) -> None:
    before = log.read_bytes()
    assert monitor(source.format(log=log), "--publish", target, "--updates", "1", "-q") == 2
    assert "is one of the input logs" in capsys.readouterr().err
    assert log.read_bytes() == before
    assert Path("second").samefile(log)


@pytest.mark.parametrize("more", ["--log-file logs/run.jsonl", "--history logs/run.jsonl", "--history logs"])
def test_monitor_never_overwrites_another_named_log(log: Path, more: str, capsys: Output) -> None:
    before = log.read_bytes()
    ended(Path("other.jsonl"))
    assert monitor("other.jsonl", *more.split(), "--publish", "prom:link", "--updates", "1", "-q") == 2
    assert "is one of the input logs" in capsys.readouterr().err
    assert log.read_bytes() == before


@pytest.mark.parametrize("second", ["json:x.prom", "prom:./x.prom", "prom:logs/../x.prom", "json:to-x"])
def test_two_targets_never_write_one_file(log: Path, second: str, capsys: Output) -> None:
    Path("to-x").symlink_to("x.prom")
    assert monitor("logs", "--publish", "prom:x.prom", "--publish", second, "--updates", "1", "-q") == 2
    assert (
        f"prom:x.prom and {second} write the same file\ntip: use a different file for each target"
        in capsys.readouterr().err
    )
    assert not Path("x.prom").exists()


def test_monitor_never_overwrites_a_future_log(capsys: Output) -> None:
    assert monitor("new.jsonl", "--publish", "json:./new.jsonl", "--wait", "0") == 2
    assert "is one of the input logs" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["prom", "json"])
def test_monitor_never_overwrites_a_log_that_appears_later(kind: str, capsys: Output) -> None:
    job, target = Job(Path("logs/run.jsonl")), Path("logs/late.jsonl")
    job.path.parent.mkdir()
    late = ended(Path("late")).read_bytes()

    def play() -> None:
        job.start()
        job.steps(0, 3)
        until(target.exists)
        os.replace("late", target)
        job.end()

    targets = ["--publish", f"{kind}:{target}", "--grace", "0.5"]
    assert monitor_job(play, "logs", *targets, "--interval", "0.1", "--updates", "20", "-q") == 1
    assert target.read_bytes() == late
    assert "late.jsonl: is one of the input logs" in capsys.readouterr().err


@pytest.mark.parametrize(
    "target", ["json:logs/goodput.jsonl", "json:logs/a.json", "prom:logs/a.txt", "tensorboard:logs/tb"]
)
def test_monitor_output_in_the_followed_directory_is_not_a_log(target: str, capsys: Output) -> None:
    Path("logs").mkdir()
    ended(Path("logs/run.jsonl"))
    assert run(["jobs", "logs", "--format", "json"]) == 0
    alone = json.loads(capsys.readouterr().out)["jobs"]
    for source in ("logs", "logs", "logs/*"):  # as after a restart
        assert monitor(source, "--publish", target, "--updates", "2", "--interval", "0.1") == 0
        assert "unrecognised_lines" not in capsys.readouterr().err
    for source in ("logs", "logs/*"):
        run(["check", source, "--format", "json"])
        found = {one["code"]: one for one in json.loads(capsys.readouterr().out)["findings"]}
        assert "unrecognised_lines" not in found
        assert "not_a_log" in found or target == "tensorboard:logs/tb"
        assert run(["jobs", source, "--format", "json"]) == 0
        assert json.loads(capsys.readouterr().out)["jobs"] == alone


def test_job_next_to_monitor_files_is_followed_to_its_end(capsys: Output) -> None:
    job = Job(Path("logs/run.jsonl"))
    job.path.parent.mkdir()

    def play() -> None:
        job.start()
        until(Path("logs/m.jsonl").exists)
        job.steps(0, 3)
        job.end()

    assert monitor_job(play, "logs", "--publish", "json:logs/m.jsonl", "--interval", "0.1", "--settle", "0.3") == 0
    last = json.loads(Path("logs/m.jsonl").read_text().splitlines()[-1])
    assert (last["job"]["last_step"], last["job"]["ending"]) == (3, "clean")
    assert "m.jsonl" not in capsys.readouterr().err


TABLES = {
    "fleet logs --labels t.csv -o t.csv": "--labels",
    "fleet logs --sacct t.txt -o t.txt": "--sacct",
    "fleet logs --allocations t.csv -o link.csv": "--allocations",
    "fleet logs --capacity t.json -o t.json": "--capacity",
    "analyze logs --mapping t.csv -o t.csv": "--mapping",
    "steps logs --mapping t.csv -o t.csv": "--mapping",
    "check logs --mapping t.csv --rejects t.csv": "--mapping",
    "check --explain t.txt:3 -o t.txt": "--explain",
    "analyze logs --config t.json -o t.json": "--config",
    "compare logs logs --config t.json -o t.json": "--config",
    "fetch logs --config t.jsonl -o t.jsonl": "--config",
    "monitor logs --config t.toml --publish prom:t.toml": "--config",
    "monitor logs --publish json:goodput.toml": "--config",
    "monitor logs --mapping t.csv --publish json:link.csv": "--mapping",
}


@pytest.mark.parametrize("how", ["", "--force", "CI"])
@pytest.mark.parametrize("line", TABLES)
def test_tables_mappings_and_settings_are_not_replaced(
    log: Path, line: str, how: str, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "CI":
        monkeypatch.setenv("CI", "true")
    name = next((one.removesuffix(":3") for one in shlex.split(line) if one.startswith("t.")), "t.csv")
    text = 'timezone = "UTC"\n' if "config" in TABLES[line] else MAPPING
    for written in (name, "goodput.toml"):
        Path(written).write_text(text if written == name else 'timezone = "UTC"\n')
    Path("link.csv").symlink_to(name)
    force = ["--force"] if how == "--force" and not line.startswith("monitor") else []
    assert run([*shlex.split(line), *force]) == 2
    assert f": is an input ({TABLES[line]})\ntip: choose another output file" in capsys.readouterr().err
    assert (Path(name).read_text(), Path("goodput.toml").read_text()) == (text, 'timezone = "UTC"\n')


def test_table_in_a_directory_without_steps_is_kept(log: Path, capsys: Output) -> None:
    table = Path("logs/results.csv")
    table.write_text("epoch,time,lr\n1,2,3\n")
    assert run(["analyze", "logs", "-o", str(table), "--force"]) == 2
    assert table.read_text() == "epoch,time,lr\n1,2,3\n"


def test_report_next_to_logs_is_replaced(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report is not a log. In CI the second run finds it."""
    monkeypatch.setenv("CI", "1")
    for _ in range(2):
        assert run(["analyze", "logs", "-q", "-o", "logs/report.json"]) == 0
    assert json.loads(Path("logs/report.json").read_text())["job"]["attempts"] == 1
