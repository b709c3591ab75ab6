"""The file of a mapping, or of settings with mappings in them, checked: every mistake is said with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from goodput_cli.errors import UsageError
from goodput_cli.events.mappings.declared import (
    AMOUNTS,
    FIELDS,
    STEPS,
    UNITS,
    Declared,
    DeclaredRule,
    DeclaredSample,
    Epochs,
    JobName,
    Time,
)
from goodput_cli.events.mappings.fields import ClockError, check_format
from goodput_cli.events.mappings.places import Place, TomlFile
from goodput_cli.events.mappings.tables import Table
from goodput_cli.events.text.marks import What
from goodput_cli.vocabulary.when import load_zone

EVENTS = tuple(what.value for what in What)
_EDGES = ("point", "begin", "end")
_TOP = ("name", "job", "zone", "steps", "time", "rule", "sample", "csv", "split", "assumed")
_RULE = (
    "event", "line", "regex", "keys", "where", "step", "epoch", "each", "took", "elapsed", "time", "edge", "begins",
    "label", "also", "slow", "once",
)  # fmt: skip
_GIVES = ("event", "step", "each", "took", "elapsed", "time", "label", "rank", "edge", "job")
_TIME = ("field", "format", "offset")
_CARRIAGE_RETURN = ("\r", "\\r")
_ACCOUNTED = (What.STEP, What.STEP_START, What.STEP_FINISHED, What.SAVED, What.START)
_MOST_RULES = 1000


def mappings_in(name: str, text: str) -> Iterator[Declared]:
    """The mappings in the text of a file: the one that it is, or those in `[mapping.NAME]` of settings, which are in
    `[tool.goodput]` of a pyproject.toml. Raises UsageError with file, line and column."""
    file = TomlFile(name, text)
    above = _settings_above(file.content, name)
    if above is None:
        yield declared(Table(file.content, Place(file), ""))
        return
    settings: Any = file.content
    for key in above:
        settings = settings.get(key, {}) if isinstance(settings, dict) else {}
    place = Place(file, above)
    tables = Table(settings, place, "`mapping` holds a table for each mapping, such as [mapping.NAME]").content
    if not tables:
        raise Place(file).error("holds no mapping: neither `[[rule]]` tables nor settings with `[mapping.NAME]`")
    for own, content in tables.items():
        table = Table(content, place.of(own), f"`mapping.{own}` is a table")
        table.content = {"name": own, **table.content}
        yield declared(table)


def _settings_above(content: dict[str, Any], name: str) -> tuple[str, ...] | None:
    """The keys above the mappings in a file of settings; None for a mapping."""
    if re.split(r"[/\\]", name)[-1] == "pyproject.toml" or ("tool" in content and "rule" not in content):
        return ("tool", "goodput", "mapping")
    return ("mapping",) if isinstance(content.get("mapping"), dict) and "rule" not in content else None


def declared(table: Table) -> Declared:
    """A checked mapping. Raises UsageError."""
    table.check_keys(_TOP, "a mapping")
    name = table.content.get("name")
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9][a-z0-9_.-]*", name):
        raise table.error("name", "a mapping needs a `name` of small letters, digits, `-`, `_` and `.`")
    rules = table.tables("rule", "rules are written as `[[rule]]` tables")
    if not rules:
        raise table.error("rule", "a mapping needs `[[rule]]` tables")
    if len(rules) > _MOST_RULES:
        raise table.place.of("rule", _MOST_RULES).error(f"a mapping has at most {_MOST_RULES} rules")
    time = _time_of_all(table)
    made = tuple(_rule(one, table.place.of("rule", at), time) for at, one in enumerate(rules))
    if not any(rule.event in _ACCOUNTED for rule in made):
        raise table.error("rule", "no rule gives a `step`, `step_start`, `saved` or `start`: nothing to account for")
    samples = table.tables("sample", "samples are written as `[[sample]]` tables")
    return Declared(
        name,
        made,
        tuple(_sample(one, table.place.of("sample", at)) for at, one in enumerate(samples)),
        table.place.of("name"),
        _job(table),
        _zone(table),
        table.one_of("steps", STEPS),
        _delimiter(table),
        _split(table),
        _assumed(table),
    )


def _delimiter(table: Table) -> str:
    csv = table.content.get("csv", False)
    if isinstance(csv, bool):
        return "," if csv else ""
    delimiter = csv.get("delimiter") if isinstance(csv, dict) and set(csv) == {"delimiter"} else None
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n':
        raise table.error("csv", '`csv` is true, or a table with one character such as { delimiter = "\\t" }')
    return delimiter


def _split(table: Table) -> bool:
    split = table.content.get("split")
    if split is not None and split not in _CARRIAGE_RETURN:
        raise table.error("split", '`split` is "\\r": what a carriage return overwrote counts too')
    return split is not None


def _assumed(table: Table) -> tuple[str, ...]:
    assumed = table.content.get("assumed", [])
    if not isinstance(assumed, list) or not all(isinstance(one, str) for one in assumed):
        raise table.error("assumed", "`assumed` is a list of texts: what a draft did not know")
    return tuple(assumed)


def _zone(table: Table) -> str:
    zone = table.text("zone")
    if zone:
        try:
            load_zone(zone)
        except UsageError as error:
            raise table.error("zone", str(error)) from None
    return zone


def _job(table: Table) -> JobName:
    """Where the name of the job comes from."""
    value = table.content.get("job", "")
    if isinstance(value, str):
        return JobName(fixed=value)
    if not isinstance(value, dict) or len(value) != 1 or not all(isinstance(one, str) for one in value.values()):
        raise table.error("job", '`job` is a name, { field = "run" }, or { path = "runs/(?P<job>[^/]+)/" }')
    Table(value, table.place.of("job"), "").check_keys(("field", "path"), "`job`")
    return JobName(**value)


def _rule(content: Any, place: Place, time: Time) -> DeclaredRule:
    table = Table(content, place, "a rule is written as a `[[rule]]` table")
    table.check_keys(_RULE, "a rule")
    if "event" not in table.content:
        raise place.error(f"a rule needs an `event`: one of {', '.join(EVENTS)}")
    event = What(table.one_of("event", EVENTS))
    keys = _keys(table)
    _check_ways(table, keys)
    label = table.text("label")
    cursor, own_time = _time(table, time)
    return DeclaredRule(
        event,
        place,
        table.text("line"),
        table.text("regex"),
        keys,
        _where(table),
        {key: _unit(table, key) for key in AMOUNTS if key in table.content},
        _epochs(table),
        _add(table),
        cursor,
        own_time,
        table.one_of("edge", _EDGES),
        table.flag("begins"),
        label,
        table.flag("also"),
        table.flag("slow"),
        table.flag("once"),
        clock_begins=_clock_begins(table),
        last=_is_of_last(table),
    )


def _check_ways(table: Table, keys: dict[str, tuple[str, ...]]) -> None:
    """A rule reads lines, or records, or a text in records."""
    ways = [key for key in ("line", "regex", "keys") if key in table.content]
    empty = next((way for way in ways if not table.content[way]), "")
    if empty and empty != "keys":
        raise table.error(empty, f"`{empty}` is empty")
    of_text = "text" in keys
    if of_text and len(ways) == 2 and "keys" in ways:
        return
    if of_text:
        raise table.error(
            "keys", "`keys.text` says where the text is that `line` or `regex` reads; it needs one of them"
        )
    if len(ways) == 2 and "keys" in ways:
        raise table.error(ways[0], f"`{ways[0]}` beside `keys` reads a text in a record: `keys.text` says where it is")
    if len(ways) != 1:
        named = " and ".join(f"`{way}`" for way in ways) or "none"
        place = table.place.of(ways[1]) if ways else table.place
        raise place.error(f"a rule has one of `line`, `regex` and `keys`; this one has {named}")


def _add(table: Table) -> int:
    value = table.content.get("step")
    if value is None:
        return 0
    add = value.get("add") if isinstance(value, dict) and set(value) == {"add"} else None
    if not isinstance(add, int) or isinstance(add, bool):
        raise table.error("step", "`step` is a table such as { add = -1 }; its place in the line is {step:int} there")
    return add


def _epochs(table: Table) -> Epochs | None:
    if "epoch" not in table.content:
        return None
    words = "`epoch` is a table such as { first = 0, steps = 500 }"
    epoch = Table(table.content["epoch"], table.place.of("epoch"), words)
    epoch.check_keys(("first", "steps"), "`epoch`")
    return Epochs(epoch.whole("first", 1, 0) or 0, epoch.whole("steps", None, 1))


def _unit(table: Table, key: str) -> float:
    value = table.content[key]
    more = {"elapsed": {"begins"}, "each": {"of"}}.get(key, set())
    unit = value.get("unit", "s" if more & set(value) else None) if isinstance(value, dict) else None
    if not isinstance(unit, str) or unit not in UNITS or set(value) - {"unit"} - more:
        raise table.error(key, f"`{key}` is a table {{ unit = … }} with one of {', '.join(UNITS)}")
    return UNITS[unit]


def _is_of_last(table: Table) -> bool:
    """Whether `each` is the time of the last step alone."""
    each = table.content.get("each")
    of = each.get("of", "mean") if isinstance(each, dict) else "mean"
    if of not in ("mean", "last"):
        raise table.error("each", '`of` of `each` is "mean", or "last": the time of the last step alone')
    return bool(of == "last")


def _clock_begins(table: Table) -> bool:
    """Whether `elapsed` is said to count from when a process began."""
    value = table.content.get("elapsed", {})
    begins = value.get("begins", False)
    if not isinstance(begins, bool):
        raise table.error("elapsed", "`begins` of `elapsed` is true or false")
    return begins


def _time_of_all(table: Table) -> Time:
    """How the times of all rules are written, unless one says otherwise."""
    if table.content.get("time") == "cursor":
        raise table.error("time", '`time = "cursor"` stands in the rules whose lines have no time')
    return _time(table, Time())[1]


def _time(table: Table, otherwise: Time) -> tuple[bool, Time]:
    """Whether a line has no time, and else how it is written."""
    value = table.content.get("time")
    if value is None or value == "cursor":
        return value == "cursor", otherwise
    if isinstance(value, str):
        raise table.error("time", '`time` is "cursor", or a table such as { field = "ts", format = "epoch_ms" }')
    time = Table(value, table.place.of("time"), '`time` is "cursor" or a table with `field`, `format` and `offset`')
    time.check_keys(_TIME, "`time`")
    offset = re.fullmatch(r"([+-]?\d{1,9}(?:\.\d{1,9})?)s", time.text("offset", "0s"))
    if offset is None:
        raise time.error("offset", 'an offset is written in seconds, such as "-90s"')
    written = time.text("format", otherwise.format)
    try:
        check_format(written)
    except ClockError as error:
        raise time.error("format", str(error)) from None
    return False, Time(time.text("field", otherwise.field), written, float(offset[1]))


def _keys(table: Table) -> dict[str, tuple[str, ...]]:
    keys = Table(
        table.content.get("keys", {}),
        table.place.of("keys"),
        '`keys` is a table such as { step = "global_step", time = "ts" }',
    )
    keys.check_keys((*FIELDS, "text"), "`keys`")
    found = {}
    for name, value in keys.content.items():
        paths = [value] if isinstance(value, str) else value
        if not isinstance(paths, list) or not paths or not all(isinstance(path, str) and path for path in paths):
            raise keys.error(
                name, f"`keys.{name}` is a path, or a list of paths of which the first that is there counts"
            )
        found[name] = tuple(paths)
    if "keys" in table.content and not found:
        raise table.error("keys", '`keys` is empty; write such as { step = "global_step", time = "ts" }')
    return found


def _where(table: Table) -> dict[str, Any]:
    where = Table(
        table.content.get("where", {}), table.place.of("where"), '`where` is a table: { type = "step" }'
    ).content
    if where and "keys" not in table.content:
        raise table.error("where", "`where` is about records: it needs `keys`")
    for key, one in where.items():
        good = not isinstance(one, dict | list) or (
            isinstance(one, dict)
            and len(one) == 1
            and (isinstance(one.get("in"), list) or (isinstance(one.get("like"), str) and len(one["like"]) <= 200))
        )
        if not good:
            sentence = 'a condition is "any", a value, { in = [1, 2] } or { like = "save_*" }'
            raise table.place.of("where", key).error(sentence)
    return dict(where)


def _sample(content: Any, place: Place) -> DeclaredSample:
    table = Table(content, place, "a sample is written as a `[[sample]]` table")
    table.check_keys(("line", "gives"), "a sample")
    if "line" not in table.content:
        raise place.error("a sample needs the `line` that is read, and what it `gives`")
    gives = Table(table.content.get("gives", {}), place.of("gives"), '`gives` is a table: { event = "step", step = 3 }')
    gives.check_keys(_GIVES, "what a line gives")
    if "event" in gives.content:
        gives.one_of("event", EVENTS)
    return DeclaredSample(table.text("line"), gives.content, place.of("line"))
