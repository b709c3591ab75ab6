"""A mapping as its file declares it: every key checked, every mistake with its place."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping as Keys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from goodput_cli.errors import UsageError
from goodput_cli.events.text.marks import What

EVENTS = {what.value: what for what in What}
STEPS = ("done", "index", "start")
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0, "per_s": -1.0}
"""Seconds a unit; -1: it is a rate, of which one over it is meant."""
TIME_FORMATS = ("epoch_s", "epoch_ms", "epoch_us", "epoch_ns", "iso", "glog")
_EDGES = ("point", "begin", "end")
_AMOUNTS = ("each", "took")
_TOP = {"name", "job", "zone", "steps", "rule", "sample", "csv"}
_RULE = {
    "event", "line", "regex", "keys", "where", "step", "each", "took", "time", "edge", "begins", "label", "also",
    "slow", "once",
}  # fmt: skip
_SAMPLE = {"line", "gives"}
_GIVES = {"event", "step", "each", "took", "time", "label", "rank", "edge", "job"}


@dataclass(frozen=True)
class Place:
    """Where something stands in a file."""

    file: str
    line: int = 1
    column: int = 1

    def error(self, sentence: str) -> UsageError:
        """A mistake at this place."""
        return UsageError(f"{self.file}:{self.line}:{self.column}: {sentence}")


@dataclass(frozen=True)
class DeclaredRule:
    """One `[[rule]]`."""

    event: What
    place: Place
    line: str = ""
    regex: str = ""
    keys: Keys[str, tuple[str, ...]] = field(default_factory=dict)
    where: Keys[str, Any] = field(default_factory=dict)
    units: Keys[str, float] = field(default_factory=dict)
    add: int = 0
    cursor: bool = False
    time_field: str = ""
    time_format: str = ""
    offset: float = 0.0
    edge: str = "point"
    begins: bool = False
    label: str = ""
    also: bool = False
    slow: bool = False
    once: bool = False


@dataclass(frozen=True)
class DeclaredSample:
    """One `[[sample]]`."""

    line: str
    gives: Keys[str, Any]
    place: Place


@dataclass(frozen=True)
class Declared:
    """A mapping."""

    name: str
    rules: tuple[DeclaredRule, ...]
    samples: tuple[DeclaredSample, ...]
    place: Place
    job: str = ""
    job_field: str = ""
    zone: str = ""
    steps: str = "done"
    delimiter: str = ""


def read_mapping(text: str, file: str) -> Declared:
    """The mapping in the text of a TOML file. Raises UsageError with file, line and column."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _toml_error(file, str(error)) from None
    return declared(document, _Places(file, text))


def mappings_in(text: str, file: str, above: Sequence[str]) -> list[Declared]:
    """The tables such as `[tool.goodput.mapping.NAME]` in the settings of a project. above: the keys before the name.
    Raises UsageError with file, line and column."""
    try:
        settings = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _toml_error(file, str(error)) from None
    for key in above:
        settings = settings.get(key, {}) if isinstance(settings, dict) else {}
    found = []
    for name, table in settings.items() if isinstance(settings, dict) else ():
        places = _Places(file, text, f"{'.'.join(above)}.{name}.")
        if not isinstance(table, dict):
            raise places.of_top("name").error(f"mapping.{name} is no table")
        found.append(declared({"name": name, **table}, places))
    return found


def _toml_error(file: str, message: str) -> UsageError:
    place = re.search(r"\(at line (\d+), column (\d+)\)", message)
    where = Place(file, int(place[1]), int(place[2])) if place else Place(file)
    return where.error(f"no TOML: {message.split(' (at ')[0]}")


