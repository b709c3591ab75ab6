"""One analysis in every format: the amounts of all categories are equal, to the precision of the format."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.parquet as parquet
import pytest

from goodput_cli.cli.main import run
from goodput_cli.vocabulary.categories import brief_name

SAMPLES = Path(__file__).parent.parent.parent / "sample_logs"
FILES = ("a.txt", "a.json", "a.csv", "a.md", "a.html", "a.xml", "a.prom", "a.parquet", "a.events.parquet")
LIMIT = "goodput<99"
Amounts = dict[str, Decimal]
"""Seconds by category, `category:LABEL` for custom ones."""


@pytest.fixture(
    scope="module",
    params=[
        ("llm-pretrain.jsonl", "--window", "1h", "--exclude", "2026-01-12T23:00:00Z/2026-01-12T23:30:00Z"),
        ("llm-pretrain.jsonl", "--reference-step-time", "7.9", "--from", "+2h", "--to", "-1h"),
        ("fsdp-2-attempts.jsonl", "--reference-step-time", "0.002569"),
        ("primer-50-percent.jsonl",),
    ],
    ids=["a night", "a part of it", "a checkpoint log", "without a reference"],
)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with one analysis in every format."""
    folder = tmp_path_factory.mktemp("formats")
    log, *options = request.param
    outputs = [word for name in FILES for word in ("-o", str(folder / name))]
    assert run(["analyze", str(SAMPLES / log), *options, *outputs, "-q", "--fail-if", LIMIT]) == 3
    return folder


def test_json_adds_up(written: Path) -> None:
    answer = json.loads((written / "a.json").read_text())
    amounts = [answer["goodput"]["ns"], *(row["ns"] for row in answer["badput"])]
    assert sum(amounts) == answer["window"]["ns"] - answer["window"]["excluded_ns"]


@pytest.mark.parametrize("name", ["a.csv", "a.xml", "a.prom", "a.parquet"])
def test_seconds_are_the_same_to_the_nanosecond(written: Path, name: str) -> None:
    assert SECONDS[name](written / name) == of_json(written / "a.json")


def test_seconds_of_the_page_are_rounded_to_tenths(written: Path) -> None:
    """A page rounds for people, who do not need microseconds, and names categories for them."""
    shown_seconds, amounts = of_html(written / "a.html"), of_json(written / "a.json")
    exact = {"goodput" if name == "productive" else brief_name(name): ns for name, ns in amounts.items()}
    assert shown_seconds.keys() == exact.keys()
    assert all(abs(shown_seconds[name] - exact[name]) <= Decimal("0.05") for name in exact)


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html"])
def test_shares_are_those_of_json_rounded(written: Path, name: str) -> None:
    answer = json.loads((written / "a.json").read_text())
    text = " ".join(Words.of(written / name).split())
    for row in answer["badput"]:
        assert shown(row["percent"]) in text, row
    assert shown(answer["goodput"]["percent"]) in text


@pytest.mark.parametrize("name", ["a.txt", "a.json", "a.md", "a.html", "a.xml", "a.prom"])
def test_threshold_is_in_every_format(written: Path, name: str) -> None:
    text = Words.of(written / name) if name != "a.prom" else (written / name).read_text()
    assert LIMIT.replace("<", "") in re.sub(r"\\?<|&lt;", "", text)


def test_log_has_its_events_and_segments(written: Path) -> None:
    assert parquet.read_metadata(written / "a.events.parquet").num_rows > 0
    assert parquet.read_metadata(written / "a.parquet").num_rows > 0


def shown(percent: float) -> str:
    """Return a percentage as displayed: two decimals, and a small value never becomes 0."""
    if 0 < abs(percent) < 0.005:
        return f"{'-' if percent < 0 else ''}<0.01 %"
    return f"{percent:.2f} %"


def of_json(path: Path) -> Amounts:
    answer = json.loads(path.read_text())
    rows = [{"category": "productive", "label": None, **answer["goodput"]}, *answer["badput"]]
    return {name_of(row["category"], row["label"]): nano(row["ns"]) for row in rows}


def of_csv(path: Path) -> Amounts:
    rows = csv.DictReader(path.read_text().splitlines())
    return {name_of(row["category"], row["label"]): Decimal(row["seconds"]) for row in rows}


def of_html(path: Path) -> Amounts:
    """Return the rows of the first table, without the wall clock at its start."""
    table = path.read_text().split("<tbody>")[1].split("</tbody>")[0]
    rows = [Words.in_text(row).split("\n") for row in table.split("</tr>")[:-1]]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert cells[0][0] == "wall clock"
    return {name: Decimal(seconds) for name, _, _, seconds, *_ in cells[1:] if name not in ("excluded",)}


def of_junit(path: Path) -> Amounts:
    found = {one.get("name", ""): one.get("value", "") for one in ElementTree.parse(path).iter("property")}
    amounts = {"productive": Decimal(found["goodput.seconds"])}
    for name, value in found.items():
        if name.startswith("badput.") and name.endswith(".seconds"):
            category, _, label = name.removeprefix("badput.").removesuffix(".seconds").partition(":")
            amounts[name_of(category, label)] = Decimal(value)
    return amounts


def of_metrics(path: Path) -> Amounts:
    """A recorded category without time is 0 there, so that its series does not end."""
    sample = re.compile(r'^goodput_category_seconds\{.*category="(\w+)",label="(.*)"\} (\S+)$', re.MULTILINE)
    found = {name_of(category, label): Decimal(value) for category, label, value in sample.findall(path.read_text())}
    unknown = json.loads(path.with_suffix(".json").read_text())["not_recorded"]
    assert not found.keys() & set(unknown)
    return {name: seconds for name, seconds in found.items() if seconds}


def of_parquet(path: Path) -> Amounts:
    """Return the sums of segments; slowdown is part of productive ones, and excluded time is outside of the 100 %."""
    sums: Counter[str] = Counter()
    for row in parquet.read_table(path).to_pylist():
        sums[name_of(row["category"], row["label"])] += row["ns"] - row["slowdown_ns"]
        sums["training_slowdown"] += row["slowdown_ns"]
    return {name: nano(ns) for name, ns in sums.items() if ns and name != "excluded"}


SECONDS: dict[str, Callable[[Path], Amounts]] = {
    "a.csv": of_csv,
    "a.xml": of_junit,
    "a.prom": of_metrics,
    "a.parquet": of_parquet,
}


def name_of(category: str, label: str | None) -> str:
    return f"{category}:{label}" if label else category


def nano(ns: int) -> Decimal:
    return Decimal(ns).scaleb(-9)


class Words(HTMLParser):
    """The text of a page, one element per line, without scripts and drawings."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, _: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in ("script", "style", "svg")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("script", "style", "svg")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.found.append(data)

    @classmethod
    def in_text(cls, text: str) -> str:
        page = cls()
        page.feed(text)
        return "\n".join(page.found)

    @classmethod
    def of(cls, path: Path) -> str:
        text = path.read_text(encoding="utf-8")
        return cls.in_text(text) if path.suffix == ".html" else text
