"""Read progress bars of training (tqdm's), as drawn by Hugging Face's Trainer, Lightning and NeMo 1: completed steps,
and time since the bar began. They have no time of day; timed lines around them are their clock."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from goodput_cli.events.schema import PROGRESS_BARS
from goodput_cli.events.text.log_lines import EventType, LineRule, LogLine, ParsedEvent, duration, pattern, whole

NAME = PROGRESS_BARS
EVERY = 20
"""Seconds between two kept states of a bar: it shows whole seconds but is drawn ten times in each."""
FIRST = 3
_BAR = pattern(
    r"^(?P<name>[^|%]*?)\d{1,3}%(?:\|[^|]*\|\s*| )(?P<done>\d+)/(?P<total>\d+) \[(?P<elapsed>\d{1,9}(?::\d\d){1,2})<"
    r"(?P<rest>[^\]]*)"
)
_HEAVY_BAR = pattern(
    r"^(?P<name>[^|%]*?)\d{1,3}% [━─╸╺]{1,80} (?P<done>\d+)/(?P<total>\d+)"
    r"(?: [\d.]{1,9}(?:it/s|s/it))? (?P<elapsed>\d{1,9}(?:(?::\d\d){1,2}|\.\ds))(?P<rest>)"
)
"""A bar of Ultralytics since 8.3, with its time behind the rate: `640: 100% ━━━━ 5044/5044 1.0s/it 1:28:04`."""
_COUNTED_BAR = pattern(
    r"^(?P<name>[^|%]*?)\[(?P<done>\d+)/(?P<total>\d+)\] +\d{1,3}%\|[^\[\]]*\[(?P<elapsed>\d{1,9}(?::\d\d){1,2})<"
    r"(?P<rest>[^\]]*)"
)
"""A bar of Ignite, with its count first: `Epoch [1/4]: [12/40]  30%|███ , loss=0.5 [00:01<00:02]`."""
_CUT_BAR = pattern(
    r"^(?P<name>[^|%]*?)\d{1,3}%\|[^|]*\|\s*(?P<done>\d+)/(?P<total>\d+) \[(?P<elapsed>\d{1,9}(?::\d\d){1,2})<"
    r"(?P<rest>[\d:?]{1,12}(?:, *[\d.?]*(?:i|it|it/|s|s/|s/i)?)?)$"
)
"""A bar that a terminal cut off in its rate: `| 5777/5777 [14:39<00:00,  6.`."""
_UNBOUNDED_BAR = pattern(
    r"^(?P<name>[^|%]*?)(?P<done>\d{1,15})(?P<total>)it \[(?P<elapsed>\d{1,9}(?::\d\d){1,2}),(?P<rest>[^\]]*)"
)
"""A bar that has passed its total, or has none."""
_UNITS = ("iter", "batch", "step", "epoch", "sample", "image", "img")
"""Units of bars that count training, besides `it`. Those of other work, such as bytes and `examples`, are not among
them."""
_OTHER_RATES = tuple(
    rate + end
    for unit in _UNITS
    for rate in (f"{unit}/s", f"{unit}{'es' if unit == 'batch' else 's'}/s", f"s/{unit}")
    for end in "],"  # Each step line of other programs may end in `250 ms/step`.
)
_ANCHORS = ("it/s", "s/it", *_OTHER_RATES, ", v_num=", ", global_step=")
_NO_TOTAL = -1
_EPOCH = re.compile(r"\bep(?:och)?\W{0,3}(\d{1,9})(?!\d)|^\W*(\d{1,9})\s*/\s*\d{1,9}(?!\d)", re.IGNORECASE)
"""Epoch in the name of a bar: `Epoch 3`, `Epoch [3/10]`, or `3/299` before the numbers of YOLO."""
_EPOCH_AFTER = re.compile(r", [Ee]poch=[A-Za-z ]{0,9}(\d{1,9})(?![\d.])")
"""Epoch after the rate of a bar."""
_TRAINS = re.compile(
    r"\W*(?:train(?:ing)?|steps?|iter(?:ation)?s?)(?:[\s_]+(?:loss|epoch|steps?|iter(?:ation)?s?))?(?:\W*$|\W+[\d(\[=:].*)",
    re.IGNORECASE,
)
"""Names of bars that count steps."""
_EVALUATES = re.compile(r"\bval(?![a-z]*u)|valid|\beval|\btest|\bdev\b|\bmAP", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_TOTALS = {
    "tokens_total": re.compile(r"'num_input_tokens_seen': '?(\d{1,18}(?:\.\d{1,9})?)['},]"),
    "flops_total": re.compile(r"'total_flos': '?(\d{1,30}(?:\.\d{1,30})?(?:e\+?\d{1,3})?)['},]"),
}
"""Running counts of the Trainer."""
_MOST_WORK = 1e300
_GLOBAL_STEP = re.compile(r"global_step=(\d{1,15})(?:\.0)?(?![\d.e])")
_NO_RATE = re.compile(r"^\?, +\?\w*/")
_LOSS = re.compile(r"\W(?:train_?)?loss\w{0,20}[=:]", re.IGNORECASE)
"""A loss after the rate of a bar, but not that of an evaluation (`val_loss=`)."""
_HEADER = "epoch"
"""Name of lines that announce an epoch."""


class Bar(NamedTuple):
    """A state of a progress bar. elapsed: s."""

    name: str
    """Without values: numbers are replaced by 0."""
    epoch: int | None
    """Epoch in the name, otherwise after the rate."""
    done: int
    total: int
    elapsed: int
    global_step: int | None
    has_rate: bool = True
    """False until the first step since the bar began."""
    has_loss: bool = False
    counts_epochs: bool = False
    """True for the one bar of all epochs: its name states the epoch that it counts."""

    @property
    def is_resumed(self) -> bool:
        """Return True if another process did the steps that the bar shows."""
        return self.done > 0 and not self.has_rate

    @property
    def is_full(self) -> bool:
        return self.done >= self.total > _NO_TOTAL

    @property
    def is_of_evaluation(self) -> bool:
        """Return True for bars of evaluations. Bars of the Trainer's evaluations and training have no name."""
        return not self.name or bool(_EVALUATES.search(self.name))

    @property
    def is_of_training(self) -> bool:
        """Return True if the name contains a word for steps of training."""
        return not _EVALUATES.search(self.name) and (self.epoch is not None or bool(_TRAINS.match(self.name)))

    def is_same(self, other: Bar) -> bool:
        return (self.name, self.epoch, self.total) == (other.name, other.epoch, other.total)


