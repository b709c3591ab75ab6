"""Step breakdowns in rows of trackers, by the names that trainers log: verl's `timing_s/..` and `perf/..`, those of
Lightning's throughput monitor (`device/..`) and the token count of Hugging Face's trainer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from goodput_cli.events.inside import LONGEST_NS, STEP_TIME, PhaseName, PhaseTime, safe_name
from goodput_cli.vocabulary.when import NS_PER_SECOND

_TIMES = "timing_s/"
_PHASES = {
    "gen": "generate",
    "reward": "reward",
    "old_log_prob": "train",
    "ref": "train",
    "values": "train",
    "adv": "train",
    "update_actor": "train",
    "update_critic": "train",
    "update_weights": "sync",
    "param_sync": "sync",
    "testing": "evaluation",
    "save_checkpoint": "save",
    "step": STEP_TIME,
}
_BESIDE = "fully_async/"
"""Prefix of names for generators that run in parallel with training; `gen` is then the time of waiting for their
samples."""
_WORK = {
    "perf/mfu/actor": ("mfu", 100.0),
    "perf/total_num_tokens": ("tokens_per_step", 1.0),
    "perf/throughput": ("tokens_per_second_accelerator", 1.0),
    "device/mfu": ("mfu", 100.0),
    "device/flops_per_sec": ("tflops", 1e-12),
    "samples_per_sec": ("samples_per_second", 1.0),
    "num_input_tokens_seen": ("tokens_total", 1.0),
    "train/num_input_tokens_seen": ("tokens_total", 1.0),
}
"""By name, the metric and its factor."""
_MOST_WORK = 1e300

Logged = Mapping[str, float]


def is_inside(name: str) -> bool:
    """Return True if a value of this name is part of a step breakdown."""
    return name in _WORK or (name.startswith(_TIMES) and _phase(name) in _PHASES)


def logged_of(values: Mapping[str, object]) -> dict[str, float]:
    """Return the values of a row that are part of its step breakdown, without invalid ones."""
    found: dict[str, float] = {}
    for name, value in values.items():
        if is_inside(name) and isinstance(value, int | float) and 0 <= value < _MOST_WORK:
            found[name] = float(value)
    if found and any(name.startswith(_BESIDE) for name in values):
        found[_BESIDE] = 1.0
    return found


def phases_of(logged: Logged) -> tuple[PhaseTime, ...]:
    """Return the phases of a row."""
    return tuple(_times(logged))


def work_of(logged: Logged) -> dict[str, float]:
    """Return the amounts of work of a row, as metrics."""
    found = {_WORK[name][0]: value * _WORK[name][1] for name, value in logged.items() if name in _WORK}
    return {name: value for name, value in found.items() if value > 0}


def _times(logged: Logged) -> Iterator[PhaseTime]:
    for name, seconds in logged.items():
        own = _phase(name)
        if name in _WORK or own not in _PHASES or seconds * NS_PER_SECOND > LONGEST_NS:
            continue
        phase = "wait" if own == "gen" and _BESIDE in logged else _PHASES[own]
        yield PhaseTime(PhaseName(safe_name(own), phase), round(seconds * NS_PER_SECOND))


def _phase(name: str) -> str:
    """Return the phase in a name: `timing_s/timing_s/param_sync` is `param_sync`."""
    return name.removeprefix(_TIMES).removeprefix(_TIMES)
