"""Cases of the restart model: small logs with hand-checked expected results (`cases/*.toml`).

Fields of a case:

- `name`, `rule` (the rule of the restart model that decides, or two that compete: `D2 vs D4`), `program` (the output
  that the log is modeled on), `why` (how the result follows from the log)
- `log` (the text of `train.log`) or `files` (text by file name)
- `attempts`, `disruptions`, `kept`, `wasted` (steps), `last_step`, `window` (s) and `seconds` (s by category): a
  number, or `[low, high]` where rounding, or a convention of docs/accounting.md, leaves a range
- `ending` and `at_risk` (steps), where the log decides them
- `answer`: `number` (default: bounds are wrong), `number_or_bounds`, `upper_bound` (a downtime, save or evaluation of
  unknown length), `two_readings` (`readings` has the fields of each), `unknown` (goodput is not judged), `no_time` (no
  second is known)
- `expected_failure`: the current wrong answer. A fix must remove it.
- `revised`: the correction made after the program first answered: of the result, or with `the log:` of a log that did
  not show what `why` states
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import goodput_cli
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.errors import GoodputError, NotEnoughData

CASES = Path(__file__).parent / "cases"
RULES = ("D1", "D2", "D2a", "D2b", "D2c", *(f"D{number}" for number in range(3, 14)))
PAIRS = (
    "D2 vs D4", "D4 vs D13", "D3 vs D12", "D5 vs D4", "D6 vs D12", "D7 vs D4", "D8 vs D12", "D8 vs D1", "D9 vs D4",
    "D10 vs D11", "D11 vs D12", "D2b vs D12", "D13 vs D12",
)  # fmt: skip
"""Rules that compete: both have evidence in the log, and the first decides."""
KINDS = (*RULES, *PAIRS, "end", "phase")
"""Kinds of cases. `end`: a hang, a death without a clock or an unfinished save at the end of the log. `phase`: the time
of saves and evaluations."""

Answer = Literal["number", "number_or_bounds", "upper_bound", "two_readings", "unknown", "no_time"]
Range = tuple[float, float]

_WIDEST = 10.0
"""Maximum distance (points of goodput) between two bounds that still count as an answer."""
_NEAR_SECONDS, _NEAR_SHARE, _NEAR_POINTS = 1.0, 0.01, 1.0
"""Tolerance of amounts of time, absolute and of the amount, and of goodput."""
_CHANGED = 1_772_452_800  # 2026-03-02 12:00:00 UTC
"""Time of the last change of each file: nothing may depend on the time of the test."""
_CATEGORIES = {
    "productive": "productive",
    "wasted": "wasted_progress_from_disruption",
    "recovery": "infrastructure_recovery_from_disruption",
    "stopped": "stopped",
    "start_up": "program_startup",
    "save": "unproductive_checkpoint_save_time",
    "restore": "unproductive_checkpoint_restore_time",
    "evaluation": "EVAL_STEP",
    "stall": "step_stall",
    "other": "other",
}
"""Categories of accounting.md by their short names here."""


@dataclass(frozen=True)
class Reading:
    """The amounts of one reading of a log."""

    attempts: int
    disruptions: int
    kept: Range
    wasted: Range
    last_step: int | None
    window: Range | None = None
    seconds: Mapping[str, Range] = field(default_factory=dict)

    @property
    def goodput(self) -> Range | None:
        """Goodput in percent; None if the window or the productive time is not stated."""
        if self.window is None or "productive" not in self.seconds:
            return None
        low, high = self.seconds["productive"]
        return 100 * low / self.window[1], 100 * high / self.window[0]


@dataclass(frozen=True)
class Case:
    """A log and its expected result."""

    name: str
    rule: str
    program: str
    why: str
    files: Mapping[str, str]
    readings: Sequence[Reading]
    answer: Answer = "number"
    ending: str | None = None
    at_risk: Range | None = None
    expected_failure: str | None = None
    revised: str | None = None

    def write(self, folder: Path) -> Path:
        """Write the log, and return the path to analyze."""
        for name, text in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
            os.utime(path, (_CHANGED, _CHANGED))
        return folder / next(iter(self.files)) if len(self.files) == 1 else folder

    @cached_property
    def analysis(self) -> Analysis | GoodputError:
        """The analysis of the log, or the error: made once for all tests."""
        with TemporaryDirectory() as folder:
            try:
                return goodput_cli.analyze(self.write(Path(folder)), timezone="UTC")
            except GoodputError as error:
                return error

    def differences(self) -> list[str]:
        """Return the differences between the answer to the log and the expected result."""
        analysis = self.analysis
        if isinstance(analysis, NotEnoughData):
            if self.answer in ("unknown", "no_time"):
                return []
            return [f"refused: {_reason(analysis)}"]
        if isinstance(analysis, GoodputError):
            raise analysis
        if self.answer == "no_time":
            return [f"answered {analysis.goodput_percent} %, although nothing has a time"]
        nearest = min((_differences(reading, analysis) for reading in self.readings), key=len)
        return [*nearest, *self._wrong_ends(analysis), *self._wrong_goodput(analysis)]

    def _wrong_ends(self, analysis: Analysis) -> Iterator[str]:
        if self.ending not in (None, analysis.job.ending):
            yield f"ending {analysis.job.ending}, not {self.ending}"
        if self.at_risk is not None:
            steps = None if analysis.at_risk is None else analysis.at_risk.steps
            yield from _difference("at_risk", steps, self.at_risk)

    def _wrong_goodput(self, analysis: Analysis) -> Iterator[str]:
        low, high = analysis.at_least_percent, analysis.at_most_percent
        answer = f"{_shown(low)} to {_shown(high)} %" if low != high else f"{_shown(low)} %"
        truths = [reading.goodput for reading in self.readings if reading.goodput is not None]
        true = " or ".join(_limits(truth) for truth in truths)
        inside = all(
            (low is None or low <= truth[1] + _NEAR_POINTS) and (high is None or high >= truth[0] - _NEAR_POINTS)
            for truth in truths
        )
        match self.answer:
            case "number" if not analysis.is_measurable:
                yield f"goodput {answer}, not a number"
            case "unknown" if analysis.is_measurable:
                yield f"goodput {answer}, not unknown"
            case "upper_bound" if analysis.is_measurable:
                yield f"goodput {answer}, not an upper bound"
            case "upper_bound" if low is not None or high is None or any(high > t[1] + _NEAR_POINTS for t in truths):
                yield f"goodput {answer}, not at most {true}"
            case "two_readings" if analysis.is_measurable:
                yield f"goodput {answer}, not two readings"
            case "number_or_bounds" if low is not None and high is not None and high - low > _WIDEST:
                yield f"goodput {answer}, too wide"
        if self.answer != "unknown" and not inside:
            yield f"goodput {answer}, not {true}"


def _differences(truth: Reading, analysis: Analysis) -> list[str]:
    job = analysis.job
    times = (analysis.goodput, *analysis.badput)
    seconds = {one.label or one.category: one.seconds for one in times}
    wasted = sum(one.steps_lost or 0 for one in analysis.disruptions)
    rows = [
        *_difference("attempts", job.attempts, (truth.attempts, truth.attempts)),
        *_difference("disruptions", job.disruptions, (truth.disruptions, truth.disruptions)),
        *_difference("kept", job.kept_steps, truth.kept),
        *_difference("wasted", wasted, truth.wasted),
    ]
    if truth.last_step is not None:
        rows += _difference("last_step", job.last_step, (truth.last_step, truth.last_step))
    if truth.window is not None:
        rows += _difference("window", analysis.window.counted_ns / 1e9, truth.window, "s")
    for name, limits in truth.seconds.items():
        rows += _difference(name, seconds.get(_CATEGORIES[name], 0.0), limits, "s")
    return rows


def _difference(name: str, found: float | None, limits: Range, unit: str = "") -> list[str]:
    """Return the difference of one amount; amounts of time have a tolerance."""
    near = max(_NEAR_SECONDS, _NEAR_SHARE * limits[1]) if unit else 0
    if found is not None and limits[0] - near <= found <= limits[1] + near:
        return []
    return [f"{name} {_shown(found)}{unit and ' ' + unit}, not {_limits(limits)}"]


def _reason(error: NotEnoughData) -> str:
    """Return the reason of a refusal, without the paths and the advice."""
    text = str(error).partition(". If the log prints steps")[0]
    return text.partition("no step rule could be inferred: ")[2].partition(" (/")[0] or text.rpartition("/")[2]


def _limits(limits: Range) -> str:
    low, high = map(_shown, limits)
    return low if low == high else f"{low} to {high}"


def _shown(number: float | None) -> str:
    return "unknown" if number is None else f"{number:.2f}".rstrip("0").rstrip(".")


@cache
def load_cases() -> tuple[Case, ...]:
    """Return all cases, by file and in order."""
    files = (tomllib.loads(path.read_text("utf-8")) for path in sorted(CASES.glob("*.toml")))
    return tuple(_case(row) for file in files for row in file["case"])


def _case(row: dict[str, Any]) -> Case:
    fields = dict(row)
    names = [name for name in Reading.__dataclass_fields__ if name in fields]
    own = {name: fields.pop(name) for name in names}
    readings = fields.pop("readings", None) or [own]
    files = fields.pop("files", None) or {"train.log": fields.pop("log")}
    at_risk = fields.pop("at_risk", None)
    return Case(
        files=files,
        readings=[_reading(own | one) for one in readings],
        at_risk=None if at_risk is None else _range(at_risk),
        **fields,
    )


def _reading(row: Mapping[str, Any]) -> Reading:
    fields = {name: _range(row[name]) for name in ("kept", "wasted", "window") if name in row}
    seconds = {name: _range(limits) for name, limits in row.get("seconds", {}).items()}
    return Reading(row["attempts"], row["disruptions"], last_step=row.get("last_step"), seconds=seconds, **fields)


def _range(value: float | Sequence[float]) -> Range:
    return (value[0], value[1]) if isinstance(value, list) else (value, value)  # type: ignore[return-value]
