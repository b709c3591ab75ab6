"""Which mappings there are: those that a user names, and those that are shipped and always on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from goodput_cli.arrays import Mask
from goodput_cli.errors import UsageError
from goodput_cli.events.formats.base import Output, Records
from goodput_cli.events.mappings.declared import Declared, mappings_in, read_mapping
from goodput_cli.events.mappings.rules import Mapped, RecordRule, mapped
from goodput_cli.events.text.marks import Mark, What
from goodput_cli.events.text.parts import TextPart
from goodput_cli.events.text.programs import launcher, megatron, mllog, runs
from goodput_cli.events.text.rules import BadValueError
from goodput_cli.events.text.scan import Ruleset
from goodput_cli.events.text.stamps import Stamp, StampError, Zone

SHIPPED = ("torchtitan", "nemo2", "maxtext", "deepspeed", "dlrover")
"""Mappings of lines of text."""
SHIPPED_OF_RECORDS = ("one-logger", "wandb")
"""Mappings of JSON objects and rows of tables."""
_MOST_BYTES = 1 << 20
_ABOVE = {"pyproject.toml": ("tool", "goodput", "mapping"), "goodput.toml": ("mapping",)}
"""Where settings of a project declare mappings."""


@dataclass(frozen=True)
class Mappings:
    """The mappings that a reading uses."""

    named: tuple[Mapped, ...] = ()
    """Those that a user gave, which are asked first."""

    @cached_property
    def ruleset(self) -> Ruleset:
        """Every rule for lines of text, in the order in which they are tried."""
        ours = (
            *megatron.RULES,
            *launcher.RULES,
            *mllog.RULES,
            *runs.RULES,
            *(rule for one in _shipped(SHIPPED) for rule in one.lines),
        )
        return Ruleset((*(rule for one in self.named for rule in one.lines), *ours))

    @property
    def first_formats(self) -> list[MappedRecords]:
        """Formats of the records that a user's mappings read."""
        return [MappedRecords(one) for one in self.named if one.records]

    @property
    def last_formats(self) -> list[MappedRecords]:
        """Formats of the records that shipped mappings read."""
        return [MappedRecords(one) for one in _shipped(SHIPPED_OF_RECORDS)]

    @property
    def delimiters(self) -> dict[str, list[RecordRule]]:
        """The rules that read rows of tables, by what parts their columns."""
        found: dict[str, list[RecordRule]] = {}
        for one in (*self.named, *_shipped(SHIPPED_OF_RECORDS)):
            if one.declared.delimiter:
                found.setdefault(one.declared.delimiter, []).extend(one.records)
        return found


def load_mappings(paths: Iterable[str]) -> Mappings:
    """Mappings from files: TOML, or a pyproject.toml whose `[tool.goodput.mapping]` holds some. Raises UsageError."""
    named = [mapped(declared) for path in paths for declared in _declared_in(path)]
    seen: set[str] = set()
    for one in named:
        if one.name in seen:
            raise one.declared.place.error(f"two mappings are called {one.name}")
        seen.add(one.name)
    return Mappings(tuple(named))


def _declared_in(path: str) -> Sequence[Declared]:
    try:
        data = Path(path).read_bytes()
        text = data[:_MOST_BYTES].decode()
    except OSError as error:
        raise UsageError(f"--mapping {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"--mapping {path}: is no text in UTF-8") from None
    above = _ABOVE.get(Path(path).name)
    return [read_mapping(text, path)] if above is None else mappings_in(text, path, above)


@cache
def _shipped(names: tuple[str, ...]) -> tuple[Mapped, ...]:
    folder = files("goodput_cli.events.mappings").joinpath("shipped")
    return tuple(
        mapped(read_mapping(folder.joinpath(f"{name}.toml").read_text("utf-8"), f"{name}.toml")) for name in names
    )


class MappedRecords:
    """The records of a mapping as a log format (see `Format`)."""

    restores_are_inferred = False

    def __init__(self, made: Mapped) -> None:
        self.name = made.name
        self._rules = made.records
        self.keys = frozenset().union(*(rule.needed for rule in made.records))

    def recognises(self, record: Mapping[str, Any]) -> bool:
        """Whether some rule finds its keys; whether the values are as `where` says is asked when they are read."""
        return any(has_keys(rule, record) for rule in self._rules)

    def any_key(self, _records: Records) -> bool:
        """Records of other programs hold much else."""
        return True

    def job_of(self, _records: Records) -> str:
        """Jobs are told by files, as those of text are."""
        return self.name

    def translate(self, records: Records, output: Output) -> Mask:
        """A mark per record that a rule reads."""
        used = np.zeros(len(records), dtype=np.bool_)
        marks: list[Mark] = []
        for at, record in enumerate(records.records):
            rule = next((rule for rule in self._rules if rule.recognises(record)), None)
            if rule is None:
                continue
            used[at] = True
            try:
                said, stamp = rule.read(record)
            except (BadValueError, StampError) as error:
                output.report("bad_value", f"{output.notes.bounded('bad_value', str(error))}; dropped", records, [at])
                continue
            if stamp is None and records.stamp[at] >= 0:
                stamp = Stamp(int(records.stamp[at]), Zone.EXACT, False)
            if said.what is not What.IGNORE:
                marks.append(Mark(int(records.origin.line[at]), "", stamp, said))
        output.texts.add(records.origin.source, TextPart(marks))
        return used


def has_keys(rule: RecordRule, record: Mapping[str, Any]) -> bool:
    """Whether a record has the keys that a rule needs."""
    paths = (
        paths for name, paths in rule.declared.keys.items() if name in ("step", "time") or len(rule.declared.keys) == 1
    )
    firsts = [[_first(path) for path in options] for options in paths]
    where = [_first(path) for path in rule.declared.where]
    return all(any(one in record for one in options) for options in firsts) and all(one in record for one in where)


def _first(path: str) -> str:
    return path.split(".", 1)[0].split("[", 1)[0]
