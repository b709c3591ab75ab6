"""A third-party package (third_party.py), written against `goodput_cli.plugins` 0.2.0, installed next to the
command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ENTRY_POINTS = """
[goodput_cli.formats]
acme = acme_goodput:AcmeLog
[goodput_cli.sources]
acme = acme_goodput:AcmeSource
acme-api = acme_goodput:AcmeSource
[goodput_cli.renderers]
acme = acme_goodput:acme
short = acme_goodput:short
"""
EPOCH = 1_767_225_600
LOG = [
    {"acme": "boot", "began": EPOCH},
    *({"acme": "step", "began": EPOCH + 20 + 5 * n, "n": n} for n in range(20)),
    {"acme": "save", "began": EPOCH + 120, "ended": EPOCH + 126, "n": 19},
    {"acme": "eval", "began": EPOCH + 126, "ended": EPOCH + 156, "label": "held out"},
    *({"acme": "step", "began": EPOCH + 160 + 5 * n, "n": 20 + n} for n in range(20)),
    {"acme": "nonsense", "began": EPOCH + 255},
    {"acme": "bye", "began": EPOCH + 260},
]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package as an installer does, and write a log of Acme's."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(HERE / "third_party.py", folder / "acme_goodput.py")
    about = folder / "acme_goodput-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-goodput\nVersion: 1\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    (folder / "acme.jsonl").write_text("".join(json.dumps({"acme_job": "a\x1b[1m", **one}) + "\n" for one in LOG))
    return folder


def goodput(folder: Path, line: str) -> tuple[int, str, str]:
    """Run the command with the package and return exit code, standard output and standard error."""
    return started(folder, "-m", "goodput_cli", *line.split())


def started(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Run Python with the package and return the same."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "NO_COLOR": "1", "COLUMNS": "90"}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200)
    return done.returncode, done.stdout, done.stderr


REPORT = """\
a\\x1b[1m
width 80 colour False counted 260000000000
productive 204000000000
custom_badput_events 30000000000
"""


def test_third_party_format_and_renderer_cover_every_second(installed: Path) -> None:
    code, _, said = goodput(installed, "analyze acme.jsonl -o out.acme")
    written = (installed / "out.acme").read_text()
    assert (code, written.startswith(REPORT)) == (0, True), (written, said)
    rows = [line.split() for line in written.splitlines()[2:]]
    assert sum(int(row[1]) for row in rows if len(row) == 2) == 260 * 10**9
    assert ["unknown_event", "warning", "1"] in rows
    assert "that Acme's log has not" in said


@pytest.mark.parametrize("scheme", ["acme", "acme-api"])
def test_third_party_source_returns_batches_and_records(installed: Path, scheme: str) -> None:
    code, written, said = goodput(installed, f"analyze {scheme}://acme.jsonl --format short")
    assert (code, written) == (0, "a\\x1b[1m: 78.46 %\n"), said
    assert "Acme's server says good day" in said


def test_third_party_errors_are_reported_like_built_in_ones(installed: Path) -> None:
    assert goodput(installed, "analyze acme://none.jsonl")[::2] == (
        1, "error: acme://none.jsonl: No such file or directory\ntip: look whether it is there\n",
    )  # fmt: skip
    code, _, said = goodput(installed, "analyze acme://")
    assert (code, "name what to read, as acme://PATH" in said) == (2, True)
    code, _, said = goodput(installed, "analyze acme.jsonl --window 1m -o windows.acme")
    assert (code, "Acme's report has no windows" in said) == (1, True)
    code, _, said = goodput(installed, "steps acme.jsonl --format short")
    assert (code, "short" in said) == (2, True)


TABLES = ("disruptions", "steps", "timeline", "jobs", "check", "fleet --workers 1", "rolling --window 1m")


def file_of(command: str) -> str:
    return f"{command.split()[0]}.acme.dat"


@pytest.fixture(scope="module")
def codes(installed: Path) -> dict[str, int]:
    """Return the exit codes of the commands in `TABLES`, which one process runs."""
    lines = [f"{command} acme.jsonl -q -o {file_of(command)}" for command in TABLES]
    program = "import sys; from goodput_cli.cli.main import run; print(*(run(line.split()) for line in sys.argv[1:]))"
    _, out, _ = started(installed, "-c", program, *lines)
    return dict(zip(TABLES, map(int, out.split()), strict=True))


@pytest.mark.parametrize("command", TABLES)
def test_third_party_renderer_writes_tables_of_other_commands(
    installed: Path, codes: dict[str, int], command: str
) -> None:
    assert codes[command] == (5 if command == "check" else 0)
    lines = (installed / file_of(command)).read_text().splitlines()
    (heads,) = (line.split("|")[1:] for line in lines if line.startswith("columns|"))
    assert all(":" in head for head in heads)
    rows = [line.split("|")[1:] for line in lines if line.startswith("row|")]
    assert {len(row) for row in rows} <= {len(heads)}
    assert bool(rows) == (command != "disruptions")