@lru_cache(maxsize=256)
def _name_and_epoch(text: str) -> tuple[str, int | None]:
    """Return the name of a bar without values, and the number of the epoch in it."""
    name = text.strip().removesuffix(":").rstrip().removesuffix(":").strip()
    epoch = _EPOCH.search(name)
    return _NUMBER.sub("0", " ".join(name.split())), None if epoch is None else int(epoch[1] or epoch[2])


def _read_bar(found: Any) -> ParsedEvent:
    elapsed = 0
    for part in found["elapsed"].partition(".")[0].split(":"):
        elapsed = 60 * elapsed + int(part)
    rest = found["rest"]
    step = _GLOBAL_STEP.search(rest) if "global_step=" in rest else None
    name, epoch = _name_and_epoch(found["name"])
    if epoch is None and has_count_after_rate(rest) and (after := _EPOCH_AFTER.search(rest)) is not None:
        epoch = int(after[1])
    bar = Bar(
        name,
        epoch,
        whole(found["done"]),
        whole(found["total"]) if found["total"] else _NO_TOTAL,
        elapsed,
        None if step is None else int(step[1]),
        _NO_RATE.search(rest) is None,
        "oss" in rest and _LOSS.search(rest) is not None,
    )
    return ParsedEvent(NAME, EventType.ALIVE, name="bar", detail=(("bar", bar),))


