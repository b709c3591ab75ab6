"""For any source, memory is bounded, reading ends, and no log is overwritten."""

from __future__ import annotations

import gzip
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from goodput_cli import fetch
from goodput_cli.cli.main import run
from goodput_cli.errors import SourceError, UsageError
from goodput_cli.events.read import read_events
from goodput_cli.events.schema import EventLog
from goodput_cli.sources import blocks

SAMPLES = Path(__file__).parent.parent.parent / "sample_logs"
PRIMER = SAMPLES / "primer-50-percent.jsonl"
MIB = 1 << 20


def codes(log: EventLog) -> list[str]:
    return [one.code for one in log.diagnostics]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return a log in a separate folder."""
    path = tmp_path / "logs" / "run.jsonl"
    path.parent.mkdir()
    shutil.copy(PRIMER, path)
    return path


def a_link(log: Path) -> tuple[str, Path]:
    link = log.parent.parent / "link.jsonl"
    link.symlink_to(log)
    return str(log), link


def a_second_name(log: Path) -> tuple[str, Path]:
    name = log.parent.parent / "name.jsonl"
    os.link(log, name)
    return str(log), name


def a_copy(log: Path) -> tuple[str, Path]:
    return str(log), Path(shutil.copy(log, log.parent.parent / "copy.jsonl"))


OVER_A_LOG: dict[str, Callable[[Path], tuple[str, Path]]] = {
    "the file": lambda log: (str(log), log),
    "its folder": lambda log: (str(log.parent), log),
    "a glob": lambda log: (f"{log.parent}/*", log),
    "a URI": lambda log: (f"file://{log}", log),
    "a link": a_link,
    "a link as the source": lambda log: (str(a_link(log)[1]), log),
    "a second name": a_second_name,
    "a copy": a_copy,
}


@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize("case", OVER_A_LOG)
def test_snapshot_never_overwrites_its_log(log: Path, case: str, force: bool) -> None:
    source, output = OVER_A_LOG[case](log)
    with pytest.raises(UsageError, match="is one of the input logs"):
        fetch([source], output, force=force)
    assert log.read_bytes() == output.read_bytes() == PRIMER.read_bytes()


def test_snapshot_never_overwrites_standard_input(log: Path) -> None:
    command = [sys.executable, "-m", "goodput_cli", "fetch", "-", "-o", str(log), "--force"]
    with log.open("rb") as stream:
        done = subprocess.run(command, stdin=stream, capture_output=True, text=True, check=False)
    assert (done.returncode, log.read_bytes()) == (UsageError.exit_code, PRIMER.read_bytes())
    assert "is one of the input logs" in done.stderr


def test_report_never_overwrites_a_log_of_a_folder(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = log.rename(log.with_suffix(".json"))
    assert run(["analyze", str(log.parent), "-o", str(report), "--force"]) == UsageError.exit_code
    assert "is one of the input logs" in capsys.readouterr().err
    assert report.read_bytes() == PRIMER.read_bytes()


def test_snapshot_is_replaced_by_a_newer_one(log: Path, tmp_path: Path) -> None:
    output = tmp_path / "snapshot.jsonl"
    assert fetch([str(log)], output).lines == fetch([str(log)], output, force=True).lines


PEAK_OF = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
"""


def test_unterminated_line_is_cut(tmp_path: Path) -> None:
    """512 MiB of zeros after a log, as a crash of the machine leaves them: the memory of the process does not grow with
    it."""
    path = tmp_path / "run.jsonl"
    shutil.copy(PRIMER, path)
    os.truncate(path, 1 << 29)
    command = [sys.executable, "-m", "goodput_cli", "check", str(path), "--format", "json"]
    # Use a small process in between: a peak includes the memory of the forking process, and this one may be large.
    measured = subprocess.run([sys.executable, "-c", PEAK_OF, *command], capture_output=True, check=False)
    assert b"line_too_long" in measured.stdout
    assert int(measured.stderr.splitlines()[-1]) << 10 < 350 * MIB


def test_lines_after_a_long_line_are_read(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    first, *others = PRIMER.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + b'{"x": "' + b"x" * (17 * MIB) + b'"}\n' + b"".join(others))
    cut = read_events([str(path)])
    assert "line_too_long" in codes(cut)
    assert len(cut.table) == len(read_events([str(PRIMER)]).table)
    (bad,) = [one for one in cut.diagnostics if one.code == "malformed_lines"]
    assert bad.where == (f"{path}:2",)


