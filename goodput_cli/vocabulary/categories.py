"""The categories of accounting §2 and the causes of failures, with one declaration each.

Categories are in the order of reports. Charts, titles, the glossary, "not recorded" and the schema of saved answers
use these rows. A new category is a row here and the rule that claims its time (`accounting/claims`). Also the names
of categories in tables, and how an attempt can end before a disruption (docs/accounting.md §10). Causes are in nine
groups. Each is declared in a table of `causes.toml`. The order of the groups is their precedence where nothing else
decides (docs/causes.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, Literal, get_args

from goodput_cli.vocabulary.option import TomlRows

_TIMES = "\N{MULTIPLICATION SIGN}"

Group = Literal["training", "starting", "down", "apart"]
"""`training`: steps were in flight, or should have been. `starting`: an attempt started but did not train yet. `down`:
no attempt ran although it should have, or the job was stopped. `apart`: none of these, or a part of training that a
line names."""


CategoryKey = tuple[str, str | None]
"""Name of a category and, for `custom_badput_events`, the label."""


@dataclass(frozen=True)
class CategoryStyle:
    """Style of a category in every chart, on the terminal and in files.

    Colors are from the palette of Okabe and Ito: families differ in hue also for people with color blindness, members
    of a family in lightness. Color is never the only sign: a legend has the letter, a chart a label or pattern next to
    it.
    """

    colour: str
    """`#rrggbb`, visible on white and on black."""
    basic: str
    """One of a terminal's 16 colors; a family shares one or two."""
    letter: str
    """One unique ASCII character."""


@dataclass(frozen=True)
class CategoryDeclaration:
    """The declaration of a category."""

    name: str
    """Its name in every answer, option and document."""
    brief: str
    """A short description (docs/glossary.md)."""
    meaning: str
    """The definition, as in docs/accounting.md §2; a test compares them."""
    look: CategoryStyle
    """Its style in charts."""
    title: str = ""
    """A short title, made of words of the name, for tables without room for the name; the name if empty."""
    group: Group = "apart"
    """The part of an attempt that it belongs to."""
    evidence: tuple[str, ...] = ()
    """Kinds of events (names in `events.schema.Kind`). If a log has none of them, the category is not recorded. Empty:
    it needs no event of its own (`analysis/goodput/findings.py` has the exceptions)."""
    may_be_negative: bool = False
    """True if it is a difference, not measured time."""
    has_labels: bool = False
    """True if it has one row per label of the user."""


