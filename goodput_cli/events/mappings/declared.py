"""What a mapping declares: the tables of its file as types (docs/mappings.md).

A field has the name of its key; what it may hold is said by its type, and in words by its description, which is what a
person reads who wrote something else.
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
from goodput_cli.vocabulary.causes import CAUSES, PEER_LOST
from goodput_cli.vocabulary.text import did_you_mean
from goodput_cli.vocabulary.when import load_zone

Field = Literal[
    "step", "epoch", "of", "time", "end", "each", "took", "elapsed", "rank", "host", "job", "label", "total"
]  # fmt: skip
FIELDS: tuple[Field, ...] = get_args(Field)
"""What fields of a line or record mean something."""
Unit = Literal["s", "ms", "us", "ns", "min", "h", "per_s"]
UNITS: dict[str, float] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0, "per_s": -1.0}
"""Seconds a unit; -1: it is a rate, of which one over it is meant."""
PointOfSign = Literal[
    "failed", "detected", "decided", "terminated", "requeued", "allocated", "rendezvous_begun", "health_checked",
    "rendezvous_done", "workers_started", "initialised", "restored",
]  # fmt: skip
"""The moments of a recovery that a line may name; the others are those of steps."""
AMOUNTS = ("each", "took", "elapsed")
"""The fields that have a unit."""
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
    """A table of TOML, which holds no other keys."""


class Time(_Table, frozen=True):
    """How a time is written, and where."""

    field: str = ""
    """Which field it is; "": `time`."""
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
        """Seconds that are added."""
        return float(self.offset.removesuffix("s"))


class Epochs(_Table, frozen=True):
    """How steps are counted that begin anew in each epoch."""

    first: Annotated[int, Meta(ge=0)] = 1
    """The number of the first epoch."""
    steps: Annotated[int, Meta(ge=1)] | None = None
    """How many steps an epoch has, where no field `of` says it."""


class Amount(_Table, frozen=True):
    """In which unit an amount of time is written."""

    unit: Unit = "s"


class StepTime(Amount, frozen=True):
    """The time of one step."""

    of: Annotated[
        Literal["mean", "last", "all", "usual"],
        Meta(
            description='`of` of `each` is "mean", "last" (only the last step), "all" (all steps since the previous '
            'line), or, without a field, "usual" (the usual time between two lines)'
        ),
    ] = "mean"


class PhaseOf(Amount, frozen=True):
    """Where the time of a phase inside a step stands."""

    field: str = ""
    """A group of the pattern, or a path of a record; "": it has the name of the phase."""
    of: Annotated[
        Literal["each", "all", "last"],
        Meta(
            description='`of` of a phase is "each" (the mean of one step), "all" (all since the previous line) or '
            '"last" (only the last step)'
        ),
    ] = "each"


class WorkOf(_Table, frozen=True):
    """Where an amount of work stands, and what it is of."""

    field: str = ""
    per: Literal["step", "second", "second_accelerator", "total"] = "step"


class Elapsed(Amount, frozen=True):
    """The time since something began."""

    begins: bool = False
    """Whether it counts from when a process began."""


class Shift(_Table, frozen=True):
    """What is added to the number of a step."""

    add: int


class Condition(_Table, frozen=True):
    """What a value of a record has to be; one of the two."""

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
    """One `[[rule]]`: it has one of `line`, `regex` and `keys`, or one of the first two for a text in records."""

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
    took: Amount | None = None
    elapsed: Elapsed | None = None
    phases: Annotated[
        dict[str, PhaseOf],
        Meta(
            description='`phases` is a table of phases inside the step, such as { data = { field = "d", unit = "s" } }'
        ),
    ] = field(default_factory=dict)
    phase_pattern: str | None = None
    """Finds phases in the rest of the line, as many as there are: groups `phase` and `value`."""
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
    """Of a `sign`: which moment of a recovery its lines name."""
    by: Literal["launcher", "agent", "scheduler", "hand"] | None = None
    """Of a `sign`: who starts the job again."""
    facts: Annotated[
        dict[Literal["left", "of", "used", "timeout", "allocation"], str],
        Meta(description='`facts` is a table of fields, such as { left = "remaining_restarts" }'),
    ] = field(default_factory=dict)
    """Of a `sign`: the restarts that are left, allowed and used, the s that a watchdog waits, a scheduler's number."""
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
    """Of a `save`: how far it has come by its line; without it, the line shows that saving ended."""
    begins: bool = False
    label: str = ""
    also: bool = False
    slow: bool = False
    once: bool = False
    own: bool = False
    """Nobody else prints such a line. Rules of a mapping that are not their own count only beside lines that are."""

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
        """Raises Mistake where a rule for a moment of a recovery does not say which, or another rule says one."""
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
        """Whether it reads JSON objects and rows of tables, and no lines of text."""
        return bool(self.keys)

    @property
    def text(self) -> str:
        """The template or regular expression of what it reads; "" where it reads the keys of records alone."""
        return self.line or self.regex or ""

    @property
    def name(self) -> str:
        """What it is called where its matches are shown."""
        if self.text:
            return self.text
        where = [key if isinstance(value, Condition) else f"{key} = {value}" for key, value in self.where.items()]
        return ", ".join([*where, *(f"{key}: {paths[0]}" for key, paths in self.paths.items())])

    @property
    def paths(self) -> Keys[str, tuple[str, ...]]:
        """The fields in `keys`, each with its paths."""
        return {key: (paths,) if isinstance(paths, str) else paths for key, paths in self.keys.items()}

    @property
    def amounts_inside(self) -> tuple[str, ...]:
        """The fields of phases, work, size and facts: groups of a pattern, paths of a record."""
        named = [
            *((name, one.field) for name, one in self.phases.items()),
            *((name, one.field) for name, one in self.works),
        ]
        single = (*self.size.values(), *self.facts.values())
        return tuple(dict.fromkeys([*(own or name for name, own in named), *single]))

    @property
    def works(self) -> tuple[tuple[str, WorkOf], ...]:
        """Each amount of work with its name."""
        return tuple(
            (name, one) for name, some in self.work.items() for one in (some if isinstance(some, tuple) else (some,))
        )

    def seconds_a_unit(self, amount: str) -> float:
        """Of one of `AMOUNTS`, as in `UNITS`."""
        declared: Amount | None = getattr(self, amount)
        return 1.0 if declared is None else UNITS[declared.unit]