def test_longer_line_is_read_with_the_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(PRIMER.read_bytes() + b'{"x": "' + b"x" * (17 * MIB) + b'"}\n')
    run(["check", str(path)])
    assert "line_too_long" in capsys.readouterr().out
    run(["check", str(path), "--longest-line", "32"])
    assert "line_too_long" not in capsys.readouterr().out


def test_array_may_be_one_long_line(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    lines = PRIMER.read_text().splitlines()
    path.write_text("[" + ",".join([lines[0], '{"x": "' + "x" * (17 * MIB) + '"}', *lines[1:]]) + "]")
    log = read_events([str(path)])
    assert "line_too_long" not in codes(log)
    assert len(log.table) == len(read_events([str(PRIMER)]).table)


def test_progress_bar_states_divide_a_long_line() -> None:
    """A program that only draws a progress bar writes no line end for days."""
    state = b"\r 50%|#####     | 5/10 [00:05<00:05,  1.00s/it]"
    chunks = [state * 1000] * 1000
    read = b"".join(batch.data for batch in blocks.line_blocks("s", chunks, longest_mib=1))
    assert len(read) == len(state) * 10**6
    assert read.count(b"\r") + read.count(b"\n") == 10**6
    assert max(map(len, read.split(b"\n"))) <= MIB + len(chunks[0])


def test_decompression_bomb_is_not_read_further(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "MOST_GROWN_BYTES", 1 << 26)
    monkeypatch.setattr(blocks, "MOST_GROWTH", 100)
    path = tmp_path / "run.jsonl.gz"
    path.write_bytes(gzip.compress(PRIMER.read_bytes()) + gzip.compress(bytes(1 << 26)) * 30)
    log = read_events([str(path)])
    (cut,) = [one for one in log.diagnostics if one.code == "truncated_file"]
    assert "expands to more than 100 times its size" in cut.message
    assert len(log.table) == len(read_events([str(PRIMER)]).table)


def test_device_is_not_a_log() -> None:
    with pytest.raises(SourceError, match="is a device without an end"):
        read_events(["/dev/zero"])


def test_pipe_in_a_directory_is_skipped(log: Path) -> None:
    os.mkfifo(log.with_name("pipe.jsonl"))
    assert len(read_events([str(log.parent)]).table) == len(read_events([str(PRIMER)]).table)


def test_very_many_names_give_one_message(tmp_path: Path) -> None:
    path = tmp_path / "names.jsonl"
    with path.open("w") as stream:
        stream.writelines(f'{{"job_name": "job-{n}", "job_start_time": {1.7e9 + n}}}\n' for n in range(50_000))
    command = [sys.executable, "-m", "goodput_cli", "analyze", str(path)]
    limit = 2 << 30
    done = subprocess.run(
        command, capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)),
    )  # fmt: skip
    assert done.returncode == UsageError.exit_code
    assert "the log contains 50000 jobs: " in done.stderr
    assert len(done.stderr) < 1000


@pytest.mark.parametrize(
    "text",
    [
        ".".join("a" * 300_000) + " = 1",
        "[job." + ".".join("a" * 3000) + "]",
        "exclude = " + "[" * 3000 + "]" * 3000,
        "a = " + "{a = " * 3000 + "1" + "}" * 3000,
    ],
    ids=["key", "table", "array", "inline"],
)
def test_deeply_nested_settings_are_handled(
    log: Path, tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "goodput.toml"
    settings.write_text(text + "\n")
    assert run(["analyze", str(log), "--config", str(settings)]) == UsageError.exit_code
    assert "is not TOML" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    [
        " " * 50_000 + "x 1.00s/it]",
        ":" + " " * 50_000 + ":" + "1" * 50_000 + "it/s",
        '{"' + '\\"' * 200_000,
    ],
    ids=["bar of spaces", "bar of digits", "escaped quotes"],
)
def test_patterns_take_linear_time(tmp_path: Path, line: str) -> None:
    """A pattern with quadratic time would exceed the time of a test."""
    for name, text in {"run.log": f"{line}\n{line}\n", "run.json": f"[{{\n{line}\n}}]\n"}.items():
        path = tmp_path / name
        path.write_text(text)
        assert len(read_events([str(path)]).table) == 0