class Category(IntEnum):
    """Code of a category in the columns of the engine; its name everywhere else is `Category.WASTED.id`."""

    row: CategoryDeclaration

    def __new__(cls, row: Any) -> Category:
        """Make a member from its `CategoryDeclaration`. `Category(code)` finds existing members without this."""
        member = int.__new__(cls, len(cls.__members__))
        member._value_ = len(cls.__members__)
        member.row = row
        return member

    @property
    def id(self) -> str:
        """Return its name in every answer, option and document."""
        return self.row.name

    @property
    def look(self) -> CategoryStyle:
        """Return its style."""
        return self.row.look

    PRODUCTIVE = CategoryDeclaration(
        name="productive",
        brief="kept training",
        meaning=f"training whose progress was kept; with a reference step time, kept steps {_TIMES} reference",
        look=CategoryStyle("#009e73", "green", "="),
        group="training",
    )
    # Start-up: blues.
    PROGRAM_STARTUP = CategoryDeclaration(
        name="program_startup",
        title="program startup",
        brief="extra time of the first step",
        meaning="time of an attempt's first steps beyond the usual step time: tracing, compilation, warm-up",
        look=CategoryStyle("#1f5fa8", "blue", "S"),
    )
    TPU_INITIALIZATION = CategoryDeclaration(
        name="tpu_initialization",
        title="accelerator initialization",
        brief="accelerator initialization",
        meaning="initialization of the accelerators (TPU, GPU)",
        look=CategoryStyle("#3a87c8", "blue", "T"),
        group="starting",
        evidence=("TPU_INIT",),
    )
    TRAINING_PREP = CategoryDeclaration(
        name="training_prep",
        title="training prep",
        brief="preparation before the loop",
        meaning="preparation before the training loop",
        look=CategoryStyle("#6aaede", "bright_blue", "P"),
        group="starting",
        evidence=("PREP",),
    )
    DATA_LOADING_SYNC = CategoryDeclaration(
        name="data_loading_sync",
        title="data loading",
        brief="data loading outside steps",
        meaning="data loading while no step is in flight, or logged as loading between two steps",
        look=CategoryStyle("#9fd0f0", "bright_cyan", "D"),
        group="starting",
        evidence=("DATA",),
    )
    # Checkpoints: purples.
    SAVE = CategoryDeclaration(
        name="unproductive_checkpoint_save_time",
        title="checkpoint save",
        brief="checkpoint saves that block training",
        meaning="the part of checkpoint saves that blocks training",
        look=CategoryStyle("#cc79a7", "magenta", "C"),
        evidence=("SAVE",),
    )
    RESTORE = CategoryDeclaration(
        name="unproductive_checkpoint_restore_time",
        title="checkpoint restore",
        brief="restores of a checkpoint",
        meaning="restores of a checkpoint; in checkpoint logs inferred, with the start-up (the report marks this)",
        look=CategoryStyle("#8d5a9e", "bright_magenta", "R"),
        group="starting",
        evidence=("RESTORE",),
    )
    # Disruptions: orange to red.
    WASTED = CategoryDeclaration(
        name="wasted_progress_from_disruption",
        title="wasted progress",
        brief="training that was lost",
        meaning="training that is not part of the job's final progress",
        look=CategoryStyle("#d55e00", "red", "X"),
        group="training",
    )
    RECOVERY = CategoryDeclaration(
        name="infrastructure_recovery_from_disruption",
        title="recovery",
        brief="downtime after a disruption",
        meaning="from an attempt's last activity to the next start, and failed starts",
        look=CategoryStyle("#e69f00", "yellow", "!"),
        group="down",
    )
    CUSTOM = CategoryDeclaration(
        name="custom_badput_events",
        title="custom",
        brief="custom blocking events, by label",
        meaning="custom blocking events, one row per label (upper case; UNKNOWN if the label is missing)",
        look=CategoryStyle("#d8c920", "bright_yellow", "E"),
        evidence=("CUSTOM",),
        has_labels=True,
    )
    # Elastic slices: browns.
    ELASTIC_DOWN = CategoryDeclaration(
        name="elastic_slice_down",
        title="elastic slice down",
        brief="waiting after losing a slice",
        meaning="waiting after a slice was lost, until the job continues with the other slices or the slice is back",
        look=CategoryStyle("#7f4f24", "cyan", "d"),
        group="starting",
        evidence=("ELASTIC_DOWN", "SLICES"),
    )
    ELASTIC_UP = CategoryDeclaration(
        name="elastic_scale_up",
        title="elastic scale-up",
        brief="waiting for more slices",
        meaning="waiting for more slices to join the job",
        look=CategoryStyle("#a67c52", "cyan", "u"),
        group="starting",
        evidence=("ELASTIC_UP", "SLICES"),
    )
    ELASTIC_REINIT = CategoryDeclaration(
        name="elastic_reinitialization",
        title="elastic reinit",
        brief="re-initializing with other slices",
        meaning="re-initializing the job after its number of slices changed",
        look=CategoryStyle("#c9a57b", "cyan", "i"),
        group="starting",
        evidence=("ELASTIC_REINIT", "SLICES"),
    )
    STALL = CategoryDeclaration(
        name="step_stall",
        title="step stall",
        brief="hangs inside a step",
        meaning=(
            "step logs without a reference: time of a kept step beyond the usual step time, if the step took more than "
            f"5 {_TIMES} that time (--stall-factor; 0 = off): a hang, a suspended machine, a pause that is not logged"
        ),
        look=CategoryStyle("#882255", "bright_red", "Z"),
        group="training",
    )
    SLOWDOWN = CategoryDeclaration(
        name="training_slowdown",
        title="training slowdown",
        brief="slower than the reference step time",
        meaning=(
            "with a reference: time of kept steps beyond the reference step time; shown as a negative value if steps "
            "were faster"
        ),
        look=CategoryStyle("#b0567e", "bright_red", "~"),
        group="training",
        may_be_negative=True,
    )
    UNDETERMINED = CategoryDeclaration(
        name="disruption_undetermined",
        title="undetermined",
        brief="wasted progress or restart; the log does not show which",
        meaning=(
            "checkpoint logs: the time when an attempt died is not logged, so wasted progress and restart cannot be "
            "separated; the report shows the bounds"
        ),
        look=CategoryStyle("#f0a878", "bright_red", "?"),
        group="down",
    )
    # No training and no attempt: grays.
    STOPPED = CategoryDeclaration(
        name="stopped",
        brief="planned downtime",
        meaning="from a trusted clean end to the next start: planned, not a disruption",
        look=CategoryStyle("#8a8a8a", "bright_black", "_"),
        group="down",
    )
    QUEUED = CategoryDeclaration(
        name="queued",
        brief="waiting for a start after being scheduled",
        meaning=(
            "from a user_scheduled line to the next start, if the job has no event in between (heartbeats after the "
            "end of their attempt do not count); to the end of the window if no start follows"
        ),
        look=CategoryStyle("#a6a6a6", "white", "q"),
        evidence=("SCHEDULED",),
    )
    EXCLUDED = CategoryDeclaration(
        name="excluded",
        brief="excluded by the user, outside the 100 %",
        meaning=(
            "windows that the user excluded (--exclude), time skipped by a clock that was set forward, and planned "
            "stops with --exclude-stopped; outside the 100 %"
        ),
        look=CategoryStyle("#c4c4c4", "white", "-"),
    )
    OTHER = CategoryDeclaration(
        name="other",
        brief="all other time",
        meaning="all other time, including a step in progress at the end of the window",
        look=CategoryStyle("#6b6b6b", "bright_black", "o"),
    )