class Gives(_Table, frozen=True):
    """What a sample gives; amounts are seconds."""

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
    """By phase, or some of them."""

    @property
    def values(self) -> dict[str, Any]:
        """What is said."""
        given = {key: getattr(self, key) for key in self.__struct_fields__}
        return {key: value for key, value in given.items() if value is not None}


class DeclaredSample(_Table, frozen=True):
    """One `[[sample]]`."""

    line: Annotated[str, Meta(description="a sample needs a `line` (a string) and what it `gives`")]
    gives: Gives = Gives()


RoleOfRow = Annotated[
    Literal["root", "exit", "echo", "teardown", "context"],
    Meta(description="`role` is root, exit, echo, teardown or context"),
]


class DeclaredCause(_Table, frozen=True):
    """One `[[cause]]`: a kind of line that says why a process died, as the shipped rows do (docs/causes.md)."""

    code: Annotated[str, Meta(description="`code` is one of those in docs/causes.md")] = ""
    line: str | None = None
    regex: str | None = None
    role: RoleOfRow = "root"
    by: Annotated[str, Meta(description="`by` is the name of a field of the row")] = ""
    """The field whose value gives code and role; "": it is always `code` and `role`."""
    values: Annotated[
        dict[str, str | tuple[str, RoleOfRow]],
        Meta(description='`values` is a table such as { "3" = "storage_error", "9" = ["killed", "exit"] }'),
    ] = field(default_factory=dict)
    """Of the field `by`; `other` stands for every value that is not there."""
    slow: bool = False
    """Whether it is tried on every line."""

    def __post_init__(self) -> None:
        if bool(self.code) == bool(self.by):
            raise Mistake("a cause needs a `code`, one of those in docs/causes.md, or `by` with its `values`")
        if self.code:
            _check_cause(self.code, "code")
        if self.values and not self.by:
            raise Mistake("`values` belong to the field in `by`", "values")
        for value, (code, _) in self.said.items():
            _check_cause(code, "values", value)
        if (self.line is None) == (self.regex is None):
            raise Mistake("a cause needs one of `line` and `regex`")

    @property
    def said(self) -> dict[str, tuple[str, RoleOfRow]]:
        """By value of `by`, code and role."""
        return {value: (one, self.role) if isinstance(one, str) else one for value, one in self.values.items()}


