"""Load the mappings that a user passes and those that are shipped and always on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path

from msgspec.structs import replace

from goodput_cli.errors import NO_PROFILE, PROFILE_ENDINGS, UsageError
from goodput_cli.events.capabilities import INPUT_TABLES
from goodput_cli.events.mappings.declared import DeclaredAt, JobOf, mappings_in
from goodput_cli.events.mappings.patterns import TemplateError, job_pattern
from goodput_cli.events.mappings.rules import Mapped, MappedRecords, RecordRule, compile_mapping
from goodput_cli.events.mappings.samples import check_shadows, failed_samples
from goodput_cli.events.mappings.times import is_searched
from goodput_cli.events.text.causes import CauseRows, shipped_rows
from goodput_cli.events.text.entries import PRINTED_ENTRIES
from goodput_cli.events.text.lines import LineRules
from goodput_cli.events.text.programs import launcher, megatron, mllog, nemo_rl, progress_bars, rollbacks, runs, stages

SHIPPED = (
    "paddlenlp", "torchtitan", "nemo2", "maxtext", "deepspeed", "dlrover", "modded-nanogpt", "nanotron", "verl",
    "nanogpt", "mmengine-text", "detectron2-text", "tf-estimator", "timm", "openrlhf", "paddle-vision", "stylegan",
    "torchvision", "pytorch-examples",
)  # fmt: skip
"""Mappings for lines of text."""
SHIPPED_OF_RECORDS = ("one-logger", "llama-factory", "ms-swift", "ultralytics", "mmengine", "detectron2")
"""Mappings for JSON objects and table rows."""
RESERVED = (
    "megatron", "megatron-progress", "launcher", "mllog", "mldiagnostics", "tensorboard", "sacct", "recorder",
    "resiliency", "orbax", "native", "goodput", "progress-bars", "nemo-rl", "rollback", "stages",
)  # fmt: skip
"""Names of formats that are not mappings."""
_MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class MappingFile:
    """Text of a file with mappings, read once so that later steps need no file."""

    name: str
    text: str


@dataclass(frozen=True)
class Mappings:
    """Mappings used for reading."""

    named: tuple[Mapped, ...] = ()
    """Mappings of the user, which are tried first and replace shipped ones of the same name."""

    @cached_property
    def ruleset(self) -> LineRules:
        """Return all rules for lines of text, in the order in which they are tried."""
        return self.with_shipped(SHIPPED) if self.named else _without_own(SHIPPED)

    def with_shipped(self, shipped: Sequence[str]) -> LineRules:
        """Return the rules of these mappings, of our programs, and of shipped mappings of these names."""
        of_shipped = self._ours(shipped)
        ours = (
            *rollbacks.RULES,
            *megatron.RULES,
            *launcher.RULES,
            *mllog.RULES,
            *nemo_rl.RULES,
            *runs.RULES,
            *PRINTED_ENTRIES,
            *(rule for one in of_shipped for rule in one.lines),
            *progress_bars.RULES,
            *stages.RULES,
        )
        signs = (*launcher.SIGN_RULES, *(rule for one in of_shipped for rule in one.signs))
        return LineRules(
            (*(rule for one in self.named for rule in one.lines), *ours),
            self._evidence,
            (*(rule for one in self.named for rule in one.signs), *signs),
            tuple(rule for one in INPUT_TABLES for rule in one.lines),
        )

    @cached_property
    def _evidence(self) -> CauseRows:
        """Return the rows of evidence: the user's first."""
        own = tuple(row for one in self.named for row in one.causes)
        return CauseRows((*own, *shipped_rows().rows)) if own else shipped_rows()

    @property
    def first_formats(self) -> list[MappedRecords]:
        """Return the record formats of the user's mappings."""
        return [MappedRecords(one) for one in self.named if one.records or one.signs_of_records]

    @cached_property
    def last_formats(self) -> list[MappedRecords]:
        """Return the record formats of shipped mappings, made when no other format matches."""
        return [MappedRecords(one) for one in self.shipped_of_records]

    @property
    def delimiters(self) -> dict[str, list[RecordRule]]:
        """Return the rules for table rows, by delimiter."""
        found: dict[str, list[RecordRule]] = {}
        for one in (*self.named, *self.shipped_of_records):
            if one.declared.delimiter:
                found.setdefault(one.declared.delimiter, []).extend((*one.records, *one.signs_of_records))
        return found

    def zone_of(self, formats: Iterable[str]) -> str:
        """Return the zone of times without one in a source with these formats; empty if no mapping sets it."""
        return next((one.declared.zone for one in self._named_in(formats) if one.declared.zone), "")

    def assumed_of(self, formats: Iterable[str]) -> list[tuple[str, str]]:
        """Return the assumptions of the drafted mappings among these formats, each with the format's name."""
        return [(one.name, text) for one in self._named_in(formats) for text in one.declared.assumed]

    def with_unknown_epochs(self, formats: Iterable[str]) -> frozenset[str]:
        """Return those of these formats whose steps may begin again with an epoch or phase: all but the user's mappings
        that state otherwise."""
        found = set(formats)
        return frozenset(found - {one.name for one in self._named_in(found) if one.declared.epochs == "none"})

    def inferred_of(self, formats: Iterable[str]) -> frozenset[str]:
        """Return those of these formats whose mapping does not decide whether steps that begin again are a restart."""
        return frozenset(one.name for one in self._named_in(formats) if one.declared.epochs == "unknown")

    def has_own_clock(self, formats: Iterable[str]) -> bool:
        """Return True if one of these formats defines the times of its lines; other apparent times in them are not
        timestamps."""
        rules = ((one.declared, rule) for one in self._named_in(formats) for rule in one.declared.rule)
        return any(is_searched(declared.time_of(rule).format) for declared, rule in rules)

    def job_in(self, source: str, formats: Iterable[str]) -> str:
        """Return the job name in the path of a source with these formats; empty if there is none."""
        for one in self._named_in(formats):
            if isinstance(one.declared.job, JobOf) and one.declared.job.path:
                named = job_pattern(one.declared.job.path).search(source)
                if named is not None and named["job"]:
                    return str(named["job"])
        return ""

    def _named_in(self, formats: Iterable[str]) -> list[Mapped]:
        """Return the user's mappings among these formats."""
        found = set(formats)
        return [one for one in self.named if one.name in found]

    @property
    def shipped_of_records(self) -> list[Mapped]:
        """Return the shipped mappings for JSON objects and table rows."""
        return self._ours(SHIPPED_OF_RECORDS)

    def _ours(self, names: Sequence[str]) -> list[Mapped]:
        own = {one.name for one in self.named}
        return [one for one in _shipped(tuple(names)) if one.name not in own]