CATEGORIES: tuple[str, ...] = tuple(category.id for category in Category)
"""Names by code: `CATEGORIES[Category.WASTED] == "wasted_progress_from_disruption"`."""

BY_NAME: Mapping[str, Category] = {category.id: category for category in Category}
"""Categories by name, in the order of reports."""

NOT_BADPUT = (Category.PRODUCTIVE, Category.EXCLUDED)
"""Categories that are not badput; all others are."""

OVERLAPPED = "data_loading_async"
"""Time that is in no category: data loading inside a step."""
OVERLAPPED_TITLE = "data loading in steps"
OVERLAPPED_REMARK = "overlaps training, not badput"


def is_eval(label: str) -> bool:
    """Return True if a custom event is an evaluation."""
    return "EVAL" in label


def in_group(group: Group) -> tuple[Category, ...]:
    """Return the categories of a group."""
    return tuple(category for category in Category if category.row.group == group)


_CUSTOM_TITLE = Category.CUSTOM.row.title
EVAL_LABEL = "EVAL_STEP"
"""The label of evaluations, also of those that programs print."""
_EVALUATION = "evaluation"


def title(name: str) -> str:
    """Return the short title of a category, or of data loading inside a step."""
    if name == OVERLAPPED:
        return OVERLAPPED_TITLE
    return (BY_NAME[name].row.title if name in BY_NAME else "") or name


NAMES = (*(one.id for one in Category), *(one.row.title for one in Category if one.row.title), _EVALUATION)
"""Every name of a category, full and short."""


def full_name(category: str, label: str | None) -> str:
    """Return a category with its label: `custom_badput_events:LABEL`."""
    return category if label is None else f"{category}:{label}"


def label_title(label: str) -> str:
    """Return a label of a custom event for people."""
    return _EVALUATION if label == EVAL_LABEL else label


def short_title(name: str, label: str | None) -> str:
    """Return the short title of a category; with a label `evaluation` or `custom:LABEL`, as in options."""
    if label == EVAL_LABEL:
        return _EVALUATION
    return title(name) if label is None else f"{_CUSTOM_TITLE}:{label}"


def name_parts(name: str) -> tuple[str, str, str]:
    """Return the parts of a full name: a sign and a blank before it, the category, and the label; missing parts are
    empty."""
    sign = name[:2] if name[1:2] == " " else ""
    category, _, label = name.removeprefix(sign).partition(":")
    return sign, category, label


