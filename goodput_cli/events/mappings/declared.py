"""Define the tables of a mapping file as types (docs/mappings.md).

A field has the name of its key. Its type defines what it may contain, and its description is the error message for
anything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Mapping as Keys
from typing import Annotated, Any, Literal, NamedTuple, get_args

from msgspec import Meta, Struct, field

from goodput_cli.errors import UsageError
from goodput_cli.events.mappings.times import ClockError, check_format
from goodput_cli.events.mappings.toml import Mistake, TomlFile, TomlLocation, converted
from goodput_cli.events.text.log_lines import EventType
from goodput_cli.vocabulary.categories import CAUSES, PEER_LOST
from goodput_cli.vocabulary.text import did_you_mean
from goodput_cli.vocabulary.when import load_zone

Field = Literal[
    "step", "epoch", "of", "time", "end", "each", "took", "elapsed", "rank", "host", "job", "label", "total", "epochs"
]  # fmt: skip
FIELDS: tuple[Field, ...] = get_args(Field)
"""Fields of a line or record that have a meaning."""
Unit = Literal["s", "ms", "us", "ns", "min", "h", "per_s"]
UNITS: dict[str, float] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0, "per_s": -1.0}
"""Seconds per unit; -1: a rate, whose inverse is meant."""
PointOfSign = Literal[
    "failed", "detected", "decided", "terminated", "requeued", "allocated", "rendezvous_begun", "health_checked",
    "rendezvous_done", "workers_started", "initialised", "restored",
]  # fmt: skip
"""Moments of a recovery that a line may name; the others are those of steps."""
AMOUNTS = ("each", "took", "elapsed")
"""Fields that have a unit."""
_ACCOUNTED = (EventType.STEP, EventType.STEP_START, EventType.STEP_FINISHED, EventType.SAVED, EventType.START)
_MOST_RULES = 1000
_LONGEST_CONDITION = 200
_NEEDS_RULES = f"a mapping needs `[[rule]]` tables, at most {_MOST_RULES} of them"

Path = Annotated[str, Meta(min_length=1)]
Paths = Annotated[
    Path | Annotated[tuple[Path, ...], Meta(min_length=1)],
    Meta(description="a field of `keys` is a path, or a list of paths: the first that exists counts"),
]


class _Table(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of TOML without other keys."""


class Time(_Table, frozen=True):
    """Format of a time, and its field."""

    field: str = ""
    """Field of the time; empty: `time`."""
    format: str = ""
    offset: Annotated[
        str,
        Meta(
            pattern=r"\A[+-]?[0-9]{1,9}(\.[0-9]{1,9})?s\Z",
            description='an offset is written in seconds, such as "-90s"',
        ),
    ] = "0s"

    def __post_init__(self) -> None:
        try:
            check_format(self.format)
        except ClockError as error:
            raise Mistake(str(error), "format") from None

    @property
    def seconds(self) -> float:
        """Return the seconds to add."""
        return float(self.offset.removesuffix("s"))


class Epochs(_Table, frozen=True):
    """Numbering of steps that restarts with each epoch."""

    first: Annotated[int, Meta(ge=0)] = 1
    """Number of the first epoch."""
    steps: Annotated[int, Meta(ge=1)] | None = None
    """Steps per epoch, if no field `of` contains it."""


class Amount(_Table, frozen=True):
    """Unit of an amount of time."""

    unit: Unit = "s"


class StepTime(Amount, frozen=True):
    """Time of one step."""

    of: Annotated[
        Literal["mean", "last", "all", "running", "usual"],
        Meta(
            description='`of` of `each` is "mean", "last" (only the last step), "all" (all steps since the previous '
            'line), "running" (the mean since the epoch began), or, without a field, "usual" (the usual time between '
            "two lines)"
        ),
    ] = "mean"


class Took(Amount, frozen=True):
    """The time that a whole took."""

    since: Annotated[
        Literal["line", "step"] | None,
        Meta(
            description='`since` of `took` is "line": the time since the line before, at most; or "step": the time '
            "since the step before"
        ),
    ] = None


class PhaseOf(Amount, frozen=True):
    """Location of the time of a phase inside a step."""

    field: str = ""
    """Group of the pattern, or path of a record; empty: the name of the phase."""
    of: Annotated[
        Literal["each", "all", "last"],
        Meta(
            description='`of` of a phase is "each" (the mean of one step), "all" (all since the previous line) or '
            '"last" (only the last step)'
        ),
    ] = "each"


