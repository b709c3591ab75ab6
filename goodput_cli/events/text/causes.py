"""Define rows of evidence: patterns of lines that explain a failure (`causes.toml`), matched with RE2."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

from goodput_cli.events.evidence import Speaker
from goodput_cli.events.text.date_positions import has_digits, masked
from goodput_cli.events.text.log_lines import any_of, linear
from goodput_cli.vocabulary.categories import UNKNOWN_CAUSE, Role

TRACEBACK = "Traceback (most recent call last)"
AGENT = "ChildFailedError"
"""First line of the block in which a torchrun agent reports how its processes ended."""
KILLS = (-9, 137, -15, 143)
"""Exit codes of processes that were killed or asked to end."""
ANCHORS_OF_BLOCKS = (
    TRACEBACK,
    '", line ',
    AGENT,
    "Root Cause (first observed failure)",
    "The above exception was the direct cause",
    "RayTaskError(",
    "Begin global rank ",
    "End global rank ",
    "what():  ",
    "thread terminated with exception: ",
    "Exception in device=",
    "] Non-OK-status: ",
    "ncaught exception",
    "nhandled exception",
)
_MOST_RANKS = 65_536
_OTHER = "other"
_FATAL = "fatal"


@dataclass(frozen=True)
class CauseMatch:
    """The match of a row in a line."""

    row: str
    code: str
    role: Role
    speaker: Speaker
    fields: Mapping[str, str]
    """Named groups of the pattern that matched."""
    likely: bool = False
    before_steps: str = ""
    """Code that counts in an attempt without a step; empty: the same."""
    words: str = ""
    """Text that the pattern matched."""
    at: int = 0
    """Position in the line of the row's literal or of the match, whichever is later."""

    def number(self, name: str) -> int | None:
        """Return a field as an integer; None if it is not one."""
        text = self.fields.get(name, "")
        return int(text) if text.lstrip("-").isascii() and text.lstrip("-").isdigit() and len(text) < 19 else None


