"""Which mappings there are: those that a user names, and those that are shipped and always on.

`LogProfile` documents (YAML, `kind: LogProfile`) of NVIDIA's cluster readiness engine as mappings.

A profile has a regular expression for each kind of line. It does not say whether the number of a step counts those that
are done or is the index of the last one: that is assumed, and said, unless an annotation gives the user's word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from goodput_cli.errors import UsageError
from goodput_cli.events.mappings.declared import DeclaredAt, JobOf, mappings_in
from goodput_cli.events.mappings.patterns import TemplateError, job_pattern, linear_pattern
from goodput_cli.events.mappings.rules import Mapped, MappedRecords, RecordRule, made_of
from goodput_cli.events.mappings.samples import check_shadows, failed_samples
from goodput_cli.events.mappings.times import is_searched
from goodput_cli.events.text.causes import CauseRows, shipped_rows
from goodput_cli.events.text.entries import PRINTED_ENTRIES
from goodput_cli.events.text.lines import LineRules
from goodput_cli.events.text.programs import launcher, megatron, mllog, nemo_rl, progress_bars, runs

PROFILE_ENDINGS = (".yaml", ".yml")
"""Of files of mappings that are profiles."""
ANNOTATION = "goodput/steps"
"""Of `metadata.annotations`: `done` or `index`."""
_EVENTS: dict[str, tuple[str, str]] = {
    "trainingStep": ("step", ""),
    "checkpointSave": ("save", "checkpointDone"),
    "checkpointDone": ("save", "checkpointSave"),
    "checkpointRestore": ("restore", "checkpointLoaded"),
    "checkpointLoaded": ("restore", "checkpointRestore"),
    "applicationStart": ("start", ""),
}
"""By pattern: the event, and the pattern of the other end of it."""
_ENDS = ("checkpointDone", "checkpointLoaded")
_FIELDS = {"stepTiming": "each", "saveDuration": "took"}
_UNITS = ("s", "ms", "us")
_LEADING_STAMP = re.compile(r"^\^?\(\?P?<timestamp>[^()]*\)(?:\\s[+*]?| )*")
_GROUP = re.compile(r"\(\?P?<(\w+)>")
_GO = (
    ("January", "%B"), ("Jan", "%b"), ("2006", "%Y"), ("01", "%m"), ("02", "%d"), ("15", "%H"), ("04", "%M"),
    ("05", "%S"), ("06", "%y"), ("Z07:00", "%z"), ("-07:00", "%z"), ("-0700", "%z"), ("MST", "%Z"),
)  # fmt: skip
_GO_FRACTION = re.compile(r"[.,][09]+")
_ASSUMED = (
    "the number of a step counts the steps that are done; where it is the index of the last one, write "
    f"`{ANNOTATION}: index` into the profile's metadata.annotations (`done` where it is not)"
)


def as_mapping(name: str, text: str) -> str:
    """The mapping (TOML) that a profile is. Raises UsageError with what to do."""
    profile = _document(name, text)
    metadata, spec = _table(profile, "metadata"), _table(profile, "spec")
    patterns = _table(spec, "patterns")
    known = {kind: _table(patterns, kind) for kind in _EVENTS if isinstance(patterns.get(kind), dict)}
    if "trainingStep" not in known:
        raise UsageError(
            f"{name}: spec.patterns holds no `trainingStep`: without steps there is nothing to account for"
        )
    written = _strptime(str(_table(spec, "timestamp").get("layout", "")))
    word = str(_table(metadata, "annotations").get(ANNOTATION, ""))
    if word not in ("", "done", "index"):
        raise UsageError(f"{name}: the annotation {ANNOTATION} is `done` or `index`")
    title = re.sub(r"[^a-z0-9_.-]+", "-", str(metadata.get("name", "")).lower()).strip("-._") or "log-profile"
    lines = [f"name = {_quoted(title)}", f"steps = {_quoted(word or 'done')}"]
    lines += [] if word else [f"assumed = [{_quoted(_ASSUMED)}]"]
    for kind, pattern in known.items():
        lines += _rule(name, kind, pattern, known, written)
    for kind, pattern in known.items():
        if isinstance(pattern.get("example"), str):
            gives = f'gives = {{ event = "{_EVENTS[kind][0]}" }}'
            lines += ["", "[[sample]]", f"line = {_quoted(pattern['example'])}", gives]
    return "\n".join(lines) + "\n"


def _document(name: str, text: str) -> dict[str, Any]:
    try:
        import yaml
    except ImportError as error:
        raise UsageError(f"{name}: profiles are YAML, which needs PyYAML; pip install pyyaml") from error
    try:
        found = [one for one in yaml.safe_load_all(text) if isinstance(one, dict) and one.get("kind") == "LogProfile"]
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise UsageError(f"{name}: is not YAML: {str(error).splitlines()[0]}") from None
    if len(found) != 1:
        raise UsageError(
            f"{name}: holds {len(found) or 'no'} documents of `kind: LogProfile`; a mapping is one of them"
        )
    return found[0]


def _table(above: dict[str, Any], key: str) -> dict[str, Any]:
    value = above.get(key, {})
    return value if isinstance(value, dict) else {}


def _rule(name: str, kind: str, pattern: dict[str, Any], known: dict[str, dict[str, Any]], written: str) -> list[str]:
    event, other_end = _EVENTS[kind]
    regex = pattern.get("regex")
    if not isinstance(regex, str) or not regex:
        raise UsageError(f"{name}: spec.patterns.{kind} has no `regex`")
    if event == "start":
        _refuse_any_line(name, regex, known)
    bare = _LEADING_STAMP.sub("", regex)
    groups = _GROUP.findall(bare)
    for old in ("epoch", "elapsed", "of", "rank", "job", "label", "end", "time"):  # other things in a mapping
        bare = bare.replace(f"<{old}>", f"<_{old}>")
    step = next((group for group in ("globalStep", "iteration", "step") if group in groups), None)
    if event == "step" and step is None:
        raise UsageError(f"{name}: spec.patterns.trainingStep captures neither `globalStep` nor `iteration`")
    for group, field in (*_FIELDS.items(), *([(step, "step")] if step else [])):
        bare = re.sub(rf"\(\?P?<{group}>", f"(?P<{field}>", bare)
    lines = ["", "[[rule]]", f"event = {_quoted(event)}", f"regex = {_quoted(bare)}"]
    lines += _units(name, kind, pattern, groups)
    if "timestamp" in groups:
        lines.append(f'time = {{ field = "timestamp", format = {_quoted(written)} }}')
    if other_end in known:
        lines.append(f'edge = "{"end" if kind in _ENDS else "begin"}"')
    lines += ["once = true"] if event == "start" else []
    lines += [] if re.search(r"[A-Za-z0-9_=:]{4}", re.sub(r"\(\?P?<\w+>|\[[^]]*\]|\\.", " ", bare)) else ["slow = true"]
    return lines


def _units(name: str, kind: str, pattern: dict[str, Any], groups: list[str]) -> Iterator[str]:
    units = _table(pattern, "units")
    for group, field in _FIELDS.items():
        if group in groups:
            unit = str(units.get(group, "s"))
            if unit not in _UNITS:
                raise UsageError(f"{name}: spec.patterns.{kind}.units.{group} is one of {', '.join(_UNITS)}")
            yield f'{field} = {{ unit = "{unit}" }}'


def _refuse_any_line(name: str, regex: str, known: dict[str, dict[str, Any]]) -> None:
    """Raises UsageError for a start that is found in any line, or in those of another pattern."""
    try:
        start = linear_pattern(regex)
    except TemplateError as error:
        raise UsageError(f"{name}: spec.patterns.applicationStart.regex is {error}") from None
    examples = ["", *(str(one.get("example", "")) for kind, one in known.items() if kind != "applicationStart")]
    if any(start.search(example) for example in dict.fromkeys(examples) if example or not regex.strip(".*^$")):
        raise UsageError(
            f"{name}: spec.patterns.applicationStart fits other lines too: each of them would be a restart; "
            "make it fit the line that a program prints when it starts"
        )
    if start.search("\x00 another line \x00"):
        raise UsageError(f"{name}: spec.patterns.applicationStart fits every line: each of them would be a restart")


def _strptime(layout: str) -> str:
    """A layout of Go as a format of `strptime`; `iso` for what begins like one of ISO-8601."""
    if re.match(r"2006-01-02[T ]15:04:05", layout):
        return "iso"
    written = _GO_FRACTION.sub(lambda found: found[0][0] + "%f", layout.replace("%", "%%"))
    for go, directive in _GO:
        written = written.replace(go, directive)
    return re.sub(r"(?<![%\w])_?2(?!\d)", "%d", written)


def _quoted(text: str) -> str:
    """As a basic string of TOML."""
    return json.dumps(text, ensure_ascii=True)


SHIPPED = (
    "paddlenlp", "torchtitan", "nemo2", "maxtext", "deepspeed", "dlrover", "modded-nanogpt", "nanotron", "verl",
    "nanogpt", "mmengine-text", "detectron2-text", "tf-estimator", "timm", "openrlhf", "paddle-vision",
)  # fmt: skip
"""Mappings of lines of text."""
SHIPPED_OF_RECORDS = ("one-logger", "llama-factory", "ultralytics", "mmengine", "detectron2")
"""Mappings of JSON objects and rows of tables."""
RESERVED = (
    "megatron", "megatron-progress", "launcher", "mllog", "mldiagnostics", "tensorboard", "sacct", "recorder",
    "resiliency", "orbax", "native", "goodput", "progress-bars", "nemo-rl",
)  # fmt: skip
"""Names of formats that are no mappings."""
_MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class MappingFile:
    """The text of a file that declares mappings, read once: whoever has it needs no file."""

    name: str
    text: str


@dataclass(frozen=True)
class Mappings:
    """The mappings that a reading uses."""

    named: tuple[Mapped, ...] = ()
    """Those that a user gave, which are asked first; they stand for shipped ones of their names."""

    @cached_property
    def ruleset(self) -> LineRules:
        """Every rule for lines of text, in the order in which they are tried."""
        ours = (
            *megatron.RULES,
            *launcher.RULES,
            *mllog.RULES,
            *nemo_rl.RULES,
            *runs.RULES,
            *PRINTED_ENTRIES,
            *(rule for one in self._ours(SHIPPED) for rule in one.lines),
            *progress_bars.RULES,
        )
        signs = (*launcher.SIGN_RULES, *(rule for one in self._ours(SHIPPED) for rule in one.signs))
        return LineRules(
            (*(rule for one in self.named for rule in one.lines), *ours),
            self._evidence,
            (*(rule for one in self.named for rule in one.signs), *signs),
        )

    @cached_property
    def _evidence(self) -> CauseRows:
        """What lines say about deaths: a user's rows first."""
        own = tuple(row for one in self.named for row in one.causes)
        return CauseRows((*own, *shipped_rows().rows)) if own else shipped_rows()

    @property
    def first_formats(self) -> list[MappedRecords]:
        """Formats of the records that a user's mappings read."""
        return [MappedRecords(one) for one in self.named if one.records or one.signs_of_records]

    @cached_property
    def last_formats(self) -> list[MappedRecords]:
        """Formats of the records that shipped mappings read: made once a record is of no other."""
        return [MappedRecords(one) for one in self.shipped_of_records]

    @property
    def delimiters(self) -> dict[str, list[RecordRule]]:
        """The rules that read rows of tables, by what parts their columns."""
        found: dict[str, list[RecordRule]] = {}
        for one in (*self.named, *self.shipped_of_records):
            if one.declared.delimiter:
                found.setdefault(one.declared.delimiter, []).extend((*one.records, *one.signs_of_records))
        return found

    def zone_of(self, formats: Iterable[str]) -> str:
        """The zone of times without one in a source in which these formats were found; "": no mapping says it."""
        return next((one.declared.zone for one in self._named_in(formats) if one.declared.zone), "")

    def assumed_of(self, formats: Iterable[str]) -> list[tuple[str, str]]:
        """What was assumed of these formats when their mappings were drafted, each with the format's name."""
        return [(one.name, text) for one in self._named_in(formats) for text in one.declared.assumed]

    def has_own_clock(self, formats: Iterable[str]) -> bool:
        """Whether one of these formats says how the times of its lines are written: what looks like another time in
        them is none."""
        rules = ((one.declared, rule) for one in self._named_in(formats) for rule in one.declared.rule)
        return any(is_searched(declared.time_of(rule).format) for declared, rule in rules)

    def job_in(self, source: str, formats: Iterable[str]) -> str:
        """The name of the job that the path of a source says, if these formats were found in it."""
        for one in self._named_in(formats):
            if isinstance(one.declared.job, JobOf) and one.declared.job.path:
                named = job_pattern(one.declared.job.path).search(source)
                if named is not None and named["job"]:
                    return str(named["job"])
        return ""

    def _named_in(self, formats: Iterable[str]) -> list[Mapped]:
        """The user's mappings among these formats."""
        found = set(formats)
        return [one for one in self.named if one.name in found]

    @property
    def shipped_of_records(self) -> list[Mapped]:
        """The shipped mappings of JSON objects and rows of tables."""
        return self._ours(SHIPPED_OF_RECORDS)

    def _ours(self, names: Sequence[str]) -> list[Mapped]:
        own = {one.name for one in self.named}
        return [one for one in _shipped(tuple(names)) if one.name not in own]