def _read_loss(found: Any) -> ParsedEvent:
    epoch = _EPOCH_OF_TRAINER.search(found[0])
    detail = () if epoch is None else (("epoch", round(1_000_000 * float(epoch[1]))),)
    return ParsedEvent(NAME, EventType.ALIVE, name="trainer", detail=detail, metrics=_totals(found[0]))


_EPOCH_LINE = pattern(
    r"(?<![A-Za-z\d])(?:(?:Epoch|EPOCH)\W{0,3}|epoch\W{1,3})(?P<epoch>\d{1,9})"
    r"(?:\s{0,3}(?:/|of)\s{0,3}\d{1,9})?\W{0,80}$"
)
"""A line with only an epoch after the logger's prefix. `epoch3` is the name of a checkpoint."""
_CHINESE_EPOCH_LINE = pattern(r"第\s{0,3}(?P<epoch>\d{1,9})\s{0,3}轮\D{0,80}$")


def _read_header(found: Any) -> ParsedEvent:
    return ParsedEvent(NAME, EventType.ALIVE, name=_HEADER, common=True, detail=(("epoch", whole(found["epoch"])),))


def _totals(text: str) -> dict[str, float]:
    """Return the Trainer's totals since the beginning of the run, including those before a resume, as metrics."""
    found = ((name, total.search(text)) for name, total in _TOTALS.items())
    return {name: float(one[1]) for name, one in found if one is not None and 0 < float(one[1]) < _MOST_WORK}


RULES = (
    *(LineRule(NAME, anchor, _BAR, _read_bar, "progress bar") for anchor in _ANCHORS),
    *(LineRule(NAME, unit, _HEAVY_BAR, _read_bar, "progress bar") for unit in ("━", "─")),
    LineRule(NAME, "%|", _COUNTED_BAR, _read_bar, "progress bar"),
    LineRule(NAME, "%|", _CUT_BAR, _read_bar, "progress bar"),
    LineRule(NAME, "it [", _UNBOUNDED_BAR, _read_bar, "progress bar"),
    LineRule(NAME, "***** Running training *****", pattern(r"\*\*\*\*\* Running training \*\*\*\*\*"),
             lambda _: ParsedEvent(NAME, EventType.START, name="trainer", once=True), "running training"),
    LineRule(NAME, "Continuing training from global step",
             pattern(r"Continuing training from global step (?P<step>\d+)"),
             lambda found: ParsedEvent(NAME, EventType.RESUME, whole(found["step"]), name="trainer"), "continuing"),
    LineRule(NAME, "{'train_runtime'", pattern(r"^\s*\{'train_runtime': .{0,1000}"),
             lambda found: ParsedEvent(NAME, EventType.FINISHED, name="trainer", metrics=_totals(found[0])), "runtime"),
    LineRule(NAME, "'eval_runtime'", pattern(r"'eval_runtime': '?(?P<took>[\d.]+)"),
             lambda found: ParsedEvent(NAME, EventType.EVAL, took=duration(found["took"]), name="trainer"),
             "evaluation"),
    *(LineRule(NAME, epoch, _EPOCH_LINE, _read_header, "epoch") for epoch in ("Epoch", "EPOCH", "epoch")),
    LineRule(NAME, "第", _CHINESE_EPOCH_LINE, _read_header, "epoch"),
    LineRule(NAME, "{'loss': ", pattern(r"^\s*\{'loss': .{0,1000}"), _read_loss, "loss"),
)  # fmt: skip


def has_count_after_rate(text: str) -> bool:
    """Return True for a state of a bar with its step or epoch after the rate."""
    return "global_step=" in text or ", epoch=" in text or ", Epoch=" in text