def _check_cause(code: str, *path: str) -> None:
    """Raises Mistake for a word that is no cause."""
    known = (*CAUSES, PEER_LOST)
    if code not in known:
        close = did_you_mean(code, known, f"the causes are {', '.join(known)}")
        raise Mistake(f"unknown cause `{code}`; {close}", *path)


class JobOf(_Table, frozen=True):
    """Where the name of a job stands; one of the two."""

    field: str = ""
    """A field of the lines."""
    path: str = ""
    """A pattern with a group `job`, found in the path of a source."""

    def __post_init__(self) -> None:
        if bool(self.field) == bool(self.path):
            raise Mistake("the job name comes from one of `field` and `path`")


class Csv(_Table, frozen=True):
    """The tables that a mapping reads."""

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
    """What lines of its programs say about a death: asked before the shipped rows."""
    sample: Annotated[
        tuple[DeclaredSample, ...], Meta(description="samples are written as `[[sample]]` tables, each a line of a log")
    ] = ()
    job: Annotated[
        str | JobOf,
        Meta(description='`job` is a name, { field = "run" }, or { path = "runs/(?P<job>[^/]+)/" }'),
    ] = ""
    """A name, or where it stands; "": it comes from the files of the job, as that of all text."""
    zone: str = ""
    steps: Literal["done", "index", "start"] = "done"
    epochs: Literal["none", "unknown"] = "none"
    """Whether a step number that begins again may be of the next epoch, which no line names."""
    time: Annotated[
        Time,
        Meta(
            description='`time` of a mapping is a table such as { format = "%d/%m/%Y %H:%M:%S" }; '
            '`time = "cursor"` is for rules whose lines have no time'
        ),
    ] = Time()
    """How the times of all rules are written, unless one says otherwise."""
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
    """What whoever drafted it did not know: said under each answer."""

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
        """Of the tables that it reads; "": none."""
        return self.csv.delimiter if isinstance(self.csv, Csv) else "," if self.csv else ""

    def time_of(self, rule: DeclaredRule) -> Time:
        """How a rule's times are written: what it leaves out is as all of the mapping."""
        own = rule.time if isinstance(rule.time, Time) else self.time
        return Time(
            field=own.field or self.time.field or "time", format=own.format or self.time.format, offset=own.offset
        )


class DeclaredAt(NamedTuple):
    """A mapping, and where it stands."""

    declared: Declared
    place: TomlLocation


def mappings_in(name: str, text: str) -> Iterator[DeclaredAt]:
    """The mappings in the text of a file: the one that it is, or those in `[mapping.NAME]` of settings, which are in
    `[tool.goodput]` of a pyproject.toml. Raises UsageError with file, line and column."""
    file = TomlFile(name, text)
    above = _settings_above(file.content, name)
    if not file.content and text.lstrip().startswith("#"):
        return  # of comments alone, as is drafted of a log that needs no mapping
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
    """The keys above the mappings in a file of settings; None for a mapping."""
    if re.split(r"[/\\]", name)[-1] == "pyproject.toml" or ("tool" in content and "rule" not in content):
        return ("tool", "goodput", "mapping")
    return ("mapping",) if isinstance(content.get("mapping"), dict) and "rule" not in content else None


def _declared(content: Any, place: TomlLocation) -> DeclaredAt:
    return DeclaredAt(converted(Declared, content, place, "a mapping"), place)
