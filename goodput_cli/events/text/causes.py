"""Rows of evidence: which lines say something about a death, as data (`causes.toml`), tried with RE2."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

from goodput_cli.events.evidence import Speaker
from goodput_cli.events.text.digit_values import has_digits, masked
from goodput_cli.events.text.log_lines import any_of, linear
from goodput_cli.vocabulary.causes import UNKNOWN_CAUSE, Role

TRACEBACK = "Traceback (most recent call last)"
AGENT = "ChildFailedError"
"""What begins the block in which an agent of torchrun says how its processes ended."""
KILLS = (-9, 137, -15, 143)
"""Exit codes of who was killed or told to end."""
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
class Found:
    """What a row says of a line."""

    row: str
    code: str
    role: Role
    speaker: Speaker
    fields: Mapping[str, str]
    """Those of the expression that matched something."""
    likely: bool = False
    before_steps: str = ""
    """The code that counts in an attempt without a step; "": the same."""
    words: str = ""
    """What the expression matched."""
    at: int = 0
    """Where in the line its literal stands, or what the expression matched, whichever is later."""

    def number(self, name: str) -> int | None:
        """A field that is a whole number."""
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
    """Of the field `by`: code and role."""
    likely: bool = False
    """Whether its lines leave open that it was that."""
    sample: str = ""
    of_exceptions: bool = False
    """Whether it is tried on what a traceback says was raised, and on no other line: such a row needs no literal."""
    frames: str = ""
    """What one of the innermost frames must say as well: `file function line`; "": nothing."""
    sample_frame: str = ""
    before_steps: str = ""
    """The code that counts in an attempt without a step; "": the same."""

    @cached_property
    def pattern(self) -> Any:
        """Compiled once a line has one of the anchors: most rows never are."""
        return linear().compile(self.regex)

    def read(self, text: str) -> Found | None:
        """What the row says of a line that has one of its anchors; None: the line is another one."""
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
        """Whether an exception was raised where the row asks for it. frames: the innermost ones."""
        return not self.frames or any(self._of_frames.search(frame) for frame in frames)

    @cached_property
    def _of_frames(self) -> Any:
        return linear().compile(self.frames)

    def _found(self, code: str, role: Role, fields: Mapping[str, str], match: Any) -> Found:
        text, words = match.string, match[0]
        literal = min((at for one in self.anchors if (at := text.find(one)) >= 0), default=0)
        at = max(literal, match.start())
        return Found(self.name, code, role, self.speaker, fields, self.likely, self.before_steps, words, at)


@dataclass(frozen=True)
class CauseRows:
    """All rows, in the order in which they are tried: those of a user first."""

    rows: tuple[CauseRow, ...]

    @cached_property
    def reads_all(self) -> bool:
        """Whether some row has no literal, and is tried on every line."""
        return bool(self._anywhere)

    @cached_property
    def anchors(self) -> tuple[str, ...]:
        """The literals, one of which is in each line that says something."""
        if not self.rows:
            return ()
        return tuple(sorted({anchor for row in self.rows for anchor in row.anchors} | set(ANCHORS_OF_BLOCKS)))

    @cached_property
    def masked_anchors(self) -> tuple[bytes, ...]:
        """The literals with digits, masked."""
        return tuple({masked(one).encode() for one in self.anchors if has_digits(one)})

    @cached_property
    def expression(self) -> Any:
        """Finds any of the anchors in bytes; with a row that is tried on every line, every line."""
        return any_of(self.anchors, *["(?m:^)"] * self.reads_all)

    def may_read(self, line: bytes) -> bool:
        """Whether a line is worth a look: it holds an anchor of a row or a block."""
        return bool(self.rows) and self.expression.search(line) is not None

    def read(self, text: str) -> Found | None:
        """What the first row that fits says."""
        places = {place for anchor, places in self._of_anchor.items() if anchor in text for place in places}
        for place in sorted(places.union(self._anywhere)):
            found = self.rows[place].read(text)
            if found is not None:
                return found
        return None

    def read_exception(self, text: str, frames: Sequence[str], says_little: bool = True) -> Found | None:
        """What the first row of exceptions that fits says of `Type: message`. frames: see `CauseRow.fits`. says_little:
        whether its words say no more without; else a row that leaves it open says nothing."""
        for row in self._of_exceptions:
            found = row.read(text) if (says_little or not row.likely) and row.fits(frames) else None
            if found is not None:
                return found
        return None

    def first_of(self, text: str) -> CauseRow | None:
        """The row that is tried first on a line."""
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
        """The rows of each anchor, by place."""
        found: dict[str, tuple[int, ...]] = {}
        for place, row in enumerate(self.rows):
            for anchor in row.anchors:
                found[anchor] = (*found.get(anchor, ()), place)
        return found


NO_ROWS = CauseRows(())


def by_exit(code: int) -> tuple[str, Role] | None:
    """Code and role of a process that ended with an exit code as launchers write it; None: it ended well."""
    if code == 0:
        return None
    said = _exits().get(str(code)) or _exits()[_OTHER]
    return said[0], said[1]  # type: ignore[return-value]


def ranks_in(text: str) -> tuple[int, ...]:
    """`2,4-5` -> 2, 4, 5: tasks as Slurm lists them."""
    found: list[int] = []
    for part in text.replace(" ", "").split(","):
        low, _, high = part.partition("-")
        if low.isdecimal() and (high.isdecimal() or not high) and len(low + high) < 14:
            last = int(high or low)
            found += range(int(low), min(last, int(low) + _MOST_RANKS) + 1)
    return tuple(found)


@cache
def shipped_rows() -> CauseRows:
    """The rows of `causes.toml`."""
    return CauseRows(tuple(_row(one, shipped_values()) for one in _shipped()["row"]))


@cache
def shipped_values() -> Mapping[str, Mapping[str, tuple[str, str]]]:
    """By field that `by` may name, what its values give: code and role."""
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
