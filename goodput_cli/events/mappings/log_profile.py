"""`LogProfile` documents (YAML, `kind: LogProfile`) of NVIDIA's cluster readiness engine as mappings.

A profile has a regular expression for each kind of line. It does not say whether the number of a step counts those that
are done or is the index of the last one: that is assumed, and said, unless an annotation gives the user's word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from goodput_cli.errors import UsageError

ENDINGS = (".yaml", ".yml")
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


def is_profile(name: str) -> bool:
    """Whether a file of mappings is read as YAML."""
    return name.lower().endswith(ENDINGS)


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
    from goodput_cli.events.text.marks import linear

    try:
        compiled = linear().compile(regex)
    except linear().error as error:
        raise UsageError(f"{name}: spec.patterns.applicationStart.regex is no RE2: {error}") from None
    examples = ["", *(str(one.get("example", "")) for kind, one in known.items() if kind != "applicationStart")]
    if any(compiled.search(example) for example in dict.fromkeys(examples) if example or not regex.strip(".*^$")):
        raise UsageError(
            f"{name}: spec.patterns.applicationStart fits other lines too: each of them would be a restart; "
            "make it fit the line that a program prints when it starts"
        )
    if compiled.search("\x00 another line \x00"):
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
