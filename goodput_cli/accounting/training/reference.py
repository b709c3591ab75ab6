"""The reference step time (accounting §6): given, found in the log, or none, and the slowdown it makes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Literal

import numpy as np

from goodput_cli.accounting.amounts import scaled
from goodput_cli.accounting.rules import Rules
from goodput_cli.accounting.sweep import ClaimedTime
from goodput_cli.accounting.training.kept import KeptTraining, TrainingOutcome
from goodput_cli.errors import UsageError

_MOST_NS = 2.0**62


def reference_step_time(
    rules: Rules, training: TrainingOutcome, claimed_time: ClaimedTime, step_log: bool
) -> tuple[Fraction | None, Literal["given", "auto"] | None]:
    """The reference step time in use (ns), and where it came from.

    claimed_time: what training cannot have. Checkpoint logs take "auto" where nothing is given.
    """
    if isinstance(rules.reference_ns, Fraction):
        return rules.reference_ns, "given"
    if rules.reference_ns == "auto" or not step_log:
        reference = auto_reference(training, claimed_time)
        return reference, None if reference is None else "auto"
    return None, None


def auto_reference(training: TrainingOutcome, claimed_time: ClaimedTime) -> Fraction | None:
    """The 10th percentile (linear) of net time per step (ns) over wholly kept, untouched spans that are not an
    attempt's first; if there are none, over the first ones; None if there are none either, or if it is 0: clocks of
    whole seconds show no time for most of many steps a second (accounting §6)."""
    spans = training.spans
    for chosen in (training.sample & ~spans.opening, training.sample & spans.opening):
        if chosen.any():
            net = claimed_time.net_between(spans.start[chosen], spans.end[chosen])
            rate = net / spans.steps[chosen]
            return Fraction(float(np.percentile(rate, 10))) or None
    return None


def with_slowdown(kept_training: KeptTraining, reference_ns: Fraction) -> KeptTraining:
    """With a reference R: kept steps x R are productive, the rest of the net time (less start-up) is slowdown.

    The sum over the job is rounded once: each span takes the difference of two running totals. `UsageError` if that is
    more than can be counted.
    """
    _check_amount(kept_training, reference_ns)
    total = scaled(np.cumsum(kept_training.counted_steps), reference_ns)
    slowdown = kept_training.trained(0, len(kept_training)) - np.diff(total, prepend=0)
    slowdown[~kept_training.kept_steps.some] = 0
    return replace(kept_training, slowdown=slowdown)


def _check_amount(kept_training: KeptTraining, reference_ns: Fraction) -> None:
    """UsageError if kept steps x reference is more than can be counted in ns (292 years): a mistyped reference, or
    step numbers that are no steps."""
    steps = float(kept_training.counted_steps.sum())
    if steps * float(reference_ns) > _MOST_NS:
        raise UsageError(
            f"{steps:g} kept steps x a reference step time of {float(reference_ns) / 1e9:g} s is longer than any job; "
            "check the reference step time, and whether the log counts steps"
        )
