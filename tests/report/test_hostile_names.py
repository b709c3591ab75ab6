"""Hostile names from a log, in every command and every format: harmless, and still recognizable."""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from rich.cells import cell_len

from goodput_cli.cli.main import run
from goodput_cli.report.base import format_names, is_binary
from tests.support.draws import EXPLORES

BASE = 1_767_225_600
NAMES = {
    "script": "evil <script>alert(1)</script><img src=x onerror=alert(2)>",
    "formula": "=cmd|' /C calc'!A0",
    "markup": "[red]evil[/red] [link=http://e.vil]x[/link] :warning:",
    "escapes": "evil \x1b[31mred\x1b]0;title\x07\x1b[2J\x9b31m\x00 end",
    "lines": "evil\r\n# heading\n| a | b |\n\n```sh\ud800\u2028two",
    "right-to-left": "evil \u202egnp.exe\u2066\u200f\u200b end",
    "long": "evil " + "X" * 10_000,
    "markdown": "evil `rm` *b* _i_ [a](http://e.vil) <!-- ![i](x) @all #1 ~~s~~ $x$ www.e.vil https://e.vil",
    "template": "evil {{7*7}} ${jndi:x} %(x)s {0} '\"&;--",
}
COMMANDS = ("analyze", "rolling", "timeline", "disruptions", "steps", "advise", "jobs", "check", "compare")
SAMPLE = Path(__file__).parent.parent.parent / "sample_logs" / "llm-pretrain-r2.jsonl"
MORE = {"analyze": ("--fail-under", "1"), "compare": (str(SAMPLE), "--warn-if", "goodput:-1pp")}
FORMATS = [name for name in format_names() if not is_binary(name)]
OWN_ENDINGS = {"table": "txt", "markdown": "md", "junit": "xml", "openmetrics": "prom"}