class WorkOf(_Table, frozen=True):
    """Location and kind of an amount of work."""

    field: str = ""
    per: Literal["step", "second", "second_accelerator", "total"] = "step"


class Elapsed(Amount, frozen=True):
    """Time since a begin."""

    begins: bool = False
    """True if it counts from the begin of a process."""


class Shift(_Table, frozen=True):
    """Number added to the step."""

    add: int


class Condition(_Table, frozen=True):
    """Condition for a value of a record; one of the two."""

    among: tuple[Any, ...] | None = field(default=None, name="in")
    like: Annotated[
        str | None, Meta(description=f"a pattern of `like` is a string of at most {_LONGEST_CONDITION} characters")
    ] = None

    def __post_init__(self) -> None:
        if (self.among is None) == (self.like is None):
            raise Mistake('a condition has one of `in` and `like`, such as { in = [1, 2] } or { like = "save_*" }')
        if self.like is not None and len(self.like) > _LONGEST_CONDITION:
            raise Mistake(f"a pattern of `like` has at most {_LONGEST_CONDITION} characters", "like")


Wanted = Annotated[
    bool | int | float | str | Condition,
    Meta(description='a condition is "any", a value, { in = [1, 2] } or { like = "save_*" }'),
]


class DeclaredRule(_Table, frozen=True):
    """A `[[rule]]` with one of `line`, `regex` and `keys`; or one of the first two and `keys`, for text in records."""

    event: EventType
    line: str | None = None
    regex: str | None = None
    keys: Annotated[
        dict[Literal[Field, "text"], Paths],
        Meta(min_length=1, description='`keys` is a table such as { step = "global_step", time = "ts" }'),
    ] = field(default_factory=dict)
    where: Annotated[dict[str, Wanted], Meta(description='`where` is a table: { type = "step" }')] = field(
        default_factory=dict
    )
    step: Annotated[
        Shift | None,
        Meta(description="`step` is a table such as { add = -1 }; its position in the line is {step:int}"),
    ] = None
    epoch: Epochs | None = None
    each: StepTime | None = None
    took: Took | None = None
    elapsed: Elapsed | None = None
    phases: Annotated[
        dict[str, PhaseOf],
        Meta(
            description='`phases` is a table of phases inside the step, such as { data = { field = "d", unit = "s" } }'
        ),
    ] = field(default_factory=dict)
    phase_pattern: str | None = None
    """Pattern that finds all phases in the rest of the line: groups `phase` and `value`."""
    phase_unit: Unit = "s"
    names: Annotated[
        dict[str, str],
        Meta(description="`names` gives the phase of each name of `phase_pattern`; others are ignored"),
    ] = field(default_factory=dict)
    names_beside: Annotated[
        dict[str, dict[str, str]],
        Meta(description='`names_beside` gives other meanings in lines that contain a text: { "async/" = { .. } }'),
    ] = field(default_factory=dict)
    work: Annotated[
        dict[Literal["samples", "tokens", "flops"], WorkOf | tuple[WorkOf, ...]],
        Meta(description='`work` is a table such as { tokens = { field = "t", per = "step" } }'),
    ] = field(default_factory=dict)
    size: Annotated[
        dict[
            Literal[
                "accelerators",
                "slices",
                "total_steps",
                "peak_flops",
                "mfu",
                "tflops",
                "samples_per_step",
                "sequence_length",
            ],
            str,
        ],
        Meta(description='`size` is a table of fields, such as { accelerators = "ws", total_steps = "of" }'),
    ] = field(default_factory=dict)
    point: PointOfSign | None = None
    """Moment of a recovery in the lines of a `sign`."""
    by: Literal["launcher", "agent", "scheduler", "hand"] | None = None
    """Who restarts the job, for a `sign`."""
    facts: Annotated[
        dict[Literal["left", "of", "used", "timeout", "allocation"], str],
        Meta(description='`facts` is a table of fields, such as { left = "remaining_restarts" }'),
    ] = field(default_factory=dict)
    """Facts of a `sign`: remaining, allowed and used restarts, timeout of a watchdog (s), number of a scheduler."""
    time: Annotated[
        Literal["cursor"] | Time | None,
        Meta(description='`time` is "cursor", or a table such as { field = "ts", format = "epoch_ms" }'),
    ] = None
    """"cursor": its lines have no time."""
    edge: Literal["point", "begin", "end"] = "point"
    state: Annotated[
        Literal["begun", "blocking_done", "complete"] | None,
        Meta(description='`state` of a save is "begun", "blocking_done" or "complete"'),
    ] = None
    """State of a `save` at its line; None: saving ended."""
    begins: bool = False
    label: str = ""
    also: bool = False
    slow: bool = False
    once: bool = False
    own: bool = False
    """True if no other program prints such lines. Other rules of the mapping count only in logs with such lines."""

    def __post_init__(self) -> None:
        ways = [way for way in ("line", "regex") if getattr(self, way) is not None]
        if "text" in self.keys and len(ways) != 1:
            raise Mistake("`keys.text` is the path of the text that `line` or `regex` reads; write one of them", "keys")
        if "text" not in self.keys and self.keys and len(ways) == 1:
            raise Mistake(
                f"`{ways[0]}` together with `keys` reads a text in a record: `keys.text` is its path", ways[0]
            )
        if "text" not in self.keys:
            ways += ["keys"] if self.keys else []
            if len(ways) != 1:
                named = " and ".join(f"`{way}`" for way in ways) or "none"
                raise Mistake(f"a rule has one of `line`, `regex` and `keys`; this one has {named}", *ways[1:2])
        if self.where and not self.keys:
            raise Mistake("`where` is for records: it needs `keys`", "where")
        inside = self.phases or self.phase_pattern
        if inside and self.event not in (EventType.STEP, EventType.PHASE):
            raise Mistake("phases are allowed only in a `step` or `phase` rule", "phases")
        if self.event is EventType.PHASE and not (inside or self.work or self.size):
            raise Mistake("a `phase` rule needs `phases`, a `phase_pattern`, `work` or `size`", "event")
        if self.state is not None and self.event is not EventType.SAVE:
            raise Mistake("`state` is allowed only in a `save` rule", "state")
        self._check_sign()

    def _check_sign(self) -> None:
        """Raise Mistake if a `sign` rule has no moment of a recovery, or another rule has one."""
        is_sign = self.event is EventType.SIGN
        if is_sign != (self.point is not None):
            raise Mistake("a `sign` rule needs a `point`, and no other rule has one", "event")
        if not is_sign and (self.facts or self.by):
            raise Mistake("`by` and `facts` are allowed only in a `sign` rule", "facts" if self.facts else "by")
        if is_sign and (self.time == "cursor" or self.also):
            raise Mistake(
                "a `sign` rule needs a time and is independent of other rules: no `cursor`, no `also`", "event"
            )

    @property
    def of_records(self) -> bool:
        """Return True if it reads JSON objects and table rows rather than lines of text."""
        return bool(self.keys)

    @property
    def text(self) -> str:
        """Return its template or regular expression; empty if it reads only the keys of records."""
        return self.line or self.regex or ""

    @property
    def name(self) -> str:
        """Return its name in reports about its matches."""
        if self.text:
            return self.text
        where = [key if isinstance(value, Condition) else f"{key} = {value}" for key, value in self.where.items()]
        return ", ".join([*where, *(f"{key}: {paths[0]}" for key, paths in self.paths.items())])

    @property
    def paths(self) -> Keys[str, tuple[str, ...]]:
        """Return the fields in `keys` with their paths."""
        return {key: (paths,) if isinstance(paths, str) else paths for key, paths in self.keys.items()}

    @property
    def amounts_inside(self) -> tuple[str, ...]:
        """Return the fields of phases, work, size and facts: groups of a pattern, paths of a record."""
        named = [
            *((name, one.field) for name, one in self.phases.items()),
            *((name, one.field) for name, one in self.works),
        ]
        single = (*self.size.values(), *self.facts.values())
        return tuple(dict.fromkeys([*(own or name for name, own in named), *single]))

    @property
    def works(self) -> tuple[tuple[str, WorkOf], ...]:
        """Return each amount of work with its name."""
        return tuple(
            (name, one) for name, some in self.work.items() for one in (some if isinstance(some, tuple) else (some,))
        )

    def seconds_a_unit(self, amount: str) -> float:
        """Return the seconds per unit for one of `AMOUNTS`, as in `UNITS`."""
        declared: Amount | None = getattr(self, amount)
        return 1.0 if declared is None else UNITS[declared.unit]


