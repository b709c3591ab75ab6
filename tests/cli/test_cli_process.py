"""The command as a process: behavior that is visible only from outside."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import IO

import pytest

from tests.support.answers import check_golden
from tests.support.commands import LONG_ENOUGH, until

ROOT = Path(__file__).parent.parent.parent
SAMPLE = ROOT / "sample_logs" / "primer-50-percent.jsonl"
STEPS = ROOT / "sample_logs" / "llm-pretrain.jsonl"
SHELL = pytest.mark.skipif(not os.path.exists("/bin/sh"), reason="needs a shell")


def goodput(
    *arguments: str | Path, data: bytes | None = None, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    settings = {"PYTHONIOENCODING": "utf-8", "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "goodput_cli", *map(str, arguments)],
        input=data,
        capture_output=True,
        env=os.environ | settings | environment,
        cwd=ROOT,
        check=False,
    )


def test_help_is_as_expected() -> None:
    check_golden("help.txt", goodput("--help").stdout.decode())
    check_golden("help-analyze.txt", goodput("analyze", "--help").stdout.decode())
    bare = goodput()
    assert (bare.returncode, bare.stdout) == (2, b"")
    assert b"Usage: goodput" in bare.stderr


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys\nfrom goodput_cli.cli.main import run\nrun(['analyze', '--help'])\n"
        "heavy = {'numpy', 'pandas', 'pyarrow', 'dateutil', 'google', 'orjson', 'msgspec'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("jinja2", "report.html"), ("vl_convert", "report.html"), ("vl_convert", "picture.svg"),
        ("pyarrow", "run.parquet"),
    ],
)  # fmt: skip
def test_missing_package_is_reported_before_reading(package: str, name: str, tmp_path: Path) -> None:
    out = tmp_path / name
    program = f"import sys; sys.modules[{package!r}] = None; from goodput_cli.__main__ import main; main()"
    command = [sys.executable, "-c", program, "analyze", str(tmp_path / "missing.jsonl"), "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False, timeout=120)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: the package {package} is missing or broken\ntip: install goodput again: ")
    assert "pip install '.'" in done.stderr
    assert "Traceback" not in done.stderr
    assert not out.exists()


def test_version_is_printed() -> None:
    done = goodput("--version")
    assert (done.returncode, done.stdout.decode()) == (0, f"goodput {version('goodput-cli')}\n")


def test_worked_example_has_its_figures() -> None:
    done = goodput("analyze", SAMPLE, "--reference-step-time", "120")
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
    check_golden("sample-primer.txt", done.stdout.decode().replace(str(SAMPLE), "primer.jsonl"))


def test_standard_input_gives_the_same_figures() -> None:
    rows = [
        goodput("analyze", *source, "--format", "csv", data=data).stdout
        for source, data in ((["-"], SAMPLE.read_bytes()), ([SAMPLE], None))
    ]
    assert rows[0] == rows[1]
    assert rows[0].startswith(b"category,")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_limited_encoding_gets_ascii_bars(encoding: str) -> None:
    done = goodput("analyze", SAMPLE, PYTHONIOENCODING=encoding)
    assert done.returncode == 0
    assert b"####" in done.stdout


@SHELL
def test_closed_reader_is_not_an_error() -> None:
    pipe = f'{{ "{sys.executable}" -m goodput_cli analyze "{SAMPLE}" -q; echo "code $?" >&2; }} | true'
    done = subprocess.run(["/bin/sh", "-c", pipe], capture_output=True, cwd=ROOT, check=False)
    assert done.stderr == b"code 0\n"


def shell(redirection: str, command: str = f'analyze "{SAMPLE}" -q') -> tuple[int, bytes, bytes]:
    command = f'"{sys.executable}" -m goodput_cli {command} {redirection}'
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, cwd=ROOT, check=False)
    return done.returncode, done.stdout, done.stderr


@SHELL
def test_closed_streams_are_tolerated() -> None:
    assert shell(">&-") == (0, b"", b"")
    assert shell("2>&- --format csv")[0] == 0
    code, _, said = shell("- <&-")
    assert (code, b"standard input is closed" in said) == (1, True)


@SHELL
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("command", [f'analyze "{SAMPLE}" -q', "--help", "fleet --help", "--version", "help formats"])
def test_full_disk_is_one_sentence(command: str) -> None:
    code, _, said = shell("> /dev/full", command)
    assert code == 1
    assert said.startswith(b"error: cannot write to standard output: No space left on device\ntip: free some space")


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_interrupt_exits_with_130() -> None:
    command = [sys.executable, "-m", "goodput_cli", "analyze", "-"]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdin is not None
    log = SAMPLE.read_bytes()
    for _ in range(70):  # This is more than one read takes, so an empty pipe means that reading has begun.
        process.stdin.write(log)
    process.stdin.flush()
    until(lambda: count_unread_bytes(process.stdin) == 0)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=LONG_ENOUGH)
    assert process.returncode == 130
    assert b"Traceback" not in said


def count_unread_bytes(pipe: IO[bytes] | None) -> int:
    """Return the number of bytes of a pipe that its reader has not taken yet."""
    import fcntl
    import termios

    assert pipe is not None
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def test_interrupt_before_the_command_is_loaded_exits_with_130() -> None:
    code = (
        "import os, signal, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'goodput_cli.cli.main': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from goodput_cli.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (130, b"Interrupted.\n")


def test_missing_file_is_one_sentence() -> None:
    done = goodput("analyze", "no-such-file.jsonl")
    assert (done.returncode, done.stdout) == (1, b"")
    assert re.match(rb"error: .*no-such-file.jsonl", done.stderr)


def test_cloud_logging_without_its_source_is_one_sentence() -> None:
    done = goodput("analyze", "-j", "job")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"Traceback" not in done.stderr
