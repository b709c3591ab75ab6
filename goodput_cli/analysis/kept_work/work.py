"""Work of the kept steps of a window: tokens, samples and floating-point operations, and their share of the peak of
the accelerators that the job was allocated (docs/inside-steps.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from goodput_cli.accounting.training.kept import merged_exclusions
from goodput_cli.analysis.json_fields import Amount, Json, written
from goodput_cli.analysis.kept_work.records import KeptSteps, Rows, WorkRecords, mean_over
from goodput_cli.analysis.question import PEAK_TFLOPS, TERA
from goodput_cli.arrays import F64, I64
from goodput_cli.events.accelerators.hooks import DEVICE_SAMPLES
from goodput_cli.events.schema import ACCELERATORS, NO_STEP, SAMPLES
from goodput_cli.vocabulary.text import exact, percent

if TYPE_CHECKING:
    from goodput_cli.analysis.analysis_data import AnalysisData


LOGGED, COUNTED, RATED = "logged", "differences of a running count", "rate x time"
PER_ACCELERATOR = "tokens_per_second_accelerator"
_DERIVED = "tokens / (time x rate)"
_OTHERWISE = 0.001
"""Relative difference from which an option contradicts the log."""
_WHOLE = 0.02
"""Relative distance within which a number computed from rounded rates counts as a whole one."""
_MOST_ACCELERATORS = 1e9


class AmountPerStep(NamedTuple):
    """An amount per step of each kept row."""

    each: F64
    how: str


class AllocatedAccelerators(NamedTuple):
    """Accelerators that were allocated to the job."""

    each: F64
    """Number by kept row."""
    mean: float
    """Mean over the window."""
    how: str


def accelerators_of(records: WorkRecords, notes: list[str]) -> AllocatedAccelerators | None:
    """Return the number from the option, otherwise from the log."""
    stated, price = records.stated(ACCELERATORS), records.price
    mean = None if stated is None else mean_over(stated, _counted_pieces(records))
    if price is not None:
        if mean is not None:
            note(notes, "--accelerators", price.accelerators, mean)
        return AllocatedAccelerators(
            np.full(len(records.kept.inside), price.accelerators), price.accelerators, "--accelerators"
        )
    return None if stated is None or mean is None else AllocatedAccelerators(records.at(stated), mean, LOGGED)


def worked_out(
    records: WorkRecords, tokens: AmountPerStep | None, held: AllocatedAccelerators | None, notes: list[str]
) -> AllocatedAccelerators | None:
    """Return the allocated accelerators, otherwise the tokens of a step divided by a rate of one accelerator, by
    attempt. Numbers that are not whole are unknown."""
    logged = records.has_any(*ACCELERATORS) or tokens is None or tokens.how == RATED
    rate = None if logged else records.rate(PER_ACCELERATOR)
    if rate is None or tokens is None:
        return held
    each = _rounded_by_attempt(records.kept.attempt, tokens.each / (rate.seconds * rate.value))
    if each is None:
        return held
    found = AllocatedAccelerators(each, _mean_by_attempt(records, each), _DERIVED)
    if held is not None:
        note(notes, "--accelerators", held.mean, found.mean)
        return held
    return found


def _rounded_by_attempt(attempt: I64, found: F64) -> F64 | None:
    """Return the whole number near the values of each attempt, by row.

    An attempt without one gets that of all values, otherwise that of the previous attempt. None if no attempt has one.
    attempt: sorted.
    """
    _, first, place = np.unique(attempt, return_index=True, return_inverse=True)
    of_all, before, numbers = _whole(found), None, list[float | None]()
    for part in np.split(found, first[1:]):
        before = _whole(part) or of_all or before
        numbers.append(before)
    whole = next((one for one in numbers if one is not None), None)
    return None if whole is None else np.array([one or whole for one in numbers])[place]


def _whole(found: F64) -> float | None:
    """Return the whole number above 0 near the median; None without one."""
    middle = float(np.median(found))
    whole = round(middle) if middle < _MOST_ACCELERATORS else 0
    return float(whole) if whole >= 1 and abs(middle - whole) <= _WHOLE * whole else None


def _mean_by_attempt(records: WorkRecords, each: F64) -> float:
    """Return the mean over the window of the value of each kept row, which applies to its whole attempt."""
    attempt, first = np.unique(records.kept.attempt, return_index=True)
    begin = records.timeline.attempts.begin[attempt]
    stated = Rows(attempt, np.full(len(attempt), NO_STEP), begin, each[first])
    return mean_over(stated, _counted_pieces(records)) or float(each[first[0]])


def _counted_pieces(records: WorkRecords) -> Iterator[tuple[int, int]]:
    """Yield the pieces of the window without excluded time."""
    begin, end = records.start_ns, records.end_ns
    for start, stop in merged_exclusions(records.timeline.rules.exclusions):
        if start > begin:
            yield begin, min(start, end)
        begin = max(begin, stop)
        if begin >= end:
            return
    yield begin, end


def note(notes: list[str], option: str, said: float, logged: float, unit: str = "") -> None:
    """Add a note if an option overrides a different value of the log."""
    if abs(said - logged) > _OTHERWISE * logged:
        words = f"{exact(said)} {unit}".rstrip()
        others = logged if logged == round(logged) else float(f"{logged:.6g}")
        notes.append(f"{option} is used ({words}); the log contains {exact(others)}")


_OF_SAMPLES = "samples x sequence length"
_PEAK_OF_FORMATS = {"nanogpt": PEAK_TFLOPS["a100"] * TERA}
"""Peak for MFU in programs that know a single accelerator, FLOP/s."""
_MOST_MFU = 100.0
_MOST = 2.0**62
Number = Annotated[float | None, Json("whole")]


@written("kept_work", "work of the kept steps in the window; not used for any other number")
@dataclass(frozen=True, kw_only=True)
class KeptWork:
    """Work of the kept steps of a window."""

    steps: Amount
    """kept steps that are counted, including the steps that the first line of a log covers"""
    tokens: Number = None
    """tokens of these steps; null: not recorded"""
    tokens_from: str | None = None
    """source of tokens: logged, rate x time, samples x sequence length, or an option"""
    tokens_per_second: float | None = None
    """tokens of the window over its time without exclusions"""
    samples: Number = None
    """samples of these steps; null: not recorded"""
    samples_from: str | None = None
    """source of samples"""
    tflop: float | None = None
    """10^12 floating-point operations of these steps on all accelerators; null: not recorded"""
    tflop_from: str | None = None
    """source of tflop"""
    accelerators: Number = None
    """mean over the window; null: not recorded"""
    accelerators_from: str | None = None
    """source of accelerators"""
    peak_tflops: float | None = None
    """peak of one accelerator, in 10^12 floating-point operations per second; null: unknown"""
    peak_from: str | None = None
    """source of peak_tflops"""
    mfu_percent: float | None = None
    """model FLOPs utilization of kept steps alone, as logged rates report it"""
    effective_mfu_percent: float | None = None
    """kept floating-point operations divided by the peak of all accelerators in the window without exclusions"""
    cost_per_million_tokens: float | None = None
    """price of all accelerators in the window per million kept tokens; null without a price"""
    kwh_per_million_tokens: Annotated[float | None, Json(optional=True)] = None
    """energy of all accelerators in the window per million kept tokens; left out if samples are incomplete"""
    notes: tuple[str, ...] = ()
    """options that replaced values of the log"""

    @property
    def known(self) -> bool:
        """True if any amount is known."""
        return not self.tokens is self.samples is self.tflop is self.effective_mfu_percent is None


class _Flops(NamedTuple):
    """Floating-point operations of one step."""

    each: F64
    how: str
    of_all: bool
    """True for all accelerators, False for one."""
    seconds: F64 | None
    """Time of one step that the rate covers; None if the value is not a rate."""
    relative: bool = False
    """True if they are shares of the peak, because the peak is unknown."""


def work_of(analysis: AnalysisData) -> KeptWork | None:
    """Return the work of the window; None if neither the log nor the options contain any."""
    records, notes = WorkRecords.of(analysis), list[str]()
    if not records.has_metrics and analysis.work_options.tokens_per_step is None:
        return None
    if not len(records.kept.inside):
        return None
    samples = _samples(records)
    held = accelerators_of(records, notes)
    tokens = _tokens(records, samples, held, notes)
    held = worked_out(records, tokens, held, notes)
    peak, peak_from = _peak(records, notes)
    flops = _flops(records, peak)
    found = _answer(analysis, records, samples, tokens, flops, held, peak, peak_from, notes)
    return found if found.known else None


def _answer(
    analysis: AnalysisData, records: WorkRecords, samples: AmountPerStep | None, tokens: AmountPerStep | None,
    flops: _Flops | None, held: AllocatedAccelerators | None, peak: float | None, peak_from: str | None,
    notes: list[str],
) -> KeptWork:  # fmt: skip
    kept, seconds, price = records.kept, analysis.window.counted_ns / 1e9, analysis.price
    inside = 0.0 if tokens is None else _sum(kept.inside, tokens.each)
    energy = _energy(analysis) if DEVICE_SAMPLES.of(analysis.table) and tokens is not None else None
    money = None if price is None else price.money(analysis.window.counted_ns)
    all_flops = None if flops is None or flops.relative else _of_all(flops, held)
    of_tokens = None if tokens is None else _plausible_or_none(_sum(kept.counted, tokens.each))
    of_samples = None if samples is None else _plausible_or_none(_sum(kept.counted, samples.each))
    tflop = None if all_flops is None else _plausible_or_none(_sum(kept.counted, all_flops) / TERA)
    mfu = None if analysis.is_bounded else _mfu(kept, flops, held, peak, analysis.goodput.ns / 1e9)
    if mfu is not None and mfu > _MOST_MFU:
        notes.append(f"MFU of {percent(mfu)} is impossible: check the peak, the accelerators and the work per step")
    return KeptWork(
        steps=float(kept.counted.sum()),
        tokens=of_tokens,
        tokens_from=None if tokens is None or of_tokens is None else tokens.how,
        tokens_per_second=None if of_tokens is None else _plausible_or_none(inside / seconds),
        samples=of_samples,
        samples_from=None if samples is None or of_samples is None else samples.how,
        tflop=tflop,
        tflop_from=None if flops is None or tflop is None else flops.how,
        accelerators=None if held is None else held.mean,
        accelerators_from=None if held is None else held.how,
        peak_tflops=None if peak is None else _plausible_or_none(peak / TERA),
        peak_from=peak_from,
        mfu_percent=mfu,
        effective_mfu_percent=_effective_mfu(kept, flops, held, peak, seconds),
        cost_per_million_tokens=_plausible_or_none(money / inside * 1e6) if money is not None and inside else None,
        kwh_per_million_tokens=None if energy is None or not inside else _plausible_or_none(energy / inside * 1e6),
        notes=tuple(notes),
    )


def _energy(analysis: AnalysisData) -> float | None:
    from goodput_cli.analysis.accelerators.devices import devices_of  # Few logs contain samples.

    found = devices_of(analysis)
    return None if found is None else found.whole_kwh


def _plausible_or_none(value: float) -> float | None:
    """Return an amount that a saved answer may contain; None for an implausible one."""
    return value if 0 <= value < _MOST else None


def _sum(steps: F64, each: F64) -> float:
    return float((steps * each).sum())


def _samples(records: WorkRecords) -> AmountPerStep | None:
    for name in SAMPLES:
        if (each := records.each(name)) is not None:
            return AmountPerStep(each, LOGGED)
    if (each := records.differences("samples_total")) is not None:
        return AmountPerStep(each, COUNTED)
    rate = records.rate("samples_per_second")
    return None if rate is None else AmountPerStep(rate.value * rate.seconds, RATED)


def _tokens(
    records: WorkRecords, samples: AmountPerStep | None, held: AllocatedAccelerators | None, notes: list[str]
) -> AmountPerStep | None:
    logged, said = _logged_tokens(records, samples, held), records.known.tokens_per_step
    if said is None:
        return logged
    each = np.full(len(records.kept.inside), said)
    if logged is not None:
        mean = _sum(records.kept.counted, logged.each) / max(float(records.kept.counted.sum()), 1e-9)
        note(notes, "--tokens-per-step", said, mean, "a step")
    return AmountPerStep(each, "--tokens-per-step")


def _logged_tokens(
    records: WorkRecords, samples: AmountPerStep | None, held: AllocatedAccelerators | None
) -> AmountPerStep | None:
    """Return the logged tokens, from the most direct source."""
    if (each := records.each("tokens_per_step")) is not None:
        return AmountPerStep(each, LOGGED)
    if (each := records.differences("tokens_total")) is not None:
        return AmountPerStep(each, COUNTED)
    length = records.stated(("sequence_length",))
    if samples is not None and length is not None:
        return AmountPerStep(samples.each * records.at(length), _OF_SAMPLES)
    if (rate := records.rate("tokens_per_second")) is not None:
        return AmountPerStep(rate.value * rate.seconds, RATED)
    rate = None if held is None else records.rate(PER_ACCELERATOR)
    return None if rate is None or held is None else AmountPerStep(rate.value * rate.seconds * held.each, RATED)


def _peak(records: WorkRecords, notes: list[str]) -> tuple[float | None, str | None]:
    """Return the peak of one accelerator in FLOP/s, and its source."""
    known = records.known
    (logged, how), said = _logged_peak(records), known.peak_flops
    if said is None:
        return logged, how
    if logged is not None:
        note(notes, known.peak_option, said / TERA, logged / TERA, "TFLOP/s")
    return said, known.peak_option


def _logged_peak(records: WorkRecords) -> tuple[float | None, str | None]:
    """Return the peak of one accelerator and its source, from the log alone."""
    values = records.values("peak_flops")
    if len(values):
        return float(np.median(values)), LOGGED
    name = next((one for one in records.formats if one in _PEAK_OF_FORMATS), None)
    return (None, None) if name is None else (_PEAK_OF_FORMATS[name], f"{name} assumes an A100")


def _flops(records: WorkRecords, peak: float | None) -> _Flops | None:
    """Return the floating-point operations of one step, from the most direct source."""
    if (each := records.each("flops_per_step")) is not None:
        return _Flops(each, LOGGED, True, None)
    if (each := records.differences("flops_total")) is not None:
        return _Flops(each, COUNTED, True, None)
    if (rate := records.rate("tflops")) is not None:
        return _Flops(rate.value * TERA * rate.seconds, RATED, False, rate.seconds)
    rate = records.rate("mfu")
    if rate is None:
        return None
    in_percent = records.unit("mfu") == "%" or float(rate.value.max()) > 1
    share = rate.value / (100 if in_percent else 1)
    if float(share.max()) * 100 > _MOST_MFU:
        return None  # Such values are not MFU.
    best = _logged_peak(records)[0] or peak  # MFU is relative to the program's own peak.
    each = share * rate.seconds * (best or 1.0)
    return _Flops(each, "MFU x peak x time", False, rate.seconds, relative=best is None)


def _of_all(flops: _Flops, held: AllocatedAccelerators | None) -> F64 | None:
    """Return the operations of all accelerators; None if their number is unknown."""
    if flops.of_all:
        return flops.each
    return None if held is None else flops.each * held.each


def _mfu(
    kept: KeptSteps, flops: _Flops | None, held: AllocatedAccelerators | None, peak: float | None, productive: float
) -> float | None:
    """Return the MFU of kept steps alone, in the time that the rate covers, otherwise in their productive seconds."""
    best = 1.0 if flops is not None and flops.relative else peak
    if flops is None or best is None:
        return None
    if flops.seconds is not None:
        return _share(_sum(kept.inside, flops.each), _sum(kept.inside, flops.seconds) * best)
    return None if held is None else _share(_sum(kept.inside, flops.each), productive * held.mean * best)


def _effective_mfu(
    kept: KeptSteps, flops: _Flops | None, held: AllocatedAccelerators | None, peak: float | None, seconds: float
) -> float | None:
    """Return kept work divided by the possible work in the seconds of the window."""
    best = 1.0 if flops is not None and flops.relative else peak
    if flops is None or best is None:
        return None
    all_flops = _of_all(flops, held)
    if held is not None and all_flops is not None:
        return _share(_sum(kept.inside, all_flops), seconds * held.mean * best)
    return None if flops.of_all else _share(_sum(kept.inside, flops.each), seconds * best)


def _share(part: float, whole: float) -> float | None:
    return _plausible_or_none(100 * part / whole) if whole > 0 else None


class LoggedSizes(NamedTuple):
    """Logged values for the program goodput of a fleet; None if not logged."""

    accelerators: int | None = None
    flops_per_step: float | None = None
    """Mean of kept steps, for all accelerators."""
    peak_flops: float | None = None
    """Peak of one accelerator."""


def logged_sizes(records: WorkRecords) -> LoggedSizes:
    """Return the sizes of the whole run."""
    if not records.has_metrics or not len(records.kept.inside):
        return LoggedSizes()
    notes: list[str] = []
    held = accelerators_of(records, notes)
    held = worked_out(records, _tokens(records, _samples(records), held, notes), held, notes)
    peak, _ = _peak(records, notes)
    flops = _flops(records, peak)
    all_flops = None if flops is None or flops.relative else _of_all(flops, held)
    steps = float(records.kept.counted.sum())
    each = None if all_flops is None or steps <= 0 else _sum(records.kept.counted, all_flops) / steps
    many = None if held is None or not 1 <= held.mean < _MOST else round(held.mean)
    return LoggedSizes(many, each if each is not None and math.isfinite(each) else None, peak)