class SampleValues(_Table, frozen=True):
    """Expected values of a sample; amounts in seconds."""

    event: EventType | None = None
    step: int | None = None
    each: float | None = None
    took: float | None = None
    elapsed: float | None = None
    time: Any = None
    label: str | None = None
    rank: str | int | None = None
    cause: str | None = None
    role: str | None = None
    state: str | None = None
    point: PointOfSign | None = None
    by: str | None = None
    left: int | None = None
    of: int | None = None
    used: int | None = None
    timeout: float | None = None
    allocation: str | None = None
    host: str | None = None
    device: str | None = None
    edge: Literal["point", "begin", "end"] | None = None
    job: str | None = None
    phases: dict[str, float] | None = None
    """By phase; any subset of them."""

    @property
    def values(self) -> dict[str, Any]:
        """Return the values that are not None."""
        given = {key: getattr(self, key) for key in self.__struct_fields__}
        return {key: value for key, value in given.items() if value is not None}


class DeclaredSample(_Table, frozen=True):
    """A `[[sample]]`."""

    line: Annotated[str, Meta(description="a sample needs a `line` (a string) and what it `gives`")]
    gives: SampleValues = SampleValues()


RoleOfRow = Annotated[
    Literal["root", "exit", "echo", "teardown", "context"],
    Meta(description="`role` is root, exit, echo, teardown or context"),
]