def brief_name(name: str) -> str:
    """Return a full name as its short title; a sign before it stays."""
    sign, category, label = name_parts(name)
    return sign + short_title(category, label or None)


def category_named(name: str) -> tuple[Category, str | None] | None:
    """Return the category of a full or short name as in any table, and its label in upper case; None if it names
    none."""
    words, colon, label = name.partition(":")
    plain, label = " ".join(words.replace("_", " ").lower().split()), label.strip().upper()
    if plain == _EVALUATION and not colon:
        return Category.CUSTOM, EVAL_LABEL
    category = (
        next((one for one in Category if plain in (one.id.replace("_", " "), one.row.title)), None) if plain else None
    )
    if category is None or (colon and not (label and category.row.has_labels)):
        return None
    return category, label or None


Ended = Literal["crashed", "terminated", "silent", "preempted", "slice_down", "scale_up", "rolled_back"]
ENDED: tuple[Ended, ...] = get_args(Ended)
ENDED_MEANINGS: Mapping[str, str] = {
    "crashed": "the log reports an error or a failed exit",
    "terminated": "stopped by a signal, a time limit or a request",
    "silent": "the log lines stop without a message",
    "preempted": "a save at the end reached a preemption",
    "slice_down": "a slice was lost",
    "scale_up": "planned, for more slices",
    "rolled_back": "steps were rolled back in the running process",
}
"""Meanings of `Ended` for people."""
UNCOUNTED: frozenset[str] = frozenset(("scale_up", "rolled_back"))
"""Ends of attempts without a disruption: listed with the disruptions, but not counted."""


def ended_words(how: str) -> str:
    """Return the end of an attempt for people: `slice down`."""
    return how.replace("_", " ")


CauseGroup = Literal["hardware", "scheduler", "operator", "memory", "storage", "network", "data", "software", "unknown"]
GROUPS: tuple[CauseGroup, ...] = get_args(CauseGroup)
"""In order of precedence."""

Role = Literal["root", "exit", "echo", "teardown", "context"]
"""`root` states a mechanism, `exit` how a process ended, `echo` that another process is gone. `teardown` is printed
while processes are being killed, and `context` ends nothing."""
ROLES: tuple[Role, ...] = get_args(Role)

Certainty = Literal["confirmed", "likely"]
CONFIRMED: Certainty = "confirmed"
CERTAINTIES: tuple[Certainty, ...] = get_args(Certainty)
CONFIRMED_IN_VERSION_1 = "said"
"""A confirmed cause in answers with `schema_version` 1, which are still read."""

CANCELLED = "cancelled"
UNKNOWN_CAUSE = "unknown"
"""The log does not contain the reason."""
KILLED = "killed"
PEER_LOST = "peer_lost"
"""Code of an echo: another process was lost. It is not a cause."""


@dataclass(frozen=True)
class Cause:
    """A table of `causes.toml`. Its name is the name of the cause in every result."""

    group: CauseGroup
    says: str
    """Evidence in the log, for people."""
    advice: str
    """Advice, in a sentence."""
    advice_without_loss: str = ""
    """Advice if no training was lost, so that saving more often gains nothing; "" for `advice`."""

    def advice_for(self, *, training_lost: bool) -> str:
        """Return the advice that applies."""
        return self.advice if training_lost else self.advice_without_loss or self.advice


CAUSES: Mapping[str, Cause] = TomlRows(Path(__file__).with_name("causes.toml"), Cause)
"""By name."""
OUT_OF_MEMORY = ("device_oom", "host_oom")
"""The causes that thresholds call `oom`."""


def group_of(code: str) -> CauseGroup:
    """Return the group of a cause; `unknown` for other words."""
    row = CAUSES.get(code)
    return "unknown" if row is None else row.group


def cause_text(code: str, certainty: str | None) -> str:
    """Return a cause as tables show it: `device_oom`, `likely device_oom`."""
    return code if certainty == CONFIRMED else f"likely {code}"


def with_certainty(words: str, certainties: Iterable[str | None]) -> str:
    """Return a cause with the number of disruptions for which it is only likely: `likely oom`, `oom (2 likely)`."""
    every = list(certainties)
    likely = every.count("likely")
    if not likely:
        return words
    return f"likely {words}" if likely == len(every) else f"{words} ({likely} likely)"