def read_files(paths: Iterable[str]) -> tuple[MappingFile, ...]:
    """Return the files of mappings. Raises UsageError for an unreadable one."""
    return tuple(_read(path) for path in dict.fromkeys(paths))


def load_mappings(mapping_files: Iterable[MappingFile], *, samples: bool = True) -> Mappings:
    """Return the mappings in files: mapping files, or settings that contain some. The first of several with one name
    counts.

    samples: True to check all samples. Raises UsageError with file, line and column, and SampleFailed.
    """
    named: dict[str, Mapped] = {}
    for file in mapping_files:
        if file.name.lower().endswith(PROFILE_ENDINGS):
            raise UsageError(f"{file.name}: {NO_PROFILE}")
        for mapping in mappings_in(file.name, file.text):
            name = mapping.declared.name
            if name in RESERVED:
                raise mapping.place.of("name").error(f"`{name}` is a built-in format; choose another name")
            made = load_mapping(mapping, samples=samples)
            named.setdefault(made.name, made)
    return Mappings(tuple(named.values()))


def load_mapping(mapping: DeclaredAt, *, samples: bool = True) -> Mapped:
    """Return the checked rules of one mapping."""
    made = compile_mapping(mapping)
    if isinstance(mapping.declared.job, JobOf) and mapping.declared.job.path:
        try:
            job_pattern(mapping.declared.job.path)
        except TemplateError as error:
            raise mapping.place.of("job").error(str(error)) from None
    check_shadows(made)
    failed = failed_samples(made) if samples else []
    if failed:
        more = f" (and {len(failed) - 1} more samples fail)" if len(failed) > 1 else ""
        raise type(failed[0])(f"{failed[0]}{more}")
    return made


def _read(path: str) -> MappingFile:
    try:
        with Path(path).open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"--mapping {path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}:{line}:1: is not UTF-8 text") from None
    except ValueError as error:  # A path with a zero byte.
        raise UsageError(f"--mapping: {error}") from None
    if len(data) > _MOST_BYTES:
        raise UsageError(f"--mapping {path}: is larger than 1 MiB", cause="a mapping is some lines of TOML")
    return MappingFile(path, text)


@cache
def _without_own(shipped: tuple[str, ...]) -> LineRules:
    """Return the rules where a user gave no mapping: the same for all logs of a process."""
    return Mappings().with_shipped(shipped)


@cache
def _shipped(names: tuple[str, ...]) -> tuple[Mapped, ...]:
    folder = files("goodput_cli.events.mappings").joinpath("shipped")
    found = []
    for name in names:
        (mapping,) = mappings_in(f"{name}.toml", folder.joinpath(f"{name}.toml").read_text("utf-8"))
        found.append(load_mapping(mapping._replace(declared=replace(mapping.declared, split="\r"))))
    return tuple(found)