@dataclass(frozen=True, eq=False)
class CauseRow:
    """One kind of line."""

    name: str
    anchors: tuple[str, ...]
    regex: str
    speaker: Speaker = "process"
    code: str = ""
    role: Role = "root"
    by: str = ""
    values: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Code and role by value of the field `by`."""
    likely: bool = False
    """True if its lines do not confirm the cause."""
    sample: str = ""
    of_exceptions: bool = False
    """True if it is matched only with exceptions of tracebacks; such a row needs no literal."""
    frames: str = ""
    """Pattern that one of the innermost frames, `file function line`, must match as well; empty: any."""
    sample_frame: str = ""
    before_steps: str = ""
    """Code that counts in an attempt without a step; empty: the same."""

    @cached_property
    def pattern(self) -> Any:
        """Return the compiled pattern; compiled on demand, as most rows are never used."""
        return linear().compile(self.regex)

    def read(self, text: str) -> CauseMatch | None:
        """Return the match of a line that contains one of the anchors; None if it does not match."""
        match = self.pattern.search(text)
        if match is None:
            return None
        fields = {name.rstrip("2"): value for name, value in match.groupdict().items() if value}
        if not self.by:
            return self._found(self.code, self.role, fields, match)
        value = fields.get(self.by, "")
        code, role = self.values.get(value) or self.values.get(_OTHER, ("", ""))
        if value.startswith("Exited with exit code"):
            code, role = _exits()[fields["exit"]] if fields["exit"] in _exits() else _exits()[_OTHER]
        if role == _FATAL:
            role = "root" if "Fatal" in text.replace("Non-Fatal", "").replace("Nonfatal", "") else "context"
        if not code or fields.get("exit") == "0":
            return None
        return self._found(code, role, fields, match)  # type: ignore[arg-type]

    def fits(self, frames: Sequence[str]) -> bool:
        """Return True if the row accepts these frames, the innermost ones of an exception."""
        return not self.frames or any(self._of_frames.search(frame) for frame in frames)

    @cached_property
    def _of_frames(self) -> Any:
        return linear().compile(self.frames)

    def _found(self, code: str, role: Role, fields: Mapping[str, str], match: Any) -> CauseMatch:
        text, words = match.string, match[0]
        literal = min((at for one in self.anchors if (at := text.find(one)) >= 0), default=0)
        at = max(literal, match.start())
        return CauseMatch(self.name, code, role, self.speaker, fields, self.likely, self.before_steps, words, at)


@dataclass(frozen=True)
class CauseRows:
    """All rows in the order in which they are tried: those of the user first."""

    rows: tuple[CauseRow, ...]

    @cached_property
    def reads_all(self) -> bool:
        """Return True if some row has no literal and is tried on every line."""
        return bool(self._anywhere)

    @cached_property
    def anchors(self) -> tuple[str, ...]:
        """Return the literals; each line with evidence contains at least one."""
        if not self.rows:
            return ()
        return tuple(sorted({anchor for row in self.rows for anchor in row.anchors} | set(ANCHORS_OF_BLOCKS)))

    @cached_property
    def masked_anchors(self) -> tuple[bytes, ...]:
        """Return the literals with digits, masked."""
        return tuple({masked(one).encode() for one in self.anchors if has_digits(one)})

    @cached_property
    def expression(self) -> Any:
        """Return a pattern that finds any anchor in bytes; it matches every line if some row has no literal."""
        return any_of(self.anchors, *["(?m:^)"] * self.reads_all)

    def may_read(self, line: bytes) -> bool:
        """Return True if a line contains an anchor of a row or a block."""
        return bool(self.rows) and self.expression.search(line) is not None

    def read(self, text: str) -> CauseMatch | None:
        """Return the match of the first row that fits."""
        places = {place for anchor, places in self._of_anchor.items() if anchor in text for place in places}
        for place in sorted(places.union(self._anywhere)):
            found = self.rows[place].read(text)
            if found is not None:
                return found
        return None

    def read_exception(self, text: str, frames: Sequence[str], is_vague: bool = True) -> CauseMatch | None:
        """Return the match of the first row of exceptions that fits `Type: message`. frames: see `CauseRow.fits`.
        says_little: True if the words alone are vague; otherwise rows that are only likely are skipped."""
        for row in self._of_exceptions:
            found = row.read(text) if (is_vague or not row.likely) and row.fits(frames) else None
            if found is not None:
                return found
        return None

    def first_of(self, text: str) -> CauseRow | None:
        """Return the row that is tried first on a line."""
        places = [place for anchor, places in self._of_anchor.items() if anchor in text for place in places]
        return self.rows[min(places)] if places and not self._anywhere else None

    @cached_property
    def _anywhere(self) -> tuple[int, ...]:
        return tuple(place for place, row in enumerate(self.rows) if not row.anchors and not row.of_exceptions)

    @cached_property
    def _of_exceptions(self) -> tuple[CauseRow, ...]:
        return tuple(row for row in self.rows if row.of_exceptions)

    @cached_property
    def _of_anchor(self) -> Mapping[str, tuple[int, ...]]:
        """Return the positions of rows by anchor."""
        found: dict[str, tuple[int, ...]] = {}
        for place, row in enumerate(self.rows):
            for anchor in row.anchors:
                found[anchor] = (*found.get(anchor, ()), place)
        return found


NO_ROWS = CauseRows(())


def by_exit(code: int) -> tuple[str, Role] | None:
    """Return code and role for an exit code as launchers write it; None for a clean exit."""
    if code == 0:
        return None
    said = _exits().get(str(code)) or _exits()[_OTHER]
    return said[0], said[1]  # type: ignore[return-value]


def ranks_in(text: str) -> tuple[int, ...]:
    """Read the list of tasks of Slurm: `2,4-5` -> 2, 4, 5."""
    found: list[int] = []
    for part in text.replace(" ", "").split(","):
        low, _, high = part.partition("-")
        if low.isdecimal() and (high.isdecimal() or not high) and len(low + high) < 14:
            last = int(high or low)
            found += range(int(low), min(last, int(low) + _MOST_RANKS) + 1)
    return tuple(found)


@cache
def shipped_rows() -> CauseRows:
    """Return the rows of `causes.toml`."""
    return CauseRows(tuple(_row(one, shipped_values()) for one in _shipped()["row"]))


@cache
def shipped_values() -> Mapping[str, Mapping[str, tuple[str, str]]]:
    """Return code and role by value, for each field that `by` may name."""
    tables = _shipped()["values"].items()
    return {by: {value: (said[0], said[1]) for value, said in values.items()} for by, values in tables}


@cache
def _shipped() -> Mapping[str, Any]:
    return tomllib.loads(files("goodput_cli.events.text").joinpath("causes.toml").read_text("utf-8"))


def _row(declared: Mapping[str, Any], values: Mapping[str, Mapping[str, tuple[str, str]]]) -> CauseRow:
    by = declared.get("by", "")
    return CauseRow(
        declared["name"],
        tuple(declared.get("anchors", ())),
        declared["regex"],
        declared.get("from", "process"),
        declared.get("code", UNKNOWN_CAUSE),
        declared.get("role", "root"),
        by,
        values.get(by, {}),
        declared.get("likely", False),
        declared.get("sample", ""),
        declared.get("of", "") == "exception",
        declared.get("frames", ""),
        declared.get("sample_frame", ""),
        declared.get("before_steps", ""),
    )


@cache
def _exits() -> Mapping[str, tuple[str, str]]:
    return next(row.values for row in shipped_rows().rows if row.by == "exit")