class _Places:
    """Finds where keys stand in the text of a file: `tomllib` does not say."""

    def __init__(self, file: str, text: str, prefix: str = "") -> None:
        self._file, self._prefix = file, prefix
        self._lines = text.splitlines()

    def of_top(self, key: str) -> Place:
        return self._key(0, key, r"^\s*\[\[")

    def of(self, table: str, number: int, key: str = "") -> Place:
        """The place of a key of the table with this number, from 0; without a key that of its header."""
        header = re.compile(rf"^\s*\[\[\s*{re.escape(self._prefix + table)}\s*\]\]")
        rows = [at for at, line in enumerate(self._lines) if header.match(line)]
        if number >= len(rows):
            return Place(self._file)
        if not key:
            return Place(self._file, rows[number] + 1, 1 + self._lines[rows[number]].index("["))
        return self._key(rows[number] + 1, key, r"^\s*\[", rows[number])

    def _key(self, start: int, key: str, until: str, otherwise: int = 0) -> Place:
        pattern = re.compile(rf"^\s*[\"']?{re.escape(key)}[\"']?\s*[.=]")
        for at in range(start, len(self._lines)):
            found = pattern.match(self._lines[at])
            if found:
                indent = len(self._lines[at]) - len(self._lines[at].lstrip())
                return Place(self._file, at + 1, indent + 1)
            if re.match(until, self._lines[at]):
                break
        return Place(self._file, otherwise + 1)


def declared(document: Keys[str, Any], places: _Places) -> Declared:
    """A checked mapping. Raises UsageError."""
    for key in document.keys() - _TOP:
        raise places.of_top(key).error(f"unknown key `{key}`; a mapping has {', '.join(sorted(_TOP))}")
    name = document.get("name")
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9][a-z0-9_.-]*", name):
        raise places.of_top("name").error("a mapping needs a `name` of small letters, digits, `-`, `_` and `.`")
    tables = document.get("rule")
    if not isinstance(tables, list) or not tables or not all(isinstance(one, dict) for one in tables):
        raise places.of_top("rule").error("a mapping needs `[[rule]]` tables")
    rules = tuple(_rule(table, number, places) for number, table in enumerate(tables))
    samples = document.get("sample", [])
    if not isinstance(samples, list) or not all(isinstance(one, dict) for one in samples):
        raise places.of_top("sample").error("`sample` is written as `[[sample]]` tables")
    if not any(rule.event in (What.STEP, What.STEP_START, What.SAVED, What.START) for rule in rules):
        raise places.of_top("rule").error(
            "no rule gives a `step`, `step_start`, `saved` or `start`: nothing to account for"
        )
    job, job_field = _job(document.get("job", ""), places)
    return Declared(
        name,
        rules,
        tuple(_sample(table, number, places) for number, table in enumerate(samples)),
        places.of_top("name"),
        job,
        job_field,
        _text(document, "zone", places.of_top("zone")),
        _one_of(document, "steps", STEPS, places.of_top("steps")),
        _delimiter(document.get("csv"), places),
    )


def _delimiter(csv: Any, places: _Places) -> str:
    if csv is None:
        return ""
    if csv is True:
        return ","
    delimiter = csv.get("delimiter", ",") if isinstance(csv, dict) else None
    if not isinstance(delimiter, str) or len(delimiter) != 1:
        raise places.of_top("csv").error('`csv` is true, or a table such as { delimiter = "\\t" }')
    return delimiter


def _job(value: Any, places: _Places) -> tuple[str, str]:
    """The name of the job, or the field that holds it."""
    if isinstance(value, str):
        return value, ""
    if isinstance(value, dict) and set(value) == {"field"} and isinstance(value["field"], str):
        return "", value["field"]
    raise places.of_top("job").error("`job` is a name, or { field = … }")


def _rule(table: Keys[str, Any], number: int, places: _Places) -> DeclaredRule:
    for key in table.keys() - _RULE:
        raise places.of("rule", number, key).error(f"unknown key `{key}`; a rule has {', '.join(sorted(_RULE))}")
    here = places.of("rule", number)
    event = table.get("event")
    if event not in EVENTS:
        raise places.of("rule", number, "event").error(f"`event` is one of {', '.join(EVENTS)}")
    ways = [key for key in ("line", "regex", "keys") if key in table]
    if len(ways) != 1:
        named = " and ".join(f"`{way}`" for way in ways) or "none"
        raise (places.of("rule", number, ways[1]) if len(ways) > 1 else here).error(
            f"a rule has one of `line`, `regex` and `keys`; this one has {named}"
        )
    units: dict[str, float] = {}
    for key in _AMOUNTS:
        if key in table:
            units[key] = _unit(table[key], key, places.of("rule", number, key))
    cursor, time_field, time_format, offset = _time(table.get("time"), places.of("rule", number, "time"))
    if event == "custom" and not table.get("label"):
        raise here.error("a `custom` rule needs a `label`")
    keys = _keys(table.get("keys", {}), places.of("rule", number, "keys"))
    return DeclaredRule(
        EVENTS[event],
        here,
        _text(table, "line", places.of("rule", number, "line")),
        _text(table, "regex", places.of("rule", number, "regex")),
        keys,
        _where(table.get("where", {}), places.of("rule", number, "where")),
        units,
        _add(table.get("step"), places.of("rule", number, "step")),
        cursor,
        time_field,
        time_format,
        offset,
        _one_of(table, "edge", _EDGES, places.of("rule", number, "edge")),
        _flag(table, "begins", places.of("rule", number, "begins")),
        label=_text(table, "label", places.of("rule", number, "label")),
        also=_flag(table, "also", places.of("rule", number, "also")),
        slow=_flag(table, "slow", places.of("rule", number, "slow")),
        once=_flag(table, "once", places.of("rule", number, "once")),
    )