def hostile_log(folder: Path, name: str) -> Path:
    """Write a job of two attempts with an evaluation. All have a hostile name, and so has the file, as far as
    possible."""
    second = iter(range(10_000))
    lines: list[dict[str, str | int]] = []
    for attempt in range(2):
        lines.append({"job_start_time": BASE + 100 * attempt + next(second)})
        lines += [{"step_count": n, "step_start_time": BASE + 100 * attempt + 10 + n} for n in range(4 + attempt)]
        for edge in ("start", "end"):
            time = BASE + 100 * attempt + 30 + next(second)
            lines.append({"custom_badput_event_type": name, f"custom_badput_event_{edge}_time": time})
        lines.append({"tpu_init_start_time": BASE + 100 * attempt + 50 + next(second)})
    file = folder / (re.sub(r"[\0/\ud800]", "", name)[:80] + ".jsonl")
    file.write_text(
        "".join(json.dumps({"job_name": name, **line}) + "\n" for line in lines) + name.replace("\ud800", "")
    )
    return file


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (command, name)
        for row, command in enumerate(COMMANDS)
        for column, name in enumerate(NAMES)
        if EXPLORES or not (row + column) % 2
    ],
)
def test_hostile_name_is_harmless_in_every_format(
    command: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One format comes on standard output, another one for each name, and the others in files."""
    line = [command, str(hostile_log(tmp_path, NAMES[name])), *MORE.get(command, ())]
    offered = formats_of(command)
    capsys.readouterr()
    first = offered[list(NAMES).index(name) % len(offered)]
    files = {each: tmp_path / f"answer.{OWN_ENDINGS.get(each, each)}" for each in offered if each != first}
    assert run([*line, "--format", first]) in (0, 5)
    out, err = capsys.readouterr()
    assert run([*line, *(part for path in files.values() for part in ("-o", str(path)))]) in (0, 5)
    answers = {first: out, **{each: path.read_text("utf-8") for each, path in files.items()}}
    for text in (err, *capsys.readouterr()):
        assert_visible(text)
        assert "Traceback" not in text
    for each, answer in answers.items():
        assert_visible(OWN_SCRIPT.sub("", answer))
        CHECKS.get(each, as_text)(answer)


@pytest.mark.parametrize("name", NAMES)
def test_hostile_name_is_harmless_without_a_picture(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["advise", str(hostile_log(tmp_path, NAMES[name])), "--format", "svg"]) == 2
    said = capsys.readouterr().err
    assert_visible(said)
    assert "there is nothing to draw" in said


@cache
def formats_of(command: str) -> list[str]:
    """Return the formats in which a command answers for such a log."""
    with TemporaryDirectory() as folder:
        line = [command, str(hostile_log(Path(folder), "harmless")), *MORE.get(command, ()), "-q"]
        offered = [each for each in FORMATS if run([*line, "--format", each]) != 2]
    assert len(offered) >= 4
    return offered


def assert_visible(text: str) -> None:
    """Assert that a text has no control character except line ends, no bidirectional or hidden text, and can be
    encoded."""
    text.encode()
    unseen = {char for char in text if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")} - {"\n"}
    assert not unseen


def as_text(out: str) -> None:
    assert out.endswith("\n")


def as_table(out: str) -> None:
    lines = [line for line in out.splitlines() if not line.startswith("    goodput ")]  # commands are never cut
    assert max(map(cell_len, lines)) <= 80


def as_json(out: str) -> None:
    assert out.isascii()
    json.loads(out)


def as_csv(out: str) -> None:
    rows = list(csv.reader(io.StringIO(out)))
    assert len({len(row) for row in rows}) == 1
    for cell in (cell for row in rows for cell in row):
        assert not cell.startswith(("=", "@", "\t", "\r")), cell
        assert not cell.startswith(("+", "-")) or re.fullmatch(r"[+-][\d.e+-]+", cell), cell


def as_markdown(out: str) -> None:
    code = re.compile(r"(?<!\\)`[^`]*(?<!\\)`")
    for line in out.splitlines():
        words = code.sub("", line)
        assert not re.search(r"<(?!/?(details|summary|br|sub|b)\b)", words), line
        assert not re.search(r"(?<!\\)\]\(", words), line
        assert not re.search(r"(?<!\\)@|(?<!\\)!\[|https?://|(?<!\\)\$", words), line
    for table in tables(out):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table}) == 1, table


def tables(out: str) -> Iterator[list[str]]:
    table: list[str] = []
    for line in [*out.splitlines(), ""]:
        if line.startswith("|"):
            table.append(line)
        elif table:
            yield table
            table = []


def as_xml(out: str) -> None:
    (suite,) = ElementTree.fromstring(out)
    assert [part.tag for part in suite] == ["properties", "testcase", "system-out", "system-err"]


def as_metrics(out: str) -> None:
    assert out.endswith("\n# EOF\n")
    for parse in (parse_openmetrics, parse_text):
        assert all(sample.labels["job_name"] for family in parse(out) for sample in family.samples)


class ActiveElements(HTMLParser):
    """The elements and attributes of a page that can run code."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("img", "iframe", "object", "embed", "base", "form"):
            self.found.append(tag)
        self.found += [name for name, value in attrs if name.startswith("on") or "javascript:" in (value or "")]


def as_page(out: str) -> None:
    """Assert that no element comes from a name: only scripts of the page run, under the hashes of its policy."""
    page = ActiveElements()
    page.feed(OWN_SCRIPT.sub("", out))
    assert not page.found
    assert "<script>alert" not in out


OWN_SCRIPT = re.compile(r"<script\b.*?</script>", re.DOTALL)
CHECKS = {
    "table": as_table,
    "json": as_json,
    "csv": as_csv,
    "markdown": as_markdown,
    "html": as_page,
    "svg": as_page,
    "junit": as_xml,
    "openmetrics": as_metrics,
}


@pytest.mark.parametrize("name", NAMES)
def test_hostile_name_stays_recognizable(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = hostile_log(tmp_path, NAMES[name])
    for format_ in ("table", "csv", "markdown"):
        assert run(["analyze", str(log), "--format", format_, "--quiet"]) == 0
        assert re.search("evil|cmd", capsys.readouterr().out, re.IGNORECASE)
    assert run(["analyze", str(log), "--format", "json", "--quiet"]) == 0
    shown = json.loads(capsys.readouterr().out)["job"]["name"]
    assert shown == NAMES[name].replace("\ud800", "\ufffd")