def is_bar_rule(rule: LineRule) -> bool:
    """Return True for the rule of tqdm's own bars, whose fields stand where `calm_bars` expects them."""
    return rule.pattern is _BAR


def bar_of(log_line: LogLine) -> Bar | None:
    event = log_line.event
    return event.detail[0][1] if event is not None and event.format == NAME and event.name == "bar" else None


def with_totals(log_lines: list[LogLine]) -> list[LogLine]:
    """Return the log lines of one source with the total in states of bars that have passed it, which no longer show
    it. Bars without a total before are reduced to their timestamps."""
    bars = list(map(bar_of, log_lines))
    if not any(bar is not None and bar.total == _NO_TOTAL for bar in bars):
        return log_lines
    last: dict[tuple[str, str, int | None], Bar] = {}
    found: list[LogLine] = []
    for log_line, bar in zip(log_lines, bars, strict=True):
        if bar is None or log_line.event is None:
            found.append(log_line)
            continue
        key = log_line.stream, bar.name, bar.epoch
        if bar.total == _NO_TOTAL:
            before = last.get(key)
            if before is None or not (before.total < bar.done and before.elapsed <= bar.elapsed):
                found += [replace(log_line, event=None)] if log_line.stamp is not None else []
                continue
            bar = bar._replace(total=before.total)
            log_line = replace(log_line, event=replace(log_line.event, detail=(("bar", bar),)))
        last[key] = bar
        found.append(log_line)
    return found


def without_unnamed_states(log_lines: list[LogLine]) -> list[LogLine]:
    """Return the log lines of one source without first states of bars that were drawn before their epoch was set."""
    named = {(one.stream, bar.name, bar.total) for one in log_lines if (bar := bar_of(one)) and bar.epoch is not None}
    if not named:
        return log_lines
    found: list[LogLine] = []
    for log_line in log_lines:
        bar = bar_of(log_line)
        is_named = bar is None or bar.epoch is not None or (log_line.stream, bar.name, bar.total) not in named
        if is_named or (bar is not None and bar.done):
            found.append(log_line)
        elif log_line.stamp is not None:
            found.append(replace(log_line, event=None))
    return found


_FEWEST_EPOCHS = 3
"""Minimum number of epochs in the names of a bar that show whether they are its own count."""
_OF_STEPS, _AROUND = "steps", "all epochs"


def with_counting_names(log_lines: list[LogLine]) -> list[LogLine]:
    """Return the log lines of one source without epochs in the names of bars that count these epochs themselves, as in
    `Epoch 7/250: 3%| | 7/250 [1:24<...`: it is one bar of the whole training. Next to other bars of training, it counts
    no steps."""
    counts: dict[tuple[str, str, int], tuple[set[int], set[int]]] = {}
    others: set[str] = set()
    """Streams with bars of training whose names have no epoch."""
    for log_line in log_lines:
        bar = bar_of(log_line)
        if bar is None or bar.epoch is None:
            if bar is not None and bar.is_of_training:
                others.add(log_line.stream)
            continue
        epochs, ahead = counts.setdefault((log_line.stream, bar.name, bar.total), (set(), set()))
        for values, value in ((epochs, bar.epoch), (ahead, bar.epoch - bar.done)):
            if len(values) < _FEWEST_EPOCHS:
                values.add(value)
    own = {
        key for key, (epochs, ahead) in counts.items() if len(epochs) >= _FEWEST_EPOCHS and max(ahead) - min(ahead) <= 1
    }
    if not own:
        return log_lines
    around = others | {stream for stream, _, _ in counts.keys() - own}
    return [_with_counting_name(one, own, _AROUND if one.stream in around else _OF_STEPS) for one in log_lines]


def _with_counting_name(log_line: LogLine, own: Set[tuple[str, str, int]], name: str) -> LogLine:
    bar, event = bar_of(log_line), log_line.event
    if bar is None or event is None or (log_line.stream, bar.name, bar.total) not in own:
        return log_line
    named = bar._replace(name=name, epoch=None, counts_epochs=True)
    return replace(log_line, event=replace(event, detail=(("bar", named),)))