def _add(value: Any, place: Place) -> int:
    if value is None:
        return 0
    if isinstance(value, dict) and set(value) == {"add"} and isinstance(value["add"], int):
        return int(value["add"])
    raise place.error("`step` is a table such as { add = -1 }; where it stands in the line is said there")


def _unit(value: Any, key: str, place: Place) -> float:
    unit = value.get("unit") if isinstance(value, dict) and set(value) == {"unit"} else None
    if unit not in UNITS:
        raise place.error(f"`{key}` is a table {{ unit = … }} with one of {', '.join(UNITS)}")
    return UNITS[unit]


def _time(value: Any, place: Place) -> tuple[bool, str, str, float]:
    if value is None:
        return False, "", "", 0.0
    if value == "cursor":
        return True, "", "", 0.0
    if not isinstance(value, dict) or value.keys() - {"field", "format", "offset"}:
        raise place.error('`time` is "cursor" or a table with `field`, `format` and `offset`')
    wrong = [key for key, one in value.items() if not isinstance(one, str)]
    offset = re.fullmatch(r"(-?\d+(?:\.\d+)?)s", value.get("offset", "0s")) if not wrong else None
    if wrong or offset is None:
        raise place.error('`field`, `format` and `offset` are texts; an offset is written as "-90s"')
    return False, value.get("field", "time"), value.get("format", ""), float(offset[1])


def _keys(value: Any, place: Place) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise place.error('`keys` is a table such as { step = "global_step", time = "ts" }')
    keys = {}
    for name, paths in value.items():
        paths = [paths] if isinstance(paths, str) else paths
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            raise place.error(f"`keys.{name}` is a path, or a list of paths of which the first that is there counts")
        keys[name] = tuple(paths)
    return keys


def _where(value: Any, place: Place) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise place.error('`where` is a table such as { type = "step" }')
    for one in value.values():
        if isinstance(one, dict) and set(one) not in ({"in"}, {"like"}):
            raise place.error('a condition is "any", a value, { in = […] } or { like = "…*" }')
    return dict(value)


def _sample(table: Keys[str, Any], number: int, places: _Places) -> DeclaredSample:
    for key in table.keys() - _SAMPLE:
        raise places.of("sample", number, key).error(f"unknown key `{key}`; a sample has `line` and `gives`")
    line, gives = table.get("line"), table.get("gives", {})
    if not isinstance(line, str) or not isinstance(gives, dict):
        raise places.of("sample", number).error("a sample has a `line` and what it `gives`")
    for key in gives.keys() - _GIVES:
        raise places.of("sample", number, "gives").error(
            f"`{key}` is nothing that a line gives: {', '.join(sorted(_GIVES))}"
        )
    return DeclaredSample(line, gives, places.of("sample", number, "line"))


def _text(table: Keys[str, Any], key: str, place: Place) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise place.error(f"`{key}` is a text")
    return value


def _flag(table: Keys[str, Any], key: str, place: Place) -> bool:
    value = table.get(key, False)
    if not isinstance(value, bool):
        raise place.error(f"`{key}` is true or false")
    return value


def _one_of(table: Keys[str, Any], key: str, values: Sequence[str], place: Place) -> str:
    value = table.get(key, values[0])
    if value not in values:
        raise place.error(f"`{key}` is one of {', '.join(values)}")
    return str(value)