class DeclaredCause(_Table, frozen=True):
    """A `[[cause]]`: a kind of line that explains why a process died, like the shipped rows (docs/causes.md)."""

    code: Annotated[str, Meta(description="`code` is one of those in docs/causes.md")] = ""
    line: str | None = None
    regex: str | None = None
    role: RoleOfRow = "root"
    by: Annotated[str, Meta(description="`by` is the name of a field of the row")] = ""
    """Field whose value determines code and role; empty: always `code` and `role`."""
    values: Annotated[
        dict[str, str | tuple[str, RoleOfRow]],
        Meta(description='`values` is a table such as { "3" = "storage_error", "9" = ["killed", "exit"] }'),
    ] = field(default_factory=dict)
    """Values of the field `by`; `other` is any other value."""
    slow: bool = False
    """True if it is tried on every line."""

    def __post_init__(self) -> None:
        if bool(self.code) == bool(self.by):
            raise Mistake("a cause needs a `code`, one of those in docs/causes.md, or `by` with its `values`")
        if self.code:
            _check_cause(self.code, "code")
        if self.values and not self.by:
            raise Mistake("`values` belong to the field in `by`", "values")
        for value, (code, _) in self.codes_by_value.items():
            _check_cause(code, "values", value)
        if (self.line is None) == (self.regex is None):
            raise Mistake("a cause needs one of `line` and `regex`")

    @property
    def codes_by_value(self) -> dict[str, tuple[str, RoleOfRow]]:
        """Return code and role by value of `by`."""
        return {value: (one, self.role) if isinstance(one, str) else one for value, one in self.values.items()}


def _check_cause(code: str, *path: str) -> None:
    """Raise Mistake for an unknown cause."""
    known = (*CAUSES, PEER_LOST)
    if code not in known:
        close = did_you_mean(code, known, f"the causes are {', '.join(known)}")
        raise Mistake(f"unknown cause `{code}`; {close}", *path)


class JobOf(_Table, frozen=True):
    """Source of the job name; one of the two."""

    field: str = ""
    """Field of the lines."""
    path: str = ""
    """Pattern with a group `job` for the path of a source."""

    def __post_init__(self) -> None:
        if bool(self.field) == bool(self.path):
            raise Mistake("the job name comes from one of `field` and `path`")


class Csv(_Table, frozen=True):
    """Tables that a mapping reads."""

    delimiter: Annotated[
        str,
        Meta(
            pattern=r'\A[^"\r\n]\Z',
            description='`csv` is true, or a table with one character such as { delimiter = "\\t" }',
        ),
    ]