def header_of(log_line: LogLine) -> int | None:
    """Return the epoch that a line announces; None for other lines."""
    event = log_line.event
    found: int | None = None
    if event is not None and event.format == NAME and event.name == _HEADER:
        found = event.detail[0][1]
    return found


_EPOCH_OF_TRAINER = re.compile(r"'epoch': '?(\d+(?:\.\d+)?)")


def counted_step(event: ParsedEvent) -> int | None:
    """Return the step in a line, including bars; None if it has none. For the Trainer's lines with a loss, which
    contain no step, return the epoch in millionths."""
    if event.type is EventType.STEP:
        return event.step
    if event.format != NAME or event.name == _HEADER:
        return None
    bar_or_epoch = event.detail[0][1] if event.detail else None
    found: int | None = bar_or_epoch.done if isinstance(bar_or_epoch, Bar) else bar_or_epoch
    return found


def counted_bar(event: ParsedEvent) -> tuple[str, int | None, int] | None:
    """Return name, epoch and total of the bar in a line; None if there is none."""
    if event.format != NAME or event.name != "bar":
        return None
    return event.detail[0][1].name, event.detail[0][1].epoch, event.detail[0][1].total


@dataclass
class _Kept:
    """State of one bar in a block: its last kept state, its last state, and the index of that (-1 if kept)."""

    stays: Bar
    last: Bar
    place: int = -1
    begun: int = 1
    """Kept states since it began, at most `FIRST`."""


def until_next(begun: int, done: int, elapsed: int) -> int:
    """Return the seconds from a kept state to the next one. begun: kept states since the bar began. done, elapsed: of
    the last one. Of a bar with several steps per second, one state of a second is kept."""
    return EVERY if begun >= FIRST else int(done > elapsed)


def thinned(placed: Sequence[tuple[int, LogLine]]) -> list[tuple[int, LogLine]]:
    """Return log lines of a block without most states of bars: the first of each of three seconds, widely spaced ones,
    and the last are kept. States of one second would show steps without time."""
    left_out: set[int] = set()
    seen: dict[tuple[str, str, int | None, int], _Kept] = {}
    drawn: tuple[str, str, int | None, int] | None = None  # The bar that advanced last.
    for place, (_, log_line) in enumerate(placed):
        bar = bar_of(log_line)
        if bar is None:
            continue
        key = log_line.stream, bar.name, bar.epoch, bar.total
        kept = seen.get(key)
        begins = kept is None or bar.elapsed < kept.last.elapsed or bar.done < kept.last.done
        if kept is None or begins or (bar.done == kept.last.done and bar.is_full and drawn != key):
            seen[key], drawn = _Kept(bar, bar), key
            continue
        if (
            bar.done == kept.last.done and log_line.stamp is None
        ):  # The bar was redrawn, for example closed after a traceback.
            left_out.add(place)
            continue
        drawn = key
        if kept.place >= 0:
            left_out.add(kept.place)
        stays = bar.elapsed >= kept.stays.elapsed + until_next(kept.begun, kept.stays.done, kept.stays.elapsed)
        kept.begun += stays and kept.begun < FIRST
        kept.stays, kept.place = (bar, -1) if stays else (kept.stays, place)
        kept.last = bar
    return [one for place, one in enumerate(placed) if place not in left_out] if left_out else list(placed)


def names_trainer(log_lines: Sequence[LogLine]) -> bool:
    """Return True if there are lines of Hugging Face's Trainer."""
    return any(
        log_line.event is not None and (log_line.event.format, log_line.event.name) == (NAME, "trainer")
        for log_line in log_lines
    )


def is_of_bars(log_line: LogLine, what: EventType) -> bool:
    return log_line.event is not None and log_line.event.format == NAME and log_line.event.type is what