def read_files(paths: Iterable[str]) -> tuple[MappingFile, ...]:
    """The files of mappings. Raises UsageError for one that cannot be read."""
    return tuple(_read(path) for path in dict.fromkeys(paths))


def load_mappings(mapping_files: Iterable[MappingFile], *, samples: bool = True) -> Mappings:
    """The mappings in files: TOML of their own, or settings that hold some. Of those of one name the first counts.
    samples: whether all have to be read as they say. Raises UsageError with file, line and column, and SampleFailed."""
    named: dict[str, Mapped] = {}
    for file in mapping_files:
        is_profile = file.name.lower().endswith(PROFILE_ENDINGS)
        text = as_mapping(file.name, file.text) if is_profile else file.text
        for mapping in mappings_in(file.name, text):
            name = mapping.declared.name
            if name in RESERVED:
                raise mapping.place.of("name").error(f"`{name}` is a format that needs no mapping; take another name")
            made = load_mapping(mapping, samples=samples)
            named.setdefault(made.name, made)
    return Mappings(tuple(named.values()))


def load_mapping(mapping: DeclaredAt, *, samples: bool = True) -> Mapped:
    """The rules of one mapping, checked."""
    made = made_of(mapping)
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
        raise UsageError(f"{path}:{line}:1: is no text in UTF-8") from None
    except ValueError as error:  # a path with a zero byte
        raise UsageError(f"--mapping: {error}") from None
    if len(data) > _MOST_BYTES:
        raise UsageError(f"--mapping {path}: is larger than 1 MiB; a mapping is some lines of TOML")
    return MappingFile(path, text)


@cache
def _shipped(names: tuple[str, ...]) -> tuple[Mapped, ...]:
    folder = files("goodput_cli.events.mappings").joinpath("shipped")
    found = []
    for name in names:
        (mapping,) = mappings_in(f"{name}.toml", folder.joinpath(f"{name}.toml").read_text("utf-8"))
        found.append(load_mapping(mapping._replace(declared=replace(mapping.declared, split="\r"))))
    return tuple(found)