class Declared(_Table, frozen=True):
    """A mapping."""

    name: Annotated[
        str,
        Meta(
            pattern=r"\A[a-z0-9][a-z0-9_.-]*\Z",
            description="a mapping needs a `name` of lower-case letters, digits, `-`, `_` and `.`",
        ),
    ]
    rule: Annotated[tuple[DeclaredRule, ...], Meta(max_length=_MOST_RULES, description=_NEEDS_RULES)] = ()
    cause: Annotated[
        tuple[DeclaredCause, ...], Meta(description="rows of evidence are written as `[[cause]]` tables")
    ] = ()
    """Rows of evidence of its programs; tried before the shipped rows."""
    sample: Annotated[
        tuple[DeclaredSample, ...], Meta(description="samples are written as `[[sample]]` tables, each a line of a log")
    ] = ()
    job: Annotated[
        str | JobOf,
        Meta(description='`job` is a name, { field = "run" }, or { path = "runs/(?P<job>[^/]+)/" }'),
    ] = ""
    """Name or its location; empty: derived from the files, as for other text."""
    zone: str = ""
    steps: Literal["done", "index", "start"] = "done"
    epochs: Literal["none", "unknown"] = "none"
    """Meaning of a step number that begins again: `unknown` if it may be of the next epoch, which no line names."""
    time: Annotated[
        Time,
        Meta(
            description='`time` of a mapping is a table such as { format = "%d/%m/%Y %H:%M:%S" }; '
            '`time = "cursor"` is for rules whose lines have no time'
        ),
    ] = Time()
    """Format of times in all rules without their own."""
    csv: Annotated[
        bool | Csv, Meta(description='`csv` is true, or a table with one character such as { delimiter = "\\t" }')
    ] = False
    split: Annotated[
        Literal["\r", "\\r"] | None,
        Meta(description='`split` is "\\r": text that a carriage return overwrote counts too'),
    ] = None
    assumed: Annotated[
        tuple[str, ...], Meta(description="`assumed` is a list of strings: assumptions of inferred rules")
    ] = ()
    """Assumptions of the drafted mapping, shown with each result."""

    def __post_init__(self) -> None:
        if not self.rule and not self.cause:
            raise Mistake(_NEEDS_RULES, "rule")
        if self.rule and not any(rule.event in (*_ACCOUNTED, EventType.SIGN) for rule in self.rule):
            raise Mistake(
                "no rule gives a `step`, `step_start`, `saved` or `start`, so there is nothing to account for", "rule"
            )
        try:
            load_zone(self.zone or "UTC")
        except UsageError as error:
            raise Mistake(str(error), "zone") from None

    @property
    def delimiter(self) -> str:
        """Return the delimiter of its tables; empty if there are none."""
        return self.csv.delimiter if isinstance(self.csv, Csv) else "," if self.csv else ""

    def time_of(self, rule: DeclaredRule) -> Time:
        """Return the time format of a rule, completed from the mapping."""
        own = rule.time if isinstance(rule.time, Time) else self.time
        return Time(
            field=own.field or self.time.field or "time", format=own.format or self.time.format, offset=own.offset
        )


class DeclaredAt(NamedTuple):
    """A mapping and its location."""

    declared: Declared
    place: TomlLocation


def mappings_in(name: str, text: str) -> Iterator[DeclaredAt]:
    """Yield the mappings in the text of a file: a mapping file, or `[mapping.NAME]` in settings, which are in
    `[tool.goodput]` of a pyproject.toml. Raises UsageError with file, line and column."""
    file = TomlFile(name, text)
    above = _settings_above(file.content, name)
    if not file.content and text.lstrip().startswith("#"):
        return  # Only comments, as drafted for a log that needs no mapping.
    if above is None:
        yield _declared(file.content, TomlLocation(file))
        return
    tables: Any = file.content
    for key in above:
        tables = tables.get(key, {}) if isinstance(tables, dict) else {}
    place = TomlLocation(file, above)
    if not isinstance(tables, dict):
        raise place.error("`mapping` contains a table per mapping, such as [mapping.NAME]")
    if not tables:
        raise TomlLocation(file).error(
            "contains no mapping: neither `[[rule]]` tables nor settings with `[mapping.NAME]`"
        )
    for own, content in tables.items():
        if not isinstance(content, dict):
            raise place.of(own).error(f"`mapping.{own}` is a table")
        yield _declared({"name": own, **content}, place.of(own))


def _settings_above(content: dict[str, Any], name: str) -> tuple[str, ...] | None:
    """Return the keys above the mappings in a settings file; None for a mapping file."""
    if re.split(r"[/\\]", name)[-1] == "pyproject.toml" or ("tool" in content and "rule" not in content):
        return ("tool", "goodput", "mapping")
    return ("mapping",) if isinstance(content.get("mapping"), dict) and "rule" not in content else None


def _declared(content: Any, place: TomlLocation) -> DeclaredAt:
    return DeclaredAt(converted(Declared, content, place, "a mapping"), place)
